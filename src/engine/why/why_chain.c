// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Growth from one run of an operator to the next, as in a recurrent network that multiplies by the
 * same weight at each time step: its values forward, or its gradients backward. Uses the statistics
 * that watchpoints recorded of this step.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "engine/history/history.h"
#include "engine/why/why_impl.h"

#define MIN_RUNS   6     /* of an operator, to speak of growth */
#define MIN_FACTOR 1.2   /* from one run to the next, in the middle */
#define MIN_TOTAL  100.0 /* over all of them */
#define MAX_SLOTS  4     /* examined, of an operator */
#define MAX_BACK   400   /* nodes from one run of an operator back to the previous one */

/* ---- the runs of an operator ----------------------------------------------------------------- */

struct run { /* of an operator: net/relu, net/relu_1, ... are runs of one */
    const char *name;
    size_t len; /* of the name without the ordinal */
    const char *type;
    gd_node_id node;
    gd_node_id forward; /* the operator itself, or the one whose gradient it computes */
    uint32_t at;        /* in the order of execution */
};

struct runs {
    struct run *run;
    uint32_t count;
    int64_t step; /* whose statistics count */
};

static size_t plain_length(const char *name)
{
    size_t len = strlen(name), end = len;

    while (end > 0 && name[end - 1] >= '0' && name[end - 1] <= '9') {
        end--;
    }
    return end < len && end > 1 && name[end - 1] == '_' ? end - 1 : len;
}

/* By operator, then in the order in which they ran. */
static int by_operator(const void *a, const void *b)
{
    const struct run *x = a, *y = b;

    return memcmp(x->name, y->name, x->len < y->len ? x->len : y->len)
               ?: GD_ORDER(x->len, y->len)
               ?: strcmp(x->type, y->type)
               ?: GD_ORDER(x->at, y->at);
}

static bool same_operator(const struct run *a, const struct run *b)
{
    return a->len == b->len && memcmp(a->name, b->name, a->len) == 0 &&
           strcmp(a->type, b->type) == 0;
}

/* All operators of one phase, sorted; false if out of memory or if there are too few. */
static bool runs_find(const struct why_walk *walk, bool backward, struct runs *ret)
{
    const struct gd_graph *graph = walk->session->graph;
    uint32_t count = 0;
    const gd_node_id *order = gd_graph_execution(graph, &count);

    ret->count = 0;
    ret->step = walk->step;
    ret->run = malloc((count + 1) * sizeof(*ret->run));
    for (uint32_t i = 0; ret->run && i < count; i++) {
        struct gd_node_info info, of;
        struct run run = {.node = order[i], .forward = order[i], .at = i};

        if (!gd_graph_node(graph, order[i], &info) ||
            !why_in_phase(&info, backward ? "backward" : "forward")) {
            continue;
        }
        run.name = info.name;
        run.type = info.type;
        if (backward) {
            run.forward = why_forward(graph, &info);
            if (!gd_graph_node(graph, run.forward, &of)) {
                continue;
            }
            run.name = of.name;
        }
        run.len = plain_length(run.name);
        ret->run[ret->count++] = run;
    }
    if (ret->count > 0) {
        qsort(ret->run, ret->count, sizeof(*ret->run), by_operator);
    }
    return ret->count >= MIN_RUNS;
}

/* ---- statistics ------------------------------------------------------------------------------ */

/* The recorded norm of a value of that step; -1: none. */
static double norm_of(const struct why_walk *walk, int64_t step, gd_node_id node, uint32_t slot)
{
    const struct gd_history *history = walk->session->history;
    struct gd_history_record record;
    uint32_t index;

    if (!history ||
        !gd_history_find(history, gd_graph_name(walk->session->graph, node), slot, &index) ||
        gd_history_read(history, index, &record, 1) == 0 || record.step != step ||
        !record.has_stats || why_is_bad(GD_BAD_NONFINITE, &record.stats) ||
        !(record.stats.sum_sq > 0) || !isfinite(record.stats.sum_sq)) {
        return -1;
    }
    return sqrt(record.stats.sum_sq);
}

struct growth {
    double first, last; /* norms */
    double factor;      /* from one run to the next */
    uint32_t from, to;  /* indices of those runs */
    uint32_t runs;      /* with a norm */
    uint32_t slot;
};

/* How a slot grows over the runs [begin, end); false if it does not, or if too little is known. */
static bool slot_grows(const struct why_walk *walk, const struct runs *runs, uint32_t begin,
                       uint32_t end, uint32_t slot, struct growth *ret)
{
    uint32_t rises = 0;
    double before = -1;

    *ret = (struct growth){.slot = slot};
    for (uint32_t i = begin; i < end; i++) {
        double norm = norm_of(walk, runs->step, runs->run[i].node, slot);

        if (norm < 0) {
            continue;
        }
        if (ret->runs++ == 0) {
            ret->first = norm;
            ret->from = i;
        } else {
            rises += norm > before;
        }
        before = ret->last = norm;
        ret->to = i;
    }
    if (ret->runs < MIN_RUNS || rises * 5 < (ret->runs - 1) * 4) {
        return false;
    }
    ret->factor = pow(ret->last / ret->first, 1.0 / (ret->runs - 1));
    return ret->factor >= MIN_FACTOR && ret->last / ret->first >= MIN_TOTAL;
}

/* ---- which operator it is -------------------------------------------------------------------- */

/* The parameter that an operator reads, apart from its data; GD_NO_NODE. */
static gd_node_id matrix_of(const struct gd_graph *graph, gd_node_id node)
{
    struct gd_node_info info, from;
    struct gd_output output;

    if (!gd_graph_node(graph, node, &info)) {
        return GD_NO_NODE;
    }
    for (uint32_t i = 0; i < info.input_count; i++) {
        if (gd_graph_node(graph, info.inputs[i].node, &from) && from.kind == GD_NODE_WEIGHT &&
            gd_graph_output(graph, info.inputs[i].node, 0, &output) && output.shape.rank > 1) {
            return info.inputs[i].node;
        }
    }
    return GD_NO_NODE;
}

/* Whether an input of `node` was computed, indirectly, from `earlier`: a bounded walk. */
static bool comes_from(const struct gd_graph *graph, gd_node_id node, gd_node_id earlier)
{
    gd_node_id list[MAX_BACK] = {node};
    uint32_t count = 1;

    for (uint32_t i = 0; i < count; i++) {
        struct gd_node_info info;

        if (!gd_graph_node(graph, list[i], &info)) {
            continue;
        }
        for (uint32_t k = 0; k < info.input_count && count < MAX_BACK; k++) {
            bool known = false;

            if (info.inputs[k].node == earlier) {
                return true;
            }
            for (uint32_t j = 0; j < count && !known; j++) {
                known = list[j] == info.inputs[k].node;
            }
            if (!known) {
                list[count++] = info.inputs[k].node;
            }
        }
    }
    return false;
}

/* An operator that multiplies its own earlier output by the same matrix again and again. */
static bool is_recurrent(const struct gd_graph *graph, const struct run *a, const struct run *b,
                         gd_node_id *matrix)
{
    *matrix = matrix_of(graph, a->forward);
    return *matrix != GD_NO_NODE && a->forward != b->forward &&
           matrix_of(graph, b->forward) == *matrix &&
           (comes_from(graph, b->forward, a->forward) || comes_from(graph, a->forward, b->forward));
}

/* ---- the answer ------------------------------------------------------------------------------ */

static uint32_t say_growth(struct why_walk *walk, const struct runs *runs,
                           const struct growth *growth, gd_node_id matrix, bool backward,
                           struct why_finding *ret)
{
    const struct gd_graph *graph = walk->session->graph;
    const struct run *first = &runs->run[growth->from], *last = &runs->run[growth->to];
    struct gd_output output;

    why_say(
        ret, "exploding",
        "%s from one run of %.*s to the next: over %u runs by a factor of %.3g each, from a norm "
        "of %.4g (%.160s:%u) to %.4g (%.160s:%u). Each run multiplies by %.160s",
        backward ? "On its way back, the gradient grows" : "The values grow", (int)first->len,
        first->name, growth->runs, growth->factor, growth->first, gd_graph_name(graph, first->node),
        growth->slot, growth->last, gd_graph_name(graph, last->node), growth->slot,
        gd_graph_name(graph, matrix));
    if (gd_graph_output(graph, matrix, 0, &output) && output.shape.rank == 2 &&
        output.shape.dim[0] == output.shape.dim[1]) {
        gd_buf_puts(&ret->text, ", which lengthens its input");
    }
    gd_buf_puts(&ret->text,
                backward
                    ? ". Clipping the gradients only hides this; a smaller or orthogonal "
                      "initialization of that weight, or gates, fix it."
                    : ". A smaller or orthogonal initialization of that weight, or gates, fix it.");
    return why_also(walk, first->forward, 0);
}

/* The operator whose runs grow most; false: none does. */
static bool find_growth(const struct why_walk *walk, const struct runs *runs, struct growth *best,
                        gd_node_id *matrix)
{
    gd_node_id found = GD_NO_NODE;
    struct growth one;

    *best = (struct growth){0};
    for (uint32_t begin = 0, end; begin < runs->count; begin = end) {
        for (end = begin + 1;
             end < runs->count && same_operator(&runs->run[begin], &runs->run[end]); end++) {
        }
        for (uint32_t slot = 0; end - begin >= MIN_RUNS && slot < MAX_SLOTS; slot++) {
            if (slot_grows(walk, runs, begin, end, slot, &one) &&
                one.last / one.first > (best->runs ? best->last / best->first : 0) &&
                is_recurrent(walk->session->graph, &runs->run[begin], &runs->run[begin + 1],
                             &found)) {
                *best = one;
                *matrix = found;
            }
        }
    }
    return best->runs > 0;
}

static uint32_t find_growing(struct why_walk *walk, bool backward, struct why_finding *ret)
{
    struct runs runs;
    struct growth best;
    gd_node_id matrix = GD_NO_NODE;
    uint32_t answer = WHY_NONE;

    if (runs_find(walk, backward, &runs) && find_growth(walk, &runs, &best, &matrix)) {
        answer = say_growth(walk, &runs, &best, matrix, backward, ret);
    }
    free(runs.run);
    return answer;
}

uint32_t why_growing(struct why_walk *walk, struct why_finding *ret)
{
    uint32_t found = find_growing(walk, true, ret);

    return found != WHY_NONE ? found : find_growing(walk, false, ret);
}

static bool is_recorded(const struct why_walk *walk, const struct runs *runs, uint32_t begin,
                        uint32_t end)
{
    for (uint32_t i = begin; i < end; i++) {
        if (norm_of(walk, runs->step, runs->run[i].node, 0) >= 0) {
            return true;
        }
    }
    return false;
}

/* - without statistics of the runs ------------------------------------------------------------- */

struct recurrence { /* the runs [begin, end) of an operator that reads its own output */
    uint32_t begin, end;
    gd_node_id matrix;
};

static bool find_recurrence(const struct why_walk *walk, const struct runs *runs,
                            struct recurrence *ret)
{
    for (uint32_t begin = 0, end; begin < runs->count; begin = end) {
        for (end = begin + 1;
             end < runs->count && same_operator(&runs->run[begin], &runs->run[end]); end++) {
        }
        if (end - begin >= MIN_RUNS && !is_recorded(walk, runs, begin, end) &&
            is_recurrent(walk->session->graph, &runs->run[begin], &runs->run[begin + 1],
                         &ret->matrix)) {
            ret->begin = begin;
            ret->end = end;
            return true;
        }
    }
    return false;
}

/* Whether something between the first two runs limits the values. */
static bool is_held_back(const struct gd_graph *graph, const struct run *a, const struct run *b)
{
    uint32_t count = 0;
    const gd_node_id *order = gd_graph_execution(graph, &count);
    struct gd_node_info info;

    for (uint32_t i = a->at + 1; i < b->at && i < count; i++) {
        if (gd_graph_node(graph, order[i], &info) &&
            why_type_in(info.type, "layer_norm* batch_norm* group_norm* rms_norm* instance_norm* "
                                   "normalize* LayerNorm* tanh* sigmoid* softmax* hardtanh* "
                                   "relu6* clamp* clip* Tanh Sigmoid Softmax")) {
            return true;
        }
    }
    return false;
}

/* How much longer a square matrix makes its input: the root mean square of its singular values. 0:
 * unknown. */
static double gain_of(const struct why_walk *walk, gd_node_id matrix)
{
    for (size_t i = 0; i < walk->count; i++) {
        const struct why_tensor *tensor = &walk->tensors[i];
        const struct gd_stats *stats = &tensor->stats;

        if (tensor->node == matrix && tensor->has_stats && tensor->shape.rank == 2 &&
            tensor->shape.dim[0] == tensor->shape.dim[1] && tensor->shape.dim[0] > 0 &&
            !why_is_bad(GD_BAD_NONFINITE, stats)) {
            return sqrt(stats->sum_sq / (double)tensor->shape.dim[0]);
        }
    }
    return 0;
}

uint32_t why_lengthening(struct why_walk *walk, struct why_finding *ret)
{
    const struct gd_graph *graph = walk->session->graph;
    struct recurrence found;
    struct runs runs;
    uint32_t answer = WHY_NONE;

    if (runs_find(walk, false, &runs) && find_recurrence(walk, &runs, &found)) {
        const struct run *first = &runs.run[found.begin];
        uint32_t count = found.end - found.begin;
        double gain = gain_of(walk, found.matrix), total = pow(gain, count - 1);

        if (gain >= MIN_FACTOR && total >= MIN_TOTAL && !is_held_back(graph, first, first + 1)) {
            why_say(ret, "exploding",
                    "%.*s runs %u times on its own output, each time multiplying by %.160s, "
                    "which lengthens its input by a factor of %.3g on average: up to %.2g "
                    "over all runs, and the same for the gradient on its way back. A smaller "
                    "or orthogonal initialization of that weight, or gates, fix it. Watch "
                    "`activations` to see the growth from run to run.",
                    (int)first->len, first->name, count, gd_graph_name(graph, found.matrix), gain,
                    total);
            answer = why_also(walk, first->forward, 0);
        }
    }
    free(runs.run);
    return answer;
}

void why_add_recurrence(const struct why_walk *walk, struct gd_buf *say)
{
    const struct gd_graph *graph = walk->session->graph;
    struct recurrence found;
    struct runs runs;

    if (runs_find(walk, false, &runs) && find_recurrence(walk, &runs, &found)) {
        const struct run *first = &runs.run[found.begin];

        gd_buf_printf(
            say,
            " %.*s runs %u times on its own output, each time with %.160s: to see whether the "
            "values grow from run to run, watch `gradients` or `activations`.",
            (int)first->len, first->name, found.end - found.begin,
            gd_graph_name(graph, found.matrix));
    }
    free(runs.run);
}

/* Says that the input of `node` grew on its way; false: it did not, by the statistics of that
 * step. */
static bool add_growth(const struct why_walk *walk, struct runs *runs, int64_t step,
                       gd_node_id node, struct gd_buf *say)
{
    const struct gd_graph *graph = walk->session->graph;
    gd_node_id matrix = GD_NO_NODE;
    struct growth growth;

    runs->step = step;
    if (!find_growth(walk, runs, &growth, &matrix) ||
        !comes_from(graph, node, runs->run[growth.to].forward)) {
        return false;
    }
    const struct run *last = &runs->run[growth.to];
    gd_buf_printf(
        say,
        " Its input grows from one run of %.*s to the next: over %u runs in step %lld by a factor "
        "of %.3g each, to a norm of %.4g (%.160s). Each run multiplies by %.160s.",
        (int)last->len, last->name, growth.runs, (long long)step, growth.factor, growth.last,
        gd_graph_name(graph, last->node), gd_graph_name(graph, matrix));
    return true;
}

void why_add_origin_of(const struct why_walk *walk, gd_node_id node, struct gd_buf *say)
{
    const struct gd_graph *graph = walk->session->graph;
    struct recurrence found;
    struct runs runs;

    /* In the middle of a step it has no records yet: then use the previous step. */
    if (runs_find(walk, false, &runs) && !add_growth(walk, &runs, walk->step, node, say) &&
        !add_growth(walk, &runs, walk->step - 1, node, say) &&
        find_recurrence(walk, &runs, &found) &&
        comes_from(graph, node, runs.run[found.end - 1].forward) &&
        !is_held_back(graph, &runs.run[found.begin], &runs.run[found.begin + 1])) {
        why_add_recurrence(walk, say);
    }
    free(runs.run);
}
