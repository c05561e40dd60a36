// SPDX-License-Identifier: GPL-3.0-or-later
/* A target without a process: remembers what it was told, answers when the test says so. */
#ifndef TESTS_ENGINE_FAKE_TARGET_H
#define TESTS_ENGINE_FAKE_TARGET_H

#include "engine/debugger.h"
#include "fake_plans.h"

struct fake_target {
    struct gd_target target;
    struct gd_run run; /* the last one */
    char run_name[64];
    int resumes;
    int resume_rc;            /* returned by resume */
    struct gd_stop stop_next; /* reason not NONE: reported from inside resume, stop_count times */
    int stop_count;
    bool lose_next; /* resume loses the trainer */
    gd_node_id breakpoints[16], kept[16];
    size_t breakpoint_count, kept_count;
    int breakpoint_pushes, keep_pushes;
    int lines[16]; /* numbers of the breakpoints at lines */
    size_t line_count;
    int line_pushes;
    int fetches, stats_asked;
    /* the request that waits for fake_answer_*; answered at once when `value` is set */
    gd_tensor_fn tensor_fn;
    gd_stats_fn stats_fn;
    void *fetch_ctx, *stats_ctx;
    struct gd_tensor *value;
    int64_t value_step;
    struct fake_plan *plans; /* those that are set, in the order of being set first */
    size_t plan_count;
    int plan_calls, plan_removals;
    bool plans_open;            /* the plans that were set wait for another one */
    int plan_rc;                /* returned by watch_plan, for each or for plan_fails only */
    uint32_t plan_fails;        /* 0: each */
    gd_watch_costs_fn costs_fn; /* waits for the test */
    void *costs_ctx;
    int watch_rc; /* returned by watch */
    int watches, unwatches;
    int32_t last_watch, last_unwatch;
    size_t last_watch_nodes;
    /* answers statistics and values at once when set */
    void (*on_stats)(struct fake_target *fake, const struct gd_tensor_ref *ref, gd_stats_fn fn,
                     void *ctx);
    void (*on_fetch)(struct fake_target *fake, const struct gd_tensor_ref *ref, gd_tensor_fn fn,
                     void *ctx);
    bool *destroyed;
};

/* Of the plan with that number; NULL: it is not set. */
const struct fake_plan *fake_plan(const struct fake_target *fake, uint32_t id);
/* full: every slot; else only resume and fetch. */
struct fake_target *fake_create(bool full, bool *destroyed);
void fake_answer_tensor(struct fake_target *fake, struct gd_tensor *tensor, int64_t step);
void fake_answer_error(struct fake_target *fake, int code);
/* A float32 vector of the numbers from, from + 1, ... */
struct gd_tensor *fake_tensor(int count, float from);

#endif
