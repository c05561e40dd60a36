// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/watch/expected.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/graph/selector.h"
#include "engine/session_impl.h"
#include "engine/watch/watch_impl.h"

#define MAX_PARTS 1024 /* with more than that, every new node is reported at once */

struct parts {
    struct gd_session *session;
    char **part;
    size_t count;
    bool names_only;      /* of terms that go by name, not by kind or place */
    bool not_finite_only; /* those that go by kind only look for non-finite values */
    bool not_finite;      /* such nodes are waited for */
    bool late;            /* what is judged at the end of a step covers nodes already */
    bool at_end;          /* others are watched there */
    bool failed;
};

bool gd_session_grows(const struct gd_session *session)
{
    return session->target && session->target->capabilities & GD_CAN_GROW;
}

static void add_part(void *ctx, const char *part, bool is_name)
{
    struct parts *parts = ctx;

    if (parts->late) {
        parts->at_end = parts->at_end || is_name; /* a scope or a pattern */
        return;
    }
    if (parts->names_only && !is_name) {
        parts->not_finite = parts->not_finite || parts->not_finite_only;
        return;
    }
    for (size_t i = 0; i < parts->count; i++) {
        if (strcmp(parts->part[i], part) == 0) {
            return;
        }
    }
    if (parts->count == MAX_PARTS) {
        part = "";
        free(parts->part[--parts->count]);
    }
    parts->part[parts->count] = strdup(part);
    parts->failed = parts->failed || !parts->part[parts->count];
    parts->count += parts->part[parts->count] != NULL;
}

static void add_breakpoints(struct parts *parts)
{
    const struct gd_session *session = parts->session;

    parts->names_only = false;
    for (const struct gd_breakpoint *b = session->debugger->breakpoints; b; b = b->next) {
        if (b->enabled && b->selector && !breakpoint_is_at_line(session, b)) {
            gd_selector_parts(b->selector, session->graph, add_part, parts);
        }
    }
}

/* What is judged at the end of a step can wait for late nodes; what is judged at once must know of
 * each node before it runs on, even if it goes by kind. But new nodes are only reported while
 * something is waited for: otherwise a watchpoint that covers nothing yet would never find its
 * node. A watchpoint on the gradients has those of the parameters, and waits for no others. */
static void add_watchpoints(struct parts *parts)
{
    const struct gd_watching *w = parts->session->watching;

    for (size_t i = 0; w && i < w->cover_count; i++) {
        const struct watch_cover *cover = &w->covers[i];
        const struct gd_watchpoint *watch = cover->watch;
        bool exact = cover->wants.exact;
        if (!watch || !watch->selector) {
            continue;
        }
        parts->names_only = !exact || cover->wants.nonfinite;
        parts->not_finite_only = exact && cover->wants.nonfinite;
        parts->late = !exact && cover->node_count;
        parts->at_end = parts->at_end ||
                        (!exact && (!cover->node_count || gd_selector_has_all(watch->selector)));
        gd_selector_parts(watch->selector, parts->session->graph, add_part, parts);
    }
}

/* Reported once until it works again: it is tried with each part of the graph. */
static void warn_expected(struct gd_session *session, int rc, const struct gd_err *why)
{
    bool warned = session->impl->warned_expected;
    char text[300];

    session->impl->warned_expected = rc != GD_OK;
    if (rc != GD_OK && !warned) {
        snprintf(text, sizeof(text),
                 "breakpoints and watchpoints on nodes that do not exist yet may miss their first "
                 "run: the training process was not told about them: %.160s",
                 why->text);
        gd_session_on_warning(session, text);
    }
}

void gd_expected_push(struct gd_session *session)
{
    struct parts parts = {.session = session};
    struct gd_err err = {.code = GD_OK};
    int rc = GD_OK;

    if (!gd_session_is_live(session) || !gd_session_grows(session) ||
        !session->target->ops->expect) {
        return;
    }
    parts.part = calloc(MAX_PARTS, sizeof(*parts.part));
    if (parts.part) {
        add_breakpoints(&parts);
        add_watchpoints(&parts);
    }
    if (!parts.part || parts.failed) {
        rc = gd_fail_nomem(&err);
    } else {
        struct gd_expected expected = {parts.part, parts.count, parts.not_finite, parts.at_end};
        rc = session->target->ops->expect(session->target, &expected, &err);
    }
    warn_expected(session, rc, &err);
    while (parts.count > 0) {
        free(parts.part[--parts.count]);
    }
    free(parts.part);
}
