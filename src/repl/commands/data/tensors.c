// SPDX-License-Identifier: GPL-3.0-or-later
/* Commands: tensors */
#include <stdlib.h>

#include "engine/graph/selector.h"
#include "repl/values/inspect.h"
#include "repl/values/value.h"

#define TENSOR_ROWS 40 /* shown unless -a */

/* Names come last: they are long, and whole names can be copied. */
static const struct out_column plain_columns[] = {
    {"kind", "Kind", false},
    {"dtype", "Type", false},
    {"shape", "Shape", false, ":shape"},
    {"bytes", "Size", false, ":bytes"},
    {"name", "Tensor", false},
};

static const struct out_column stats_columns[] = {
    {"min", "Min", true, ":g4"}, {"max", "Max", true, ":g4"}, {"mean", "Mean", true, ":g4"},
    {"std", "Std", true, ":g4"}, {"nan", "NaN", true},        {"inf", "Inf", true},
    {"name", "Tensor", false},   {"note", "", false},
};

struct tensor_rows {
    struct command_call *call;
    bool want_stats;
    struct out_table *table;
    uint64_t shown;
    uint64_t missing;      /* requested, but without a value */
    const char *first_why; /* reason of the first one without a value */
};

static void plain_row(struct tensor_rows *rows, gd_node_id node, uint32_t slot,
                      const struct gd_output *output)
{
    struct command_call *call = rows->call;
    struct gd_node_info info;
    size_t bytes = 0;
    bool sized = gd_shape_bytes(&output->shape, output->dtype, &bytes, NULL) == GD_OK;
    if (!gd_graph_node(call->session->graph, node, &info)) {
        return;
    }
    cJSON *item = out_row(rows->table);
    out_set(item, OUT_TEXT("name", inspect_name(call, inspect_tensor_name(call, node, slot))));
    inspect_add_node(call, item, node);
    out_set(item, OUT_INT("slot", slot), OUT_TEXT("dtype", gd_dtype_name(output->dtype)),
            OUT_JSON("shape", inspect_shape_json(&output->shape)),
            OUT_IF(sized, OUT_INT("bytes", bytes)));
}

/* NULL: unknown (a dump without that statistic). */
static const char *bad_cell(struct command_call *call, const struct gd_stats *s, unsigned bit,
                            uint64_t count)
{
    if (!(s->unknown & bit)) {
        return inspect_number(call, count);
    }
    return count > 0 ? inspect_printf(call, ">=%s", inspect_number(call, count)) : NULL;
}

static void put_stats(struct tensor_rows *rows, const struct value *value)
{
    struct command_call *call = rows->call;
    const struct gd_stats *s = &value->stats;
    bool finite = s->count > s->nan + s->pos_inf + s->neg_inf;
    char age[VALUE_AGE];
    out_put_text(rows->table, OUT_IF(finite, OUT_REAL("min", s->min)),
                 OUT_IF(finite, OUT_REAL("max", s->max)), OUT_IF(finite, OUT_REAL("mean", s->mean)),
                 OUT_IF(finite, OUT_REAL("std", s->std)),
                 OUT_TEXT("nan", bad_cell(call, s, GD_UNKNOWN_NAN, s->nan)),
                 OUT_TEXT("inf", bad_cell(call, s, GD_UNKNOWN_INF, s->pos_inf + s->neg_inf)),
                 OUT_TEXT("name", value->label),
                 OUT_TEXT("note", value_age(call->session, value->step, age)));
}

/* Counts tensors without a value; records give the reason for each. */
static int stats_row(struct tensor_rows *rows, gd_node_id node, uint32_t slot)
{
    struct command_call *call = rows->call;
    struct gd_err err = {0};
    struct value value = {.step = -1,
                          .prev_step = -1,
                          .label = inspect_name(call, inspect_tensor_name(call, node, slot)),
                          .arg.ref = {.node = node, .slot = slot}};
    int rc = value_fetch(call, &value, VALUE_STATS, &err);
    if (rc == GD_EINTR) {
        return rc;
    }
    cJSON *item = rc == GD_OK || out_is_json(call->out) ? out_row(rows->table) : NULL;
    if (out_is_json(call->out) && rc == GD_OK) {
        value_record(call, &value, NULL, item);
    } else if (out_is_json(call->out)) {
        out_set(item, OUT_TEXT("name", value.label), OUT_TEXT("error", err.text));
    }
    if (rc == GD_OK) {
        put_stats(rows, &value);
    } else if (rows->missing++ == 0) {
        rows->first_why = inspect_printf(call, "%s", out_safe(call, err.text));
    }
    value_deinit(&value);
    return GD_OK;
}

static int tensor_row(struct tensor_rows *rows, gd_node_id node, uint32_t slot,
                      const struct gd_output *output)
{
    rows->shown++;
    if (rows->want_stats) {
        return stats_row(rows, node, slot);
    }
    plain_row(rows, node, slot, output);
    return GD_OK;
}

static void close_rows(struct tensor_rows *rows, uint64_t hidden)
{
    struct command_call *call = rows->call;
    out_table_end(rows->table);
    out_set(out_record(call->out, "tensors"), OUT_INT("more", hidden));
    if (rows->missing == 1) {
        out_printf(call->out, "1 tensor has no value: %s\n", rows->first_why);
    } else if (rows->missing > 1) {
        out_printf(call->out, "%s have no value; the first: %s\n",
                   inspect_plural(call, rows->missing, "tensor"), rows->first_why);
    }
    if (hidden > 0) {
        out_printf(call->out, "... %s more (tensors -a)\n", inspect_number(call, hidden));
    } else if (rows->shown == 0) {
        out_printf(call->out, "No tensors.\n");
    }
}

static int show_tensors(struct command_call *call, const gd_node_id *nodes, size_t count,
                        bool want_stats, bool all)
{
    struct tensor_rows rows = {.call = call, .want_stats = want_stats};
    uint64_t hidden = 0;
    int rc = GD_OK;
    rows.table = want_stats ? out_table_begin(call->out, "tensors", stats_columns, 8)
                            : out_table_begin(call->out, "tensors", plain_columns, 5);
    for (size_t i = 0; i < count && rc == GD_OK; i++) {
        struct gd_output output;
        for (uint32_t slot = 0;
             rc == GD_OK && gd_graph_output(call->session->graph, nodes[i], slot, &output);
             slot++) {
            if (!all && rows.shown == TENSOR_ROWS) {
                hidden++;
            } else {
                rc = tensor_row(&rows, nodes[i], slot, &output);
            }
        }
    }
    close_rows(&rows, hidden);
    return rc;
}

static int run_tensors(struct command_call *call, struct gd_err *err)
{
    bool want_stats = inspect_take_flag(call, "-s");
    bool all = inspect_take_flag(call, "-a");
    int rc = inspect_no_options(call, err);
    if (rc != GD_OK) {
        return rc;
    }
    /* otherwise each tensor would report it */
    if (want_stats && call->session->state == GD_RUNNING) {
        return gd_fail(err, GD_ESTATE,
                       "the training is running: stop it with \"interrupt\" for tensors -s");
    }
    struct gd_selector *selector = NULL;
    const char *text = call->argc ? inspect_join(call, 0, call->argc) : "all";
    rc = gd_selector_parse(text, &selector, err);
    gd_node_id *nodes = NULL;
    size_t count = 0;
    if (rc == GD_OK) {
        rc = gd_selector_resolve(selector, call->session->graph, &nodes, &count, err);
    }
    gd_selector_destroy(selector);
    if (rc != GD_OK) {
        return rc;
    }
    rc = show_tensors(call, nodes, count, want_stats, all);
    free(nodes);
    return rc == GD_EINTR ? gd_fail(err, rc, "interrupted") : rc;
}

const struct command cmd_tensors = {
    .name = "tensors",
    .aliases = "lt",
    .group = "data",
    .usage = "tensors [SELECTOR] [-s] [-a]",
    .summary = "List tensors with their types and shapes, or with their statistics",
    .help = "  -s  show statistics, computed where the tensors are\n"
            "  -a  show all tensors, not only the first 40",
    .examples = "tensors gradients -s\n"
                "tensors model/block0\n"
                "tensors type:linear -s -a",
    .args = {ARG_SELECTOR},
    .flags = CMD_NEEDS_SESSION | CMD_REPEATS,
    .run = run_tensors,
};
