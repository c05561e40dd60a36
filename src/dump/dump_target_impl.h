// SPDX-License-Identifier: GPL-3.0-or-later
/* The inside of a dump target, shared by dump_target.c, dump_stepping.c and scan/. */
#ifndef GD_DUMP_DUMP_TARGET_IMPL_H
#define GD_DUMP_DUMP_TARGET_IMPL_H

#include "dump/dump_target.h"
#include "engine/watch/watch_report.h"

struct dump_target;
struct gd_progress;

struct dump_item { /* one value or scalar that a plan watches */
    gd_node_id node;
    uint32_t slot;
    char *scalar; /* set instead of node; otherwise NULL */
    bool dead;    /* asks for dead units */
    bool against; /* needs the value of the previous step */
    struct gd_stats_options options;
    struct gd_watch_trigger *trigger; /* the value is judged when any of them holds */
    size_t trigger_count;             /* 0: always judge */
};
struct dump_plan {
    uint32_t id;
    struct dump_item *item;
    size_t count;
};

struct dump_figures {
    enum gd_dtype dtype;
    struct gd_shape shape;
    struct gd_stats stats;
};

struct dump_run {              /* the run in progress; one per group */
    struct dump_target *lead;  /* NULL: no run */
    bool alone;                /* the other ranks do not move */
    int64_t left;              /* steps to go */
    size_t member, plan, item; /* next to evaluate in the current step */
    bool arrived;              /* at a step that is still to be evaluated */
    struct dump_target *hit;   /* the first rank in which a watchpoint fired */
    bool interrupted;
    struct gd_progress *progress;
    uint64_t done;
};

struct dump_walk { /* the events that have happened */
    bool begun, ended;
    bool over;                /* a run has reported the end */
    int64_t begin_of, end_of; /* the last step that began, and ended; GD_EVERY_STEP: none */
};

struct dump_group { /* the ranks of one dump */
    struct gd_dump *dump;
    char *path;
    struct dump_target **member; /* NULL: its session is closed */
    size_t count, users;
    struct dump_run run;
    int64_t left; /* steps of the last run that it did not go */
    struct dump_walk walk;
};

struct dump_target {
    struct gd_target base;
    struct dump_group *group;
    struct gd_catalog *catalog;
    size_t at;       /* index of the current step */
    gd_node_id node; /* inside a step: stopped after this node; GD_NO_NODE: at the step's end */
    int64_t told;    /* the session knows the scalars up to this step; INT64_MIN: none */
    struct dump_plan *plans; /* sorted by id */
    size_t plan_count, plan_cap;
    gd_node_id *breaks; /* sorted */
    size_t break_count;
    /* what was found in the step being evaluated */
    struct gd_watch_value *values;
    struct dump_figures *figures;
    size_t value_count, value_cap;
};

/* GD_EVERY_STEP: no such step. */
int64_t dump_step_at(const struct dump_target *target, size_t at);
/* NULL: the session is not a dump. */
struct dump_target *dump_target_of(const struct gd_session *session);
/* Statistics of a value, compared with the previous step of its graph if possible. */
int dump_stats(const struct dump_target *target, const struct gd_catalog_value *value,
               const struct gd_stats_options *options, struct dump_figures *ret,
               struct gd_err *err);

/* The value of the previous step of its graph that it can be compared with; NULL: none. */
struct gd_source *dump_before(const struct dump_target *target,
                              const struct gd_catalog_value *value);

/* ---- dump_stepping.c ------------------------------------------------------------------------- */

int dump_resume(struct gd_target *target, const struct gd_run *run, struct gd_err *err);
int dump_interrupt(struct gd_target *target, struct gd_err *err);
int dump_set_breakpoints(struct gd_target *target, const gd_node_id *nodes, size_t count,
                         struct gd_err *err);
int dump_watch_plan(struct gd_target *target, const struct gd_watch_plan *plan, struct gd_err *err);
void dump_free_plan(struct dump_plan *plan); /* Frees the members, not the plan itself. */
void dump_work(struct gd_target *target, double seconds);
/* Drops the target's plans and values and ends a run of the group. */
void dump_run_forget(struct dump_target *target);

/* ---- dump_scalars.c -------------------------------------------------------------------------- */

/* The session knows the scalars up to step number `at`, and no later ones; watchpoints judge those
 * of this step. */
void dump_tell_scalars(struct dump_target *target, size_t at);
void dump_forget_scalars(struct dump_target *target);
/* Up to the target's step, without judging any. */
void dump_recall_scalars(struct dump_target *target);

/* ---- dump_events.c --------------------------------------------------------------------------- */

/* The events that are due where the run is, at the end of a step, happen in the leading rank.
 * True: the run stops for one. */
bool dump_events_due(struct dump_group *group);
/* The target was moved without a run: the events on the way do not happen. */
void dump_events_skip(const struct dump_target *target);

#endif
