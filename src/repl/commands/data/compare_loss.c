// SPDX-License-Identifier: GPL-3.0-or-later
/* `compare loss`: two logs, number by number. */
#include <math.h>

#include "compare/losslog.h"
#include "repl/compare/compare_files.h"
#include "repl/values/inspect.h"

static void log_row(struct command_call *call, struct out_table *table, const char *path,
                    const struct gd_loss_log *log)
{
    struct gd_loss_figures f;

    gd_loss_figures(log, &f);
    out_put(table, OUT_TEXT("log", path), OUT_INT("losses", log->count),
            OUT_NUMERAL("min", inspect_printf(call, "%.10g", f.min)),
            OUT_NUMERAL("max", inspect_printf(call, "%.10g", f.max)),
            OUT_NUMERAL("mean", inspect_printf(call, "%.10g", f.mean)),
            OUT_INT("nonfinite", f.nonfinite), OUT_INT("overflows", f.overflows),
            OUT_INT("longest_run", f.longest_run), OUT_INT("last_hundred", f.last_hundred),
            OUT_NUMERAL("least_scale",
                        isnan(f.least_scale) ? "-" : inspect_printf(call, "%g", f.least_scale)));
}

static const char *place_text(struct command_call *call, const struct gd_loss_log *log, size_t i)
{
    const struct gd_loss *loss = &log->loss[i];

    if (loss->step >= 0 && log->has_epochs && !log->has_steps) {
        return inspect_printf(call, "epoch %lld, step %lld", (long long)loss->epoch,
                              (long long)loss->step);
    }
    return loss->step >= 0 ? inspect_printf(call, "step %lld", (long long)loss->step)
                           : inspect_printf(call, "loss number %zu", i + 1);
}

/* What the history of a loss scaler shows. */
static void log_advice(struct command_call *call, const char *path, const struct gd_loss_log *log)
{
    struct gd_loss_figures f;

    gd_loss_figures(log, &f);
    if (f.first_nonfinite < log->count) {
        out_printf(call->out, "%s: the loss is first non-finite at %s\n", out_safe(call, path),
                   place_text(call, log, f.first_nonfinite));
    }
    if (f.longest_run > 1000) {
        out_printf(call->out, "%s: %zu overflows in a row: a dynamic scaler gives up\n",
                   out_safe(call, path), f.longest_run);
    } else if (f.last_counted && f.last_hundred * 2 > f.last_counted) {
        out_printf(call->out, "%s: overflows continue: %zu of the last %zu steps were skipped\n",
                   out_safe(call, path), f.last_hundred, f.last_counted);
    }
    if (f.least_scale <= 1) {
        out_printf(call->out, "%s: the loss scale fell to %g and cannot shrink further\n",
                   out_safe(call, path), f.least_scale);
    }
}

static cJSON *difference_record(struct command_call *call, const struct gd_loss_log *logs,
                                const struct gd_loss_difference *d)
{
    cJSON *record = out_record(call->out, "loss");

    out_set(record, OUT_INT("pairs", d->pairs), OUT_INT("same_nonfinite", d->nonfinite),
            OUT_INT("unmatched_a", logs[0].count - d->pairs),
            OUT_INT("unmatched_b", logs[1].count - d->pairs), OUT_BOOL("by_step", d->by_step),
            OUT_REAL("max_abs", d->max_abs), OUT_REAL("max_rel", d->max_rel),
            OUT_BOOL("differ", d->differs));
    if (d->differs) {
        const struct gd_loss *first = &logs[1].loss[d->first_b];
        out_set(record, OUT_INT("first_a", d->first_a), OUT_INT("first_b", d->first_b),
                OUT_IF(first->step >= 0, OUT_INT("first_step", first->step)),
                OUT_IF(first->epoch >= 0, OUT_INT("first_epoch", first->epoch)));
    }
    return record;
}

static int show_difference(struct command_call *call, const struct gd_loss_log *logs,
                           double tolerance, struct gd_err *err)
{
    struct gd_loss_difference d;

    gd_loss_compare(&logs[0], &logs[1], tolerance, &d);
    if (d.pairs == 0) {
        return gd_fail(err, GD_ENODATA,
                       "compare loss: the logs have no step in common (%zu and %zu losses)",
                       logs[0].count, logs[1].count);
    }
    cJSON *record = difference_record(call, logs, &d);
    out_say(call->out, record,
            "{pairs} pairs by {order}: max |l-r| {max_abs:g10}, max |l-r|/l {max_rel:g10}\n",
            OUT_TEXT("order", d.by_step ? "step" : "order"));
    if (!d.differs) {
        size_t alone_a = logs[0].count - d.pairs, alone_b = logs[1].count - d.pairs;
        out_say(call->out, record,
                "The losses agree within {tolerance:g6} in {pairs|pair}"
                "[, {same_nonfinite} of them NaN or infinite on both sides]"
                "[; without a counterpart: {alone}].\n",
                OUT_REAL("tolerance", tolerance),
                OUT_TEXT("alone", alone_a + alone_b > 0
                                      ? inspect_printf(call, "%zu and %zu", alone_a, alone_b)
                                      : ""));
        return GD_OK;
    }
    out_printf(call->out,
               "They first differ by more than %g of the larger at %s: %.10g and %.10g\n",
               tolerance, place_text(call, &logs[1], d.first_b), logs[0].loss[d.first_a].value,
               logs[1].loss[d.first_b].value);
    out_printf(call->out,
               d.first_b == 0
                   ? "The first loss already differs. Check input, weights and seed, then run "
                     "first-divergence on the forward pass.\n"
                   : "The first losses agree: compare gradients and weights after the "
                     "first step.\n");
    repl_add_status(call->repl, STATUS_DIFFERS);
    return GD_OK;
}

static int show_logs(struct command_call *call, const struct gd_loss_log *logs, double tolerance,
                     struct gd_err *err)
{
    static const struct out_column columns[] = {{"log", "Log", false},
                                                {"losses", "Losses", true},
                                                {"min", "Min", true, ":g10"},
                                                {"max", "Max", true, ":g10"},
                                                {"mean", "Mean", true, ":g10"},
                                                {"nonfinite", "Not finite", true},
                                                {"overflows", "Overflows", true},
                                                {"longest_run", "In a row", true},
                                                {"last_hundred", "Of the last 100", true},
                                                {"least_scale", "Least scale", true, ":g6"}};
    struct out_table *table = out_table_begin(call->out, "loss", columns, 10);

    for (int i = 0; i < call->argc; i++) {
        log_row(call, table, call->argv[i], &logs[i]);
    }
    out_table_end(table);
    for (int i = 0; i < call->argc; i++) {
        log_advice(call, call->argv[i], &logs[i]);
    }
    return call->argc > 1 ? show_difference(call, logs, tolerance, err) : GD_OK;
}

int compare_loss(struct command_call *call, struct gd_err *err)
{
    struct gd_loss_log logs[2] = {{.loss = NULL}, {.loss = NULL}};
    struct compare_options options = {.map = NULL};

    call->argc--;
    call->argv++;
    const char *tag = "loss";
    int rc = inspect_take_option(call, "--tag", &tag, err);
    rc = rc != GD_OK ? rc : compare_options_take(call, &options, err);
    if (rc == GD_OK && (call->argc < 1 || call->argc > 2)) {
        rc = gd_fail(err, GD_EUSAGE, "compare loss: specify one or two logs");
    }
    rc = rc != GD_OK ? rc : repl_check_seal(call->repl, err);
    for (int i = 0; rc == GD_OK && i < call->argc; i++) {
        rc = gd_loss_log_read(call->argv[i], tag, &logs[i], err);
    }
    if (rc == GD_OK) {
        rc = show_logs(call, logs, options.has_rtol ? options.rtol : 1e-3, err);
    }
    gd_loss_log_free(&logs[0]);
    gd_loss_log_free(&logs[1]);
    compare_options_free(&options);
    return rc;
}
