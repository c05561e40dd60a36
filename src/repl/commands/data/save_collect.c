// SPDX-License-Identifier: GPL-3.0-or-later
/* `save TENSOR|SELECTOR FILE`: which tensors are saved, and their names in the file. */
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "dump/dump_target.h"
#include "dump/files/tensor_writer.h"
#include "engine/graph/selector.h"
#include "engine/utf8.h"
#include "repl/commands/data/save.h"
#include "repl/values/inspect.h"
#include "repl/values/value.h"

#define MORE_RANK 8 /* dimensions that a tensor may have beyond the declared ones */
#define MAX_SAVED ((size_t)1000000)

/* The key in a checkpoint, "layer1.0.weight", unless another node has that name; with the slot if
 * the node has several. */
static const char *key_of(struct command_call *call, gd_node_id node, uint32_t slot)
{
    struct gd_node_info info;
    if (!gd_graph_node(call->session->graph, node, &info)) {
        return "tensor";
    }
    size_t len = strlen(info.wire_name);
    bool own = gd_catalog_of(call->session) &&
               gd_graph_lookup_wire(call->session->graph, info.wire_name, len) == node;
    const char *name = own ? info.wire_name : info.name;
    return info.output_count == 1
               ? name
               : inspect_printf(call, "%s:%s", name, inspect_slot(call, node, slot));
}

static void learn_shape(struct saving *s, struct saved *item)
{
    struct gd_shape shape = {.rank = 0};
    size_t bytes = 0;
    item->dtype = GD_DT_NONE;
    item->rank = MORE_RANK;
    if (value_declared(s->call, &item->value, &item->dtype, &shape, NULL) == GD_OK) {
        item->rank += shape.rank;
        item->shape = shape;
        gd_shape_bytes(&shape, item->dtype, &bytes, NULL);
    }
    item->bytes = bytes;
}

/* The value is parsed, not fetched. */
static int add_item(struct saving *s, const struct value *value, const char *name,
                    struct gd_err *err)
{
    if (s->count == MAX_SAVED) {
        return gd_fail(err, GD_ELIMIT, "more than %zu tensors", MAX_SAVED);
    }
    struct saved *grown = gd_grow(s->item, s->count, &s->room, sizeof(*grown));
    if (!grown) {
        return gd_fail_nomem(err);
    }
    s->item = grown;
    grown[s->count] = (struct saved){.value = *value, .name = name};
    learn_shape(s, &grown[s->count++]);
    return GD_OK;
}

static int add_slot(struct saving *s, gd_node_id node, uint32_t slot, struct gd_err *err)
{
    const struct value value = {.step = -1,
                                .prev_step = -1,
                                .label = inspect_tensor_name(s->call, node, slot),
                                .arg.ref = {.node = node, .slot = slot}};
    return add_item(s, &value, key_of(s->call, node, slot), err);
}

static int add_selected(struct saving *s, const char *text, struct gd_err *err)
{
    struct gd_selector *selector = NULL;
    gd_node_id *nodes = NULL;
    size_t count = 0;
    int rc = repl_need_session(s->call, err);
    rc = rc != GD_OK ? rc : gd_selector_parse(text, &selector, err);
    rc = rc != GD_OK ? rc
                     : gd_selector_resolve(selector, s->call->session->graph, &nodes, &count, err);
    gd_selector_destroy(selector);
    for (size_t i = 0; rc == GD_OK && i < count; i++) {
        struct gd_output output;
        for (uint32_t slot = 0;
             rc == GD_OK && gd_graph_output(s->call->session->graph, nodes[i], slot, &output);
             slot++) {
            rc = add_slot(s, nodes[i], slot, err);
        }
    }
    free(nodes);
    return rc == GD_OK && s->count == 0
               ? gd_fail(err, GD_ENOTFOUND, "%.200s selects no tensor", text)
               : rc;
}

/* "", "." or "..": parts of a path that must not be in an archive. */
static bool is_path_part(const char *part, size_t len)
{
    return len == 0 || (len == 1 && part[0] == '.') ||
           (len == 2 && part[0] == '.' && part[1] == '.');
}

/* The name as a member of an archive: a relative path without "..", safe to print. */
static const char *member_name(struct command_call *call, const char *name)
{
    struct gd_buf out = GD_BUF_INIT(SIZE_MAX);

    for (const char *part = name;; part++) {
        size_t len = strcspn(part, "/");
        if (is_path_part(part, len)) {
            gd_buf_puts(&out, len == 2 ? "__" : "_");
            part += len;
        }
        for (const char *end = part + strcspn(part, "/"); part < end;) {
            uint32_t code = 0;
            size_t bytes = gd_utf8_decode(part, &code);
            if (bytes == 0 || gd_utf8_is_unsafe(code) || code == '\\') {
                gd_buf_putc(&out, '_');
            } else {
                gd_buf_add(&out, part, bytes);
            }
            part += bytes > 0 ? bytes : 1;
        }
        if (*part == '\0') {
            break;
        }
        gd_buf_putc(&out, '/');
    }
    const char *clean = gd_arena_strdup(call->arena, gd_buf_text(&out));
    clean = out.failed ? NULL : clean;
    gd_buf_deinit(&out);
    return clean;
}

/* Names come from the training process or a file and go into an archive that others unpack. */
int save_clean_names(struct saving *s, struct gd_err *err)
{
    for (size_t i = 0; s->kind == GD_FILE_NPZ && i < s->count; i++) {
        const char *clean = member_name(s->call, s->item[i].name);
        if (!clean) {
            return gd_fail_nomem(err);
        }
        if (strcmp(clean, s->item[i].name) != 0) {
            s->dirty = s->cleaned++ ? s->dirty : s->item[i].name;
            s->clean = s->clean ? s->clean : clean;
            s->item[i].name = clean;
        }
    }
    return GD_OK;
}

static int by_name(const void *a, const void *b)
{
    const struct saved *const *x = a, *const *y = b;
    int order = strcmp((*x)->name, (*y)->name);
    return order ? order : (*x > *y) - (*x < *y);
}

/* Appends numbers to duplicate names: nodes of two graphs, or a node named like another one's
 * slot. */
int save_part_names(struct saving *s, struct gd_err *err)
{
    struct saved **sorted = calloc(s->count + 1, sizeof(struct saved *));
    size_t parted = 1;
    if (!sorted) {
        return gd_fail_nomem(err);
    }
    while (parted > 0) {
        parted = 0;
        for (size_t i = 0; i < s->count; i++) {
            sorted[i] = &s->item[i];
        }
        qsort(sorted, s->count, sizeof(struct saved *), by_name);
        const char *first = "";
        for (size_t i = 1, number = 2; i < s->count; i++) {
            bool same = strcmp(sorted[i]->name, number > 2 ? first : sorted[i - 1]->name) == 0;
            number = same ? number : 2;
            if (same) {
                first = number > 2 ? first : sorted[i - 1]->name;
                sorted[i]->name = inspect_printf(s->call, "%s#%zu", sorted[i]->name, number++);
                /* without memory for the name it would never become unique */
                if (!sorted[i]->name[0]) {
                    free(sorted);
                    return gd_fail_nomem(err);
                }
                parted++;
            }
        }
        s->renamed += parted;
    }
    free(sorted);
    return GD_OK;
}

/* Large elements first, so that all are aligned; otherwise keeps the order. */
int save_by_size(const void *a, const void *b)
{
    const struct saved *x = a, *y = b;
    size_t i = gd_dtype_size(x->dtype), k = gd_dtype_size(y->dtype);
    if (i != k) {
        return i > k ? -1 : 1;
    }
    return x->value.arg.ref.node != y->value.arg.ref.node
               ? (x->value.arg.ref.node < y->value.arg.ref.node ? -1 : 1)
               : (x->value.arg.ref.slot > y->value.arg.ref.slot) -
                     (x->value.arg.ref.slot < y->value.arg.ref.slot);
}

int save_collect(struct saving *s, enum value_which which, struct gd_err *err)
{
    struct command_call *call = s->call;
    struct gd_err why = {.text = ""};
    struct value value;
    const char *text = call->argc > 0 ? call->argv[0] : NULL;
    int rc = call->argc <= 1 ? value_parse(call, text, &value, &why) : GD_ENOTFOUND;
    if (rc == GD_OK) {
        value.which = which;
        const struct gd_tensor_ref *ref = &value.arg.ref;
        const char *name = value.is_history ? "tensor" : key_of(call, ref->node, ref->slot);
        return add_item(s, &value, name, err);
    }
    if (call->argc == 0) {
        return gd_fail(err, rc, "%s", why.text);
    }
    if (call->argc == 1 && s->kind == GD_FILE_NPY) {
        return add_selected(s, call->argv[0], NULL) == GD_OK && s->count > 1
                   ? GD_OK /* too many tensors: reported where they are counted */
                   : gd_fail(err, rc, "%s", why.text);
    }
    if (which != VALUE_CURRENT) {
        return gd_fail(err, GD_EUSAGE, "only the current values of several tensors can be saved");
    }
    return add_selected(s, inspect_join(call, 0, call->argc), err);
}
