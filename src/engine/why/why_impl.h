// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The private halves of why.c (the walk), why_rules.c (what happened, by operator type),
 * why_batch.c (what is out of the ordinary in inputs, weights and the learning rate), why_train.c,
 * why_loss.c and why_chain.c (mistakes that the graph shows), why_past.c (what the loss did),
 * why_fading.c (where a gradient fell), why_shift.c (gradients that are 0 by algebra) and
 * why_tree.c (the answer).
 */
#ifndef GD_ENGINE_WHY_IMPL_H
#define GD_ENGINE_WHY_IMPL_H

#include "base/buf.h"
#include "engine/why/why.h"

#define WHY_MAX_TENSORS 20000 /* whose statistics one walk asks for */
#define WHY_MAX_INPUTS  64    /* of one node, that the rules look at */
#define WHY_NONE        UINT32_MAX
#define WHY_JUMP        3.0 /* times the value of the steps before */
/* Optimizers that move each element by about the learning rate, whatever the gradient's size. */
#define WHY_ADAPTIVE                                                                               \
    "Adam* FusedAdam* ApplyAdam* FusedApplyAdam* Lamb* Lion* RMSProp* ApplyRMSProp* AdaMax*"

struct why_tensor { /* one value at one step */
    gd_node_id node;
    uint32_t slot;
    int64_t step;    /* of which its value is wanted; a parameter's: after which */
    uint32_t parent; /* index of the one that led here; WHY_NONE: it was asked about */
    uint32_t writer; /* of a leaf: index of the node that wrote it; WHY_NONE */
    uint32_t order;  /* execution order; 0 for leaves, which have theirs before all */
    enum gd_why_verdict verdict;
    bool waiting, done;  /* asked; answered for good */
    bool asked_previous; /* the value of now is too new: the kept one was asked for */
    bool expanded;       /* its inputs are in the list */
    bool is_leaf;        /* nothing feeds it */
    bool is_constant;    /* a leaf that never changes */
    bool is_mask;        /* its -Inf are meant */
    bool too_new;        /* a size after the update, looked at in place of the one before */
    bool late_bad;       /* a later value of it is bad, the one of then is not known */
    bool is_factor;      /* looked at for what it multiplies: that it is 0 is no fault of its own */
    bool implied;        /* bad because what it wrote is; its own value is not known */
    bool has_stats;
    enum gd_dtype dtype;
    struct gd_shape shape;
    struct gd_stats stats;
    int64_t value_step;
    double before; /* GD_BAD_LARGE: mean magnitude in the steps before; -1 not known */
    char note[96];
};

struct why_walk {
    struct gd_session *session;
    gd_why_fn fn;
    void *ctx;
    enum gd_bad bad;
    struct gd_why_facts facts;
    bool everything; /* expand all, not only what is bad (GD_BAD_LARGE) */
    bool behind;     /* expand what is gone, too: the origin reads such values */
    uint64_t stop;   /* sequence: the walk ends when the training goes on */
    int64_t step;    /* of the stop */
    uint32_t stop_order;
    struct why_tensor *tensors;
    size_t count, cap, next; /* next: first that was not asked yet */
    uint32_t *index;         /* open addressing by node, slot and step; SIZE index_cap */
    size_t index_cap;
    size_t waiting;
    int pass;      /* when everything is looked at: 0 what feeds the graph, 1 the rest */
    size_t others; /* asked for in pass 1 */
    bool cut, pumping, stopped;
    struct gd_err err;       /* why it was stopped */
    unsigned char *excluded; /* a bit a node: values that are not finite are normal there */
    size_t excluded_limit;   /* nodes that it covers */
};

/* ---- why.c ---------------------------------------------------------------------------------- */

/* The value that `tensor` takes at input number `i`; NULL when it is not in the walk. */
const struct why_tensor *why_input(const struct why_walk *walk, const struct why_tensor *tensor,
                                   uint32_t i);
/* The node that writes a parameter (an optimizer, an assignment); GD_NO_NODE: none is known. */
gd_node_id why_writer(const struct gd_graph *graph, gd_node_id parameter);
bool why_is_writer(const char *type);
/* A further value of the step, in the list without a question. 0, the value that was asked about,
 * when the list is full: what was found is said all the same. Moves the list. */
uint32_t why_also(struct why_walk *walk, gd_node_id node, uint32_t slot);
/* The same of a factor: it is judged for nothing. */
void why_also_factor(struct why_walk *walk, gd_node_id node, uint32_t slot);
/* Whether the value is what is looked for, by its statistics alone. */
bool why_is_bad(enum gd_bad bad, const struct gd_stats *stats);

/* ---- why_rules.c ---------------------------------------------------------------------------- */

struct why_finding {
    char rule[32];
    struct gd_buf text; /* sentences */
};
/* What the operator of `origin` did. Leaves the finding alone when no rule fits. */
void why_explain(const struct why_walk *walk, const struct why_tensor *origin,
                 struct why_finding *ret);
/* How an infinity became NaN on the way, as one more sentence. */
void why_explain_turn(const struct why_walk *walk, const struct why_tensor *origin,
                      struct why_finding *ret);
/* Case ignored; `types` are blank-separated, "Apply*" is a prefix. */
bool why_type_in(const char *type, const char *types);
/* "1 of 128", "all 128" */
const char *why_share(uint64_t part, uint64_t whole, char *out, size_t size);
/* The largest magnitude among the finite elements; 0 when there is none. */
double why_max_abs(const struct gd_stats *stats);

/* ---- why_batch.c ---------------------------------------------------------------------------- */

/* Whether the value of a graph input is out of the ordinary; then says how, else false. */
bool why_odd_input(const struct why_walk *walk, const struct why_tensor *input, struct gd_buf *say);
/* Whether an update of that parameter is far too large; says by how much, and since when. */
bool why_odd_weight(const struct why_walk *walk, const struct why_tensor *weight, double *ratio);
/* The learning rate, when it explains large weights. True: it does, and was said. */
bool why_odd_rate(const struct why_walk *walk, const struct why_tensor *weight, struct gd_buf *say);
/* The mean magnitude of a value in the steps before, as kept or recorded; -1 unknown. */
double why_before(const struct why_walk *walk, const struct why_tensor *tensor);
/* The step since which a value is bad, by what was recorded; -1 unknown. */
int64_t why_since(const struct why_walk *walk, const struct why_tensor *tensor);

/* Conclusion of a walk after something large: *since, the finding; NULL: nothing stands out. */
const struct why_tensor *why_conclude_large(struct why_walk *walk, struct why_finding *ret,
                                            int64_t *since);

/* ---- why_train.c ---------------------------------------------------------------------------- */

/* Mistakes of the training that graph and facts show without a look at any value. Each says what it
 * finds; the index of the value that is to blame, or WHY_NONE: it finds nothing. */
uint32_t why_untrained(struct why_walk *walk, struct why_finding *ret);  /* it gets no update */
uint32_t why_piled_up(struct why_walk *walk, struct why_finding *ret);   /* no zero_grad */
uint32_t why_broadcast(struct why_walk *walk, struct why_finding *ret);  /* (N, 1) against (N) */
uint32_t why_apart(struct why_walk *walk, struct why_finding *ret);      /* ranks part */
uint32_t why_bad_number(struct why_walk *walk, struct why_finding *ret); /* a label out of range */
/* Whether a node runs in that pass: "forward", "backward", "optimizer". */
bool why_in_phase(const struct gd_node_info *info, const char *phase);
/* The operator of the forward pass whose gradient a node computes; GD_NO_NODE. */
gd_node_id why_forward(const struct gd_graph *graph, const struct gd_node_info *info);
/* The same, of a node of the backward pass alone. */
gd_node_id why_forward_of(const struct gd_graph *graph, const struct gd_node_info *info);
/* "net/relu (ReLU)" */
void why_put_node(const struct gd_graph *graph, gd_node_id node, struct gd_buf *text);
/* The rule, and an empty text. */
void why_begin(struct why_finding *ret, const char *rule);

/* ---- why_way.c ------------------------------------------------------------------------------ */

/* The parameter has no gradient: where its way to the loss ends. Index as above. */
uint32_t why_no_gradient(struct why_walk *walk, const char *name, gd_node_id weight,
                         struct why_finding *ret);
/* A remark on the weights that no gradient reaches because one was detached or switched off. */
void why_add_unreached(const struct why_walk *walk, struct gd_buf *say);
/* That the loss is a sum over examples, as one more sentence. */
bool why_add_sum(const struct why_walk *walk, struct gd_buf *say);

/* The gradients are gone, or all 0, when the optimizer steps. */
uint32_t why_lost(struct why_walk *walk, struct why_finding *ret);
/* Parameters that an optimizer holds and no gradient reaches, by a cut that the graph shows. */
uint32_t why_cut_off(struct why_walk *walk, struct why_finding *ret);
uint32_t why_all_zero(struct why_walk *walk, struct why_finding *ret);
/* A remark on gradients that are missing, all 0, or not finite. */
void why_add_gradients(const struct why_walk *walk, struct gd_buf *say);
/* That GradScaler skipped the update of this step, or will, as further sentences. scaled: the
 * figures that were said are with its factor. */
void why_add_scaling(const struct why_walk *walk, const struct why_tensor *origin, bool scaled,
                     struct gd_buf *say);
/* The loss is asked about, and GradScaler skipped the update of this step. */
bool why_skipped(const struct why_walk *walk, struct why_finding *ret);
/* The loss is asked about. */
bool why_is_loss(const struct why_walk *walk);

/* ---- why_past.c ----------------------------------------------------------------------------- */

/* Whether the loss grew by more than noise does; says by how much. */
bool why_diverges(const struct why_walk *walk);
bool why_add_growth(const struct why_walk *walk, struct gd_buf *say);
/* What the loss was before, or that it is not known. */
void why_add_past(const struct why_walk *walk, struct gd_buf *say);
/* Weights of the walk that are far larger than any usual start. */
void why_add_huge(const struct why_walk *walk, struct gd_buf *say);

/* ---- why_shift.c ---------------------------------------------------------------------------- */

/* Adds the values to the list that why_shifted needs. */
void why_ask_factors(struct why_walk *walk);
/* A gradient that is 0 because of a factor in the forward pass that is. */
bool why_zero_factor(const struct why_walk *walk, const struct why_tensor *origin,
                     struct why_finding *ret);
/* A gradient that is 0 by algebra: of what a normalisation or a softmax takes away again, or of a
 * factor of 0. Index as in why_train.c. */
uint32_t why_shifted(struct why_walk *walk, struct why_finding *ret);

/* ---- why_loss.c ----------------------------------------------------------------------------- */

/* A softmax that is taken twice, or over the batch; no logarithm. Only for the loss. Index as in
 * why_train.c. */
uint32_t why_made_wrong(struct why_walk *walk, struct why_finding *ret);

/* ---- why_chain.c ---------------------------------------------------------------------------- */

/* The same operator many times, each result larger than the one before by the same factor: what a
 * recurrent network does whose weight is too large. By the figures recorded of this step. Index as
 * in why_train.c. */
uint32_t why_growing(struct why_walk *walk, struct why_finding *ret);
/* The same by the weight alone, where no run was recorded: it makes what it is given longer, and
 * nothing between two runs holds that back. */
uint32_t why_lengthening(struct why_walk *walk, struct why_finding *ret);
/* Says what must be watched for that, where there is such an operator and no figure of it. */
void why_add_recurrence(const struct why_walk *walk, struct gd_buf *say);
/* The same of an operator that is to blame by what it was given, where that comes of such runs: how
 * it grew on the way, or what must be watched to know. */
void why_add_origin_of(const struct why_walk *walk, gd_node_id node, struct gd_buf *say);

/* ---- why_fading.c --------------------------------------------------------------------------- */

bool why_is_gradient(const struct gd_graph *graph, gd_node_id node);
/* Where a gradient became small on its way back from the loss, and by what; verdicts. Index as in
 * why_train.c; WHY_NONE: it did not fall, or too little is known, which was said. */
uint32_t why_fading(struct why_walk *walk, struct why_finding *ret);

/* ---- why_tree.c ----------------------------------------------------------------------------- */

/* Makes the answer of a walk that is over and gives it to walk->fn. */
void why_answer(struct why_walk *walk);
/* Sums of a mask with something finite are masks as well. */
void why_settle_masks(struct why_walk *walk);
/* A node's name, or the end of it when it is long. */
const char *why_name(const struct why_walk *walk, const struct why_tensor *tensor);
/* It holds what a module keeps from step to step without training it. */
bool why_is_buffer(const struct why_walk *walk, const struct why_tensor *tensor);
/* What reads it is gone: nobody knows whether it made anything bad. */
bool why_is_behind(const struct why_walk *walk, const struct why_tensor *tensor);
/* The first in execution order that is bad while nothing that it reads is; NULL. */
/* Whether all that it reads was looked at. */
bool why_knows_inputs(const struct why_walk *walk, const struct why_tensor *tensor);
const struct why_tensor *why_first_bad(const struct why_walk *walk);
void why_say_leaf(const struct why_walk *walk, const struct why_tensor *leaf, int64_t since,
                  struct why_finding *ret);
/* "12 NaN, 3 Inf", "min -3, max 12", ... */
void why_note(const struct why_walk *walk, struct why_tensor *tensor);

#endif
