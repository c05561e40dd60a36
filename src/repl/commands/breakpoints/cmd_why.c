// SPDX-License-Identifier: GPL-3.0-or-later
/* why: the way upstream from a bad value to where it came from. */
#include "engine/why/why.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "engine/ranks.h"
#include "engine/watch/watchpoint.h"
#include "repl/core/commands.h"
#include "repl/core/hits.h"
#include "repl/core/repl_impl.h"
#include "repl/values/inspect.h"
#include "repl/values/stacks.h"
#include "repl/values/value.h"
#include "repl/values/why.h"

#define MAX_SLOTS 16 /* of an operator, that are looked at for one that is not finite */

/* ---- marks --------------------------------------------------------------------------------- */

static const char *hit_abbr(struct command_call *call, const struct gd_hit *hit)
{
    const struct gd_condition *condition = hits_condition(call->debugger, hit);
    return condition ? condition->abbr : inspect_printf(call, "#%d", hit->watchpoint);
}

/* The index-th different abbreviation of what fired there at this stop; NULL: no more. */
static const char *nth_hit(struct command_call *call, gd_node_id node, uint32_t slot, int index)
{
    const struct gd_session *session = call->session;
    const char *seen[16];
    int count = 0;
    for (size_t i = session->hit_count; i-- > 0;) {
        const struct gd_hit *hit = &session->hits[i];
        if (hit->stop_sequence != session->stop.sequence) {
            break;
        }
        if (hit->node != node || hit->slot != slot || hit->is_scalar || hit->error) {
            continue;
        }
        const char *abbr = hit_abbr(call, hit);
        bool known = false;
        for (int k = 0; k < count; k++) {
            known = known || strcmp(seen[k], abbr) == 0;
        }
        if (!known && count == index) {
            return abbr;
        }
        if (!known && count < 16) {
            seen[count++] = abbr;
        }
    }
    return NULL;
}

const char *why_hits(struct command_call *call, gd_node_id node, uint32_t slot)
{
    const char *text = "";
    const char *abbr;
    for (int i = 0; i < 16 && (abbr = nth_hit(call, node, slot, i)); i++) {
        text = inspect_printf(call, "%s%s%s", text, i > 0 ? " " : " [", abbr);
    }
    return text[0] ? inspect_printf(call, "%s]", text) : "";
}

void why_add_hits(struct command_call *call, cJSON *object, gd_node_id node, uint32_t slot)
{
    cJSON *list = cJSON_AddArrayToObject(object, "hits");
    const char *abbr;
    for (int i = 0; i < 16 && (abbr = nth_hit(call, node, slot, i)); i++) {
        cJSON_AddItemToArray(list, cJSON_CreateString(abbr));
    }
}

const char *why_figures(struct command_call *call, enum gd_dtype dtype,
                        const struct gd_shape *shape, const struct gd_stats *stats)
{
    struct gd_buf buf = GD_BUF_INIT(4096);
    const char *text;
    if (!stats) {
        return inspect_printf(call, "%s %s", gd_dtype_name(dtype), inspect_shape(call, shape));
    }
    gd_format_summary(dtype, shape, stats, NULL, 0, out_utf8(call->out), &buf);
    text = inspect_printf(call, "%s", gd_buf_text(&buf));
    gd_buf_deinit(&buf);
    return text;
}

/* ---- asking -------------------------------------------------------------------------------- */

struct answer { /* may outlive the command when the wait is given up */
    bool done, abandoned;
    int code;
    struct gd_err err;
    struct gd_why why; /* its nodes are a copy */
};

static void came(void *ctx, const struct gd_why *why, const struct gd_err *err)
{
    struct answer *answer = ctx;
    if (answer->abandoned) {
        free(answer);
        return;
    }
    answer->done = true;
    if (!why) {
        answer->err = *err;
        answer->code = err->code != GD_OK ? err->code : GD_EIO;
        return;
    }
    answer->why = *why;
    answer->why.nodes = malloc((why->count + 1) * sizeof(*why->nodes));
    if (!answer->why.nodes) {
        answer->code = gd_fail(&answer->err, GD_ENOMEM, "out of memory");
        return;
    }
    if (why->count > 0) {
        memcpy(answer->why.nodes, why->nodes, why->count * sizeof(*why->nodes));
    }
}

static bool is_done(void *ctx)
{
    return ((struct answer *)ctx)->done;
}

/* *ret is freed by answer_free. */
static int ask(struct command_call *call, gd_node_id node, uint32_t slot, enum gd_bad bad,
               const struct gd_why_facts *facts, struct answer **ret, struct gd_err *err)
{
    struct answer *answer = calloc(1, sizeof(*answer));
    if (!answer) {
        return gd_fail(err, GD_ENOMEM, "out of memory");
    }
    int rc = gd_why_ask(call->session, node, slot, bad, facts, came, answer, err);
    if (rc != GD_OK) {
        free(answer);
        return rc;
    }
    rc = repl_wait(call->repl, is_done, answer, -1);
    if (rc != GD_OK) {
        answer->abandoned = true;
        return gd_fail(err, rc, "interrupted on the way through the graph");
    }
    if (answer->code != GD_OK) {
        rc = answer->code;
        *err = answer->err;
        err->code = rc;
        free(answer->why.nodes);
        free(answer);
        return rc;
    }
    *ret = answer;
    return GD_OK;
}

static void answer_free(struct answer *answer)
{
    free(answer->why.nodes);
    free(answer);
}

/* ---- the origin ---------------------------------------------------------------------------- */

static void print_text(struct command_call *call, const char *text)
{
    size_t width = (size_t)(out_width(call->out) > 40 ? out_width(call->out) : 40) - 2;
    text = out_safe(call, text);
    while (*text) {
        size_t len = strlen(text);
        if (len > width) {
            len = width;
            while (len > 0 && text[len] != ' ') {
                len--;
            }
            len = len > 0 ? len : strcspn(text, " ");
        }
        out_printf(call->out, "%.*s\n", (int)len, text);
        text += len;
        text += strspn(text, " ");
    }
}

static void print_frame(struct command_call *call, gd_node_id node)
{
    struct stack_places places;
    uint32_t own = 0;
    if (stack_places(call, node, &places, NULL) == GD_OK && stack_own_frame(&places, &own)) {
        stack_print_frame(call, own, &places.frame[places.place[own]]);
    }
}

/* Inputs of the origin as they stand in the tree, that is of the step in question. */
static const struct gd_why_node *input_in_tree(const struct gd_why *why, gd_node_id node,
                                               uint32_t slot)
{
    const struct gd_why_node *found = NULL;
    for (size_t i = 0; i < why->count; i++) {
        if (why->nodes[i].node == node && why->nodes[i].slot == slot &&
            (!found || why->nodes[i].has_stats)) {
            found = &why->nodes[i];
        }
    }
    return found;
}

static void show_input(struct command_call *call, const struct gd_why *why,
                       const struct gd_edge *edge, cJSON *list)
{
    const struct gd_why_node *seen = input_in_tree(why, edge->node, edge->slot);
    const struct gd_stats *stats = seen && seen->has_stats ? &seen->stats : NULL;
    struct gd_node_info info;
    struct gd_output output = {0};
    if (edge->control || !gd_graph_node(call->session->graph, edge->node, &info)) {
        return;
    }
    gd_graph_output(call->session->graph, edge->node, edge->slot, &output);
    if (list) {
        cJSON *item = cJSON_CreateObject();
        inspect_add_node(call, item, edge->node);
        cJSON_AddNumberToObject(item, "slot", edge->slot);
        if (stats) {
            cJSON_AddItemToObject(item, "stats", value_stats_record(stats));
        }
        cJSON_AddItemToArray(list, item);
        return;
    }
    out_printf(call->out, "  reads %s:%u\n        %s%s\n", out_safe(call, info.name), edge->slot,
               why_figures(call, output.dtype, &output.shape, stats),
               stats  ? ""
               : seen ? inspect_printf(call, ", %s", out_safe(call, seen->note))
                      : "");
}

static void show_origin(struct command_call *call, const struct gd_why *why, cJSON *record)
{
    struct gd_node_info info;
    cJSON *list = NULL;
    if (why->origin == GD_NO_NODE || !gd_graph_node(call->session->graph, why->origin, &info)) {
        return;
    }
    if (record) {
        cJSON *origin = cJSON_AddObjectToObject(record, "origin");
        struct stack_places places;
        uint32_t own = 0;
        inspect_add_node(call, origin, why->origin);
        cJSON_AddNumberToObject(origin, "slot", why->origin_slot);
        if (stack_places(call, why->origin, &places, NULL) == GD_OK &&
            stack_own_frame(&places, &own)) {
            stack_add_frame(call, origin, own, &places.frame[places.place[own]]);
        }
        list = cJSON_AddArrayToObject(origin, "inputs");
    } else {
        print_frame(call, why->origin);
    }
    for (uint32_t i = 0; i < info.input_count && i < 8; i++) {
        show_input(call, why, &info.inputs[i], list);
    }
}

/* ---- the record ---------------------------------------------------------------------------- */

static void record_node(struct command_call *call, const struct gd_why_node *node, cJSON *list)
{
    cJSON *item = cJSON_CreateObject();
    inspect_add_node(call, item, node->node);
    cJSON_AddNumberToObject(item, "slot", node->slot);
    cJSON_AddNumberToObject(item, "depth", node->depth);
    cJSON_AddStringToObject(item, "verdict",
                            node->verdict == GD_WHY_BAD    ? "bad"
                            : node->verdict == GD_WHY_GOOD ? "good"
                                                           : "unknown");
    if (node->origin) {
        cJSON_AddBoolToObject(item, "origin", true);
    }
    if (node->shown_above) {
        cJSON_AddBoolToObject(item, "seen", true);
    }
    inspect_add_text(call, item, "note", node->note);
    if (node->value_step >= 0) {
        cJSON_AddNumberToObject(item, "step", (double)node->value_step);
    }
    why_add_hits(call, item, node->node, node->slot);
    if (node->has_stats) {
        cJSON_AddItemToObject(item, "stats", value_stats_record(&node->stats));
    }
    cJSON_AddItemToArray(list, item);
}

struct question {
    gd_node_id node;
    uint32_t slot;
    bool has_slot; /* it was named */
    bool has_bad;
    bool apart; /* it is about ranks that part */
    enum gd_bad bad;
    const struct gd_scalar *scalar; /* it was asked about by that name; else NULL */
    struct gd_why_facts facts;
};

static void record_why(struct command_call *call, const struct question *q,
                       const struct gd_why *why)
{
    static const char *const words[] = {"nonfinite", "large", "zero", "small", "failed"};
    cJSON *record = out_record(call->out, "why");
    inspect_add_node(call, record, q->node);
    cJSON_AddNumberToObject(record, "slot", q->slot);
    cJSON_AddNumberToObject(record, "step", (double)call->session->stop.step);
    if (q->facts.followed > 0) {
        cJSON_AddNumberToObject(record, "graph_step", (double)q->facts.followed);
    }
    cJSON_AddStringToObject(record, "looked_for", words[why->bad]);
    inspect_add_text(call, record, "rule", why->rule);
    inspect_add_text(call, record, "text", why->text);
    if (why->since >= 0) {
        cJSON_AddNumberToObject(record, "since", (double)why->since);
    }
    cJSON_AddBoolToObject(record, "cut", why->cut);
    show_origin(call, why, record);
    struct inspect_checked checked = {.done = 0};
    cJSON *list = cJSON_AddArrayToObject(record, "tree");
    for (size_t i = 0; i < why->count; i++) {
        record_node(call, &why->nodes[i], list);
        if (why->nodes[i].has_stats) {
            checked.done++;
        } else {
            inspect_not_checked(call, &checked, why->nodes[i].note);
        }
    }
    inspect_add_checked(call, record, &checked); /* of the tree: what the answer is based on */
}

/* A program may run other operators in a step in which nobody looks. */
static void show_graph_age(struct command_call *call, int64_t followed, const struct gd_why *why)
{
    long long step = (long long)call->session->stop.step;

    if (followed > 0 && followed < step && why->count > 1) {
        out_printf(
            call->out,
            "The graph is that of step %lld: the operators of step %lld were not followed.\n",
            (long long)followed, step);
    }
}

static int show(struct command_call *call, const struct question *q, const struct gd_why *why,
                bool all, struct gd_err *err)
{
    if (out_is_json(call->out)) {
        record_why(call, q, why);
        return GD_OK;
    }
    int rc = why_show_tree(call, why, all, err);
    if (rc != GD_OK) {
        return rc;
    }
    out_printf(call->out, "\n");
    print_text(call, why->text);
    show_graph_age(call, q->facts.followed, why);
    show_origin(call, why, NULL);
    return GD_OK;
}

/* ---- what is asked about ------------------------------------------------------------------- */

/* "loss": the node that makes the number of the training that has this name. */
static bool scalar_node(struct command_call *call, const char *name, struct question *ret)
{
    const struct gd_session *session = call->session;
    uint32_t count = 0;
    const gd_node_id *order = gd_graph_execution(session->graph, &count);
    for (int i = 0; i < session->scalar_count; i++) {
        if (strcmp(session->scalar[i].name, name) == 0) {
            ret->scalar = &session->scalar[i];
        }
    }
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

static int of_hit(struct command_call *call, const struct gd_hit *hit, struct question *ret,
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
        /* Of another number (a rate, a skipped update) the loss is what the graph makes. */
        if (hit->is_scalar && scalar_node(call, "loss", ret)) {
            ret->has_bad = false;
            ret->facts.fired = false;
            return GD_OK;
        }
        return gd_fail(err, GD_ENODATA,
                       "%.200s is not a node of the graph: name the tensor to look at",
                       out_safe(call, hit->node_name));
    }
    return GD_OK;
}

/* That it could not be checked explains something only when the value itself was the reason. */
static bool tells(const struct gd_session *session, const struct gd_hit *hit)
{
    return hit->stop_sequence == session->stop.sequence &&
           (hit->error == 0 || (hit->error & (GD_HIT_NAN | GD_HIT_INF)));
}

/* When it runs; a weight, when the first operator does that reads it. */
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

/* How strong a hit is: values that are not finite before others, then what ran first, a matrix
 * before a vector, then the largest figure. */
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

/* The hit that was selected, when it belongs to this stop, else the strongest one of this stop. */
static const struct gd_hit *present_hit(struct command_call *call)
{
    const struct gd_session *session = call->session;
    const struct gd_hit *best = NULL;
    const struct gd_hit *selected =
        hits_selected(call->repl, session) > 0 ? hits_current(call, NULL) : NULL;
    if (selected && tells(session, selected)) {
        return selected;
    }
    for (size_t i = session->hit_count; i-- > 0;) {
        const struct gd_hit *hit = &session->hits[i];
        if (hit->stop_sequence != session->stop.sequence) {
            break;
        }
        if (tells(session, hit) && (!best || !is_stronger(session, best, hit))) {
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

static int parse(struct command_call *call, struct question *ret, struct gd_err *err)
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
            return of_hit(call, hit, ret, err);
        }
        rc = inspect_node(call, NULL, &ret->node, err);
        return rc == GD_ESTATE && scalar_node(call, "loss", ret) ? GD_OK : rc;
    }
    if (strcmp(call->argv[0], "hit") == 0 && call->argc == 2) {
        rc = find_hit(call, call->argv[1], &hit, err);
        return rc == GD_OK ? of_hit(call, hit, ret, err) : rc;
    }
    inspect_join_slices(call);
    const char *text = inspect_join(call, 0, call->argc);
    if (scalar_node(call, text, ret)) {
        return GD_OK;
    }
    rc = arg_tensor(call, text, &arg, err);
    if (rc == GD_ENOTFOUND && strcmp(text, "loss") == 0 && !ret->scalar &&
        call->session->stop.step <= 1) {
        return gd_fail(err, rc,
                       "the loss is not known before the first step is over: `step`, or "
                       "name the node");
    }
    if (rc != GD_OK) {
        return rc;
    }
    if (arg.value) {
        return gd_fail(err, GD_EINVAL, "a value of the history has no node: name a tensor");
    }
    ret->node = arg.ref.node;
    ret->slot = arg.ref.slot;
    ret->has_slot = strchr(text, ':') != NULL;
    return GD_OK;
}

/* What is looked for where there is no value, as far as the program tells why. */
static bool choose_without_value(struct question *q)
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

/* What fired on it at this stop says what is looked for. */
static bool choose_by_hit(const struct gd_session *session, struct question *q)
{
    for (size_t i = session->hit_count; i-- > 0;) {
        const struct gd_hit *hit = &session->hits[i];
        if (hit->stop_sequence != session->stop.sequence) {
            break;
        }
        if (hit->node == q->node && hit->slot == q->slot && !hit->is_scalar &&
            tells(session, hit)) {
            q->bad = gd_why_of_hit(hit);
            return true;
        }
    }
    return false;
}

/* Of several outputs, where none was named, the first that is not finite. */
static int choose_slot(struct command_call *call, struct question *q, struct gd_err *err)
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

/* Without a hit the value itself says what is wrong with it, or the program does. */
static int choose_bad(struct command_call *call, struct question *q, struct gd_err *err)
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

/* A weight that somebody trains, and that stands still: its gradient is asked about, if that is 0.
 */
static int take_gradient(struct command_call *call, struct question *q, struct gd_err *err)
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

static int run_why(struct command_call *call, struct gd_err *err)
{
    struct question q = {.node = GD_NO_NODE};
    struct answer *answer = NULL;
    bool all = inspect_take_flag(call, "-a");
    int rc = parse(call, &q, err);
    if (rc == GD_OK) {
        rc = why_ask_facts(call, q.node, &q.facts, err);
    }
    if (rc == GD_OK && q.scalar) { /* as it was made last */
        gd_node_id made = gd_why_loss(call->session->graph, &q.facts);
        q.node = made != GD_NO_NODE ? made : q.node;
    }
    q.facts.told = q.scalar && !isfinite(q.scalar->value);
    if (q.scalar) {
        snprintf(q.facts.scalar, sizeof(q.facts.scalar), "%s", q.scalar->name);
    }
    if (rc == GD_OK && q.apart && q.facts.of_parameter) {
        rc = why_ask_ranks(call, &q.facts, err);
    }
    if (rc == GD_OK) {
        rc = choose_slot(call, &q, err);
    }
    if (rc == GD_OK) {
        rc = choose_bad(call, &q, err);
    }
    if (rc == GD_OK) {
        rc = take_gradient(call, &q, err);
    }
    if (rc == GD_OK) {
        rc = ask(call, q.node, q.slot, q.bad, &q.facts, &answer, err);
    }
    if (rc != GD_OK) {
        return rc;
    }
    rc = show(call, &q, &answer->why, all, err);
    answer_free(answer);
    return rc;
}

/* ---- the table ----------------------------------------------------------------------------- */

const struct command cmd_why_table[] = {
    {
        .name = "why",
        .group = "breakpoints",
        .usage = "why [TENSOR | hit N] [-a]",
        .summary = "Find where a bad value came from",
        .help =
            "Goes upstream from the tensor, through its inputs, from gradients to the forward\n"
            "pass and from weights to the optimizer, to the first node in execution order\n"
            "whose output is bad while its inputs are good, and says what happened there.\n"
            "Without an argument it begins at the hit of this stop, else at the current\n"
            "node, else at the loss. Of several hits it takes the strongest: one that is\n"
            "not finite, then the first in execution order, then the largest figure.\n"
            "`hit N` is hit N of `info hits`. What is looked for (NaN and Inf, zeros,\n"
            "large values, where a gradient became small) follows from the condition that\n"
            "fired on the tensor at this stop, else from the value.\n"
            "Of a weight that does not move it says why nothing trains it, of an operator that\n"
            "failed what it was given; a PyTorch program is asked what it knows. Of the loss it\n"
            "says whether it grew over the steps, and which parameters no gradient reaches.\n"
            "\n"
            "Each line has a verdict: BAD, ok, or ? where the value is not known: not computed\n"
            "yet in this step, not kept, or with nothing to compare it with. -a shows every\n"
            "node that was looked at, not only the way to the origin. The graph of a PyTorch\n"
            "program is that of the last step in which something was watched, caught or stopped\n"
            "at; when that is an earlier one, a line says so.\n"
            "\n"
            "  why\n"
            "  why loss\n"
            "  why NLLLoss-op50 -a\n",
        .args = {ARG_TENSOR},
        .flags = CMD_NEEDS_SESSION | CMD_NEEDS_STOP | CMD_REPEATS,
        .run = run_why,
    },
    {
        .name = "tensor-graph",
        .aliases = "tg",
        .group = "graph",
        .usage = "tensor-graph [NODE] [-d DEPTH]",
        .summary = "Show a node with its direct inputs and outputs, their values and hits",
        .help = "Every slot with its type, shape and statistics, the conditions that fired on it\n"
                "at this stop, and the watchpoints that cover it. -d goes further (up to 10).\n"
                "\n"
                "  tensor-graph Log-op49\n"
                "  tensor-graph . -d 2\n",
        .args = {ARG_NODE},
        .flags = CMD_NEEDS_SESSION | CMD_REPEATS,
        .run = why_run_tensor_graph,
    },
    {.name = NULL},
};
