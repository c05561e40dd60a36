// SPDX-License-Identifier: GPL-3.0-or-later
#include "dump/mindspore/ms_values.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/grow.h"
#include "dump/files/npy.h"

#define MAX_LEARNED 4096 /* files that are opened to learn otherwise unknown shapes */

/* ---- the list -------------------------------------------------------------------------------- */

static const void *keep_copy(struct ms_values *values, const void *data, size_t size, bool *ok)
{
    void *copy = data ? gd_arena_alloc(&values->arena, size) : NULL;

    if (copy) {
        memcpy(copy, data, size);
    }
    *ok = *ok && (copy || !data);
    return copy;
}

static const char *keep_text(struct ms_values *values, const char *text, bool *ok)
{
    return text ? keep_copy(values, text, strlen(text) + 1, ok) : NULL;
}

int ms_values_add(struct ms_values *values, const struct ms_value *value, struct gd_err *err)
{
    struct ms_value kept = *value;
    bool ok = gd_grow_list(&values->item, values->count, &values->cap, sizeof(*values->item));

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
        if (gd_source_info(value->source, &info, NULL) != GD_OK) {
            return;
        }
        output = (struct gd_output){.dtype = info.dtype, .shape = info.shape};
    } else if (value->shape) {
        output = (struct gd_output){.dtype = value->dtype, .shape = *value->shape};
    } else {
        return;
    }
    gd_graph_set_output(graph, value->node, value->slot, &output);
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
        rc = ms_raw_source(file->raw, file->stored, row ? row->shape : NULL, false, &shaped, err);
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

struct file { /* opened on demand */
    char *path;
    enum gd_stored stored;
    bool has_shape, is_exact; /* of raw elements */
    struct gd_shape shape;
};

static void file_free(void *ctx)
{
    struct file *file = ctx;

    free(file->path);
    free(file);
}

static int file_source(const struct gd_source_ops *ops, const char *path, const struct file *about,
                       struct gd_source **ret, struct gd_err *err)
{
    struct file *file = malloc(sizeof(*file));

    if (file) {
        *file = *about;
        file->path = strdup(path);
    }
    if (!file || !file->path) {
        free(file);
        return gd_fail_nomem(err);
    }
    return gd_source_create_lazy(ops, file, ret, err);
}

static int npy_open(void *ctx, struct gd_source **ret, struct gd_err *err)
{
    const struct file *file = ctx;
    GD_CLEANUP(gd_cleanup_disk) struct gd_disk *disk = NULL;
    GD_CLEANUP(gd_cleanup_bytes) struct gd_bytes *bytes = NULL;
    const char *dtype = file->stored == GD_STORED_BFLOAT16 ? "bfloat16" : NULL;
    struct gd_npy npy;
    struct gd_err why;
    int rc = gd_disk_open(AT_FDCWD, file->path, false, &disk, err);

    rc = rc != GD_OK ? rc : gd_bytes_of_disk(disk, 0, gd_disk_size(disk), &bytes, err);
    if (rc != GD_OK) {
        return rc;
    }
    rc = gd_npy_read_header(bytes, dtype, &npy, &why);
    return rc != GD_OK ? gd_fail(err, rc, "%.250s: %.250s", file->path, why.text)
                       : gd_npy_source(bytes, &npy, file->path, true, ret, NULL, err);
}

int ms_npy_source(const char *path, enum gd_stored stored, struct gd_source **ret,
                  struct gd_err *err)
{
    static const struct gd_source_ops ops = {.open = npy_open, .free_ctx = file_free};

    return file_source(&ops, path, &(struct file){.stored = stored}, ret, err);
}

/* One row of what the file has, if it has no shape or one of more elements. */
static void loose_shape(const struct file *file, uint64_t size, struct gd_source_desc *ret)
{
    uint64_t bits = gd_stored_bits(file->stored);
    uint64_t count = bits >= 8 ? size / (bits / 8) : size * (8 / bits);

    if (file->has_shape && (uint64_t)gd_shape_count(&file->shape) <= count) {
        ret->shape = file->shape;
        return;
    }
    ret->shape = (struct gd_shape){.rank = 1, .dim = {(int64_t)count}};
    ret->note = !file->has_shape
                    ? "raw elements: no table gives their shape"
                    : "the file has fewer elements than its table says: shown as one row";
}

/* "shape_0" is a scalar or an empty tensor: the file's size decides. */
static int exact_shape(const struct file *file, uint64_t size, struct gd_shape *ret,
                       struct gd_err *err)
{
    unsigned bits = gd_stored_bits(file->stored);
    int64_t count;

    if (file->stored == GD_STORED_OPAQUE) {
        *ret = (struct gd_shape){.rank = 1, .dim = {(int64_t)size}};
        return GD_OK;
    }
    *ret = file->shape;
    if (ret->rank == 1 && ret->dim[0] == 0 && size > 0) {
        ret->rank = 0;
    }
    count = gd_shape_count(ret);
    if (count < 0 || (uint64_t)count > UINT64_MAX / 16 || (uint64_t)count * bits / 8 != size) {
        return gd_fail(err, GD_EPROTO,
                       "%.300s has %llu bytes, which does not match the shape and type in its name",
                       file->path, (unsigned long long)size);
    }
    return GD_OK;
}

static int raw_open(void *ctx, struct gd_source **ret, struct gd_err *err)
{
    const struct file *file = ctx;
    struct gd_source_desc desc = {.stored = file->stored};
    GD_CLEANUP(gd_cleanup_disk) struct gd_disk *disk = NULL;
    int rc = gd_disk_open(AT_FDCWD, file->path, false, &disk, err);

    if (rc == GD_OK && file->is_exact) {
        rc = exact_shape(file, gd_disk_size(disk), &desc.shape, err);
    } else if (rc == GD_OK) {
        loose_shape(file, gd_disk_size(disk), &desc);
    }
    rc = rc != GD_OK ? rc : gd_bytes_of_disk(disk, 0, gd_disk_size(disk), &desc.bytes, err);
    rc = rc != GD_OK ? rc : gd_source_create(&desc, ret, err);
    gd_bytes_unref(desc.bytes);
    return rc;
}

int ms_raw_source(const char *path, enum gd_stored stored, const struct gd_shape *shape, bool exact,
                  struct gd_source **ret, struct gd_err *err)
{
    static const struct gd_source_ops ops = {.open = raw_open, .free_ctx = file_free};
    struct file about = {.stored = stored, .has_shape = shape != NULL, .is_exact = exact};

    if (shape) {
        about.shape = *shape;
    }
    return file_source(&ops, path, &about, ret, err);
}
