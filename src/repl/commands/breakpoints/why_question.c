// SPDX-License-Identifier: GPL-3.0-or-later
/* What `why` is asked about: the node, the slot, and what is wrong with the value. */
#include <math.h>
#include <string.h>

#include "engine/ranks.h"
#include "engine/why/why.h"
#include "repl/commands/breakpoints/hit.h"
#include "repl/commands/breakpoints/why_question.h"
#include "repl/core/hits.h"
#include "repl/core/repl_impl.h"
#include "repl/values/inspect.h"
#include "repl/values/value.h"

#define MAX_SLOTS 16 /* slots of an operator that are searched for a non-finite value */

/* "loss": the node that computes the metric of that name. */
static bool scalar_node(struct command_call *call, const char *name, struct why_question *ret)
{
    const struct gd_session *session = call->session;
    uint32_t count = 0;
    const gd_node_id *order = gd_graph_execution(session->graph, &count);
    const struct gd_scalar *scalar = gd_session_scalar(session, name);
    ret->scalar = scalar ? scalar : ret->scalar;
    if (!ret->scalar || !strcasestr(name, "loss")) {
        return false;
    }
    ret->node = gd_why_loss(session->graph, NULL);
    if (ret->node != GD_NO_NODE) {
        return true;
    }
    for (uint32_t i = count; i-- > 0;) {
        struct gd_node_info info;
        struct gd_output output;
        if (gd_graph_node(session->graph, order[i], &info) && info.kind != GD_NODE_GRADIENT &&
            strcasestr(info.type, "loss") && !strcasestr(info.type, "grad") &&
            gd_graph_output(session->graph, order[i], 0, &output) &&
            gd_shape_count(&output.shape) == 1) {
            ret->node = order[i];
            ret->slot = 0;
            return true;
        }
    }
    return false;
}

static int ask_of_hit(struct command_call *call, const struct gd_hit *hit, struct why_question *ret,
                      struct gd_err *err)
{
    ret->node = hit->node;
    ret->slot = hit->slot;
    ret->bad = gd_why_of_hit(hit);
    ret->has_bad = true;
    ret->facts.fired = true;
    ret->apart = strcmp(hit->event, GD_DIVERGENCE) == 0;
    if (hit->is_scalar || hit->node == GD_NO_NODE) {
        if (scalar_node(call, hit->node_name, ret)) {
            return GD_OK;
        }
        /* For other metrics (a rate, a skipped update), ask about the loss. */
        if (hit->is_scalar && scalar_node(call, "loss", ret)) {
            ret->has_bad = false;
            ret->facts.fired = false;
            return GD_OK;
        }
        return gd_fail(err, GD_ENODATA, "%.200s is not a node of the graph: name a tensor",
                       out_safe(call, hit->node_name));
    }
    return GD_OK;
}

/* A failed check says something only if the value itself was the reason. */
static bool says_cause(const struct gd_session *session, const struct gd_hit *hit)
{
    return hit->stop_sequence == session->stop.sequence &&
           (hit->error == 0 || (hit->error & (GD_HIT_NAN | GD_HIT_INF)));
}

/* When the node runs; for a weight, when the first operator that reads it runs. */
static uint32_t order_of(const struct gd_graph *graph, gd_node_id node, bool *is_matrix)
{
    struct gd_node_info info;
    struct gd_output output;
    const struct gd_edge *edges = NULL;
    uint32_t count, order = GD_NO_ORDER;
    *is_matrix = gd_graph_output(graph, node, 0, &output) && output.shape.rank > 1;
    if (gd_graph_node(graph, node, &info) && info.order != GD_NO_ORDER) {
        return info.order;
    }
    count = gd_graph_consumers(graph, node, &edges);
    for (uint32_t i = 0; i < count; i++) {
        if (gd_graph_node(graph, edges[i].node, &info) && info.order < order) {
            order = info.order;
        }
    }
    return order;
}

/* Order of hits: non-finite values first, then the earliest in execution order, a matrix before a
 * vector, then the largest statistic. */
static bool is_stronger(const struct gd_session *session, const struct gd_hit *hit,
                        const struct gd_hit *than)
{
    bool a = gd_why_of_hit(hit) == GD_BAD_NONFINITE, b = gd_why_of_hit(than) == GD_BAD_NONFINITE;
    bool matrix, other;
    if (a != b) {
        return a;
    }
    if (hit->is_scalar != than->is_scalar) {
        return than->is_scalar;
    }
    uint32_t at = order_of(session->graph, hit->node, &matrix);
    uint32_t then = order_of(session->graph, than->node, &other);
    if (at != then || matrix != other) {
        return at != then ? at < then : matrix;
    }
    return gd_why_of_hit(hit) == GD_BAD_LARGE && hit->param_count > 0 && than->param_count > 0 &&
           fabs(hit->param[0].actual_value) > fabs(than->param[0].actual_value);
}

/* The selected hit if it belongs to this stop, else the strongest one of this stop. */
static const struct gd_hit *present_hit(struct command_call *call)
{
    const struct gd_session *session = call->session;
    const struct gd_hit *best = NULL;
    const struct gd_hit *selected =
        hits_selected(call->repl, session) > 0 ? hits_current(call, NULL) : NULL;
    size_t first = hits_first_of_stop(session);
    if (selected && says_cause(session, selected)) {
        return selected;
    }
    for (size_t i = session->hit_count; i-- > first;) {
        const struct gd_hit *hit = &session->hits[i];
        if (says_cause(session, hit) && (!best || !is_stronger(session, best, hit))) {
            best = hit;
        }
    }
    return best;
}

static int find_hit(struct command_call *call, const char *text, const struct gd_hit **ret,
                    struct gd_err *err)
{
    int64_t number = 0;
    int rc = arg_count(text, 1, INT64_MAX, &number, err);
    if (rc == GD_OK && call->session->hit_count == 0) {
        return gd_fail(err, GD_ENOTFOUND, "no watchpoint has fired");
    }
    return rc == GD_OK ? hits_find(call->session, (uint64_t)number, ret, err) : rc;
}

/* `why loss` without a node that computes it. */
static int no_loss(struct command_call *call, const struct why_question *q, struct gd_err *err)
{
    bool mindspore = strcmp(call->session->peer.framework, "mindspore") == 0;

    if (!q->scalar && call->session->stop.step <= 1) {
        return gd_fail(
            err, GD_ENOTFOUND,
            "the loss is unknown before the end of the first step: `step`, or name a node");
    }
    if (!q->scalar) {
        return gd_fail(err, GD_ENOTFOUND, "the program has reported no loss: name a node");
    }
    return gd_fail(err, GD_ENODATA,
                   "the operators that computed the loss (%.6g) were not seen: %s, then `why loss`",
                   q->scalar->value, mindspore ? "`agent operators on`, `step`" : "`next`, `step`");
}

int why_question_parse(struct command_call *call, struct why_question *ret, struct gd_err *err)
{
    const struct gd_hit *hit = NULL;
    struct tensor_arg arg;
    int rc = inspect_no_options(call, err);
    if (rc != GD_OK) {
        return rc;
    }
    if (call->argc == 0) {
        hit = present_hit(call);
        if (hit) {
            return ask_of_hit(call, hit, ret, err);
        }
        rc = inspect_node(call, NULL, &ret->node, err);
        return rc == GD_ESTATE && scalar_node(call, "loss", ret) ? GD_OK : rc;
    }
    if (strcmp(call->argv[0], "hit") == 0 && call->argc == 2) {
        rc = find_hit(call, call->argv[1], &hit, err);
        return rc == GD_OK ? ask_of_hit(call, hit, ret, err) : rc;
    }
    inspect_join_slices(call);
    const char *text = inspect_join(call, 0, call->argc);
    if (scalar_node(call, text, ret)) {
        return GD_OK;
    }
    rc = arg_tensor(call, text, &arg, err);
    if (rc == GD_ENOTFOUND && strcmp(text, "loss") == 0) {
        return no_loss(call, ret, err);
    }
    if (rc != GD_OK) {
        return rc;
    }
    if (arg.value) {
        return gd_fail(err, GD_EINVAL, "a history value has no node: name a tensor");
    }
    ret->node = arg.ref.node;
    ret->slot = arg.ref.slot;
    ret->has_slot = strchr(text, ':') != NULL;
    return GD_OK;
}

/* What to search for when there is no value, from what the training process knows. */
static bool choose_without_value(struct why_question *q)
{
    if (q->facts.of_parameter && (q->facts.frozen || !q->facts.has_gradient)) {
        q->bad = GD_BAD_ZERO;
        return true;
    }
    if (q->scalar) {
        q->bad = isfinite(q->scalar->value) ? GD_BAD_LARGE : GD_BAD_NONFINITE;
        return true;
    }
    return false;
}

/* The condition that fired on it at this stop says what to search for. */
static bool choose_by_hit(const struct gd_session *session, struct why_question *q)
{
    size_t first = hits_first_of_stop(session);
    for (size_t i = session->hit_count; i-- > first;) {
        const struct gd_hit *hit = &session->hits[i];
        if (hit->node == q->node && hit->slot == q->slot && !hit->is_scalar &&
            says_cause(session, hit)) {
            q->bad = gd_why_of_hit(hit);
            return true;
        }
    }
    return false;
}

int why_choose_slot(struct command_call *call, struct why_question *q, struct gd_err *err)
{
    struct gd_node_info info;
    if (q->has_slot || q->has_bad || !gd_graph_node(call->session->graph, q->node, &info)) {
        return GD_OK;
    }
    for (uint32_t slot = 0; slot < info.output_count && slot < MAX_SLOTS; slot++) {
        struct gd_tensor_ref ref = {q->node, slot, GD_CURRENT};
        enum gd_dtype dtype;
        struct gd_shape shape;
        struct gd_stats stats;
        int rc = info.output_count > 1 ? repl_stats(call, &ref, &dtype, &shape, &stats, NULL, err)
                                       : GD_ENODATA;
        if (rc == GD_OK && stats.nan + stats.pos_inf + stats.neg_inf > 0) {
            q->slot = slot;
            return GD_OK;
        }
        if (rc == GD_EINTR) {
            return rc;
        }
    }
    return GD_OK;
}

int why_choose_bad(struct command_call *call, struct why_question *q, struct gd_err *err)
{
    const struct gd_stop *stop = &call->session->stop;
    struct gd_tensor_ref ref = {q->node, q->slot, GD_CURRENT};
    enum gd_dtype dtype;
    struct gd_shape shape;
    struct gd_stats stats;
    if (q->scalar && !isfinite(q->scalar->value)) {
        q->bad = GD_BAD_NONFINITE;
        return GD_OK;
    }
    if (q->has_bad) {
        return GD_OK;
    }
    if (q->facts.raised[0] && stop->reason == GD_STOP_EXCEPTION && stop->node == q->node) {
        q->bad = GD_BAD_RAISED;
        return GD_OK;
    }
    if (choose_by_hit(call->session, q)) {
        return GD_OK;
    }
    if (q->facts.of_parameter && (q->facts.frozen || (q->facts.has_rate && q->facts.rate == 0) ||
                                  (!q->facts.optimizer[0] && q->facts.optimizers > 0))) {
        q->bad = GD_BAD_ZERO;
        return GD_OK;
    }
    int rc = repl_stats(call, &ref, &dtype, &shape, &stats, NULL, err);
    if (rc == GD_OK) {
        q->bad = stats.nan + stats.pos_inf + stats.neg_inf > 0  ? GD_BAD_NONFINITE
                 : stats.count > 1 && stats.zero == stats.count ? GD_BAD_ZERO
                                                                : GD_BAD_LARGE;
    }
    return rc == GD_OK || choose_without_value(q) ? GD_OK : rc;
}

/* A trained weight that does not change: ask about its gradient if that is zero. */
int why_take_gradient(struct command_call *call, struct why_question *q, struct gd_err *err)
{
    const struct gd_why_facts *facts = &q->facts;
    const char *name = inspect_printf(call, "%s.grad", facts->parameter);
    struct gd_tensor_ref ref = {GD_NO_NODE, 0, GD_CURRENT};
    enum gd_dtype dtype;
    struct gd_shape shape;
    struct gd_stats stats;
    if (q->bad != GD_BAD_ZERO || !facts->of_parameter || facts->frozen || !facts->has_gradient ||
        (!facts->optimizer[0] && facts->optimizers > 0) || (facts->has_rate && facts->rate == 0)) {
        return GD_OK;
    }
    ref.node = gd_graph_lookup(call->session->graph, name, strlen(name));
    if (ref.node == GD_NO_NODE || ref.node == q->node) {
        return GD_OK;
    }
    int rc = repl_stats(call, &ref, &dtype, &shape, &stats, NULL, err);
    if (rc == GD_OK && stats.count > 0 && stats.zero == stats.count) {
        q->node = ref.node;
        q->slot = 0;
    }
    q->facts.gradient_moves = rc == GD_OK && stats.zero < stats.count;
    return rc == GD_EINTR ? rc : GD_OK;
}
