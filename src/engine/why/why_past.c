// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * What the loss did so far, as reported to the session, and how large the weights are by now: the
 * evidence that a training diverges.
 */
#include <string.h>

#include "engine/why/why_impl.h"

#define GROWN      10.0  /* times the first loss, and */
#define FAR_GROWN  100.0 /* times the lowest one: more than batch noise */
#define BLOWN_UP   1e3   /* times the first loss, to call it diverging */
#define RISES      3     /* consecutive steps that count by themselves, if the loss grew by GROWN */
#define LEAST_RISE 3.0   /* times the first loss, then */
#define HUGE_VALUE 1e4   /* of a weight that is trained */

static const char *name_of(const struct why_walk *walk)
{
    const char *name = walk->facts.scalar;

    return name[0] ? name : "loss";
}

/* NULL: no finite value was reported, or only values after the step in question. */
static const struct gd_scalar_past *past_of(const struct why_walk *walk)
{
    const struct gd_scalar *scalar = gd_session_scalar(walk->session, name_of(walk));

    return scalar && scalar->past.count > 0 &&
                   scalar->past.last_step <= gd_session_step(walk->session)
               ? &scalar->past
               : NULL;
}

static bool loss_diverges(const struct gd_scalar_past *past)
{
    if (!past || past->count < 2 || !(past->least > 0)) { /* a loss below 0 has no ratios */
        return false;
    }
    return (past->last >= GROWN * past->first && past->last >= FAR_GROWN * past->least) ||
           (past->rises >= RISES && past->last >= GROWN * past->rose_from &&
            past->last >= LEAST_RISE * past->first);
}

bool why_diverges(const struct why_walk *walk)
{
    return loss_diverges(past_of(walk));
}

void why_add_huge(const struct why_walk *walk, struct gd_buf *say)
{
    const struct why_tensor *largest = NULL;
    size_t count = 0;

    for (size_t i = 0; i < walk->count; i++) {
        const struct why_tensor *tensor = &walk->tensors[i];

        if (tensor->has_stats && why_is_trained(walk, tensor) &&
            why_max_abs(&tensor->stats) >= HUGE_VALUE) {
            count++;
            if (!largest || why_max_abs(&tensor->stats) > why_max_abs(&largest->stats)) {
                largest = tensor;
            }
        }
    }
    if (largest) {
        gd_buf_printf(say, " %s reaches a magnitude of %.4g%s", why_name(walk, largest),
                      why_max_abs(&largest->stats), largest->too_new ? " after the update" : "");
        if (count > 1) {
            gd_buf_printf(say, ", and %zu more weight%s more than %.0e", count - 1,
                          count == 2 ? " reaches" : "s reach", HUGE_VALUE);
        }
        gd_buf_putc(say, '.');
    }
}

static void say_growth(const struct why_walk *walk, const struct gd_scalar_past *past,
                       struct gd_buf *say)
{
    bool rose = past->rises >= RISES && past->rose_from > 0;
    double from = rose ? past->rose_from : past->least;
    int64_t at = rose ? past->rose_at : past->least_step;

    gd_buf_puts(say, say->len > 0 ? " " : "");
    gd_buf_printf(say, "The %s %s from %.4g at step %lld to %.4g at step %lld, %.3g times",
                  name_of(walk), past->last >= BLOWN_UP * past->first ? "diverges:" : "grew", from,
                  (long long)at, past->last, (long long)past->last_step, past->last / from);
    if (rose) {
        gd_buf_printf(say, ", and it rose in each of %s %zu steps",
                      past->last_step == gd_session_step(walk->session) ? "the last" : "those",
                      (size_t)past->rises);
    }
    gd_buf_putc(say, '.');
}

bool why_add_growth(const struct why_walk *walk, struct gd_buf *say)
{
    const struct gd_scalar_past *past = past_of(walk);

    if (!loss_diverges(past)) {
        return false;
    }
    say_growth(walk, past, say);
    return true;
}

void why_add_past(const struct why_walk *walk, struct gd_buf *say)
{
    const struct gd_scalar_past *past = past_of(walk);
    const char *name = name_of(walk);

    if (!past || past->count < 2) {
        gd_buf_printf(say, " No earlier %s is known.", name);
        return;
    }
    gd_buf_printf(say, " The %s was %.4g at step %lld", name, past->first,
                  (long long)past->first_step);
    if (past->least < past->first && past->least < past->last) {
        gd_buf_printf(say, ", %.4g at its lowest (step %lld)", past->least,
                      (long long)past->least_step);
    }
    gd_buf_printf(say, ", and is %.4g at step %lld.", past->last, (long long)past->last_step);
}
