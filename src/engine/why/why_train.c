// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Mistakes that show in the graph, and in what the program reports: a weight that gets no update,
 * gradients that are never zeroed, a loss that compares every element with every other, a label
 * that does not exist. No value is examined.
 */
#include <string.h>

#include "engine/why/why_impl.h"

#define MAX_BROADCAST 200000 /* nodes that are examined */

/* ---- a weight that gets no update ------------------------------------------------------------ */

/* The optimizer that holds the parameter did not step in this step. */
static bool say_no_step(const struct why_walk *walk, struct why_finding *ret)
{
    const struct gd_why_facts *facts = &walk->facts;

    if (!facts->has_stepped || facts->stepped >= walk->step || !walk->session->stop.at_step_end) {
        return false;
    }
    why_say(ret, "no-step", "%s holds %s but did not step in step %lld: ", facts->optimizer,
            facts->parameter, (long long)walk->step);
    if (facts->stepped > 0) {
        gd_buf_printf(&ret->text, "it last stepped in step %lld.", (long long)facts->stepped);
    } else {
        gd_buf_puts(&ret->text, "it has not stepped yet.");
    }
    return true;
}

uint32_t why_untrained(struct why_walk *walk, struct why_finding *ret)
{
    const struct gd_why_facts *facts = &walk->facts;
    const struct gd_graph *graph = walk->session->graph;
    gd_node_id weight = gd_graph_lookup(graph, facts->parameter, strlen(facts->parameter));
    uint32_t found;

    if (!facts->of_parameter || weight == GD_NO_NODE) {
        return WHY_NONE;
    }
    if (facts->frozen) {
        why_say(ret, "frozen",
                "%s is frozen: its requires_grad is False, so no gradient is computed for it "
                "and no optimizer changes it.",
                facts->parameter);
    } else if (say_no_step(walk, ret)) {
        return why_also(walk, weight, 0);
    } else if (!facts->has_gradient &&
               (facts->optimizer[0] || facts->optimizers == 0 || walk->tensors[0].node != weight) &&
               (found = why_no_gradient(walk, facts->parameter, weight, ret)) != WHY_NONE) {
        return found;
    } else if (!facts->optimizer[0] && facts->optimizers > 0) {
        why_say(ret, "not-trained",
                "Nothing updates %s: no optimizer holds it. Was it passed to an optimizer, "
                "and did it exist when the optimizer was created?",
                facts->parameter);
    } else if (facts->has_rate && facts->rate == 0) {
        why_say(ret, "learning-rate", "The learning rate of %s for %s is 0.", facts->optimizer,
                facts->parameter);
    } else {
        return WHY_NONE;
    }
    return why_also(walk, weight, 0);
}

uint32_t why_piled_up(struct why_walk *walk, struct why_finding *ret)
{
    const struct gd_why_facts *facts = &walk->facts;
    const struct gd_graph *graph = walk->session->graph;
    gd_node_id weight = gd_graph_lookup(graph, facts->piled_up_in, strlen(facts->piled_up_in));
    gd_node_id writer = weight == GD_NO_NODE ? GD_NO_NODE : why_writer(graph, weight);
    /* the optimizer's step may be unknown */
    gd_node_id shown = writer == GD_NO_NODE ? weight : writer;
    bool named = facts->piled_up_by[0];

    if (facts->piled_up_since <= 0) {
        return WHY_NONE;
    }
    why_say(ret, "not-set-back",
            "The gradients%s%s are never zeroed: the backward pass of step %lld added to what %s "
            "previous step had left in %s.grad, and so has each one since. Call zero_grad() "
            "between two steps of %s.",
            named ? " of " : "", facts->piled_up_by, (long long)facts->piled_up_since,
            named ? "its" : "the", facts->piled_up_in,
            named ? facts->piled_up_by : "the optimizer");
    return shown == GD_NO_NODE ? 0 : why_also(walk, shown, 0);
}

uint32_t why_apart(struct why_walk *walk, struct why_finding *ret)
{
    const struct gd_why_facts *facts = &walk->facts;
    const char *name = facts->parameter;

    if (!facts->apart || !facts->of_parameter) {
        return WHY_NONE;
    }
    why_say(ret, "ranks-apart",
            "%s is not the same on all ranks: rank %d is the first that differs", name,
            facts->apart_rank);
    if (facts->apart_gradient == GD_WHY_DIFFERS) {
        gd_buf_printf(
            &ret->text,
            ", and neither is %s.grad: its gradient was not averaged over the ranks in this step. "
            "DistributedDataParallel does that for the module it wraps, if the wrapper itself is "
            "called; gradients that you reduce by hand must be reduced in every step.",
            name);
    } else if (facts->apart_gradient == GD_WHY_SAME) {
        gd_buf_printf(
            &ret->text,
            ", though %s.grad is: either it already differed before this step, or "
            "something other than the gradient changed it. Do all ranks start with the same "
            "weights (seed, checkpoint, broadcast) and the same optimizer state?",
            name);
    } else {
        gd_buf_puts(&ret->text, ". Its gradient is no longer known.");
    }
    return 0;
}

/* ---- the loss -------------------------------------------------------------------------------- */

/* (N, 1) and (N). */
static bool is_column_and_row(const struct gd_shape *a, const struct gd_shape *b)
{
    return a->rank == 2 && b->rank == 1 && a->dim[1] == 1 && a->dim[0] > 1 &&
           a->dim[0] == b->dim[0];
}

/* Whether the operator pairs each element of a column with each of a row; and which two. */
static bool pairs_all(const struct gd_graph *graph, gd_node_id node,
                      const struct gd_node_info *info, struct gd_output in[2])
{
    struct gd_output out;
    uint32_t count = 0;

    for (uint32_t i = 0; i < info->input_count && count < 2; i++) {
        if (!info->inputs[i].control &&
            !gd_graph_output(graph, info->inputs[i].node, info->inputs[i].slot, &in[count++])) {
            return false;
        }
    }
    if (count < 2 || !(is_column_and_row(&in[0].shape, &in[1].shape) ||
                       is_column_and_row(&in[1].shape, &in[0].shape))) {
        return false;
    }
    return strstr(info->type, "loss") ||
           (gd_graph_output(graph, node, 0, &out) && out.shape.rank == 2 &&
            out.shape.dim[0] == out.shape.dim[1] && out.shape.dim[0] > 1);
}

/* Whether a gradient went through the operator: one that only computes positions or masks has
 * none. */
static bool has_gradient(const struct gd_graph *graph, gd_node_id node)
{
    uint32_t count = 0;
    const gd_node_id *order = gd_graph_execution(graph, &count);
    struct gd_node_info info;

    for (uint32_t i = 0; i < count; i++) {
        if (gd_graph_node(graph, order[i], &info) && why_forward_of(graph, &info) == node) {
            return true;
        }
    }
    return false;
}

uint32_t why_broadcast(struct why_walk *walk, struct why_finding *ret)
{
    const struct gd_graph *graph = walk->session->graph;
    uint32_t count = 0;
    const gd_node_id *order = gd_graph_execution(graph, &count);
    char first[128], second[128];
    struct gd_output in[2];
    struct gd_node_info info;

    for (uint32_t i = 0; i < count && i < MAX_BROADCAST; i++) {
        if (!gd_graph_node(graph, order[i], &info) || !why_in_phase(&info, "forward") ||
            !pairs_all(graph, order[i], &info, in) || !has_gradient(graph, order[i])) {
            continue;
        }
        why_say(ret, "broadcast",
                "%.160s (%s) pairs each element with each: its inputs are %s and %s, which "
                "broadcast to %lld x %lld pairs. Squeeze one axis so that both have the same "
                "shape.",
                info.name, info.type, gd_shape_text(&in[0].shape, first, sizeof(first)),
                gd_shape_text(&in[1].shape, second, sizeof(second)), (long long)in[0].shape.dim[0],
                (long long)in[0].shape.dim[0]);
        return why_also(walk, order[i], 0);
    }
    return WHY_NONE;
}

bool why_add_sum(const struct why_walk *walk, struct gd_buf *say)
{
    const struct gd_graph *graph = walk->session->graph;
    gd_node_id loss = gd_why_loss(graph, &walk->facts);
    struct gd_node_info info;
    struct gd_output given;

    if (!gd_graph_node(graph, loss, &info) || info.input_count == 0 ||
        !gd_graph_output(graph, info.inputs[0].node, info.inputs[0].slot, &given) ||
        given.shape.rank == 0 || given.shape.dim[0] < 2) {
        return false;
    }
    if (strcmp(info.type, "sum") != 0 && !why_attr_is(&info, "reduction", "sum")) {
        return false;
    }
    gd_buf_puts(say, " The loss is a sum, not a mean: ");
    why_put_node(graph, loss, say);
    gd_buf_printf(
        say, " adds up the losses of %lld examples, so the gradients grow with the batch size.",
        (long long)given.shape.dim[0]);
    return true;
}

/* ---- an operator that failed ----------------------------------------------------------------- */

/* What the indices were computed from, if it is a single value: rows that were picked, a new
 * shape. */
static gd_node_id made_of(const struct gd_graph *graph, gd_node_id node)
{
    struct gd_node_info info;

    for (int i = 0; i < 16 && gd_graph_node(graph, node, &info) && info.input_count > 0 &&
                    why_type_in(info.type, "getitem to long int view reshape squeeze unsqueeze "
                                           "flatten contiguous clone index_select");
         i++) {
        node = info.inputs[0].node;
    }
    return node;
}

#define PICKS_FROM_FIRST                                                                           \
    "getitem setitem index_* gather scatter* take put_" /* by the inputs that follow */

/* The input that an operator picks by, if the program did not say: the one with integers. None if
 * it is ambiguous. */
static gd_node_id numbers_of(const struct gd_graph *graph, const struct gd_node_info *info)
{
    struct gd_output output;
    gd_node_id found = GD_NO_NODE;

    for (uint32_t i = why_type_in(info->type, PICKS_FROM_FIRST) ? 1 : 0; i < info->input_count;
         i++) {
        if (gd_graph_output(graph, info->inputs[i].node, info->inputs[i].slot, &output) &&
            gd_dtype_is_int(output.dtype)) {
            if (found != GD_NO_NODE) {
                return GD_NO_NODE;
            }
            found = info->inputs[i].node;
        }
    }
    return found;
}

/* "There are 4 rows, 0 to 3, but element [1] of src is 9." */
static void say_range(const struct gd_why_facts *facts, const char *type, const char *name,
                      struct gd_buf *say)
{
    gd_buf_printf(say, " There are %lld ", (long long)facts->choices);
    if (facts->axis > 0) {
        gd_buf_printf(say, "positions along axis %lld", (long long)facts->axis);
    } else {
        gd_buf_puts(say, why_type_in(type, "cross_entropy* nll_loss* one_hot") ? "classes"
                         : why_type_in(type, "take put_")                      ? "elements"
                                                                               : "rows");
    }
    if (facts->from_end) {
        gd_buf_printf(say, ", -%lld to %lld (negative ones count from the end)",
                      (long long)facts->choices, (long long)facts->choices - 1);
    } else {
        gd_buf_printf(say, ", 0 to %lld", (long long)facts->choices - 1);
    }
    gd_buf_puts(say, ", but ");
    if (strcmp(facts->place, "[]") != 0) {
        gd_buf_printf(say, "element %s of ", facts->place);
    }
    gd_buf_printf(say, "%s is %lld.", name, (long long)facts->number);
}

uint32_t why_bad_number(struct why_walk *walk, struct why_finding *ret)
{
    const struct gd_why_facts *facts = &walk->facts;
    const struct gd_graph *graph = walk->session->graph;
    struct gd_node_info info;
    gd_node_id numbers = gd_graph_lookup(graph, facts->numbers, strlen(facts->numbers));

    if (!facts->raised[0] || !gd_graph_node(graph, walk->tensors[0].node, &info)) {
        return WHY_NONE;
    }
    if (numbers == GD_NO_NODE && !facts->listed) {
        numbers = numbers_of(graph, &info);
    }
    gd_node_id source = made_of(graph, numbers);
    why_say(ret, facts->choices > 0 ? "index-range" : "raised", "%.160s (%s) failed: %s%s",
            info.name, info.type, facts->raised,
            strchr(".!?", facts->raised[strlen(facts->raised) - 1]) ? "" : ".");
    if (facts->choices > 0) {
        say_range(facts, info.type,
                  numbers != GD_NO_NODE ? gd_graph_name(graph, numbers)
                  : facts->listed       ? "the index list"
                                        : "its indices",
                  &ret->text);
    }
    if (source != numbers && source != GD_NO_NODE) {
        gd_buf_puts(&ret->text, " It was taken from ");
        why_put_node(graph, source, &ret->text);
        gd_buf_putc(&ret->text, '.');
    }
    return 0;
}
