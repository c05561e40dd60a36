// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Names for the values in a pickle: a walk over its containers with an explicit stack. Keys are
 * joined with dots, indices are in brackets; of a module, its parameters, buffers and submodules
 * are listed, named as in its state dict.
 *
 * A container that occurs in several places has several names; one within itself is listed only at
 * the first place.
 */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/grow.h"
#include "dump/torch/torch_impl.h"

#define MAX_DEPTH  256
#define MAX_NAME   4096
#define MAX_VISITS ((uint64_t)16000000)
#define VALUE_MAX  200 /* characters of a value's text */

/* What the values of a level belong to. */
enum { IN_OPTIMIZER = 1 << 0, IN_STATE_DICT = 1 << 1, IS_BUFFERS = 1 << 2, IN_MODULE = 1 << 3 };

struct level {
    struct gd_pickle_value *container; /* LIST, TUPLE, SET or DICT, not empty */
    uint32_t next;
    uint32_t name_len; /* length of the name of its container */
    unsigned flags;
};

struct seen {            /* a tensor already listed */
    const int64_t *view; /* see write_view */
    size_t entry;
};

#define VIEW_MAX (5 + 2 * GD_MAX_RANK)

struct walk {
    struct torch_file *file;
    struct gd_err *err;
    struct level level[MAX_DEPTH];
    int depth;
    struct gd_buf name, text;
    uint64_t visits;
    bool too_deep, too_long; /* reported already */

    struct seen *seen;
    uint32_t seen_count;
    size_t seen_cap;
    struct gd_hash_index views;
    struct gd_arena arena; /* for the views seen */
};

static void set_name_len(struct walk *walk, size_t len)
{
    walk->name.len = len;
    walk->name.failed = false;
    if (walk->name.data) {
        walk->name.data[len] = '\0';
    }
}

/* ---- entries --------------------------------------------------------------------------------- */

static int add_entry(struct walk *walk, const struct gd_archive_entry *entry)
{
    struct gd_archive_entry named = *entry;

    named.name = gd_buf_text(&walk->name);
    return gd_archive_add(walk->file->archive, &named, walk->err);
}

static bool ends_with(const struct gd_buf *name, const char *end)
{
    size_t len = strlen(end);

    return name->len >= len && memcmp(name->data + name->len - len, end, len) == 0;
}

static bool is_buffer_name(const struct gd_buf *name)
{
    return ends_with(name, "running_mean") || ends_with(name, "running_var") ||
           ends_with(name, "num_batches_tracked");
}

static enum gd_entry_kind kind_of(const struct walk *walk, const struct torch_tensor *tensor,
                                  unsigned flags)
{
    if (flags & IN_OPTIMIZER) {
        return GD_ENTRY_OPTIMIZER;
    }
    if (flags & IS_BUFFERS || (flags & IN_STATE_DICT && is_buffer_name(&walk->name))) {
        return GD_ENTRY_BUFFER;
    }
    return tensor->is_parameter || flags & (IN_STATE_DICT | IN_MODULE) ? GD_ENTRY_PARAMETER
                                                                       : GD_ENTRY_TENSOR;
}

/* Writes as numbers which elements of which storage a tensor shows, and how, preceded by their
 * count. */
static void write_view(const struct torch_tensor *tensor, int64_t view[VIEW_MAX])
{
    const struct gd_source_desc *desc = &tensor->view;
    int count = 0;

    view[++count] = (int64_t)(intptr_t)tensor->storage;
    view[++count] = desc->offset;
    view[++count] = (int64_t)desc->stored * 8 + desc->conjugate * 4 + desc->negate * 2;
    view[count] += desc->has_stride;
    for (int i = 0; i < desc->shape.rank; i++) {
        view[++count] = desc->shape.dim[i];
        view[++count] = desc->has_stride ? desc->stride[i] : 0;
    }
    view[0] = count + 1;
}

/* The name of an earlier entry that shows the same elements; NULL: none. */
static const char *find_same(const struct walk *walk, const int64_t *view, uint64_t hash)
{
    uint32_t number;

    for (size_t at = 0; gd_hash_index_next(&walk->views, hash, &at, &number);) {
        const struct seen *seen = &walk->seen[number];

        if (seen->view[0] == view[0] &&
            memcmp(seen->view, view, (size_t)view[0] * sizeof(*view)) == 0) {
            return gd_archive_entry(walk->file->archive, seen->entry)->name;
        }
    }
    return NULL;
}

static int remember_view(struct walk *walk, const int64_t *view, uint64_t hash)
{
    size_t bytes = (size_t)view[0] * sizeof(*view);
    int64_t *copy = gd_arena_alloc(&walk->arena, bytes);

    if (!copy ||
        !gd_grow_list(&walk->seen, walk->seen_count, &walk->seen_cap, sizeof(*walk->seen))) {
        return gd_fail_nomem(walk->err);
    }
    memcpy(copy, view, bytes);
    walk->seen[walk->seen_count] =
        (struct seen){.view = copy, .entry = gd_archive_count(walk->file->archive)};
    return gd_hash_index_add(&walk->views, hash, walk->seen_count++, walk->err);
}

static int add_dense(struct walk *walk, struct torch_tensor *tensor, struct gd_archive_entry *entry)
{
    struct gd_source *source = NULL;
    int64_t view[VIEW_MAX];
    struct gd_err err;
    uint64_t hash;
    int rc;

    tensor->view.note = tensor->note;
    rc = gd_source_create(&tensor->view, &source, &err);
    if (rc == GD_ENOMEM) {
        return gd_fail(walk->err, rc, "%s", err.text);
    }
    entry->problem = rc != GD_OK ? err.text : NULL;
    entry->source = source;
    if (rc == GD_OK && tensor->storage) {
        write_view(tensor, view);
        hash = gd_hash_index_hash(&walk->views, view, (size_t)view[0] * sizeof(view[0]));
        entry->same_as = find_same(walk, view, hash);
        rc = entry->same_as ? GD_OK : remember_view(walk, view, hash);
    } else {
        rc = GD_OK;
    }
    rc = rc != GD_OK ? rc : add_entry(walk, entry);
    gd_source_unref(source);
    return rc;
}

static int go_into(struct walk *walk, struct gd_pickle_value *container, unsigned flags);

/* Adds a tensor's parts and extra attributes under its name. */
static int add_parts(struct walk *walk, const struct torch_tensor *tensor, unsigned flags)
{
    size_t len = walk->name.len;
    int rc = GD_OK;

    for (int i = 0; rc == GD_OK && i < tensor->parts; i++) {
        struct gd_archive_entry entry = {.kind = GD_ENTRY_TENSOR};
        struct torch_tensor part;

        gd_buf_printf(&walk->name, "%s%s", len ? "." : "", tensor->part[i].name);
        if (torch_is_tensor(walk->file, tensor->part[i].value)) {
            torch_describe(walk->file, tensor->part[i].value, &part);
            entry.kind = flags & IN_OPTIMIZER ? GD_ENTRY_OPTIMIZER : GD_ENTRY_TENSOR;
            entry.problem = part.problem[0] ? part.problem : NULL;
            rc = part.view.bytes && !entry.problem ? add_dense(walk, &part, &entry)
                                                   : add_entry(walk, &entry);
            gd_bytes_unref(part.view.bytes);
        } else {
            gd_buf_clear(&walk->text);
            gd_pickle_print(tensor->part[i].value, VALUE_MAX, &walk->text);
            entry.kind = GD_ENTRY_VALUE;
            entry.text = gd_buf_text(&walk->text);
            rc = add_entry(walk, &entry);
        }
        set_name_len(walk, len);
    }
    return rc;
}

static int add_tensor(struct walk *walk, struct gd_pickle_value *value, unsigned flags)
{
    struct gd_archive_entry entry = {.kind = GD_ENTRY_TENSOR};
    struct gd_pickle_value *state;
    struct torch_tensor tensor;
    int rc;

    if (torch_is_tensor(walk->file, value)) {
        torch_describe(walk->file, value, &tensor);
    } else {
        memset(&tensor, 0, sizeof(tensor));
        torch_describe_array(value, &tensor);
    }
    entry.kind = kind_of(walk, &tensor, flags);
    entry.trainable = entry.kind == GD_ENTRY_BUFFER ? GD_TRAINABLE_NO : tensor.trainable;
    if (tensor.problem[0]) {
        entry.problem = tensor.problem;
        rc = add_entry(walk, &entry);
    } else if (tensor.view.bytes) {
        rc = add_dense(walk, &tensor, &entry);
    } else {
        entry.kind = GD_ENTRY_VALUE;
        entry.text = tensor.text;
        rc = add_entry(walk, &entry);
    }
    gd_bytes_unref(tensor.view.bytes);
    rc = rc != GD_OK ? rc : add_parts(walk, &tensor, flags);
    /* the attributes of a tensor subclass: a dict, or (dict, slots) */
    state = tensor.state && tensor.state->kind == GD_PICKLE_TUPLE ? gd_pickle_item(tensor.state, 0)
                                                                  : tensor.state;
    return rc == GD_OK && state && state->kind == GD_PICKLE_DICT
               ? go_into(walk, state, flags & IN_OPTIMIZER)
               : rc;
}

/* Whether the call only stands for its arguments: torch.Size((2, 3)), torch.device('cpu'),
 * complex(1.0, 2.0). */
static bool is_plain_call(const struct gd_pickle_value *value)
{
    return gd_pickle_is_call(value, "torch", "Size") ||
           gd_pickle_is_call(value, "torch", "device") ||
           gd_pickle_is_call(value, "builtins", "complex") ||
           gd_pickle_is_call(value, "__builtin__", "complex");
}

static void print_call(const struct gd_pickle_value *value, struct gd_buf *out)
{
    const struct gd_pickle_global *callee = value->object->callee->global;
    const struct gd_pickle_value *args = value->object->args;

    gd_buf_printf(out, "%s%s(", strcmp(callee->module, "torch") == 0 ? "torch." : "", callee->name);
    for (uint32_t i = 0; i < args->count && out->len < VALUE_MAX; i++) {
        gd_buf_puts(out, i ? ", " : "");
        gd_pickle_print(args->item[i], VALUE_MAX, out);
    }
    gd_buf_putc(out, ')');
}

static int add_text(struct walk *walk, const struct gd_pickle_value *value)
{
    struct gd_archive_entry entry = {.kind = GD_ENTRY_VALUE};

    gd_buf_clear(&walk->text);
    if (is_plain_call(value)) {
        print_call(value, &walk->text);
    } else if (!torch_print_scalar(value, &walk->text)) {
        gd_buf_clear(&walk->text);
        gd_pickle_print(value, VALUE_MAX, &walk->text);
    }
    entry.text = gd_buf_text(&walk->text);
    return add_entry(walk, &entry);
}

/* ---- containers ------------------------------------------------------------------------------ */

static bool is_single(const struct gd_pickle_value *value)
{
    return value->kind <= GD_PICKLE_BYTES || value->kind == GD_PICKLE_GLOBAL;
}

/* A list or tuple of only numbers and strings, which is shown on one line. */
static bool is_flat(struct walk *walk, const struct gd_pickle_value *value)
{
    if (value->kind != GD_PICKLE_LIST && value->kind != GD_PICKLE_TUPLE &&
        value->kind != GD_PICKLE_SET) {
        return false;
    }
    walk->visits += value->count;
    for (uint32_t i = 0; i < value->count; i++) {
        if (!is_single(value->item[i])) {
            return false;
        }
    }
    return true;
}

/* Pushes a container, whose values come next, unless it is within itself. */
static int go_into(struct walk *walk, struct gd_pickle_value *container, unsigned flags)
{
    if (!container || !container->count || container->visited) {
        return GD_OK;
    }
    if (walk->depth == MAX_DEPTH) {
        if (!walk->too_deep) {
            gd_archive_add_note(walk->file->archive, "levels beyond %d are left out: %.200s...",
                                MAX_DEPTH, gd_buf_text(&walk->name));
        }
        walk->too_deep = true;
        return GD_OK;
    }
    container->visited = true;
    walk->level[walk->depth++] = (struct level){
        .container = container, .name_len = (uint32_t)walk->name.len, .flags = flags};
    return GD_OK;
}

/* A dict with parameter names as keys and tensors as values. */
static bool is_state_dict(const struct walk *walk, const struct gd_pickle_value *value,
                          const struct gd_pickle_value *dict)
{
    bool parameters = false;

    if (value->kind == GD_PICKLE_OBJECT && gd_pickle_get(value->object->state, "_metadata")) {
        return true;
    }
    for (uint32_t i = 0; i < dict->count; i++) {
        const struct gd_pickle_value *key = dict->item[(size_t)i * 2];

        if (key->kind != GD_PICKLE_TEXT ||
            !torch_is_tensor(walk->file, dict->item[(size_t)i * 2 + 1])) {
            return false;
        }
        parameters =
            parameters || (key->count >= 6 && memcmp(key->text + key->count - 6, "weight", 6) == 0);
    }
    return parameters;
}

static int visit_dict(struct walk *walk, const struct gd_pickle_value *value,
                      struct gd_pickle_value *dict, unsigned flags)
{
    const struct gd_pickle_value *state =
        value->kind == GD_PICKLE_OBJECT ? gd_pickle_dict(value->object->state) : NULL;

    /* searching counts too: many objects may share one state */
    walk->visits += (uint64_t)dict->count + (state ? state->count : 0);
    if (gd_pickle_get(dict, "param_groups") && gd_pickle_get(dict, "state")) {
        flags |= IN_OPTIMIZER;
    }
    if (!(flags & IN_STATE_DICT) && is_state_dict(walk, value, dict)) {
        flags |= IN_STATE_DICT;
    }
    return go_into(walk, dict, flags);
}

/* What is pushed last is visited first: a module's parameters precede its submodules. */
static int visit_module(struct walk *walk, const struct gd_pickle_value *state)
{
    struct gd_pickle_value *parameters = gd_pickle_get(state, "_parameters");
    struct gd_pickle_value *buffers = gd_pickle_get(state, "_buffers");
    struct gd_pickle_value *modules = gd_pickle_get(state, "_modules");
    struct gd_pickle_value *const part[] = {modules, buffers, parameters};
    static const unsigned flags[] = {IN_MODULE, IN_MODULE | IS_BUFFERS, IN_MODULE};
    int rc = GD_OK;

    for (int i = 0; rc == GD_OK && i < 3; i++) {
        /* not const: an existing dict, or the items of an existing object */
        struct gd_pickle_value *dict =
            part[i] && part[i]->kind == GD_PICKLE_OBJECT ? part[i]->object->dict : part[i];

        if (dict && dict->kind == GD_PICKLE_DICT) {
            rc = go_into(walk, dict, flags[i]);
        }
    }
    return rc;
}

static int visit_object(struct walk *walk, struct gd_pickle_value *value, unsigned flags)
{
    const struct gd_pickle_object *object = value->object;
    struct gd_pickle_value *state = object->state;
    bool ordered = gd_pickle_is_call(value, "collections", "OrderedDict");
    int rc = GD_OK;

    if (state && state->kind == GD_PICKLE_TUPLE && state->count == 2) { /* (dict, slots) */
        state = gd_pickle_item(state, 0);
    }
    if (state && state->kind == GD_PICKLE_DICT) {
        walk->visits += state->count;
        if (gd_pickle_get(state, "_parameters") && gd_pickle_get(state, "_modules")) {
            return visit_module(walk, state);
        }
    }
    if (!object->dict && !object->list && !ordered && !(state && state->kind == GD_PICKLE_DICT)) {
        struct gd_pickle_value *inner = gd_pickle_item(object->args, 0);

        /* A set, deque or the like, made from one container. */
        if (inner && object->args->count == 1 && inner->kind == GD_PICKLE_LIST &&
            !is_flat(walk, inner)) {
            return go_into(walk, inner, flags);
        }
        return add_text(walk, value);
    }
    if (object->list) {
        rc = go_into(walk, object->list, flags);
    }
    if (rc == GD_OK && !ordered && state && state->kind == GD_PICKLE_DICT) {
        rc = visit_dict(walk, value, state, flags);
    }
    return rc == GD_OK && object->dict ? visit_dict(walk, value, object->dict, flags) : rc;
}

static int visit_value(struct walk *walk, struct gd_pickle_value *value, unsigned flags)
{
    if (++walk->visits > MAX_VISITS) {
        return gd_fail(walk->err, GD_ELIMIT,
                       "%.300s: its containers contain each other so often that there are more "
                       "than %llu names",
                       walk->file->path, (unsigned long long)MAX_VISITS);
    }
    if (torch_is_tensor(walk->file, value) || torch_is_array(value)) {
        return add_tensor(walk, value, flags);
    }
    /* A module without bias has None there. */
    if (value->kind == GD_PICKLE_NONE && flags & IN_MODULE) {
        return GD_OK;
    }
    if (is_single(value) || value->kind == GD_PICKLE_PERSISTENT || is_flat(walk, value)) {
        return add_text(walk, value);
    }
    switch ((enum gd_pickle_kind)value->kind) {
    case GD_PICKLE_OBJECT: return visit_object(walk, value, flags);
    case GD_PICKLE_DICT: return visit_dict(walk, value, value, flags);
    default: return go_into(walk, value, flags);
    }
}

/* ---- names ----------------------------------------------------------------------------------- */

static void name_key(struct walk *walk, const struct gd_pickle_value *key, uint32_t index)
{
    if (key->kind == GD_PICKLE_TEXT) {
        gd_buf_puts(&walk->name, walk->name.len ? "." : "");
        /* Names are C strings, so anything after a NUL would be lost: report it. */
        for (uint32_t i = 0; i < key->count; i++) {
            if (key->text[i]) {
                gd_buf_putc(&walk->name, key->text[i]);
            } else {
                gd_buf_puts(&walk->name, "\\0");
            }
        }
    } else if (is_single(key) || is_flat(walk, key)) {
        gd_buf_putc(&walk->name, '[');
        gd_pickle_print(key, VALUE_MAX, &walk->name);
        gd_buf_putc(&walk->name, ']');
    } else {
        gd_buf_printf(&walk->name, "[#%u]", index);
    }
}

/* Names the next value of the top level. */
static struct gd_pickle_value *next_value(struct walk *walk, struct level *level)
{
    const struct gd_pickle_value *container = level->container;
    uint32_t index = level->next++;

    if (container->kind == GD_PICKLE_DICT) {
        name_key(walk, container->item[(size_t)index * 2], index);
        return container->item[(size_t)index * 2 + 1];
    }
    gd_buf_printf(&walk->name, "[%u]", index);
    return container->item[index];
}

static int run_walk(struct walk *walk)
{
    int rc = GD_OK;

    while (rc == GD_OK && walk->depth) {
        struct level *level = &walk->level[walk->depth - 1];
        struct gd_pickle_value *value;

        set_name_len(walk, level->name_len);
        if (level->next == level->container->count) {
            level->container->visited = false;
            walk->depth--;
            continue;
        }
        value = next_value(walk, level);
        if (walk->name.failed) {
            if (!walk->too_long) {
                gd_archive_add_note(walk->file->archive, "names longer than %d bytes are left out",
                                    MAX_NAME);
            }
            walk->too_long = true;
            continue;
        }
        rc = visit_value(walk, value, level->flags);
    }
    return rc;
}

/* ---- entry points ---------------------------------------------------------------------------- */

/* Finds a key: as a whole, or step by step at its dots. */
static struct gd_pickle_value *find_key(struct gd_pickle_value *value, const char *key)
{
    while (value) {
        struct gd_pickle_value *whole = gd_pickle_get(value, key);
        char first[MAX_NAME];
        size_t len = strcspn(key, ".");

        if (whole || !key[len] || len >= sizeof(first)) {
            return whole;
        }
        memcpy(first, key, len);
        first[len] = '\0';
        value = gd_pickle_get(value, first);
        key += len + 1;
    }
    return NULL;
}

static int no_key(const struct torch_file *file, const struct gd_pickle_value *root,
                  const char *key, struct gd_err *err)
{
    GD_CLEANUP(gd_buf_deinit) struct gd_buf keys = GD_BUF_INIT(GD_ERR_TEXT_MAX);
    const struct gd_pickle_value *dict = gd_pickle_dict(root);

    for (uint32_t i = 0; dict && i < dict->count && keys.len < VALUE_MAX; i++) {
        gd_buf_puts(&keys, i ? ", " : "");
        gd_pickle_print(dict->item[(size_t)i * 2], 60, &keys);
    }
    return gd_fail(err, GD_ENOTFOUND, "%.200s: no key %.60s; the keys are: %.150s", file->path, key,
                   keys.len ? gd_buf_text(&keys) : "none");
}

int torch_list(struct torch_file *file, const struct gd_pickle *pickle,
               const struct gd_archive_options *options, struct gd_err *err)
{
    struct gd_pickle_value *root = gd_pickle_root(pickle);
    struct gd_err own;
    struct walk *walk;
    int rc;

    torch_note_globals(file, pickle);
    if (options->key) {
        root = find_key(root, options->key);
        if (!root) {
            return no_key(file, gd_pickle_root(pickle), options->key, err);
        }
    }
    walk = calloc(1, sizeof(*walk));
    if (!walk) {
        return gd_fail_nomem(err);
    }
    walk->file = file;
    walk->err = err ? err : &own;
    gd_buf_init(&walk->name, MAX_NAME);
    gd_buf_init(&walk->text, SIZE_MAX);
    gd_arena_init(&walk->arena, 0);
    rc = visit_value(walk, root, 0);
    rc = rc != GD_OK ? rc : run_walk(walk);
    gd_buf_deinit(&walk->name);
    gd_buf_deinit(&walk->text);
    gd_arena_deinit(&walk->arena);
    gd_hash_index_deinit(&walk->views);
    free(walk->seen);
    free(walk);
    return rc;
}
