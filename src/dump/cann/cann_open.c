// SPDX-License-Identifier: GPL-3.0-or-later
/* Reads the files of a rank: tensors as sources, statistics, overflow records. */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "dump/cann/cann_load.h"
#include "dump/cann/cann_stats.h"
#include "dump/cann/cann_types.h"
#include "dump/io/json.h"

#define ASK_EVERY  64 /* files between two calls of go_on */
#define MAX_RECORD ((uint64_t)1 << 20)
#define MAX_SLOTS  65535

/* ---- containers ------------------------------------------------------------------------------ */

static int32_t hint_of(const struct gd_ge_op *op, const struct gd_cann_tensor *tensor)
{
    if (op && tensor->io == GD_CANN_OUTPUT && tensor->index < op->out_count &&
        op->out[tensor->index].origin_format >= 0) {
        return op->out[tensor->index].origin_format;
    }
    if (op && tensor->io == GD_CANN_INPUT && tensor->index < op->in_count) {
        return op->in[tensor->index].origin_format;
    }
    return tensor->original_format;
}

static const struct gd_shape *keep_shape(struct cann_load *load, const struct gd_shape *shape)
{
    size_t size = offsetof(struct gd_shape, dim) + (size_t)shape->rank * sizeof(shape->dim[0]);
    struct gd_shape *copy = gd_arena_zalloc(&load->arena, sizeof(*copy));

    if (copy) {
        memcpy(copy, shape, size);
    }
    return copy;
}

static int take_tensor(struct cann_load *load, struct cann_file *file, struct gd_disk *disk,
                       const struct gd_cann_file *in, const struct gd_cann_tensor *tensor,
                       const struct gd_ge_op *op)
{
    struct cann_value *value = &file->value[file->value_count];
    int32_t hint = hint_of(op, tensor);
    struct gd_cann_plan plan;
    char note[GD_CANN_NOTE];
    int rc;

    *value = (struct cann_value){.io = tensor->io, .index = tensor->index};
    gd_cann_plan(tensor, hint, -1, &plan);
    value->dtype = gd_stored_dtype(gd_cann_stored(tensor->data_type));
    value->shape = keep_shape(load, &plan.shape);
    if (!value->shape) {
        return gd_fail_nomem(load->err);
    }
    gd_cann_note(in, tensor, &plan, note, sizeof(note));
    value->note = note[0] ? gd_arena_strdup(&load->arena, note) : NULL;
    if (note[0] && !value->note) {
        return gd_fail_nomem(load->err);
    }
    rc = gd_cann_source_lazy(disk, tensor->io, tensor->index, hint, &value->source, load->err);
    file->value_count += rc == GD_OK;
    return rc;
}

/* Uses the name inside the file if the file name is derived from it: it is the graph's spelling. */
static int keep_real_name(struct cann_load *load, struct cann_file *file, const char *real)
{
    char escaped[1024];

    gd_cann_name_escape(real, escaped, sizeof(escaped));
    if (real[0] == '\0' || strcmp(escaped, file->name) != 0) {
        return GD_OK;
    }
    file->real = gd_arena_strdup(&load->arena, real);
    return file->real ? GD_OK : gd_fail_nomem(load->err);
}

static int take_tensors(struct cann_load *load, struct cann_file *file, struct gd_disk *disk,
                        const struct gd_cann_file *in)
{
    const struct cann_known *known = cann_graph_known(load, file->model, file->name);
    uint32_t inputs = in->count_of[GD_CANN_INPUT], outputs = in->count_of[GD_CANN_OUTPUT];
    int rc = GD_OK;

    if (inputs > MAX_SLOTS || outputs > MAX_SLOTS) {
        return gd_fail(load->err, GD_EPROTO, "%.300s: more than %d inputs or outputs",
                       gd_disk_path(disk), MAX_SLOTS);
    }
    file->value = gd_arena_zalloc(&load->arena, (inputs + outputs + 1) * sizeof(*file->value));
    if (!file->value) {
        return gd_fail_nomem(load->err);
    }
    file->inputs = inputs;
    file->outputs = outputs;
    rc = keep_real_name(load, file, in->op_name);
    for (uint32_t i = 0; i < inputs + outputs && rc == GD_OK; i++) {
        if (in->tensor[i].size > 0) {
            rc = take_tensor(load, file, disk, in, &in->tensor[i], known ? known->op : NULL);
        }
    }
    return rc;
}

/* ---- records --------------------------------------------------------------------------------- */

static int keep_record(struct cann_load *load, struct cann_file *file,
                       const struct gd_cann_opdebug *record)
{
    const struct gd_cann_unit *hit = gd_cann_opdebug_hit(record);
    struct gd_buf text = GD_BUF_INIT(4096);

    gd_cann_opdebug_text(record, &text);
    file->text = gd_arena_strdup(&load->arena, gd_buf_text(&text));
    gd_buf_deinit(&text);
    /* The contents are preferred; what is missing there is taken from the name. */
    if (hit && hit->task >= 0 && hit->stream >= 0) {
        file->task = hit->task;
        file->stream = hit->stream;
        file->context = hit->context;
        file->thread = hit->thread;
    }
    return file->text ? GD_OK : gd_fail_nomem(load->err);
}

static int take_record(struct cann_load *load, struct cann_file *file, struct gd_disk *disk,
                       const struct gd_cann_file *in)
{
    const struct gd_cann_tensor *tensor = gd_cann_find(in, GD_CANN_OUTPUT, 0);
    unsigned char bytes[GD_CANN_OPDEBUG_BYTES];
    struct gd_cann_opdebug record;
    int rc = GD_OK;

    if (!tensor || tensor->there < sizeof(bytes)) {
        return gd_fail(load->err, GD_EPROTO, "%.300s: an overflow record must have %zu bytes",
                       gd_disk_path(disk), sizeof(bytes));
    }
    if (tensor->data) {
        memcpy(bytes, tensor->data, sizeof(bytes));
    } else {
        rc = gd_disk_read(disk, tensor->at, bytes, sizeof(bytes), load->err);
    }
    if (rc == GD_OK && !gd_cann_opdebug_read(bytes, sizeof(bytes), &record)) {
        rc = gd_fail(load->err, GD_EPROTO, "%.300s: an overflow record of an unknown unit",
                     gd_disk_path(disk));
    }
    return rc != GD_OK ? rc : keep_record(load, file, &record);
}

/* The first line is enough to recognise it. */
static int take_exception(struct cann_load *load, struct cann_file *file,
                          const struct gd_cann_file *in)
{
    char text[400];

    snprintf(text, sizeof(text), "the device raised an exception in %.120s%s%.*s",
             in->op_name[0] ? in->op_name : file->name, in->dfx[0] ? ": " : "",
             (int)strcspn(in->dfx, "\r\n") < 240 ? (int)strcspn(in->dfx, "\r\n") : 240, in->dfx);
    file->text = gd_arena_strdup(&load->arena, text);
    return file->text ? GD_OK : gd_fail_nomem(load->err);
}

/* The vendor converter's JSON of a record; only what blames an operator is read back. */
static void add_json_unit(struct gd_cann_opdebug *record, const char *name, const cJSON *from)
{
    struct gd_cann_unit *unit = &record->unit[record->unit_count++];
    const cJSON *status = cJSON_GetObjectItemCaseSensitive(from, "status");
    const struct {
        const char *name;
        int64_t *value;
    } ids[] = {{"model_id", &unit->model},
               {"stream_id", &unit->stream},
               {"task_id", &unit->task},
               {"context_id", &unit->context},
               {"thread_id", &unit->thread}};

    unit->name = name;
    for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
        const cJSON *item = cJSON_GetObjectItemCaseSensitive(from, ids[i].name);

        *ids[i].value = cJSON_IsNumber(item) && item->valuedouble >= 0 && item->valuedouble < 65535
                            ? (int64_t)item->valuedouble
                            : -1;
    }
    unit->field_count = 1;
    unit->field[0] = (struct gd_cann_field){.name = "status", .count = 1};
    if (cJSON_IsNumber(status) && status->valuedouble >= 0 && status->valuedouble < 0x1p53) {
        unit->field[0].value[0] = (uint64_t)status->valuedouble;
    }
    unit->hit = unit->field[0].value[0] != 0;
}

static int take_json(struct cann_load *load, struct cann_file *file, const cJSON *root)
{
    static const char *const old[] = {"DHA Atomic Add", "L2 Atomic Add", "AI Core"};
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(root, "acc_list");
    const char *type = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(list, "acc_type"));
    struct gd_cann_opdebug record = {.unit_count = 0};

    if (cJSON_IsObject(list)) {
        add_json_unit(&record, type ? type : "AIC", cJSON_GetObjectItemCaseSensitive(list, "data"));
    }
    for (size_t i = 0; !cJSON_IsObject(list) && i < sizeof(old) / sizeof(old[0]); i++) {
        add_json_unit(&record, old[i], cJSON_GetObjectItemCaseSensitive(root, old[i]));
    }
    return keep_record(load, file, &record);
}

/* ---- statistics ------------------------------------------------------------------------------ */

struct rows {
    struct cann_load *load;
    struct cann_file *file;
    size_t cap;
};

static int take_row(void *ctx, const struct gd_cann_stats_row *row)
{
    struct rows *rows = ctx;
    struct cann_file *file = rows->file;
    struct cann_value *value;
    struct gd_stats *stats = gd_arena_alloc(&rows->load->arena, sizeof(*stats));
    uint32_t *slots = row->is_output ? &file->outputs : &file->inputs;

    if (!stats || !gd_grow_list(&file->value, file->value_count, &rows->cap, sizeof(*value))) {
        return gd_fail_nomem(rows->load->err);
    }
    value = &file->value[file->value_count];
    *stats = row->stats;
    *value = (struct cann_value){.io = row->is_output ? GD_CANN_OUTPUT : GD_CANN_INPUT,
                                 .index = row->index,
                                 .dtype = row->stored ? gd_stored_dtype(row->stored) : GD_DT_NONE,
                                 .stats = stats};
    if (row->has_shape) {
        value->shape = keep_shape(rows->load, &row->shape);
        if (!value->shape) {
            return gd_fail_nomem(rows->load->err);
        }
    }
    file->value_count++;
    *slots = row->index >= *slots ? row->index + 1 : *slots;
    return GD_OK;
}

static int open_statistics(struct cann_load *load, struct cann_file *file, struct gd_disk *disk)
{
    struct rows rows = {.load = load, .file = file};
    struct cann_value *list;
    int rc = gd_cann_stats_read(disk, take_row, &rows, load->err);

    list = file->value;
    file->value =
        file->value_count ? gd_arena_alloc(&load->arena, file->value_count * sizeof(*list)) : NULL;
    if (file->value) {
        memcpy(file->value, list, file->value_count * sizeof(*list));
    } else {
        file->value_count = 0;
    }
    free(list);
    return rc;
}

/* ---- entry point ----------------------------------------------------------------------------- */

static int open_container(struct cann_load *load, struct cann_file *file, struct gd_disk *disk)
{
    struct gd_cann_file *in;
    int rc = gd_cann_read(disk, &in, load->err);

    if (rc != GD_OK) {
        return rc;
    }
    rc = file->name_kind == GD_CANN_OVERFLOW ? take_record(load, file, disk, in)
                                             : take_tensors(load, file, disk, in);
    if (rc == GD_OK && file->name_kind == GD_CANN_EXCEPTION) {
        rc = take_exception(load, file, in);
        file->name = in->op_name[0] ? gd_arena_strdup(&load->arena, in->op_name) : file->name;
        file->name_kind = GD_CANN_OPERATOR; /* its values belong to an operator */
        rc = file->name ? rc : gd_fail_nomem(load->err);
    }
    gd_cann_free(in);
    return rc;
}

static int open_record(struct cann_load *load, struct cann_file *file, struct gd_disk *disk)
{
    struct gd_json_options options = {.max_bytes = MAX_RECORD};
    cJSON *root;
    int rc = gd_json_read(disk, &options, &root, load->err);

    if (rc == GD_OK) {
        rc = take_json(load, file, root);
        cJSON_Delete(root);
    }
    return rc;
}

static int open_one(struct cann_load *load, struct cann_file *file, const char *path)
{
    GD_CLEANUP(gd_cleanup_disk) struct gd_disk *disk = NULL;
    int rc = gd_disk_open(AT_FDCWD, path, false, &disk, load->err);

    return rc != GD_OK                          ? rc
           : file->kind == CANN_FILE_STATISTICS ? open_statistics(load, file, disk)
           : file->kind == CANN_FILE_RECORD     ? open_record(load, file, disk)
                                                : open_container(load, file, disk);
}

/* A file that cannot be read has no values and does not end the reading of others. */
static int leave_out(struct cann_load *load, struct cann_file *file, const char *path,
                     const struct gd_err *why)
{
    for (uint32_t i = 0; i < file->value_count; i++) {
        gd_source_unref(file->value[i].source);
    }
    file->value_count = file->inputs = file->outputs = 0;
    file->kind = CANN_FILE_NONE;
    return gd_dump_left_out(load->dump, path, why->text, load->err);
}

int cann_open_all(struct cann_load *load)
{
    struct gd_err *err = load->err, why = {0};
    char path[PATH_MAX];
    int rc = GD_OK;
    size_t kept = 0;

    for (size_t i = 0; i < load->file_count && rc == GD_OK; i++) {
        if (load->go_on && ++load->done % ASK_EVERY == 0 && !load->go_on(load->ctx, load->done)) {
            return gd_fail(err, GD_EINTR, "interrupted");
        }
        load->err = &why;
        rc = gd_listing_path(load->listing, load->file[i].entry, path, sizeof(path), &why);
        rc = rc != GD_OK ? rc : open_one(load, &load->file[i], path);
        load->err = err;
        if (rc == GD_ENOMEM) {
            return gd_fail(err, rc, "%s", why.text);
        }
        rc = rc != GD_OK ? leave_out(load, &load->file[i], path, &why) : GD_OK;
    }
    for (size_t i = 0; i < load->file_count && rc == GD_OK; i++) {
        if (load->file[i].kind != CANN_FILE_NONE) {
            load->file[kept++] = load->file[i];
        }
    }
    load->file_count = rc != GD_OK ? load->file_count : kept;
    return rc;
}
