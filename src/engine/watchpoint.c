// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/watchpoint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "engine/buf.h"
#include "engine/selector.h"

/* ---- telling the sessions ------------------------------------------------------------------ */

static bool can_watch(const struct gd_session *session)
{
    return session->target && (session->target->capabilities & GD_CAN_WATCH_REMOTE);
}

int gd_watchpoint_nodes(const struct gd_watchpoint *watch, struct gd_session *session,
                        gd_node_id **ret, size_t *count, struct gd_err *err)
{
    gd_node_id *nodes = NULL;
    size_t all = 0, kept = 0;
    int rc = gd_selector_resolve(watch->selector, session->graph, &nodes, &all, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < all; i++) {
        struct gd_node_info info;
        if (gd_graph_node(session->graph, nodes[i], &info) && info.kind != GD_NODE_CONSTANT)
            nodes[kept++] = nodes[i];
    }
    *ret = nodes;
    *count = kept;
    return GD_OK;
}

static int check_session(const struct gd_watchpoint *watch, const struct gd_session *session,
                         struct gd_err *err)
{
    if (!can_watch(session))
        return gd_fail(err, GD_EUNSUPPORTED,
                       "a %s target cannot evaluate watchpoints yet: stop it and look",
                       session->target ? session->target->ops->kind : "finished");
    bool ascend = strncasecmp(session->peer.device, "Ascend", 6) == 0;
    bool fresh = session->stop.step <= 0 && session->state != GD_RUNNING;
    return gd_condition_available(watch->condition, ascend, fresh, err);
}

static int tell(const struct gd_watchpoint *watch, struct gd_session *session, struct gd_err *err)
{
    struct gd_remote_param params[GD_MAX_CONDITION_PARAMS];
    gd_node_id *nodes = NULL;
    size_t count = 0;
    int rc = check_session(watch, session, err);
    if (!rc)
        rc = gd_watchpoint_nodes(watch, session, &nodes, &count, err);
    if (!rc && !count)
        rc = gd_fail(err, GD_ENOTFOUND, "%s covers no node of the graph", watch->where);
    if (!rc) {
        struct gd_remote_watch remote = {.id = watch->number,
                                         .condition = watch->condition->wire,
                                         .params = params,
                                         .nodes = nodes,
                                         .node_count = count};
        remote.param_count =
            gd_condition_encode(watch->condition, watch->values, watch->value_count, params);
        rc = gd_target_watch(session->target, &remote, err);
    }
    free(nodes);
    return rc;
}

static bool has_graph(const struct gd_session *session)
{
    return session->graph_generation > 0;
}

/* A new graph: everything is resolved again. */
static void on_graph(struct gd_debugger *debugger, struct gd_session *session)
{
    struct gd_err err;
    if (!can_watch(session))
        return;
    for (const struct gd_watchpoint *watch = debugger->watchpoints; watch; watch = watch->next) {
        if (!watch->enabled || tell(watch, session, &err) == GD_OK)
            continue;
        char text[GD_ERR_TEXT_MAX + 64];
        snprintf(text, sizeof text, "watchpoint %d is not set in this process: %s", watch->number,
                 err.text);
        gd_session_on_warning(session, text);
    }
}

static void on_event(void *ctx, const struct gd_event *event)
{
    struct gd_debugger *debugger = ctx;
    if (event->type == GD_EV_GRAPH) {
        on_graph(debugger, event->session);
    } else if (event->type == GD_EV_HIT) {
        struct gd_watchpoint *watch = gd_watchpoint_at(debugger, event->hit->watchpoint);
        if (watch && event->hit->error)
            watch->unclear++;
        else if (watch)
            watch->hits++;
    }
}

static void forget(struct gd_debugger *debugger, const struct gd_watchpoint *watch)
{
    for (size_t i = 0; i < debugger->session_count; i++)
        if (can_watch(debugger->sessions[i]))
            gd_target_unwatch(debugger->sessions[i]->target, watch->number, NULL);
}

/* ---- the list ------------------------------------------------------------------------------ */

static void destroy(struct gd_watchpoint *watch)
{
    gd_selector_destroy(watch->selector);
    free(watch->where);
    free(watch);
}

void gd_watchpoints_free(struct gd_debugger *debugger)
{
    while (debugger->watchpoints) {
        struct gd_watchpoint *next = debugger->watchpoints->next;
        destroy(debugger->watchpoints);
        debugger->watchpoints = next;
    }
}

/* The test that is meant when none is given; an error when there is none to take. */
static int add_default(struct gd_watchpoint *watch, struct gd_err *err)
{
    const struct gd_condition *condition = watch->condition;
    char names[256] = "";
    size_t len = 0;
    bool any = false;
    for (int i = 0; i < condition->param_count; i++) {
        const struct gd_condition_param *param = &condition->param[i];
        if (param->hidden || param->support)
            continue;
        for (size_t given = 0; given < watch->value_count; given++)
            if (strcmp(watch->values[given].name, param->name) == 0)
                return GD_OK;
        if (param->has_default) {
            watch->values[watch->value_count++] =
                (struct gd_condition_value){param->name, param->type, param->value};
            return GD_OK;
        }
        any = true;
        len += (size_t)snprintf(names + len, sizeof names - len, " %s", param->name);
    }
    return any ? gd_fail(err, GD_EINVAL, "%s needs one of%s", condition->id, names) : GD_OK;
}

static int make(const struct gd_watch_spec *spec, struct gd_watchpoint **ret, struct gd_err *err)
{
    const struct gd_condition *condition = spec->condition;
    const struct gd_condition_value *values = spec->values;
    size_t count = spec->value_count;
    if (!condition)
        return gd_fail(err, GD_EUNSUPPORTED, "a watchpoint needs a condition");
    int rc = gd_condition_check(condition, values, count, err);
    if (rc)
        return rc;
    struct gd_watchpoint *watch = calloc(1, sizeof *watch);
    if (!watch)
        return gd_fail(err, GD_ENOMEM, "out of memory for a watchpoint");
    watch->condition = condition;
    watch->enabled = true;
    for (size_t i = 0; i < count; i++) {
        watch->values[i] = values[i];
        watch->values[i].name = gd_condition_param(condition, values[i].name)->name;
    }
    watch->value_count = count;
    watch->where = strdup(spec->where ? spec->where : gd_condition_selector(condition));
    rc = watch->where ? add_default(watch, err)
                      : gd_fail(err, GD_ENOMEM, "out of memory for a watchpoint");
    if (!rc)
        rc = gd_selector_parse(watch->where, &watch->selector, err);
    if (rc) {
        destroy(watch);
        return rc;
    }
    *ret = watch;
    return GD_OK;
}

static int observe_once(struct gd_debugger *debugger, struct gd_err *err)
{
    if (debugger->watchpoints_observed)
        return GD_OK;
    if (gd_debugger_observe(debugger, on_event, debugger))
        return gd_fail(err, GD_ENOMEM, "out of memory for a watchpoint");
    debugger->watchpoints_observed = true;
    return GD_OK;
}

/* The current session decides; the others are only warned. */
static int tell_all(struct gd_debugger *debugger, const struct gd_watchpoint *watch,
                    struct gd_err *err)
{
    struct gd_session *current = debugger->current;
    if (current && gd_session_is_live(current)) {
        int rc =
            has_graph(current) ? tell(watch, current, err) : check_session(watch, current, err);
        if (rc)
            return rc;
    }
    for (size_t i = 0; i < debugger->session_count; i++) {
        struct gd_session *session = debugger->sessions[i];
        struct gd_err why;
        if (session == current || !can_watch(session) || !has_graph(session))
            continue;
        if (tell(watch, session, &why))
            gd_session_on_warning(session, why.text);
    }
    return GD_OK;
}

int gd_watchpoint_add(struct gd_debugger *debugger, const struct gd_watch_spec *spec,
                      struct gd_watchpoint **ret, struct gd_err *err)
{
    struct gd_watchpoint *watch;
    int rc = observe_once(debugger, err);
    if (!rc)
        rc = make(spec, &watch, err);
    if (rc)
        return rc;
    watch->number = debugger->next_breakpoint++;
    rc = tell_all(debugger, watch, err);
    if (rc) {
        debugger->next_breakpoint--;
        destroy(watch);
        return rc;
    }
    struct gd_watchpoint **end = &debugger->watchpoints;
    while (*end)
        end = &(*end)->next;
    *end = watch;
    *ret = watch;
    return GD_OK;
}

struct gd_watchpoint *gd_watchpoint_at(struct gd_debugger *debugger, int number)
{
    struct gd_watchpoint *watch = debugger->watchpoints;
    while (watch && watch->number != number)
        watch = watch->next;
    return watch;
}

static int no_watchpoint(int number, struct gd_err *err)
{
    return gd_fail(err, GD_ENOTFOUND, "there is no watchpoint %d: \"info watchpoints\" lists them",
                   number);
}

int gd_watchpoint_delete(struct gd_debugger *debugger, int number, struct gd_err *err)
{
    struct gd_watchpoint **link = &debugger->watchpoints;
    while (*link && (*link)->number != number)
        link = &(*link)->next;
    struct gd_watchpoint *watch = *link;
    if (!watch)
        return no_watchpoint(number, err);
    *link = watch->next;
    forget(debugger, watch);
    destroy(watch);
    return GD_OK;
}

int gd_watchpoint_enable(struct gd_debugger *debugger, int number, bool enable, struct gd_err *err)
{
    struct gd_watchpoint *watch = gd_watchpoint_at(debugger, number);
    if (!watch)
        return no_watchpoint(number, err);
    if (watch->enabled == enable)
        return GD_OK;
    if (!enable)
        forget(debugger, watch);
    int rc = enable ? tell_all(debugger, watch, err) : GD_OK;
    if (!rc)
        watch->enabled = enable;
    return rc;
}

int gd_watchpoint_text(const struct gd_watchpoint *watch, struct gd_buf *out)
{
    gd_buf_puts(out, watch->condition->abbr);
    for (size_t i = 0; i < watch->value_count; i++)
        gd_buf_printf(out, " %s=%.12g", watch->values[i].name, watch->values[i].value);
    return gd_buf_printf(out, " on %s", watch->where);
}
