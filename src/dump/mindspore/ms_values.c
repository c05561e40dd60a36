// SPDX-License-Identifier: GPL-3.0-or-later
#include "dump/mindspore/ms_values.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "dump/files/npy.h"

#define MAX_LEARNED 4096 /* files that are opened to learn otherwise unknown shapes */

/* ---- the list -------------------------------------------------------------------------------- */

static const void *keep_copy(struct ms_values *values, const void *data, size_t size, bool *ok)
{
    void *copy;

    if (!data) {
        return NULL;
    }
    copy = gd_arena_alloc(&values->arena, size);
    if (copy) {
        memcpy(copy, data, size);
    }
    *ok = *ok && copy;
    return copy;
}

static const char *keep_text(struct ms_values *values, const char *text, bool *ok)
{
    return text ? keep_copy(values, text, strlen(text) + 1, ok) : NULL;
}

int ms_values_add(struct ms_values *values, const struct ms_value *value, struct gd_err *err)
{
    struct ms_value *grown = gd_grow(values->item, values->count, &values->cap, sizeof(*grown));
    struct ms_value kept = *value;
    bool ok = grown != NULL;

    values->item = grown ? grown : values->item;
    kept.shape = keep_copy(values, value->shape, sizeof(*value->shape), &ok);
    kept.stats = keep_copy(values, value->stats, sizeof(*value->stats), &ok);
    kept.digest = keep_text(values, value->digest, &ok);
    kept.note = keep_text(values, value->note, &ok);
    kept.raw = keep_text(values, value->raw, &ok);
    if (!ok) {
        gd_source_unref(value->source);
        return gd_fail_nomem(err);
    }
    values->item[values->count++] = kept;
    return GD_OK;
}

/* Adds to the note the name under which the value was dumped. */
static int note_joined(struct ms_values *values, struct ms_value *value,
                       const struct ms_wanted *wanted, struct gd_err *err)
{
    char note[512];
    bool ok = true;

    snprintf(note, sizeof(note), "%.160s%sdumped as %.300s: the only %.40s in that scope",
             value->note ? value->note : "", value->note ? "; " : "", wanted->name, wanted->type);
    value->note = keep_text(values, note, &ok);
    return ok ? GD_OK : gd_fail_nomem(err);
}

int ms_values_settle(struct ms_values *values, size_t first, const struct ms_nodes *nodes,
                     struct gd_err *err)
{
    int rc = GD_OK;

    for (size_t i = first; rc == GD_OK && i < values->count; i++) {
        struct ms_value *value = &values->item[i];

        if (value->node & MS_WANTED) {
            const struct ms_wanted *wanted = ms_nodes_wanted(nodes, value->node);

            value->node = wanted->node;
            rc = wanted->joined ? note_joined(values, value, wanted, err) : GD_OK;
        }
    }
    return rc;
}

void ms_values_clear(struct ms_values *values)
{
    for (size_t i = 0; i < values->count; i++) {
        gd_source_unref(values->item[i].source);
    }
    free(values->item);
    gd_arena_deinit(&values->arena);
    *values = (struct ms_values){.item = NULL};
}

/* ---- slots and orders ------------------------------------------------------------------------ */

struct slots { /* of a node, from its values */
    uint32_t outputs, inputs;
    uint64_t time; /* of the first value; 0: none */
    gd_node_id node;
};

static struct slots *count_slots(const struct ms_values *values, uint32_t limit)
{
    struct slots *slots = calloc((size_t)limit + 1, sizeof(*slots));

    for (size_t i = 0; slots && i < values->count; i++) {
        const struct ms_value *value = &values->item[i];
        struct slots *of = &slots[value->node];
        uint32_t *count = value->is_input ? &of->inputs : &of->outputs;

        *count = value->slot + 1 > *count ? value->slot + 1 : *count;
        if (value->time && (of->time == 0 || value->time < of->time)) {
            of->time = value->time;
        }
    }
    return slots;
}

static int set_slots(struct gd_graph *graph, const struct slots *slots, uint32_t limit,
                     struct gd_err *err)
{
    int rc = GD_OK;

    for (gd_node_id node = 0; rc == GD_OK && node < limit; node++) {
        if (slots[node].outputs || slots[node].inputs) {
            rc = gd_graph_set_slots(graph, node, slots[node].outputs, slots[node].inputs, err);
        }
    }
    return rc;
}

static int by_time(const void *a, const void *b)
{
    const struct slots *x = a, *y = b;

    if (x->time != y->time) {
        return x->time < y->time ? -1 : 1;
    }
    return (x->node > y->node) - (x->node < y->node);
}

/* Operators without a known order are ordered by the time of their dump. */
static void order_by_time(struct gd_graph *graph, struct slots *slots, uint32_t limit,
                          uint32_t next_order)
{
    size_t count = 0;

    for (gd_node_id node = 0; node < limit; node++) {
        struct gd_node_info info;

        if (slots[node].time && gd_graph_node(graph, node, &info) && info.order == GD_NO_ORDER &&
            strcmp(info.type, "Parameter") != 0 && strcmp(info.type, "Const") != 0) {
            slots[count] = slots[node];
            slots[count++].node = node;
        }
    }
    if (count > 1) {
        qsort(slots, count, sizeof(*slots), by_time);
    }
    for (size_t i = 0; i < count && next_order < GD_NO_ORDER - 1; i++) {
        gd_graph_set_order(graph, slots[i].node, next_order++);
    }
}

/* ---- to the catalog -------------------------------------------------------------------------- */

/* Groups the files and rows of one value, files first. */
static int compare_values(const void *a, const void *b)
{
    const struct ms_value *x = a, *y = b;

    if (x->node != y->node) {
        return x->node < y->node ? -1 : 1;
    }
    if (x->is_input != y->is_input) {
        return x->is_input ? 1 : -1;
    }
    if (x->slot != y->slot) {
        return x->slot < y->slot ? -1 : 1;
    }
    if (x->step != y->step) {
        return x->step < y->step ? -1 : 1;
    }
    if (!x->source != !y->source) {
        return x->source ? -1 : 1;
    }
    return (x->time > y->time) - (x->time < y->time);
}

static bool same_place(const struct ms_value *a, const struct ms_value *b)
{
    return a->node == b->node && a->is_input == b->is_input && a->slot == b->slot &&
           a->step == b->step;
}

/* Learns a slot's otherwise unknown shape from its first files. */
static void learn_shape(struct gd_graph *graph, const struct gd_catalog_value *value,
                        size_t *learned)
{
    struct gd_source_info info;
    struct gd_output output;

    if (!gd_graph_output(graph, value->node, value->slot, &output) || output.dtype != GD_DT_NONE) {
        return;
    }
    if (value->source && *learned < MAX_LEARNED) {
        ++*learned;
        if (gd_source_info(value->source, &info, NULL) == GD_OK) {
            output = (struct gd_output){.dtype = info.dtype, .shape = info.shape};
            gd_graph_set_output(graph, value->node, value->slot, &output);
        }
    } else if (value->shape) {
        output = (struct gd_output){.dtype = value->dtype, .shape = *value->shape};
        gd_graph_set_output(graph, value->node, value->slot, &output);
    }
}

static int give_value(struct gd_catalog *catalog, const struct ms_value *file,
                      const struct ms_value *row, size_t *learned, struct gd_err *err)
{
    const struct ms_value *first = file ? file : row;
    struct gd_graph *graph = gd_catalog_graph(catalog);
    struct gd_source *shaped = NULL;
    struct gd_source_info raw;
    struct gd_node_info info;
    int rc;
    struct gd_catalog_value value = {
        .node = first->node,
        .slot = first->slot,
        .step = first->step,
        .source = file ? file->source : NULL,
        .stats = row ? row->stats : NULL,
        .dtype = gd_stored_dtype(first->stored),
        .shape = row && row->shape ? row->shape : first->shape,
        .time = (double)first->time * 1e-6,
        .digest = row ? row->digest : NULL,
        .note = first->note,
    };

    if (!gd_graph_node(graph, first->node, &info)) {
        return GD_OK;
    }
    if (file && file->raw) { /* its shape is known now */
        rc = ms_raw_source(file->raw, file->stored, row ? row->shape : NULL, &shaped, err);
        if (rc != GD_OK) {
            return rc;
        }
        value.source = shaped;
        if (!value.note && gd_source_info(shaped, &raw, NULL) == GD_OK && raw.note[0]) {
            value.note = raw.note;
        }
    }
    value.slot += first->is_input ? info.output_count - info.input_slots : 0;
    learn_shape(graph, &value, learned);
    rc = gd_catalog_add(catalog, &value, err);
    gd_source_unref(shaped);
    return rc;
}

/* Of equal place, the n-th file and the n-th row describe the same value. */
static int give_place(struct gd_catalog *catalog, const struct ms_value *item, size_t count,
                      size_t *learned, struct gd_err *err)
{
    size_t files = 0;
    int rc = GD_OK;

    while (files < count && item[files].source) {
        files++;
    }
    for (size_t i = 0; rc == GD_OK && (i < files || i < count - files); i++) {
        rc = give_value(catalog, i < files ? &item[i] : NULL,
                        i < count - files ? &item[files + i] : NULL, learned, err);
    }
    return rc;
}

int ms_values_finish(struct ms_values *values, struct gd_catalog *catalog, uint32_t next_order,
                     struct gd_err *err)
{
    struct gd_graph *graph = gd_catalog_graph(catalog);
    uint32_t limit = gd_graph_node_limit(graph);
    struct slots *slots = count_slots(values, limit);
    size_t learned = 0;
    int rc;

    if (!slots) {
        return gd_fail(err, GD_ENOMEM, "out of memory for the slots of %u nodes", limit);
    }
    rc = set_slots(graph, slots, limit, err);
    if (rc == GD_OK) {
        order_by_time(graph, slots, limit, next_order);
    }
    free(slots);
    if (rc == GD_OK && values->count > 1) {
        qsort(values->item, values->count, sizeof(*values->item), compare_values);
    }
    for (size_t i = 0, end; rc == GD_OK && i < values->count; i = end) {
        end = i + 1;
        while (end < values->count && same_place(&values->item[i], &values->item[end])) {
            end++;
        }
        rc = give_place(catalog, &values->item[i], end - i, &learned, err);
    }
    return rc;
}

/* ---- files ----------------------------------------------------------------------------------- */

struct npy_file {
    char *path;
    char *dtype; /* NULL: unknown */
};

static void npy_free(void *ctx)
{
    struct npy_file *file = ctx;

    if (file) {
        free(file->path);
        free(file->dtype);
        free(file);
    }
}

static int npy_open(void *ctx, struct gd_source **ret, struct gd_err *err)
{
    const struct npy_file *file = ctx;
    struct gd_disk *disk;
    struct gd_bytes *bytes = NULL;
    struct gd_npy npy;
    struct gd_err why;
    int rc = gd_disk_open(AT_FDCWD, file->path, false, &disk, err);

    if (rc != GD_OK) {
        return rc;
    }
    rc = gd_bytes_of_disk(disk, 0, gd_disk_size(disk), &bytes, err);
    if (rc == GD_OK) {
        rc = gd_npy_read_header(bytes, file->dtype, &npy, &why);
        rc = rc != GD_OK ? gd_fail(err, rc, "%.250s: %.250s", file->path, why.text) : GD_OK;
    }
    if (rc == GD_OK) {
        rc = gd_npy_source(bytes, &npy, file->path, true, ret, NULL, err);
    }
    gd_bytes_unref(bytes);
    gd_disk_unref(disk);
    return rc;
}

int ms_npy_source(const char *path, const char *dtype, struct gd_source **ret, struct gd_err *err)
{
    static const struct gd_source_ops ops = {.open = npy_open, .free_ctx = npy_free};
    struct npy_file *file = calloc(1, sizeof(*file));

    if (file) {
        file->path = strdup(path);
        file->dtype = dtype ? strdup(dtype) : NULL;
    }
    if (!file || !file->path || (dtype && !file->dtype)) {
        npy_free(file);
        return gd_fail_nomem(err);
    }
    return gd_source_create_lazy(&ops, file, ret, err);
}

struct raw_file {
    char *path;
    enum gd_stored stored;
    bool has_shape;
    struct gd_shape shape;
};

static void raw_free(void *ctx)
{
    struct raw_file *file = ctx;

    free(file->path);
    free(file);
}

static int raw_open(void *ctx, struct gd_source **ret, struct gd_err *err)
{
    const struct raw_file *file = ctx;
    uint64_t size, bits = gd_stored_bits(file->stored), count;
    struct gd_source_desc desc = {.stored = file->stored};
    struct gd_disk *disk;
    int rc = gd_disk_open(AT_FDCWD, file->path, false, &disk, err);

    if (rc != GD_OK) {
        return rc;
    }
    size = gd_disk_size(disk);
    count = bits >= 8 ? size / (bits / 8) : size * (8 / bits);
    desc.shape = (struct gd_shape){.rank = 1, .dim = {(int64_t)count}};
    if (file->has_shape && (uint64_t)gd_shape_count(&file->shape) <= count) {
        desc.shape = file->shape;
    } else {
        desc.note = !file->has_shape
                        ? "raw elements: no table gives their shape"
                        : "the file has fewer elements than its table says: shown as one row";
    }
    rc = gd_bytes_of_disk(disk, 0, size, &desc.bytes, err);
    rc = rc != GD_OK ? rc : gd_source_create(&desc, ret, err);
    gd_bytes_unref(desc.bytes);
    gd_disk_unref(disk);
    return rc;
}

int ms_raw_source(const char *path, enum gd_stored stored, const struct gd_shape *shape,
                  struct gd_source **ret, struct gd_err *err)
{
    static const struct gd_source_ops ops = {.open = raw_open, .free_ctx = raw_free};
    struct raw_file *file = calloc(1, sizeof(*file));

    if (!file || !(file->path = strdup(path))) {
        free(file);
        return gd_fail_nomem(err);
    }
    file->stored = stored;
    file->has_shape = shape != NULL;
    file->shape = shape ? *shape : (struct gd_shape){.rank = 0};
    return gd_source_create_lazy(&ops, file, ret, err);
}
