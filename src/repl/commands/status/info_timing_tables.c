// SPDX-License-Identifier: GPL-3.0-or-later
/* `info timing SUBJECT`. */
#include <stdlib.h>
#include <string.h>

#include "engine/timing/advice.h"
#include "engine/timing/cost.h"
#include "repl/commands/status/info_timing.h"
#include "repl/values/inspect.h"

#define ROWS         20
#define ROWS_BRIEF   5
#define STEP_COLUMNS 10
#define STEP_ROWS    20

/* ---- operators ------------------------------------------------------------------------------- */

struct listing {
    const struct gd_time_report *report;
    enum gd_time_by by;
    double total; /* seconds of all operators */
    struct gd_time_balance balance;
};

static void put_group(struct command_call *call, struct out_table *table,
                      const struct listing *listing, const struct gd_time_group *group)
{
    const struct gd_time_operator *op = &listing->report->op[group->first];
    enum gd_time_bound bound = gd_time_bound_of(&listing->balance, group->flops, group->bytes);
    bool is_one = listing->by == GD_BY_OPERATOR || listing->by == GD_BY_SHAPE;
    char shape[256];
    out_put(table, OUT_TEXT("key", group->key[0] ? group->key : "(none)"),
            OUT_REAL("seconds", group->seconds), OUT_INT("calls", group->calls),
            OUT_INT("operators", group->operators),
            OUT_REAL("mean", group->calls ? group->seconds / (double)group->calls : 0),
            OUT_TEXT("type", op->type), OUT_IF(is_one, OUT_TEXT("name", op->name)),
            OUT_IF(is_one, OUT_TEXT("shape", gd_time_shape_text(op, shape, sizeof(shape)))),
            OUT_IF(is_one && op->out.dtype != GD_DT_NONE,
                   OUT_TEXT("dtype", gd_dtype_name(op->out.dtype))),
            OUT_IF(is_one || listing->by == GD_BY_MODULE, OUT_TEXT("module", op->module)),
            OUT_TEXT("place", op->place), OUT_SOME("phase", gd_time_phase_name(op->phase)),
            OUT_TEXT("lane", gd_time_lane_name(op->lane)),
            OUT_IF(group->flops > 0, OUT_REAL("flops", group->flops)),
            OUT_IF(group->bytes > 0, OUT_REAL("bytes", group->bytes)),
            OUT_SOME("bound", gd_time_bound_name(bound)));
    out_put_text(
        table, OUT_TEXT("time_text", timing_seconds(call, group->seconds)),
        OUT_TEXT("share_text", timing_share(call, group->seconds, listing->total)),
        OUT_TEXT("mean_text",
                 timing_seconds(call, group->calls ? group->seconds / (double)group->calls : 0)),
        OUT_TEXT("bound_text", gd_time_bound_name(bound)));
}

#define TIME_COLUMNS                                                                               \
    {"time_text", "Time", true}, {"share_text", "Share", true}, {"calls", "Calls", true, ":n"},    \
    {                                                                                              \
        "mean_text", "Each", true                                                                  \
    }

static const struct out_column type_columns[] = {
    TIME_COLUMNS, {"bound_text", "Bound", false}, {"key", "Type", false, ":fit40"}};
static const struct out_column shape_columns[] = {TIME_COLUMNS,
                                                  {"bound_text", "Bound", false},
                                                  {"type", "Type", false},
                                                  {"shape", "Inputs", false}};
static const struct out_column module_columns[] = {TIME_COLUMNS,
                                                   {"key", "Module", false, ":fit40"}};
static const struct out_column operator_columns[] = {TIME_COLUMNS,
                                                     {"bound_text", "Bound", false},
                                                     {"place", "Line", false},
                                                     {"key", "Operator", false, ":fit60"}};

static const struct {
    const char *name, *title;
    enum gd_time_by by;
    const struct out_column *columns;
    int count;
} tables[] = {
    {"operators", "Operators", GD_BY_OPERATOR, operator_columns, 7},
    {"types", "Types of operators", GD_BY_TYPE, type_columns, 6},
    {"shapes", "Operators by type, shape and type of number", GD_BY_SHAPE, shape_columns, 7},
    {"modules", "Modules, forward and backward", GD_BY_MODULE, module_columns, 5},
};
#define TABLES (sizeof(tables) / sizeof(tables[0]))

static void say_balance(struct command_call *call, cJSON *record, const struct listing *listing)
{
    const struct gd_time_balance *balance = &listing->balance;
    if (balance->flops <= 0 || balance->bytes <= 0) {
        out_printf(call->out, "Bound: unknown, for no product and elementwise operator of known "
                              "shape took 10 us.\n");
        return;
    }
    out_set(record, OUT_REAL("best_flops", balance->flops), OUT_REAL("best_bytes", balance->bytes));
    out_say(call->out, NULL,
            "Bound by memory below {balance:g3} FLOP per byte: this run's best are {flops:g3} "
            "GFLOP/s ({compute}) and {bytes:g3} GB/s ({memory}).\n",
            OUT_REAL("balance", balance->flops / balance->bytes),
            OUT_REAL("flops", balance->flops / 1e9), OUT_REAL("bytes", balance->bytes / 1e9),
            OUT_TEXT("compute", balance->compute->type), OUT_TEXT("memory", balance->memory->type));
}

/* In JSON mode all rows are shown. */
static int show_groups(struct command_call *call, cJSON *record, const struct listing *listing,
                       size_t table_number, uint32_t most, struct gd_err *err)
{
    struct gd_time_group *groups;
    uint32_t count;
    int rc = gd_time_group_by(listing->report, listing->by, &groups, &count, err);
    if (rc != GD_OK) {
        return rc;
    }
    uint32_t shown = out_is_json(call->out) || count < most ? count : most;
    struct out_table *table =
        out_table_begin(call->out, tables[table_number].name, tables[table_number].columns,
                        tables[table_number].count);
    for (uint32_t i = 0; i < shown; i++) {
        put_group(call, table, listing, &groups[i]);
    }
    out_table_end(table);
    free(groups);
    out_set(
        record, OUT_REAL("operator_seconds", listing->total),
        OUT_IF(listing->report->op_dropped > 0, OUT_INT("dropped", listing->report->op_dropped)));
    if (shown < count) {
        out_printf(call->out, "(%s more: info timing %s -a)\n", inspect_number(call, count - shown),
                   tables[table_number].name);
    }
    return GD_OK;
}

int timing_show_types(struct command_call *call, cJSON *record, const struct gd_time_report *report,
                      bool all, struct gd_err *err)
{
    struct listing listing = {report, GD_BY_TYPE, gd_time_operator_seconds(report),
                              gd_time_balance_of(report)};
    /* The summary's JSON has "operators" already: the slowest nodes of the last step. */
    return show_groups(call, record, &listing, 1, all ? UINT32_MAX : ROWS_BRIEF, err);
}

static int show_table(struct command_call *call, size_t number, const struct gd_time_report *report,
                      bool all, struct gd_err *err)
{
    cJSON *record = out_record(call->out, "timing");
    struct listing listing = {report, tables[number].by, gd_time_operator_seconds(report),
                              gd_time_balance_of(report)};
    out_say(call->out, NULL, "{title}, {time:time} in {steps|measured step}\n",
            OUT_TEXT("title", tables[number].title), OUT_REAL("time", listing.total),
            OUT_INT("steps", report->timed_steps));
    out_set(record, OUT_INT("measured_steps", report->timed_steps));
    int rc = show_groups(call, record, &listing, number, all ? UINT32_MAX : ROWS, err);
    if (rc == GD_OK && listing.by != GD_BY_MODULE) {
        say_balance(call, record, &listing);
    }
    if (rc == GD_OK && listing.by == GD_BY_OPERATOR) {
        timing_show_collectives(call, report);
    }
    return rc;
}

/* ---- steps ----------------------------------------------------------------------------------- */

/* "Compiled" is the column of MindSpore's steps only. */
static int choose_columns(const struct gd_time_step *steps, int count, struct out_column *ret)
{
    static const struct out_column columns[STEP_COLUMNS] = {
        {"step", "Step", true},
        {"epoch", "Epoch", true},
        {"batch", "Batch", true},
        {"total", "Total", true, ":time"},
        {"data", "Data", true, ":time"},
        {"compiled", "Compiled", true, ":time"},
        {"forward", "Forward", true, ":time"},
        {"backward", "Backward", true, ":time"},
        {"optimizer", "Optimizer", true, ":time"},
        {"note", "", false}};
    bool has_compiled = false;
    int chosen = 0;
    for (int i = 0; i < count; i++) {
        has_compiled |= steps[i].part[GD_TIME_COMPILED] >= 0;
    }
    for (int i = 0; i < STEP_COLUMNS; i++) {
        if (has_compiled || strcmp(columns[i].name, "compiled") != 0) {
            ret[chosen++] = columns[i];
        }
    }
    return chosen;
}

static void show_steps(struct command_call *call, const struct gd_time_report *report, bool all)
{
    struct out_column columns[STEP_COLUMNS];
    struct gd_time_step *steps = calloc(GD_TIME_STEPS, sizeof(*steps));
    int count = steps ? gd_time_recent(report, steps,
                                       all || out_is_json(call->out) ? GD_TIME_STEPS : STEP_ROWS)
                      : 0;
    out_record(call->out, "timing");
    struct out_table *table =
        out_table_begin(call->out, "steps", columns, choose_columns(steps, count, columns));
    for (int i = 0; i < count; i++) {
        timing_fill_step(out_row(table), &steps[i]);
        out_put_text(table, OUT_TEXT("note", steps[i].timed ? "measured" : ""));
    }
    out_table_end(table);
    free(steps);
    if (count < report->count && !all && !out_is_json(call->out)) {
        out_printf(call->out, "(the last %d of %s; up to %d: info timing steps -a)\n", count,
                   inspect_plural(call, (uint64_t)report->count, "step"), GD_TIME_STEPS);
    }
}

/* ---- advice ---------------------------------------------------------------------------------- */

static void show_rules(struct command_call *call, cJSON *record)
{
    cJSON *list = out_list(record, "rules");
    out_printf(call->out, "Rules, and when they speak:\n");
    for (const struct gd_advice_rule *rule = gd_advice_rules(); rule->name; rule++) {
        cJSON *object = out_push(list);
        out_set(object, OUT_TEXT("rule", rule->name), OUT_TEXT("threshold", rule->threshold),
                OUT_TEXT("source", rule->source));
        out_say(call->out, object, "  {rule:-16} {threshold} ({source})\n");
    }
}

/* Then no operator can be measured. */
static bool runs_compiled(const struct gd_time_facts *facts)
{
    return strcmp(facts->mode, "graph") == 0 || strcmp(facts->mode, "jit") == 0;
}

void timing_show_advice(struct command_call *call, cJSON *record,
                        const struct gd_time_report *report, bool all)
{
    struct gd_advice *advice = calloc(GD_MAX_ADVICE, sizeof(*advice));
    int count = advice ? gd_time_advice(report, advice) : 0;
    cJSON *list = out_list(record, "advice");
    for (int i = 0; i < count; i++) {
        cJSON *object = out_push(list);
        out_set(object, OUT_TEXT("rule", advice[i].rule), OUT_TEXT("text", advice[i].text),
                OUT_SOME("place", advice[i].place),
                OUT_IF(advice[i].share >= 0, OUT_REAL("share", advice[i].share)));
        out_say(call->out, object, "Advice ({rule}): [{place}: ]{text}\n");
    }
    out_set(record, OUT_INT("examined_steps", report->count),
            OUT_INT("examined_operators", report->op_count));
    if (count == 0) {
        out_say(call->out, record,
                "No advice: {examined_steps|step}, {examined_operators|operator} examined[{?none} "
                "(\"set timing on\" measures operators)]\n",
                OUT_BOOL("none", report->op_count == 0 && !runs_compiled(&report->facts) &&
                                     !gd_session_is_record(call->session)));
    }
    if (all) {
        show_rules(call, record);
    }
    free(advice);
}

/* ---- which one ------------------------------------------------------------------------------- */

static int need_operators(const struct command_call *call, const struct gd_time_report *report,
                          struct gd_err *err)
{
    if (report && report->op_count > 0) {
        return GD_OK;
    }
    if (gd_session_is_record(call->session)) {
        return gd_fail(err, GD_ENODATA, "what is open has no times of operators");
    }
    if (report && runs_compiled(&report->facts)) {
        return gd_fail(err, GD_ENODATA,
                       "no operator was measured: operators inside compiled code are not");
    }
    return gd_fail(err, GD_ENODATA,
                   "no operator was measured: \"set timing on\" measures some of the next steps");
}

int timing_show(struct command_call *call, const char *subject, const struct gd_time_report *report,
                bool all, struct gd_err *err)
{
    bool is_steps = strcmp(subject, "steps") == 0, is_advice = strcmp(subject, "advice") == 0;
    size_t number = 0;
    while (number < TABLES && strcmp(subject, tables[number].name) != 0) {
        number++;
    }
    if (!is_steps && !is_advice && number == TABLES) {
        return gd_fail(err, GD_EUSAGE, "info timing has no '%s': specify %s", subject,
                       TIMING_SUBJECTS);
    }
    if (number < TABLES) {
        int rc = need_operators(call, report, err);
        return rc != GD_OK ? rc : show_table(call, number, report, all, err);
    }
    if (!report || report->count == 0) {
        return gd_fail(err, GD_ENODATA, "the training process has reported no times of steps yet");
    }
    if (is_steps) {
        show_steps(call, report, all);
    } else {
        timing_show_advice(call, out_record(call->out, "timing"), report, true);
    }
    return GD_OK;
}
