// SPDX-License-Identifier: GPL-3.0-or-later
/* Changing the list of nodes where non-finite values are normal; most are masks. */
#include <stdlib.h>
#include <string.h>

#include "engine/graph/selector.h"
#include "engine/watch/expected.h"
#include "engine/watch/watch_impl.h"

static void destroy_exclude(struct gd_exclude *exclude)
{
    gd_selector_destroy(exclude->selector);
    free(exclude->where);
    free(exclude);
}

void excluded_free(struct gd_debugger *debugger)
{
    while (debugger->excludes) {
        struct gd_exclude *next = debugger->excludes->next;
        destroy_exclude(debugger->excludes);
        debugger->excludes = next;
    }
}

int gd_exclude_add(struct gd_debugger *debugger, const char *where, struct gd_err *err)
{
    struct gd_exclude **end = &debugger->excludes;
    for (; *end; end = &(*end)->next) {
        if (strcmp((*end)->where, where) == 0) {
            return GD_OK;
        }
    }
    struct gd_exclude *exclude = calloc(1, sizeof(*exclude));
    if (!exclude || !(exclude->where = strdup(where))) {
        free(exclude);
        return gd_fail_nomem(err);
    }
    int rc = gd_selector_parse(where, &exclude->selector, err);
    struct gd_session *current = debugger->current;
    if (rc == GD_OK && current && current->graph_generation && !gd_session_grows(current)) {
        gd_node_id *nodes = NULL;
        size_t count = 0;
        rc = gd_selector_resolve(exclude->selector, current->graph, &nodes, &count, err);
        if (rc == GD_OK && !count) {
            rc = gd_fail(err, GD_ENOTFOUND, "%.200s selects no node of the graph", where);
        }
        free(nodes);
    }
    if (rc != GD_OK) {
        destroy_exclude(exclude);
        return rc;
    }
    *end = exclude;
    gd_watchpoints_apply(debugger);
    return GD_OK;
}

int gd_exclude_delete(struct gd_debugger *debugger, const char *where, struct gd_err *err)
{
    struct gd_exclude **link = &debugger->excludes;
    while (*link && strcmp((*link)->where, where) != 0) {
        link = &(*link)->next;
    }
    struct gd_exclude *exclude = *link;
    if (!exclude) {
        return gd_fail(err, GD_ENOTFOUND, "'%.200s' is not excluded", where);
    }
    *link = exclude->next;
    destroy_exclude(exclude);
    gd_watchpoints_apply(debugger);
    return GD_OK;
}
