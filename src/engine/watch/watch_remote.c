// SPDX-License-Identifier: GPL-3.0-or-later
/* Watchpoints that a process evaluates itself: sent whole each time one changes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/watch/watch_impl.h"

void watching_unwatch(struct gd_watching *w, struct watch_cover *cover)
{
    if (cover->sent && w->session->target) {
        gd_target_unwatch(w->session->target, cover->number, NULL);
    }
    cover->sent = false;
    free(cover->sent_nodes);
    cover->sent_nodes = NULL;
    cover->sent_count = 0;
}

static bool is_told(const struct watch_cover *cover)
{
    return cover->sent && cover->sent_revision == cover->revision &&
           cover->sent_count == cover->node_count &&
           (!cover->node_count || memcmp(cover->sent_nodes, cover->nodes,
                                         cover->node_count * sizeof(*cover->nodes)) == 0);
}

static int send_watch(struct gd_watching *w, struct watch_cover *cover, struct gd_err *err)
{
    const struct gd_watchpoint *watch = cover->watch;
    struct gd_remote_param params[GD_MAX_CONDITION_PARAMS];
    gd_node_id *nodes = malloc((cover->node_count + 1) * sizeof(*nodes));
    if (!nodes) {
        return gd_fail(err, GD_ENOMEM, "out of memory for %zu watched nodes", cover->node_count);
    }
    memcpy(nodes, cover->nodes, cover->node_count * sizeof(*nodes));
    struct gd_remote_watch remote = {.id = watch->number,
                                     .condition = watch->condition->wire,
                                     .params = params,
                                     .nodes = nodes,
                                     .node_count = cover->node_count};
    remote.param_count =
        gd_condition_encode(watch->condition, watch->values, watch->value_count, params);
    int rc = gd_target_watch(w->session->target, &remote, err);
    if (rc != GD_OK) {
        free(nodes);
        return rc;
    }
    free(cover->sent_nodes);
    cover->sent = true;
    cover->sent_revision = cover->revision;
    cover->sent_nodes = nodes;
    cover->sent_count = cover->node_count;
    return GD_OK;
}

void watching_push_remote(struct gd_watching *w)
{
    for (size_t i = 0; i < w->cover_count; i++) {
        struct watch_cover *cover = &w->covers[i];
        struct gd_err err;
        if (cover->mode != WATCH_MODE_REMOTE || cover->problem || !cover->node_count ||
            !w->session->target || is_told(cover)) {
            continue;
        }
        cover->problem = send_watch(w, cover, &err);
        cover->warned = false;
        if (cover->problem) {
            snprintf(cover->problem_text, sizeof(cover->problem_text), "%.*s",
                     (int)sizeof(cover->problem_text) - 1, err.text);
        }
    }
}
