// SPDX-License-Identifier: GPL-3.0-or-later
/* The conclusion about something large: a known mistake, an unusual batch, weight or rate. */
#include <math.h>
#include <string.h>

#include "engine/why/why_impl.h"

#define LEAST_START 0.1 /* over the square root of a row's length: smaller weights started at 0 */

enum smallness { NOT_SMALL, SMALL, SMALL_ALONE };

/* More than one axis is longer than 1: (1, 1, 32) is a vector. */
static bool is_matrix(const struct why_tensor *weight)
{
    int axes = 0;

    for (int i = 0; i < weight->shape.rank; i++) {
        axes += weight->shape.dim[i] > 1;
    }
    return axes > 1;
}

/* A vector near 0 while no matrix changes much; SMALL_ALONE: no matrix was examined. */
static enum smallness is_small(const struct why_walk *walk, const struct why_tensor *weight)
{
    double ratio;
    bool any = false;

    if (is_matrix(weight) || weight->stats.abs_mean > 0.01) {
        return NOT_SMALL;
    }
    for (size_t i = 0; i < walk->count; i++) {
        const struct why_tensor *tensor = &walk->tensors[i];

        if (is_matrix(tensor) && tensor->has_stats && why_is_trained(walk, tensor)) {
            any = true;
            if (why_odd_weight(walk, tensor, &ratio)) {
                return NOT_SMALL;
            }
        }
    }
    return any ? SMALL : SMALL_ALONE;
}

static void say_small(const struct why_walk *walk, const struct why_tensor *weight,
                      enum smallness small, struct why_finding *ret)
{
    const struct gd_stats *s = &weight->stats;

    why_say(ret, "small-weight",
            "%s is small, so any update is large relative to it: its mean magnitude is %.4g",
            why_name(walk, weight), s->abs_mean);
    if (s->has_prev) {
        gd_buf_printf(&ret->text, "; in the previous step it was %.4g", s->mean_abs_prev);
    }
    gd_buf_puts(&ret->text, small == SMALL
                                ? ". No matrix changes by that large a fraction of its size: this "
                                  "is normal for a parameter that starts at 0."
                                : ". This is normal for a parameter that starts at 0, such as a "
                                  "bias; how much the matrices change says more.");
}

/* A matrix that is much smaller than any usual initialization: it started at 0, and an update is
 * large relative to that in any training. */
static bool began_at_zero(const struct why_tensor *weight)
{
    double rows = weight->shape.rank > 0 ? (double)weight->shape.dim[0] : 1;
    double inner = rows > 0 ? (double)weight->stats.count / rows : 1;

    return weight->stats.abs_mean < LEAST_START / sqrt(inner > 1 ? inner : 1);
}

/* The weight in question, else the matrix that changes most. Vectors near 0 change by a large part
 * of their size in any training; they count only if there is no matrix. By the learning rate alone,
 * most matrices must change: a single one may have started at 0, like the second of a low-rank
 * pair. */
static const struct why_tensor *most_changed(const struct why_walk *walk)
{
    const struct why_tensor *found[2] = {NULL, NULL}; /* vectors, matrices */
    double most[2] = {0, 0}, ratio;
    size_t matrices = 0, odd = 0;

    if (why_odd_weight(walk, &walk->tensors[0], &ratio)) {
        return &walk->tensors[0];
    }
    for (size_t i = 1; i < walk->count; i++) {
        const struct why_tensor *tensor = &walk->tensors[i];
        int matrix = is_matrix(tensor);
        bool is_odd = why_odd_weight(walk, tensor, &ratio);

        is_odd = is_odd && (!matrix || !began_at_zero(tensor));
        matrices += matrix && tensor->has_stats && why_is_trained(walk, tensor);
        odd += matrix && is_odd;
        if (is_odd && ratio > most[matrix]) {
            found[matrix] = tensor;
            most[matrix] = ratio;
        }
    }
    if (found[1] && !found[1]->stats.has_prev && 2 * odd <= matrices) {
        return NULL;
    }
    return found[1]; /* vectors alone prove nothing */
}

/* When the first of the nodes that read it runs. */
static uint32_t first_use(const struct why_walk *walk, const struct why_tensor *leaf)
{
    const struct gd_edge *edges = NULL;
    uint32_t count = gd_graph_consumers(walk->session->graph, leaf->node, &edges);
    uint32_t first = GD_NO_ORDER;
    struct gd_node_info info;

    for (uint32_t i = 0; i < count; i++) {
        if (gd_graph_node(walk->session->graph, edges[i].node, &info) && info.order < first) {
            first = info.order;
        }
    }
    return first;
}

/* The unusual input that is used first, with its sentence; the others are named. */
static const struct why_tensor *blame_batch(struct why_walk *walk, struct why_finding *ret)
{
    const struct why_tensor *found = NULL;
    struct gd_buf say = GD_BUF_INIT(1000);

    for (size_t i = 0; i < walk->count; i++) {
        struct why_tensor *tensor = &walk->tensors[i];
        struct gd_buf one = GD_BUF_INIT(1000);

        if (why_odd_input(walk, tensor, &one)) {
            tensor->verdict = GD_WHY_BAD;
            if (!found || first_use(walk, tensor) < first_use(walk, found)) {
                found = tensor;
                gd_buf_clear(&say);
                gd_buf_puts(&say, gd_buf_text(&one));
            }
        } else if (tensor->has_stats && why_is_batch(walk, tensor) &&
                   tensor->verdict == GD_WHY_UNKNOWN) {
            tensor->verdict = GD_WHY_GOOD;
        }
        gd_buf_deinit(&one);
    }
    if (found) {
        ret->rule = "bad-batch";
        gd_buf_puts(&ret->text, gd_buf_text(&say));
    }
    for (size_t i = 0; found && i < walk->count; i++) {
        const struct why_tensor *tensor = &walk->tensors[i];

        if (tensor != found && tensor->verdict == GD_WHY_BAD && why_is_batch(walk, tensor)) {
            gd_buf_printf(&ret->text, " %s is also unusual (%s).", why_name(walk, tensor),
                          tensor->note);
        }
    }
    gd_buf_deinit(&say);
    return found;
}

/* What graph and program show by themselves, whatever the values are. */
static const struct why_tensor *known_mistake(struct why_walk *walk, struct why_finding *ret)
{
    uint32_t (*const tests[])(struct why_walk *, struct why_finding *) = {
        why_apart,      why_lost,    why_piled_up, why_broadcast,
        why_made_wrong, why_cut_off, why_growing,  why_all_zero};

    for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
        uint32_t number = tests[i](walk, ret);

        if (number != WHY_NONE) {
            /* for gradients, no value in the tree is to blame */
            bool blamed = tests[i] != why_lost && tests[i] != why_all_zero;
            walk->tensors[number].verdict = blamed ? GD_WHY_BAD : walk->tensors[number].verdict;
            return blamed ? &walk->tensors[number] : NULL;
        }
    }
    return NULL;
}

/* Says how to learn more: most values of a finished step are gone. */
static void say_how_to_know_more(const struct why_walk *walk, struct gd_buf *say)
{
    const struct why_tensor *asked = &walk->tensors[0];
    size_t gone = 0, all = 0;

    for (size_t i = 0; i < walk->count; i++) {
        all += !walk->tensors[i].is_leaf;
        gone += !walk->tensors[i].is_leaf && !walk->tensors[i].has_stats;
    }
    if (walk->session->state != GD_STOPPED) {
        return; /* nothing more can be known */
    }
    if (walk->session->stop.at_step_end && asked->order > 0 && gone > all / 2) {
        gd_buf_printf(say,
                      " The step is over, and %zu of %zu value%s on the way %s gone: use `run-to "
                      "%.160s` and `why` to see them as they are computed.",
                      gone, all, all == 1 ? "" : "s", gone == 1 ? "is" : "are",
                      gd_graph_name(walk->session->graph, asked->node));
    } else if (asked->before < 0) {
        gd_buf_puts(
            say,
            " With `set keep-previous all`, values are compared with those of the previous step.");
    }
}

/* How many upstream values are known, and that none of them stands out. */
static void say_nothing_found(const struct why_walk *walk, struct gd_buf *say)
{
    size_t known = 0;

    for (size_t i = 1; i < walk->count; i++) {
        known += walk->tensors[i].has_stats;
    }
    if (known == 0) {
        gd_buf_printf(say, "Nothing upstream could be examined: 0 of %zu values are known.",
                      walk->count - 1);
        return;
    }
    gd_buf_printf(say, "Nothing upstream stands out: %zu of %zu values were examined.", known,
                  walk->count - 1);
}

/* What can be said if no value stands out. */
static const struct why_tensor *conclude_rest(struct why_walk *walk, struct why_finding *ret)
{
    uint32_t untrained = why_untrained(walk, ret);
    if (untrained != WHY_NONE) {
        return &walk->tensors[untrained];
    }
    if (why_is_gradient(walk->session->graph, walk->tensors[0].node) &&
        why_shifted(walk, ret) != WHY_NONE) {
        return NULL;
    }
    uint32_t chain = why_lengthening(walk, ret);
    if (chain != WHY_NONE) {
        return &walk->tensors[chain];
    }
    walk->tensors[0].verdict =
        walk->tensors[0].has_stats && walk->tensors[0].before >= 0 ? GD_WHY_GOOD : GD_WHY_UNKNOWN;
    say_nothing_found(walk, &ret->text);
    if (why_is_loss(walk)) {
        why_add_past(walk, &ret->text);
    }
    say_how_to_know_more(walk, &ret->text);
    why_add_gradients(walk, &ret->text);
    why_add_unreached(walk, &ret->text);
    why_add_recurrence(walk, &ret->text);
    return NULL;
}

/* The loss grew out of all proportion, and no value shows why. */
static bool blame_growth(struct why_walk *walk, struct why_finding *ret)
{
    const struct gd_scalar *rate = why_learning_rate(walk, NULL);

    if (!why_is_loss(walk) || !why_add_growth(walk, &ret->text)) {
        return false;
    }
    ret->rule = "diverging";
    why_add_huge(walk, &ret->text);
    if (rate) {
        gd_buf_printf(&ret->text, " The learning rate is %.4g.", rate->value);
    }
    why_add_sum(walk, &ret->text);
    gd_buf_puts(&ret->text,
                " These values do not show what started it. Updates that overshoot look like this. "
                "To check, lower the learning rate or clip the gradients; to measure an update: "
                "`trace WCL on weights`, `step`, `why`.");
    why_add_gradients(walk, &ret->text);
    return true;
}

/* Something is known to be wrong, by a hit or by the loss. Without that, a large update proves
 * nothing. */
static bool is_wrong(const struct why_walk *walk)
{
    const struct why_tensor *root = &walk->tensors[0];

    return walk->facts.fired || walk->facts.told || why_diverges(walk) ||
           (root->has_stats && root->before > 0 && root->stats.abs_mean > WHY_JUMP * root->before);
}

/* An unusual learning rate, with the weight that it changed most. NULL: it is normal. */
static const struct why_tensor *blame_rate(struct why_walk *walk, const struct why_tensor *weight,
                                           struct why_finding *ret, int64_t *since)
{
    const struct gd_scalar *rate = why_learning_rate(walk, weight);
    bool grown = rate && rate->first > 0 && rate->value >= WHY_RATE_GROWN * rate->first;

    bool asked = weight == walk->tensors && (weight->stats.has_prev || is_matrix(weight));

    if (!weight || (!asked && !grown && !is_wrong(walk)) ||
        (!is_matrix(weight) && !weight->stats.has_prev && !is_wrong(walk)) ||
        !why_odd_rate(walk, weight, &ret->text)) {
        return NULL;
    }
    if (why_is_loss(walk) && why_diverges(walk)) {
        why_add_growth(walk, &ret->text);
    }
    if (why_add_sum(walk, &ret->text)) {
        ret->rule = "sum-reduction";
        return &walk->tensors[why_also(walk, gd_why_loss(walk->session->graph, &walk->facts), 0)];
    }
    ret->rule = "learning-rate";
    walk->tensors[weight - walk->tensors].verdict = GD_WHY_BAD;
    *since = why_since(walk, weight);
    if (weight->writer != WHY_NONE) { /* its writer is in the tree as well */
        walk->tensors[weight->writer].verdict = GD_WHY_BAD;
        return &walk->tensors[weight->writer];
    }
    return weight;
}

/* The first value on the way that stands out. NULL: none does. */
static const struct why_tensor *blame_first(struct why_walk *walk, struct why_finding *ret,
                                            int64_t since)
{
    const struct why_tensor *found = why_first_bad(walk), *unknown;

    if (found && found->is_leaf && why_is_loss(walk) && why_diverges(walk)) {
        return NULL; /* the weights are as the updates left them */
    }
    if (found && found->is_leaf && found != &walk->tensors[0]) {
        why_say_leaf(walk, found, since, ret);
        return found;
    }
    if (found && found->has_stats && found->before > 0 &&
        found->stats.abs_mean > WHY_JUMP * found->before) {
        why_say(ret, "jump",
                "%s is the first %svalue that is far larger than in previous steps: its mean "
                "magnitude is %.4g; before, it was %.4g.",
                why_name(walk, found),
                why_unknown_inputs(walk, found, &unknown) == 0 ? "" : "known ",
                found->stats.abs_mean, found->before);
        return found;
    }
    if (found && found->has_stats && why_is_bad(GD_BAD_NONFINITE, &found->stats)) {
        gd_buf_printf(&ret->text, "%s is not finite any more (%s).", why_name(walk, found),
                      found->note);
        return found;
    }
    return NULL;
}

static const struct why_tensor *conclude_large(struct why_walk *walk, struct why_finding *ret,
                                               int64_t *since)
{
    const struct why_tensor *found = known_mistake(walk, ret);

    why_settle_masks(walk);
    if (!found && ret->rule[0]) {
        return NULL;
    }
    found = found ? found : why_saturated(walk, ret);
    found = found ? found : blame_batch(walk, ret);
    if (found) {
        return found;
    }
    const struct why_tensor *weight = most_changed(walk);
    enum smallness small = weight == walk->tensors ? is_small(walk, weight) : NOT_SMALL;
    if (small != NOT_SMALL) {
        say_small(walk, weight, small, ret);
        return weight;
    }
    found = blame_rate(walk, weight, ret, since);
    found = found ? found : blame_first(walk, ret, *since);
    if (!found && (why_skipped(walk, ret) || blame_growth(walk, ret))) {
        return NULL;
    }
    return found ? found : conclude_rest(walk, ret);
}

const struct why_tensor *why_conclude_large(struct why_walk *walk, struct why_finding *ret,
                                            int64_t *since)
{
    const struct why_tensor *found = conclude_large(walk, ret, since);
    struct why_tensor *root = &walk->tensors[0];
    bool fault = ret->rule[0] && !strstr("small-weight zero-by-algebra", ret->rule);
    bool wrong = fault || walk->facts.fired;

    if (strcmp(ret->rule, "small-weight") == 0) {
        root->verdict = GD_WHY_GOOD;
    } else if (wrong && root->has_stats) { /* what has no value is not known to be bad */
        root->verdict = GD_WHY_BAD;
    }
    return found;
}
