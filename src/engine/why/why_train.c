// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Mistakes of a training that show in its graph, and in what its program tells: a weight that gets
 * no update, gradients that nobody sets back, a loss that compares each with each, a label that
 * does not exist. No value is looked at for them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/why/why_impl.h"

#define MAX_BROADCAST 200000 /* nodes that are looked at */
#define MAX_UNREACHED 200    /* weights that nobody updates whose way to the loss is looked for */
#define MAX_MODELS    64     /* that are told apart */

bool why_in_phase(const struct gd_node_info *info, const char *phase)
{
    const char *own = gd_node_attr(info, "phase");

    return own && strcmp(own, phase) == 0;
}

gd_node_id why_forward(const struct gd_graph *graph, const struct gd_node_info *info)
{
    const char *name = gd_node_attr(info, "forward");

    return name ? gd_graph_lookup(graph, name, strlen(name)) : GD_NO_NODE;
}

/* The same, of a node of the backward pass alone. */
static gd_node_id forward_of(const struct gd_graph *graph, const struct gd_node_info *info)
{
    return why_in_phase(info, "backward") ? why_forward(graph, info) : GD_NO_NODE;
}

/* The first backward node, told: that of a pass into the weights, not of one whose result is a part
 * of the loss. */
static gd_node_id first_of_backward(const struct gd_graph *graph, bool told)
{
    uint32_t count = 0;
    const gd_node_id *order = gd_graph_execution(graph, &count);

    for (uint32_t i = 0; i < count; i++) {
        struct gd_node_info info;

        if (gd_graph_node(graph, order[i], &info) && why_in_phase(&info, "backward") &&
            (!told || gd_node_attr(&info, "begins"))) {
            return order[i];
        }
    }
    return GD_NO_NODE;
}

static bool is_scalar(const struct gd_graph *graph, gd_node_id node)
{
    struct gd_output output;

    return gd_graph_output(graph, node, 0, &output) && gd_shape_count(&output.shape) == 1;
}

gd_node_id gd_why_loss(const struct gd_graph *graph, const struct gd_why_facts *facts)
{
    gd_node_id told = facts ? gd_graph_lookup(graph, facts->loss, strlen(facts->loss)) : GD_NO_NODE;
    gd_node_id first = first_of_backward(graph, true);
    struct gd_node_info info;

    if (is_scalar(graph, told)) {
        return told;
    }
    if (first == GD_NO_NODE) {
        first = first_of_backward(graph, false); /* told by nobody */
    }
    gd_node_id forward = gd_graph_node(graph, first, &info) ? forward_of(graph, &info) : GD_NO_NODE;
    return is_scalar(graph, forward) ? forward : GD_NO_NODE;
}

/* ---- the way from a weight to the loss ------------------------------------------------------- */

struct way { /* from a weight forward through what no backward pass went through */
    const struct gd_graph *graph;
    unsigned char *reached; /* a bit a node: its gradient was computed */
    unsigned char *seen;
    gd_node_id *queue;
    uint32_t count;
    gd_node_id cut;   /* the last without a gradient, before one that has it; GD_NO_NODE */
    gd_node_id after; /* that one */
    gd_node_id off;   /* the first that ran while gradients were switched off; GD_NO_NODE */
    bool is_whole;    /* what reads the weight itself has a gradient */
};

static bool has_bit(const unsigned char *bits, gd_node_id node)
{
    return bits[node / 8] & (1U << node % 8);
}

static void set_bit(unsigned char *bits, gd_node_id node)
{
    bits[node / 8] = (unsigned char)(bits[node / 8] | 1U << node % 8);
}

/* Marks the operators whose gradient was computed; false when there is none. */
static bool mark_reached(struct way *way)
{
    uint32_t count = 0;
    const gd_node_id *order = gd_graph_execution(way->graph, &count);
    bool any = false;

    for (uint32_t i = 0; i < count; i++) {
        struct gd_node_info info;
        gd_node_id forward;

        if (gd_graph_node(way->graph, order[i], &info) &&
            (forward = forward_of(way->graph, &info)) != GD_NO_NODE) {
            set_bit(way->reached, forward);
            any = true;
        }
    }
    return any;
}

static bool is_detach(const struct way *way, gd_node_id node)
{
    struct gd_node_info info;

    return node != GD_NO_NODE && gd_graph_node(way->graph, node, &info) &&
           why_type_in(info.type, "detach detach_ StopGradient");
}

/* Whether the program had switched gradients off, which the operator was given something for. */
static bool is_off(const struct gd_node_info *info)
{
    const char *grad = gd_node_attr(info, "grad");

    return grad && strcmp(grad, "off") == 0;
}

/* One step from `node`: its readers join the queue, or the way ends there. */
static void follow(struct way *way, gd_node_id node, bool is_weight)
{
    const struct gd_edge *edges = NULL;
    uint32_t count = gd_graph_consumers(way->graph, node, &edges);

    for (uint32_t i = 0; i < count; i++) {
        gd_node_id reader = edges[i].node;
        struct gd_node_info info;

        if (edges[i].control || !gd_graph_node(way->graph, reader, &info) ||
            !why_in_phase(&info, "forward")) {
            continue;
        }
        if (has_bit(way->reached, reader)) {
            way->is_whole = way->is_whole || is_weight;
            if (way->cut == GD_NO_NODE || (!is_detach(way, way->cut) && is_detach(way, node))) {
                way->cut = node;
                way->after = reader;
            }
        } else if (!has_bit(way->seen, reader)) {
            set_bit(way->seen, reader);
            way->queue[way->count++] = reader;
            way->off = way->off == GD_NO_NODE && is_off(&info) ? reader : way->off;
        }
    }
}

/* False when memory is short, or when there was no backward pass. way_free in any case. */
static bool way_begin(struct way *way, const struct gd_graph *graph)
{
    size_t limit = gd_graph_node_limit(graph);

    *way = (struct way){.graph = graph};
    way->reached = calloc(limit / 8 + 1, 1);
    way->seen = calloc(limit / 8 + 1, 1);
    way->queue = malloc((limit + 1) * sizeof(*way->queue));
    return way->reached && way->seen && way->queue && mark_reached(way);
}

/* What was found on the way of another weight goes. */
static void way_find(struct way *way, gd_node_id weight)
{
    while (way->count > 0) {
        way->count--;
        way->seen[way->queue[way->count] / 8] = 0;
    }
    way->cut = way->after = way->off = GD_NO_NODE;
    way->is_whole = false;
    follow(way, weight, true);
    for (uint32_t i = 0; i < way->count && !way->is_whole; i++) {
        follow(way, way->queue[i], false);
    }
}

static void way_free(struct way *way)
{
    free(way->reached);
    free(way->seen);
    free(way->queue);
}

static void put_node(const struct gd_graph *graph, gd_node_id node, struct gd_buf *text)
{
    struct gd_node_info info;

    if (gd_graph_node(graph, node, &info)) {
        gd_buf_printf(text, "%.160s (%s)", info.name, info.type);
    }
}

/* ---- a weight that gets no update ------------------------------------------------------------ */

static void finding(struct why_finding *ret, const char *rule)
{
    snprintf(ret->rule, sizeof(ret->rule), "%s", rule);
    gd_buf_clear(&ret->text);
}

static void say_cut(const struct way *way, const char *name, struct why_finding *ret)
{
    bool detached = is_detach(way, way->cut);

    finding(ret, detached ? "detached" : "cut-off");
    gd_buf_printf(&ret->text, "No gradient reaches %s: ", name);
    put_node(way->graph, way->cut, &ret->text);
    gd_buf_puts(&ret->text, detached ? " cuts it off from the loss. The backward pass ends at "
                                     : " carries no gradient, as under no_grad() or through "
                                       ".data. The backward pass ends at ");
    put_node(way->graph, way->after, &ret->text);
    gd_buf_puts(&ret->text, ", which reads it.");
}

static void say_off(const struct way *way, const char *name, struct why_finding *ret)
{
    finding(ret, "no-grad");
    gd_buf_printf(&ret->text, "No gradient reaches %s: ", name);
    put_node(way->graph, way->off, &ret->text);
    gd_buf_puts(&ret->text, " ran while gradients were switched off, as under no_grad(), so that "
                            "none comes back through it.");
    if (way->after != GD_NO_NODE) {
        gd_buf_puts(&ret->text, " The backward pass ends at ");
        put_node(way->graph, way->after, &ret->text);
        gd_buf_putc(&ret->text, '.');
    }
}

/* The parameter has no gradient: where its way to the loss ends. */
static uint32_t no_gradient(struct why_walk *walk, gd_node_id weight, struct why_finding *ret)
{
    const char *name = walk->facts.parameter;
    struct way way;
    gd_node_id blamed = weight;

    if (way_begin(&way, walk->session->graph)) {
        way_find(&way, weight);
    } else {
        way.is_whole = true; /* as far as it is known */
    }
    if (way.is_whole) {
        way_free(&way);
        return WHY_NONE;
    }
    if (way.off != GD_NO_NODE && !is_detach(&way, way.cut)) {
        blamed = way.off;
        say_off(&way, name, ret);
    } else if (way.cut != GD_NO_NODE) {
        blamed = way.cut;
        say_cut(&way, name, ret);
    } else if (way.count == 0) {
        finding(ret, "unused");
        gd_buf_printf(&ret->text,
                      "No operator reads %s: it is no part of what was computed, so no gradient "
                      "reaches it.",
                      name);
    } else {
        blamed = way.queue[way.count - 1];
        finding(ret, "no-path");
        gd_buf_printf(&ret->text,
                      "What is computed from %s does not reach the loss: no gradient comes back. "
                      "The last of it is ",
                      name);
        put_node(way.graph, blamed, &ret->text);
        gd_buf_putc(&ret->text, '.');
    }
    way_free(&way);
    return why_also(walk, blamed, 0);
}

/* A model is what stands in front of the first '/' of a name. */
static size_t model_length(const char *name)
{
    const char *slash = strchr(name, '/');

    return slash ? (size_t)(slash - name) + 1 : strlen(name);
}

struct models { /* of which an optimizer has updated something: the name of a weight of each */
    const char *name[MAX_MODELS];
    size_t count;
};

static bool has_model(const struct models *models, const char *name)
{
    size_t length = model_length(name);

    for (size_t i = 0; i < models->count; i++) {
        if (model_length(models->name[i]) == length && memcmp(models->name[i], name, length) == 0) {
            return true;
        }
    }
    return false;
}

static void find_models(const struct gd_graph *graph, struct models *ret)
{
    size_t limit = gd_graph_node_limit(graph);
    struct gd_node_info info;

    ret->count = 0;
    for (gd_node_id node = 0; node < limit && ret->count < MAX_MODELS; node++) {
        if (gd_graph_node(graph, node, &info) && info.kind == GD_NODE_WEIGHT &&
            why_writer(graph, node) != GD_NO_NODE && !has_model(ret, info.name)) {
            ret->name[ret->count++] = info.name;
        }
    }
}

/* Whether that weight got no gradient, for a reason that is sure. */
static bool is_unreached(struct way *way, gd_node_id weight)
{
    way_find(way, weight);
    return !way->is_whole && (way->off != GD_NO_NODE || is_detach(way, way->cut));
}

/* How many weights no gradient reaches, of models that are trained; *first is one. */
static int count_unreached(const struct gd_graph *graph, struct way *way, gd_node_id *first)
{
    size_t limit = gd_graph_node_limit(graph);
    struct gd_node_info info;
    struct models trained;
    int looked = 0, count = 0;

    find_models(graph, &trained);
    for (gd_node_id node = 0; node < limit && looked < MAX_UNREACHED; node++) {
        if (!gd_graph_node(graph, node, &info) || info.kind != GD_NODE_WEIGHT ||
            gd_node_attr(&info, "frozen") || why_writer(graph, node) != GD_NO_NODE) {
            continue;
        }
        looked++;
        if (has_model(&trained, info.name) && is_unreached(way, node)) {
            *first = count++ == 0 ? node : *first;
        }
    }
    return count;
}

void why_add_unreached(const struct why_walk *walk, struct gd_buf *say)
{
    const struct gd_graph *graph = walk->session->graph;
    gd_node_id first = GD_NO_NODE;
    struct way way;
    int count;

    if (walk->count == 0 || walk->tensors[0].node != gd_why_loss(graph, &walk->facts)) {
        return;
    }
    count = way_begin(&way, graph) ? count_unreached(graph, &way, &first) : 0;
    way_free(&way);
    if (count > 0) {
        const char *name = gd_graph_name(graph, first);
        gd_buf_printf(say, " No gradient reaches %.160s", name);
        if (count > 1) {
            gd_buf_printf(say, " and %d more weight%s", count - 1, count == 2 ? "" : "s");
        }
        gd_buf_printf(say, ": `why %.160s.grad` says what cuts it off.", name);
    }
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
        finding(ret, "frozen");
        gd_buf_printf(&ret->text,
                      "%s is frozen: its requires_grad is False, so that no gradient is computed "
                      "for it and no optimizer changes it.",
                      facts->parameter);
    } else if (!facts->has_gradient && (found = no_gradient(walk, weight, ret)) != WHY_NONE) {
        return found;
    } else if (!facts->optimizer[0] && facts->optimizers > 0) {
        finding(ret, "not-trained");
        gd_buf_printf(&ret->text,
                      "Nothing updates %s: no optimizer holds it. Is it given to one, and was it "
                      "there when the optimizer was made?",
                      facts->parameter);
    } else if (facts->has_rate && facts->rate == 0) {
        finding(ret, "learning-rate");
        gd_buf_printf(&ret->text, "The learning rate of %s for %s is 0.", facts->optimizer,
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
    gd_node_id shown = writer == GD_NO_NODE ? weight : writer; /* nobody may have seen the step */

    if (facts->piled_up_since <= 0) {
        return WHY_NONE;
    }
    finding(ret, "not-set-back");
    if (facts->piled_up_by[0]) {
        gd_buf_printf(&ret->text,
                      "Nobody sets the gradients of %s back: the backward pass of step %lld added "
                      "to what its step before had left in %s.grad, and so does each one since. "
                      "zero_grad() belongs between two steps of %s.",
                      facts->piled_up_by, (long long)facts->piled_up_since, facts->piled_up_in,
                      facts->piled_up_by);
    } else {
        gd_buf_printf(&ret->text,
                      "Nobody sets the gradients back: the backward pass of step %lld added to "
                      "what the step before had left in %s.grad, and so does each one since. "
                      "zero_grad() belongs between two steps of the optimizer.",
                      (long long)facts->piled_up_since, facts->piled_up_in);
    }
    return shown == GD_NO_NODE ? 0 : why_also(walk, shown, 0);
}

uint32_t why_apart(struct why_walk *walk, struct why_finding *ret)
{
    const struct gd_why_facts *facts = &walk->facts;
    const char *name = facts->parameter;

    if (!facts->apart || !facts->of_parameter) {
        return WHY_NONE;
    }
    finding(ret, "ranks-apart");
    gd_buf_printf(&ret->text, "%s is not the same on all ranks, rank %d is the first with another",
                  name, facts->apart_rank);
    if (facts->apart_gradient == GD_WHY_DIFFERS) {
        gd_buf_printf(&ret->text,
                      ", and neither is %s.grad: its gradient was not averaged over the ranks in "
                      "this step. DistributedDataParallel does that for what it wraps, when it is "
                      "called itself; what is reduced by hand must be reduced in each step.",
                      name);
    } else if (facts->apart_gradient == GD_WHY_SAME) {
        gd_buf_printf(&ret->text,
                      ", though %s.grad is: it was another one before this step, or not the "
                      "gradient alone changed it. Do all ranks begin with the same weights (a "
                      "seed, a checkpoint, a broadcast), and with the same state of the optimizer?",
                      name);
    } else {
        gd_buf_puts(&ret->text, ". What its gradient was is not known any more.");
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

/* Whether the operator pairs each element of a column with each of a row; where the two are. */
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

/* Whether a gradient went through the operator: what only makes positions or masks has none. */
static bool has_gradient(const struct gd_graph *graph, gd_node_id node)
{
    uint32_t count = 0;
    const gd_node_id *order = gd_graph_execution(graph, &count);
    struct gd_node_info info;

    for (uint32_t i = 0; i < count; i++) {
        if (gd_graph_node(graph, order[i], &info) && forward_of(graph, &info) == node) {
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
        finding(ret, "broadcast");
        gd_shape_text(&in[0].shape, first, sizeof(first));
        gd_shape_text(&in[1].shape, second, sizeof(second));
        put_node(graph, order[i], &ret->text);
        gd_buf_printf(&ret->text,
                      " pairs each with each: it was given %s and %s, and broadcasting makes %lld "
                      "x %lld pairs of that. Is one axis to be squeezed, so that both have the "
                      "same shape?",
                      first, second, (long long)in[0].shape.dim[0], (long long)in[0].shape.dim[0]);
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
    const char *reduction;

    if (!gd_graph_node(graph, loss, &info) || info.input_count == 0 ||
        !gd_graph_output(graph, info.inputs[0].node, info.inputs[0].slot, &given) ||
        given.shape.rank == 0 || given.shape.dim[0] < 2) {
        return false;
    }
    reduction = gd_node_attr(&info, "reduction");
    if (strcmp(info.type, "sum") != 0 && !(reduction && strcmp(reduction, "sum") == 0)) {
        return false;
    }
    gd_buf_puts(say, " The loss is a sum and no mean: ");
    put_node(graph, loss, say);
    gd_buf_printf(say,
                  " adds up the losses of %lld examples, so that the gradients grow with their "
                  "number.",
                  (long long)given.shape.dim[0]);
    return true;
}

/* ---- an operator that failed ----------------------------------------------------------------- */

/* What the numbers were made of, as long as it is one thing: rows that were picked, a new shape. */
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
    "getitem setitem index_* gather scatter* take put_" /* by what comes behind */

/* The input that an operator picks by, where the program did not say: that of whole numbers. None
 * when it could be one or another. */
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
        gd_buf_printf(say, "places along axis %lld", (long long)facts->axis);
    } else {
        gd_buf_puts(say, why_type_in(type, "cross_entropy* nll_loss* one_hot") ? "classes"
                         : why_type_in(type, "take put_")                      ? "elements"
                                                                               : "rows");
    }
    if (facts->from_end) {
        gd_buf_printf(say, ", -%lld to %lld with those counted from the end",
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
    gd_node_id source;

    if (!facts->raised[0] || !gd_graph_node(graph, walk->tensors[0].node, &info)) {
        return WHY_NONE;
    }
    if (numbers == GD_NO_NODE && !facts->listed) {
        numbers = numbers_of(graph, &info);
    }
    source = made_of(graph, numbers);
    finding(ret, facts->choices > 0 ? "index-range" : "raised");
    put_node(graph, walk->tensors[0].node, &ret->text);
    gd_buf_printf(&ret->text, " failed: %s%s", facts->raised,
                  strchr(".!?", facts->raised[strlen(facts->raised) - 1]) ? "" : ".");
    if (facts->choices > 0) {
        say_range(facts, info.type,
                  numbers != GD_NO_NODE ? gd_graph_name(graph, numbers)
                  : facts->listed       ? "the list"
                                        : "its numbers",
                  &ret->text);
    }
    if (source != numbers && source != GD_NO_NODE) {
        gd_buf_puts(&ret->text, " It was taken from ");
        put_node(graph, source, &ret->text);
        gd_buf_putc(&ret->text, '.');
    }
    return 0;
}
