// SPDX-License-Identifier: GPL-3.0-or-later
/* What `info timing` says about communication. */
#include "repl/commands/status/info_timing.h"
#include "repl/values/inspect.h"

/* What DDP measured in one of its steps. */
static void show_reducer(struct command_call *call, cJSON *record,
                         const struct gd_time_facts *facts)
{
    double exposed = facts->communication - facts->hidden;
    if (facts->communication > 0 && facts->hidden >= 0 && exposed >= 0) {
        out_set(record, OUT_REAL("communication", facts->communication),
                OUT_REAL("exposed", exposed));
        out_say(call->out, record,
                "Communication: {communication:time} in one step, {exposed:time} of it after the "
                "backward pass[ (measured by {kind})]\n",
                OUT_TEXT("kind", facts->reducer));
    }
}

struct sums { /* per step */
    double seconds, elapsed, ahead, calls, bytes, begun;
    bool launched; /* some only begin work of a device */
};

static struct sums add_up(const struct gd_time_facts *facts)
{
    struct sums sums = {0};
    for (int i = 0; i < facts->collective_count; i++) {
        const struct gd_time_collective *one = &facts->collective[i];
        double steps = (double)one->steps;
        sums.seconds += one->seconds / steps;
        sums.elapsed = one->elapsed / steps;
        sums.ahead += one->ahead / steps;
        sums.calls += (double)one->calls / steps;
        sums.bytes += (double)one->bytes / steps;
        sums.begun += (double)one->begun / steps;
        sums.launched |= one->on_device > 0;
    }
    return sums;
}

/* Collectives among the operators of measured steps, each of which was waited for. */
static void show_measured(struct command_call *call, cJSON *record,
                          const struct gd_time_report *report)
{
    double seconds = 0, calls = 0, steps = (double)report->timed_steps;
    for (uint32_t i = 0; i < report->op_count; i++) {
        const struct gd_time_operator *op = &report->op[i];
        if (op->lane == GD_LANE_COMMUNICATION) {
            seconds += op->seconds / steps;
            calls += (double)op->calls / steps;
        }
    }
    if (calls > 0 && steps > 0) {
        cJSON *object = out_object(record, "measured_communication");
        out_set(object, OUT_REAL("seconds", seconds), OUT_REAL("calls", calls));
        out_say(call->out, object,
                "Communication: {seconds:time} of a measured step in {calls:g3} collectives\n");
    }
}

void timing_show_communication(struct command_call *call, cJSON *record,
                               const struct gd_time_report *report)
{
    const struct gd_time_facts *facts = &report->facts;
    struct sums sums = add_up(facts);
    show_reducer(call, record, facts);
    if (facts->collective_count == 0) {
        show_measured(call, record, report);
        return;
    }
    cJSON *object = out_object(record, "program_communication");
    out_set(object, OUT_REAL("seconds", sums.seconds), OUT_REAL("calls", sums.calls),
            OUT_REAL("bytes", sums.bytes), OUT_IF(sums.begun > 0, OUT_REAL("begun", sums.begun)),
            OUT_REAL("ahead", sums.begun > 0 ? sums.ahead / sums.begun : 0),
            OUT_BOOL("launched", sums.launched), OUT_REAL("step_seconds", sums.elapsed));
    out_say(
        call->out, object,
        "Communication: {seconds:time} per step[ ({share})] in {calls:g3} call{s} of the program, "
        "{bytes:bytes}[; {begun:g3} of them begun {ahead:time} before the wait, on average]"
        "[{?launched}; on a device the calls only begin the work]\n",
        OUT_TEXT("share", timing_share(call, sums.seconds, sums.elapsed)),
        OUT_TEXT("s", sums.calls == 1 ? "" : "s"));
}

void timing_show_collectives(struct command_call *call, const struct gd_time_report *report)
{
    static const struct out_column columns[] = {
        {"seconds", "Time", true, ":time"}, {"calls", "Calls", true, ":g3"},
        {"bytes", "Bytes", true, ":bytes"}, {"kind", "Type", false},
        {"place", "Line", false},           {"note", "", false}};
    const struct gd_time_facts *facts = &report->facts;
    if (facts->collective_count == 0) {
        return;
    }
    out_printf(call->out,
               "\nCollectives of the program, per step (of %s without measured operators)\n",
               inspect_plural(call, (uint64_t)facts->collective[0].steps, "step"));
    struct out_table *table = out_table_begin(call->out, "collectives", columns, 6);
    for (int i = 0; i < facts->collective_count; i++) {
        const struct gd_time_collective *one = &facts->collective[i];
        double steps = (double)one->steps;
        out_put(table, OUT_REAL("seconds", one->seconds / steps),
                OUT_REAL("calls", (double)one->calls / steps),
                OUT_REAL("bytes", (double)one->bytes / steps), OUT_TEXT("kind", one->kind),
                OUT_TEXT("place", one->place), OUT_INT("steps", one->steps),
                OUT_INT("begun", one->begun), OUT_REAL("ahead", one->ahead / steps),
                OUT_BOOL("launched", one->on_device > 0));
        out_put_text(
            table, OUT_TEXT("note", one->begun > 0
                                        ? inspect_printf(
                                              call, "begun %s before the wait",
                                              timing_seconds(call, one->ahead / (double)one->begun))
                                        : ""));
    }
    out_table_end(table);
}
