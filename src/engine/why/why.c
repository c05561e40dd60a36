// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The walk: a list of values in the order in which they were reached, each asked for once. Each
 * answer is judged, and a bad value appends its inputs to the list. Nothing recurses: an answer
 * that comes at once is handled by the loop that asked.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/watch/watch_impl.h"
#include "engine/why/why_impl.h"

#define WINDOW     64   /* requests in flight */
#define MAX_OTHERS 2000 /* values other than inputs and weights, or upstream of gone ones */
#define STEPS_BACK 1    /* targets hold values of this step and the previous one */

/* ---- what is bad ---------------------------------------------------------------------------- */

enum gd_bad gd_why_of_hit(const struct gd_hit *hit)
{
    static const struct {
        const char *abbr;
        enum gd_bad bad;
    } table[] = {
        {"OO", GD_BAD_NONFINITE}, {"TO", GD_BAD_NONFINITE}, {"WO", GD_BAD_NONFINITE},
        {"GE", GD_BAD_NONFINITE}, {"TZ", GD_BAD_ZERO},      {"WI", GD_BAD_ZERO},
        {"WNC", GD_BAD_ZERO},     {"WCS", GD_BAD_ZERO},     {"WS", GD_BAD_ZERO},
        {"TS", GD_BAD_ZERO},      {"GV", GD_BAD_SMALL},     {"GM", GD_BAD_ZERO},
    };
    const char *abbr = hit->kind ? hit->kind->abbr : "";

    if (hit->error & (GD_HIT_NAN | GD_HIT_INF)) {
        return GD_BAD_NONFINITE;
    }
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        if (strcmp(abbr, table[i].abbr) == 0) {
            return table[i].bad;
        }
    }
    if (strstr(abbr, "NF") || (hit->kind && strstr(hit->kind->id, "finite")) ||
        strstr(hit->expression, "nan") || strstr(hit->expression, "inf") ||
        strstr(hit->expression, "nonfinite")) {
        return GD_BAD_NONFINITE;
    }
    if (strstr(hit->expression, "zero") ||
        (hit->kind && (strstr(hit->kind->id, "zero") || strstr(hit->kind->id, "dead") ||
                       strstr(hit->kind->id, "no_gradient")))) {
        return GD_BAD_ZERO;
    }
    return GD_BAD_LARGE;
}

/* ---- parameters and who writes them --------------------------------------------------------- */

/* Appends the inputs of a bad value to the list. */
static void expand_inputs(struct why_walk *walk, uint32_t number)
{
    struct why_tensor *tensor = &walk->tensors[number];
    gd_node_id node = tensor->node;
    int64_t step = tensor->step;
    struct gd_node_info info;

    if (tensor->expanded || !gd_graph_node(walk->session->graph, node, &info)) {
        return;
    }
    tensor->expanded = true;
    if (tensor->is_leaf) {
        gd_node_id writer =
            tensor->is_constant ? GD_NO_NODE : why_writer(walk->session->graph, node);
        bool ran = step > 0 || (step == 0 && walk->session->stop.recorded); /* dumps count from 0 */

        if (writer != GD_NO_NODE && step >= walk->step - STEPS_BACK && ran) {
            why_add(walk, writer, 0, step, number);
        }
        return;
    }
    for (uint32_t i = 0; i < info.input_count; i++) {
        int64_t of = step;

        if (why_input_step(walk, &info, i, &of)) {
            why_add(walk, info.inputs[i].node, info.inputs[i].slot, of, number);
        }
    }
}

/* ---- judging -------------------------------------------------------------------------------- */

/* A mask contains -Inf on purpose: a fill, a choice, a constant. */
static bool is_mask(const struct why_walk *walk, const struct why_tensor *tensor)
{
    struct gd_node_info info;
    const struct gd_stats *stats = &tensor->stats;

    if ((walk->bad != GD_BAD_NONFINITE && walk->bad != GD_BAD_LARGE) ||
        !gd_graph_node(walk->session->graph, tensor->node, &info)) {
        return false;
    }
    if (walk->excluded && tensor->node < walk->excluded_limit &&
        why_has_bit(walk->excluded, tensor->node)) {
        return true;
    }
    return stats->nan == 0 && stats->pos_inf == 0 && stats->neg_inf > 0 &&
           (info.kind == GD_NODE_CONSTANT ||
            (tensor->is_leaf && stats->min == stats->max) || /* 0 and -Inf */
            why_type_in(
                info.type,
                "MaskedFill* masked_fill* Where Select SelectV2 Fill Full full_like new_full "
                "FillV2 Triu Tril"));
}

/* Upstream of values that are gone, -Inf alone proves nothing: a mask may be among the gone ones. A
 * logarithm brings its -Inf itself. */
static bool may_be_mask(const struct why_walk *walk, const struct why_tensor *tensor)
{
    struct gd_node_info info;
    const struct gd_stats *stats = &tensor->stats;

    return (walk->bad == GD_BAD_NONFINITE || walk->bad == GD_BAD_LARGE) &&
           why_is_behind(walk, tensor) && stats->nan == 0 && stats->pos_inf == 0 &&
           stats->neg_inf > 0 && gd_graph_node(walk->session->graph, tensor->node, &info) &&
           !why_type_in(info.type, "Log Log2 Log10 Log1p");
}

/* Compared with its value in previous steps; labels and indices have no size. */
static bool is_large(const struct why_tensor *tensor)
{
    return tensor->has_stats && !gd_dtype_is_int(tensor->dtype) && tensor->dtype != GD_BOOL &&
           tensor->before > 0 && tensor->stats.abs_mean > WHY_JUMP * tensor->before;
}

static void judge_value(struct why_walk *walk, uint32_t number)
{
    struct why_tensor *tensor = &walk->tensors[number];
    bool bad = (tensor->has_stats && why_is_bad(walk->bad, &tensor->stats)) ||
               (walk->bad == GD_BAD_RAISED && number == 0);

    if (walk->bad == GD_BAD_LARGE && tensor->has_stats) {
        tensor->before = why_before(walk, tensor);
        bad = bad || is_large(tensor);
    }

    tensor->done = true;
    if (tensor->is_factor) {
        tensor->verdict = GD_WHY_GOOD;
        why_note(walk, tensor);
        return;
    }
    if (tensor->verdict == GD_WHY_BAD) { /* implied, or the value in question */
        bad = true;
    } else if (tensor->has_stats && is_mask(walk, tensor)) {
        tensor->is_mask = true;
        tensor->verdict = GD_WHY_GOOD;
    } else if (tensor->has_stats && may_be_mask(walk, tensor)) {
        tensor->verdict = GD_WHY_UNKNOWN;
        bad = false;
    } else if (tensor->has_stats) {
        tensor->verdict = bad ? GD_WHY_BAD : GD_WHY_GOOD;
        if (!bad && walk->bad == GD_BAD_LARGE && tensor->before < 0) {
            tensor->verdict = GD_WHY_UNKNOWN; /* nothing to compare with; see why_batch.c */
        }
    }
    why_note(walk, tensor);
    if (bad && !walk->everything && !tensor->is_mask) {
        expand_inputs(walk, number);
    }
}

/* ---- asking --------------------------------------------------------------------------------- */

struct request { /* the list may move while an answer is pending */
    struct why_walk *walk;
    uint32_t number;
};

static void pump_walk(struct why_walk *walk);

/* The step of a value whose target does not say. */
static int64_t step_of(const struct why_walk *walk, const struct why_tensor *tensor, int64_t step)
{
    if (step >= 0 || tensor->is_leaf || walk->session->stop.at_step_end ||
        walk->stop_order == GD_NO_ORDER || tensor->order == GD_NO_ORDER) {
        return step;
    }
    return tensor->order <= walk->stop_order ? walk->step : walk->step - 1;
}

static void set_unknown(struct why_tensor *tensor, const char *why)
{
    snprintf(tensor->note, sizeof(tensor->note), "%s", why);
    tensor->done = true;
}

/* Handles a value that is not of the step in question. True: there is nothing to judge (yet). */
static bool skip_wrong_step(struct why_walk *walk, uint32_t number)
{
    struct why_tensor *tensor = &walk->tensors[number];
    int64_t has = tensor->value_step;
    bool writable =
        !tensor->is_leaf || why_writer(walk->session->graph, tensor->node) != GD_NO_NODE;
    char text[96];

    if (has < 0 || tensor->is_constant || !writable) {
        return false;
    }
    if (walk->bad == GD_BAD_LARGE || /* a size is informative in any case */
        (walk->bad == GD_BAD_SMALL && tensor->is_leaf)) {
        tensor->too_new = tensor->is_leaf && has > tensor->step;
        return false;
    }
    if (tensor->is_leaf ? has <= tensor->step : has == tensor->step) {
        return false;
    }
    if (has < tensor->step) {
        if (has < walk->step - 1 && why_is_bad(walk->bad, &tensor->stats)) {
            return false; /* computed once for all steps, and bad since then */
        }
        tensor->has_stats = false;
        snprintf(text, sizeof(text),
                 has == walk->step - 1 ? "not computed yet in this step"
                                       : "last computed in step %lld",
                 (long long)has);
        set_unknown(tensor, text);
        return true;
    }
    /* Too new. What is finite after an update was finite before it. */
    if (tensor->is_leaf && walk->bad == GD_BAD_NONFINITE &&
        !why_is_bad(walk->bad, &tensor->stats)) {
        return false;
    }
    tensor->has_stats = false;
    tensor->late_bad = tensor->is_leaf && why_is_bad(walk->bad, &tensor->stats);
    if (!tensor->asked_previous && has == tensor->step + 1) {
        tensor->asked_previous = true;
        walk->next = number < walk->next ? number : walk->next;
    } else {
        set_unknown(tensor, "its value at that step was not kept");
    }
    return true;
}

/* The writer of a bad parameter is bad, whether or not its own output is known. */
static bool wrote_bad(const struct why_walk *walk, const struct why_tensor *tensor)
{
    struct gd_node_info info;

    return tensor->parent != WHY_NONE && walk->tensors[tensor->parent].is_leaf &&
           walk->tensors[tensor->parent].verdict == GD_WHY_BAD &&
           gd_graph_node(walk->session->graph, tensor->node, &info) && why_is_writer(info.type);
}

static void no_answer(struct why_walk *walk, uint32_t number, const struct gd_err *err)
{
    struct why_tensor *tensor = &walk->tensors[number];

    if (err && (err->code == GD_ELOST || err->code == GD_EINTR)) {
        walk->stopped = true;
        walk->err = *err;
    }
    if (walk->bad == GD_BAD_RAISED && number == 0) {
        tensor->verdict = GD_WHY_BAD;
        judge_value(walk, number);
        snprintf(tensor->note, sizeof(tensor->note), "failed: no result");
    } else if (!tensor->asked_previous && wrote_bad(walk, tensor)) {
        tensor->implied = true;
        tensor->verdict = GD_WHY_BAD;
        judge_value(walk, number);
    } else if (number == 0 && walk->facts.told && walk->bad == GD_BAD_NONFINITE) {
        tensor->verdict = GD_WHY_BAD;
        judge_value(walk, number);
    } else if (tensor->asked_previous) {
        set_unknown(tensor, "updated since; its earlier value was not kept");
    } else {
        set_unknown(tensor, err && err->code == GD_EUNSUPPORTED ? "unavailable" : "no value");
        if (walk->behind && !tensor->is_leaf && walk->others++ < MAX_OTHERS) {
            expand_inputs(walk, number);
        }
    }
}

static void take_answer(void *ctx, enum gd_dtype dtype, const struct gd_shape *shape,
                        const struct gd_stats *stats, int64_t step, const struct gd_err *err)
{
    struct request *request = ctx;
    struct why_walk *walk = request->walk;
    uint32_t number = request->number;
    struct why_tensor *tensor = &walk->tensors[number];

    free(request);
    walk->waiting--;
    tensor->waiting = false;
    if (err || !stats || !shape) {
        no_answer(walk, number, err);
    } else {
        tensor->dtype = dtype;
        tensor->shape = *shape;
        tensor->stats = *stats;
        tensor->has_stats = true;
        tensor->value_step = step_of(walk, tensor, step);
        if (number == 0 && walk->count == 1 && tensor->value_step >= 0) {
            why_move(walk, tensor->value_step); /* its inputs must be of that step, too */
        }
        if (number == 0 && walk->facts.told && walk->bad == GD_BAD_NONFINITE &&
            !why_is_bad(walk->bad, stats)) {
            tensor->has_stats = false; /* not the value that the program reported */
            no_answer(walk, number, NULL);
        } else if (!skip_wrong_step(walk, number)) {
            judge_value(walk, number);
        }
    }
    pump_walk(walk);
}

static void ask_value(struct why_walk *walk, uint32_t number)
{
    struct why_tensor *tensor = &walk->tensors[number];
    struct gd_tensor_ref ref = {tensor->node, tensor->slot,
                                tensor->asked_previous ? GD_PREVIOUS : GD_CURRENT};
    struct request *request = malloc(sizeof(*request));
    struct gd_err err;
    int rc = GD_ENOMEM;

    err.code = GD_ENOMEM;
    walk->waiting++;
    tensor->waiting = true;
    if (request) {
        *request = (struct request){walk, number};
        rc = gd_session_stats(walk->session, &ref, take_answer, request, &err);
    }
    if (rc != GD_OK) {
        err.code = rc;
        if (request) {
            take_answer(request, GD_DT_NONE, NULL, NULL, -1, &err);
        } else {
            walk->waiting--;
            walk->tensors[number].waiting = false;
            set_unknown(&walk->tensors[number], "out of memory");
        }
    }
}

/* The next one to ask for, or WHY_NONE. With everything: the question and the graph's inputs first,
 * the rest within a limit. */
static uint32_t next_to_ask(struct why_walk *walk)
{
    for (;;) {
        for (; walk->next < walk->count; walk->next++) {
            struct why_tensor *tensor = &walk->tensors[walk->next];

            if (tensor->done || tensor->waiting ||
                (walk->everything && walk->pass == 0 && walk->next > 0 && !tensor->is_leaf)) {
                continue;
            }
            if (walk->pass == 0 || walk->others++ < MAX_OTHERS) {
                return (uint32_t)walk->next;
            }
            walk->cut = true;
            set_unknown(tensor, "not examined");
        }
        if (!walk->everything || walk->pass > 0) {
            return WHY_NONE;
        }
        walk->pass = 1;
        walk->next = 0;
    }
}

/* Asks for the other factor of the forward operator whose gradient is 0. */
static bool look_at_factors(struct why_walk *walk, const struct gd_node_info *gradient)
{
    const struct gd_graph *graph = walk->session->graph;
    struct gd_node_info info;
    size_t count = walk->count;

    if (gd_graph_node(graph, why_forward(graph, gradient), &info)) {
        for (uint32_t i = 0; i < info.input_count && !info.inputs[i].control; i++) {
            why_also_factor(walk, info.inputs[i].node, info.inputs[i].slot);
        }
    }
    return walk->count > count;
}

/* The origin reads values that are gone: their inputs are examined in the same walk. True: there is
 * more to ask for. */
static bool look_behind(struct why_walk *walk)
{
    struct gd_node_info info;
    size_t count = walk->count;

    if (walk->behind || walk->stopped ||
        (walk->bad != GD_BAD_NONFINITE && walk->bad != GD_BAD_ZERO)) {
        return false;
    }
    walk->behind = walk->bad == GD_BAD_NONFINITE;
    const struct why_tensor *origin = why_first_bad(walk);
    if (!origin || origin->is_leaf || !gd_graph_node(walk->session->graph, origin->node, &info)) {
        return false;
    }
    if (walk->bad == GD_BAD_ZERO) {
        return look_at_factors(walk, &info);
    }
    size_t at = (size_t)(origin - walk->tensors);
    for (uint32_t i = 0; i < info.input_count; i++) {
        const struct why_tensor *input = why_input(walk, &walk->tensors[at], i);

        if (input && !input->is_leaf && input->value_step < 0 && input->verdict == GD_WHY_UNKNOWN) {
            expand_inputs(walk, (uint32_t)(input - walk->tensors));
        }
    }
    return walk->count > count;
}

static void free_walk(struct why_walk *walk)
{
    free(walk->tensors);
    gd_hash_index_deinit(&walk->index);
    free(walk->excluded);
    free(walk);
}

static void pump_walk(struct why_walk *walk)
{
    uint32_t number;

    if (walk->pumping) {
        return;
    }
    walk->pumping = true;
    if (!walk->stopped &&
        (walk->session->stop.sequence != walk->stop || walk->session->state == GD_RUNNING)) {
        walk->stopped = true;
        gd_fail(&walk->err, GD_ESTATE, "the training resumed while its values were being examined");
    }
    do {
        while (!walk->stopped && walk->waiting < WINDOW &&
               (number = next_to_ask(walk)) != WHY_NONE) {
            ask_value(walk, number);
        }
    } while (walk->waiting == 0 && look_behind(walk));
    walk->pumping = false;
    if (walk->waiting > 0) {
        return;
    }
    if (walk->stopped) {
        walk->fn(walk->ctx, NULL, &walk->err);
    } else {
        why_answer(walk);
    }
    free_walk(walk);
}

/* ---- the question --------------------------------------------------------------------------- */

static int check_question(struct gd_session *session, gd_node_id node, uint32_t slot,
                          struct gd_err *err)
{
    struct gd_node_info info;

    if (!gd_graph_node(session->graph, node, &info)) {
        return gd_fail(err, GD_ENOTFOUND, "that node is not in the graph");
    }
    if (slot > 0 && slot >= info.output_count) {
        return gd_fail(err, GD_ENOTFOUND, "%.300s has %u outputs: %u is not one of its slots",
                       info.name, info.output_count, slot);
    }
    if (session->state == GD_RUNNING) {
        return gd_fail(err, GD_ESTATE, "the training is running: stop it first (Ctrl-C)");
    }
    if (session->state == GD_WAITING || session->stop.sequence == 0) {
        return gd_fail(err, GD_ESTATE, "the training has not stopped yet: no value is known");
    }
    return GD_OK;
}

/* All gradients that this one is computed from, and the weights between them. */
static void expand_gradients(struct why_walk *walk)
{
    const struct gd_graph *graph = walk->session->graph;

    for (size_t i = 0; i < walk->count; i++) {
        gd_node_id node = walk->tensors[i].node;
        struct gd_node_info info, from;

        if (!why_is_gradient(graph, node)) {
            continue;
        }
        expand_inputs(walk, (uint32_t)i);
        if (!gd_graph_node(graph, node, &info) ||
            !gd_graph_node(graph, why_forward(graph, &info), &info)) {
            continue;
        }
        for (uint32_t k = 0; k < info.input_count; k++) {
            if (gd_graph_node(graph, info.inputs[k].node, &from) && from.kind == GD_NODE_WEIGHT) {
                why_also(walk, info.inputs[k].node, info.inputs[k].slot);
            }
        }
    }
}

/* For questions that need more than the tensors which turn out to be bad. */
static void add_ancestors(struct why_walk *walk)
{
    if (walk->bad == GD_BAD_SMALL) {
        expand_gradients(walk);
    } else if (walk->everything) {
        for (size_t i = 0; i < walk->count; i++) {
            if (i == 0 || !walk->tensors[i].is_leaf) {
                expand_inputs(walk, (uint32_t)i);
            }
        }
        walk->tensors[0].verdict = walk->facts.fired ? GD_WHY_BAD : GD_WHY_UNKNOWN;
    }
}

int gd_why_ask(struct gd_session *session, gd_node_id node, uint32_t slot, enum gd_bad bad,
               const struct gd_why_facts *facts, gd_why_fn fn, void *ctx, struct gd_err *err)
{
    const struct gd_graph *graph = session->graph;
    struct gd_node_info stop;
    int rc = check_question(session, node, slot, err);

    if (rc != GD_OK) {
        return rc;
    }
    struct why_walk *walk = calloc(1, sizeof(*walk));
    if (!walk) {
        return gd_fail_nomem(err);
    }
    *walk = (struct why_walk){
        .session = session,
        .fn = fn,
        .ctx = ctx,
        .bad = bad == GD_BAD_SMALL && !why_is_gradient(graph, node) ? GD_BAD_ZERO : bad,
        .everything = bad == GD_BAD_LARGE,
        .stop = session->stop.sequence,
        .step = session->stop.step,
        .stop_order = gd_graph_node(graph, session->stop.node, &stop) ? stop.order : GD_NO_ORDER,
        .excluded_limit = gd_graph_node_limit(graph),
    };
    if (facts) {
        walk->facts = *facts;
    }
    why_add(walk, node, slot, walk->step, WHY_NONE);
    if (walk->count == 0) {
        free_walk(walk);
        return gd_fail_nomem(err);
    }
    if (excluded_nodes(session->debugger, session->graph, &walk->excluded, NULL) != GD_OK) {
        walk->excluded = NULL;
    }
    add_ancestors(walk);
    if (walk->bad != GD_BAD_NONFINITE && walk->facts.of_parameter) {
        why_ask_factors(walk);
    }
    pump_walk(walk);
    return GD_OK;
}
