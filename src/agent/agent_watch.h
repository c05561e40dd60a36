// SPDX-License-Identifier: MIT
/*
 * Watch plans in the training process: agent_plans.c keeps them, agent_watch.c looks at the values
 * when their moment has come, agent_same.c remembers what was seen of values that others have the
 * elements of, agent_report.c decides what is worth telling and tells it. All of it happens with
 * the lock, and all but setting plans on the training thread.
 *
 * A value that nobody needs to hear of costs its statistics and nothing else: no memory is
 * allocated for it, no message is made.
 */
#ifndef GRADB_AGENT_WATCH_H
#define GRADB_AGENT_WATCH_H

#include "agent/agent_impl.h"
#include "base/stats.h"
#include "base/units.h"

/* What was seen of one value at one moment. */
struct agent_look {
    int code;       /* -1: there are statistics; else Gradb__V1__RequestError__Code */
    char text[160]; /* why not */
    bool located;   /* `value` is filled */
    struct agent_value value;
    struct gd_stats stats;
    bool remote;         /* the source computed them: the value has no data here */
    bool taken;          /* nobody computed them: they are those of a value that is the same */
    uint64_t *histogram; /* room for the bins that the source may fill; NULL none */
    uint64_t cost_ns;
};

/* A set of statistics of one value that a watch plan wants. */
struct agent_watch_item {
    struct agent_watch_plan *plan;
    struct agent_watch_item *next_of_node; /* of the node, or of all scalars */
    const Gradb__V1__WatchItem *message;   /* options and triggers; owned by the plan */
    gradb_node node;                       /* 0: a scalar */
    uint32_t slot;
    int64_t since; /* the first step that begins while it, or one whose place it took, stands */
    /* Other items want the same at the same moment: one of them computes, and what it saw lies with
     * this one, which may be itself. NULL: there is none. */
    struct agent_watch_item *leader;
    struct agent_look *shared; /* of a leader */
    uint64_t shared_at;        /* the moment of `shared` */
    struct gd_units *units;    /* NULL: not asked for, or with the leader */
    /* Of values that others are the same as: what was seen of them. With the leader; NULL until the
     * program says so for the first time. */
    struct agent_seen *seen;
    struct agent_watch_item *twin; /* that has what this one last took; NULL not known */
    uint64_t twin_of;              /* agent.plan_changes by then: another, and it may be gone */
    unsigned char counted;         /* in which counts of the agent it is: agent_plans.c */
    bool only_not_finite;          /* a value of finite elements alone is not worth telling */
    int64_t recorded_step;         /* the last step in which it was recorded */
    uint64_t ns, runs;
    /* of a scalar: the last value told, and the one of the step before */
    double scalar, previous;
    int64_t scalar_step, previous_step; /* 0: none */
};

struct agent_watch_plan {
    struct agent_watch_plan *next;
    Gradb__V1__ToTrainer *message; /* the unpacked WatchPlan; owns everything */
    const Gradb__V1__WatchPlan *plan;
    bool exact;
    uint64_t serial; /* no other plan has or had it */
    uint64_t place;  /* in the list of plans: grows along it */
    struct agent_watch_item *items;
    size_t item_count;
    struct gd_buf record; /* values of this step, packed as WatchReport.values */
    size_t record_count;
    int64_t step;              /* that step_ns is of */
    uint64_t step_ns, last_ns; /* spent in that step, and in the one before */
    uint64_t wait_ns, reports, report_bytes;
};

/* One moment at which plans are looked at: all is computed and queued first, then one wait. */
struct agent_moment {
    struct agent *a;
    uint64_t number;
    struct agent_told told;        /* of the node that was told of; else nothing */
    bool exact;                    /* a node was told of, its value is as it came out */
    struct agent_watch_plan *plan; /* of the values gathered so far */
    struct gd_buf values;          /* packed as WatchReport.values */
    size_t count;
    uint64_t report;      /* number of the report that has begun; 0: none */
    uint64_t wait;        /* the last report that holds; 0: none */
    uint64_t wait_serial; /* the plan of `wait` */
};

/* ---- agent_plans.c ------------------------------------------------------------------- */

bool agent_item_is_scalar(const struct agent_watch_item *item);
bool agent_item_wants_previous(const struct agent_watch_item *item);
uint32_t agent_item_dead_steps(const struct agent_watch_item *item);
/* The item's report depends on how old the value is. */
bool agent_item_wants_age(const struct agent_watch_item *item);
/* Of a weight of an eager program: what zero_grad() sets back, or drops. */
bool agent_is_gradient_that_lasts(const struct agent_node *node);

/* ---- agent_stats.c ------------------------------------------------------------------- */

/* Whether they ask for the same; either may be NULL. */
bool agent_options_equal(const Gradb__V1__StatsOptions *a, const Gradb__V1__StatsOptions *b);
/* Statistics of `cur` against `prev`, which may be NULL or of another type or shape. Fills
 * ret->code, text, value and stats. */
void agent_stats_compute(const struct agent *a, const struct agent_value *cur,
                         const struct gd_tensor *prev, const Gradb__V1__StatsOptions *options,
                         struct agent_look *ret);
/* Whether all elements are finite, where finding out is worth it; false: perhaps not. */
bool agent_stats_all_finite(const struct agent *a, const struct gd_tensor *value);
bool agent_bins_ok(const Gradb__V1__Bins *bins);
/* Finds a slot's value and, where it is compared, the one before (*against), asking the source
 * where that must be. ret->histogram is the caller's. True: agent_stats_compute is what remains;
 * false: there is no value, or the source has computed. */
bool agent_stats_find(struct agent *a, uint32_t node, uint32_t slot, Gradb__V1__Iteration iteration,
                      const Gradb__V1__StatsOptions *options, struct agent_value *previous,
                      bool *against, struct agent_look *ret);
/* Both of it. */
void agent_stats_look(struct agent *a, uint32_t node, uint32_t slot, Gradb__V1__Iteration iteration,
                      const Gradb__V1__StatsOptions *options, struct agent_look *ret);

/* A look as a message; its parts point into the look. */
struct agent_stats_message {
    Gradb__V1__TensorStats value;
    Gradb__V1__Stats stats;
    Gradb__V1__Difference difference;
    uint64_t *histogram;
};
/* `ret` must be freed, the look must outlive it. */
void agent_stats_message(struct agent_look *look, const Gradb__V1__StatsOptions *options,
                         struct agent_stats_message *ret);
void agent_stats_message_free(struct agent_stats_message *message);

/* ---- agent_same.c -------------------------------------------------------------------- */

/* True: the program says that the item's value has elements that were looked at already, and *ret
 * is filled with what was seen. */
bool agent_same_take(const struct agent_moment *m, struct agent_watch_item *item,
                     struct agent_look *ret);
/* Remembers a look, if others may ask for it. */
void agent_same_keep(const struct agent_moment *m, const struct agent_watch_item *item,
                     const struct agent_look *look);

/* ---- agent_pack.c -------------------------------------------------------------------- */

/* Whether agent_pack_value can tell all of it: no error, no difference, no histogram, no scalar. */
bool agent_pack_is_for(const struct agent_watch_item *item, const struct agent_look *look);
/* Appends "values { ... }" of a WatchReport. False: no memory or no room, nothing is changed. */
bool agent_pack_value(struct gd_buf *to, const struct agent_watch_item *item,
                      const struct agent_look *look);

/* ---- agent_report.c ------------------------------------------------------------------ */

/* A trigger of the item holds, or the value could not be checked. */
bool agent_worth_reporting(const struct agent_watch_item *item, const struct agent_look *look,
                           int64_t step);
/* Adds a value to what the moment reports of the item's plan. */
void agent_report_value(struct agent_moment *m, const struct agent_watch_item *item,
                        struct agent_look *look);
/* Queues what was gathered of the current plan as the last part of its report. */
void agent_report_end(struct agent_moment *m);
/* Keeps a value for the plan's record of this step. */
void agent_record_value(struct agent *a, struct agent_watch_item *item, struct agent_look *look);
void agent_record_send(struct agent *a, struct agent_watch_plan *plan);

#endif
