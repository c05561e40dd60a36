// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Reads a snapshot in one pass over its pickle: a stack machine whose values are numbers of texts,
 * frames and stacks, and of the few containers that are not complete yet. A complete one is reduced
 * to what is needed of it; a reference to it afterwards is an error unless it is a frame or a
 * stack.
 */
#include "dump/memory/snapshot.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/grow.h"
#include "dump/format.h"
#include "dump/io/little_endian.h"
#include "dump/memory/snapshot_impl.h"
#include "dump/torch/pickle.h"

#define MAX_OBJECTS 1000000             /* containers that are not complete */
#define MAX_MEMO    (UINT64_C(1) << 28) /* 2 GiB */
#define MEMO_GAP    (UINT64_C(1) << 16) /* entries that may be left out */
#define MAX_WAITING 256
#define STRIDE      ((uint64_t)16 << 20) /* bytes between two calls of go_on */
#define ZIP_HEADER  30                   /* of a member, before its name */

int snap_fail(const struct snap_machine *m, const char *format, ...)
{
    char text[GD_ERR_TEXT_MAX];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    return pickle_fail(&m->input, m->err, GD_EPROTO, "%s", text);
}

const char *snap_kind_name(const struct snap_machine *m, const struct snap_value *value)
{
    const struct snap_object *object;

    switch ((enum snap_kind)value->kind) {
    case SNAP_IS_NONE: return "None";
    case SNAP_IS_BOOL: return "a bool";
    case SNAP_IS_INT: return "an integer";
    case SNAP_IS_BIG: return "an integer beyond 64 bits";
    case SNAP_IS_FLOAT: return "a float";
    case SNAP_IS_TEXT: return "a string";
    case SNAP_IS_BYTES: return "bytes";
    case SNAP_IS_FRAME: return "a frame";
    case SNAP_IS_STACK: return "a list of frames";
    case SNAP_IS_SEGMENT: return "a segment";
    case SNAP_IS_OBJECT:
        object = snap_object_of(m, value);
        return !object ? "a container that was used before" : object->is_list ? "a list" : "a dict";
    default: return "a tuple or set";
    }
}

/* ---- containers ------------------------------------------------------------------------------ */

struct snap_object *snap_object_of(const struct snap_machine *m, const struct snap_value *value)
{
    struct snap_object *object = value->kind == SNAP_IS_OBJECT ? &m->object[value->id] : NULL;

    return object && object->used && object->generation == (uint32_t)value->integer ? object : NULL;
}

static bool owns_items(const struct snap_object *object)
{
    return object->shape == SNAP_LIST_FRAMES || object->shape == SNAP_LIST_TRACES ||
           object->shape == SNAP_LIST_BLOCKS;
}

static uint64_t pack_value(const struct snap_value *value)
{
    return (uint64_t)value->kind << 60 | (uint64_t)value->id << 32 | (uint32_t)value->integer;
}

void snap_release(struct snap_machine *m, const struct snap_value *value,
                  const struct snap_value *instead)
{
    struct snap_object *object = &m->object[value->id];

    if (owns_items(object)) {
        free(object->item);
    }
    if (instead && object->memo != SNAP_NO_MEMO) {
        m->memo[object->memo] = instead->kind == SNAP_IS_OBJECT
                                    ? pack_value(instead)
                                    : (uint64_t)instead->kind << 60 | instead->id;
    }
    object->used = false;
    object->generation++;
    object->item = NULL;
    m->spare[m->spare_count++] = value->id; /* there is room for all slots */
}

static int new_object(struct snap_machine *m, bool is_list, struct snap_value *ret)
{
    struct snap_object *object;
    uint32_t slot, generation;

    if (m->spare_count) {
        slot = m->spare[--m->spare_count];
    } else {
        if (m->object_count >= MAX_OBJECTS) {
            return pickle_fail(&m->input, m->err, GD_ELIMIT,
                               "more than %d lists and dicts are incomplete", MAX_OBJECTS);
        }
        if (!gd_grow_list(&m->object, m->object_count, &m->object_cap, sizeof(*m->object)) ||
            !gd_grow_list(&m->spare, m->object_count, &m->spare_cap, sizeof(*m->spare))) {
            return gd_fail_nomem(m->err);
        }
        slot = m->object_count++;
        m->object[slot].generation = 0;
    }
    object = &m->object[slot];
    generation = object->generation;
    object->used = true;
    object->is_list = is_list;
    object->shared = false;
    object->shape = SNAP_EMPTY;
    object->memo = SNAP_NO_MEMO;
    object->count = 0;
    object->cap = 0;
    object->item = NULL;
    *ret = (struct snap_value){.kind = SNAP_IS_OBJECT, .id = slot, .integer = generation};
    return GD_OK;
}

/* A list of frames may wait on the stack for its dict while dicts in there use it, too: PyTorch's
 * list for "no frames" does. Those waiting are near the top. */
static void settle_others(struct snap_machine *m, const struct snap_value *list,
                          const struct snap_value *stack)
{
    struct snap_value was = *list;
    uint32_t first = m->top > MAX_WAITING ? m->top - MAX_WAITING : 0;

    for (uint32_t i = first; i < m->top; i++) {
        if (m->stack[i].kind == SNAP_IS_OBJECT && m->stack[i].id == was.id &&
            m->stack[i].integer == was.integer) {
            m->stack[i] = *stack;
        }
    }
}

int snap_settle_stack(struct snap_machine *m, struct snap_value *value)
{
    struct snap_object *list = snap_object_of(m, value);
    struct snap_value stack = {.kind = SNAP_IS_STACK}, was = *value;
    struct gd_err why;
    int rc;

    if (!list || !list->is_list || (list->shape != SNAP_LIST_FRAMES && list->shape != SNAP_EMPTY)) {
        return GD_OK;
    }
    rc = snap_intern_stack(&m->snapshot->stacks, list->item, list->count, &stack.id, &why);
    if (rc != GD_OK) {
        return pickle_fail(&m->input, m->err, rc, "%s", why.text);
    }
    if (list->shared) {
        settle_others(m, value, &stack);
    }
    snap_release(m, &was, &stack);
    *value = stack;
    return GD_OK;
}

/* ---- the stack ------------------------------------------------------------------------------- */

static int push_value(struct snap_machine *m, struct snap_value value)
{
    if (m->depth >= GD_PICKLE_MAX_STACK) {
        return pickle_fail(&m->input, m->err, GD_ELIMIT, "more than %d values on the stack",
                           GD_PICKLE_MAX_STACK);
    }
    if (!gd_grow_list(&m->stack, m->depth, &m->stack_cap, sizeof(*m->stack))) {
        return gd_fail_nomem(m->err);
    }
    m->stack[m->depth++] = value;
    return GD_OK;
}

static uint32_t stack_bottom(const struct snap_machine *m)
{
    return m->marks ? m->mark[m->marks - 1].depth : 0;
}

static int need_values(const struct snap_machine *m, uint32_t count)
{
    return m->depth - stack_bottom(m) >= count
               ? GD_OK
               : snap_fail(m, "too few values on the stack for this opcode");
}

static int push_mark(struct snap_machine *m)
{
    if (m->marks >= GD_PICKLE_MAX_STACK) {
        return pickle_fail(&m->input, m->err, GD_ELIMIT, "more than %d open MARKs",
                           GD_PICKLE_MAX_STACK);
    }
    if (!gd_grow_list(&m->mark, m->marks, &m->mark_cap, sizeof(*m->mark))) {
        return gd_fail_nomem(m->err);
    }
    m->mark[m->marks++] = (struct snap_mark){.depth = m->depth};
    return GD_OK;
}

/* Removes the last MARK; *at is the first of the *count values above it, which are off the stack
 * but still there. */
static int take_marked(struct snap_machine *m, bool into_list, uint32_t *at, uint32_t *count)
{
    *at = *count = 0;
    if (!m->marks) {
        return snap_fail(m, "no MARK for this opcode");
    }
    if (m->mark[m->marks - 1].eager && !into_list) {
        return snap_fail(m, "a list is filled in a way that PyTorch does not use");
    }
    *at = stack_bottom(m);
    *count = m->depth - *at;
    m->depth = *at;
    m->marks--;
    return GD_OK;
}

/* Values that become part of something of no interest. */
static void drop_values(struct snap_machine *m, uint32_t at, uint32_t count)
{
    for (uint32_t i = at; i < at + count; i++) {
        if (snap_object_of(m, &m->stack[i])) {
            snap_release(m, &m->stack[i], NULL);
        }
    }
}

/* A complete value directly above the MARK of a list becomes its item now, so that long lists need
 * no room on the stack. */
static int settle_top(struct snap_machine *m)
{
    struct snap_mark *mark = m->marks ? &m->mark[m->marks - 1] : NULL;
    const struct snap_object *list, *item;
    struct snap_value *top = &m->stack[m->depth - 1];

    if (!mark || !mark->depth || m->depth != mark->depth + 1) {
        return GD_OK;
    }
    list = snap_object_of(m, top - 1);
    item = snap_object_of(m, top);
    if (!list || !list->is_list || list == item ||
        (item &&
         (item->is_list || item->shape < SNAP_DICT_BLOCK || item->shape > SNAP_DICT_HISTORY))) {
        return GD_OK;
    }
    mark->eager = true;
    m->depth--;
    return snap_list_add(m, top - 1, top);
}

/* ---- opcodes --------------------------------------------------------------------------------- */

static int stop_machine(const struct snap_machine *m)
{
    const struct snap_object *root = m->depth == 1 ? snap_object_of(m, &m->stack[0]) : NULL;
    struct gd_snapshot *snapshot = m->snapshot;
    uint64_t listed = m->listed;

    if (m->marks || m->depth != 1) {
        return snap_fail(m, "the pickle ends with %s",
                         m->depth ? "more than its result on the stack" : "no result");
    }
    if (root && root->is_list && (root->shape == SNAP_LIST_SEGMENTS || root->shape == SNAP_EMPTY)) {
        listed = root->count;
        snapshot->has_segments = true;
    } else if (!root || root->shape != SNAP_DICT_ROOT) {
        return snap_fail(m, "not a memory snapshot: the pickle is %s without \"segments\"",
                         snap_kind_name(m, &m->stack[0]));
    }
    if (!snapshot->has_segments) {
        return snap_fail(m, "the snapshot has no \"segments\"");
    }
    if (listed != snapshot->range_count) {
        return snap_fail(m, "%u segments, of which %llu are in the snapshot's list",
                         snapshot->range_count, (unsigned long long)listed);
    }
    return GD_OK;
}

/* Nothing that needs code is part of a snapshot. */
static int refuse_opcode(const struct snap_machine *m, const struct pickle_token *token)
{
    const struct snap_text *text = m->snapshot->stacks.text;
    const struct snap_value *top = m->stack + m->depth;
    char name[200] = "";

    if (token->op == PICKLE_GLOBAL || token->opcode == 'i') {
        snprintf(name, sizeof(name), " of %.*s.%.*s", token->len < 80 ? (int)token->len : 80,
                 token->text, token->name_len < 80 ? (int)token->name_len : 80, token->name);
    } else if (token->op == PICKLE_STACK_GLOBAL && m->depth >= 2 && top[-1].kind == SNAP_IS_TEXT &&
               top[-2].kind == SNAP_IS_TEXT) {
        snprintf(name, sizeof(name), " of %.80s.%.80s", text[top[-2].id].text,
                 text[top[-1].id].text);
    }
    return snap_fail(m, "%s%s: refused, a memory snapshot needs no code; nothing was run",
                     pickle_opcode_name(token->opcode), name);
}

static int push_text(struct snap_machine *m, const struct pickle_token *token)
{
    struct snap_value value = {.kind = SNAP_IS_TEXT};
    struct gd_err why;
    int rc;

    if (token->how != GD_PICKLE_TEXT) {
        value.kind = token->how == GD_PICKLE_BIG ? SNAP_IS_BIG : SNAP_IS_BYTES;
        return push_value(m, value);
    }
    rc = snap_intern_text(&m->snapshot->stacks, token->text, token->len, &value.id, &why);
    return rc != GD_OK ? pickle_fail(&m->input, m->err, rc, "%s", why.text) : push_value(m, value);
}

static int push_empty(struct snap_machine *m, unsigned kind)
{
    struct snap_value value = {.kind = SNAP_IS_OTHER};

    if (kind == GD_PICKLE_LIST || kind == GD_PICKLE_DICT) {
        int rc = new_object(m, kind == GD_PICKLE_LIST, &value);

        if (rc != GD_OK) {
            return rc;
        }
    }
    return push_value(m, value);
}

static int add_items(struct snap_machine *m, unsigned kind, struct snap_value *target, uint32_t at,
                     uint32_t count)
{
    int rc = GD_OK;

    if (kind == GD_PICKLE_DICT) {
        rc = count % 2 ? snap_fail(m, "a key without a value")
                       : snap_dict_add(m, target, m->stack + at, count / 2);
        m->complete = true;
        return rc;
    }
    if (kind == GD_PICKLE_SET) {
        drop_values(m, at, count);
        return GD_OK;
    }
    if (!count && !snap_object_of(m, target)) {
        return snap_fail(m, "the target of appended items is %s", snap_kind_name(m, target));
    }
    for (uint32_t i = 0; rc == GD_OK && i < count; i++) {
        rc = snap_list_add(m, target, &m->stack[at + i]);
    }
    return rc;
}

static int put_many(struct snap_machine *m, unsigned kind)
{
    uint32_t at, count;
    int rc = take_marked(m, kind == GD_PICKLE_LIST, &at, &count);

    rc = rc != GD_OK ? rc : need_values(m, 1);
    return rc != GD_OK ? rc : add_items(m, kind, &m->stack[m->depth - 1], at, count);
}

static int put_one(struct snap_machine *m, unsigned kind)
{
    uint32_t count = kind == GD_PICKLE_DICT ? 2 : 1;
    int rc = need_values(m, count + 1);

    if (rc != GD_OK) {
        return rc;
    }
    m->depth -= count;
    return add_items(m, kind, &m->stack[m->depth - 1], m->depth, count);
}

/* All values above the MARK, as a tuple or set, or as a list or dict of protocol 0. */
static int collect_values(struct snap_machine *m, unsigned kind)
{
    if (kind == GD_PICKLE_LIST || kind == GD_PICKLE_DICT) {
        return snap_fail(m, "a pickle of protocol 0: write the snapshot with protocol 2 or later");
    }
    uint32_t at, count;
    int rc = take_marked(m, false, &at, &count);

    if (rc != GD_OK) {
        return rc;
    }
    drop_values(m, at, count);
    return push_value(m, (struct snap_value){.kind = SNAP_IS_OTHER});
}

static int make_tuple(struct snap_machine *m, uint32_t count)
{
    int rc = need_values(m, count);

    if (rc != GD_OK) {
        return rc;
    }
    m->depth -= count;
    drop_values(m, m->depth, count);
    return push_value(m, (struct snap_value){.kind = SNAP_IS_OTHER});
}

static int pop_value(struct snap_machine *m)
{
    uint32_t at, count;

    if (m->marks && m->depth == stack_bottom(m)) {
        return take_marked(m, false, &at, &count);
    }
    m->depth -= m->depth ? 1 : 0;
    return GD_OK;
}

static int pop_mark(struct snap_machine *m)
{
    uint32_t at, count;

    return take_marked(m, false, &at, &count);
}

/* ---- the memo -------------------------------------------------------------------------------- */

#define HOLE ((uint64_t)SNAP_IS_HOLE << 60)

static int grow_memo(struct snap_machine *m, uint64_t key)
{
    uint64_t *memo;

    if (key >= MAX_MEMO) {
        return pickle_fail(&m->input, m->err, GD_ELIMIT, "more than %llu memo entries",
                           (unsigned long long)MAX_MEMO);
    }
    if (key > m->memo_count + MEMO_GAP) {
        return snap_fail(m, "memo entry %llu after entry %llu", (unsigned long long)key,
                         (unsigned long long)m->memo_count);
    }
    memo = gd_grow_to(m->memo, (size_t)key + 1, &m->memo_cap, sizeof(*m->memo));
    if (!memo) {
        return gd_fail_nomem(m->err);
    }
    m->memo = memo;
    while (m->memo_count <= key) {
        memo[m->memo_count++] = HOLE;
    }
    return GD_OK;
}

static int put_memo(struct snap_machine *m, uint64_t key)
{
    const struct snap_value *value;
    struct snap_object *object;
    int rc = need_values(m, 1);

    rc = rc != GD_OK || key < m->memo_count ? rc : grow_memo(m, key);
    if (rc != GD_OK) {
        return rc;
    }
    value = &m->stack[m->depth - 1];
    if (value->kind == SNAP_IS_INT || value->kind == SNAP_IS_FLOAT) {
        m->memo[key] = HOLE; /* no pickler refers to numbers */
        return GD_OK;
    }
    object = snap_object_of(m, value);
    if (object) {
        object->memo = key;
    }
    m->memo[key] =
        value->kind == SNAP_IS_OBJECT ? pack_value(value) : (uint64_t)value->kind << 60 | value->id;
    return GD_OK;
}

/* Pushes a value that is somewhere else, too. */
static int push_again(struct snap_machine *m, struct snap_value value)
{
    struct snap_object *object = snap_object_of(m, &value);

    if (object) {
        object->shared = true;
    }
    return push_value(m, value);
}

static int get_memo(struct snap_machine *m, uint64_t key)
{
    uint64_t packed = key < m->memo_count ? m->memo[key] : HOLE;
    struct snap_value value = {.kind = (uint8_t)(packed >> 60), .id = (uint32_t)packed};

    if (value.kind == SNAP_IS_HOLE) {
        return snap_fail(m, "memo entry %llu does not exist", (unsigned long long)key);
    }
    if (value.kind == SNAP_IS_OBJECT) {
        value.id = (uint32_t)(packed >> 32) & 0x0fffffff;
        value.integer = (uint32_t)packed;
    }
    m->complete = value.kind == SNAP_IS_FRAME;
    return push_again(m, value);
}

/* ---- running --------------------------------------------------------------------------------- */

/* Python's pickler numbers a container before its items are written, PyTorch's own after that. */
static int run_token(struct snap_machine *m, const struct pickle_token *token)
{
    if (m->complete && token->op != PICKLE_MEMO_PUT && token->op != PICKLE_MEMOIZE) {
        int rc = settle_top(m);

        m->complete = false;
        if (rc != GD_OK) {
            return rc;
        }
    }
    m->top = m->depth;
    switch (token->op) {
    case PICKLE_NOTHING: return GD_OK;
    case PICKLE_MARK: return push_mark(m);
    case PICKLE_STRING: return push_text(m, token);
    case PICKLE_INT:
        return push_value(m, (struct snap_value){.kind = SNAP_IS_INT, .integer = token->integer});
    case PICKLE_MEMO_GET: return get_memo(m, token->key);
    case PICKLE_MEMO_PUT: return put_memo(m, token->key);
    case PICKLE_MEMOIZE: return put_memo(m, m->memo_count);
    case PICKLE_EMPTY: return push_empty(m, token->how);
    case PICKLE_PUT_MANY: return put_many(m, token->how);
    case PICKLE_PUT_ONE: return put_one(m, token->how);
    case PICKLE_NONE: return push_value(m, (struct snap_value){.kind = SNAP_IS_NONE});
    case PICKLE_BOOL:
        return push_value(m, (struct snap_value){.kind = SNAP_IS_BOOL, .id = token->how});
    case PICKLE_FLOAT: return push_value(m, (struct snap_value){.kind = SNAP_IS_FLOAT});
    case PICKLE_TUPLE: return make_tuple(m, token->how);
    case PICKLE_COLLECT: return collect_values(m, token->how);
    case PICKLE_POP: return pop_value(m);
    case PICKLE_POP_MARK: return pop_mark(m);
    case PICKLE_DUP:
        return need_values(m, 1) != GD_OK ? m->err->code : push_again(m, m->stack[m->depth - 1]);
    case PICKLE_LINE:
        return snap_fail(m, "a pickle of protocol 0: write the snapshot with protocol 2 or later");
    default: return refuse_opcode(m, token);
    }
}

static int run_machine(struct snap_machine *m, bool (*go_on)(void *ctx, uint64_t done), void *ctx)
{
    struct pickle_token token = {.op = PICKLE_NOTHING};
    uint64_t next = 0;
    int rc = GD_OK;

    while (rc == GD_OK && token.op != PICKLE_STOP) {
        if (m->input.offset >= next) {
            next = m->input.offset + STRIDE;
            if (go_on && !go_on(ctx, m->input.offset)) {
                return gd_fail(m->err, GD_EINTR, "interrupted after %llu bytes of %.300s",
                               (unsigned long long)m->input.offset, m->input.what);
            }
        }
        rc = pickle_next(&m->input, &token, m->err);
        if (rc == GD_OK) {
            rc = token.op == PICKLE_STOP ? stop_machine(m) : run_token(m, &token);
        }
    }
    return rc != GD_OK ? rc : snap_check_ranges(m);
}

static void end_machine(struct snap_machine *m)
{
    for (uint32_t i = 0; i < m->object_count; i++) {
        if (m->object[i].used && owns_items(&m->object[i])) {
            free(m->object[i].item);
        }
    }
    free(m->stack);
    free(m->mark);
    free(m->memo);
    free(m->object);
    free(m->spare);
    free(m->input.buffer);
}

/* Room for one value, so that there always is a top. */
static int start_machine(struct snap_machine *m)
{
    return gd_grow_list(&m->stack, 0, &m->stack_cap, sizeof(*m->stack))
               ? snap_stacks_init(&m->snapshot->stacks, m->err)
               : gd_fail_nomem(m->err);
}

/* Where the pickle begins: in a file of torch.save it is the first member, data.pkl, uncompressed.
 */
static size_t find_pickle(const unsigned char *start, size_t size)
{
    static const char name[] = "/data.pkl";
    size_t len, at;

    if (size < ZIP_HEADER || memcmp(start, "PK\3\4", 4) != 0 || start[8] || start[9]) {
        return 0;
    }
    len = (size_t)gd_little_endian(start + 26, 2);
    at = ZIP_HEADER + len + (size_t)gd_little_endian(start + 28, 2);
    return at < size && len >= strlen(name) &&
                   memcmp(start + ZIP_HEADER + len - strlen(name), name, strlen(name)) == 0
               ? at
               : 0;
}

static int open_input(struct gd_disk *disk, struct pickle_input *ret, struct gd_err *err)
{
    static const unsigned char nothing;
    unsigned char start[GD_ARCHIVE_START];
    uint64_t left = gd_disk_size(disk);
    size_t size = left < sizeof(start) ? (size_t)left : sizeof(start), at;
    int rc = gd_disk_read(disk, 0, start, size, err);

    at = rc != GD_OK ? 0 : find_pickle(start, size);
    *ret = (struct pickle_input){.at = &nothing,
                                 .end = &nothing,
                                 .offset = at,
                                 .left = left - at,
                                 .disk = disk,
                                 .what = gd_disk_path(disk)};
    return rc;
}

int gd_snapshot_read(struct gd_disk *disk, bool (*go_on)(void *ctx, uint64_t done), void *ctx,
                     struct gd_snapshot **ret, struct gd_err *err)
{
    struct gd_err own = {.code = GD_OK};
    struct snap_machine machine = {.err = err ? err : &own};
    int rc = open_input(disk, &machine.input, machine.err);

    if (rc != GD_OK) {
        return rc;
    }
    machine.snapshot = calloc(1, sizeof(*machine.snapshot));
    if (!machine.snapshot) {
        return gd_fail_nomem(err);
    }
    rc = start_machine(&machine);
    rc = rc != GD_OK ? rc : run_machine(&machine, go_on, ctx);
    end_machine(&machine);
    if (rc != GD_OK) {
        gd_snapshot_free(machine.snapshot);
        return rc;
    }
    *ret = machine.snapshot;
    return GD_OK;
}

void gd_snapshot_free(struct gd_snapshot *snapshot)
{
    if (!snapshot) {
        return;
    }
    for (uint32_t i = 0; i < snapshot->trace_count; i++) {
        snap_trace_deinit(&snapshot->trace[i]);
    }
    snap_stacks_deinit(&snapshot->stacks);
    free(snapshot->trace);
    free(snapshot->device);
    free(snapshot->block);
    free(snapshot->range);
    free(snapshot);
}

/* ---- detection ------------------------------------------------------------------------------- */

/* The next text in the pickle that is a key or value; NULL: none. */
static const char *next_text(struct pickle_input *input, uint32_t *len, unsigned *opened)
{
    struct pickle_token token;

    while (pickle_next(input, &token, NULL) == GD_OK) {
        *opened += token.op == PICKLE_EMPTY ? 1 : 0;
        if (token.op == PICKLE_STRING && token.how == GD_PICKLE_TEXT) {
            *len = token.len;
            return token.text;
        }
        if (token.op != PICKLE_NOTHING && token.op != PICKLE_MEMOIZE &&
            token.op != PICKLE_MEMO_PUT && token.op != PICKLE_EMPTY && token.op != PICKLE_MARK) {
            break;
        }
    }
    return NULL;
}

static bool is_one_of(const char *text, uint32_t len, const char *const *names, size_t count)
{
    for (size_t i = 0; text && i < count; i++) {
        if (strlen(names[i]) == len && memcmp(names[i], text, len) == 0) {
            return true;
        }
    }
    return false;
}

bool gd_snapshot_is(const unsigned char *start, size_t size)
{
    static const char *const of_whole[] = {"segments", "device_traces"};
    static const char *const of_part[] = {
        "device",       "address",       "total_size", "stream",       "blocks",
        "segment_type", "frames",        "action",     "addr",         "allocated_size",
        "active_size",  "device_traces", "segments",   "is_expandable"};
    size_t at = find_pickle(start, size);
    unsigned opened = 0, first;
    const char *text;
    uint32_t len;

    start += at;
    size -= at;
    struct pickle_input input = {.at = start + 2, .end = start + size, .what = ""};
    if (size < 4 || start[0] != 0x80 || start[1] < 2 || start[1] > 5) {
        return false;
    }
    if (size > 11 && start[2] == 0x95) { /* a FRAME, which is longer than the start */
        input.at += 9;
    }
    text = next_text(&input, &len, &opened);
    first = opened;
    if (first == 1 && is_one_of(text, len, of_whole, 2)) { /* {"segments": [{"device": ... */
        text = next_text(&input, &len, &opened);
        return opened > first && is_one_of(text, len, of_part, sizeof(of_part) / sizeof(*of_part));
    }
    return first == 2 && is_one_of(text, len, of_part, 6); /* [{"device": ... */
}
