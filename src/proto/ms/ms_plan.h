// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Watch plans for a MindSpore process, which has none itself: at the end of each step gradb fetches
 * the values named by the plans (or, where they suffice, the few statistics that the process
 * computes) and reports what the plans ask for. ms_plan.c stores the plans and makes the process
 * keep the values that they need; ms_evaluate.c evaluates them at the end of a step.
 *
 * A tensor is fetched once per step, however many plans name it, and released immediately, except
 * that of tensors compared with the previous step one copy is kept, within max-cache.
 */
#ifndef GD_PROTO_MS_PLAN_H
#define GD_PROTO_MS_PLAN_H

#include "base/units.h"
#include "engine/watch/watch_report.h"
#include "proto/ms/ms_target_impl.h"

struct ms_recipe { /* what is computed; shared by items that request the same */
    struct gd_stats_options options;
    bool against_previous;
    uint32_t dead_steps;
    bool bins;
    bool summary_enough; /* the process's own statistics suffice */
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
    uint32_t order; /* execution order; 0: unknown, order of arrival */
    uint32_t first_work, work_count;
    bool against_previous;
    bool dead;           /* dead units are requested */
    bool summary_enough; /* for all its items */
    struct gd_tensor *kept;
    int64_t kept_step;
    struct gd_units *units;
    uint64_t bytes; /* its size last time; 0: unknown */
};

#define MS_BATCH 64
struct ms_batch { /* values to be reported to the session */
    struct gd_watch_value value[MS_BATCH];
    struct gd_stats stats[MS_BATCH];
    struct gd_shape shape[MS_BATCH];
    uint64_t bins[MS_BATCH][GD_WATCH_BINS];
    size_t count;
};

struct ms_plans {
    struct gd_ms_target *target;
    struct ms_plan *plans;
    struct ms_plan *retired; /* replaced while their values are being fetched */
    bool changed;            /* since the jobs were made */
    bool capture_changed;    /* since the process was last told what to keep */
    bool kernels_missing;    /* an operator of a plan had no value: announce it on Ascend, too */
    struct ms_watch *capture;
    struct ms_job *jobs; /* by order */
    size_t job_count;
    struct ms_work *works;
    size_t work_count;
    uint64_t kept_bytes;
    bool warned; /* that max-cache is too small */
    /* an evaluation in progress */
    bool active;
    bool asking; /* immediate answers must not request more */
    size_t next; /* job */
    size_t waiting;
    uint64_t began, busy;
    int64_t last_step;  /* evaluated last, or complete when the first plan was set */
    bool warned_missed; /* that a step passed unevaluated */
    bool stop;
    char why[160];
    struct ms_batch judged, recorded;
};

/* ms_evaluate.c */
void ms_evaluate_forget(struct ms_plans *plans);

/* ms_plan.c */
void ms_plan_drop_retired(struct ms_plans *plans);

#endif
