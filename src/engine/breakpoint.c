// SPDX-License-Identifier: GPL-3.0-or-later
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/order.h"
#include "engine/graph/selector.h"
#include "engine/session_impl.h"
#include "engine/watch/expected.h"

/* The list was changed. */
static void apply_breakpoints(struct gd_debugger *debugger)
{
    struct gd_event event = {.type = GD_EV_BREAKPOINTS};

    for (size_t i = 0; i < debugger->session_count; i++) {
        breakpoints_push(debugger->sessions[i]);
    }
    gd_debugger_emit(debugger, &event);
}

void breakpoints_changed(struct gd_debugger *debugger)
{
    apply_breakpoints(debugger);
}

void breakpoint_free(struct gd_breakpoint *breakpoint)
{
    if (breakpoint) {
        gd_selector_destroy(breakpoint->selector);
        gd_expr_destroy(breakpoint->guard);
        gd_line_destroy(breakpoint->line);
        free(breakpoint->command);
        free(breakpoint->print);
        free(breakpoint->where);
        free(breakpoint);
    }
}

void breakpoints_free(struct gd_debugger *debugger)
{
    while (debugger->breakpoints) {
        struct gd_breakpoint *next = debugger->breakpoints->next;

        breakpoint_free(debugger->breakpoints);
        debugger->breakpoints = next;
    }
}

static void warn_once(struct gd_session *session, bool *warned, const struct gd_err *err)
{
    if (!*warned) {
        *warned = true;
        gd_session_on_warning(session, err->text);
    }
}

/* ---- their places in a graph ----------------------------------------------------------------- */

static int compare_sites(const void *a, const void *b)
{
    const struct session_site *x = a, *y = b;

    return GD_ORDER(x->node, y->node) ?: GD_ORDER(x->number, y->number);
}

static bool add_site(struct gd_session_impl *impl, gd_node_id node, int number)
{
    if (!gd_grow_list(&impl->sites, impl->site_count, &impl->site_cap, sizeof(*impl->sites))) {
        return false;
    }
    impl->sites[impl->site_count++] = (struct session_site){.node = node, .number = number};
    return true;
}

static void warn_ambiguous(struct gd_session *session, struct gd_breakpoint *breakpoint,
                           const struct gd_err *why)
{
    struct gd_err err;

    gd_fail(&err, why->code, "%s %d is not set in this process: %s",
            breakpoint->print ? "dprintf" : "breakpoint", breakpoint->number, why->text);
    warn_once(session, &breakpoint->warned, &err);
}

static bool is_same_letter(char a, char b)
{
    bool both = (a == '.' || a == '/') && (b == '.' || b == '/');
    return (a == b && a != '\0') || both;
}

/* Whether the text names a scope of the node: "block0/fc" of "net/block0/fc/weight". Dots and
 * slashes are the same. */
static bool is_in_scope(const char *name, const char *text)
{
    size_t end = strlen(text);
    for (const char *at = name; end > 0 && at; at = strpbrk(at, "./")) {
        at += at != name;
        size_t same = 0;
        while (same < end && is_same_letter(at[same], text[same])) {
            same++;
        }
        if (same == end && at[end] != '\0' && strchr("./", at[end])) {
            return true;
        }
    }
    return false;
}

bool gd_breakpoint_skips(const struct gd_breakpoint *breakpoint, const struct gd_graph *graph,
                         gd_node_id node)
{
    struct gd_node_info info;
    return breakpoint->print && gd_graph_node(graph, node, &info) &&
           (info.kind == GD_NODE_WEIGHT || info.kind == GD_NODE_GRADIENT ||
            info.kind == GD_NODE_PARAMETER || info.kind == GD_NODE_CONSTANT) &&
           is_in_scope(info.name, breakpoint->where);
}

bool breakpoint_is_at_line(const struct gd_session *session, const struct gd_breakpoint *breakpoint)
{
    const struct gd_line *line = breakpoint->line;
    return line && gd_session_has_lines(session) &&
           (gd_line_is_numbered(line) || line->state == GD_LINE_FOUND);
}

/* Appends the nodes of one breakpoint to the sites. */
static int add_sites(struct gd_session *session, struct gd_breakpoint *breakpoint)
{
    gd_node_id *nodes = NULL;
    size_t count = 0;
    bool ok = true;
    struct gd_err why;
    if (breakpoint_is_at_line(session, breakpoint)) {
        return GD_OK;
    }
    int rc = gd_selector_resolve(breakpoint->selector, session->graph, &nodes, &count, &why);

    if (rc == GD_EAMBIGUOUS) {
        warn_ambiguous(session, breakpoint, &why);
    }
    if (rc != GD_OK || count == 0) {
        return GD_OK; /* pending: its node may come with the next part of the graph */
    }
    breakpoint->matched = true;
    for (size_t i = 0; ok && i < count; i++) {
        ok = gd_breakpoint_skips(breakpoint, session->graph, nodes[i]) ||
             add_site(session->impl, nodes[i], breakpoint->number);
    }
    free(nodes);
    return ok ? GD_OK : GD_ENOMEM;
}

static int resolve_sites(struct gd_session *session)
{
    struct gd_session_impl *impl = session->impl;
    int rc = GD_OK;

    impl->site_count = 0;
    for (struct gd_breakpoint *b = session->debugger->breakpoints; rc == GD_OK && b; b = b->next) {
        if (b->enabled && b->selector) {
            rc = add_sites(session, b);
        }
    }
    if (impl->site_count > 1) {
        qsort(impl->sites, impl->site_count, sizeof(*impl->sites), compare_sites);
    }
    impl->sites_limit = rc != GD_OK ? 0 : gd_graph_node_limit(session->graph);
    impl->sites_changes = gd_graph_changes(session->graph);
    return rc;
}

/* Sends nodes[0..count) with `send` unless the target already has them. Takes the array. */
static int push_nodes(struct gd_session *session, gd_node_id *nodes, size_t count,
                      gd_node_id **known, size_t *known_count,
                      int (*send)(struct gd_target *target, const gd_node_id *nodes, size_t count,
                                  struct gd_err *err),
                      struct gd_err *err)
{
    int rc = GD_OK;

    if (count == *known_count &&
        (count == 0 || memcmp(nodes, *known, count * sizeof(*nodes)) == 0)) {
        free(nodes);
        return GD_OK;
    }
    if (gd_session_is_live(session)) {
        rc = send(session->target, nodes, count, err);
    }
    if (rc != GD_OK) {
        free(nodes);
        return rc;
    }
    free(*known);
    *known = nodes;
    *known_count = count;
    return GD_OK;
}

/* Sends the target the nodes, if `rc` says that they were resolved. */
static void push_sites(struct gd_session *session, int rc)
{
    struct gd_session_impl *impl = session->impl;
    gd_node_id *nodes = NULL;
    size_t count = 0;
    struct gd_err err;

    if (!gd_session_is_live(session)) {
        return;
    }
    if (rc == GD_OK && impl->site_count) {
        nodes = malloc(impl->site_count * sizeof(*nodes));
        rc = nodes ? GD_OK : GD_ENOMEM;
    }
    if (rc != GD_OK) {
        gd_fail(&err, rc, "out of memory for breakpoints: they may not stop the run");
        warn_once(session, &impl->warned_breakpoints, &err);
        return;
    }
    for (size_t i = 0; i < impl->site_count; i++) {
        if (count == 0 || nodes[count - 1] != impl->sites[i].node) {
            nodes[count++] = impl->sites[i].node;
        }
    }
    if (push_nodes(session, nodes, count, &impl->pushed, &impl->pushed_count,
                   gd_target_set_breakpoints, &err) != GD_OK) {
        warn_once(session, &impl->warned_breakpoints, &err);
    }
    gd_expected_push(session);
}

void breakpoints_push(struct gd_session *session)
{
    happenings_push(session);
    lines_push(session);
    push_sites(session, resolve_sites(session));
}

/* ---- a graph that grows ---------------------------------------------------------------------- */

/* Whether all nodes from `first` on can be resolved by themselves: see gd_selector_takes_alone. */
static bool takes_alone(const struct gd_session *session, const struct gd_selector *selector,
                        gd_node_id first, gd_node_id limit, bool resolved)
{
    bool alone = true;

    for (gd_node_id node = first; alone && node < limit; node++) {
        alone = gd_selector_takes_alone(selector, session->graph, node, resolved);
    }
    return alone;
}

static int add_new_sites(struct gd_session *session, gd_node_id node)
{
    for (struct gd_breakpoint *b = session->debugger->breakpoints; b; b = b->next) {
        if (!b->enabled || !b->selector || breakpoint_is_at_line(session, b) ||
            !gd_selector_matches(b->selector, session->graph, node) ||
            gd_breakpoint_skips(b, session->graph, node)) {
            continue;
        }
        b->matched = true;
        if (!add_site(session->impl, node, b->number)) {
            return GD_ENOMEM;
        }
    }
    return GD_OK;
}

void breakpoints_grow(struct gd_session *session)
{
    struct gd_session_impl *impl = session->impl;
    struct gd_graph *graph = session->graph;
    gd_node_id first = impl->sites_limit, limit = gd_graph_node_limit(graph);
    size_t before = impl->site_count;
    int rc = GD_OK;
    bool whole = !first || impl->sites_changes != gd_graph_changes(graph) || first > limit;

    for (const struct gd_breakpoint *b = session->debugger->breakpoints; !whole && b; b = b->next) {
        whole =
            b->enabled && b->selector && !takes_alone(session, b->selector, first, limit, false);
    }
    if (whole) {
        breakpoints_push(session);
        return;
    }
    for (gd_node_id node = first; rc == GD_OK && node < limit; node++) {
        rc = add_new_sites(session, node);
    }
    impl->sites_limit = rc != GD_OK ? 0 : limit;
    if (rc != GD_OK || impl->site_count != before) {
        push_sites(session, rc);
    } else {
        gd_expected_push(session);
    }
}

/* The first site at the node, or NULL. */
static const struct session_site *site_at(const struct gd_session *session, gd_node_id node)
{
    const struct gd_session_impl *impl = session->impl;
    size_t low = 0, high = impl->site_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (impl->sites[middle].node < node) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < impl->site_count && impl->sites[low].node == node ? &impl->sites[low] : NULL;
}

static const struct session_site *next_site(const struct gd_session *session,
                                            const struct session_site *site)
{
    const struct session_site *end = session->impl->sites + session->impl->site_count;

    return site + 1 < end && site[1].node == site->node ? site + 1 : NULL;
}

struct gd_breakpoint *gd_debugger_breakpoint_at(struct gd_debugger *debugger,
                                                struct gd_session *session, gd_node_id node)
{
    for (const struct session_site *site = site_at(session, node); site;
         site = next_site(session, site)) {
        struct gd_breakpoint *breakpoint = gd_debugger_breakpoint(debugger, site->number);

        if (breakpoint && breakpoint->enabled) {
            return breakpoint;
        }
    }
    return NULL;
}

enum breakpoint_verdict breakpoints_pass(struct gd_session *session, gd_node_id node)
{
    enum breakpoint_verdict verdict = BREAKPOINT_NONE;

    for (struct gd_breakpoint *b = session->debugger->breakpoints; b; b = b->next) {
        b->caused = false;
    }
    for (const struct session_site *site = site_at(session, node); site;
         site = next_site(session, site)) {
        struct gd_breakpoint *breakpoint = gd_debugger_breakpoint(session->debugger, site->number);

        if (!breakpoint || !breakpoint->enabled) {
            continue;
        }
        if (breakpoint->print) {
            verdict = verdict == BREAKPOINT_NONE ? BREAKPOINT_IGNORE : verdict;
            continue;
        }
        breakpoint->hits++;
        breakpoint->caused = breakpoint->ignore == 0;
        if (breakpoint->ignore) {
            breakpoint->ignore--;
            verdict = verdict == BREAKPOINT_NONE ? BREAKPOINT_IGNORE : verdict;
        } else {
            verdict = BREAKPOINT_STOP;
        }
    }
    return verdict;
}

/* ---- those that print ------------------------------------------------------------------------ */

bool breakpoints_print(const struct gd_session *session, gd_node_id node)
{
    for (const struct session_site *site = site_at(session, node); site;
         site = next_site(session, site)) {
        const struct gd_breakpoint *breakpoint =
            gd_debugger_breakpoint(session->debugger, site->number);

        if (breakpoint && breakpoint->enabled && breakpoint->print) {
            return true;
        }
    }
    return false;
}

struct gd_breakpoint *gd_session_next_print(struct gd_session *session,
                                            const struct gd_breakpoint *previous)
{
    struct gd_breakpoint *found = NULL;

    if (session->stop.at_line) {
        return lines_next_print(session, previous);
    }
    for (const struct session_site *site = site_at(session, session->stop.node); site && !found;
         site = next_site(session, site)) {
        struct gd_breakpoint *breakpoint = gd_debugger_breakpoint(session->debugger, site->number);

        if (breakpoint && breakpoint->enabled && breakpoint->print &&
            (!previous || breakpoint->number > previous->number)) {
            found = breakpoint;
        }
    }
    return found;
}

bool gd_breakpoint_reached(struct gd_breakpoint *breakpoint)
{
    breakpoint->hits++;
    if (breakpoint->ignore == 0) {
        return true;
    }
    breakpoint->ignore--;
    return false;
}

int gd_breakpoint_set_guard(struct gd_breakpoint *breakpoint, const char *guard, struct gd_err *err)
{
    struct gd_expr *parsed = NULL;
    int rc = guard && guard[0] ? gd_expr_parse(guard, &parsed, err) : GD_OK;

    if (rc == GD_OK) {
        gd_expr_destroy(breakpoint->guard);
        breakpoint->guard = parsed;
    }
    return rc;
}

/* ---- the list -------------------------------------------------------------------------------- */

struct gd_breakpoint *gd_debugger_breakpoint(struct gd_debugger *debugger, int number)
{
    struct gd_breakpoint *breakpoint = debugger->breakpoints;

    while (breakpoint && breakpoint->number != number) {
        breakpoint = breakpoint->next;
    }
    return breakpoint;
}

/* GD_EAMBIGUOUS: in the current session. */
static int check_names(struct gd_debugger *debugger, const struct gd_selector *selector,
                       struct gd_err *err)
{
    struct gd_err ignored;
    gd_node_id *nodes = NULL;
    size_t count;
    int rc = debugger->current
                 ? gd_selector_resolve(selector, debugger->current->graph, &nodes, &count, &ignored)
                 : GD_OK;

    free(nodes);
    return rc == GD_EAMBIGUOUS ? gd_fail(err, rc, "%s", ignored.text) : GD_OK;
}

/* Of a line: the nodes there, for processes that do not stop at lines. */
static int parse_place(struct gd_breakpoint *breakpoint, struct gd_err *err)
{
    char nodes[4096];

    if (!breakpoint->line || !gd_line_is_numbered(breakpoint->line)) {
        return gd_selector_parse(breakpoint->where, &breakpoint->selector, err);
    }
    bool quoted = strpbrk(breakpoint->where, " \t,|") && !strchr(breakpoint->where, '"');
    snprintf(nodes, sizeof(nodes), quoted ? "at:\"%.4000s\"" : "at:%.4000s", breakpoint->where);
    return gd_selector_parse(nodes, &breakpoint->selector, err);
}

static int make_breakpoint(struct gd_debugger *debugger, const char *where, const char *print,
                           struct gd_breakpoint **ret, struct gd_err *err)
{
    struct gd_breakpoint *breakpoint = calloc(1, sizeof(*breakpoint));

    if (breakpoint) {
        breakpoint->where = strdup(where);
        breakpoint->print = print ? strdup(print) : NULL;
    }
    if (!breakpoint || !breakpoint->where || (print && !breakpoint->print)) {
        free(breakpoint ? breakpoint->where : NULL);
        free(breakpoint);
        return gd_fail_nomem(err);
    }
    int rc = gd_line_parse(where, !print, &breakpoint->line, err);
    rc = rc != GD_OK ? rc : parse_place(breakpoint, err);
    if (rc == GD_OK && breakpoint->selector && !print) { /* a module: its first operator */
        gd_selector_set_extent(breakpoint->selector, GD_EXTENT_FIRST);
    }
    rc = rc != GD_OK ? rc : check_names(debugger, breakpoint->selector, err);
    if (rc != GD_OK) {
        breakpoint_free(breakpoint);
        return rc;
    }
    *ret = breakpoint;
    return GD_OK;
}

void breakpoints_add(struct gd_debugger *debugger, struct gd_breakpoint *breakpoint)
{
    struct gd_breakpoint **end = &debugger->breakpoints;

    breakpoint->number = debugger->next_breakpoint++;
    breakpoint->enabled = true;
    while (*end) {
        end = &(*end)->next;
    }
    *end = breakpoint;
    apply_breakpoints(debugger);
}

int gd_debugger_break(struct gd_debugger *debugger, const char *where, bool temporary,
                      struct gd_breakpoint **ret, struct gd_err *err)
{
    struct gd_breakpoint *breakpoint = NULL;
    int rc = make_breakpoint(debugger, where, NULL, &breakpoint, err);

    if (rc == GD_OK) {
        breakpoint->temporary = temporary;
        breakpoints_add(debugger, breakpoint);
    }
    if (rc == GD_OK && ret) {
        *ret = breakpoint;
    }
    return rc;
}

int gd_line_break_return(struct gd_debugger *debugger, const char *where,
                         struct gd_breakpoint **ret, struct gd_err *err)
{
    struct gd_breakpoint *breakpoint = NULL;
    int rc = make_breakpoint(debugger, where, NULL, &breakpoint, err);

    if (rc != GD_OK) {
        return rc;
    }
    if (!breakpoint->line) {
        breakpoint_free(breakpoint);
        return gd_fail(err, GD_EINVAL, "\"%.200s\" is not a line", where);
    }
    breakpoint->momentary = true;
    breakpoint->matched = true;
    breakpoint->line->returns = true;
    breakpoints_add(debugger, breakpoint);
    *ret = breakpoint;
    return GD_OK;
}

int gd_debugger_dprintf(struct gd_debugger *debugger, const char *where, const char *print,
                        const char *guard, struct gd_breakpoint **ret, struct gd_err *err)
{
    struct gd_breakpoint *breakpoint = NULL;
    int rc = make_breakpoint(debugger, where, print, &breakpoint, err);

    if (rc == GD_OK) {
        rc = gd_breakpoint_set_guard(breakpoint, guard, err);
    }
    if (rc != GD_OK) {
        breakpoint_free(breakpoint);
        return rc;
    }
    breakpoints_add(debugger, breakpoint);
    *ret = breakpoint;
    return GD_OK;
}

static int no_breakpoint(int number, struct gd_err *err)
{
    return gd_fail(err, GD_ENOTFOUND, "there is no breakpoint %d: see `info breakpoints`", number);
}

static bool unlink_breakpoint(struct gd_debugger *debugger, int number)
{
    struct gd_breakpoint **link = &debugger->breakpoints;

    while (*link && (*link)->number != number) {
        link = &(*link)->next;
    }
    struct gd_breakpoint *found = *link;
    if (found) {
        *link = found->next;
        /* The user never saw the number of a momentary one. */
        debugger->next_breakpoint -= found->momentary && number + 1 == debugger->next_breakpoint;
        breakpoint_free(found);
    }
    return found != NULL;
}

int gd_debugger_delete_breakpoint(struct gd_debugger *debugger, int number, struct gd_err *err)
{
    if (!unlink_breakpoint(debugger, number)) {
        return no_breakpoint(number, err);
    }
    apply_breakpoints(debugger);
    return GD_OK;
}

int gd_debugger_enable_breakpoint(struct gd_debugger *debugger, int number, bool enable,
                                  struct gd_err *err)
{
    struct gd_breakpoint *breakpoint = gd_debugger_breakpoint(debugger, number);

    if (!breakpoint) {
        return no_breakpoint(number, err);
    }
    if (breakpoint->enabled != enable) {
        breakpoint->enabled = enable;
        apply_breakpoints(debugger);
    }
    return GD_OK;
}

void breakpoints_delete_temporary(struct gd_session *session, gd_node_id node)
{
    struct gd_debugger *debugger = session->debugger;
    bool any = false;

    for (const struct session_site *site = site_at(session, node); site;
         site = next_site(session, site)) {
        const struct gd_breakpoint *breakpoint = gd_debugger_breakpoint(debugger, site->number);

        if (breakpoint && breakpoint->temporary && breakpoint->caused) {
            any = unlink_breakpoint(debugger, site->number) || any;
        }
    }
    if (any) {
        apply_breakpoints(debugger);
    }
}

void breakpoints_delete_momentary(struct gd_debugger *debugger)
{
    struct gd_breakpoint *next = NULL;
    bool any = false;

    for (struct gd_breakpoint *b = debugger->breakpoints; b; b = next) {
        next = b->next;
        if (b->momentary) {
            any = unlink_breakpoint(debugger, b->number) || any;
        }
    }
    if (any) {
        apply_breakpoints(debugger);
    }
}

/* ---- values of the previous step ------------------------------------------------------------- */

/* Takes the array. */
static void push_kept(struct gd_session *session, gd_node_id *nodes, size_t count)
{
    struct gd_session_impl *impl = session->impl;
    struct gd_err failed;
    int rc = push_nodes(session, nodes, count, &impl->kept, &impl->kept_count,
                        gd_target_keep_previous, &failed);

    impl->kept_limit = rc != GD_OK ? 0 : gd_graph_node_limit(session->graph);
    if (rc != GD_OK) {
        warn_once(session, &impl->warned_keep, &failed);
    }
}

static int keep_previous_push(struct gd_session *session, struct gd_err *err)
{
    struct gd_session_impl *impl = session->impl;
    const char *setting = session->debugger->settings.keep_previous;
    struct gd_selector *selector = NULL;
    gd_node_id *nodes = NULL;
    size_t count = 0;
    int rc;

    if (setting[0]) {
        rc = gd_selector_parse(setting, &selector, err);
        if (rc != GD_OK) {
            return rc;
        }
        /* A name that this graph does not have (yet) keeps nothing. */
        if (gd_selector_resolve(selector, session->graph, &nodes, &count, NULL) != GD_OK) {
            nodes = NULL;
            count = 0;
        }
        gd_selector_destroy(selector);
    }
    impl->kept_changes = gd_graph_changes(session->graph);
    push_kept(session, nodes, count);
    return GD_OK;
}

/* The selected new nodes, after those that are already kept; NULL: out of memory. */
static gd_node_id *kept_and_new(struct gd_session *session, const struct gd_selector *selector,
                                size_t *count)
{
    const struct gd_session_impl *impl = session->impl;
    gd_node_id limit = gd_graph_node_limit(session->graph);
    gd_node_id *nodes = malloc((impl->kept_count + limit - impl->kept_limit + 1) * sizeof(*nodes));

    *count = impl->kept_count;
    if (nodes && *count) {
        memcpy(nodes, impl->kept, *count * sizeof(*nodes));
    }
    for (gd_node_id node = impl->kept_limit; nodes && node < limit; node++) {
        if (gd_selector_matches(selector, session->graph, node)) {
            nodes[(*count)++] = node;
        }
    }
    return nodes;
}

void keep_previous_grow(struct gd_session *session)
{
    struct gd_session_impl *impl = session->impl;
    const char *setting = session->debugger->settings.keep_previous;
    gd_node_id limit = gd_graph_node_limit(session->graph);
    struct gd_selector *selector = NULL;
    gd_node_id *nodes = NULL;
    size_t count = 0;

    if (setting[0] && impl->kept_limit && impl->kept_limit <= limit &&
        impl->kept_changes == gd_graph_changes(session->graph) &&
        gd_selector_parse(setting, &selector, NULL) == GD_OK &&
        takes_alone(session, selector, impl->kept_limit, limit, impl->kept_count > 0)) {
        nodes = kept_and_new(session, selector, &count);
    }
    gd_selector_destroy(selector);
    if (nodes) {
        push_kept(session, nodes, count);
    } else {
        keep_previous_push(session, NULL);
    }
}

int gd_debugger_apply_keep_previous(struct gd_debugger *debugger, struct gd_err *err)
{
    struct gd_selector *selector;
    int rc;

    if (debugger->settings.keep_previous[0]) {
        rc = gd_selector_parse(debugger->settings.keep_previous, &selector, err);
        if (rc != GD_OK) {
            return rc;
        }
        gd_selector_destroy(selector);
    }
    for (size_t i = 0; i < debugger->session_count; i++) {
        if (gd_session_is_live(debugger->sessions[i])) {
            keep_previous_push(debugger->sessions[i], err);
        }
    }
    return GD_OK;
}
