// SPDX-License-Identifier: GPL-3.0-or-later
/* What the rules of advice share. */
#ifndef GD_ENGINE_TIMING_ADVICE_IMPL_H
#define GD_ENGINE_TIMING_ADVICE_IMPL_H

#include "engine/timing/advice.h"

struct advice_input {
    const struct gd_time_report *report;
    struct gd_time_step
        step[GD_TIME_STEPS]; /* the last ones, without the first and measured ones */
    int count;
    double total;          /* seconds of those */
    double part[GD_TIMES]; /* of those; negative: unknown in one of them */
    double median;         /* of a step */
    double operators;      /* seconds of all operators */
    bool is_cpu;
};

/* Fills the text. True, so that a rule can end with it. */
bool advice_say(struct gd_advice *ret, double share, const char *place, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* "12.3 ms" */
const char *advice_time(double seconds, char out[32]);

/* advice_operators.c */
bool advice_on_shapes(const struct advice_input *in, struct gd_advice *ret);
bool advice_on_dtypes(const struct advice_input *in, struct gd_advice *ret);
bool advice_on_casts(const struct advice_input *in, struct gd_advice *ret);
/* advice_reduce.c */
bool advice_on_reduction(const struct advice_input *in, struct gd_advice *ret);
bool advice_on_small_collectives(const struct advice_input *in, struct gd_advice *ret);
bool advice_on_blocking_collectives(const struct advice_input *in, struct gd_advice *ret);

#endif
