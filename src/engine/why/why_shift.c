// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Gradients that are 0 by algebra. An imagined change of a parameter is followed through the
 * operators of the forward pass: along which axes it is the same, and how often it was added. Where
 * all of it is removed again - by a normalization, a softmax, a difference, a factor of 0 - the
 * loss does not depend on the parameter, and its gradient is 0.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "engine/why/why_impl.h"

#define MAX_PARTNERS 64   /* factors whose values are asked for */
#define SMALL        1e-4 /* mean magnitude of a gradient that may be only rounding */
#define ALL_AXES     UINT32_MAX

#define SAME    "contiguous clone to float double half bfloat16 type neg positive identity type_as"
#define SHAPES  "view reshape flatten unflatten squeeze unsqueeze ravel view_as reshape_as"
#define SWAPS   "transpose transpose_ swapaxes swapdims t permute movedim"
#define SPREADS "expand expand_as repeat broadcast_to"
#define PARTS   "chunk split getitem narrow index_select tensor_split split_with_sizes roll flip"
#define ADDS    "add sub iadd isub add_ sub_ subtract rsub"
#define SCALES  "mul div truediv imul itruediv mul_ div_ multiply divide true_divide"
#define MATRIX  "matmul bmm mm"

struct change { /* of a result, if the parameter changes */
    bool is;
    uint32_t same; /* one bit per axis: it is the same all along it */
    double times;  /* how often it was added; NAN: unknown */
};

struct algebra {
    struct why_walk *walk;
    const struct gd_graph *graph;
    struct change *change;   /* by node */
    unsigned char *backward; /* a bit a node: its gradient was computed */
    gd_node_id parameter;
    gd_node_id ends[4]; /* operators that remove the change */
    uint32_t end_count;
    gd_node_id zero; /* the factor of 0 that removes it; GD_NO_NODE */
    gd_node_id partners[MAX_PARTNERS];
    uint32_t partner_count;
    bool reaches_loss;
};

struct step { /* one operator, and its first input that changes */
    gd_node_id node;
    struct gd_node_info info;
    struct gd_shape out;
    uint32_t at;
    struct change in;
    struct gd_shape shape; /* of that input */
    uint32_t changing;     /* inputs that do */
};

/* ---- axes ------------------------------------------------------------------------------------ */

static bool shape_of(const struct algebra *a, const struct gd_edge *edge, struct gd_shape *ret)
{
    struct gd_output output;

    if (!gd_graph_output(a->graph, edge->node, edge->slot, &output) || output.shape.rank < 0) {
        return false;
    }
    *ret = output.shape;
    return true;
}

static bool is_same(uint32_t same, const struct gd_shape *shape, int axis)
{
    return axis < 0 || axis >= shape->rank || shape->dim[axis] == 1 || (same >> axis & 1U);
}

/* Along all axes from `begin` on but `except`. */
static bool is_same_from(uint32_t same, const struct gd_shape *shape, int begin, int except)
{
    for (int i = begin; i < shape->rank; i++) {
        if (i != except && !is_same(same, shape, i)) {
            return false;
        }
    }
    return true;
}

/* After broadcasting: axes of length 1 that grow, and new ones, are the same all along. */
static uint32_t spread_axes(uint32_t same, const struct gd_shape *from, const struct gd_shape *to)
{
    uint32_t ret = 0;

    for (int i = 0; i < to->rank && i < 32; i++) {
        ret |= (uint32_t)is_same(same, from, i - (to->rank - from->rank)) << i;
    }
    return ret;
}

/* Groups of axes with the same product are treated together. */
static uint32_t reshape_axes(uint32_t same, const struct gd_shape *from, const struct gd_shape *to)
{
    uint32_t ret = 0;
    int i = 0, k = 0;

    while (k < to->rank && k < 32) {
        int64_t a = i < from->rank ? from->dim[i] : 1, b = to->dim[k];
        bool all = is_same(same, from, i++);
        int first = k++;

        while (a != b && (i < from->rank || k < to->rank)) {
            if (a < b && i < from->rank) {
                all = is_same(same, from, i) && all;
                a *= from->dim[i++];
            } else if (k < to->rank) {
                b *= to->dim[k++];
            } else {
                break;
            }
        }
        for (int axis = first; axis < k; axis++) {
            ret |= (uint32_t)(all && a == b) << axis;
        }
    }
    return ret;
}

static int axis_from(const char *text, int rank, const char **end)
{
    char *after = NULL;
    long axis = text ? strtol(text, &after, 10) : rank;

    *end = after;
    axis += axis < 0 ? rank : 0;
    return text && after != text && axis >= 0 && axis < rank ? (int)axis : -1;
}

/* The axes that an attribute lists, as bits; 0: none. */
static uint32_t axes_of(const struct step *s, int rank)
{
    const char *text = gd_node_attr(&s->info, "dim");
    uint32_t ret = 0;

    while (text && *text) {
        const char *end;
        int axis = axis_from(text, rank, &end);

        if (axis < 0 || axis > 31) {
            return 0;
        }
        ret |= 1U << axis;
        text = *end ? end + 1 : end;
    }
    return ret;
}

/* "1,2": two axes that are swapped; a whole order for `permute`. */
static uint32_t swap_axes(const struct step *s)
{
    const char *text = gd_node_attr(&s->info, "dim");
    int axes[32], count = 0, rank = s->shape.rank;
    uint32_t ret = 0;

    while (text && *text && count < 32) {
        axes[count] = axis_from(text, rank, &text);
        if (axes[count++] < 0) {
            return 0;
        }
        text += *text == ',';
    }
    for (int i = 0; i < rank && i < 32; i++) {
        int from = count == rank && why_type_in(s->info.type, "permute") ? axes[i]
                   : count == 2                                          ? (i == axes[0]   ? axes[1]
                                                                            : i == axes[1] ? axes[0]
                                                                                           : i)
                                                                         : -1;
        ret |= (uint32_t)(from >= 0 && is_same(s->in.same, &s->shape, from)) << i;
    }
    return why_type_in(s->info.type, "t") && rank == 2
               ? (uint32_t)is_same(s->in.same, &s->shape, 1) |
                     (uint32_t)is_same(s->in.same, &s->shape, 0) << 1
               : ret;
}

/* ---- factors of 0 ---------------------------------------------------------------------------- */

static bool is_zero(struct algebra *a, gd_node_id node)
{
    struct gd_node_info info;

    if (!gd_graph_node(a->graph, node, &info)) {
        return false;
    }
    if (why_type_in(info.type, "zeros zeros_like new_zeros Zeros ZerosLike")) {
        return true;
    }
    for (size_t i = 0; i < a->walk->count; i++) {
        const struct why_tensor *tensor = &a->walk->tensors[i];

        if (tensor->node == node && tensor->has_stats && tensor->stats.count > 0 &&
            tensor->value_step <= a->walk->step) {
            return tensor->stats.zero == tensor->stats.count && !tensor->too_new;
        }
    }
    if (a->partner_count < MAX_PARTNERS) {
        a->partners[a->partner_count++] = node;
    }
    return false;
}

/* The input that the changing one is multiplied by; -1: none, or more than one. */
static int factor_of(const struct step *s)
{
    if (s->changing != 1) {
        return -1;
    }
    if (why_type_in(s->info.type, "linear conv1d conv2d conv3d mul multiply imul mul_ " MATRIX)) {
        return s->at < 2 && s->info.input_count >= 2 ? 1 - (int)s->at : -1;
    }
    /* x, state, and the weights of each: the state is multiplied by the fourth */
    return why_type_in(s->info.type, "rnn_tanh_cell rnn_relu_cell gru_cell") && s->at == 3 ? 1 : -1;
}

static bool meets_zero(struct algebra *a, const struct step *s)
{
    int factor = factor_of(s);

    if (factor < 0 || !is_zero(a, s->info.inputs[factor].node)) {
        return false;
    }
    a->zero = s->info.inputs[factor].node;
    return true;
}

/* ---- operators ------------------------------------------------------------------------------- */

/* Whether the input of a normalization or a softmax changes only by what it removes. */
static bool takes_away(const struct step *s)
{
    const struct gd_shape *x = &s->shape;
    const char *type = s->info.type, *end, *groups = gd_node_attr(&s->info, "groups");
    int axis;

    if (why_type_in(type, "scaled_dot_product_attention")) {
        return s->at == 1 && s->changing == 1 && is_same(s->in.same, x, x->rank - 2);
    }
    if (s->at != 0 || s->changing != 1) {
        return false;
    }
    if (why_type_in(type, "softmax log_softmax")) {
        axis = axis_from(gd_node_attr(&s->info, "dim"), x->rank, &end);
        return axis >= 0 && is_same(s->in.same, x, axis);
    }
    if (why_type_in(type, "cross_entropy")) {
        return x->rank > 0 && is_same(s->in.same, x, x->rank > 1 ? 1 : 0);
    }
    if (why_type_in(type, "batch_norm")) {
        return why_attr_is(&s->info, "training", "True") && is_same_from(s->in.same, x, 0, 1);
    }
    if (why_type_in(type, "instance_norm")) {
        return why_attr_is(&s->info, "training", "True") && is_same_from(s->in.same, x, 2, -1);
    }
    if (why_type_in(type, "group_norm")) {
        bool alone = groups && x->rank > 1 && strtol(groups, NULL, 10) == x->dim[1];
        return groups && is_same_from(s->in.same, x, 2, -1) && (alone || is_same(s->in.same, x, 1));
    }
    if (why_type_in(type, "layer_norm")) {
        const char *rank = gd_node_attr(&s->info, "rank");
        axis = rank ? x->rank - (int)strtol(rank, NULL, 10) : -1;
        return axis >= 0 && is_same_from(s->in.same, x, axis, -1);
    }
    if (why_type_in(type, "std var")) {
        uint32_t axes = axes_of(s, x->rank);
        bool all = true;
        for (int i = 0; i < x->rank; i++) {
            all = all && ((axes && !(axes >> i & 1U)) || is_same(s->in.same, x, i));
        }
        return all;
    }
    return false;
}

/* The parameter itself is added: as the bias of a product or of a normalization, or directly. */
static bool enters_sum(const struct algebra *a, const struct step *s, struct change *out)
{
    int rank = s->out.rank, axis = -1;
    struct gd_shape weight;
    bool last = s->at + 1 == s->info.input_count;

    if (why_type_in(s->info.type, ADDS)) {
        return false; /* like any other value */
    }
    if (s->shape.rank != 1 || !last || s->info.input_count < 3 ||
        !shape_of(a, &s->info.inputs[1], &weight)) {
        return false;
    }
    if (why_type_in(s->info.type, "linear layer_norm")) {
        axis = rank - 1;
    } else if (why_type_in(s->info.type, "conv1d conv2d conv3d")) {
        axis = rank - weight.rank + 1;
    } else if (why_type_in(s->info.type, "batch_norm instance_norm group_norm")) {
        axis = 1;
    }
    if (axis < 0 || axis >= rank || s->out.dim[axis] != s->shape.dim[0]) {
        return false;
    }
    *out = (struct change){.is = true, .same = ALL_AXES & ~(1U << axis), .times = 1};
    return true;
}

static struct change sum_change(const struct algebra *a, const struct step *s)
{
    bool minus = why_type_in(s->info.type, "sub isub sub_ subtract");
    struct change ret = {.is = true, .same = ALL_AXES, .times = 0};
    struct gd_shape shape;

    for (uint32_t i = 0; i < s->info.input_count; i++) {
        const struct change *in = &a->change[s->info.inputs[i].node];
        uint32_t same;

        if (!in->is || !shape_of(a, &s->info.inputs[i], &shape)) {
            continue;
        }
        same = spread_axes(in->same, &shape, &s->out);
        ret.times += ret.same == ALL_AXES || same == ret.same
                         ? (minus && i > 0 ? -in->times : in->times)
                         : (double)NAN;
        ret.same &= same;
    }
    /* An operand that occurs twice is one edge. */
    ret.is = s->changing < 2 || ret.times != 0;
    return ret;
}

static struct change scale_change(const struct algebra *a, const struct step *s)
{
    struct change ret = {.times = (double)NAN};
    struct gd_shape shape;

    if (s->changing != 1 || (s->at > 0 && !why_type_in(s->info.type, "mul multiply imul mul_"))) {
        return (struct change){true, 0, (double)NAN};
    }
    ret.is = true;
    ret.same = spread_axes(s->in.same, &s->shape, &s->out);
    for (uint32_t i = 0; i < s->info.input_count; i++) {
        if (i != s->at && shape_of(a, &s->info.inputs[i], &shape)) {
            ret.same &= spread_axes(0, &shape, &s->out);
        }
    }
    return ret;
}

/* Rows of the left operand, columns of the right one. */
static uint32_t multiply_axes(const struct algebra *a, const struct step *s)
{
    struct gd_shape left, right;
    struct gd_node_info info;
    int rank = s->out.rank;

    if (s->changing != 1 || s->info.input_count != 2 || !shape_of(a, &s->info.inputs[0], &left) ||
        !shape_of(a, &s->info.inputs[1], &right) || left.rank < 2 || right.rank < 2 || rank < 2) {
        return 0;
    }
    int64_t summed = left.dim[left.rank - 1];
    bool fits = summed == right.dim[right.rank - 2];
    bool turned = summed == right.dim[right.rank - 1]; /* x.mT is not a node */
    bool rows = is_same(s->in.same, &right, right.rank - 2);
    bool columns = is_same(s->in.same, &right, right.rank - 1);
    if (s->at == 0) {
        return fits ? (uint32_t)is_same(s->in.same, &left, left.rank - 2) << (rank - 2) : 0;
    }
    bool same = fits ? columns : rows;
    if (fits == turned && right.dim[right.rank - 1] == right.dim[right.rank - 2]) {
        /* for a square, only its origin shows which way round it is */
        bool known =
            gd_graph_node(a->graph, s->info.inputs[1].node, &info) && why_type_in(info.type, SWAPS);
        same = (fits && columns && rows) || (known && columns);
    }
    return (uint32_t)same << (rank - 1);
}

static struct change reduce_axes(const struct step *s)
{
    uint32_t axes = axes_of(s, s->shape.rank), ret = 0;
    bool whole = s->out.rank == 0, kept = s->out.rank == s->shape.rank, all = true;
    int k = 0;

    for (int i = 0; i < s->shape.rank && i < 32; i++) {
        bool goes = whole || (axes >> i & 1U);

        all = all && (!goes || is_same(s->in.same, &s->shape, i));
        if (!goes || kept) {
            ret |= (uint32_t)(goes || is_same(s->in.same, &s->shape, i)) << k++;
        }
    }
    if (!whole && axes == 0) {
        return (struct change){true, 0, (double)NAN};
    }
    bool keeps = all && why_type_in(s->info.type, "mean amax amin max min logsumexp");
    bool linear = why_type_in(s->info.type, "mean sum");
    return (struct change){true, keeps || linear ? ret : 0, keeps ? s->in.times : (double)NAN};
}

/* What comes out of an operator that something changing goes into. */
static struct change pass_change(struct algebra *a, const struct step *s)
{
    const char *type = s->info.type;
    struct change ret = {true, 0, (double)NAN};

    if (s->info.inputs[s->at].node == a->parameter && enters_sum(a, s, &ret)) {
        return ret;
    }
    if (why_type_in(type, ADDS)) {
        return sum_change(a, s);
    }
    if (why_type_in(type, SCALES)) {
        return scale_change(a, s);
    }
    if (why_type_in(type, MATRIX)) {
        ret.same = multiply_axes(a, s);
    } else if (why_type_in(type, "mean sum amax amin max min logsumexp")) {
        return reduce_axes(s);
    } else if (s->at != 0 || s->changing != 1) {
        return ret;
    } else if (why_type_in(type, SAME)) {
        ret = s->in;
        ret.times = why_type_in(type, "neg") ? -ret.times : ret.times;
    } else if (why_type_in(type, SHAPES)) {
        ret = (struct change){true, reshape_axes(s->in.same, &s->shape, &s->out), s->in.times};
    } else if (why_type_in(type, SWAPS)) {
        ret = (struct change){true, swap_axes(s), s->in.times};
    } else if (why_type_in(type, SPREADS)) {
        ret = (struct change){true, spread_axes(s->in.same, &s->shape, &s->out), s->in.times};
    } else if (why_type_in(type, PARTS) && s->out.rank == s->shape.rank) {
        ret.same = s->in.same;
    } else if (why_type_in(type, "masked_fill masked_fill_") &&
               why_attr_is(&s->info, "fill", "-inf")) {
        ret.same = s->in.same; /* what is masked is 0 after the softmax anyway */
    } else if (why_type_in(type, "linear")) {
        ret.same = s->in.same & ~(1U << (s->out.rank - 1));
    } else if (why_type_in(type, "conv1d conv2d conv3d")) {
        bool bare = why_attr_is(&s->info, "padding", "0");
        ret.same = bare ? s->in.same & ~2U : s->in.same & 1U;
    }
    return ret;
}

/* ---- the way --------------------------------------------------------------------------------- */

static void free_algebra(struct algebra *a)
{
    free(a->change);
    free(a->backward);
}

static bool begin_algebra(struct algebra *a, struct why_walk *walk, gd_node_id parameter)
{
    const struct gd_graph *graph = walk->session->graph;
    size_t limit = gd_graph_node_limit(graph);

    *a = (struct algebra){.walk = walk, .graph = graph, .parameter = parameter, .zero = GD_NO_NODE};
    a->change = calloc(limit + 1, sizeof(*a->change));
    a->backward = calloc(limit / 8 + 1, 1);
    return a->change && a->backward && why_mark_reached(graph, a->backward);
}

static bool feeds_backward(const struct algebra *a, gd_node_id node)
{
    const struct gd_edge *edges = NULL;
    uint32_t count = gd_graph_consumers(a->graph, node, &edges);

    for (uint32_t i = 0; i < count; i++) {
        if (why_has_bit(a->backward, edges[i].node)) {
            return true;
        }
    }
    return false;
}

static void visit_step(struct algebra *a, struct step *s)
{
    struct gd_output output;

    s->changing = 0;
    for (uint32_t i = s->info.input_count; i-- > 0;) {
        if (a->change[s->info.inputs[i].node].is && !s->info.inputs[i].control) {
            s->changing++;
            s->at = i;
        }
    }
    if (s->changing == 0) {
        return;
    }
    s->in = a->change[s->info.inputs[s->at].node];
    if (!shape_of(a, &s->info.inputs[s->at], &s->shape) ||
        !gd_graph_output(a->graph, s->node, 0, &output) || output.shape.rank > 31) {
        a->reaches_loss = true; /* as far as it is known */
        return;
    }
    s->out = output.shape;
    struct change out = {0};
    if (!takes_away(s) && !meets_zero(a, s)) {
        out = pass_change(a, s);
    }
    a->change[s->node] = out;
    if (!out.is && a->end_count < 4) {
        a->ends[a->end_count++] = s->node;
    }
    a->reaches_loss = a->reaches_loss || (out.is && !feeds_backward(a, s->node));
}

/* Whether nothing of the change reaches the loss. */
static bool change_vanishes(struct algebra *a)
{
    uint32_t count = 0;
    const gd_node_id *order = gd_graph_execution(a->graph, &count);

    memset(a->change, 0, (gd_graph_node_limit(a->graph) + 1) * sizeof(*a->change));
    a->change[a->parameter] = (struct change){true, 0, 1};
    a->end_count = 0;
    a->zero = GD_NO_NODE;
    a->reaches_loss = false;
    for (uint32_t i = 0; i < count && !a->reaches_loss; i++) {
        struct step s = {.node = order[i]};

        if (why_has_bit(a->backward, order[i]) && gd_graph_node(a->graph, order[i], &s.info)) {
            visit_step(a, &s);
        }
    }
    return !a->reaches_loss && a->end_count > 0;
}

/* ---- the answer ------------------------------------------------------------------------------ */

/* The parameter whose gradient is asked about; GD_NO_NODE. */
static gd_node_id parameter_of(const struct why_walk *walk)
{
    const char *name = walk->facts.parameter;
    gd_node_id node = gd_graph_lookup(walk->session->graph, name, strlen(name));

    return walk->facts.of_parameter ? node : GD_NO_NODE;
}

void why_ask_factors(struct why_walk *walk)
{
    GD_CLEANUP(free_algebra) struct algebra a = {0};
    gd_node_id parameter = parameter_of(walk);

    if (parameter == GD_NO_NODE || !begin_algebra(&a, walk, parameter)) {
        return;
    }
    (void)change_vanishes(&a);
    for (uint32_t i = 0; i < a.partner_count; i++) {
        why_also_factor(walk, a.partners[i], 0);
    }
}

/* A bias that is removed again is normal; if a whole matrix is, the model does nothing. */
static bool is_no_fault(const struct algebra *a)
{
    struct gd_output output;
    int axes = 0;

    if (a->zero != GD_NO_NODE || !gd_graph_output(a->graph, a->parameter, 0, &output)) {
        return false;
    }
    for (int i = 0; i < output.shape.rank; i++) {
        axes += output.shape.dim[i] > 1;
    }
    return output.shape.rank < 2 || axes < 1;
}

static void say_zero(const struct algebra *a, const char *name, struct why_finding *ret)
{
    bool no_fault = is_no_fault(a);

    why_say(ret, "zero-by-algebra",
            "The gradient of %s is 0 by algebra, apart from rounding%s: ", name,
            no_fault ? ", and this is normal" : "");
    if (a->zero != GD_NO_NODE) {
        why_put_node(a->graph, a->ends[0], &ret->text);
        gd_buf_printf(&ret->text,
                      " multiplies everything that depends on it by %.160s, which is all 0, so the "
                      "loss does not depend on it in this step. For a state that starts at 0 this "
                      "is normal, unless the state should be carried over.",
                      gd_graph_name(a->graph, a->zero));
        return;
    }
    gd_buf_puts(&ret->text, "it adds the same amount all along the axes from which ");
    for (uint32_t i = 0; i < a->end_count; i++) {
        gd_buf_puts(&ret->text, i == 0 ? "" : i + 1 == a->end_count ? " and " : ", ");
        why_put_node(a->graph, a->ends[i], &ret->text);
    }
    gd_buf_printf(&ret->text, " %s, so the loss does not depend on it.%s",
                  a->end_count == 1 ? "removes any common shift" : "remove any common shift",
                  no_fault ? " The model does not need it." : "");
}

uint32_t why_shifted(struct why_walk *walk, struct why_finding *ret)
{
    GD_CLEANUP(free_algebra) struct algebra a = {0};
    const struct why_tensor *root = &walk->tensors[0];
    gd_node_id parameter = parameter_of(walk);

    if (parameter == GD_NO_NODE ||
        (root->node != parameter && root->has_stats && root->stats.abs_mean > SMALL) ||
        !begin_algebra(&a, walk, parameter) || !change_vanishes(&a)) {
        return WHY_NONE;
    }
    say_zero(&a, walk->facts.parameter, ret);
    return 0;
}

bool why_zero_factor(const struct why_walk *walk, const struct why_tensor *origin,
                     struct why_finding *ret)
{
    const struct gd_graph *graph = walk->session->graph;
    struct algebra a = {.graph = graph};
    struct gd_node_info info, forward;
    gd_node_id node =
        gd_graph_node(graph, origin->node, &info) ? why_forward(graph, &info) : GD_NO_NODE;
    bool found = false;

    a.walk = (struct why_walk *)walk; /* only read */
    if (!gd_graph_node(graph, node, &forward) ||
        !why_type_in(info.type, "Addmm* Mm* Bmm* MatMul* Mul* Linear* Convolution*")) {
        return false;
    }
    for (uint32_t i = 0; i < forward.input_count && !found; i++) {
        gd_node_id factor = forward.inputs[i].node;
        struct gd_node_info of;

        found = !forward.inputs[i].control && gd_graph_node(graph, factor, &of) &&
                !(of.kind == GD_NODE_WEIGHT && i + 1 == forward.input_count && i > 1) &&
                is_zero(&a, factor);
        if (found) {
            ret->rule = "zero-factor";
            why_put_node(graph, origin->node, &ret->text);
            gd_buf_printf(&ret->text,
                          " is 0 by algebra: %.160s (%s) multiplies by %.160s, which is all 0, and "
                          "a value that is multiplied by 0 gets no gradient. For a state or a "
                          "weight that starts at 0 this is normal.",
                          forward.name, forward.type, gd_graph_name(graph, factor));
        }
    }
    return found;
}
