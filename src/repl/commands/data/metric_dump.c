// SPDX-License-Identifier: GPL-3.0-or-later
/* `metric` over a dump: all of its steps are computed at once, from the values on disk. */
#include <stdlib.h>
#include <string.h>

#include "dump/dump_target.h"
#include "dump/io/source.h"
#include "engine/graph/loss_pair.h"
#include "repl/commands/data/metric.h"
#include "repl/core/repl_impl.h"
#include "repl/core/work.h"

struct walk {
    struct command_call *call;
    struct gd_catalog *catalog;
    struct gd_metric *metric;
    struct gd_tensor_ref outputs, labels;
    enum gd_metric_form form;
    cJSON *steps;
    uint64_t left_out, refused;
    struct gd_err why; /* of the last refused batch */
};

static const struct gd_catalog_value *find_value(const struct walk *w,
                                                 const struct gd_tensor_ref *ref, int64_t step)
{
    const struct gd_graph *graph = w->call->session->graph;
    const struct gd_catalog_value *value = gd_catalog_find(w->catalog, ref->node, ref->slot, step);
    value = value ? value : gd_catalog_find_given(w->catalog, graph, ref->node, ref->slot, step);
    return value && value->source ? value : NULL;
}

static struct gd_tensor *read_value(const struct walk *w, const struct gd_tensor_ref *ref,
                                    int64_t step)
{
    uint64_t max = w->call->debugger->settings.max_tensor;
    const struct gd_catalog_value *value = find_value(w, ref, step);
    struct gd_tensor *tensor = NULL;
    int rc = value ? gd_source_read(value->source, NULL, max > SIZE_MAX ? SIZE_MAX : (size_t)max,
                                    &tensor, NULL)
                   : GD_ENODATA;
    return rc == GD_OK ? tensor : NULL;
}

/* The numbers so far become those of the step. */
static int keep_numbers(struct walk *w, int64_t step, struct gd_err *err)
{
    struct gd_metric_number number[GD_METRIC_SHOWN];
    size_t count = gd_metric_numbers(w->metric, number, GD_METRIC_SHOWN);
    cJSON *row = out_push(w->steps);
    int rc = GD_OK;
    out_set(row, OUT_INT("step", step), OUT_INT("samples", gd_metric_counts(w->metric)->samples));
    cJSON *numbers = out_list(row, "numbers");
    for (size_t i = 0; rc == GD_OK && i < count && i < GD_METRIC_SHOWN; i++) {
        metric_add_number(numbers, &number[i]);
        rc = gd_catalog_add_scalar(w->catalog, step, number[i].name, number[i].value, err);
    }
    return rc;
}

static int count_step(struct walk *w, int64_t step, struct gd_err *err)
{
    const struct gd_metric_pair pair = {.form = w->form};
    struct gd_tensor *outputs = read_value(w, &w->outputs, step);
    struct gd_tensor *labels = outputs ? read_value(w, &w->labels, step) : NULL;
    int rc = GD_OK;
    if (!labels) {
        w->left_out++;
    } else {
        if (gd_metric_spec(w->metric)->by_step) {
            gd_metric_clear(w->metric);
        }
        if (gd_metric_update(w->metric, &pair, outputs, labels, &w->why) != GD_OK) {
            w->refused++;
        } else {
            rc = keep_numbers(w, step, err);
        }
    }
    gd_tensor_unref(outputs);
    gd_tensor_unref(labels);
    return rc;
}

static int count_steps(struct walk *w, struct gd_err *err)
{
    struct repl_work work;
    size_t count;
    const struct gd_catalog_step *steps = gd_catalog_steps(w->catalog, &count);
    int rc = GD_OK;
    repl_work_begin_count(&work, w->call, "counting", "steps", count);
    for (size_t i = 0; rc == GD_OK && i < count; i++) {
        rc = count_step(w, steps[i].step, err);
        rc = rc == GD_OK && !repl_work_at(&work, i + 1) ? GD_EINTR : rc;
    }
    rc = repl_work_end(&work, rc, err);
    gd_catalog_sort_scalars(w->catalog);
    return rc;
}

static void print_steps(struct walk *w)
{
    static const struct out_column columns[] = {
        {"step", "Step", true, ":n"}, {"samples", "Samples", true, ":n"}, {"value", "Value", true}};
    struct out_table *table = out_table_begin(w->call->out, "table", columns, 3);
    const cJSON *row;
    cJSON_ArrayForEach(row, w->steps)
    {
        const cJSON *numbers = cJSON_GetObjectItem(row, "numbers");
        struct gd_buf text = GD_BUF_INIT(4096);
        const cJSON *number;
        cJSON_ArrayForEach(number, numbers)
        {
            gd_buf_printf(&text, "%s%s", number == numbers->child ? "" : " ",
                          metric_value_text(w->call, number));
        }
        out_put(table, OUT_INT("step", out_number_of(row, "step")),
                OUT_INT("samples", out_number_of(row, "samples")),
                OUT_TEXT("value", gd_buf_text(&text)));
        gd_buf_deinit(&text);
    }
    out_table_end(table);
}

static void say_result(struct walk *w, bool found)
{
    const struct gd_metric_spec *spec = gd_metric_spec(w->metric);
    cJSON *record = out_record(w->call->out, "metric");
    cJSON *sums = cJSON_CreateObject();
    struct gd_buf text = GD_BUF_INIT(1 << 14);
    gd_metric_text(spec, &text);
    metric_add_counts(sums, w->metric);
    out_set(record, OUT_TEXT("name", spec->name), OUT_TEXT("definition", gd_buf_text(&text)),
            OUT_TEXT("outputs", spec->outputs), OUT_SOME("labels", spec->labels),
            OUT_BOOL("found", found), OUT_INT("left_out", w->left_out),
            OUT_INT("refused", w->refused), OUT_IF(w->refused, OUT_TEXT("why", w->why.text)),
            OUT_JSON("steps", w->steps), OUT_JSON("total", sums));
    out_say(w->call->out, record,
            "Metric {name}: {outputs}[ against {labels}][{?found} (found at the loss)].\n");
    print_steps(w);
    out_say(
        w->call->out, record,
        "[Left out: {left_out|step} without the values of both.\n][Not counted: {refused|step}: "
        "{why}\n]");
    if (!out_is_json(w->call->out)) {
        metric_print_matrix(w->call, spec->name, sums, "");
    }
    gd_buf_deinit(&text);
}

static int find_refs(struct walk *w, const struct gd_metric_spec *spec, struct gd_err *err)
{
    struct tensor_arg arg;
    int rc = arg_tensor(w->call, spec->outputs, &arg, err);
    if (rc == GD_OK) {
        w->outputs = w->labels = arg.ref;
    }
    if (rc == GD_OK && spec->labels[0] != '\0') {
        rc = arg_tensor(w->call, spec->labels, &arg, err);
        w->labels = arg.ref;
    }
    return rc;
}

int metric_of_dump(struct command_call *call, struct gd_metric_spec *spec, bool found,
                   struct gd_err *err)
{
    struct walk w = {.call = call, .catalog = gd_catalog_of(call->session)};
    if (spec->kind == GD_METRIC_FILE) {
        return gd_fail(err, GD_EUNSUPPORTED,
                       "a metric from a file is run by a training process: gradb runs nothing "
                       "over a dump");
    }
    if (spec->outputs[0] == '\0') {
        return gd_fail(err, GD_EINVAL, "name the node: loss of NODE");
    }
    int rc = find_refs(&w, spec, err);
    rc = rc != GD_OK ? rc : gd_metric_create(spec, &w.metric, err);
    if (rc != GD_OK) {
        return rc;
    }
    w.steps = cJSON_CreateArray();
    rc = count_steps(&w, err);
    if (rc == GD_OK && w.refused > 0 && cJSON_GetArraySize(w.steps) == 0) {
        rc = gd_fail(err, GD_EINVAL, "%s", w.why.text);
    } else if (rc == GD_OK && cJSON_GetArraySize(w.steps) == 0) {
        rc = gd_fail(err, GD_ENODATA, "no step of the dump has the values of both");
    }
    if (rc == GD_OK) {
        gd_dump_recall_scalars(call->session);
        say_result(&w, found);
    } else {
        cJSON_Delete(w.steps);
    }
    gd_metric_destroy(w.metric);
    return rc;
}
