// SPDX-License-Identifier: GPL-3.0-or-later
#include "dump/cann/ge_graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "dump/cann/cann_types.h"
#include "dump/cann/text_proto.h"

#define MAX_ATTR   400 /* bytes kept of an attribute's value */
#define MAX_WORDS  16384
#define MIN_MEMORY ((uint64_t)16 << 20)
#define MAX_MEMORY ((uint64_t)4 << 30)
#define GROWTH     48 /* bytes of memory allowed per byte of the file */

struct load {
    struct gd_text *text;
    struct gd_arena *arena;
    struct gd_buf value; /* of the attribute being read */
    struct gd_err *err;
};

/* The interpreted parts of an attribute; its text is in load->value. */
struct attr {
    const char *key;
    bool truth;
    int64_t number;
    const char **word; /* a string or a list of strings */
    uint32_t word_count;
    bool is_list;
    uint32_t items;
};

static int no_room(struct load *load)
{
    return gd_fail(load->err, GD_ELIMIT, "the graph would take too much memory for its size");
}

static int copy_text(struct load *load, const struct gd_text_field *field, const char **ret)
{
    *ret = gd_arena_strndup(load->arena, field->value, field->len);
    return *ret ? GD_OK : no_room(load);
}

/* Appends an item to a list in the arena, whose room doubles at each power of two. `list`: the
 * address of its pointer. NULL: out of memory, with the error set. */
static void *add_item(struct load *load, void *list, uint32_t *count, size_t size)
{
    void *items, *grown;

    memcpy(&items, list, sizeof(items));
    if ((*count & (*count - 1)) == 0) {
        grown = gd_arena_alloc(load->arena, (*count ? (size_t)*count * 2 : 1) * size);
        if (!grown) {
            no_room(load);
            return NULL;
        }
        if (*count > 0) {
            memcpy(grown, items, *count * size);
        }
        memcpy(list, &grown, sizeof(grown));
        items = grown;
    }
    return (char *)items + (*count)++ * size;
}

static int add_word(struct load *load, const char ***list, uint32_t *count,
                    const struct gd_text_field *field)
{
    const char **word = add_item(load, (void *)list, count, sizeof(*word));

    return word ? copy_text(load, field, word) : GD_ELIMIT;
}

static bool is_named(const struct gd_text_field *field, const char *name)
{
    return strcmp(field->name, name) == 0;
}

/* Reads the next field; false at the end of the message, or with *rc on an error. */
static bool next_field(struct load *load, struct gd_text_field *field, int *rc)
{
    if (*rc == GD_OK) {
        *rc = gd_text_next(load->text, field, load->err);
    }
    return *rc == GD_OK && field->kind != GD_TEXT_END;
}

/* Skips an unknown field. */
static int skip_field(struct load *load, const struct gd_text_field *field)
{
    return field->kind == GD_TEXT_BEGIN ? gd_text_skip(load->text, load->err) : GD_OK;
}

/* ---- attributes ------------------------------------------------------------------------------ */

static int take_scalar(struct load *load, const struct gd_text_field *field, struct attr *attr)
{
    const char *text = field->value, *type;
    int rc = GD_OK;

    if (is_named(field, "dt")) {
        type = gd_cann_type_name(gd_cann_type_of_runtime((int32_t)strtol(text, NULL, 10)));
        text = type ? type : text;
    } else if (is_named(field, "s")) {
        rc = attr->word_count < MAX_WORDS ? add_word(load, &attr->word, &attr->word_count, field)
                                          : GD_OK;
    } else if (is_named(field, "b")) {
        attr->truth = strcmp(text, "true") == 0;
    } else if (is_named(field, "i")) {
        attr->number = strtoll(text, NULL, 10);
    } else if (!is_named(field, "f")) {
        return GD_OK; /* a list's type, or not a scalar */
    }
    if (load->value.len < MAX_ATTR) {
        gd_buf_printf(&load->value, "%s%.*s", attr->items ? ", " : "",
                      (int)(MAX_ATTR - load->value.len), text);
    }
    attr->items++;
    return rc;
}

static int read_list(struct load *load, struct attr *attr)
{
    struct gd_text_field field;
    int rc = GD_OK;

    attr->is_list = true;
    while (next_field(load, &field, &rc)) {
        rc = field.kind == GD_TEXT_BEGIN ? skip_field(load, &field)
                                         : take_scalar(load, &field, attr);
    }
    return rc;
}

static int read_value(struct load *load, struct attr *attr)
{
    struct gd_text_field field;
    int rc = GD_OK;

    while (next_field(load, &field, &rc)) {
        if (field.kind == GD_TEXT_BEGIN && is_named(&field, "list")) {
            rc = read_list(load, attr);
        } else {
            rc = field.kind == GD_TEXT_BEGIN ? skip_field(load, &field)
                                             : take_scalar(load, &field, attr);
        }
    }
    return rc;
}

static int read_attr(struct load *load, struct attr *attr)
{
    struct gd_text_field field;
    int rc = GD_OK;

    *attr = (struct attr){.key = ""};
    gd_buf_clear(&load->value);
    while (next_field(load, &field, &rc)) {
        if (field.kind == GD_TEXT_BEGIN && is_named(&field, "value")) {
            rc = read_value(load, attr);
        } else if (field.kind == GD_TEXT_STRING && is_named(&field, "key")) {
            rc = copy_text(load, &field, &attr->key);
        } else {
            rc = skip_field(load, &field);
        }
    }
    return rc;
}

/* ---- tensors --------------------------------------------------------------------------------- */

static int32_t format_of(const char *name)
{
    return name[0] ? gd_cann_format_from_name(name) : -1;
}

static int read_shape(struct load *load, struct gd_ge_tensor *tensor)
{
    struct gd_shape *shape = &tensor->shape;
    struct gd_text_field field;
    bool fits = true;
    int rc = GD_OK;

    while (next_field(load, &field, &rc)) {
        if (field.kind == GD_TEXT_BEGIN) {
            rc = skip_field(load, &field);
        } else if (is_named(&field, "dim") && shape->rank < GD_MAX_RANK) {
            int64_t size = strtoll(field.value, NULL, 10);

            shape->dim[shape->rank++] = size < 0 ? -1 : size;
        } else if (is_named(&field, "dim")) {
            fits = false;
        }
    }
    tensor->has_shape = fits;
    shape->rank = fits ? shape->rank : 0;
    return rc;
}

static int take_tensor_attr(struct load *load, struct gd_ge_tensor *tensor)
{
    struct attr attr;
    int rc = read_attr(load, &attr);
    const char *word = rc == GD_OK && attr.word_count > 0 ? attr.word[0] : "";

    if (rc != GD_OK) {
        return rc;
    }
    if (strcmp(attr.key, "_datadump_origin_name") == 0 && word[0] != '\0') {
        tensor->origin_name = word;
    } else if (strcmp(attr.key, "_datadump_origin_output_index") == 0) {
        tensor->origin_index = attr.number >= 0 && attr.number < 65536 ? (uint32_t)attr.number : 0;
    } else if (strcmp(attr.key, "_datadump_origin_format") == 0 ||
               (strcmp(attr.key, "origin_format") == 0 && tensor->origin_format < 0)) {
        tensor->origin_format = format_of(word);
    }
    return GD_OK;
}

static int read_tensor(struct load *load, struct gd_ge_tensor **list, uint32_t *count)
{
    struct gd_ge_tensor *tensor = add_item(load, (void *)list, count, sizeof(*tensor));
    struct gd_text_field field;
    int rc = GD_OK;

    if (!tensor) {
        return GD_ELIMIT;
    }
    *tensor = (struct gd_ge_tensor){.layout = -1, .origin_format = -1};
    while (next_field(load, &field, &rc)) {
        if (field.kind == GD_TEXT_BEGIN && is_named(&field, "shape")) {
            rc = read_shape(load, tensor);
        } else if (field.kind == GD_TEXT_BEGIN && is_named(&field, "attr")) {
            rc = take_tensor_attr(load, tensor);
        } else if (field.kind == GD_TEXT_BEGIN) {
            rc = skip_field(load, &field);
        } else if (is_named(&field, "dtype")) {
            int32_t type = gd_cann_type_from_name(field.value);

            tensor->data_type = type < 0 ? 0 : type;
        } else if (is_named(&field, "layout")) {
            tensor->layout = format_of(field.value);
        }
    }
    return rc;
}

/* ---- operators ------------------------------------------------------------------------------- */

static int take_op_attr(struct load *load, struct gd_ge_op *op)
{
    struct gd_attr *made;
    struct attr attr;
    char *text;
    int rc = read_attr(load, &attr);

    if (rc != GD_OK) {
        return rc;
    }
    if (strcmp(attr.key, "_no_task") == 0) {
        op->no_task = attr.truth;
    } else if (strcmp(attr.key, "_datadump_original_op_names") == 0) {
        op->original = attr.word;
        op->original_count = attr.word_count;
    }
    if (attr.items == 0) {
        return GD_OK;
    }
    made = add_item(load, (void *)&op->attr, &op->attr_count, sizeof(*made));
    if (!made) {
        return GD_ELIMIT;
    }
    made->name = attr.key;
    text = gd_arena_alloc(load->arena, load->value.len + 3);
    if (!text) {
        return no_room(load);
    }
    snprintf(text, load->value.len + 3, "%s%s%s", attr.is_list ? "[" : "",
             gd_buf_text(&load->value), attr.is_list ? "]" : "");
    made->value = text;
    return GD_OK;
}

static int take_op_value(struct load *load, const struct gd_text_field *field, struct gd_ge_op *op)
{
    if (is_named(field, "name")) {
        return copy_text(load, field, &op->name);
    }
    if (is_named(field, "type")) {
        return copy_text(load, field, &op->type);
    }
    if (is_named(field, "id")) {
        op->id = strtoll(field->value, NULL, 10);
    } else if (is_named(field, "input")) {
        return add_word(load, &op->input, &op->input_count, field);
    } else if (is_named(field, "subgraph_name")) {
        return add_word(load, &op->subgraph, &op->subgraph_count, field);
    }
    return GD_OK;
}

static int read_op(struct load *load, struct gd_ge_graph *graph)
{
    struct gd_ge_op *op = add_item(load, (void *)&graph->op, &graph->op_count, sizeof(*op));
    struct gd_text_field field;
    int rc = GD_OK;

    if (!op) {
        return GD_ELIMIT;
    }
    *op = (struct gd_ge_op){.name = "", .type = ""};
    while (next_field(load, &field, &rc)) {
        if (field.kind != GD_TEXT_BEGIN) {
            rc = take_op_value(load, &field, op);
        } else if (is_named(&field, "attr")) {
            rc = take_op_attr(load, op);
        } else if (is_named(&field, "input_desc")) {
            rc = read_tensor(load, &op->in, &op->in_count);
        } else if (is_named(&field, "output_desc")) {
            rc = read_tensor(load, &op->out, &op->out_count);
        } else {
            rc = skip_field(load, &field);
        }
    }
    graph->has_iterator = graph->has_iterator || strncmp(op->type, "Iterator", 8) == 0;
    return rc;
}

/* ---- graphs ---------------------------------------------------------------------------------- */

static int read_graph(struct load *load, struct gd_ge_model *model)
{
    struct gd_ge_graph *graph =
        add_item(load, (void *)&model->graph, &model->graph_count, sizeof(*graph));
    struct gd_text_field field;
    int rc = GD_OK;

    if (!graph) {
        return GD_ELIMIT;
    }
    *graph = (struct gd_ge_graph){.name = ""};
    while (next_field(load, &field, &rc)) {
        if (field.kind == GD_TEXT_BEGIN && is_named(&field, "op")) {
            rc = read_op(load, graph);
        } else if (field.kind == GD_TEXT_STRING && is_named(&field, "name")) {
            rc = copy_text(load, &field, &graph->name);
        } else {
            rc = skip_field(load, &field);
        }
    }
    return rc;
}

static int read_model(struct load *load, const char *path, struct gd_ge_model *model)
{
    struct gd_text_field field;
    int rc = GD_OK;

    while (next_field(load, &field, &rc)) {
        rc = field.kind == GD_TEXT_BEGIN && is_named(&field, "graph") ? read_graph(load, model)
                                                                      : skip_field(load, &field);
    }
    if (rc == GD_OK && model->graph_count == 0) {
        rc = gd_fail(load->err, GD_EPROTO, "%.300s contains no graph", path);
    }
    return rc;
}

int gd_ge_read(struct gd_disk *disk, struct gd_ge_model **ret, struct gd_err *err)
{
    struct gd_ge_model *model = calloc(1, sizeof(*model));
    uint64_t size = gd_disk_size(disk), room = MAX_MEMORY;
    struct load load = {.value = GD_BUF_INIT((size_t)64 << 10), .err = err};
    int rc = model ? gd_text_open(disk, &load.text, err) : gd_fail_nomem(err);

    if (rc == GD_OK) {
        if (size < (MAX_MEMORY - MIN_MEMORY) / GROWTH) {
            room = MIN_MEMORY + size * GROWTH;
        }
        gd_arena_init(&model->arena, (size_t)room);
        load.arena = &model->arena;
        rc = read_model(&load, gd_disk_path(disk), model);
    }
    gd_buf_deinit(&load.value);
    gd_text_close(load.text);
    if (rc != GD_OK) {
        gd_ge_free(model);
        return rc;
    }
    *ret = model;
    return GD_OK;
}

int gd_ge_read_name(struct gd_disk *disk, char *out, size_t size, struct gd_err *err)
{
    struct gd_text_field field;
    struct gd_text *text;
    bool found = false;
    int rc = gd_text_open(disk, &text, err);

    if (rc != GD_OK) {
        return rc;
    }
    do {
        rc = gd_text_next(text, &field, err);
        if (rc == GD_OK && field.kind == GD_TEXT_BEGIN &&
            !(field.depth == 0 && is_named(&field, "graph"))) {
            rc = gd_text_skip(text, err);
        }
        found = rc == GD_OK && field.kind == GD_TEXT_STRING && field.depth == 1 &&
                is_named(&field, "name");
    } while (rc == GD_OK && !found && field.kind != GD_TEXT_END);
    if (found) {
        snprintf(out, size, "%s", field.value);
    } else if (rc == GD_OK) {
        rc = gd_fail(err, GD_EPROTO, "%.300s contains no graph with a name", gd_disk_path(disk));
    }
    gd_text_close(text);
    return rc;
}

void gd_ge_free(struct gd_ge_model *model)
{
    if (model) {
        gd_arena_deinit(&model->arena);
        free(model);
    }
}

bool gd_ge_input(const char *text, size_t *name_len, int64_t *slot)
{
    const char *colon = strrchr(text, ':');
    char *end;

    if (!colon || colon == text) {
        return false;
    }
    *slot = strtoll(colon + 1, &end, 10);
    *name_len = (size_t)(colon - text);
    return end != colon + 1 && *end == '\0' && *slot >= -1 && *slot < 65536;
}
