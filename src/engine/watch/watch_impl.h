// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The insides of watching, shared by watchpoint.c and watch_*.c and nobody else.
 *
 * A session's watching is built anew from the debugger's list whenever that or the graph changes:
 * covers (one for each enabled watchpoint: what it selects here and who evaluates it), sites (node
 * -> covers), tensors (node and slot, what is known of it from judging), and plans for the target.
 * What was learned of a tensor is carried over; a plan is sent only when it differs from what the
 * target has.
 */
#ifndef GD_ENGINE_WATCH_IMPL_H
#define GD_ENGINE_WATCH_IMPL_H

#include "engine/watch/watch_report.h"
#include "engine/watch/watchpoint.h"

#define WATCH_PLAN_ITEMS   20000
#define WATCH_MAX_TRIGGERS 12 /* of one watchpoint */
/* While the graph grows, a plan of so many items gets no more, so that what the target has need not
 * be sent again with each part; when a class has come to so many plans, they are joined. */
#define WATCH_SEALED_ITEMS 64
#define WATCH_SEALED_PLANS 64

enum watch_mode {
    WATCH_MODE_NONE,    /* cannot be evaluated in this session: cover.problem */
    WATCH_MODE_PLAN,    /* by us, from what a plan reports */
    WATCH_MODE_SCALAR,  /* by us, when the target tells the number */
    WATCH_MODE_INITIAL, /* by us, once, at the stop before the first step */
    WATCH_MODE_REMOTE,  /* by the process itself */
};

struct watch_wants { /* what a watchpoint asks of the statistics, its guard's needs included */
    struct gd_condition_want want;
    bool exact;         /* wants to be judged as soon as the node has run */
    bool step_end_only; /* means nothing in the middle of a step, or the user wants it so */
    bool nonfinite;     /* looks for NaN and Inf and for nothing else */
    bool always;        /* no trigger can tell when a value is worth a look */
    bool age;           /* asks when a value was computed: means something between steps alone */
    struct gd_comparison_of trigger[WATCH_MAX_TRIGGERS];
    size_t trigger_count;
};

struct watch_memory { /* what was judged of one tensor by one watchpoint */
    unsigned told;    /* the error that was reported last, 0 none */
    uint32_t held;    /* in so many steps in a row up to held_step */
    int64_t held_step;
    int64_t hit_step; /* INT64_MIN: never */
};

struct watch_sum { /* of a condition that is judged on all its tensors of a step together */
    struct gd_stats stats;
    int64_t step;
    size_t seen, expected; /* tensors */
    size_t with_stats;
    unsigned error; /* of those without */
    struct gd_series series;
};

struct watch_cover { /* one watchpoint in one session */
    int number;
    struct gd_watchpoint *watch; /* NULL: deleted while values are being judged */
    uint32_t revision;           /* of the watchpoint when it was resolved */
    enum watch_mode mode;
    gd_node_id *nodes; /* in node order */
    size_t node_count, node_cap;
    const char *scalar; /* the number that it watches instead; NULL none */
    struct watch_wants wants;
    struct watch_memory memory; /* of a sum */
    struct watch_sum sum;
    int problem; /* enum gd_status: why it is not set here */
    bool warned; /* of the problem */
    char problem_text[GD_ERR_TEXT_MAX];
    bool unable; /* the process cannot evaluate it */
    enum { INITIAL_TO_DO, INITIAL_UNDER_WAY, INITIAL_DONE } initial; /* WATCH_MODE_INITIAL */
    bool sent; /* WATCH_MODE_REMOTE: with these nodes, at this revision */
    uint32_t sent_revision;
    gd_node_id *sent_nodes;
    size_t sent_count;
};

struct watch_recipe { /* what is computed of a tensor; those with the same content are one */
    uint64_t hash;
    struct watch_recipe *next; /* of the bucket */
    struct gd_stats_options options;
    bool against_previous;
    uint32_t dead_steps;
    size_t trigger_count;
    struct gd_watch_trigger trigger[];
};

struct watch_serve {
    uint32_t which; /* cover of the set */
    int range;      /* of the recipe; -1 none */
};
struct watch_part { /* one item of a tensor */
    bool exact, hold;
    uint32_t layer; /* an item that could not be joined with the one before it */
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
    bool series; /* one of them wants the past of the values */
    struct watch_part *part;
    uint32_t part_count;
};

struct watch_tensor {
    gd_node_id node; /* GD_NO_NODE: a scalar; those stand last */
    uint32_t slot;
    const char *scalar;
    const struct watch_set *set;
    uint32_t memory;       /* its first of w->memory, one for each cover of the set */
    uint32_t series;       /* of w->series; UINT32_MAX none */
    int64_t intended_step; /* the last in which it held infinities that were asked for; 0 never */
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
    bool known;               /* the target has one of that number */
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
    int judging;  /* > 0: nothing may be built now */
    bool stale;   /* to be built when the judging is over */
    bool growing; /* the graph grew while the training runs: little is to be told anew */
    bool warned_memory, warned_push;
    struct watch_cover *covers; /* by number */
    size_t cover_count;
    uint32_t *first; /* [node_limit + 1]: of `site`, by node */
    uint32_t *site;  /* indexes of covers */
    uint32_t node_limit;
    size_t first_cap, site_cap;
    unsigned char *excluded; /* a bit for each node; NULL: none */
    struct watch_set **sets; /* WATCH_BUCKETS */
    struct watch_recipe **recipes;
    struct watch_tensor *tensors;
    size_t tensor_count, tensor_cap;
    struct watch_memory *memory;
    size_t memory_count, memory_cap;
    struct gd_series *series;
    size_t series_count, series_cap;
    struct watch_plan *plans;
    size_t plan_count;
    uint32_t next_plan;
    char **names; /* of scalars: kept as long as the watching */
    size_t name_count;
    /* states of scopes, of `version` and of the graph's `state_generation` */
    uint64_t state_version, state_generation;
    unsigned char *scope_state; /* enum gd_watch_state */
    uint32_t scope_count;
    struct watch_recheck *recheck; /* under way: that the user asked for */
    size_t recheck_missing;        /* tensors that the last recheck found no value of */
    struct watch_recheck *initial; /* of WATCH_MODE_INITIAL */
};

/* ---- watchpoint.c -------------------------------------------------------------------------- */

/* The session's, made when there is none; NULL: out of memory. */
struct gd_watching *watching_of(struct gd_session *session);
/* Brings a session up to date with the list and its graph. Tells problems by warnings once, those
 * of nodes that may still come only with `all`; never of watchpoint `quiet`. */
void watching_refresh(struct gd_session *session, int quiet, bool all);
void watching_end_judging(struct gd_watching *w); /* takes one back, builds what had to wait */

/* ---- watch_resolve.c ----------------------------------------------------------------------- */

/* Covers, sites and exclusions. GD_ENOMEM. */
int watching_resolve(struct gd_watching *w, struct gd_err *err);
void watching_clear_covers(struct gd_watching *w);
/* Who would evaluate it there; not 0 with the reason when nobody can. */
int watching_mode(const struct gd_watching *w, const struct watch_cover *cover,
                  enum watch_mode *ret, struct gd_err *err);
void watching_wants(const struct gd_watchpoint *watch, const struct gd_settings *settings,
                    struct watch_wants *ret);
/* Whether it has a place in this session: not of one that is disabled, spent, or of all ranks. */
bool watching_is_judged(const struct gd_watchpoint *watch);
/* Whether nodes are judged for it. */
bool watching_has_sites(const struct watch_cover *cover);
/* Covers of a node: returns how many; *ret is borrowed. */
uint32_t watching_covers_of(const struct gd_watching *w, gd_node_id node, const uint32_t **ret);
bool watching_is_excluded(const struct gd_watching *w, gd_node_id node);
/* Whether a slot has numbers, or may have. An eager program, which tells of its tensors as they
 * come and answers commands, names the type of every slot that has one. */
bool watching_slot_ok(const struct gd_session *session, gd_node_id node, uint32_t slot);

/* ---- watch_merge.c ------------------------------------------------------------------------- */

/* The set of those covers, made when it is new; NULL: out of memory. */
const struct watch_set *watching_set(struct gd_watching *w, const uint32_t *covers, uint32_t count,
                                     bool executes, bool excluded);
void watching_clear_sets(struct watch_set **sets);
void watching_clear_recipes(struct watch_recipe **recipes);

/* ---- watch_plan.c -------------------------------------------------------------------------- */

/* Tensors and plans. What was learned is carried over for covers that had that number and revision
 * at their index before. GD_ENOMEM: nothing has changed. */
int watching_build(struct gd_watching *w, const int *old_number, const uint32_t *old_revision,
                   struct gd_err *err);
int watching_push(struct gd_watching *w, struct gd_err *err); /* what the target lacks */
void watching_clear_plans(struct gd_watching *w);
/* Nothing is watched; the numbers of plans that the target has are kept, to take them back. */
void watching_drop_plans(struct gd_watching *w);
struct watch_plan *watching_plan(const struct gd_watching *w, uint32_t id);
/* Index of the plan's item, SIZE_MAX none. */
size_t watching_item(const struct watch_plan *plan, gd_node_id node, uint32_t slot,
                     const char *scalar);
/* Index of the tensor, SIZE_MAX none. */
size_t watching_tensor(const struct gd_watching *w, gd_node_id node, uint32_t slot,
                       const char *scalar);

/* Takes in the nodes from `first` on, whose sites are there, behind the others. false: nothing of
 * what was learned is lost, but all must be built anew. */
bool watching_extend(struct gd_watching *w, gd_node_id first);

/* ---- watch_grow.c -------------------------------------------------------------------------- */

/* When nothing but new nodes came while the training runs: takes them in, at a cost that goes by
 * how many these are. false: it is not so, or cannot be done: all must be built anew. */
bool watching_grow(struct gd_watching *w);

/* ---- watch_remote.c ------------------------------------------------------------------------ */

void watching_push_remote(struct gd_watching *w);
void watching_unwatch(struct gd_watching *w, struct watch_cover *cover);

/* ---- watch_judge.c ------------------------------------------------------------------------- */

struct watch_judging {
    struct gd_watching *w;
    int64_t step;
    bool recheck;           /* reports again what was reported, stops nothing */
    uint64_t stop_sequence; /* of the stop that the values are of; 0: of the one that comes */
    bool stop;              /* a hit wants the training to stop */
    size_t hits;
    char *why; /* filled by the first such hit */
    size_t size;
};
/* Judges one value for the covers of a tensor that `part` serves. */
void watching_judge(struct watch_judging *judging, size_t tensor, const struct watch_part *part,
                    struct gd_observation *seen);
struct watch_place {
    gd_node_id node;
    uint32_t slot;
    const char *scalar;
};
/* One value for one cover; place NULL: of all its tensors together. */
void watching_judge_cover(struct watch_judging *judging, struct watch_cover *cover,
                          const struct watch_place *place, struct watch_memory *memory,
                          const struct gd_observation *seen);
/* The sums of recheck: forgets them, judges what came together. */
void watching_sums_begin(struct gd_watching *w);
void watching_sums_end(struct watch_judging *judging);
void watching_on_scalar(struct gd_watching *w, const struct gd_scalar *scalar);
void watching_judge_number(struct watch_judging *judging, const struct gd_scalar *scalar);
void watching_number_stats(double value, struct gd_stats *ret);

/* ---- watch_recheck.c ----------------------------------------------------------------------- */

/* At the stop before the first step: judges what is made for it and was not judged yet. */
void watching_initial(struct gd_watching *w);
void watching_recheck_event(struct gd_watching *w, const struct gd_event *event);
void watching_recheck_free(struct gd_watching *w);

/* ---- watch_intended.c ---------------------------------------------------------------------- */

/* Whether all that is not finite in this value is infinities that the program asked for: its
 * operator was told one, or was given them by one that was. Remembers and counts it. */
bool watching_is_intended(struct gd_watching *w, struct watch_tensor *tensor,
                          const struct watch_part *part, const struct gd_observation *seen);

/* ---- watch_exclude.c ----------------------------------------------------------------------- */

/* A bit for each node of the graph that is excluded; *ret NULL when none is. */
int excluded_nodes(struct gd_debugger *debugger, struct gd_graph *graph, unsigned char **ret,
                   struct gd_err *err);
void excluded_free(struct gd_debugger *debugger);

#endif
