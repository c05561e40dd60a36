// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/expected.h"

#include <stdlib.h>
#include <string.h>

#include "engine/selector.h"
#include "engine/watch_impl.h"

#define MAX_PARTS 1024 /* more than that, and every new node is shown at once */

struct parts {
    struct gd_session *session;
    char **part;
    size_t count;
    bool names_only; /* of terms that go by name, not by kind or place */
    bool failed;
};

/* A program that answers commands is asked for its values, too: it tells of its operators as they
 * run. One that knows its graph beforehand has no use for either. */
bool gd_session_grows(const struct gd_session *session)
{
    return session->target && session->target->capabilities & GD_CAN_COMMAND;
}

static void add_part(void *ctx, const char *part, bool is_name)
{
    struct parts *parts = ctx;

    if (parts->names_only && !is_name) {
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
        if (b->enabled && b->selector) {
            gd_selector_parts(b->selector, session->graph, add_part, parts);
        }
    }
}

/* What is judged at the end of a step is not late when the node comes late. But nodes are only
 * looked for while something is waited for: what covers nothing yet would never find its node. */
static void add_watchpoints(struct parts *parts)
{
    const struct gd_watching *w = parts->session->watching;

    parts->names_only = true;
    for (size_t i = 0; w && i < w->cover_count; i++) {
        const struct watch_cover *cover = &w->covers[i];
        const struct gd_watchpoint *watch = cover->watch;
        if (watch && watch->selector && (cover->wants.exact || !cover->node_count)) {
            gd_selector_parts(watch->selector, parts->session->graph, add_part, parts);
        }
    }
}

void gd_expected_push(struct gd_session *session)
{
    struct parts parts = {.session = session};
    struct gd_err err;

    if (!gd_session_is_live(session) || !gd_session_grows(session) ||
        !session->target->ops->expect) {
        return;
    }
    parts.part = calloc(MAX_PARTS, sizeof(*parts.part));
    if (!parts.part) {
        return;
    }
    add_breakpoints(&parts);
    add_watchpoints(&parts);
    if (!parts.failed) {
        session->target->ops->expect(session->target, parts.part, parts.count, &err);
    }
    while (parts.count > 0) {
        free(parts.part[--parts.count]);
    }
    free(parts.part);
}
