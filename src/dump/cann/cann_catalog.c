// SPDX-License-Identifier: GPL-3.0-or-later
/* Turns what was read of a rank into its catalog: values, overflows with the operator they blame,
 * facts. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dump/cann/cann_load.h"

/* A merged operator's output becomes an output of the operator it was merged into. */
static int add_original(struct cann_load *load, const struct cann_op *op,
                        const struct cann_value *value, struct gd_catalog_value *as)
{
    struct gd_graph *graph = gd_catalog_graph(load->catalog);
    const struct gd_ge_tensor *out;
    struct gd_output slot;
    struct gd_node_info info;
    gd_node_id node;

    if (!op->known || op->occurrence > 0 || value->io != GD_CANN_OUTPUT ||
        value->index >= op->known->op->out_count) {
        return GD_OK;
    }
    out = &op->known->op->out[value->index];
    if (!out->origin_name || strcmp(out->origin_name, op->known->op->name) == 0) {
        return GD_OK;
    }
    node = gd_graph_lookup(graph, out->origin_name, strlen(out->origin_name));
    if (node == GD_NO_NODE || !gd_graph_node(graph, node, &info) ||
        strcmp(info.type, "Merged") != 0 ||
        !gd_graph_output(graph, node, out->origin_index, &slot)) {
        return GD_OK;
    }
    as->node = node;
    as->slot = out->origin_index;
    return gd_catalog_add(load->catalog, as, load->err);
}

static int add_values(struct cann_load *load, const struct cann_file *file)
{
    const struct cann_op *op = &load->op[file->op];
    int rc = GD_OK;

    for (uint32_t i = 0; i < file->value_count && rc == GD_OK; i++) {
        const struct cann_value *value = &file->value[i];
        struct gd_catalog_value as = {
            .node = op->node,
            .slot = value->io == GD_CANN_OUTPUT ? value->index : op->node_outputs + value->index,
            .step = file->step,
            .source = value->source,
            .stats = value->stats,
            .dtype = value->dtype,
            .shape = value->shape,
            .time = file->time == UINT64_MAX ? 0 : (double)file->time / 1e6,
            .note = value->note};

        rc = gd_catalog_add(load->catalog, &as, load->err);
        rc = rc != GD_OK ? rc : add_original(load, op, value, &as);
    }
    return rc;
}

/* Whether a file belongs to the task that a record names. */
static bool is_blamed(const struct cann_file *file, const struct cann_file *record)
{
    return file->name_kind == GD_CANN_OPERATOR && file->op != CANN_NO_OP &&
           file->task == record->task && file->stream == record->stream &&
           (file->context < 0 || record->context < 0 || file->context == record->context) &&
           (file->thread < 0 || record->thread < 0 || file->thread == record->thread);
}

static int by_task(const void *a, const void *b)
{
    const struct cann_file *x = *(const struct cann_file *const *)a;
    const struct cann_file *y = *(const struct cann_file *const *)b;

    if (x->task != y->task) {
        return x->task > y->task ? 1 : -1;
    }
    if (x->stream != y->stream) {
        return x->stream > y->stream ? 1 : -1;
    }
    return x->time != y->time ? (x->time > y->time ? 1 : -1) : (x > y) - (x < y);
}

/* The first file of that task: in the record's directory, otherwise of its step, otherwise any. */
static const struct cann_file *find_blamed(const struct cann_file *const *sorted, size_t count,
                                           const struct cann_file *record)
{
    const struct cann_file *of_step = NULL;
    size_t low = 0, high = count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct cann_file *at = sorted[middle];
        bool before =
            at->task != record->task ? at->task < record->task : at->stream < record->stream;

        if (before) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    for (;
         low < count && sorted[low]->task == record->task && sorted[low]->stream == record->stream;
         low++) {
        if (!is_blamed(sorted[low], record)) {
            continue;
        }
        if (sorted[low]->dir == record->dir) {
            return sorted[low];
        }
        if (!of_step && sorted[low]->step == record->step) {
            of_step = sorted[low];
        }
    }
    return of_step;
}

static int add_overflow(struct cann_load *load, const struct cann_file *record,
                        const struct cann_file *blamed)
{
    gd_node_id node = blamed        ? load->op[blamed->op].node
                      : load->joins ? cann_join_blamed(load, record)
                                    : GD_NO_NODE;
    char text[700];

    if (record->task < 0 || record->stream < 0) {
        snprintf(text, sizeof(text), "%.500s; the task is unknown", record->text);
    } else {
        snprintf(text, sizeof(text), "%.500s%s in task %" PRId64 " of stream %" PRId64,
                 record->text, node != GD_NO_NODE ? "" : ": no file belongs to the operator",
                 record->task, record->stream);
    }
    return gd_catalog_add_event(load->catalog, record->step, node, "overflow", text, load->err);
}

static int add_events(struct cann_load *load)
{
    const struct cann_file **sorted = calloc(load->file_count + 1, sizeof(*sorted));
    size_t count = 0;
    int rc = sorted ? GD_OK : gd_fail_nomem(load->err);

    for (size_t i = 0; rc == GD_OK && i < load->file_count; i++) {
        if (load->file[i].name_kind == GD_CANN_OPERATOR) {
            sorted[count++] = &load->file[i];
        }
    }
    if (count > 0) {
        qsort(sorted, count, sizeof(*sorted), by_task);
    }
    for (size_t i = 0; rc == GD_OK && i < load->file_count; i++) {
        const struct cann_file *file = &load->file[i];

        if (file->text && file->name_kind == GD_CANN_OVERFLOW) {
            rc = add_overflow(load, file, find_blamed(sorted, count, file));
        } else if (file->text && file->op != CANN_NO_OP) {
            rc = gd_catalog_add_event(load->catalog, file->step, load->op[file->op].node,
                                      "exception", file->text, load->err);
        }
    }
    free(sorted);
    return rc;
}

static int add_facts(struct cann_load *load)
{
    char number[32];
    int rc = GD_OK;

    for (uint32_t i = 0; i < load->model_count && rc == GD_OK; i++) {
        const struct cann_model *model = &load->model[i];

        if (model->ge) {
            rc = gd_catalog_add_fact(
                load->catalog, model->ge->graph[0].has_iterator ? "computation graph" : "graph",
                model->ge->graph[0].name, load->err);
        } else if (model->name[0] != '\0') {
            rc = gd_catalog_add_fact(load->catalog, "model", model->name, load->err);
        }
    }
    snprintf(number, sizeof(number), "%zu", load->file_count);
    return rc != GD_OK ? rc : gd_catalog_add_fact(load->catalog, "dump files", number, load->err);
}

int cann_fill(struct cann_load *load)
{
    int rc = cann_add_nodes(load);

    for (size_t i = 0; i < load->file_count && rc == GD_OK; i++) {
        rc = gd_catalog_add_step(load->catalog, load->file[i].step, load->err);
        if (rc == GD_OK && load->file[i].op != CANN_NO_OP &&
            load->op[load->file[i].op].node != GD_NO_NODE) {
            rc = add_values(load, &load->file[i]);
        }
    }
    rc = rc != GD_OK ? rc : add_events(load);
    return rc != GD_OK || load->joins ? rc : add_facts(load);
}
