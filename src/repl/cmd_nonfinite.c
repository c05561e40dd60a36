// SPDX-License-Identifier: GPL-3.0-or-later
/* first-nonfinite: the operator that threw the first NaN or infinity of a dump. compare loss: what
 * two trainings printed. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "compare/losslog.h"
#include "compare/nonfinite.h"
#include "repl/commands.h"
#include "repl/compare_files.h"
#include "repl/inspect.h"
#include "repl/work.h"

/* ---- first-nonfinite ------------------------------------------------------------------------- */

struct looking {
    struct command_call *call;
    struct side side;
    struct repl_work work;
};

static int fetch(void *ctx, const struct gd_unit *unit, struct gd_item *item, struct gd_err *err)
{
    struct looking *l = ctx;

    return side_fetch(l->call, &l->side, unit, item, err);
}

static bool go_on(void *ctx, uint64_t done)
{
    struct looking *l = ctx;

    return repl_work_at(&l->work, done);
}

static const char *const kinds[] = {"-", "THROW POINT", "SOURCE", "UNKNOWN-IN"};

static const char *count_text(struct command_call *call, const struct gd_stats *stats)
{
    const char *text = "";

    if (stats->nan) {
        text = inspect_printf(call, "%s NaN", inspect_number(call, stats->nan));
    }
    if (stats->pos_inf) {
        text = inspect_printf(call, "%s%s%s +Inf", text, text[0] ? ", " : "",
                              inspect_number(call, stats->pos_inf));
    }
    if (stats->neg_inf) {
        text = inspect_printf(call, "%s%s%s -Inf", text, text[0] ? ", " : "",
                              inspect_number(call, stats->neg_inf));
    }
    return text[0] ? inspect_printf(call, "%s of %s", text, inspect_number(call, stats->count))
                   : "not finite, by its statistics";
}

static void show_text(struct looking *l, const struct gd_table *table, const struct gd_nonfinite *n)
{
    struct command_call *call = l->call;
    const struct gd_unit *unit = &table->unit[n->unit];

    out_printf(call->out, "First that is not finite");
    if (table->step >= 0) {
        out_printf(call->out, ", step %lld", (long long)table->step);
    }
    if (table->rank > 0) {
        out_printf(call->out, ", rank %d", table->rank);
    }
    out_printf(call->out, ": %s%s%s%s, %s\n", out_safe(call, unit->name), unit->op[0] ? " (" : "",
               out_safe(call, unit->op), unit->op[0] ? ")" : "", kinds[n->kind]);
    out_printf(call->out, "  %s: %s\n", out_safe(call, table->item[n->item].name),
               count_text(call, &n->stats));
    if (n->bad_input != UINT32_MAX) {
        out_printf(call->out,
                   "  its input %s is not finite either, and nothing before it in the dump made "
                   "that: it came with the data, a parameter, or a node that was not dumped\n",
                   out_safe(call, table->item[n->bad_input].name));
    } else if (n->has_range) {
        out_printf(call->out, "  its inputs are finite, from %s to %s\n",
                   inspect_double(call, n->least), inspect_double(call, n->most));
    }
    if (n->hint[0]) {
        out_printf(call->out, "  likely: %s\n", n->hint);
    }
}

static void show_notes(struct looking *l, const struct gd_table *table,
                       const struct gd_nonfinite *n)
{
    for (size_t i = 0; i < n->mask_count; i++) {
        out_printf(l->call->out, "note: %s holds -Inf, as a mask does on purpose\n",
                   out_safe(l->call, table->unit[n->masks[i]].name));
    }
    for (size_t i = 0; i < n->close_count; i++) {
        out_printf(l->call->out, "note: %s is within a tenth of what its type can hold\n",
                   out_safe(l->call, table->unit[n->close_calls[i]].name));
    }
}

static void show_record(struct looking *l, const struct gd_table *table,
                        const struct gd_nonfinite *n)
{
    struct command_call *call = l->call;
    cJSON *object = out_record(call->out, "first-nonfinite");

    cJSON_AddBoolToObject(object, "found", n->kind != GD_THROW_NONE);
    if (n->kind == GD_THROW_NONE) {
        return;
    }
    cJSON_AddStringToObject(object, "kind",
                            n->kind == GD_THROW_POINT    ? "throw-point"
                            : n->kind == GD_THROW_SOURCE ? "source"
                                                         : "unknown-in");
    inspect_add_text(call, object, "node", table->unit[n->unit].name);
    inspect_add_text(call, object, "op", table->unit[n->unit].op);
    inspect_add_text(call, object, "tensor", table->item[n->item].name);
    if (table->step >= 0) {
        inspect_add_count(object, "step", (uint64_t)table->step);
    }
    if (table->rank >= 0) {
        inspect_add_count(object, "rank", (uint64_t)table->rank);
    }
    inspect_add_count(object, "nan", n->stats.nan);
    inspect_add_count(object, "pos_inf", n->stats.pos_inf);
    inspect_add_count(object, "neg_inf", n->stats.neg_inf);
    if (n->bad_input != UINT32_MAX) {
        inspect_add_text(call, object, "bad_input", table->item[n->bad_input].name);
    }
    if (n->has_range) {
        inspect_add_double(object, "inputs_min", n->least);
        inspect_add_double(object, "inputs_max", n->most);
    }
    if (n->hint[0]) {
        cJSON_AddStringToObject(object, "hint", n->hint);
    }
}

static int look_in_step(struct looking *l, const struct compare_step *step, bool last, bool *found,
                        struct gd_err *err)
{
    struct gd_nonfinite n;
    struct gd_table table;
    int rc = side_load(l->call, &l->side, step->rank_a, step->a, &table, err);

    if (rc != GD_OK) {
        return rc;
    }
    repl_work_begin_count(&l->work, l->call, "looking for what is not finite", "nodes",
                          table.unit_count);
    rc = gd_nonfinite_find(&table, fetch, go_on, l, &n, err);
    rc = repl_work_end(&l->work, rc, err);
    *found = rc == GD_OK && n.kind != GD_THROW_NONE;
    if (rc == GD_OK && !out_is_json(l->call->out)) {
        show_notes(l, &table, &n);
    }
    if (rc == GD_OK && out_is_json(l->call->out) && (*found || last)) {
        show_record(l, &table, &n);
    } else if (*found) {
        show_text(l, &table, &n);
    }
    gd_table_deinit(&table);
    return rc;
}

static int by_step(const void *a, const void *b)
{
    const struct compare_step *x = a, *y = b;

    if (x->a != y->a) {
        return x->a < y->a ? -1 : 1;
    }
    return x->rank_a < y->rank_a ? -1 : x->rank_a > y->rank_a;
}

static int look_everywhere(struct looking *l, const struct compare_options *options,
                           struct gd_err *err)
{
    const struct side nothing = {.label = l->side.label};
    struct compare_step *steps;
    bool found = false;
    size_t count;
    int rc = compare_steps(l->call, &l->side, &nothing, options, &steps, &count, err);

    /* of a dump alone all steps are wanted, not the last */
    if (rc == GD_OK && l->side.catalog_count > 0 && options->step == INT64_MIN) {
        free(steps);
        steps = NULL;
        count = 0;
        for (size_t rank = 0; rank < l->side.catalog_count; rank++) {
            size_t many;
            const struct gd_catalog_step *has = side_steps(&l->side, rank, &many);
            struct compare_step *more = reallocarray(steps, count + many + 1, sizeof(*more));

            if (!more) {
                free(steps);
                return gd_fail(err, GD_ENOMEM, "out of memory for a list of steps");
            }
            steps = more;
            for (size_t i = 0; i < many; i++) {
                steps[count++] = (struct compare_step){rank, 0, has[i].step, -1};
            }
            if (many == 0) {
                steps[count++] = (struct compare_step){rank, 0, -1, -1};
            }
        }
        qsort(steps, count, sizeof(*steps), by_step);
    }
    for (size_t i = 0; rc == GD_OK && !found && i < count; i++) {
        rc = look_in_step(l, &steps[i], i + 1 == count, &found, err);
    }
    if (rc == GD_OK && !found) {
        out_printf(l->call->out, "%s is finite.\n",
                   l->side.kind == SIDE_LIVE ? "All that the training holds now"
                                             : "Everything that was dumped");
    }
    if (found) {
        compare_set_status(l->call->repl);
    }
    free(steps);
    return rc;
}

static int run_nonfinite(struct command_call *call, struct gd_err *err)
{
    struct looking l = {.call = call};
    struct compare_options options;
    int rc = compare_options_take(call, &options, err);

    if (rc == GD_OK && call->argc == 0) {
        rc = inspect_session(call, err);
        if (rc == GD_OK) {
            rc = side_open(call, inspect_printf(call, "@%d", call->session->number), &l.side, err);
        }
    } else if (rc == GD_OK && call->argc == 1) {
        rc = side_open_whole(call, call->argv[0], &l.side, err);
    } else if (rc == GD_OK) {
        rc = gd_fail(err, GD_EUSAGE, "first-nonfinite: of one dump, or of the session");
    }
    if (rc == GD_OK) {
        rc = look_everywhere(&l, &options, err);
        side_close(&l.side);
    }
    compare_options_free(&options);
    return rc;
}

const struct command cmd_nonfinite_table[] = {
    {
        .name = "first-nonfinite",
        .group = "data",
        .usage = "first-nonfinite [PATH | @SESSION] [--step N] [--rank N]",
        .summary = "The operator that threw the first NaN or infinity",
        .help =
            "Looks through a dump, a directory of tensor files, or what a stopped training holds,\n"
            "in order of execution, step after step, for the first output that is not finite:\n"
            "  THROW POINT  all its inputs that are known are finite\n"
            "  SOURCE       an input is not finite, and nothing in the dump made it\n"
            "  UNKNOWN-IN   its inputs are not known\n"
            "with the range of the inputs and what it usually comes from. Memory that nobody "
            "wrote\n"
            "(empty, receive buffers) and masks of -Inf are passed over. Without a path it is the\n"
            "session. gradb --batch ends with status 6 when something is found.\n"
            "\n"
            "  first-nonfinite\n"
            "  first-nonfinite dump/ --step 12\n",
        .args = {ARG_FILE},
        .flags = 0,
        .run = run_nonfinite,
    },
    {.name = NULL},
};

/* ---- compare loss ---------------------------------------------------------------------------- */

static void log_row(struct command_call *call, struct out_table *table, const char *path,
                    const struct gd_loss_log *log)
{
    struct gd_loss_figures f;

    gd_loss_figures(log, &f);
    const char *cells[] = {inspect_name(call, path),
                           inspect_printf(call, "%zu", log->count),
                           inspect_printf(call, "%.10g", f.min),
                           inspect_printf(call, "%.10g", f.max),
                           inspect_printf(call, "%.10g", f.mean),
                           inspect_printf(call, "%zu", f.nonfinite),
                           inspect_printf(call, "%zu", f.overflows),
                           inspect_printf(call, "%zu", f.longest_run),
                           inspect_printf(call, "%zu", f.last_hundred),
                           isnan(f.least_scale) ? "-" : inspect_printf(call, "%g", f.least_scale)};
    out_table_row(table, cells);
}

static const char *place(struct command_call *call, const struct gd_loss_log *log, size_t i)
{
    return log->loss[i].step >= 0 ? inspect_printf(call, "step %lld", (long long)log->loss[i].step)
                                  : inspect_printf(call, "loss number %zu", i + 1);
}

/* What a loss scaler's life tells. */
static void log_advice(struct command_call *call, const char *path, const struct gd_loss_log *log)
{
    struct gd_loss_figures f;

    gd_loss_figures(log, &f);
    if (f.first_nonfinite < log->count) {
        out_printf(call->out, "%s: the loss is not finite first at %s\n", out_safe(call, path),
                   place(call, log, f.first_nonfinite));
    }
    if (f.longest_run > 1000) {
        out_printf(call->out,
                   "%s: %zu overflows in a row, which a dynamic scaler takes for the end\n",
                   out_safe(call, path), f.longest_run);
    } else if (f.last_counted && f.last_hundred * 2 > f.last_counted) {
        out_printf(call->out, "%s: overflows do not end: %zu of the last %zu steps were skipped\n",
                   out_safe(call, path), f.last_hundred, f.last_counted);
    }
    if (f.least_scale <= 1) {
        out_printf(call->out, "%s: the scale went down to %g and cannot shrink further\n",
                   out_safe(call, path), f.least_scale);
    }
}

static void difference_record(struct command_call *call, const struct gd_loss_log *right,
                              const struct gd_loss_difference *d)
{
    cJSON *object = out_record(call->out, "loss");

    inspect_add_count(object, "pairs", d->pairs);
    cJSON_AddBoolToObject(object, "by_step", d->by_step);
    inspect_add_double(object, "max_abs", d->max_abs);
    inspect_add_double(object, "max_rel", d->max_rel);
    cJSON_AddBoolToObject(object, "differ", d->differs);
    if (d->differs) {
        inspect_add_count(object, "first_a", d->first_a);
        inspect_add_count(object, "first_b", d->first_b);
        if (right->loss[d->first_b].step >= 0) {
            inspect_add_count(object, "first_step", (uint64_t)right->loss[d->first_b].step);
        }
    }
}

static void show_difference(struct command_call *call, const struct gd_loss_log *logs,
                            double tolerance)
{
    struct gd_loss_difference d;

    gd_loss_compare(&logs[0], &logs[1], tolerance, &d);
    if (out_is_json(call->out)) {
        difference_record(call, &logs[1], &d);
    }
    out_printf(call->out, "%zu pairs by %s: max |l-r| %.10g, max |l-r|/l %.10g\n", d.pairs,
               d.by_step ? "step" : "order", d.max_abs, d.max_rel);
    if (d.differs) {
        out_printf(call->out,
                   "They differ by more than %g of the larger first at %s: %.10g and %.10g\n",
                   tolerance, place(call, &logs[1], d.first_b), logs[0].loss[d.first_a].value,
                   logs[1].loss[d.first_b].value);
        out_printf(call->out,
                   d.first_b == 0
                       ? "The first loss differs already: same input, weights and seed? "
                         "Then first-divergence of the forward pass.\n"
                       : "The first losses agree: compare gradients and weights after the "
                         "first step.\n");
        compare_set_status(call->repl);
    } else {
        out_printf(call->out, "They agree within %g.\n", tolerance);
    }
}

static void show_logs(struct command_call *call, const struct gd_loss_log *logs, double tolerance)
{
    static const struct out_column columns[] = {{"log", "Log", false},
                                                {"losses", "Losses", true},
                                                {"min", "Min", true},
                                                {"max", "Max", true},
                                                {"mean", "Mean", true},
                                                {"nonfinite", "Not finite", true},
                                                {"overflows", "Overflows", true},
                                                {"longest_run", "In a row", true},
                                                {"last_hundred", "Of the last 100", true},
                                                {"least_scale", "Least scale", true}};
    struct out_table *table = out_table_begin(call->out, "loss", columns, 10);

    for (int i = 0; i < call->argc; i++) {
        log_row(call, table, call->argv[i], &logs[i]);
    }
    out_table_end(table);
    for (int i = 0; i < call->argc; i++) {
        log_advice(call, call->argv[i], &logs[i]);
    }
    if (call->argc > 1) {
        show_difference(call, logs, tolerance);
    }
}

int compare_loss(struct command_call *call, struct gd_err *err)
{
    struct gd_loss_log logs[2] = {{.loss = NULL}, {.loss = NULL}};
    struct compare_options options;
    const char *tag = "loss";
    int rc;

    call->argc--;
    call->argv++;
    for (int i = 0; i + 1 < call->argc; i++) {
        if (strcmp(call->argv[i], "--tag") == 0) {
            tag = call->argv[i + 1];
            memmove(&call->argv[i], &call->argv[i + 2],
                    (size_t)(call->argc - i - 2) * sizeof(*call->argv));
            call->argc -= 2;
        }
    }
    rc = compare_options_take(call, &options, err);
    if (rc == GD_OK && (call->argc < 1 || call->argc > 2)) {
        rc = gd_fail(err, GD_EUSAGE, "compare loss: one log, or two");
    }
    if (rc == GD_OK) {
        rc = repl_check_seal(call->repl, err);
    }
    for (int i = 0; rc == GD_OK && i < call->argc; i++) {
        rc = gd_loss_log_read(call->argv[i], tag, &logs[i], err);
    }
    if (rc == GD_OK) {
        show_logs(call, logs, options.has_rtol ? options.rtol : 1e-3);
    }
    gd_loss_log_free(&logs[0]);
    gd_loss_log_free(&logs[1]);
    compare_options_free(&options);
    return rc;
}
