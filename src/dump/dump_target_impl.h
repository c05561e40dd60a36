// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The insides of a dump as a target, shared by dump_target.c and dump_stepping.c and nobody else.
 */
#ifndef GD_DUMP_DUMP_TARGET_IMPL_H
#define GD_DUMP_DUMP_TARGET_IMPL_H

#include "dump/dump_target.h"

struct dump_target;
struct gd_progress;

struct dump_item { /* of a plan */
    gd_node_id node;
    uint32_t slot;
    char *scalar; /* instead of node; else NULL */
    bool dead;    /* it asks for dead units */
    bool against; /* the value of the step before */
    struct gd_stats_options options;
    struct gd_watch_trigger *trigger; /* worth judging when any holds */
    size_t trigger_count;             /* 0: always */
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

struct dump_run {              /* what is under way; one in a group */
    struct dump_target *lead;  /* NULL: nothing */
    bool alone;                /* the other ranks stay where they are */
    int64_t left;              /* steps to go */
    size_t member, plan, item; /* that is to be evaluated next, of the step that they stand at */
    bool arrived;              /* at that step: it is to be evaluated */
    struct dump_target *hit;   /* the first rank in which a watchpoint fired */
    bool interrupted;
    struct gd_progress *progress;
    uint64_t done;
};

struct dump_group { /* the ranks of one dump */
    struct gd_dump *dump;
    char *path;
    struct dump_target **member; /* NULL: its session is gone */
    size_t count, users;
    struct dump_run run;
};

struct dump_target {
    struct gd_target base;
    struct dump_group *group;
    struct gd_catalog *catalog;
    size_t at;               /* of its steps */
    gd_node_id node;         /* inside the step it stands behind this one; GD_NO_NODE: at its end */
    struct dump_plan *plans; /* by id */
    size_t plan_count;
    gd_node_id *breaks; /* sorted */
    size_t break_count;
    /* what was found of the step that is evaluated */
    struct gd_watch_value *values;
    struct dump_figures *figures;
    size_t value_count, value_cap;
};

/* GD_EVERY_STEP: there is no such step. */
int64_t dump_step_at(const struct dump_target *target, size_t at);
/* The target of a session that is a dump; else NULL. */
struct dump_target *dump_target_of(const struct gd_session *session);
/* Statistics of a value, against the previous step of its graph where that can be. */
int dump_stats(const struct dump_target *target, const struct gd_catalog_value *value,
               const struct gd_stats_options *options, struct dump_figures *ret,
               struct gd_err *err);

/* The value of the previous step of its graph that can be compared with it; NULL: there is none. */
struct gd_source *dump_before(const struct dump_target *target,
                              const struct gd_catalog_value *value);

/* ---- dump_stepping.c ---- */

int dump_resume(struct gd_target *target, const struct gd_run *run, struct gd_err *err);
int dump_interrupt(struct gd_target *target, struct gd_err *err);
int dump_set_breakpoints(struct gd_target *target, const gd_node_id *nodes, size_t count,
                         struct gd_err *err);
int dump_watch_plan(struct gd_target *target, const struct gd_watch_plan *plan, struct gd_err *err);
void dump_free_plan(struct dump_plan *plan); /* what it points to */
void dump_work(struct gd_target *target, double seconds);
/* The named numbers of the step that it stands at, and of the one before. */
void dump_tell_scalars(struct dump_target *target);
/* Its plans and values; a run of the group ends. */
void dump_run_forget(struct dump_target *target);

#endif
