// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The fake trainer's watch plans: what it was given, computed from the values that fake_set gave,
 * reported at the end of each step.
 */
#ifndef GD_TESTS_REPL_FAKE_WATCH_H
#define GD_TESTS_REPL_FAKE_WATCH_H

#include "engine/target.h"

struct fake;

#define FAKE_ITEM_NS    1000 /* what each look at a tensor costs */
#define FAKE_ITEM_BYTES 64   /* and in the report */

void fake_watch_plan(struct fake *fake, const struct gd_watch_plan *plan);
void fake_watch_free(struct fake *fake);
/* A step's end: reports what the plans ask for. Whether the training is to stop. */
bool fake_watch_report(struct fake *fake, int64_t step);
/* Answers a question after the costs. */
void fake_watch_answer(struct fake *fake, gd_watch_costs_fn fn, void *ctx);

#endif
