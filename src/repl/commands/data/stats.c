// SPDX-License-Identifier: GPL-3.0-or-later
/* Commands: stats */
#include <math.h>

#include "repl/values/inspect.h"
#include "repl/values/value.h"

static void print_share(struct command_call *call, const char *title, uint64_t part,
                        const struct gd_stats *of, unsigned bit)
{
    uint64_t count = of->unknown & GD_UNKNOWN_COUNT ? 0 : of->count;

    bool bound = (of->unknown & bit) != 0;

    if (bound && (part == 0 || !(bit & (GD_UNKNOWN_NAN | GD_UNKNOWN_INF)))) {
        return; /* a dump may lack some statistics */
    }
    out_printf(call->out, "  %-12s %s%s", title, bound ? "at least " : "",
               inspect_number(call, part));
    if (part > 0 && count > 0 && !bound) {
        out_printf(call->out, " (%.3g %%)", 100.0 * (double)part / (double)count);
    }
    out_printf(call->out, "\n");
}

static void print_stats(struct command_call *call, const struct value *value)
{
    const struct gd_stats *s = &value->stats;
    size_t bytes = 0;
    gd_shape_bytes(&value->shape, value->dtype, &bytes, NULL);
    out_printf(call->out, "%s\n", value_title(call, value));
    if (!(s->unknown & GD_UNKNOWN_COUNT)) { /* otherwise the shape is unknown */
        out_printf(call->out, "  %-12s %s %s\n", "type", gd_dtype_name(value->dtype),
                   inspect_shape(call, &value->shape));
        out_printf(call->out, "  %-12s %s (%s)\n", "elements", inspect_number(call, s->count),
                   inspect_bytes(call, bytes));
    }
    print_share(call, "NaN", s->nan, s, GD_UNKNOWN_NAN);
    print_share(call, "+Inf", s->pos_inf, s, GD_UNKNOWN_INF);
    print_share(call, "-Inf", s->neg_inf, s, GD_UNKNOWN_INF);
    print_share(call, "zeros", s->zero, s, GD_UNKNOWN_ZERO);
    print_share(call, "positive", s->positive, s, GD_UNKNOWN_SIGNS);
    print_share(call, "negative", s->negative, s, GD_UNKNOWN_SIGNS);
    print_share(call, "denormal", s->denormal, s, GD_UNKNOWN_REST);
    if (s->count > s->nan + s->pos_inf + s->neg_inf || (s->unknown & GD_UNKNOWN_COUNT)) {
        const struct {
            const char *title;
            double value;
            unsigned bit;
        } rows[] = {{"min", s->min, GD_UNKNOWN_MIN},
                    {"max", s->max, GD_UNKNOWN_MAX},
                    {"mean", s->mean, GD_UNKNOWN_MEAN},
                    {"mean |x|", s->abs_mean, GD_UNKNOWN_REST},
                    {"deviation", s->std, GD_UNKNOWN_REST},
                    {"L2 norm", sqrt(s->sum_sq), GD_UNKNOWN_SUM_SQ}};
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
            if (!(s->unknown & rows[i].bit)) {
                out_printf(call->out, "  %-12s %.9g\n", rows[i].title, rows[i].value);
            }
        }
    } else if (s->count > 0) {
        out_printf(call->out, "  no finite element\n");
    }
    if (s->unknown) {
        out_printf(call->out, "  from the dump, which has no other statistics\n");
    }
}

static int run_stats(struct command_call *call, struct gd_err *err)
{
    enum value_which which = value_take_which(call);
    inspect_join_slices(call);
    if (call->argc > 1) {
        return gd_fail(err, GD_EUSAGE,
                       "stats: specify one tensor; `tensors SELECTOR -s` makes a table");
    }
    struct value value;
    int rc = value_parse(call, call->argc ? call->argv[0] : NULL, &value, err);
    if (rc != GD_OK) {
        return rc;
    }
    value.which = which;
    rc = value_fetch(call, &value, VALUE_STATS, err);
    if (rc == GD_OK && !value.has_stats) {
        rc = gd_fail(err, GD_EUNSUPPORTED, "%s elements have no statistics",
                     gd_dtype_name(value.dtype));
    }
    if (rc == GD_OK && out_is_json(call->out)) {
        value_record(call, &value, NULL, out_record(call->out, "tensor"));
    } else if (rc == GD_OK) {
        print_stats(call, &value);
        if (value.has_change) {
            value_print_change(call, &value.change, value.has_change_count);
        }
    }
    value_deinit(&value);
    return rc;
}

const struct command cmd_stats = {
    .name = "stats",
    .aliases = "hist histogram",
    .group = "data",
    .usage = "stats [NODE[:SLOT][SLICE]|$N] [prev|diff]",
    .summary = "Show all statistics of a tensor",
    .help =
        "Minimum, maximum and mean are those of the finite elements; counts cover all elements.\n"
        "They are computed where the tensor is. `diff` shows the statistics of the change since\n"
        "the previous step.",
    .examples = "stats model/block0/attn/softmax\n"
                "stats model/head/weight diff",
    .args = {ARG_TENSOR},
    .flags = CMD_REPEATS,
    .run = run_stats,
};
