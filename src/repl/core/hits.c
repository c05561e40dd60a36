// SPDX-License-Identifier: GPL-3.0-or-later
#include "repl/core/hits.h"
#include "repl/core/command.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "repl/core/repl_impl.h"
#include "repl/values/inspect.h"

/* ---- numbers and order --------------------------------------------------------------------- */

uint64_t hits_number(const struct gd_session *session, const struct gd_hit *hit)
{
    return session->hits_dropped + (uint64_t)(hit - session->hits) + 1;
}

size_t hits_first_of_stop(const struct gd_session *session)
{
    size_t first = session->hit_count;

    while (first > 0 && session->hits[first - 1].stop_sequence == session->stop.sequence) {
        first--;
    }
    return first;
}

int hits_find(struct gd_session *session, uint64_t number, const struct gd_hit **ret,
              struct gd_err *err)
{
    if (number == 0 || number > session->hits_dropped + session->hit_count) {
        return gd_fail(err, GD_ENOTFOUND, "there is no hit %llu: see \"info hits\"",
                       (unsigned long long)number);
    }
    if (number <= session->hits_dropped) {
        return gd_fail(err, GD_ENOTFOUND, "hit %llu is no longer kept (see \"set max-hits\")",
                       (unsigned long long)number);
    }
    *ret = &session->hits[number - session->hits_dropped - 1];
    return GD_OK;
}

static int compare_places(const void *a, const void *b)
{
    const struct hits_place *x = a, *y = b;
    if (x->step != y->step) {
        return x->step < y->step ? -1 : 1;
    }
    if (x->order != y->order) {
        return x->order < y->order ? -1 : 1;
    }
    if (x->order == UINT32_MAX) { /* unknown: in order of arrival */
        return x->number < y->number ? -1 : 1;
    }
    if (x->slot != y->slot) {
        return x->slot < y->slot ? -1 : 1;
    }
    if (x->watchpoint != y->watchpoint) {
        return x->watchpoint < y->watchpoint ? -1 : 1;
    }
    return x->number < y->number ? -1 : x->number > y->number;
}

static struct hits_place place_of(const struct gd_session *session, const struct gd_hit *hit)
{
    struct hits_place place = {.step = hit->step,
                               .order = UINT32_MAX, /* metrics sort after the nodes */
                               .slot = hit->slot,
                               .watchpoint = hit->watchpoint,
                               .number = hits_number(session, hit)};
    if (hit->node != GD_NO_NODE) {
        place.order = gd_graph_order(session->graph, hit->node);
    }
    return place;
}

/* Starts over when the order no longer matches the session's hits. */
static bool begin_anew(struct hits_order *order, const struct gd_session *session, int watchpoint)
{
    bool same = order->session == session->number && order->watchpoint == watchpoint &&
                order->generation == session->graph_generation &&
                order->dropped == session->hits_dropped &&
                order->taken == session->hits_generation &&
                order->seen <= session->hits_dropped + session->hit_count;
    if (!same) {
        order->session = session->number;
        order->watchpoint = watchpoint;
        order->generation = session->graph_generation;
        order->taken = session->hits_generation;
        order->dropped = order->seen = session->hits_dropped;
        order->count = 0;
    }
    return !same;
}

/* Sorts the places from `from` on into those before them. Returns the first that moved. Hits arrive
 * almost in order, so few move. */
static size_t sort_in(struct hits_order *order, size_t from)
{
    struct hits_place *place = order->place;
    if (from == order->count) {
        return from;
    }
    qsort(place + from, order->count - from, sizeof(*place), compare_places);
    size_t first = from;
    while (first > 0 && compare_places(&place[first - 1], &place[from]) > 0) {
        first--;
    }
    if (first < from) {
        qsort(place + first, order->count - first, sizeof(*place), compare_places);
    }
    return first;
}

bool hits_order_update(struct hits_order *order, const struct gd_session *session, int watchpoint,
                       size_t *from)
{
    bool anew = begin_anew(order, session, watchpoint);
    size_t added = (size_t)(session->hits_dropped + session->hit_count - order->seen);
    size_t old = order->count;
    struct hits_place *more =
        gd_grow_to(order->place, old + added, &order->capacity, sizeof(*more));
    if (!more) {
        return false;
    }
    order->place = more;
    for (size_t i = session->hit_count - added; i < session->hit_count; i++) {
        if (!watchpoint || session->hits[i].watchpoint == watchpoint) {
            order->place[order->count++] = place_of(session, &session->hits[i]);
        }
    }
    order->seen += added;
    *from = sort_in(order, old);
    return anew || order->count > old;
}

void hits_order_free(struct hits_order *order)
{
    free(order->place);
    *order = (struct hits_order){.session = 0};
}

size_t *hits_in_order(const struct gd_session *session, int watchpoint, size_t *count)
{
    struct hits_order order = {.session = 0};
    size_t from;
    size_t *indexes = calloc(session->hit_count + 1, sizeof(*indexes));
    *count = 0;
    if (!indexes || !hits_order_update(&order, session, watchpoint, &from) || order.count == 0) {
        hits_order_free(&order);
        free(indexes);
        return NULL;
    }
    for (size_t i = 0; i < order.count; i++) {
        indexes[i] = (size_t)(order.place[i].number - session->hits_dropped - 1);
    }
    *count = order.count;
    hits_order_free(&order);
    return indexes;
}

/* ---- words --------------------------------------------------------------------------------- */

const struct gd_condition *hits_condition(struct gd_debugger *debugger, const struct gd_hit *hit)
{
    if (hit->kind || hit->expression[0] != '\0') {
        return hit->kind;
    }
    const struct gd_watchpoint *watch = gd_watchpoint_at(debugger, hit->watchpoint);
    return watch ? watch->condition : NULL;
}

const char *hits_abbr(struct gd_debugger *debugger, const struct gd_hit *hit)
{
    const struct gd_condition *condition = hits_condition(debugger, hit);

    return condition ? condition->abbr : hit->expression[0] != '\0' ? "expr" : "?";
}

const char *hits_noun(const struct gd_hit *hit)
{
    return hit->traced ? "trace" : hit->event[0] != '\0' ? "catchpoint" : "watchpoint";
}

void hits_add_what(struct gd_debugger *debugger, const struct gd_hit *hit, struct gd_buf *out)
{
    const struct gd_condition *condition = hits_condition(debugger, hit);
    if (hit->event[0] != '\0') {
        gd_buf_puts(out, hit->event);
    } else if (condition) {
        gd_buf_printf(out, "%s (%s)", condition->id, condition->abbr);
    } else if (hit->expression[0] != '\0') {
        gd_buf_puts(out, hit->expression);
    } else {
        gd_buf_printf(out, "watchpoint %d", hit->watchpoint);
    }
}

const char *hits_what(struct command_call *call, const struct gd_hit *hit)
{
    struct gd_buf text = GD_BUF_INIT(4096);
    hits_add_what(call->debugger, hit, &text);
    const char *safe = out_safe(call, gd_buf_text(&text));
    gd_buf_deinit(&text);
    return safe;
}

void hits_add_where(const struct gd_session *session, const struct gd_hit *hit, struct gd_buf *out)
{
    char batch[32];

    gd_buf_puts(out, hit->node_name);
    if (!hit->is_scalar && hit->slot_name[0] != '\0') {
        gd_buf_printf(out, ":%s", hit->slot_name);
    } else if (!hit->is_scalar) { /* no session has kept it */
        gd_buf_printf(out, ":%u", hit->slot);
    }
    gd_session_micro_batch_text(session, hit->is_scalar ? GD_NO_NODE : hit->node, batch,
                                sizeof(batch));
    gd_buf_printf(out, "%s%s", batch[0] != '\0' ? " " : "", batch);
}

const char *hits_where(struct command_call *call, const struct gd_hit *hit)
{
    struct gd_buf text = GD_BUF_INIT(4096);

    hits_add_where(call->session, hit, &text);
    return inspect_take(call, &text);
}

/* Expressions have no value to compare with. */
static bool has_set_value(const struct gd_hit *hit)
{
    return hit->kind || hit->expression[0] == '\0';
}

void repl_hit_text(const struct gd_session *session, const struct gd_hit *hit, struct gd_buf *out)
{
    bool named = hit->is_scalar && hit->param_count > 0 && !hit->error &&
                 strcmp(hit->param[0].name, hit->node_name) == 0; /* its value already names it */
    if (!named) {
        hits_add_where(session, hit, out);
    }
    if (hit->error) {
        char why[256];
        gd_hit_error_text(hit->error, why, sizeof(why));
        gd_buf_printf(out, " could not be checked: %s", why);
        return;
    }
    if (hit->frozen) {
        gd_buf_puts(out, " (frozen when first seen)");
    }
    for (int i = 0; i < hit->param_count; i++) {
        const struct gd_hit_param *param = &hit->param[i];
        if (!has_set_value(hit)) {
            gd_buf_printf(out, "%s%s=%.9g", named && i == 0 ? "" : " ", param->name,
                          param->actual_value);
        } else if (param->hit) {
            gd_buf_printf(out, " %s=%.9g (%.9g)", param->name, param->set_value,
                          param->actual_value);
        }
    }
}

/* ---- records ------------------------------------------------------------------------------- */

/* False for a parameter that was not tested, that only controls another test, or whose statistic is
 * unavailable. */
static bool has_actual_value(const struct gd_condition *condition, const struct gd_hit_param *param)
{
    if (param->disabled || (isnan(param->actual_value) && !param->hit)) {
        return false;
    }
    const struct gd_condition_param *known =
        condition ? gd_condition_param(condition, param->name) : NULL;
    return !known || known->statistic != GD_STAT_NONE;
}

static void add_params(cJSON *object, const struct gd_condition *condition,
                       const struct gd_hit *hit)
{
    cJSON *params = out_list(object, "params");
    for (int i = 0; i < hit->param_count; i++) {
        const struct gd_hit_param *param = &hit->param[i];
        out_set(
            out_push(params), OUT_TEXT("name", param->name), OUT_BOOL("hit", param->hit),
            OUT_IF(param->disabled, OUT_BOOL("disabled", true)),
            OUT_IF(has_set_value(hit), OUT_REAL("value", param->set_value)),
            OUT_IF(has_actual_value(condition, param), OUT_REAL("actual", param->actual_value)));
    }
}

void repl_hit_record(cJSON *object, const struct gd_session *session, const struct gd_hit *hit)
{
    const struct gd_condition *condition = hits_condition(session->debugger, hit);
    bool is_expression = !condition && hit->expression[0] != '\0';
    int batch = hit->is_scalar ? 0 : gd_session_micro_batch(session, hit->node);
    char why[256];
    gd_hit_error_text(hit->error, why, sizeof(why));
    out_set(object, OUT_INT("watchpoint", hit->watchpoint), OUT_INT("condition", hit->condition),
            OUT_IF(condition, OUT_TEXT("condition_id", condition->id)),
            OUT_IF(condition, OUT_TEXT("abbreviation", condition->abbr)),
            OUT_IF(is_expression, OUT_TEXT("expression", hit->expression)),
            OUT_SOME("event", hit->event), OUT_INT("step", hit->step),
            OUT_TEXT(hit->is_scalar ? "scalar" : "node", hit->node_name),
            OUT_IF(!hit->is_scalar, OUT_INT("slot", hit->slot)),
            OUT_IF(batch > 0, OUT_INT("micro_batch", batch)),
            OUT_IF(hit->frozen, OUT_BOOL("frozen", true)), OUT_BOOL("trace", hit->traced),
            OUT_INT("error", hit->error), OUT_IF(hit->error, OUT_TEXT("reason", why)));
    add_params(object, condition, hit);
}
