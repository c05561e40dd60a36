// SPDX-License-Identifier: GPL-3.0-or-later
/* info timing: time spent running and stopped, and where the time of a step goes. */
#include "repl/commands.h"
#include "repl/inspect.h"
#include "repl/repl_impl.h"

#define OPS_SHOWN 10

/* ---- by our clock -------------------------------------------------------------------------- */

struct times {
    double age, running, stopped; /* seconds; the present stop or run included */
};

/* The engine adds a stop or a run to its sum when it ends; what is missing is the present one. */
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

static void timing_record(struct command_call *call, const struct times *times)
{
    const struct gd_timing *timing = &call->session->timing;
    cJSON *record = out_record(call->out, "timing");
    inspect_add_double(record, "connected_seconds", times->age);
    inspect_add_double(record, "running_seconds", times->running);
    inspect_add_double(record, "stopped_seconds", times->stopped);
    inspect_add_double(record, "last_run_seconds", timing->last_run);
    inspect_add_double(record, "steps", (double)timing->steps_run);
    inspect_add_double(record, "last_run_steps", (double)timing->last_run_steps);
    if (times->running > 0) {
        inspect_add_double(record, "steps_per_second", (double)timing->steps_run / times->running);
    }
    if (times->age > 0) {
        inspect_add_double(record, "stopped_share", times->stopped / times->age);
    }
}

static void timing_text(struct command_call *call, const struct times *times)
{
    const struct gd_timing *timing = &call->session->timing;
    out_printf(call->out, "Connected for %s: %s running, %s stopped",
               inspect_duration(call, times->age), inspect_duration(call, times->running),
               inspect_duration(call, times->stopped));
    if (times->age > 0) {
        out_printf(call->out, " (%.3g %%)", 100 * times->stopped / times->age);
    }
    out_printf(call->out, "\n");
    if (timing->steps_run > 0 && times->running > 0) {
        out_printf(call->out, "Steps: %s, %.4g a second, %s each\n",
                   inspect_number(call, (uint64_t)timing->steps_run),
                   (double)timing->steps_run / times->running,
                   inspect_duration(call, times->running / (double)timing->steps_run));
    }
    if (timing->last_run > 0) {
        out_printf(call->out, "Last run: %s", inspect_duration(call, timing->last_run));
        if (timing->last_run_steps > 0) {
            out_printf(call->out, ", %s",
                       inspect_plural(call, (uint64_t)timing->last_run_steps, "step"));
        }
        out_printf(call->out, "\n");
    }
}

/* ---- by the training's --------------------------------------------------------------------- */

struct part {
    const char *name;
    double last, sum;
};
#define PARTS 6

static void parts_of(const struct gd_session *session, struct part part[PARTS])
{
    const struct gd_step_times *last = &session->step_times, *sum = &session->step_times_sum;
    part[0] = (struct part){"data", last->data, sum->data};
    part[1] = (struct part){"forward", last->forward, sum->forward};
    part[2] = (struct part){"backward", last->backward, sum->backward};
    part[3] = (struct part){"optimizer", last->optimizer, sum->optimizer};
    part[4] = (struct part){"rest", last->gap, sum->gap};
    part[5] = (struct part){"total", last->total, sum->total};
}

static const char *share_text(struct command_call *call, double seconds, double total)
{
    return seconds >= 0 && total > 0 ? inspect_printf(call, "%.1f%%", 100 * seconds / total) : "";
}

static const char *time_text(struct command_call *call, double seconds)
{
    return seconds < 0 ? "?" : seconds == 0 ? "0" : inspect_duration(call, seconds);
}

static void steps_text(struct command_call *call)
{
    const struct gd_session *session = call->session;
    int64_t count = session->step_times_sum.step;
    struct part part[PARTS];
    parts_of(session, part);
    out_printf(call->out, "\n%-11s %10s %6s   mean of %s\n", "Of a step",
               inspect_printf(call, "step %lld", (long long)session->step_times.step), "",
               inspect_plural(call, (uint64_t)count, "step"));
    for (int i = 0; i < PARTS; i++) {
        double mean = part[i].sum < 0 ? -1 : part[i].sum / (double)count;
        double total = part[PARTS - 1].sum / (double)count;
        if (part[i].last >= 0 || part[i].sum >= 0) {
            out_printf(call->out, "  %-9s %10s %6s %10s %6s\n", part[i].name,
                       time_text(call, part[i].last),
                       share_text(call, part[i].last, session->step_times.total),
                       time_text(call, mean), share_text(call, mean, total));
        }
    }
}

static void ops_text(struct command_call *call)
{
    const struct gd_step_times *times = &call->session->step_times;
    static const struct out_column columns[] = {{"seconds", "Time", true},
                                                {"share", "Share", true},
                                                {"calls", "Calls", true},
                                                {"type", "Type", false},
                                                {"node", "Node", false}};
    out_printf(call->out, "\nSlowest operators of step %lld\n", (long long)times->step);
    struct out_table *table = out_table_begin(call->out, "operators", columns, 5);
    for (int i = 0; i < times->op_count && i < OPS_SHOWN; i++) {
        const struct gd_op_time *op = &times->op[i];
        struct gd_node_info info;
        if (!gd_graph_node(call->session->graph, op->node, &info)) {
            continue;
        }
        const char *cells[] = {time_text(call, op->seconds),
                               share_text(call, op->seconds, times->total),
                               inspect_number(call, op->calls), out_safe(call, info.type),
                               inspect_fit(call, info.name, 44)};
        out_table_row(table, cells);
    }
    out_table_end(table);
}

static cJSON *step_record(const struct part part[PARTS], bool mean, int64_t count)
{
    cJSON *object = cJSON_CreateObject();
    for (int i = 0; i < PARTS; i++) {
        double seconds = !mean ? part[i].last : part[i].sum < 0 ? -1 : part[i].sum / (double)count;
        if (seconds >= 0) {
            inspect_add_double(object, part[i].name, seconds);
        }
    }
    return object;
}

static void steps_record(struct command_call *call, cJSON *record)
{
    const struct gd_step_times *times = &call->session->step_times;
    struct part part[PARTS];
    parts_of(call->session, part);
    cJSON_AddNumberToObject(record, "step", (double)times->step);
    cJSON_AddNumberToObject(record, "steps_timed", (double)call->session->step_times_sum.step);
    cJSON_AddItemToObject(record, "last", step_record(part, false, 1));
    cJSON_AddItemToObject(record, "mean",
                          step_record(part, true, call->session->step_times_sum.step));
    cJSON *list = cJSON_AddArrayToObject(record, "operators");
    for (int i = 0; i < times->op_count; i++) {
        cJSON *object = cJSON_CreateObject();
        inspect_add_node(call, object, times->op[i].node);
        cJSON_AddNumberToObject(object, "calls", times->op[i].calls);
        inspect_add_double(object, "seconds", times->op[i].seconds);
        cJSON_AddItemToArray(list, object);
    }
}

int inspect_info_timing(struct command_call *call, struct gd_err *err)
{
    struct times times = times_of(call);
    bool told = call->session->step_times.step > 0;
    (void)err;
    if (out_is_json(call->out)) {
        timing_record(call, &times);
        if (told) {
            steps_record(call, out_record(call->out, "timing"));
        }
        return GD_OK;
    }
    timing_text(call, &times);
    if (told) {
        steps_text(call);
    }
    if (call->session->step_times.op_count > 0) {
        ops_text(call);
    }
    return GD_OK;
}
