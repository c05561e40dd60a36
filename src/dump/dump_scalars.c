// SPDX-License-Identifier: GPL-3.0-or-later
/* The metrics of a dump: its session knows those up to the step at which it is, with their past. */
#include "dump/dump_target_impl.h"

/* The first one after the step; they are sorted by step. */
static size_t first_after(const struct gd_catalog_scalar *scalars, size_t count, int64_t step)
{
    size_t low = 0, high = count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (scalars[middle].step <= step) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* Those up to `step` that the session does not know. Watchpoints judge those after `judged`. */
static void tell_until(struct dump_target *target, int64_t step, int64_t judged)
{
    size_t count;
    const struct gd_catalog_scalar *scalars = gd_catalog_scalars(target->catalog, &count);
    size_t i = first_after(scalars, count, target->told);

    for (; i < count && scalars[i].step <= step; i++) {
        (scalars[i].step > judged ? gd_session_on_scalar : gd_session_recall_scalar)(
            target->base.session, scalars[i].name, scalars[i].value, scalars[i].step);
    }
    target->told = step;
}

void dump_forget_scalars(struct dump_target *target)
{
    gd_session_forget_scalars(target->base.session);
    target->told = INT64_MIN;
}

void dump_tell_scalars(struct dump_target *target, size_t at)
{
    int64_t step = dump_step_at(target, at);

    if (step == GD_EVERY_STEP) {
        return;
    }
    if (step < target->told) {
        dump_forget_scalars(target);
    }
    tell_until(target, step, at > 0 ? dump_step_at(target, at - 1) : INT64_MIN);
}

void dump_recall_scalars(struct dump_target *target)
{
    dump_forget_scalars(target);
    if (dump_step_at(target, target->at) != GD_EVERY_STEP) {
        tell_until(target, dump_step_at(target, target->at), INT64_MAX);
    }
}

void gd_dump_recall_scalars(struct gd_session *session)
{
    struct dump_target *target = dump_target_of(session);

    if (target) {
        dump_recall_scalars(target);
    }
}
