// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Watch plans of a MindSpore process. It knows none: at the end of each step gradb fetches the
 * values that the plans name, or the few statistics that the process computes itself where those
 * are enough, and reports what the plans ask for. ms_plan.c keeps the plans and makes the process
 * hold the values that they need; ms_evaluate.c goes through them at the end of a step.
 *
 * A tensor is fetched once in a step, however many plans name it, and let go of at once, but for
 * those that are compared with the step before: of these one copy is kept, within max-cache.
 */
#ifndef GD_PROTO_MS_PLAN_H
#define GD_PROTO_MS_PLAN_H

#include "base/units.h"
#include "engine/watch/watch_report.h"
#include "proto/ms/ms_target_impl.h"

struct ms_recipe { /* what is computed; shared by the items that ask for the same */
    struct gd_stats_options options;
    bool against_previous;
    uint32_t dead_steps;
    bool summary_enough; /* the process's own statistics tell all that is asked */
    struct gd_watch_trigger *triggers;
    size_t trigger_count;
};

struct ms_item {
    gd_node_id node;
    uint32_t slot;
    uint32_t recipe;
    uint64_t ns, runs;
};

struct ms_plan {
    struct ms_plan *next;
    uint32_t id;
    bool record;
    struct ms_recipe *recipes;
    size_t recipe_count, recipe_cap;
    struct ms_item *items;
    size_t item_count;
    uint64_t wait_ns, reports, bytes;
};

struct ms_work { /* one item of a job */
    struct ms_plan *plan;
    uint32_t item;
};

struct ms_job { /* one tensor */
    gd_node_id node;
    uint32_t slot;
    uint32_t order; /* in which the operators run; 0 where it is not known: as they were sent */
    uint32_t first_work, work_count;
    bool against_previous;
    bool dead;           /* dead units are asked for */
    bool summary_enough; /* for all its items */
    struct gd_tensor *kept;
    int64_t kept_step;
    struct gd_units *units;
    uint64_t bytes; /* it had last time; 0 not known */
};

#define MS_BATCH 64
struct ms_batch { /* values on their way to the session */
    struct gd_watch_value value[MS_BATCH];
    struct gd_stats stats[MS_BATCH];
    struct gd_shape shape[MS_BATCH];
    size_t count;
};

struct ms_plans {
    struct gd_ms_target *target;
    struct ms_plan *plans;
    struct ms_plan *retired; /* replaced while their values are under way */
    bool changed;            /* since the jobs were made */
    bool capture_changed;    /* since the process was told what to hold */
    bool kernels_missing;    /* an operator of a plan had no value: it is told on Ascend, too */
    struct ms_watch *capture;
    struct ms_job *jobs; /* by order */
    size_t job_count;
    struct ms_work *works;
    size_t work_count;
    uint64_t kept_bytes;
    bool warned; /* that max-cache is too small */
    /* an evaluation under way */
    bool active;
    bool asking; /* answers that come at once ask for nothing more */
    size_t next; /* job */
    size_t waiting;
    uint64_t began, busy;
    int64_t last_step;  /* that was gone through, or done when the first plan was set */
    bool warned_missed; /* that a step went by */
    bool stop;
    char why[160];
    struct ms_batch judged, recorded;
};

/* ms_evaluate.c */
bool ms_evaluate_jobs(struct ms_plans *plans); /* makes them anew; false: out of memory */
void ms_evaluate_forget(struct ms_plans *plans);

/* ms_plan.c */
void ms_plan_drop_retired(struct ms_plans *plans);

#endif
