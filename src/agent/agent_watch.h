// SPDX-License-Identifier: MIT
/*
 * Watch plans in the training process: agent_plans.c stores them, agent_watch.c examines values
 * when their moment has come, agent_same.c remembers values that share elements with others,
 * agent_report.c decides what is worth reporting and reports it. All of it happens with the lock,
 * and all except setting plans on the training thread.
 *
 * A value that need not be reported costs its statistics and nothing else: no memory is
 * allocated and no message is made for it.
 */
#ifndef GRADB_AGENT_WATCH_H
#define GRADB_AGENT_WATCH_H

#include "agent/agent_tensor.h"
#include "base/stats.h"
#include "base/units.h"

#define AGENT_BINS 64 /* of a histogram that a look has room for */

struct agent_told { /* what gradb_did_with_same declares about the outputs */
    const gradb_same *same;
    size_t count;
};

/* The result of examining one value at one moment. */
struct agent_look {
    int code;       /* -1: statistics are present; otherwise a Gradb__V1__RequestError__Code */
    char text[160]; /* why they are missing */
    bool located;   /* `value` is filled */
    struct agent_value value;
    struct gd_stats stats;
    bool remote;         /* computed by the source: the value has no data here */
    bool taken;          /* reused from a value with the same elements */
    uint64_t *histogram; /* room for bins that the source may fill; NULL: `bins`, if they fit */
    uint64_t bins[AGENT_BINS];
    bool binned; /* `bins` has those of the value's own range */
    uint64_t cost_ns;
};

/* A set of statistics of one value, requested by a watch plan. */
struct agent_watch_item {
    struct agent_watch_plan *plan;
    struct agent_watch_item *next_of_node; /* of the node, or of all scalars */
    const Gradb__V1__WatchItem *message;   /* options and triggers; owned by the plan */
    gradb_node node;                       /* 0: a scalar */
    uint32_t slot;
    /* If several items want the same at the same moment, the leader (possibly this item) holds the
     * result for all. NULL: no other item does. */
    struct agent_watch_item *leader;
    struct agent_look *shared; /* in a leader */
    uint64_t shared_at;        /* the moment of `shared` */
    struct gd_units *units;    /* NULL: not requested, or held by the leader */
    /* For values that others share elements with: what was seen of them. Held by the leader; NULL
     * until the program declares it for the first time. */
    struct agent_seen *seen;
    struct agent_early *early;     /* NULL, or what was seen of a value before it was gone */
    struct agent_watch_item *twin; /* the item whose result was last reused; NULL: unknown */
    uint64_t twin_of; /* agent.plan_changes at that time: if it differs now, `twin` may be gone */
    unsigned char counted; /* bits of agent_plans.c: which counts of the agent include it */
    bool repeats;          /* its node has run more than once in a step: the last run is recorded */
    bool seeks_not_finite; /* a value with finite elements only is not worth reporting */
    bool only_not_finite;  /* nor recording */
    unsigned char odd;     /* what its last held report had: bits of agent_report.c */
    unsigned char meant;   /* of those, what the debugger has said is meant to be there */
    uint64_t odd_at;       /* the moment of that report */
    uint64_t meant_at;     /* agent.graph_changes when the debugger said so */
    int64_t recorded_step; /* step in which it was last recorded */
    uint64_t ns, runs;
    /* of a scalar: its last value, and that of the previous step */
    double scalar, previous;
    int64_t scalar_step, previous_step; /* 0: none */
    uint64_t scalar_due; /* `begun` of the first step at whose end it is there; 0: none */
};

struct agent_watch_plan {
    struct agent_watch_plan *next;
    Gradb__V1__ToTrainer *message; /* the unpacked WatchPlan; owns everything */
    const Gradb__V1__WatchPlan *plan;
    bool exact;
    uint64_t serial; /* unique among all plans ever */
    uint64_t place;  /* position in the list of plans; increases along it */
    int64_t since;   /* the first step that begins while it is set */
    bool leaves;     /* it is being replaced */
    struct agent_watch_item *items;
    size_t item_count;
    struct gd_buf record;      /* values of this step, packed as WatchReport.values */
    int64_t step;              /* the step of step_ns */
    uint64_t step_ns, last_ns; /* time spent in that step, and in the previous one */
    uint64_t wait_ns, reports, report_bytes;
};

/* One moment at which plans are processed: everything is computed and queued first, then there is
 * one wait. */
struct agent_moment {
    struct agent *a;
    uint64_t number;
    struct agent_told told;        /* of the reported node */
    bool exact;                    /* a node has just run, and its value is unchanged since */
    struct agent_watch_plan *plan; /* plan of the values collected so far */
    struct gd_buf values;          /* packed as WatchReport.values */
    size_t count;
    uint64_t report;      /* id of the report being built; 0: none */
    uint64_t wait;        /* id of the last holding report; 0: none */
    uint64_t wait_serial; /* the plan of `wait` */
};

/* ---- agent_plans.c ------------------------------------------------------------------- */

bool agent_item_is_scalar(const struct agent_watch_item *item);
bool agent_item_wants_previous(const struct agent_watch_item *item);
uint32_t agent_item_dead_steps(const struct agent_watch_item *item);
/* Whether the report depends on the age of the value. */
bool agent_item_wants_age(const struct agent_watch_item *item);
/* Whether its statistics depend on nothing but the elements: not on an earlier value. */
bool agent_item_is_of_elements(const struct agent_watch_item *item);

/* ---- agent_stats.c ------------------------------------------------------------------- */

/* Whether both request the same; either may be NULL. */
bool agent_options_equal(const Gradb__V1__StatsOptions *a, const Gradb__V1__StatsOptions *b);
/* Statistics of `cur` compared with `prev`, which may be NULL or have another type or shape. Fills
 * ret's code, text, value and stats. */
void agent_stats_compute(const struct agent *a, const struct agent_value *cur,
                         const struct gd_tensor *prev, const Gradb__V1__StatsOptions *options,
                         struct agent_look *ret);
/* Whether all elements are finite, where the test is cheap; false: possibly not. */
bool agent_stats_all_finite(const struct agent *a, const struct gd_tensor *value);
bool agent_bins_ok(const Gradb__V1__Bins *bins);
/* The range of the bins: their own, or that of the value. False: there is none, all are empty. */
bool agent_bins_range(const Gradb__V1__Bins *bins, const struct gd_stats *stats, double *lo,
                      double *hi);
/* Where the source puts the bins of a look; NULL: there is no room. */
uint64_t *agent_look_bins(struct agent_look *look, const Gradb__V1__Bins *bins);
/* Locates a slot's value and, for a comparison, the previous one (*against), asking the source if
 * necessary. ret->histogram belongs to the caller. True: call agent_stats_compute next; false:
 * there is no value, or the source has computed the statistics. */
bool agent_stats_find(struct agent *a, uint32_t node, uint32_t slot, Gradb__V1__Iteration iteration,
                      const Gradb__V1__StatsOptions *options, struct agent_value *previous,
                      bool *against, struct agent_look *ret);
/* agent_stats_find and agent_stats_compute in one call; or what was seen of a value before it was
 * gone (agent_watch_recall). */
void agent_stats_look(struct agent *a, uint32_t node, uint32_t slot, Gradb__V1__Iteration iteration,
                      const Gradb__V1__StatsOptions *options, struct agent_look *ret);

/* A result as a message; its parts point into the result. */
struct agent_stats_message {
    Gradb__V1__TensorStats value;
    Gradb__V1__Stats stats;
    Gradb__V1__Difference difference;
    uint64_t *histogram;
};
/* Free `ret` afterwards; the result must outlive it. */
void agent_stats_message(struct agent_look *look, const Gradb__V1__StatsOptions *options,
                         struct agent_stats_message *ret);
void agent_stats_message_free(struct agent_stats_message *message);

/* ---- agent_same.c -------------------------------------------------------------------- */

/* True: the program declared that the value shares elements with one already examined, and *ret has
 * been filled from that. */
bool agent_same_take(const struct agent_moment *m, struct agent_watch_item *item,
                     struct agent_look *ret);
/* Remembers a result if others may reuse it. */
void agent_same_keep(const struct agent_moment *m, const struct agent_watch_item *item,
                     const struct agent_look *look);

/* ---- agent_pack.c -------------------------------------------------------------------- */

/* Whether agent_pack_value can encode it: no error, difference, histogram or scalar. */
bool agent_pack_is_for(const struct agent_watch_item *item, const struct agent_look *look);
/* Appends "values { ... }" of a WatchReport. False: out of memory or room, nothing was appended. */
bool agent_pack_value(struct gd_buf *to, const struct agent_watch_item *item,
                      const struct agent_look *look);

/* ---- agent_report.c ------------------------------------------------------------------ */

/* Whether a trigger holds or the value could not be checked. */
bool agent_worth_reporting(const struct agent_watch_item *item, const struct agent_look *look,
                           int64_t step);
/* The debugger knows that the value holds infinities like these, and that they are meant to be
 * there. */
bool agent_is_meant(const struct agent *a, const struct agent_watch_item *item,
                    const struct agent_look *look);
/* The debugger has said so of all that was reported of the node at that moment. */
void agent_report_meant(struct agent *a, gradb_node node, uint64_t moment);
/* Adds a value to the report of the item's plan at this moment. */
void agent_report_value(struct agent_moment *m, struct agent_watch_item *item,
                        struct agent_look *look);
/* Queues the values collected for the current plan as the last part of its report. */
void agent_report_end(struct agent_moment *m);
/* Adds a value to the plan's record of this step. */
void agent_record_value(struct agent *a, struct agent_watch_item *item, struct agent_look *look);
void agent_record_send(struct agent *a, struct agent_watch_plan *plan);

/* ---- for the hooks and the I/O thread: agent_plans.c, agent_watch.c ---- */

/* With the lock, on the I/O thread: sets plans that take effect together, each with what those that
 * it replaces have learned. Takes ownership of the messages, but not of their array. */
void agent_watch_set(struct agent *a, agent_to **messages, size_t count);
void agent_watch_clear(struct agent *a);
/* Fills in what was seen early, in this step, of a value that is gone, if that is wanted. */
void agent_watch_recall(const struct agent *a, gradb_node node, uint32_t slot,
                        const Gradb__V1__StatsOptions *options, struct agent_look *ret);
/* What was seen early of an item's value goes to the item that replaces it, if it suffices. */
void agent_watch_inherit(struct agent_watch_item *item, struct agent_watch_item *from);
/* With the lock, on the training thread. May wait for a verdict. True: the thread was stopped here,
 * and a run that began here has not moved yet. */
bool agent_watch_node(struct agent *a, gradb_node node, struct agent_told told);
bool agent_watch_step_end(struct agent *a);
/* The same, for a value that will be gone at the end of the step: examines it now for the plans of
 * that moment. Whether they need a copy of it: the elements themselves are wanted then, or it is
 * worth reporting, so that a user who is stopped for it can see it. */
bool agent_watch_early(struct agent *a, gradb_node node, struct agent_told told);
/* With the lock, on the training thread: a scalar was reported. */
void agent_watch_scalar(struct agent *a, const char *name, double value, int64_t step);
/* Adds the time spent on keeping the node's previous value. Callable concurrently for different
 * nodes. */
void agent_watch_kept(struct agent *a, gradb_node node, uint64_t ns);
/* With the lock: the cost of the plans so far. False: out of memory. */
bool agent_watch_costs(const struct agent *a, Gradb__V1__WatchCosts *ret);
void agent_watch_costs_free(Gradb__V1__WatchCosts *costs);

#endif
