// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * A gradient that is too small: its way back from the loss, where on it the mean magnitude fell,
 * and which operators caused that. The gradients alone show most: a sigmoid whose slope was 0.001
 * is saturated, whatever its output. And an activation that lets hardly anything of a gradient
 * through, by its own results.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/why/why_impl.h"

#define MAX_GROUPS  32   /* types of operators that are distinguished */
#define MAX_TOLD    3    /* of those, that are mentioned */
#define LEAST_SHARE 0.2  /* of the whole fall, to be mentioned after the greatest */
#define LEAST_FALL  10.0 /* times, to call it a fall */
#define ALL_OF_IT   60.0 /* decimal digits that a fall to 0 counts for */

/* Slopes below this are those of a saturated one. At its center a sigmoid has 0.25, tanh 1. */
#define FULL_SIGMOID 0.05
#define FULL_TANH    0.2
#define SURE         0.1 /* a loss below it: the labels are predicted well */

/* The mean slope of all results, over the slope at the center, of a saturated activation. */
#define MOST_SLOPE  0.05
#define LARGE_GAIN  4.0  /* times, by which a layer makes its input larger; Kaiming's is 1.4 */
#define LARGE_INPUT 10.0 /* root mean square; that of normalized data is 1 */

struct fall {           /* at one operator, or at several of the same type */
    const char *type;   /* of the backward pass; "": some gradients in between are unknown */
    double digits;      /* decimal digits lost in all */
    uint32_t count;     /* operators */
    uint32_t most;      /* the value after the greatest of them, or after a typical one */
    double from, to;    /* there */
    double most_digits; /* there */
    bool told;
};

struct way { /* of a gradient, from the loss on */
    struct why_walk *walk;
    uint32_t *values; /* the values on it, last one first */
    uint32_t count;
    bool measured;      /* more than one size is known */
    double first, last; /* mean magnitudes */
    struct fall falls[MAX_GROUPS];
    size_t groups;
    double digits; /* lost in all */
    bool counted;  /* the falls are summed up: the next pass finds a typical one */
};

static gd_node_id forward_of(const struct way *way, gd_node_id node)
{
    const struct gd_graph *graph = way->walk->session->graph;
    struct gd_node_info info;

    return gd_graph_node(graph, node, &info) ? why_forward(graph, &info) : GD_NO_NODE;
}

/* ---- the way -------------------------------------------------------------------------------- */

/* Of the step in question, and with a size. */
static bool is_known(const struct why_walk *walk, const struct why_tensor *tensor)
{
    return tensor->has_stats && tensor->stats.count > 0 && isfinite(tensor->stats.abs_mean) &&
           tensor->value_step == walk->tensors[0].value_step;
}

/* The gradient that this one is mainly computed from. */
static const struct why_tensor *made_of(const struct why_walk *walk, const struct why_tensor *made)
{
    const struct why_tensor *found = NULL;
    struct gd_node_info info;

    if (!gd_graph_node(walk->session->graph, made->node, &info)) {
        return NULL;
    }
    for (uint32_t i = 0; i < info.input_count; i++) {
        const struct why_tensor *input = why_input(walk, made, i);

        if (input && why_is_gradient(walk->session->graph, input->node) &&
            (!found ||
             (is_known(walk, input) &&
              (!is_known(walk, found) || input->stats.abs_mean > found->stats.abs_mean)))) {
            found = input;
        }
    }
    return found;
}

static bool way_find(struct way *way, struct why_walk *walk)
{
    const struct why_tensor *at = &walk->tensors[0];

    *way = (struct way){.walk = walk, .values = malloc((walk->count + 1) * sizeof(uint32_t))};
    while (way->values && at && way->count < walk->count) {
        way->values[way->count++] = (uint32_t)(at - walk->tensors);
        at = made_of(walk, at);
    }
    return way->count > 0;
}

static struct fall *fall_of(struct way *way, const char *type)
{
    for (size_t i = 0; i < way->groups; i++) {
        if (strcmp(way->falls[i].type, type) == 0) {
            return &way->falls[i];
        }
    }
    if (way->groups == MAX_GROUPS) {
        return NULL;
    }
    way->falls[way->groups] = (struct fall){.type = type};
    return &way->falls[way->groups++];
}

/* None stands out among many: then a typical one is more informative. The last layer often falls
 * more, because it maps many values to few. */
static bool stands_out(const struct fall *fall)
{
    return fall->count == 1 || fall->most_digits * 2 >= fall->digits;
}

static bool is_nearer(const struct fall *fall, double digits)
{
    double average = fall->digits / fall->count;

    return !stands_out(fall) && fabs(digits - average) < fabs(fall->most_digits - average);
}

static void add_fall(struct way *way, uint32_t number, double from, double to, bool gap)
{
    double digits = to > 0 ? log10(from / to) : ALL_OF_IT;
    struct gd_node_info info;

    if (!(from > to) ||
        !gd_graph_node(way->walk->session->graph, way->walk->tensors[number].node, &info)) {
        return;
    }
    struct fall *fall = fall_of(way, gap ? "" : info.type);
    if (!fall) {
        return;
    }
    if (!way->counted) {
        way->digits += digits;
        fall->digits += digits;
        fall->count++;
    }
    if (way->counted ? is_nearer(fall, digits) : digits > fall->most_digits) {
        fall->most_digits = digits;
        fall->most = number;
        fall->from = from;
        fall->to = to;
    }
}

/* The size with which the backward pass began at the operator of that value; -1: unknown. */
static double first_size(const struct way *way, uint32_t number)
{
    gd_node_id forward = forward_of(way, way->walk->tensors[number].node);

    return forward != GD_NO_NODE &&
                   forward == gd_why_loss(way->walk->session->graph, &way->walk->facts)
               ? 1
               : -1;
}

/* How large the gradients on the way are, and where they fall. */
static void way_look(struct way *way)
{
    const struct why_walk *walk = way->walk;
    bool gap = false;

    way->first = way->last = first_size(way, way->values[way->count - 1]);
    for (uint32_t i = way->count; i-- > 0;) {
        const struct why_tensor *tensor = &walk->tensors[way->values[i]];

        if (!is_known(walk, tensor)) {
            gap = true;
            continue;
        }
        if (way->last < 0) {
            way->first = tensor->stats.abs_mean;
        } else {
            add_fall(way, way->values[i], way->last, tensor->stats.abs_mean, gap);
            way->measured = true;
        }
        way->last = tensor->stats.abs_mean;
        gap = false;
    }
    way->counted = true;
}

/* ---- causes --------------------------------------------------------------------------------- */

/* The share of a gradient that an operator leaves, on average. */
static double left_by(const struct fall *fall)
{
    if (stands_out(fall)) {
        return fall->to / fall->from;
    }
    return pow(10, -fall->digits / fall->count);
}

static void say_relu(const struct way *way, const struct fall *fall, struct gd_buf *text)
{
    const struct gd_stats *stats = &way->walk->tensors[fall->most].stats;
    char share[64];

    if (stats->zero > 0) {
        gd_buf_printf(text,
                      " There, %s elements get none: a ReLU passes no gradient where its input is "
                      "not above 0. ",
                      why_share(stats->zero, stats->count, share, sizeof(share)));
        gd_buf_puts(text, stats->zero == stats->count
                              ? "It is dead: check the bias before it, or try a smaller learning "
                                "rate, LeakyReLU or GELU."
                              : "He initialization compensates for half of them.");
    }
}

static void say_log_softmax(const struct way *way, const struct fall *fall, struct gd_buf *text)
{
    const struct gd_session *session = way->walk->session;
    gd_node_id made = way->walk->tensors[fall->most].node;
    struct gd_output scores;

    if (gd_graph_output(session->graph, made, 0, &scores) && scores.shape.rank == 2 &&
        scores.shape.dim[1] == 1) {
        gd_buf_puts(
            text,
            " It is applied over a single class, whose share is always 1: no gradient comes back.");
        return;
    }
    const struct gd_scalar *loss = gd_session_scalar(session, "loss");
    if (left_by(fall) < FULL_SIGMOID && loss && loss->value >= 0 && loss->value < SURE) {
        gd_buf_printf(text,
                      " The loss is %.4g: the labels are already predicted with near certainty, "
                      "so there is little to correct.",
                      loss->value);
    }
}

/* A weight that the operator of the forward pass, or the gradient's own, multiplies by. */
static const struct why_tensor *weight_of(const struct why_walk *walk, gd_node_id node)
{
    struct gd_node_info info;

    for (size_t i = 0; gd_graph_node(walk->session->graph, node, &info) && i < walk->count; i++) {
        const struct why_tensor *tensor = &walk->tensors[i];

        for (uint32_t k = 0; k < info.input_count && tensor->has_stats; k++) {
            struct gd_node_info from;

            if (info.inputs[k].node == tensor->node && tensor->shape.rank > 1 &&
                gd_graph_node(walk->session->graph, tensor->node, &from) &&
                from.kind == GD_NODE_WEIGHT) {
                return tensor;
            }
        }
    }
    return NULL;
}

/* A product with a matrix: how much of a gradient a matrix of this size lets through if its
 * elements are random. */
static void say_product(const struct way *way, const struct fall *fall, struct gd_buf *text)
{
    const struct why_walk *walk = way->walk;
    const struct why_tensor *made = &walk->tensors[fall->most], *weight;
    gd_node_id forward = forward_of(way, made->node);
    struct gd_node_info info = {0};
    double mean_square, gain;

    weight = weight_of(walk, forward != GD_NO_NODE ? forward : made->node);
    if (!weight || weight->stats.count == 0 || weight->stats.count == made->stats.count) {
        return; /* the weight's own gradient is computed from the layer's input */
    }
    mean_square = weight->stats.sum_sq / (double)weight->stats.count;
    gd_buf_printf(text, " The root mean square of its weight %.120s is %.3g",
                  why_name(walk, weight), sqrt(mean_square));
    gd_graph_node(walk->session->graph, forward, &info);
    int64_t read = !info.type                               ? 0
                   : why_type_in(info.type, "linear conv*") ? weight->shape.dim[1]
                   : why_type_in(info.type, "matmul mm")    ? weight->shape.dim[0]
                                                            : 0;
    if (read > 0) {
        gain = sqrt(weight->stats.sum_sq / (double)read);
        gd_buf_printf(text, ", which lets about %.2g of a gradient through", gain);
        /* not for the last layer, which maps many values to few: a weight that suits its gradient
         * is too large for it */
        if (gain > 0 && gain < 0.7 && weight->shape.dim[0] * 4 > weight->shape.dim[1]) {
            gd_buf_printf(text, "; %.2g would let all of it through", sqrt(mean_square) / gain);
        }
    }
    gd_buf_puts(text, ".");
}

static void say_mean(const struct way *way, const struct fall *fall, struct gd_buf *text)
{
    const struct gd_stats *stats = &way->walk->tensors[fall->most].stats;
    uint64_t shared = stats->count - stats->zero;
    double whole = why_max_abs(stats) * (double)shared / fall->from;

    if (shared > 1 && whole > 0.5 && whole < 2) {
        gd_buf_printf(text,
                      " It is a mean: each of the %llu values gets its share of the gradient. A "
                      "weight's gradient, which sums the shares again, is not small because of "
                      "this; with this many values, use a lower threshold.",
                      (unsigned long long)shared);
    }
}

static const struct {
    const char *types;
    void (*say)(const struct way *way, const struct fall *fall, struct gd_buf *text);
    /* of those without it: what is said below that slope, and where no single one stands out */
    double full;
    const char *saturated, *many;
} causes[] = {
    {"Sigmoid*", NULL, FULL_SIGMOID,
     " The slope of a sigmoid is 0.25 at its center; here most results are near 0 or 1: it is "
     "saturated. Smaller weights or a normalization before it keep it near its center.",
     " The slope of a sigmoid is at most 0.25: a long row of them leaves almost nothing. ReLU or "
     "GELU, a normalization, or residual connections let the gradient through."},
    {"Tanh*", NULL, FULL_TANH,
     " The slope of tanh is 1 at its center; here most results are near -1 or 1: it is saturated. "
     "Smaller weights or a normalization before it keep it near its center."},
    {"Relu* ReLU* Threshold*", say_relu},
    {"LogSoftmax* SoftmaxCrossEntropy* SparseSoftmaxCrossEntropy*", say_log_softmax},
    {"Softmax*", NULL, FULL_SIGMOID,
     " It is saturated: in most rows, one element holds nearly the whole sum. Smaller scores "
     "(scaled or normalized) spread it out."},
    {"Mean* NllLoss* MseLoss* L1Loss* SmoothL1Loss* HuberLoss* BinaryCrossEntropy* ReduceMean*",
     say_mean},
    {"Addmm* Mm* MatMul* BatchMatMul* Bmm* Convolution* Conv* Linear*", say_product},
};

/* By the type of the operator of the backward pass. */
static void say_cause(const struct way *way, const struct fall *fall, struct gd_buf *text)
{
    const struct why_tensor *made = &way->walk->tensors[fall->most];

    if (fall->to <= 0 && (made->dtype == GD_FLOAT16 || made->dtype == GD_BFLOAT16) &&
        why_type_in(fall->type, "To* Cast*")) {
        gd_buf_printf(text,
                      " %s rounds a number this small to 0: loss scaling (GradScaler) keeps "
                      "gradients in its range.",
                      gd_dtype_name(made->dtype));
        return;
    }
    for (size_t i = 0; i < sizeof(causes) / sizeof(causes[0]); i++) {
        if (!why_type_in(fall->type, causes[i].types)) {
            continue;
        }
        if (causes[i].say) {
            causes[i].say(way, fall, text);
        } else if (left_by(fall) < causes[i].full) {
            gd_buf_puts(text, causes[i].saturated);
        } else if (causes[i].many && !stands_out(fall)) {
            gd_buf_puts(text, causes[i].many);
        }
        return;
    }
}

/* ---- the answer ----------------------------------------------------------------------------- */

static void say_fall(const struct way *way, const struct fall *fall, struct gd_buf *text)
{
    const struct why_tensor *made = &way->walk->tensors[fall->most];

    if (fall->type[0] == '\0') {
        gd_buf_printf(text,
                      " It falls from %.3g to %.3g before %.120s:%u, at an operator that is "
                      "unknown in this step: watch `gradients` to find it.",
                      fall->from, fall->to, why_name(way->walk, made), made->slot);
        return;
    }
    if (stands_out(fall)) {
        gd_buf_printf(text, " At %.120s (%.60s), it falls from %.3g to %.3g.",
                      why_name(way->walk, made), fall->type, fall->from, fall->to);
    } else {
        gd_buf_printf(text,
                      " %u of them are %.60s: each leaves %.2g of it on average, for example "
                      "%.120s, from %.3g to %.3g.",
                      fall->count, fall->type, left_by(fall), why_name(way->walk, made), fall->from,
                      fall->to);
    }
    say_cause(way, fall, text);
}

/* The greatest fall that was not mentioned yet and has that share of the whole; NULL. */
static struct fall *next_fall(struct way *way, double share)
{
    struct fall *found = NULL;

    for (size_t i = 0; i < way->groups; i++) {
        struct fall *fall = &way->falls[i];

        if (!fall->told && fall->digits >= share * way->digits &&
            (!found || fall->digits > found->digits)) {
            found = fall;
        }
    }
    if (found) {
        found->told = true;
    }
    return found;
}

/* Bad is what is as small as the result of the greatest fall. */
static void judge_values(struct why_walk *walk, const struct way *way, const struct fall *fall)
{
    for (size_t i = 0; i < walk->count; i++) {
        struct why_tensor *tensor = &walk->tensors[i];

        if (is_known(walk, tensor) && why_is_gradient(walk->session->graph, tensor->node)) {
            tensor->verdict = tensor->stats.abs_mean <= fall->to ? GD_WHY_BAD : GD_WHY_GOOD;
        }
    }
    for (uint32_t i = 0; i < way->count; i++) {
        if (is_known(walk, &walk->tensors[way->values[i]])) {
            walk->tensors[way->values[i]].verdict = GD_WHY_BAD;
        }
        if (way->values[i] == fall->most) {
            break;
        }
    }
}

static uint32_t say_way(struct way *way, struct why_finding *ret)
{
    struct why_walk *walk = way->walk;
    const struct fall *fall = next_fall(way, 0);
    uint32_t found = fall->most;

    why_say(ret, "vanishing",
            "On its way back from %.120s, through %u operator%s, the gradient falls from a "
            "mean magnitude of %.3g to %.3g.",
            why_name(walk, &walk->tensors[way->values[way->count - 1]]), way->count,
            way->count == 1 ? "" : "s", way->first, way->last);
    judge_values(walk, way, fall);
    for (int i = 0; fall && i < MAX_TOLD; i++) {
        say_fall(way, fall, &ret->text);
        fall = next_fall(way, LEAST_SHARE);
    }
    return found;
}

uint32_t why_fading(struct why_walk *walk, struct why_finding *ret)
{
    uint32_t found = WHY_NONE;
    struct way way;

    if (!is_known(walk, &walk->tensors[0]) || !way_find(&way, walk)) {
        return WHY_NONE;
    }
    way_look(&way);
    way_look(&way);
    if (!way.measured) {
        gd_buf_printf(&ret->text,
                      "The mean magnitude of %.120s is %.3g. The gradients on the way to it are "
                      "unknown in this step: `trace GV on gradients` records them.",
                      why_name(walk, &walk->tensors[0]), walk->tensors[0].stats.abs_mean);
    } else if (way.groups == 0 || way.last * LEAST_FALL > way.first) {
        gd_buf_printf(&ret->text,
                      "The gradient does not fall on its way to %.120s: %u operators back, at "
                      "%.120s, its mean magnitude is %.3g; here it is %.3g.",
                      why_name(walk, &walk->tensors[0]), way.count - 1,
                      why_name(walk, &walk->tensors[way.values[way.count - 1]]), way.first,
                      way.last);
    } else {
        found = say_way(&way, ret);
    }
    free(way.values);
    return found;
}

/* ---- an activation by itself ---------------------------------------------------------------- */

static double root_mean_square(const struct why_tensor *tensor)
{
    return tensor && tensor->has_stats && tensor->stats.count > 0
               ? sqrt(tensor->stats.sum_sq / (double)tensor->stats.count)
               : -1;
}

/* The mean slope over the one at the center: tanh' = 1 - y^2, sigmoid' = y - y^2. -1: unknown. */
static double mean_slope(const struct why_tensor *made, const char *type)
{
    const struct gd_stats *s = &made->stats;
    bool tanh_like = why_type_in(type, "Tanh"), sigmoid = why_type_in(type, "Sigmoid");

    if (!made->has_stats || s->count == 0 || !isfinite(s->sum_sq) || !(tanh_like || sigmoid)) {
        return -1;
    }
    double mean_square = s->sum_sq / (double)s->count;
    return tanh_like ? 1 - mean_square : 4 * (s->mean - mean_square);
}

/* The layer that makes the input of an activation, upstream of the sum with its bias; GD_NO_NODE.
 */
static gd_node_id layer_of(const struct why_walk *walk, const struct why_tensor *input)
{
    struct gd_node_info info;

    for (int i = 0; input && i < 2 && gd_graph_node(walk->session->graph, input->node, &info);
         i++) {
        if (weight_of(walk, input->node)) {
            return input->node;
        }
        input = why_type_in(info.type, "Add BiasAdd") ? why_input(walk, input, 0) : NULL;
    }
    return GD_NO_NODE;
}

/* What a layer reads beside its weight and bias; NULL: unknown. */
static const struct why_tensor *read_by(const struct why_walk *walk, gd_node_id layer,
                                        const struct why_tensor *weight)
{
    struct gd_node_info info;

    if (!gd_graph_node(walk->session->graph, layer, &info)) {
        return NULL;
    }
    for (size_t i = 0; i < walk->count; i++) {
        const struct why_tensor *tensor = &walk->tensors[i];

        for (uint32_t k = 0; k < info.input_count; k++) {
            if (tensor != weight && tensor->has_stats && tensor->shape.rank > 1 &&
                info.inputs[k].node == tensor->node && info.inputs[k].slot == tensor->slot) {
                return tensor;
            }
        }
    }
    return NULL;
}

/* What makes the input of the activation large: the layer's weight, or the layer's own input. */
static const struct why_tensor *say_large_input(const struct why_walk *walk,
                                                const struct why_tensor *input,
                                                struct why_finding *ret)
{
    gd_node_id layer = layer_of(walk, input);
    const struct why_tensor *weight = layer != GD_NO_NODE ? weight_of(walk, layer) : NULL;
    const struct why_tensor *given = weight ? read_by(walk, layer, weight) : NULL;
    const char *name = weight ? gd_graph_name(walk->session->graph, layer) : "";
    double size = root_mean_square(given), gain = root_mean_square(input) / size;

    if (size > LARGE_INPUT) {
        gd_buf_printf(&ret->text,
                      " What %.120s reads, %.120s, has a root mean square of %.3g: normalize it.",
                      name, why_name(walk, given), size);
        return given;
    }
    if (size > 0 && gain > LARGE_GAIN) {
        gd_buf_printf(&ret->text,
                      " %.120s multiplies what it reads by about %.3g: its weight %.120s has a "
                      "root mean square of %.3g, and is too large from the start or has grown.",
                      name, gain, why_name(walk, weight), root_mean_square(weight));
        return weight;
    }
    return NULL;
}

const struct why_tensor *why_saturated(struct why_walk *walk, struct why_finding *ret)
{
    const struct why_tensor *made = &walk->tensors[0], *input = why_input(walk, made, 0);
    struct gd_node_info info;
    double slope =
        gd_graph_node(walk->session->graph, made->node, &info) ? mean_slope(made, info.type) : -1;

    if (slope < 0 || slope > MOST_SLOPE || !input || !input->has_stats) {
        return NULL;
    }
    why_say(ret, "saturated",
            "%.120s is saturated, so its gradients vanish: the mean slope of its %llu results is "
            "%.3g of that at the center. The mean magnitude of its input %.120s is %.4g.",
            why_name(walk, made), (unsigned long long)made->stats.count, slope,
            why_name(walk, input), input->stats.abs_mean);
    const struct why_tensor *cause = say_large_input(walk, input, ret);
    if (cause) {
        walk->tensors[cause - walk->tensors].verdict = GD_WHY_BAD;
    }
    return cause ? cause : made;
}
