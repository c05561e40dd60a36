// SPDX-License-Identifier: GPL-3.0-or-later
/* `info init`: the statistics of initial weights against the usual schemes. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "engine/init_scheme.h"
#include "repl/commands/status/info.h"
#include "repl/values/inspect.h"
#include "repl/values/nodes.h"

#define MAX_ROWS_READ ((int64_t)1 << 20) /* elements of a weight whose rows are compared */

#define ORTHOGONAL 1e-3 /* that products of two rows may be off */

struct totals {
    uint64_t weights, matched, small, unread;
    cJSON *alarms; /* texts */
};

/* Equal rows of a weight that is not constant make units that learn the same. */
static int64_t count_equal_rows(const struct gd_tensor *tensor)
{
    int64_t rows = tensor->shape.dim[0], equal = 0;
    size_t size = gd_tensor_bytes(tensor) / (size_t)rows;

    for (int64_t i = 1; i < rows; i++) {
        equal += memcmp(tensor->data, tensor->data + (size_t)i * size, size) == 0;
    }
    return equal;
}

static int64_t find_equal_rows(struct command_call *call, const struct gd_tensor_ref *ref,
                               const struct gd_shape *shape)
{
    struct gd_tensor *tensor = NULL, *flat = NULL;
    int64_t count = gd_shape_count(shape), equal = 0;

    if (shape->rank < 2 || shape->dim[0] < 2 || count < 4 || count > MAX_ROWS_READ ||
        repl_fetch(call, ref, NULL, &tensor, NULL, NULL) != GD_OK) {
        return 0;
    }
    if (gd_tensor_contiguous(tensor, &flat, NULL) == GD_OK) {
        equal = count_equal_rows(flat);
        gd_tensor_unref(flat);
    }
    gd_tensor_unref(tensor);
    return equal;
}

/* Whether the first rows, or columns if there are fewer of them, are orthogonal. True also where
 * they cannot be read. */
static bool is_orthogonal(struct command_call *call, const struct gd_tensor_ref *ref,
                          const struct gd_shape *shape)
{
    const char *text = shape->dim[0] <= shape->dim[1] ? "[0:4]" : "[:, 0:4]";
    int axis = shape->dim[0] <= shape->dim[1] ? 0 : 1;
    struct gd_tensor *tensor = NULL;
    struct gd_slice slice;
    size_t used;
    bool orthogonal = true;

    if (gd_slice_parse(text, strlen(text), &used, &slice, NULL) != GD_OK ||
        repl_fetch(call, ref, &slice, &tensor, NULL, NULL) != GD_OK) {
        return true;
    }
    int64_t vectors = tensor->shape.dim[axis], length = tensor->shape.dim[1 - axis];
    int64_t wide = tensor->shape.dim[1]; /* elements are numbered row by row */
    for (int64_t i = 0; i < vectors; i++) {
        for (int64_t k = 0; k <= i; k++) {
            double dot = 0;
            for (int64_t at = 0; at < length; at++) {
                dot += gd_tensor_get(tensor, axis ? at * wide + i : i * wide + at) *
                       gd_tensor_get(tensor, axis ? at * wide + k : k * wide + at);
            }
            orthogonal = orthogonal && fabs(dot - (i == k)) < ORTHOGONAL;
        }
    }
    gd_tensor_unref(tensor);
    return orthogonal;
}

/* "He normal (fan_in) 0.0707, Xavier normal 0.069" */
static const char *match_text(struct command_call *call, const struct gd_init_verdict *verdict)
{
    struct gd_buf text = GD_BUF_INIT(1000);

    for (int i = 0; i < verdict->match_count; i++) {
        const struct gd_init_match *match = &verdict->match[i];
        bool named = strncmp(match->name, "N(", 2) == 0 || strchr(match->name, '(');
        gd_buf_printf(&text, "%s%s%s%s%s%s%s %.4g", i > 0 ? ", " : "", match->name,
                      named ? "" : " ", named ? "" : gd_init_shape_name(verdict->shape),
                      match->fan[0] ? " (" : "", match->fan, match->fan[0] ? ")" : "", match->std);
    }
    return inspect_take(call, &text);
}

static const char *scheme_text(struct command_call *call, const struct gd_init_verdict *verdict,
                               const struct gd_stats *stats)
{
    if (stats->count == 0) {
        return "empty";
    }
    if (verdict->shape == GD_INIT_CONSTANT) {
        return stats->min == 0   ? "zeros"
               : stats->min == 1 ? "ones"
                                 : inspect_printf(call, "constant %.6g", stats->min);
    }
    if (verdict->shape == GD_INIT_ORTHOGONAL) {
        return "orthogonal";
    }
    if (verdict->few) {
        return inspect_printf(call, "too few elements to tell (%llu of %d)",
                              (unsigned long long)stats->count, GD_INIT_FEWEST);
    }
    if (verdict->match_count > 0) {
        return match_text(call, verdict);
    }
    return verdict->fan_in == 0 || !verdict->nearest.name
               ? inspect_printf(call, "%s", gd_init_shape_name(verdict->shape))
               : inspect_printf(call, "none; nearest %s%s%s %.4g", verdict->nearest.name,
                                verdict->nearest.fan[0] ? " " : "", verdict->nearest.fan,
                                verdict->nearest.std);
}

static void add_alarm(struct command_call *call, struct totals *totals, const char *name,
                      const char *what)
{
    out_push_text(totals->alarms, inspect_printf(call, "%s: %s", name, what));
}

static void find_alarms(struct command_call *call, struct totals *totals, const char *name,
                        const struct gd_init_verdict *verdict, const struct gd_stats *stats,
                        const struct gd_shape *shape, int64_t equal)
{
    uint64_t bad = stats->nan + stats->pos_inf + stats->neg_inf;
    bool matrix = shape->rank >= 2 && shape->dim[0] > 1 && stats->count > 1;

    if (bad > 0) {
        add_alarm(call, totals, name,
                  inspect_printf(call, "%llu of %llu elements are not finite",
                                 (unsigned long long)bad, (unsigned long long)stats->count));
    } else if (matrix && verdict->shape == GD_INIT_CONSTANT) {
        add_alarm(call, totals, name,
                  stats->min == 0 ? "all zero: nothing passes through it, and its units start equal"
                                  : "constant: its units start equal and learn the same");
    } else if (equal > 0) {
        add_alarm(call, totals, name,
                  inspect_printf(call,
                                 "%lld of %lld rows equal the first: those units learn the same",
                                 (long long)equal, (long long)shape->dim[0]));
    } else if (verdict->far && !strcasestr(name, "emb")) { /* a lookup multiplies nothing */
        double factor = stats->std / verdict->nearest.std;
        add_alarm(
            call, totals, name,
            inspect_printf(call,
                           "std %.4g is %.3g times that of the nearest scheme, %s %.4g: if it "
                           "was drawn at random, activations %s there unless they are "
                           "normalized",
                           stats->std, factor, verdict->nearest.name, verdict->nearest.std,
                           factor > 1 ? "grow" : "shrink"));
    }
}

static void put_weight(struct command_call *call, struct out_table *table, const char *name,
                       const struct gd_shape *shape, const struct gd_stats *stats,
                       const struct gd_init_verdict *verdict)
{
    bool fans = verdict->fan_in > 0;

    out_put(table, OUT_TEXT("node", name), OUT_JSON("shape", inspect_shape_json(shape)),
            OUT_IF(fans, OUT_INT("fan_in", verdict->fan_in)),
            OUT_IF(fans, OUT_INT("fan_out", verdict->fan_out)), OUT_REAL("std", stats->std),
            OUT_REAL("error", verdict->error), OUT_REAL("mean", stats->mean),
            OUT_REAL("min", stats->min), OUT_REAL("max", stats->max),
            OUT_TEXT("distribution", gd_init_shape_name(verdict->shape)),
            OUT_TEXT("scheme", scheme_text(call, verdict, stats)));
}

static int judge_weight(struct command_call *call, struct out_table *table, gd_node_id node,
                        struct totals *totals, struct gd_err *err)
{
    struct gd_tensor_ref ref = {.node = node};
    const char *name = gd_graph_name(call->session->graph, node);
    struct gd_init_verdict verdict;
    struct gd_shape shape;
    struct gd_stats stats;
    enum gd_dtype dtype;
    struct gd_err why = {.code = GD_OK};
    int rc = repl_stats(call, &ref, &dtype, &shape, &stats, NULL, &why);

    if (rc == GD_EINTR) {
        return gd_fail(err, rc, "interrupted");
    }
    if (rc != GD_OK || !gd_dtype_is_float(dtype)) {
        totals->unread += rc != GD_OK;
        return GD_OK;
    }
    struct gd_init_hints hints = {.recurrent = strstr(name, "_ih") || strstr(name, "_hh")};
    gd_init_judge(&shape, &stats, &hints, &verdict);
    if (verdict.shape == GD_INIT_ORTHOGONAL && !is_orthogonal(call, &ref, &shape)) {
        hints.not_orthogonal = true;
        gd_init_judge(&shape, &stats, &hints, &verdict);
    }
    int64_t equal = verdict.shape == GD_INIT_CONSTANT ? 0 : find_equal_rows(call, &ref, &shape);
    totals->weights++;
    totals->small += verdict.few && verdict.shape == GD_INIT_UNKNOWN;
    totals->matched += verdict.match_count > 0 || verdict.shape == GD_INIT_CONSTANT ||
                       verdict.shape == GD_INIT_ORTHOGONAL;
    put_weight(call, table, name, &shape, &stats, &verdict);
    find_alarms(call, totals, name, &verdict, &stats, &shape, equal);
    return GD_OK;
}

static void show_totals(struct command_call *call, const struct totals *totals)
{
    cJSON *record = out_record(call->out, "init");
    int64_t step = gd_session_step(call->session);

    out_set(record, OUT_INT("weights", totals->weights), OUT_INT("matched", totals->matched),
            OUT_INT("small", totals->small), OUT_INT("unread", totals->unread),
            OUT_INT("step", step));
    out_say_each(call->out, totals->alarms, "{}\n");
    out_say(call->out, record,
            "{weights|weight}: {matched} agree with a scheme within 4 sampling errors[, {small} "
            "too small to tell][, {unread} could not be read].\n");
    const char *framework = call->session->peer.framework;
    if (strcasecmp(framework, "pytorch") != 0 && strcasecmp(framework, "mindspore") != 0) {
        out_printf(call->out, "The axes of a weight are taken as (out, in), as in PyTorch.\n");
    }
    if (step > 0) {
        out_say(call->out, record,
                "These are not the initial weights: they were trained for {step|step}.\n");
    }
}

int info_init(struct command_call *call, struct gd_err *err)
{
    static const struct out_column columns[] = {
        {"shape", "Shape", false, ":shape"}, {"fan_in", "fan_in", true},
        {"fan_out", "fan_out", true},        {"std", "std", true, ":g4"},
        {"error", "+-", true, ":g2"},        {"mean", "mean", true, ":g3"},
        {"min", "min", true, ":g4"},         {"max", "max", true, ":g4"},
        {"node", "Weight", false, ":fit60"}, {"scheme", "Scheme and its std", false},
    };
    struct node_list list = {0};
    struct gd_graph_counts counts;
    int rc = info_need_graph(call, &counts, err);

    if (rc != GD_OK) {
        return rc;
    }
    gd_graph_search_kind(call->session->graph, GD_NODE_WEIGHT, node_list_add, &list);
    if (list.count == 0) {
        node_list_deinit(&list);
        return gd_fail(err, GD_ENODATA, "the graph has no weights so far");
    }
    struct totals totals = {.alarms = out_list(out_record(call->out, "init"), "alarms")};
    struct out_table *table = out_table_begin(call->out, "list", columns, 10);
    for (size_t i = 0; rc == GD_OK && i < list.count; i++) {
        rc = judge_weight(call, table, list.node[i], &totals, err);
    }
    out_table_end(table);
    if (rc == GD_OK) {
        show_totals(call, &totals);
    }
    node_list_deinit(&list);
    return rc;
}
