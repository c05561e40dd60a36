// SPDX-License-Identifier: GPL-3.0-or-later
/* The watch plans that a target without a process was given, with copies of what they point to. */
#ifndef TESTS_ENGINE_FAKE_PLANS_H
#define TESTS_ENGINE_FAKE_PLANS_H

#include "engine/target.h"

struct fake_plan {
    uint32_t id;
    bool exact, hold, record;
    struct gd_watch_item *items;
    size_t count;
    uint64_t reports; /* counted by the user */
};

/* The plan with that number; NULL: it is not set. */
struct fake_plan *fake_plans_find(struct fake_plan *plans, size_t count, uint32_t id);
/* Adds, replaces or (no items) removes a plan. Keeps the order in which they were first set.
 * GD_ENOTFOUND: nothing to remove; GD_ENOMEM: a copy of the items may be incomplete. */
int fake_plans_set(struct fake_plan **plans, size_t *count, const struct gd_watch_plan *plan,
                   struct gd_err *err);
void fake_plans_free(struct fake_plan *plans, size_t count);

#endif
