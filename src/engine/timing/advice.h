// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * What would make a training faster, from its report: a table of rules, each with its evidence. A
 * rule is silent unless its numbers pass a stated threshold, and where numbers are missing.
 */
#ifndef GD_ENGINE_TIMING_ADVICE_H
#define GD_ENGINE_TIMING_ADVICE_H

#include "engine/timing/report.h"

#define GD_MAX_ADVICE  32
#define GD_ADVICE_TEXT 640

struct gd_advice {
    const char *rule; /* "slow-loader", ... */
    char text[GD_ADVICE_TEXT];
    char place[160]; /* "train.py:12"; "": unknown */
    double share;    /* of the step's time that it is about; negative: unknown */
};

/* Fills at most GD_MAX_ADVICE, in the order of the rules. Returns how many. */
int gd_time_advice(const struct gd_time_report *report, struct gd_advice *ret);

/* The rules: name, what passes, and where it comes from. Ends with a NULL name. */
struct gd_advice_rule {
    const char *name, *threshold, *source;
};
const struct gd_advice_rule *gd_advice_rules(void);

#endif
