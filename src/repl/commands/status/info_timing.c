// SPDX-License-Identifier: GPL-3.0-or-later
/* `info timing`: the summary. info_timing_tables.c has its tables. */
#include <string.h>

#include "engine/timing/advice.h"
#include "repl/commands/status/info_timing.h"
#include "repl/values/inspect.h"

#define SLOWEST_SHOWN      3
#define COMPILATIONS_SHOWN 4

/* ---- by our clock -------------------------------------------------------------------------- */

struct times {
    double age, running, stopped; /* seconds, including the current stop or run */
};

/* The engine adds a stop or run to its sum when it ends; this adds the current one. */
static struct times times_of(struct command_call *call)
{
    const struct gd_session *session = call->session;
    const struct gd_timing *timing = &session->timing;
    struct times times = {.running = timing->running, .stopped = timing->stopped};
    if (!gd_session_is_live(session)) {
        times.age = times.running + times.stopped;
        return times;
    }
    times.age = call->debugger->now(call->debugger->now_ctx) - timing->connected_at;
    double rest = times.age - times.running - times.stopped;
    if (rest > 0 && session->state == GD_STOPPED) {
        times.stopped += rest;
    } else if (rest > 0 && session->state == GD_RUNNING) {
        times.running += rest;
    }
    return times;
}

static void show_times(struct command_call *call, const struct times *times)
{
    const struct gd_timing *timing = &call->session->timing;
    cJSON *record = out_record(call->out, "timing");
    const struct gd_time_report *report = call->session->times;
    int64_t steps = report && report->count > timing->steps_run ? report->count : timing->steps_run;
    bool any = steps > 0 && times->running > 0;
    bool shown = times->age > 0 || gd_session_is_live(call->session);
    out_set(
        record, OUT_REAL("connected_seconds", times->age),
        OUT_REAL("running_seconds", times->running), OUT_REAL("stopped_seconds", times->stopped),
        OUT_REAL("last_run_seconds", timing->last_run), OUT_INT("steps", steps),
        OUT_INT("last_run_steps", timing->last_run_steps),
        OUT_IF(times->running > 0, OUT_REAL("steps_per_second", (double)steps / times->running)),
        OUT_IF(times->age > 0, OUT_REAL("stopped_share", times->stopped / times->age)));
    if (!shown) {
        return; /* a recorded run */
    }
    out_say(call->out, record,
            "Connected for {connected_seconds:time}: {running_seconds:time} running, "
            "{stopped_seconds:time} stopped[{?age} ({percent:g3} %)]\n"
            "[{?any}Steps: {steps:n}, {steps_per_second:g4} per second, {each:time} each\n]"
            "[{?last_run_seconds}Last run: {last_run_seconds:time}[, {last_run_steps|step}]\n]",
            OUT_BOOL("age", times->age > 0), OUT_BOOL("any", any),
            OUT_REAL("percent", times->age > 0 ? 100 * times->stopped / times->age : 0),
            OUT_REAL("each", any ? times->running / (double)steps : 0));
}

/* ---- by the training's --------------------------------------------------------------------- */

/* Columns for each part of a step; seconds, negative: unknown. */
enum column { LAST, MEDIAN, MEAN, COLUMNS };

static double seconds_of(const struct gd_time_report *report, enum column column, enum gd_time part)
{
    return column == LAST     ? report->last.part[part]
           : column == MEDIAN ? gd_time_spread_of(report, GD_SERIES_PART, part).median
                              : gd_time_mean(report, part);
}

const char *timing_share(struct command_call *call, double seconds, double total)
{
    return seconds >= 0 && total > 0 ? inspect_printf(call, "%.1f%%", 100 * seconds / total) : "";
}

const char *timing_seconds(struct command_call *call, double seconds)
{
    return seconds < 0 ? "?" : seconds == 0 ? "0" : inspect_duration(call, seconds);
}

/* A share is relative to its column's total. Shares of medians need not add up to 100 %. */
static void part_text(struct command_call *call, const struct gd_time_report *report,
                      enum gd_time part)
{
    out_printf(call->out, "  %-9s", gd_time_name(part));
    for (enum column column = 0; column < COLUMNS; column++) {
        double seconds = seconds_of(report, column, part);
        out_printf(call->out, " %10s %6s%s", timing_seconds(call, seconds),
                   timing_share(call, seconds, seconds_of(report, column, GD_TIME_TOTAL)),
                   column == MEAN ? "\n" : " ");
    }
}

static void parts_text(struct command_call *call, const struct gd_time_report *report)
{
    const char *median = report->count > GD_TIME_STEPS
                             ? inspect_printf(call, "median of %d", GD_TIME_STEPS)
                             : "median";
    out_printf(
        call->out, "\n%-11s %17s  %17s  %17s\n", "Per step",
        inspect_printf(call, "step %lld", (long long)report->last.step), median,
        inspect_printf(call, "mean of %s", inspect_plural(call, (uint64_t)report->count, "step")));
    for (enum gd_time part = 0; part < GD_TIMES; part++) {
        if (seconds_of(report, LAST, part) >= 0 || seconds_of(report, MEDIAN, part) >= 0) {
            part_text(call, report, part);
        }
    }
}

static cJSON *column_record(const struct gd_time_report *report, enum column column)
{
    cJSON *object = cJSON_CreateObject();
    for (enum gd_time part = 0; part < GD_TIMES; part++) {
        double seconds = seconds_of(report, column, part);
        out_set(object, OUT_IF(seconds >= 0, OUT_REAL(gd_time_name(part), seconds)));
    }
    return object;
}

void timing_fill_step(cJSON *object, const struct gd_time_step *step)
{
    out_set(object, OUT_INT("step", step->step),
            OUT_IF(step->epoch > 0, OUT_INT("epoch", step->epoch)),
            OUT_IF(step->batch > 0, OUT_INT("batch", step->batch)));
    for (enum gd_time part = 0; part < GD_TIMES; part++) {
        out_set(object,
                OUT_IF(step->part[part] >= 0, OUT_REAL(gd_time_name(part), step->part[part])));
    }
    out_set(object, OUT_IF(step->tail >= 0, OUT_REAL("tail", step->tail)),
            OUT_IF(step->communication >= 0, OUT_REAL("communication", step->communication)),
            OUT_IF(step->exposed >= 0, OUT_REAL("exposed", step->exposed)),
            OUT_IF(step->cost >= 0, OUT_REAL("cost", step->cost)),
            OUT_BOOL("measured", step->timed));
}

/* ---- first, spread, slowest ------------------------------------------------------------------ */

static void fill_spread(cJSON *object, const struct gd_time_spread *spread)
{
    out_set(object, OUT_INT("steps", spread->count), OUT_REAL("median", spread->median),
            OUT_REAL("low", spread->low), OUT_REAL("high", spread->high),
            OUT_REAL("deviation", spread->deviation));
}

/* Of the first step, where it is known which step had how much of it; else of all. */
static double first_compile_time(const struct gd_time_report *report)
{
    const struct gd_time_facts *facts = &report->facts;
    double seconds = 0;
    for (int i = 0; i < facts->compilation_count; i++) {
        const struct gd_time_compile *one = &facts->compilation[i];
        seconds += one->step <= report->first.step ? one->seconds : 0;
    }
    return facts->compilation_count > 0 ? seconds : facts->compile;
}

static void show_first(struct command_call *call, cJSON *record,
                       const struct gd_time_report *report, const struct gd_time_spread *spread)
{
    double first = report->first.part[GD_TIME_TOTAL], compile = first_compile_time(report);
    if (first < 0) {
        return;
    }
    timing_fill_step(out_object(record, "first"), &report->first);
    out_set(record,
            OUT_IF(report->facts.compile >= 0, OUT_REAL("compile_seconds", report->facts.compile)));
    out_say(call->out, NULL,
            "First step (step {step}): {first:time}[, {times:g3} times the median]"
            "[; compiling took {compile:time}]\n",
            OUT_INT("step", report->first.step), OUT_REAL("first", first),
            OUT_REAL("times", spread->median > 0 && report->count > 1 ? first / spread->median : 0),
            OUT_REAL("compile", compile > 0 ? compile : 0));
}

static void show_compilations(struct command_call *call, cJSON *record,
                              const struct gd_time_facts *facts)
{
    cJSON *list = facts->compilation_count > 0 ? out_list(record, "compilations") : NULL;
    for (int i = 0; i < facts->compilation_count; i++) {
        const struct gd_time_compile *one = &facts->compilation[i];
        out_set(out_push(list), OUT_TEXT("name", one->name), OUT_INT("step", one->step),
                OUT_REAL("seconds", one->seconds), OUT_SOME("place", one->place));
        if (i == 0) {
            out_say(call->out, NULL,
                    "{count|compilation}[, {all:time}]: ", OUT_INT("count", facts->compilations),
                    OUT_REAL("all", facts->compilations > 1 ? facts->compile : 0));
        }
        if (i < COMPILATIONS_SHOWN) {
            out_say(call->out, NULL, "{before}{name} in step {step} ({seconds:time})",
                    OUT_TEXT("before", i > 0 ? ", " : ""), OUT_TEXT("name", one->name),
                    OUT_INT("step", one->step), OUT_REAL("seconds", one->seconds));
        }
    }
    if (facts->compilation_count > 0) {
        out_set(record, OUT_INT("compile_count", facts->compilations));
        out_printf(call->out, facts->compilations > COMPILATIONS_SHOWN ? ", ...\n" : "\n");
    }
}

static void show_spread(struct command_call *call, cJSON *record,
                        const struct gd_time_report *report, const struct gd_time_spread *spread)
{
    struct gd_time_spread tail = gd_time_spread_of(report, GD_SERIES_TAIL, GD_TIME_TOTAL);
    if (spread->count > 1) {
        fill_spread(out_object(record, "spread"), spread);
        out_say(call->out, NULL,
                "Spread: quartiles {low:time} and {high:time}, median absolute deviation "
                "{deviation:time} ({steps|step})\n",
                OUT_REAL("low", spread->low), OUT_REAL("high", spread->high),
                OUT_REAL("deviation", spread->deviation), OUT_INT("steps", spread->count));
    }
    if (tail.count > 0) {
        const struct gd_time_facts *facts = &report->facts;
        double bytes = 0;
        cJSON *buckets = out_list(record, "buckets");
        for (int i = 0; i < facts->bucket_count; i++) {
            out_push_int(buckets, (int64_t)facts->bucket[i]);
            bytes += (double)facts->bucket[i];
        }
        fill_spread(out_object(record, "tail"), &tail);
        out_say(call->out, NULL,
                "Tail: {tail:time} after the last gradient[, {share}][; {kind}[: "
                "{buckets|bucket}, {bytes:bytes}], {ranks|rank}]\n",
                OUT_REAL("tail", tail.median),
                OUT_TEXT("share", timing_share(call, tail.median, spread->median)),
                OUT_TEXT("kind", facts->reducer), OUT_INT("buckets", facts->bucket_count),
                OUT_REAL("bytes", bytes), OUT_INT("ranks", facts->world_size));
    }
}

static void show_slowest(struct command_call *call, cJSON *record,
                         const struct gd_time_report *report)
{
    cJSON *list = out_list(record, "slowest");
    for (int i = 0; i < report->slowest_count; i++) {
        const struct gd_time_step *step = &report->slowest[i];
        timing_fill_step(out_push(list), step);
        if (i < SLOWEST_SHOWN) {
            out_say(call->out, NULL,
                    "{before}step {step}[ ([epoch {epoch}, ]batch {batch})] {seconds:time}",
                    OUT_TEXT("before", i == 0 ? "Slowest: " : ", "), OUT_INT("step", step->step),
                    OUT_INT("epoch", step->epoch), OUT_INT("batch", step->batch),
                    OUT_REAL("seconds", step->part[GD_TIME_TOTAL]));
        }
    }
    out_printf(call->out, report->slowest_count > 0 ? "\n" : "");
}

/* Where the parts are not the times of the work: what a measured step computes in each pass. */
static void show_passes(struct command_call *call, cJSON *record,
                        const struct gd_time_report *report)
{
    double sum[GD_TIME_IN_COUNT] = {0};
    for (uint32_t i = 0; i < report->op_count; i++) {
        sum[report->op[i].phase] += report->op[i].seconds / (double)report->timed_steps;
    }
    if (strcmp(report->facts.mode, "pynative") == 0) {
        out_set(record, OUT_REAL("measured_forward", sum[GD_TIME_IN_FORWARD]),
                OUT_REAL("measured_backward", sum[GD_TIME_IN_BACKWARD]));
        out_say(call->out, NULL,
                "In each, the operators of the forward pass took {forward:time}, those of the "
                "backward pass {backward:time}\n",
                OUT_REAL("forward", sum[GD_TIME_IN_FORWARD]),
                OUT_REAL("backward", sum[GD_TIME_IN_BACKWARD]));
    }
}

/* Code that was compiled has no operators that can be measured. */
static void say_unmeasured(struct command_call *call, const struct gd_time_report *report)
{
    const char *mode = report->facts.mode;
    if (!gd_session_is_record(call->session) && strcmp(mode, "graph") != 0 &&
        strcmp(mode, "jit") != 0) {
        out_printf(call->out,
                   call->debugger->settings.timing
                       ? "Operators: no measured step has been reported yet (`set timing` is on)\n"
                       : "Operators: not measured; type `set timing on`\n");
    }
}

/* What the measurement costs, and which steps were measured. */
static void show_cost(struct command_call *call, cJSON *record, const struct gd_time_report *report)
{
    double each, share;
    if (report->timed_steps == 0) {
        say_unmeasured(call, report);
        return;
    }
    gd_time_measuring(report, &each, &share);
    out_set(record, OUT_INT("measured_steps", report->timed_steps),
            OUT_INT("first_measured", report->first_timed),
            OUT_INT("last_measured", report->last_timed),
            OUT_IF(each >= 0, OUT_REAL("measuring_seconds", each)),
            OUT_IF(share >= 0, OUT_REAL("measuring_share", share)));
    out_say(call->out, NULL,
            "Operators were measured in {steps|step} ({first} to {last})"
            "[, each {cost:time} longer: {percent} % of the run]\n",
            OUT_INT("steps", report->timed_steps), OUT_INT("first", report->first_timed),
            OUT_INT("last", report->last_timed), OUT_REAL("cost", each),
            OUT_TEXT("percent",
                     each >= 0 ? inspect_printf(call, share < 0.1 ? "%.2g" : "%.0f", 100 * share)
                               : ""));
    show_passes(call, record, report);
}

static void show_summary(struct command_call *call, cJSON *record,
                         const struct gd_time_report *report)
{
    struct gd_time_spread spread = gd_time_spread_of(report, GD_SERIES_PART, GD_TIME_TOTAL);
    out_set(record, OUT_INT("step", report->last.step), OUT_INT("steps_timed", report->count),
            OUT_JSON("last", column_record(report, LAST)),
            OUT_JSON("median", column_record(report, MEDIAN)),
            OUT_JSON("mean", column_record(report, MEAN)), OUT_SOME("note", report->facts.note));
    if (report->count > 0) {
        parts_text(call, report);
    }
    show_first(call, record, report, &spread);
    show_compilations(call, record, &report->facts);
    show_spread(call, record, report, &spread);
    timing_show_communication(call, record, report);
    show_slowest(call, record, report);
    show_cost(call, record, report);
    out_say(call->out, record, "[{note}\n]");
}

/* The slowest nodes of the last step that reported some. */
static void add_nodes(struct command_call *call, cJSON *record)
{
    const struct gd_step_times *times = &call->session->step_times;
    cJSON *list = out_list(record, "operators");
    for (int i = 0; i < times->op_count; i++) {
        cJSON *object = out_push(list);
        inspect_add_node(call, object, times->op[i].node);
        out_set(object, OUT_INT("calls", times->op[i].calls),
                OUT_REAL("seconds", times->op[i].seconds));
    }
}

static int show_all(struct command_call *call, const struct gd_time_report *report, bool all,
                    struct gd_err *err)
{
    cJSON *record = out_record(call->out, "timing");
    show_summary(call, record, report);
    add_nodes(call, record);
    int rc = report->op_count > 0 ? timing_show_types(call, record, report, all, err) : GD_OK;
    if (rc == GD_OK && report->count > 1) {
        timing_show_advice(call, record, report, false);
    }
    return rc;
}

int info_timing(struct command_call *call, struct gd_err *err)
{
    const struct gd_time_report *report = call->session->times;
    bool all = inspect_take_flag(call, "-a");
    if (call->argc > 1) {
        return gd_fail(err, GD_EUSAGE, "specify one of %s", TIMING_SUBJECTS);
    }
    if (call->argc == 1) {
        return timing_show(call, call->argv[0], report, all, err);
    }
    if (!report || !gd_session_is_record(call->session)) { /* a record's times are the report */
        struct times times = times_of(call);
        show_times(call, &times);
    }
    return report ? show_all(call, report, all, err) : GD_OK;
}
