// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Shared by the files of why only, which build on each other in this order: why_graph.c (what the
 * graph says about a node), why_list.c (the values of a walk), why_rules.c (what happened, by
 * operator type), why_past.c (the history of the loss), why_batch.c (unusual inputs, weights and
 * learning rates), why_way.c, why_train.c, why_loss.c and why_chain.c (mistakes that the graph
 * shows), why_fading.c (where a gradient shrank), why_shift.c (gradients that are 0 by algebra),
 * why_large.c and why_tree.c (conclusion and answer), why.c (the walk).
 */
#ifndef GD_ENGINE_WHY_IMPL_H
#define GD_ENGINE_WHY_IMPL_H

#include "base/buf.h"
#include "engine/hash_index.h"
#include "engine/why/why.h"

#define WHY_MAX_TENSORS 20000 /* whose statistics one walk may ask for */
#define WHY_MAX_INPUTS  64    /* of one node, that the rules examine */
#define WHY_NONE        UINT32_MAX
#define WHY_JUMP        3.0 /* times the value of previous steps */
#define WHY_RATE_GROWN  4.0 /* times the first learning rate, to be mentioned by itself */
/* Optimizers that move each element by about the learning rate, whatever the gradient's size. */
#define WHY_ADAPTIVE                                                                               \
    "Adam* FusedAdam* ApplyAdam* FusedApplyAdam* Lamb* Lion* RMSProp* ApplyRMSProp* AdaMax*"

struct why_tensor { /* one value at one step */
    gd_node_id node;
    uint32_t slot;
    int64_t step;    /* the step whose value is wanted; for a parameter: after that step */
    uint32_t parent; /* index of the value that led here; WHY_NONE: the question itself */
    uint32_t writer; /* of a leaf: index of the node that wrote it; WHY_NONE */
    uint32_t order;  /* execution order; 0 for leaves, which come before everything */
    enum gd_why_verdict verdict;
    bool waiting, done;  /* asked; answered for good */
    bool asked_previous; /* the current value is too new: the kept one was asked for */
    bool expanded;       /* its inputs are in the list */
    bool is_leaf;        /* nothing feeds it */
    bool is_constant;    /* a leaf that never changes */
    bool is_mask;        /* its -Inf are meant */
    bool too_new;        /* a size after the update, used in place of the one before it */
    bool late_bad;       /* a later value of it is bad, the one in question is unknown */
    bool is_factor;      /* examined because it is a factor: being 0 is not its own fault */
    bool implied;        /* bad because what it wrote is; its own value is unknown */
    bool has_stats;
    enum gd_dtype dtype;
    struct gd_shape shape;
    struct gd_stats stats;
    int64_t value_step;
    double before; /* GD_BAD_LARGE: mean magnitude in previous steps; -1 unknown */
    char note[96];
};

struct why_walk {
    struct gd_session *session;
    gd_why_fn fn;
    void *ctx;
    enum gd_bad bad;
    struct gd_why_facts facts;
    bool everything; /* expand everything, not only what is bad (GD_BAD_LARGE) */
    bool behind;     /* expand values that are gone, too: the origin reads some */
    uint64_t stop;   /* sequence: the walk ends when the training resumes */
    int64_t step;    /* of the stop */
    uint32_t stop_order;
    struct why_tensor *tensors;
    size_t count, cap, next;    /* next: the first that was not asked for yet */
    struct gd_hash_index index; /* by node, slot and step */
    size_t waiting;
    int pass;      /* with everything: 0 what feeds the graph, 1 the rest */
    size_t others; /* asked for in pass 1 */
    bool cut, pumping, stopped;
    struct gd_err err;       /* why the walk was stopped */
    unsigned char *excluded; /* one bit per node: non-finite values are normal there */
    size_t excluded_limit;   /* number of nodes that it covers */
};

/* ---- why_graph.c ---------------------------------------------------------------------------- */

/* Case ignored; `types` are blank-separated, "Apply*" is a prefix. MindSpore adds "Ext" to the
 * names of the newer forms of its operators, which count as the older ones. */
bool why_type_in(const char *type, const char *types);
bool why_attr_is(const struct gd_node_info *info, const char *name, const char *value);
/* Whether a node runs in that pass: "forward", "backward", "optimizer". */
bool why_in_phase(const struct gd_node_info *info, const char *phase);
bool why_is_gradient(const struct gd_graph *graph, gd_node_id node);
/* Whether input number `i` does not affect the output: a normalization in training computes the
 * statistics of its input, and only updates the running ones. */
bool why_only_updates(const struct gd_node_info *info, uint32_t i);
/* The operator of the forward pass whose gradient a node computes; GD_NO_NODE. */
gd_node_id why_forward(const struct gd_graph *graph, const struct gd_node_info *info);
/* The same, of a node of the backward pass alone. */
gd_node_id why_forward_of(const struct gd_graph *graph, const struct gd_node_info *info);
/* Sets the bit of each operator whose gradient was computed; false if there is none. */
bool why_mark_reached(const struct gd_graph *graph, unsigned char *bits);
/* Whether the question is about the loss. */
bool why_is_loss(const struct why_walk *walk);
bool why_is_writer(const char *type);
/* The node that writes a parameter (an optimizer, an assignment); GD_NO_NODE: unknown. */
gd_node_id why_writer(const struct gd_graph *graph, gd_node_id parameter);
/* Updated by an optimizer; not one of its moments. */
bool why_is_trained(const struct why_walk *walk, const struct why_tensor *tensor);
/* "net/relu (ReLU)" */
void why_put_node(const struct gd_graph *graph, gd_node_id node, struct gd_buf *text);

static inline bool why_has_bit(const unsigned char *bits, gd_node_id node)
{
    return bits[node / 8] & (1U << node % 8);
}

static inline void why_set_bit(unsigned char *bits, gd_node_id node)
{
    bits[node / 8] = (unsigned char)(bits[node / 8] | 1U << node % 8);
}

/* ---- why_list.c ----------------------------------------------------------------------------- */

/* Adds a value to the list unless it is already there; when the list is full, the walk is cut. */
void why_add(struct why_walk *walk, gd_node_id node, uint32_t slot, int64_t step, uint32_t parent);
/* Adds a value of the step to the list without asking for it. Returns its index, or 0, the value in
 * question, when the list is full: what was found is reported all the same. Moves the list. */
uint32_t why_also(struct why_walk *walk, gd_node_id node, uint32_t slot);
/* The same for a factor, which is not judged. */
void why_also_factor(struct why_walk *walk, gd_node_id node, uint32_t slot);
/* Moves the value in question, the only one in the list, to another step. */
void why_move(struct why_walk *walk, int64_t step);
/* The value that `tensor` takes at input number `i`; NULL when it is not in the walk. */
const struct why_tensor *why_input(const struct why_walk *walk, const struct why_tensor *tensor,
                                   uint32_t i);
/* The step of the value that a node of *step reads at input number `i`; false: it reads none. */
bool why_input_step(const struct why_walk *walk, const struct gd_node_info *info, uint32_t i,
                    int64_t *step);

/* Whether the value is bad in that sense, by its statistics alone; and that sense in words. */
bool why_is_bad(enum gd_bad bad, const struct gd_stats *stats);
const char *why_bad_word(enum gd_bad bad);
/* The largest magnitude among the finite elements; 0 if there is none. */
double why_max_abs(const struct gd_stats *stats);
/* "1 of 128", "all 128" */
const char *why_share(uint64_t part, uint64_t whole, char *out, size_t size);
/* A node's name, or the end of a long one. */
const char *why_name(const struct why_walk *walk, const struct why_tensor *tensor);
/* "12 NaN, 3 Inf", "min -3, max 12", ... */
void why_note(const struct why_walk *walk, struct why_tensor *tensor);
/* It holds module state that is not trained. */
bool why_is_buffer(const struct why_walk *walk, const struct why_tensor *tensor);
/* Its readers are gone: whether it made anything bad is unknown. */
bool why_is_behind(const struct why_walk *walk, const struct why_tensor *tensor);
/* How many of its inputs are unknown, and the first of them; NULL. */
uint32_t why_unknown_inputs(const struct why_walk *walk, const struct why_tensor *tensor,
                            const struct why_tensor **one);
/* Marks sums of a mask with something finite as masks. */
void why_settle_masks(struct why_walk *walk);
/* The first in execution order that is bad while none of its inputs is; NULL. */
const struct why_tensor *why_first_bad(const struct why_walk *walk);

/* ---- why_rules.c ---------------------------------------------------------------------------- */

struct why_finding {
    const char *rule;   /* "": none */
    struct gd_buf text; /* sentences */
};
/* Sets rule and text; what was said before is dropped. */
void why_say(struct why_finding *ret, const char *rule, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* What the operator of `origin` did. Leaves the finding unchanged if no rule applies. */
void why_explain(const struct why_walk *walk, const struct why_tensor *origin,
                 struct why_finding *ret);
/* How an infinity became NaN on the way, as one more sentence. */
void why_explain_turn(const struct why_walk *walk, const struct why_tensor *origin,
                      struct why_finding *ret);

/* ---- why_batch.c ---------------------------------------------------------------------------- */

/* Whether a value is one that the program feeds to the graph. */
bool why_is_batch(const struct why_walk *walk, const struct why_tensor *leaf);
/* Whether a graph input has an unusual value; if so, says how. */
bool why_odd_input(const struct why_walk *walk, const struct why_tensor *input, struct gd_buf *say);
/* The learning rate that the program reported: of the optimizer that updates the weight, NULL for
 * that of all. NULL: there is none, or several, and it is unknown which is the weight's. */
const struct gd_scalar *why_learning_rate(const struct why_walk *walk,
                                          const struct why_tensor *weight);
/* Whether an update of that parameter is far too large; if so, says by how much, and since when. */
bool why_odd_weight(const struct why_walk *walk, const struct why_tensor *weight, double *ratio);
/* Whether the learning rate explains large weights; if so, says it. */
bool why_odd_rate(const struct why_walk *walk, const struct why_tensor *weight, struct gd_buf *say);
/* The mean magnitude of a value in previous steps, as kept or recorded; -1 unknown. */
double why_before(const struct why_walk *walk, const struct why_tensor *tensor);
/* The first step since which a value is bad, as recorded; -1 unknown. */
int64_t why_since(const struct why_walk *walk, const struct why_tensor *tensor);
/* A value that nothing computes is bad itself. */
void why_say_leaf(const struct why_walk *walk, const struct why_tensor *leaf, int64_t since,
                  struct why_finding *ret);

/* ---- why_train.c ---------------------------------------------------------------------------- */

/* Mistakes that graph and facts show without examining any value. Each reports what it finds, and
 * returns the index of the value to blame, or WHY_NONE. */
uint32_t why_untrained(struct why_walk *walk, struct why_finding *ret);  /* it gets no update */
uint32_t why_piled_up(struct why_walk *walk, struct why_finding *ret);   /* no zero_grad */
uint32_t why_broadcast(struct why_walk *walk, struct why_finding *ret);  /* (N, 1) against (N) */
uint32_t why_apart(struct why_walk *walk, struct why_finding *ret);      /* ranks diverge */
uint32_t why_bad_number(struct why_walk *walk, struct why_finding *ret); /* a label out of range */
/* That the loss is a sum over examples, as one more sentence. */
bool why_add_sum(const struct why_walk *walk, struct gd_buf *say);

/* ---- why_way.c ------------------------------------------------------------------------------ */

/* The parameter has no gradient: where its way to the loss ends. Index as above. */
uint32_t why_no_gradient(struct why_walk *walk, const char *name, gd_node_id weight,
                         struct why_finding *ret);
/* A remark on weights that no gradient reaches because one was detached or disabled. */
void why_add_unreached(const struct why_walk *walk, struct gd_buf *say);
/* The gradients are gone, or all 0, when the optimizer steps. */
uint32_t why_lost(struct why_walk *walk, struct why_finding *ret);
/* Parameters that an optimizer holds and no gradient reaches, by a cut that the graph shows. */
uint32_t why_cut_off(struct why_walk *walk, struct why_finding *ret);
uint32_t why_all_zero(struct why_walk *walk, struct why_finding *ret);
/* A remark on gradients that are missing, all 0, or not finite. */
void why_add_gradients(const struct why_walk *walk, struct gd_buf *say);
/* Says that GradScaler skipped the update of this step, or will. scaled: the reported values
 * include its factor. */
void why_add_scaling(const struct why_walk *walk, const struct why_tensor *origin, bool scaled,
                     struct gd_buf *say);
/* The question is about the loss, and GradScaler skipped the update of this step. */
bool why_skipped(const struct why_walk *walk, struct why_finding *ret);

/* ---- why_past.c ----------------------------------------------------------------------------- */

/* Whether the loss grew by more than noise; if so, says by how much. */
bool why_diverges(const struct why_walk *walk);
bool why_add_growth(const struct why_walk *walk, struct gd_buf *say);
/* Says what the loss was before, or that it is unknown. */
void why_add_past(const struct why_walk *walk, struct gd_buf *say);
/* Names weights of the walk that are far larger than any usual initialization. */
void why_add_huge(const struct why_walk *walk, struct gd_buf *say);

/* ---- why_shift.c ---------------------------------------------------------------------------- */

/* Adds the values that why_shifted needs to the list. */
void why_ask_factors(struct why_walk *walk);
/* A gradient that is 0 because a factor in the forward pass is. */
bool why_zero_factor(const struct why_walk *walk, const struct why_tensor *origin,
                     struct why_finding *ret);
/* A gradient that is 0 by algebra: because a normalization or a softmax removes the change, or
 * because of a factor of 0. Index as in why_train.c. */
uint32_t why_shifted(struct why_walk *walk, struct why_finding *ret);

/* ---- why_loss.c ----------------------------------------------------------------------------- */

/* A softmax that is applied twice, or over the batch; a missing logarithm. Only for the loss. Index
 * as in why_train.c. */
uint32_t why_made_wrong(struct why_walk *walk, struct why_finding *ret);

/* ---- why_chain.c ---------------------------------------------------------------------------- */

/* The same operator many times, each result larger than the previous one by the same factor, as in
 * a recurrent network with a weight that is too large; by the recorded statistics of this step.
 * Index as in why_train.c. */
uint32_t why_growing(struct why_walk *walk, struct why_finding *ret);
/* The same by the weight alone, where no run was recorded: it lengthens its input, and nothing
 * between two runs limits that. */
uint32_t why_lengthening(struct why_walk *walk, struct why_finding *ret);
/* If an operator like this has no recorded statistics, says what to watch. */
void why_add_recurrence(const struct why_walk *walk, struct gd_buf *say);
/* The same for an operator whose bad input comes from such runs: how it grew, or what to watch to
 * know. */
void why_add_origin_of(const struct why_walk *walk, gd_node_id node, struct gd_buf *say);

/* ---- why_fading.c --------------------------------------------------------------------------- */

/* Where a gradient became small on its way back from the loss, and why; sets verdicts. Index as in
 * why_train.c; WHY_NONE: it did not shrink, or too little is known, which it reports. */
uint32_t why_fading(struct why_walk *walk, struct why_finding *ret);
/* The value in question is that of a tanh or sigmoid with hardly any slope: what made its input
 * large, or the value itself. NULL: it is not, or its values are unknown. */
const struct why_tensor *why_saturated(struct why_walk *walk, struct why_finding *ret);

/* ---- why_large.c ---------------------------------------------------------------------------- */

/* The conclusion of a walk about something large: *since, the finding; NULL: nothing stands out. */
const struct why_tensor *why_conclude_large(struct why_walk *walk, struct why_finding *ret,
                                            int64_t *since);

/* ---- why_tree.c ----------------------------------------------------------------------------- */

/* Builds the answer of a finished walk and passes it to walk->fn. */
void why_answer(struct why_walk *walk);

#endif
