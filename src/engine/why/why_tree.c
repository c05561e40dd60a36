// SPDX-License-Identifier: GPL-3.0-or-later
/* The answer of a walk: the origin, what happened there, and the tree of the examined values. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "engine/why/why_impl.h"

#define NAME_SHOWN 120
#define MAX_LINES  (8 * (size_t)WHY_MAX_TENSORS) /* of the tree */

/* ---- the origin ----------------------------------------------------------------------------- */

/* A weight that the origin reads: unknown as it was then, and bad now. */
static const struct why_tensor *late_weight(const struct why_walk *walk,
                                            const struct why_tensor *origin)
{
    struct gd_node_info info;

    if (!gd_graph_node(walk->session->graph, origin->node, &info) || why_is_writer(info.type)) {
        return NULL;
    }
    for (uint32_t i = 0; i < info.input_count; i++) {
        const struct why_tensor *input = why_input(walk, origin, i);
        if (input && input->late_bad && input->verdict == GD_WHY_UNKNOWN) {
            return input;
        }
    }
    return NULL;
}

/* ---- what to say ---------------------------------------------------------------------------- */

static void say_unknown_inputs(const struct why_walk *walk, const struct why_tensor *origin,
                               struct gd_buf *text)
{
    const struct why_tensor *one;
    uint32_t unknown = why_unknown_inputs(walk, origin, &one);

    if (unknown == 1) {
        gd_buf_printf(text, " Its input %s is unknown (%s).", why_name(walk, one), one->note);
    } else if (unknown > 1) {
        gd_buf_printf(text, " %u of its inputs are unknown, among them %s (%s).", unknown,
                      why_name(walk, one), one->note);
    }
    if (unknown > 0 && walk->bad == GD_BAD_ZERO &&
        why_is_gradient(walk->session->graph, origin->node)) {
        gd_buf_puts(
            text, " To see where it becomes 0: `trace TZ on gradients`, `step`, then `why` on it.");
    }
}

/* If an input is unknown, the problem may have begun there. */
static void say_first(const struct why_walk *walk, const struct why_tensor *origin,
                      const struct gd_node_info *info, struct gd_buf *text)
{
    const struct why_tensor *one;
    const char *name = info->name ? info->name : "", *type = info->type ? info->type : "";

    if (why_unknown_inputs(walk, origin, &one) == 0) {
        gd_buf_printf(text, "%s (%s) is the first value that is %s (%s); %s.", name, type,
                      why_bad_word(walk->bad), origin->note,
                      info->input_count > 0 ? "none of its inputs is"
                                            : "gradb knows of nothing that it reads");
    } else if (origin->has_stats) {
        gd_buf_printf(text, "%s (%s) is %s (%s). Where that began is unknown.", name, type,
                      why_bad_word(walk->bad), origin->note);
    } else {
        gd_buf_printf(text, "What %s (%s) wrote is %s. Where that began is unknown.", name, type,
                      why_bad_word(walk->bad));
    }
}

static void say_operator(struct why_walk *walk, const struct why_tensor *origin,
                         struct why_finding *ret)
{
    struct gd_node_info info = {0};

    why_explain(walk, origin, ret);
    if (ret->rule[0] == '\0' && walk->bad == GD_BAD_ZERO) {
        why_zero_factor(walk, origin, ret);
    }
    if (ret->rule[0] == '\0') {
        gd_graph_node(walk->session->graph, origin->node, &info);
        say_first(walk, origin, &info, &ret->text);
    }
    if (origin->step != walk->step) {
        gd_buf_printf(&ret->text, " This was in step %lld.", (long long)origin->step);
    }
    say_unknown_inputs(walk, origin, &ret->text);
}

/* Values beyond their type's range: often because of large weights, and those because of a learning
 * rate. */
static void say_rate(const struct why_walk *walk, const struct why_tensor *origin,
                     struct why_finding *ret)
{
    struct gd_buf say = GD_BUF_INIT(700);
    const struct why_tensor *most = NULL;
    double ratio, largest = 0, huge = 0;

    if (walk->bad != GD_BAD_NONFINITE ||
        (ret->rule[0] != '\0' && !strstr("float-range exp-overflow bad-weight", ret->rule))) {
        return;
    }
    for (size_t i = 0; i < walk->count; i++) {
        const struct why_tensor *tensor = &walk->tensors[i];

        if (why_odd_weight(walk, tensor, &ratio) && (!most || ratio > largest)) {
            most = tensor;
            largest = ratio;
        }
        if (tensor->has_stats && tensor->order <= origin->order) {
            huge = fmax(huge, why_max_abs(&tensor->stats));
        }
    }
    if ((most || huge > 1e6) && why_odd_rate(walk, most, &say)) {
        gd_buf_printf(&ret->text, " %s", gd_buf_text(&say));
        ret->rule = "learning-rate";
    }
    gd_buf_deinit(&say);
}

/* An optimizer that made something bad from inputs that are not known to be: what it wrote may have
 * been bad for longer, as recorded. */
static const struct why_tensor *written_before(const struct why_walk *walk,
                                               const struct why_tensor *origin, int64_t *since)
{
    struct gd_node_info info;

    if (origin->parent == WHY_NONE || !walk->tensors[origin->parent].is_leaf ||
        !gd_graph_node(walk->session->graph, origin->node, &info) || !why_is_writer(info.type)) {
        return NULL;
    }
    const struct why_tensor *weight = &walk->tensors[origin->parent];
    *since = why_since(walk, weight);
    return *since >= 0 && *since < origin->step ? weight : NULL;
}

/* What led to it, and what GradScaler does about it. */
static void add_past(const struct why_walk *walk, const struct why_tensor *origin,
                     struct why_finding *ret)
{
    if (why_add_growth(walk, &ret->text)) {
        why_add_sum(walk, &ret->text);
    }
    why_add_huge(walk, &ret->text);
    why_add_scaling(walk, origin, strstr(ret->rule, "-range") != NULL, &ret->text);
}

/* A gradient that no known operator made: in a compiled step only the optimizer's inputs are seen.
 */
static void say_unseen(const struct why_walk *walk, const struct why_tensor *gradient,
                       int64_t since, struct gd_buf *text)
{
    gd_buf_printf(text,
                  "%s is %s (%s). The operators that computed it were not seen, so where it began "
                  "is unknown.",
                  why_name(walk, gradient), why_bad_word(walk->bad), gradient->note);
    if (since >= 0) {
        gd_buf_printf(text, " It has been so since step %lld.", (long long)since);
    }
    if (strcmp(walk->session->peer.framework, "mindspore") == 0) {
        gd_buf_puts(text, " To see them: `agent operators on`, `step`, then `why` on it.");
    }
}

static const struct why_tensor *conclude_operator(struct why_walk *walk,
                                                  const struct why_tensor *origin,
                                                  struct why_finding *ret, int64_t *since)
{
    const struct why_tensor *weight = written_before(walk, origin, since);

    say_operator(walk, origin, ret);
    if (!weight && ret->rule[0] == '\0') {
        weight = late_weight(walk, origin);
        *since = weight ? why_since(walk, weight) : *since;
    }
    if (weight) {
        gd_buf_clear(&ret->text);
        why_say_leaf(walk, weight, *since, ret);
        return weight;
    }
    why_explain_turn(walk, origin, ret);
    say_rate(walk, origin, ret);
    if (walk->bad == GD_BAD_NONFINITE) {
        add_past(walk, origin, ret);
    }
    if (walk->bad == GD_BAD_NONFINITE && ret->rule[0] && !strstr(ret->rule, "learning-rate")) {
        why_add_origin_of(walk, origin->node, &ret->text);
    }
    return origin;
}

/* A weight that does not change: the optimizer updates other weights but not this one. */
static bool say_untrained(const struct why_walk *walk, const struct why_tensor *root,
                          struct why_finding *ret)
{
    const struct gd_graph *graph = walk->session->graph;
    struct gd_node_info info;
    uint32_t count = 0;
    const struct gd_type_count *types = gd_graph_types(graph, &count);
    const char *writer = NULL;

    for (uint32_t i = 0; i < count && !writer; i++) {
        writer = why_is_writer(types[i].type) ? types[i].type : NULL;
    }
    if (walk->bad != GD_BAD_ZERO || !writer || !root->is_leaf ||
        !gd_graph_node(graph, root->node, &info) || info.kind != GD_NODE_WEIGHT ||
        why_writer(graph, root->node) != GD_NO_NODE) {
        return false;
    }
    why_say(ret, "not-trained",
            "Nothing updates %s: %s updates other weights but not this one. It keeps its "
            "initial value (%s). Was it passed to the optimizer?",
            why_name(walk, root), writer, root->note);
    return true;
}

/* The smallest change of a number of that size that its type can represent. */
static double least_change(enum gd_dtype dtype, double size)
{
    int digits = dtype == GD_FLOAT16    ? 11
                 : dtype == GD_BFLOAT16 ? 8
                 : dtype == GD_FLOAT64  ? 53
                                        : 24;

    return ldexp(size, -digits);
}

/* A weight that is trained and has a gradient, but hardly changes. */
static bool say_still(const struct why_walk *walk, const struct why_tensor *root,
                      struct why_finding *ret)
{
    const struct gd_why_facts *facts = &walk->facts;
    double rate = fabs(facts->rate), size = root->has_stats ? root->stats.abs_mean : 0;

    if (walk->bad != GD_BAD_ZERO || !root->is_leaf || !facts->of_parameter ||
        !facts->optimizer[0] || !facts->has_gradient || !facts->has_rate) {
        return false;
    }
    gd_buf_printf(&ret->text, "%s holds %s with a learning rate of %.4g%s.", facts->optimizer,
                  facts->parameter, facts->rate,
                  facts->gradient_moves ? ", and its gradient is not all 0" : "");
    ret->rule = "small-update";
    if (why_type_in(facts->optimizer, WHY_ADAPTIVE) && size > 0 &&
        rate < least_change(root->dtype, size)) {
        gd_buf_printf(&ret->text,
                      " It changes an element by about its learning rate, and %s rounds away a "
                      "change of less than %.3g at a mean magnitude of %.4g.",
                      gd_dtype_name(root->dtype), least_change(root->dtype, size), size);
    } else {
        gd_buf_puts(&ret->text, " Why it changes so little is unknown: it has a gradient. Compare "
                                "the learning rate and the gradient with the size of the weight.");
    }
    return true;
}

/* -Inf that an operator was asked to write, or that a mask brings. */
static bool say_mask(const struct why_walk *walk, const struct why_tensor *root,
                     struct why_finding *ret)
{
    const struct why_tensor *mask = NULL;
    struct gd_node_info info;

    if (!root->is_mask || !gd_graph_node(walk->session->graph, root->node, &info)) {
        return false;
    }
    for (uint32_t i = 0; i < info.input_count && !mask; i++) {
        const struct why_tensor *input = why_input(walk, root, i);
        mask = input && input->is_mask ? input : NULL;
    }
    if (!gd_node_attr(&info, "fill") && !mask) {
        return false;
    }
    ret->rule = "mask";
    if (mask) {
        gd_buf_printf(&ret->text, "%s (%s) has -Inf only from the mask %s, which is intended (%s).",
                      why_name(walk, root), info.type, why_name(walk, mask), root->note);
    } else {
        gd_buf_printf(
            &ret->text,
            "%s (%s) writes -Inf because its own argument says so, which is intended (%s). "
            "`exclude type:%s` makes watchpoints on NaN and Inf skip this operator type.",
            why_name(walk, root), info.type, root->note, info.type);
    }
    return true;
}

/* Causes that are found without a first bad value. Index as in why_train.c. */
static uint32_t known_cause(struct why_walk *walk, struct why_finding *ret)
{
    uint32_t found = WHY_NONE;

    switch (walk->bad) {
    case GD_BAD_ZERO:
        found = why_untrained(walk, ret);
        return found != WHY_NONE ? found : why_shifted(walk, ret);
    case GD_BAD_RAISED: return why_bad_number(walk, ret);
    case GD_BAD_SMALL:
        if (walk->facts.frozen || !walk->facts.has_gradient) {
            found = why_untrained(walk, ret);
        }
        found = found != WHY_NONE ? found : why_shifted(walk, ret);
        return found != WHY_NONE ? found : why_fading(walk, ret);
    default: return WHY_NONE;
    }
}

/* A metric is not finite, and none of the remaining values that it was computed from is bad. */
static void say_gone(const struct why_walk *walk, struct why_finding *ret)
{
    size_t gone = 0;

    for (size_t i = 0; i < walk->count; i++) {
        gone += walk->tensors[i].verdict == GD_WHY_UNKNOWN && !walk->tensors[i].is_leaf;
    }
    gd_buf_printf(&ret->text,
                  "It is not finite, but none of the remaining values that it was computed from is "
                  "NaN or Inf: %zu of %zu values are gone with the step. `catch overflow`, set "
                  "before that step, stops at the operator that produces the first one.",
                  gone + 1, walk->count);
    add_past(walk, NULL, ret);
    why_add_gradients(walk, &ret->text);
}

/* The value in question is not known to be bad. Returns it if that has a cause; NULL otherwise. */
static const struct why_tensor *conclude_root(const struct why_walk *walk, struct why_finding *ret)
{
    const struct why_tensor *root = &walk->tensors[0];

    if (say_untrained(walk, root, ret) || say_still(walk, root, ret) || say_mask(walk, root, ret)) {
        return root;
    }
    if (!root->has_stats) {
        gd_buf_printf(&ret->text, "Whether %s:%u is %s is unknown: %s.", why_name(walk, root),
                      root->slot, why_bad_word(walk->bad), root->note);
    } else {
        gd_buf_printf(&ret->text, "%s:%u is not %s: %s%s.", why_name(walk, root), root->slot,
                      why_bad_word(walk->bad), root->note, root->is_mask ? " (a mask)" : "");
    }
    return NULL;
}

static const struct why_tensor *conclude_walk(struct why_walk *walk, struct why_finding *ret,
                                              int64_t *since)
{
    const struct why_tensor *root, *origin;
    uint32_t number = known_cause(walk, ret);

    if (number == WHY_NONE && walk->bad == GD_BAD_SMALL && gd_buf_text(&ret->text)[0]) {
        return NULL; /* it was reported that nothing is found */
    }
    if (number != WHY_NONE) {
        walk->tensors[number].verdict = strstr(ret->rule, "by-algebra") ? GD_WHY_GOOD : GD_WHY_BAD;
        return strstr(ret->rule, "by-algebra") ? NULL : &walk->tensors[number];
    }
    why_settle_masks(walk);
    root = &walk->tensors[0];
    if (root->verdict != GD_WHY_BAD) {
        return conclude_root(walk, ret);
    }
    origin = why_first_bad(walk);
    if (!origin) {
        gd_buf_puts(&ret->text, "Every bad value was computed from another bad one: the origin is "
                                "in a step whose values are gone.");
        return NULL;
    }
    *since = why_since(walk, origin);
    if (origin == root && walk->facts.told && !root->has_stats) {
        say_gone(walk, ret);
        return NULL;
    }
    bool suspect = why_is_behind(walk, origin);
    if (origin->is_leaf && why_is_gradient(walk->session->graph, origin->node)) {
        say_unseen(walk, origin, *since, &ret->text);
        return NULL;
    }
    if (!origin->is_leaf) {
        origin = conclude_operator(walk, origin, ret, since);
    } else {
        why_say_leaf(walk, origin, *since, ret);
    }
    if (suspect) {
        gd_buf_printf(&ret->text,
                      " Whether that reached %s is unknown: the values in between are gone.",
                      why_name(walk, root));
    }
    return origin;
}

/* ---- the tree ------------------------------------------------------------------------------- */

struct frame {
    uint32_t number; /* of the tensor whose inputs are listed */
    uint32_t input;  /* next one */
};

struct tree {
    const struct why_walk *walk;
    struct gd_why_node *nodes;
    size_t count, cap;
    struct frame *stack;
    size_t depth, stack_cap;
    const struct why_tensor *origin;
    unsigned char *listed; /* one bit per value of the walk: its inputs are, or were, below it */
    bool failed;
};

/* Adds a line; true if the value's inputs are to follow. */
static bool add_line(struct tree *tree, const struct why_tensor *tensor, uint32_t above)
{
    size_t number = (size_t)(tensor - tree->walk->tensors);
    bool again = tree->listed[number / 8] & (1U << number % 8);
    bool here = tensor->parent == above && !again; /* an input may be read twice */

    struct gd_why_node *node;
    if (tree->count >= MAX_LINES ||
        !gd_grow_list(&tree->nodes, tree->count, &tree->cap, sizeof(*node))) {
        tree->failed = true;
        return false;
    }
    node = &tree->nodes[tree->count++];
    *node = (struct gd_why_node){
        .node = tensor->node,
        .slot = tensor->slot,
        .depth = (int)tree->depth,
        .verdict = tensor->verdict,
        .shown_above = !here && tensor->expanded,
        .origin = tensor == tree->origin && here,
        .has_stats = tensor->has_stats,
        .stats = tensor->stats,
        .value_step = tensor->value_step,
    };
    snprintf(node->note, sizeof(node->note), "%s%.*s", tensor->is_mask ? "a mask: " : "",
             (int)(sizeof(node->note) - sizeof("a mask: ")), tensor->note);
    if (here) {
        tree->listed[number / 8] = (unsigned char)(tree->listed[number / 8] | 1U << number % 8);
    }
    return here && tensor->expanded;
}

static bool push_frame(struct tree *tree, uint32_t number)
{
    if (!gd_grow_list(&tree->stack, tree->depth, &tree->stack_cap, sizeof(*tree->stack))) {
        tree->failed = true;
        return false;
    }
    tree->stack[tree->depth++] = (struct frame){number, 0};
    return true;
}

/* The next line below `frame`: an input, or what wrote a parameter. */
static const struct why_tensor *next_below(const struct tree *tree, struct frame *frame)
{
    const struct why_walk *walk = tree->walk;
    const struct why_tensor *above = &walk->tensors[frame->number];
    struct gd_node_info info;

    if (above->is_leaf) {
        if (frame->input++ == 0 && above->writer != WHY_NONE) {
            return &walk->tensors[above->writer];
        }
        return NULL;
    }
    if (!gd_graph_node(walk->session->graph, above->node, &info)) {
        return NULL;
    }
    while (frame->input < info.input_count) {
        const struct why_tensor *input = why_input(walk, above, frame->input++);
        if (input) {
            return input;
        }
    }
    return NULL;
}

static void make_tree(struct tree *tree)
{
    const struct why_tensor *below;

    tree->listed = calloc(tree->walk->count / 8 + 1, 1);
    tree->failed = tree->listed == NULL;
    if (!tree->failed && add_line(tree, &tree->walk->tensors[0], WHY_NONE)) {
        push_frame(tree, 0);
    }
    while (tree->depth > 0 && !tree->failed) {
        struct frame *frame = &tree->stack[tree->depth - 1];

        below = next_below(tree, frame);
        if (!below) {
            tree->depth--;
        } else if (add_line(tree, below, frame->number)) {
            push_frame(tree, (uint32_t)(below - tree->walk->tensors));
        }
    }
}

void why_answer(struct why_walk *walk)
{
    struct why_finding finding = {.rule = "",
                                  .text = GD_BUF_INIT(sizeof(((struct gd_why *)0)->text) - 1)};
    struct gd_why why = {.bad = walk->bad, .origin = GD_NO_NODE, .since = -1};
    struct tree tree = {.walk = walk};
    struct gd_err err;

    tree.origin = walk->everything ? why_conclude_large(walk, &finding, &why.since)
                                   : conclude_walk(walk, &finding, &why.since);
    make_tree(&tree);
    if (tree.failed && tree.count == 0) {
        gd_fail_nomem(&err);
        walk->fn(walk->ctx, NULL, &err);
    } else {
        why.nodes = tree.nodes;
        why.count = tree.count;
        why.cut = walk->cut || tree.failed;
        if (tree.origin) {
            why.origin = tree.origin->node;
            why.origin_slot = tree.origin->slot;
        }
        snprintf(why.rule, sizeof(why.rule), "%s", finding.rule);
        snprintf(why.text, sizeof(why.text), "%s", gd_buf_text(&finding.text));
        walk->fn(walk->ctx, &why, NULL);
    }
    gd_buf_deinit(&finding.text);
    free(tree.nodes);
    free(tree.stack);
    free(tree.listed);
}
