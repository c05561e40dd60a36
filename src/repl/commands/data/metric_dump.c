// SPDX-License-Identifier: GPL-3.0-or-later
/* `metric` over a dump: all of its steps are computed at once, from the values on disk, of the
 * selected rank or of all. */
#include <stdlib.h>
#include <string.h>

#include "dump/dump_target.h"
#include "dump/io/source.h"
#include "engine/graph/loss_pair.h"
#include "engine/ranks.h"
#include "repl/commands/data/metric.h"
#include "repl/core/repl_impl.h"
#include "repl/core/work.h"

struct side { /* a rank */
    struct gd_session *session;
    struct gd_catalog *catalog;
    struct gd_tensor_ref outputs, labels;
};

#define MOST_NAMES 64 /* a metric has a name for each of the first GD_METRIC_SHOWN classes */

struct walk {
    struct command_call *call;
    struct gd_metric *metric;
    struct gd_metric *part; /* of a step, over all ranks */
    struct side *sides;
    size_t side_count;
    enum gd_metric_form form;
    cJSON *steps;
    uint64_t left_out, refused;
    struct gd_err why;                        /* of the last refused batch */
    struct gd_metric_number seen[MOST_NAMES]; /* one of each name */
    size_t names;
};

static const struct gd_catalog_value *find_value(const struct side *side,
                                                 const struct gd_tensor_ref *ref, int64_t step)
{
    const struct gd_graph *graph = side->session->graph;
    const struct gd_catalog_value *value =
        gd_catalog_find(side->catalog, ref->node, ref->slot, step);
    value = value ? value : gd_catalog_find_given(side->catalog, graph, ref->node, ref->slot, step);
    return value && value->source ? value : NULL;
}

static int read_value(const struct side *side, const struct gd_tensor_ref *ref, int64_t step,
                      struct gd_tensor **ret, struct gd_err *err)
{
    uint64_t max = side->session->debugger->settings.max_tensor;
    const struct gd_catalog_value *value = find_value(side, ref, step);
    return value ? gd_source_read(value->source, NULL, max > SIZE_MAX ? SIZE_MAX : (size_t)max, ret,
                                  err)
                 : GD_ENODATA;
}

/* A number replaces that of an earlier metric of its name, in all steps. */
static void replace_name(struct walk *w, const struct gd_metric_number *number)
{
    for (size_t i = 0; i < w->names; i++) {
        if (strcmp(w->seen[i].name, number->name) == 0) {
            return;
        }
    }
    if (w->names < MOST_NAMES) {
        w->seen[w->names++] = *number;
        for (size_t i = 0; i < w->side_count; i++) {
            gd_catalog_remove_scalars(w->sides[i].catalog, number->name);
        }
    }
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
        replace_name(w, &number[i]);
        for (size_t k = 0; rc == GD_OK && k < w->side_count; k++) {
            rc = gd_catalog_add_scalar(w->sides[k].catalog, step, number[i].name, number[i].value,
                                       err);
        }
    }
    return rc;
}

/* Adds the batch of a rank. GD_ENODATA: it does not have both values. */
static int count_side(struct walk *w, const struct side *side, int64_t step)
{
    const struct gd_metric_pair pair = {.form = w->form};
    struct gd_tensor *outputs = NULL, *labels = NULL;
    struct gd_err why = {.code = GD_OK};
    int rc = read_value(side, &side->outputs, step, &outputs, &why);
    rc = rc != GD_OK ? rc : read_value(side, &side->labels, step, &labels, &why);
    rc = rc != GD_OK ? rc : gd_metric_update(w->part, &pair, outputs, labels, &why);
    if (rc != GD_OK && rc != GD_ENODATA) {
        w->why = why;
    }
    gd_tensor_unref(outputs);
    gd_tensor_unref(labels);
    return rc;
}

/* All ranks, or none of them. */
static int count_step(struct walk *w, int64_t step, struct gd_err *err)
{
    struct gd_buf text = GD_BUF_INIT(SIZE_MAX);
    int rc = GD_OK;
    gd_metric_clear(w->part);
    for (size_t i = 0; rc == GD_OK && i < w->side_count; i++) {
        rc = count_side(w, &w->sides[i], step);
    }
    if (rc == GD_OK && gd_metric_spec(w->metric)->by_step) {
        gd_metric_clear(w->metric);
    }
    rc = rc != GD_OK ? rc : gd_metric_save(w->part, &text, &w->why);
    rc = rc != GD_OK ? rc : gd_metric_merge(w->metric, gd_buf_text(&text), &w->why);
    gd_buf_deinit(&text);
    w->left_out += rc == GD_ENODATA;
    w->refused += rc != GD_OK && rc != GD_ENODATA;
    return rc == GD_OK ? keep_numbers(w, step, err) : GD_OK;
}

static int count_steps(struct walk *w, struct gd_err *err)
{
    struct repl_work work;
    size_t count;
    const struct gd_catalog_step *steps = gd_catalog_steps(gd_catalog_of(w->call->session), &count);
    int rc = GD_OK;
    repl_work_begin_count(&work, w->call, "counting", "steps", count);
    for (size_t i = 0; rc == GD_OK && i < count; i++) {
        rc = count_step(w, steps[i].step, err);
        rc = rc == GD_OK && !repl_work_at(&work, i + 1) ? GD_EINTR : rc;
    }
    rc = repl_work_end(&work, rc, err);
    for (size_t i = 0; i < w->side_count; i++) {
        gd_catalog_sort_scalars(w->sides[i].catalog);
    }
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
            OUT_IF(spec->ranks, OUT_INT("ranks", w->side_count)), OUT_JSON("steps", w->steps),
            OUT_JSON("total", sums));
    out_say(w->call->out, record,
            "Metric {name}: {outputs}[ against {labels}][{?found} (found at the loss)][, over "
            "{ranks} ranks].\n");
    print_steps(w);
    out_say(
        w->call->out, record,
        "[Left out: {left_out|step} without the values of both.\n][Not counted: {refused|step}: "
        "{why}\n]");
    if (out_is_text(w->call->out)) {
        metric_print_matrix(w->call, spec->name, sums, "");
    }
    gd_buf_deinit(&text);
}

static int find_refs(struct walk *w, struct side *side, const struct gd_metric_spec *spec,
                     struct gd_err *err)
{
    struct gd_session *selected = w->call->session;
    struct tensor_arg arg;
    w->call->session = side->session;
    int rc = arg_tensor(w->call, spec->outputs, &arg, err);
    if (rc == GD_OK) {
        side->outputs = side->labels = arg.ref;
    }
    if (rc == GD_OK && spec->labels[0] != '\0') {
        rc = arg_tensor(w->call, spec->labels, &arg, err);
        side->labels = arg.ref;
    }
    w->call->session = selected;
    return rc;
}

/* The selected rank, or all of its job. */
static int find_sides(struct walk *w, struct gd_metric_spec *spec, struct gd_err *err)
{
    const struct gd_debugger *debugger = w->call->debugger;
    const struct gd_ranks *ranks = spec->ranks ? gd_ranks_of(w->call->session) : NULL;
    int rc = GD_OK;
    spec->ranks = ranks != NULL;
    w->sides = gd_arena_alloc(w->call->arena, (debugger->session_count + 1) * sizeof(*w->sides));
    if (!w->sides) {
        return gd_fail_nomem(err);
    }
    for (size_t i = 0; rc == GD_OK && i < debugger->session_count; i++) {
        struct gd_session *session = debugger->sessions[i];
        struct side *side = &w->sides[w->side_count];
        if (ranks ? gd_ranks_of(session) != ranks : session != w->call->session) {
            continue;
        }
        *side = (struct side){.session = session, .catalog = gd_catalog_of(session)};
        rc = side->catalog ? find_refs(w, side, spec, err) : GD_OK;
        w->side_count += side->catalog != NULL;
    }
    if (rc == GD_OK && ranks && w->side_count < (size_t)gd_ranks_world_size(ranks)) {
        rc = gd_fail(err, GD_ENODATA, "the dump has %zu of %d ranks: leave out \"ranks\"",
                     w->side_count, gd_ranks_world_size(ranks));
    }
    return rc;
}

int metric_of_dump(struct command_call *call, struct gd_metric_spec *spec, bool found,
                   struct gd_err *err)
{
    struct walk w = {.call = call};
    if (spec->kind == GD_METRIC_FILE) {
        return gd_fail(err, GD_EUNSUPPORTED,
                       "a metric from a file is run by a training process: gradb runs nothing "
                       "over a dump");
    }
    if (spec->outputs[0] == '\0') {
        return gd_fail(err, GD_EINVAL, "name the node: loss of NODE");
    }
    int rc = find_sides(&w, spec, err);
    rc = rc != GD_OK ? rc : gd_metric_create(spec, &w.metric, err);
    rc = rc != GD_OK ? rc : gd_metric_create(spec, &w.part, err);
    if (rc != GD_OK) {
        gd_metric_destroy(w.metric);
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
        for (size_t i = 0; i < w.side_count; i++) {
            gd_dump_recall_scalars(w.sides[i].session);
        }
        say_result(&w, found);
    } else {
        cJSON_Delete(w.steps);
    }
    gd_metric_destroy(w.metric);
    gd_metric_destroy(w.part);
    return rc;
}
