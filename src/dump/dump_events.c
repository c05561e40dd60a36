// SPDX-License-Identifier: GPL-3.0-or-later
/* The events of a dump that is walked through: its begin and end, and those of its steps. */
#include "dump/dump_target_impl.h"

/* True: the run stops for it. */
static bool pass_event(const struct dump_target *lead, enum gd_happening kind, int64_t step)
{
    const struct gd_happened what = {.kind = kind, .step = step};

    return gd_session_on_happening(lead->base.session, &what, true) == GD_VERDICT_STOP;
}

/* Each happens once, so the next run continues after the one for which this run stops. The dump
 * opens at the end of its first step, so the events of that step come when it is left. */
bool dump_events_due(struct dump_group *group)
{
    struct dump_walk *walk = &group->walk;
    const struct dump_target *lead = group->run.lead;
    int64_t step = dump_step_at(lead, lead->at), next = dump_step_at(lead, lead->at + 1);
    bool stop = false;

    if (!walk->begun) {
        walk->begun = true;
        stop = pass_event(lead, GD_HAPPENED_BEGIN, step);
    }
    if (!stop && walk->begin_of == GD_EVERY_STEP) {
        walk->begin_of = step;
        stop = pass_event(lead, GD_HAPPENED_STEP_BEGIN, step);
    }
    if (!stop && walk->end_of != step) {
        walk->end_of = step;
        stop = pass_event(lead, GD_HAPPENED_STEP_END, step);
    }
    if (stop || group->run.left == 0) {
        return stop;
    }
    if (next != GD_EVERY_STEP && walk->begin_of != next) {
        walk->begin_of = next;
        stop = pass_event(lead, GD_HAPPENED_STEP_BEGIN, next);
    } else if (next == GD_EVERY_STEP && !walk->ended) {
        walk->ended = true;
        stop = pass_event(lead, GD_HAPPENED_END, step);
    }
    return stop;
}

void dump_events_skip(const struct dump_target *target)
{
    int64_t step = dump_step_at(target, target->at);
    bool inside = target->node != GD_NO_NODE;

    target->group->walk = (struct dump_walk){
        .begun = true, .begin_of = step, .end_of = inside ? GD_EVERY_STEP : step};
}
