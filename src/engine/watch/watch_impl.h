// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The inside of watching, shared by watchpoint.c and watch_*.c only. A session's watching is
 * rebuilt from the debugger's list whenever that or the graph changes: covers (one per enabled
 * watchpoint: what it selects here and who evaluates it), sites (node -> covers), tensors (node and
 * slot, and what judging learned about it), and plans for the target. What was learned about a
 * tensor is carried over; a plan is sent only if it differs from what the target has.
 */
#ifndef GD_ENGINE_WATCH_IMPL_H
#define GD_ENGINE_WATCH_IMPL_H

#include "engine/watch/watch_report.h"
#include "engine/watch/watchpoint.h"

#define WATCH_PLAN_ITEMS   20000
#define WATCH_MAX_TRIGGERS 12 /* of one watchpoint */
/* While the graph grows, a plan with this many items gets no more, so that the target's plans need
 * not be sent again with each part; when a class has this many plans, they are joined. */
#define WATCH_SEALED_ITEMS 64
#define WATCH_SEALED_PLANS 64

enum watch_mode {
    WATCH_MODE_NONE,    /* cannot be evaluated in this session: see cover.problem */
    WATCH_MODE_PLAN,    /* by gradb, from what a plan reports */
    WATCH_MODE_SCALAR,  /* by gradb, when the target reports the metric */
    WATCH_MODE_INITIAL, /* by gradb, once, at the stop before the first step */
    WATCH_MODE_REMOTE,  /* by the process itself */
};

struct watch_wants { /* what a watchpoint needs of the statistics, its guard included */
    struct gd_condition_want want;
    bool exact;         /* is to be judged as soon as the node has run */
    bool step_end_only; /* only at the end of a step: by its nature, or because the user says so */
    bool nonfinite;     /* only looks for NaN and Inf */
    bool always;        /* no trigger can say when a value is worth examining */
    bool age;           /* asks when a value was computed: only meaningful between steps */
    struct gd_comparison_of trigger[WATCH_MAX_TRIGGERS];
    size_t trigger_count;
};

struct watch_memory { /* what one watchpoint judged about one tensor */
    unsigned told;    /* the last reported error, 0 none */
    uint32_t held;    /* it held in this many consecutive steps up to held_step */
    int64_t held_step;
    int64_t hit_step; /* INT64_MIN: never */
};

struct watch_sum { /* for a condition that is judged on all its tensors of a step together */
    struct gd_stats stats;
    int64_t step;
    size_t seen, expected; /* tensors */
    size_t with_stats;
    unsigned error; /* of those without statistics */
    struct gd_series series;
};

struct gd_exclude { /* of the debugger's list */
    struct gd_exclude *next;
    char *where;
    struct gd_selector *selector;
};

struct watch_cover { /* one watchpoint in one session */
    int number;
    struct gd_watchpoint *watch; /* NULL: deleted while values are being judged */
    uint32_t revision;           /* of the watchpoint when it was resolved */
    enum watch_mode mode;
    gd_node_id *nodes; /* in node order */
    size_t node_count, node_cap;
    const char *scalar; /* the metric that it watches instead; NULL none */
    struct watch_wants wants;
    struct watch_memory memory; /* of a sum */
    struct watch_sum sum;
    int problem; /* enum gd_status: why it is not set here */
    bool warned; /* about the problem */
    char problem_text[GD_ERR_TEXT_MAX];
    bool unable; /* the process cannot evaluate it */
    enum { INITIAL_TO_DO, INITIAL_UNDER_WAY, INITIAL_DONE } initial; /* WATCH_MODE_INITIAL */
    bool sent; /* WATCH_MODE_REMOTE: with these nodes, at this revision */
    uint32_t sent_revision;
    gd_node_id *sent_nodes;
    size_t sent_count;
};

struct watch_recipe { /* what is computed for a tensor; equal recipes are shared, and few */
    struct watch_recipe *next;
    struct gd_stats_options options;
    bool against_previous;
    uint32_t dead_steps;
    bool bins;
    size_t trigger_count;
    struct gd_watch_trigger trigger[];
};

struct watch_serve {
    uint32_t which; /* cover of the set */
    int range;      /* of the recipe; -1 none */
};
struct watch_part { /* one item of a tensor */
    bool exact, hold;
    uint32_t layer; /* an item that could not be merged with the previous one */
    const struct watch_recipe *recipe;
    struct watch_serve *serve;
    uint32_t serve_count;
};
struct watch_set { /* the covers of a node; shared by all nodes with the same ones */
    uint64_t hash;
    struct watch_set *next; /* of the bucket */
    bool executes, excluded;
    uint32_t *cover; /* index of w->covers */
    uint32_t cover_count;
    bool series; /* one of them needs the past of the values */
    struct watch_part *part;
    uint32_t part_count;
};

struct watch_tensor {
    gd_node_id node; /* GD_NO_NODE: a scalar; those are last */
    uint32_t slot;
    const char *scalar;
    const struct watch_set *set;
    uint32_t memory;              /* its first of w->memory, one for each cover of the set */
    uint32_t series;              /* of w->series; UINT32_MAX none */
    int64_t intended_step;        /* the last step in which it held intended infinities; 0 never */
    unsigned char intended_signs; /* which: 1 +inf, 2 -inf */
};

struct watch_item {
    gd_node_id node;
    uint32_t slot;
    const char *scalar;
    const struct watch_recipe *recipe;
    uint32_t tensor;
    const struct watch_part *part;
};
struct watch_plan {
    uint32_t id;
    bool exact, hold, record;
    uint32_t layer, chunk;
    bool known;               /* the target has a plan of that number */
    bool sent;                /* and it is this one */
    struct watch_item *items; /* by node and slot, scalars last */
    size_t count, cap, room;
};

#define WATCH_BUCKETS 1024

struct watch_recheck;

struct gd_watching {
    struct gd_session *session;
    uint64_t generation; /* of the graph that was resolved */
    uint64_t changes;    /* of its nodes, by then: gd_graph_changes */
    uint64_t version;    /* grows with each build */
    bool building;
    int judging;  /* > 0: do not rebuild now */
    bool stale;   /* rebuild when the judging is over */
    bool growing; /* the graph grew while the training runs: most of it is unchanged */
    bool warned_memory, warned_push;
    struct watch_cover *covers; /* by number */
    size_t cover_count;
    uint32_t *first; /* [node_limit + 1]: of `site`, by node */
    uint32_t *site;  /* indexes of covers */
    uint32_t node_limit;
    size_t first_cap, site_cap;
    unsigned char *excluded; /* a bit for each node; NULL: none */
    struct watch_set **sets; /* WATCH_BUCKETS */
    struct watch_recipe *recipes;
    struct watch_tensor *tensors;
    size_t tensor_count, tensor_cap;
    struct watch_memory *memory;
    size_t memory_count, memory_cap;
    struct gd_series *series;
    size_t series_count, series_cap;
    struct watch_plan *plans;
    size_t plan_count;
    uint32_t next_plan;
    char **names; /* of metrics: kept as long as the watching */
    size_t name_count, name_cap;
    /* states of scopes, of `version` and of the graph's `state_generation` */
    uint64_t state_version, state_generation;
    unsigned char *scope_state; /* enum gd_watch_state */
    uint32_t scope_count;
    struct watch_recheck *recheck; /* a recheck by the user, under way */
    size_t recheck_missing;        /* tensors without a value in the last recheck */
    struct watch_recheck *initial; /* of WATCH_MODE_INITIAL */
};

/* ---- watchpoint.c -------------------------------------------------------------------------- */

/* Deletes a watchpoint from the list, and from all sessions. */
void watchpoints_remove(struct gd_debugger *debugger, struct gd_watchpoint *watch);

/* ---- watch_session.c ----------------------------------------------------------------------- */

/* The session's watching, created on first use; NULL: out of memory. */
struct gd_watching *watching_of(struct gd_session *session);
/* Brings a session up to date with the list and its graph. Warns about each problem once, about
 * nodes that may still come only with `all`, and never about watchpoint `quiet`. */
void watching_refresh(struct gd_session *session, int quiet, bool all);
/* `watch` was added or changed: updates all sessions. The current one may refuse it (GD_ESTATE,
 * GD_EUNSUPPORTED, GD_ENOTFOUND), the others only warn. */
int watching_settle(struct gd_debugger *debugger, const struct gd_watchpoint *watch,
                    struct gd_err *err);
/* Ends one level of judging; rebuilds what had to wait. */
void watching_end_judging(struct gd_watching *w);
/* The warnings of watching_refresh. */
void watching_tell_problems(struct gd_watching *w, int quiet, bool all);

/* ---- watch_resolve.c ----------------------------------------------------------------------- */

/* Covers, sites and exclusions. GD_ENOMEM. */
int watching_resolve(struct gd_watching *w, struct gd_err *err);
void watching_clear_covers(struct gd_watching *w);
/* Who would evaluate it there; not 0, with the reason, if no one can. */
int watching_mode(const struct gd_watching *w, const struct watch_cover *cover,
                  enum watch_mode *ret, struct gd_err *err);
void watching_wants(const struct gd_watchpoint *watch, const struct gd_settings *settings,
                    struct watch_wants *ret);
/* Whether it is judged in this session: not if it is disabled, spent, or for all ranks. */
bool watching_is_judged(const struct gd_watchpoint *watch);
/* Whether it judges nodes. */
bool watching_has_sites(const struct watch_cover *cover);
/* Covers of a node: returns how many; *ret is borrowed. */
uint32_t watching_covers_of(const struct gd_watching *w, gd_node_id node, const uint32_t **ret);
bool watching_is_excluded(const struct gd_watching *w, gd_node_id node);
/* Whether a slot has numbers, or may have. An eager program, which reports tensors as they come and
 * answers commands, names the type of every slot that has one. */
bool watching_slot_ok(const struct gd_session *session, gd_node_id node, uint32_t slot);

/* ---- watch_merge.c ------------------------------------------------------------------------- */

/* The set of those covers, created if new; NULL: out of memory. */
const struct watch_set *watching_set(struct gd_watching *w, const uint32_t *covers, uint32_t count,
                                     bool executes, bool excluded);
void watching_clear_sets(struct watch_set **sets);
void watching_clear_recipes(struct watch_recipe *recipes);

/* ---- watch_plan.c -------------------------------------------------------------------------- */

/* Tensors and plans. What was learned is carried over for covers that had that number and revision
 * at their index before. GD_ENOMEM: nothing has changed. */
int watching_build(struct gd_watching *w, const int *old_number, const uint32_t *old_revision,
                   struct gd_err *err);
int watching_push(struct gd_watching *w, struct gd_err *err); /* what the target lacks */
void watching_clear_plans(struct gd_watching *w);
/* Stops watching; the numbers of the target's plans are kept, to remove them later. */
void watching_drop_plans(struct gd_watching *w);
struct watch_plan *watching_plan(const struct gd_watching *w, uint32_t id);
/* Index of the plan's item, SIZE_MAX none. */
size_t watching_item(const struct watch_plan *plan, gd_node_id node, uint32_t slot,
                     const char *scalar);
/* Index of the tensor, SIZE_MAX none. */
size_t watching_tensor(const struct gd_watching *w, gd_node_id node, uint32_t slot,
                       const char *scalar);

/* Appends the nodes from `first` on, whose sites exist. false: nothing learned is lost, but
 * everything must be rebuilt. */
bool watching_extend(struct gd_watching *w, gd_node_id first);

/* ---- watch_grow.c -------------------------------------------------------------------------- */

/* If only new nodes came while the training runs: adds them, at a cost that depends only on their
 * number. false: otherwise, or on failure: everything must be rebuilt. */
bool watching_grow(struct gd_watching *w);

/* ---- watch_remote.c ------------------------------------------------------------------------ */

void watching_push_remote(struct gd_watching *w);
void watching_unwatch(struct gd_watching *w, struct watch_cover *cover);

/* ---- watch_judge.c ------------------------------------------------------------------------- */

struct watch_judging {
    struct gd_watching *w;
    int64_t step;
    bool recheck;           /* reports again what was already reported, stops nothing */
    uint64_t stop_sequence; /* of the stop that the values belong to; 0: the next one */
    bool stop;              /* a hit asks the training to stop */
    bool other;             /* a value holds what is not meant to be there for good */
    size_t hits;
    char *why; /* filled by the first such hit */
    size_t size;
};
/* Judges one value for those covers of a tensor that `part` serves. */
void watching_judge(struct watch_judging *judging, size_t tensor, const struct watch_part *part,
                    struct gd_observation *seen);
struct watch_place {
    gd_node_id node;
    uint32_t slot;
    const char *scalar;
};
/* One value for one cover; place NULL: all its tensors together. */
void watching_judge_cover(struct watch_judging *judging, struct watch_cover *cover,
                          const struct watch_place *place, struct watch_memory *memory,
                          const struct gd_observation *seen);
/* The sums during a recheck: reset, then judge what came together. */
void watching_sums_begin(struct gd_watching *w);
void watching_sums_end(struct watch_judging *judging);
void watching_on_scalar(struct gd_watching *w, const struct gd_scalar *scalar);
void watching_judge_number(struct watch_judging *judging, const struct gd_scalar *scalar);

/* ---- watch_recheck.c ----------------------------------------------------------------------- */

/* At the stop before the first step: judges what is meant for it and was not judged yet. */
void watching_initial(struct gd_watching *w);
void watching_recheck_event(struct gd_watching *w, const struct gd_event *event);
void watching_recheck_free(struct gd_watching *w);

/* ---- watch_intended.c ---------------------------------------------------------------------- */

/* Whether all non-finite elements of this value are infinities that the program asked for: its
 * operator got one as an argument, or read them from one that did. Remembers and counts it. */
bool watching_is_intended(struct gd_watching *w, struct watch_tensor *tensor,
                          const struct watch_part *part, const struct gd_observation *seen);
/* Whether this depends on the graph alone: other values with infinities of the same signs, no NaN
 * and more than one element are intended, too, until an input or an attribute changes. */
bool watching_stays_intended(const struct gd_watching *w, const struct watch_tensor *tensor);

/* ---- excluded nodes (watch_list.c, watch_exclude.c) ------------------------------------------ */

/* One bit per node of the graph, set if excluded; *ret NULL if none is. */
int excluded_nodes(struct gd_debugger *debugger, struct gd_graph *graph, unsigned char **ret,
                   struct gd_err *err);
void excluded_free(struct gd_debugger *debugger);

#endif
