// SPDX-License-Identifier: GPL-3.0-or-later
/* The list of watchpoints: making, changing and deleting them. */
#include "engine/watch/watchpoint.h"

#include <stdlib.h>
#include <string.h>

#include "engine/graph/selector.h"
#include "engine/watch/numbers.h"
#include "engine/watch/watch_impl.h"

/* ---- making and deleting one ----------------------------------------------------------------- */

static void forget_pointers(struct gd_debugger *debugger, int number)
{
    for (size_t i = 0; i < debugger->session_count; i++) {
        struct gd_watching *w = debugger->sessions[i]->watching;
        for (size_t k = 0; w && k < w->cover_count; k++) {
            if (w->covers[k].number == number) {
                w->covers[k].watch = NULL;
            }
        }
    }
}

static void destroy_watchpoint(struct gd_watchpoint *watch)
{
    gd_selector_destroy(watch->selector);
    gd_expr_destroy(watch->expr);
    gd_expr_destroy(watch->guard);
    free(watch->where);
    free(watch->label);
    free(watch->event);
    free(watch);
}

void watchpoints_remove(struct gd_debugger *debugger, struct gd_watchpoint *watch)
{
    struct gd_watchpoint **link = &debugger->watchpoints;
    while (*link != watch) {
        link = &(*link)->next;
    }
    *link = watch->next;
    forget_pointers(debugger, watch->number);
    destroy_watchpoint(watch);
    gd_watchpoints_apply(debugger);
}

static int take_values(const struct gd_condition *condition,
                       const struct gd_condition_value *values, size_t count,
                       struct gd_condition_value *ret, size_t *ret_count, struct gd_err *err)
{
    if (count > GD_MAX_CONDITION_PARAMS) {
        return gd_fail(err, GD_EINVAL, "%s does not have that many parameters", condition->id);
    }
    int rc = gd_condition_check(condition, values, count, err);
    if (rc != GD_OK) {
        return rc;
    }
    rc = gd_condition_complete(condition, values, count, ret, err);
    if (rc < 0) {
        return rc;
    }
    *ret_count = (size_t)rc;
    return GD_OK;
}

/* A plain word: it may be the name of a metric. */
static bool is_word(const char *where)
{
    if (gd_selector_is_keyword(where)) {
        return false;
    }
    return *where && *where != '/' && !strpbrk(where, " \t,|*?[\":");
}

static bool is_scalar_only(const struct gd_watchpoint *watch)
{
    return watch->condition ? watch->condition->target == GD_COND_SCALAR
                            : !gd_expr_has_statistic(watch->expr);
}

static bool names_scalar(const struct gd_debugger *debugger, const char *where)
{
    const struct gd_session *current = debugger->current;
    gd_node_id node;

    return current && gd_session_scalar(current, where) &&
           gd_graph_find(current->graph, where, &node, NULL) != GD_OK;
}

/* The first metric of the expression: the expression is judged when it comes. */
static char *scalar_of(const struct gd_expr *expr)
{
    const char *names[16];
    struct gd_expr_function function;
    size_t count = gd_expr_names(expr, names, 16);
    for (size_t i = 0; i < count && i < 16; i++) {
        const char *name = gd_expr_number_in(names[i], &function);
        if (strcmp(name, "elapsed") != 0 && strcmp(name, "step_time") != 0) {
            return strdup(name);
        }
    }
    return strdup("loss");
}

static int take_where(const struct gd_debugger *debugger, const char *where,
                      struct gd_watchpoint *watch, struct gd_err *err)
{
    bool scalar = is_scalar_only(watch);
    struct gd_selector *selector = NULL;
    char *text = NULL;
    if (where) {
        text = strdup(where);
    } else if (watch->condition) {
        text = strdup(gd_condition_selector(watch->condition));
    } else {
        text = scalar ? scalar_of(watch->expr) : strdup("all");
    }
    if (!text) {
        return gd_fail_nomem(err);
    }
    scalar = is_word(text) && (scalar || names_scalar(debugger, text));
    int rc = scalar ? GD_OK : gd_selector_parse(text, &selector, err);
    if (rc != GD_OK) {
        free(text);
        return rc;
    }
    gd_selector_destroy(watch->selector);
    free(watch->where);
    watch->selector = selector;
    watch->where = text;
    return GD_OK;
}

/* Values of other steps cannot be compared in the middle of a step. */
static int check_when(const struct gd_debugger *debugger, const struct gd_watchpoint *watch,
                      struct gd_err *err)
{
    struct watch_wants wants;
    if (watch->when != GD_WHEN_EXACT) {
        return GD_OK;
    }
    watching_wants(watch, &debugger->settings, &wants);
    if (!wants.step_end_only) {
        return GD_OK;
    }
    return gd_fail(err, GD_EINVAL,
                   "%.200s can be checked only at the end of a step, not with -exact",
                   watch->condition ? watch->condition->id : gd_expr_text(watch->expr));
}

static int parse_expression(const struct gd_debugger *debugger, const char *text,
                            struct gd_expr **ret, struct gd_err *err)
{
    int rc = gd_expr_parse(text, ret, err);
    rc = rc != GD_OK ? rc : gd_numbers_check(debugger->current, *ret, err);
    if (rc != GD_OK) {
        gd_expr_destroy(*ret);
        *ret = NULL;
    }
    return rc;
}

static int fill_watchpoint(const struct gd_debugger *debugger, const struct gd_watch_spec *spec,
                           struct gd_watchpoint *watch, struct gd_err *err)
{
    int rc = GD_OK;
    watch->condition = spec->condition;
    watch->when = spec->when;
    watch->action = spec->action;
    watch->steps = spec->steps ? spec->steps : 1;
    watch->temporary = spec->temporary;
    watch->enabled = true;
    if ((spec->label && !(watch->label = strdup(spec->label))) ||
        (spec->event && !(watch->event = strdup(spec->event)))) {
        return gd_fail_nomem(err);
    }
    if (!spec->condition && !spec->expression) {
        return gd_fail(err, GD_EINVAL, "a watchpoint needs a condition or an expression");
    }
    if (spec->condition) {
        rc = take_values(spec->condition, spec->values, spec->value_count, watch->values,
                         &watch->value_count, err);
    } else {
        rc = parse_expression(debugger, spec->expression, &watch->expr, err);
    }
    if (rc == GD_OK && spec->guard && *spec->guard) {
        rc = parse_expression(debugger, spec->guard, &watch->guard, err);
    }
    rc = rc != GD_OK ? rc : take_where(debugger, spec->where, watch, err);
    return rc != GD_OK ? rc : check_when(debugger, watch, err);
}

int gd_watchpoint_add(struct gd_debugger *debugger, const struct gd_watch_spec *spec,
                      struct gd_watchpoint **ret, struct gd_err *err)
{
    struct gd_err scratch;
    err = err ? err : &scratch;
    struct gd_watchpoint *watch = calloc(1, sizeof(*watch));
    if (!watch) {
        return gd_fail_nomem(err);
    }
    int rc = fill_watchpoint(debugger, spec, watch, err);
    if (rc != GD_OK) {
        destroy_watchpoint(watch);
        return rc;
    }
    struct gd_watchpoint **end = &debugger->watchpoints;
    while (*end) {
        end = &(*end)->next;
    }
    watch->number = debugger->next_breakpoint++;
    *end = watch;
    rc = watching_settle(debugger, watch, err);
    if (rc != GD_OK) {
        debugger->next_breakpoint--;
        watchpoints_remove(debugger, watch);
        return rc;
    }
    if (ret) {
        *ret = watch;
    }
    return GD_OK;
}

/* ---- the list ------------------------------------------------------------------------------ */

void gd_watchpoints_free(struct gd_debugger *debugger)
{
    excluded_free(debugger);
    while (debugger->watchpoints) {
        struct gd_watchpoint *next = debugger->watchpoints->next;
        destroy_watchpoint(debugger->watchpoints);
        debugger->watchpoints = next;
    }
}

static int find_watchpoint(struct gd_debugger *debugger, int number, struct gd_watchpoint **ret,
                           struct gd_err *err)
{
    *ret = gd_watchpoint_at(debugger, number);
    return *ret ? GD_OK
                : gd_fail(err, GD_ENOTFOUND, "there is no watchpoint %d: see \"info watchpoints\"",
                          number);
}

int gd_watchpoint_delete(struct gd_debugger *debugger, int number, struct gd_err *err)
{
    struct gd_watchpoint *watch;
    int rc = find_watchpoint(debugger, number, &watch, err);
    if (rc == GD_OK) {
        watchpoints_remove(debugger, watch);
    }
    return rc;
}

int gd_watchpoint_enable(struct gd_debugger *debugger, int number, bool enable, struct gd_err *err)
{
    struct gd_watchpoint *watch;
    int rc = find_watchpoint(debugger, number, &watch, err);
    if (rc != GD_OK || watch->enabled == enable) {
        return rc;
    }
    watch->enabled = enable;
    rc = watching_settle(debugger, watch, err);
    if (rc != GD_OK) {
        watch->enabled = !enable;
        gd_watchpoints_apply(debugger);
    }
    return rc;
}

/* ---- editing ------------------------------------------------------------------------------- */

/* `watch` was changed, `before` is its previous state: keeps one and frees the other. */
static int settle_edit(struct gd_debugger *debugger, struct gd_watchpoint *watch,
                       struct gd_watchpoint *before, int rc, struct gd_err *err)
{
    if (rc == GD_OK) {
        rc = check_when(debugger, watch, err);
    }
    bool told = rc == GD_OK;
    watch->revision++;
    if (rc == GD_OK && watch->enabled) {
        rc = watching_settle(debugger, watch, err);
    }
    struct gd_watchpoint *gone = rc != GD_OK ? watch : before;
    const struct gd_watchpoint *other = rc != GD_OK ? before : watch;
    if (gone->expr != other->expr) {
        gd_expr_destroy(gone->expr);
    }
    if (gone->guard != other->guard) {
        gd_expr_destroy(gone->guard);
    }
    if (gone->selector != other->selector) {
        gd_selector_destroy(gone->selector);
    }
    if (gone->where != other->where) {
        free(gone->where);
    }
    if (rc != GD_OK) {
        before->revision = watch->revision + 1;
        before->next = watch->next;
        *watch = *before;
        if (told) {
            gd_watchpoints_apply(debugger);
        }
    }
    return rc;
}

int gd_watchpoint_set_values(struct gd_debugger *debugger, int number,
                             const struct gd_condition_value *values, size_t count,
                             struct gd_err *err)
{
    struct gd_watchpoint *watch, before;
    struct gd_condition_value taken[GD_MAX_CONDITION_PARAMS];
    size_t taken_count = 0;
    int rc = find_watchpoint(debugger, number, &watch, err);
    if (rc != GD_OK) {
        return rc;
    }
    if (!watch->condition) {
        return gd_fail(err, GD_EINVAL, "watchpoint %d is an expression: it has no parameters",
                       number);
    }
    rc = take_values(watch->condition, values, count, taken, &taken_count, err);
    if (rc != GD_OK) {
        return rc;
    }
    before = *watch;
    memcpy(watch->values, taken, sizeof(taken));
    watch->value_count = taken_count;
    return settle_edit(debugger, watch, &before, GD_OK, err);
}

int gd_watchpoint_set_expression(struct gd_debugger *debugger, int number, const char *text,
                                 struct gd_err *err)
{
    struct gd_watchpoint *watch, before;
    int rc = find_watchpoint(debugger, number, &watch, err);
    if (rc != GD_OK) {
        return rc;
    }
    if (watch->condition) {
        return gd_fail(err, GD_EINVAL, "watchpoint %d is the condition %s, not an expression",
                       number, watch->condition->id);
    }
    before = *watch;
    rc = parse_expression(debugger, text, &watch->expr, err);
    return rc != GD_OK ? rc : settle_edit(debugger, watch, &before, GD_OK, err);
}

int gd_watchpoint_set_guard(struct gd_debugger *debugger, int number, const char *text,
                            struct gd_err *err)
{
    struct gd_watchpoint *watch, before;
    int rc = find_watchpoint(debugger, number, &watch, err);
    if (rc != GD_OK) {
        return rc;
    }
    before = *watch;
    watch->guard = NULL;
    if (text && *text) {
        rc = parse_expression(debugger, text, &watch->guard, err);
    }
    if (rc != GD_OK) {
        *watch = before;
        return rc;
    }
    return settle_edit(debugger, watch, &before, GD_OK, err);
}

/* The selector text for `where` plus or minus nodes. */
static int change_where(const struct gd_watchpoint *watch, char how, const char *where, char **ret,
                        struct gd_err *err)
{
    struct gd_buf text = GD_BUF_INIT(1 << 20);
    struct gd_selector *term = NULL;
    int rc = gd_selector_parse(where, &term, err);
    if (rc != GD_OK) {
        return rc;
    }
    bool nested = gd_selector_has_except(term);
    gd_selector_destroy(term);
    if (!watch->selector) {
        return gd_fail(err, GD_EINVAL,
                       "watchpoint %d watches the metric \"%.100s\": it has no nodes",
                       watch->number, watch->where);
    }
    if (nested) {
        return gd_fail(err, GD_EINVAL,
                       "'%.200s': name the nodes to add or remove without \"except\"", where);
    }
    bool except = gd_selector_ends_in_except(watch->selector);
    const char *joint = how == '+' ? (except ? " with " : ", ") : (except ? ", " : " except ");
    gd_buf_puts(&text, watch->where);
    gd_buf_puts(&text, joint);
    gd_buf_puts(&text, where);
    *ret = gd_buf_take(&text);
    gd_buf_deinit(&text);
    return *ret ? GD_OK : gd_fail_nomem(err);
}

int gd_watchpoint_set_where(struct gd_debugger *debugger, int number, char how, const char *where,
                            struct gd_err *err)
{
    struct gd_watchpoint *watch, before;
    char *text = NULL;
    int rc = find_watchpoint(debugger, number, &watch, err);
    if (rc != GD_OK) {
        return rc;
    }
    if (how != '=' && how != '+' && how != '-') {
        return gd_fail(err, GD_EINVAL, "nodes are set with '=', '+' or '-', not '%c'", how);
    }
    if (how != '=') {
        rc = change_where(watch, how, where, &text, err);
    }
    if (rc != GD_OK) {
        return rc;
    }
    before = *watch;
    watch->where = NULL;
    watch->selector = NULL;
    rc = take_where(debugger, text ? text : where, watch, err);
    free(text);
    if (rc != GD_OK) {
        *watch = before;
        return rc;
    }
    return settle_edit(debugger, watch, &before, GD_OK, err);
}

int gd_watchpoint_set_ignore(struct gd_debugger *debugger, int number, uint64_t count,
                             struct gd_err *err)
{
    struct gd_watchpoint *watch;
    int rc = find_watchpoint(debugger, number, &watch, err);
    if (rc != GD_OK) {
        return rc;
    }
    uint64_t before = watch->ignore;
    watch->ignore = count;
    if (!before == !count) {
        return GD_OK;
    }
    /* a process that evaluates watchpoints itself cannot count */
    rc = watching_settle(debugger, watch, err);
    if (rc != GD_OK) {
        watch->ignore = before;
        gd_watchpoints_apply(debugger);
    }
    return rc;
}
