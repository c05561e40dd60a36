// SPDX-License-Identifier: GPL-3.0-or-later
/* `info metrics`. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/metric/over_ranks.h"
#include "repl/commands/data/metric.h"
#include "repl/commands/status/info.h"
#include "repl/core/repl_impl.h"

#define MATRIX_MOST  20 /* classes of a matrix that are printed */
#define MOST_NUMBERS 128

void metric_add_number(cJSON *list, const struct gd_metric_number *number)
{
    out_set(out_push(list), OUT_TEXT("name", number->name),
            isfinite(number->value) ? OUT_JSON("value", cJSON_CreateNumber(number->value))
                                    : OUT_REAL("value", number->value));
}

void metric_add_counts(cJSON *to, const struct gd_metric *metric)
{
    struct gd_metric_number number[MOST_NUMBERS];
    size_t count = gd_metric_numbers(metric, number, MOST_NUMBERS);
    const struct gd_metric_counts *c = gd_metric_counts(metric);
    int64_t classes = gd_metric_classes(metric);
    out_set(to, OUT_INT("samples", c->samples), OUT_INT("batches", c->batches),
            OUT_INT("nan", c->nan), OUT_INT("ignored", c->ignored),
            OUT_INT("out_of_range", c->out_of_range), OUT_INT("not_kept", c->not_kept));
    cJSON *numbers = out_list(to, "numbers");
    for (size_t i = 0; i < count && i < MOST_NUMBERS; i++) {
        metric_add_number(numbers, &number[i]);
    }
    if (gd_metric_spec(metric)->kind == GD_METRIC_CONFUSION && classes <= MOST_NUMBERS) {
        cJSON *rows = out_list(to, "matrix");
        for (int64_t i = 0; i < classes; i++) {
            cJSON *row = cJSON_CreateArray();
            for (int64_t j = 0; j < classes; j++) {
                out_push_int(row, (int64_t)gd_metric_cell(metric, i, j));
            }
            cJSON_AddItemToArray(rows, row);
        }
    }
}

/* ---- over ranks ------------------------------------------------------------------------------ */

/* Adds "ranks" to a part of a metric. */
static void add_ranks(const struct command_call *call, cJSON *item, const char *part)
{
    const struct gd_ranks *ranks = gd_ranks_of(call->session);
    struct gd_over_result found;
    bool evaluation = strcmp(part, "eval") == 0;

    if (!ranks || !gd_over_ranks_result(ranks, out_text_of(item, "name"), evaluation, &found) ||
        (evaluation && found.step == 0)) {
        return;
    }
    cJSON *sums = cJSON_GetObjectItem(item, part);
    cJSON *added = out_object(sums ? sums : out_object(item, part), "ranks");
    out_set(added, OUT_INT("ranks", found.ranks), OUT_INT("of", found.world),
            OUT_INT("step", found.step), OUT_SOME("why", found.why));
    metric_add_counts(added, found.metric);
}

/* ---- printing -------------------------------------------------------------------------------- */

const char *metric_value_text(struct command_call *call, const cJSON *number)
{
    const cJSON *value = cJSON_GetObjectItem(number, "value");
    return cJSON_IsNumber(value) ? repl_scalar_text(call->arena, value->valuedouble, 6)
                                 : out_text_of(number, "value");
}

/* One row for each number; one row without a value where there is none yet. */
static void put_rows(struct command_call *call, struct out_table *table, const cJSON *item,
                     const cJSON *sums, const char *prefix, const cJSON *since)
{
    const cJSON *number = cJSON_GetObjectItem(sums, "numbers")->child;
    do {
        struct gd_buf name = GD_BUF_INIT(256);
        gd_buf_printf(&name, "%s%s", prefix, out_text_of(number ? number : item, "name"));
        out_put(table, OUT_TEXT("name", gd_buf_text(&name)),
                OUT_TEXT("value", number ? metric_value_text(call, number) : "-"),
                OUT_INT("samples", out_number_of(sums, "samples")),
                OUT_INT("batches", out_number_of(sums, "batches")),
                OUT_IF(out_number_of(since, "since") > 0,
                       OUT_INT("since", out_number_of(since, "since"))),
                OUT_IF(out_number_of(since, "step") > 0,
                       OUT_INT("step", out_number_of(since, "step"))));
        gd_buf_deinit(&name);
        number = number ? number->next : NULL;
    } while (number);
}

/* Over all ranks first, which is what the name means; then what the selected rank has. */
static void put_part(struct command_call *call, struct out_table *table, const cJSON *item,
                     const char *part, const char *prefix)
{
    const cJSON *sums = cJSON_GetObjectItem(item, part);
    const cJSON *ranks = cJSON_GetObjectItem(sums, "ranks");
    char own[48];
    snprintf(own, sizeof(own), "[rank %d] %s", call->session->peer.rank, prefix);
    if (ranks) {
        put_rows(call, table, item, ranks, prefix, ranks);
    }
    if (cJSON_GetObjectItem(sums, "numbers")) {
        put_rows(call, table, item, sums, ranks ? own : prefix, sums);
    }
}

static void say_left_out(struct command_call *call, const cJSON *item, const char *part,
                         const char *prefix)
{
    const cJSON *sums = cJSON_GetObjectItem(item, part);
    const cJSON *all = cJSON_GetObjectItem(sums, "ranks");
    char name[GD_METRIC_NAME + 8];
    snprintf(name, sizeof(name), "%s%.47s", prefix, out_text_of(item, "name"));
    out_say(call->out, sums,
            "[{name}: {nan|sample} with NaN among the outputs\n][{name}: not counted: "
            "{ignored|label} to be ignored\n][{name}: not counted: {out_of_range|label} that no "
            "class of the outputs has\n][{name}: not counted: {not_kept|sample}: the memory for "
            "scores is full\n][{name}: batches not counted: {refused}: {why}\n]",
            OUT_TEXT("name", name));
    if (out_number_of(all, "ranks") > 0 || out_text_of(all, "why")[0] != '\0') {
        out_say(call->out, all, "{name}: over {ranks} of {of} ranks[; it has no number: {why}]\n",
                OUT_TEXT("name", name));
    }
}

void metric_print_matrix(struct command_call *call, const char *name, const cJSON *sums,
                         const char *title)
{
    const cJSON *matrix = cJSON_GetObjectItem(sums, "matrix"), *row, *cell;
    int classes = cJSON_GetArraySize(matrix), i = 0;
    if (classes == 0) {
        return;
    }
    if (classes > MATRIX_MOST) {
        out_printf(call->out, "%s of %d classes: \"info metrics\" in JSON has its cells\n", name,
                   classes);
        return;
    }
    out_printf(call->out, "\n%s%s: rows are labels, columns predictions\n       ", title, name);
    for (i = 0; i < classes; i++) {
        out_printf(call->out, " %7d", i);
    }
    i = 0;
    cJSON_ArrayForEach(row, matrix)
    {
        out_printf(call->out, "\n%7d", i++);
        cJSON_ArrayForEach(cell, row)
        {
            out_printf(call->out, " %7.0f", cell->valuedouble);
        }
    }
    out_printf(call->out, "\n");
}

static void print_matrices(struct command_call *call, const cJSON *item)
{
    const char *name = out_text_of(item, "name");
    const cJSON *train = cJSON_GetObjectItem(item, "train"),
                *eval = cJSON_GetObjectItem(item, "eval");
    metric_print_matrix(call, name, train, "");
    metric_print_matrix(call, name, cJSON_GetObjectItem(train, "ranks"), "all ranks, ");
    metric_print_matrix(call, name, eval, "eval_");
    metric_print_matrix(call, name, cJSON_GetObjectItem(eval, "ranks"), "all ranks, eval_");
}

static void print_metrics(struct command_call *call, const cJSON *metrics)
{
    static const struct out_column columns[] = {{"name", "Name", false},
                                                {"value", "Value", true},
                                                {"samples", "Samples", true, ":n"},
                                                {"batches", "Batches", true, ":n"},
                                                {"since", "Since step", true, ":n"},
                                                {"step", "Step", true, ":n"}};
    struct out_table *table = out_table_begin(call->out, "numbers", columns, 6);
    const cJSON *item;
    cJSON_ArrayForEach(item, metrics)
    {
        put_part(call, table, item, "train", "");
        put_part(call, table, item, "eval", "eval_");
    }
    out_table_end(table);
    cJSON_ArrayForEach(item, metrics)
    {
        say_left_out(call, item, "train", "");
        say_left_out(call, item, "eval", "eval_");
        out_say(call->out, item, "[{name}: {note}\n]");
        if (out_is_text(call->out)) {
            print_matrices(call, item);
        }
    }
    if (!cJSON_GetArraySize(metrics)) {
        out_printf(call->out, "No metrics: \"metric accuracy\" computes one.\n");
        return;
    }
    out_printf(call->out, "\n");
    out_say_each(call->out, metrics, "metric {definition}\n");
}

int info_metrics(struct command_call *call, struct gd_err *err)
{
    const char *text = NULL;
    int rc = metric_check(call, err);
    if (rc == GD_OK && call->session->state != GD_STOPPED) {
        rc = gd_fail(err, GD_ESTATE,
                     "the training process is not stopped: \"info scalars\" has the last values");
    }
    rc = rc != GD_OK ? rc : repl_command(call, METRIC_COMMAND, "list", GD_NO_NODE, &text, err);
    if (rc != GD_OK) {
        return rc;
    }
    cJSON *reply = cJSON_Parse(text);
    cJSON *metrics = cJSON_DetachItemFromObject(reply, "metrics");
    cJSON_Delete(reply);
    if (!metrics) {
        return gd_fail(err, GD_EPROTO, "the training process sent an unreadable list of metrics");
    }
    cJSON *item;
    cJSON_ArrayForEach(item, metrics)
    {
        add_ranks(call, item, "train");
        add_ranks(call, item, "eval");
    }
    cJSON *record = out_record(call->out, "metrics");
    out_set(record, OUT_JSON("metrics", metrics));
    print_metrics(call, metrics);
    return GD_OK;
}
