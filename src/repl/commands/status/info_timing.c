// SPDX-License-Identifier: GPL-3.0-or-later
/* `info timing`. */
#include "repl/commands/status/info.h"
#include "repl/values/inspect.h"

#define OPS_SHOWN 10

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
    bool any = timing->steps_run > 0 && times->running > 0;
    out_set(record, OUT_REAL("connected_seconds", times->age),
            OUT_REAL("running_seconds", times->running),
            OUT_REAL("stopped_seconds", times->stopped),
            OUT_REAL("last_run_seconds", timing->last_run), OUT_INT("steps", timing->steps_run),
            OUT_INT("last_run_steps", timing->last_run_steps),
            OUT_IF(times->running > 0,
                   OUT_REAL("steps_per_second", (double)timing->steps_run / times->running)),
            OUT_IF(times->age > 0, OUT_REAL("stopped_share", times->stopped / times->age)));
    out_say(call->out, record,
            "Connected for {connected_seconds:time}: {running_seconds:time} running, "
            "{stopped_seconds:time} stopped[{?age} ({percent:g3} %)]\n"
            "[{?any}Steps: {steps:n}, {steps_per_second:g4} per second, {each:time} each\n]"
            "[{?last_run_seconds}Last run: {last_run_seconds:time}[, {last_run_steps|step}]\n]",
            OUT_BOOL("age", times->age > 0), OUT_BOOL("any", any),
            OUT_REAL("percent", times->age > 0 ? 100 * times->stopped / times->age : 0),
            OUT_REAL("each", any ? times->running / (double)timing->steps_run : 0));
}

/* ---- by the training's --------------------------------------------------------------------- */

/* Columns for each part of a step; seconds, negative: unknown. */
enum column { LAST, MEDIAN, MEAN, COLUMNS };

static double seconds_of(const struct gd_session *session, enum column column, enum gd_time part)
{
    return column == LAST     ? session->step_times.part[part]
           : column == MEDIAN ? gd_past_times_median(&session->past_times, part)
                              : gd_past_times_mean(&session->past_times, part);
}

static const char *share_text(struct command_call *call, double seconds, double total)
{
    return seconds >= 0 && total > 0 ? inspect_printf(call, "%.1f%%", 100 * seconds / total) : "";
}

static const char *time_text(struct command_call *call, double seconds)
{
    return seconds < 0 ? "?" : seconds == 0 ? "0" : inspect_duration(call, seconds);
}

/* A share is relative to its column's total. Shares of medians need not add up to 100 %. */
static void part_text(struct command_call *call, enum gd_time part)
{
    const struct gd_session *session = call->session;
    out_printf(call->out, "  %-9s", gd_time_name(part));
    for (enum column column = 0; column < COLUMNS; column++) {
        double seconds = seconds_of(session, column, part);
        out_printf(call->out, " %10s %6s%s", time_text(call, seconds),
                   share_text(call, seconds, seconds_of(session, column, GD_TIME_TOTAL)),
                   column == MEAN ? "\n" : " ");
    }
}

static void steps_text(struct command_call *call)
{
    const struct gd_session *session = call->session;
    int64_t count = session->past_times.count;
    const char *median =
        count > GD_RECENT_STEPS ? inspect_printf(call, "median of %d", GD_RECENT_STEPS) : "median";
    out_printf(call->out, "\n%-11s %17s  %17s  %17s\n", "Per step",
               inspect_printf(call, "step %lld", (long long)session->step_times.step), median,
               inspect_printf(call, "mean of %s", inspect_plural(call, (uint64_t)count, "step")));
    for (enum gd_time part = 0; part < GD_TIMES; part++) {
        if (seconds_of(session, LAST, part) >= 0 || seconds_of(session, MEDIAN, part) >= 0) {
            part_text(call, part);
        }
    }
}

static void ops_text(struct command_call *call)
{
    const struct gd_step_times *times = &call->session->step_times;
    static const struct out_column columns[] = {{"seconds", "Time", true},
                                                {"share", "Share", true},
                                                {"calls", "Calls", true, ":n"},
                                                {"type", "Type", false},
                                                {"node", "Node", false, ":fit44"}};
    out_printf(call->out, "\nSlowest operators of step %lld\n", (long long)times->step);
    struct out_table *table = out_table_begin(call->out, "operators", columns, 5);
    for (int i = 0; i < times->op_count && i < OPS_SHOWN; i++) {
        const struct gd_op_time *op = &times->op[i];
        struct gd_node_info info;
        if (!gd_graph_node(call->session->graph, op->node, &info)) {
            continue;
        }
        out_put(table, OUT_TEXT("seconds", time_text(call, op->seconds)),
                OUT_TEXT("share", share_text(call, op->seconds, times->part[GD_TIME_TOTAL])),
                OUT_INT("calls", op->calls), OUT_TEXT("type", info.type),
                OUT_TEXT("node", info.name));
    }
    out_table_end(table);
}

static cJSON *step_record(const struct gd_session *session, enum column column)
{
    cJSON *object = cJSON_CreateObject();
    for (enum gd_time part = 0; part < GD_TIMES; part++) {
        double seconds = seconds_of(session, column, part);
        out_set(object, OUT_IF(seconds >= 0, OUT_REAL(gd_time_name(part), seconds)));
    }
    return object;
}

static void steps_record(struct command_call *call, cJSON *record)
{
    const struct gd_session *session = call->session;
    const struct gd_step_times *times = &session->step_times;
    out_set(record, OUT_INT("step", times->step), OUT_INT("steps_timed", session->past_times.count),
            OUT_JSON("last", step_record(session, LAST)),
            OUT_JSON("median", step_record(session, MEDIAN)),
            OUT_JSON("mean", step_record(session, MEAN)));
    cJSON *list = out_list(record, "operators");
    for (int i = 0; i < times->op_count; i++) {
        cJSON *object = out_push(list);
        inspect_add_node(call, object, times->op[i].node);
        out_set(object, OUT_INT("calls", times->op[i].calls),
                OUT_REAL("seconds", times->op[i].seconds));
    }
}

int info_timing(struct command_call *call, struct gd_err *err)
{
    struct times times = times_of(call);
    bool told = call->session->step_times.step > 0;
    (void)err;
    show_times(call, &times);
    if (told) {
        steps_record(call, out_record(call->out, "timing"));
        steps_text(call);
    }
    if (!out_is_json(call->out) && call->session->step_times.op_count > 0) {
        ops_text(call);
    }
    return GD_OK;
}
