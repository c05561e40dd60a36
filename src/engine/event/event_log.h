// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * What happened in a training, for `info events`: the newest GD_MAX_EVENTS events of a session. It
 * belongs to the session and outlives the training process. Out of memory, an event is not kept.
 */
#ifndef GD_ENGINE_EVENT_LOG_H
#define GD_ENGINE_EVENT_LOG_H

#include "engine/graph/graph.h"

#define GD_MAX_EVENTS      1000
#define GD_EVENT_KIND_SIZE 64  /* bytes of an event's kind, with its NUL */
#define GD_EVENT_TEXT_SIZE 401 /* and of its text */

struct gd_logged_event {
    int64_t step;    /* 0: before the first */
    gd_node_id node; /* GD_NO_NODE: none */
    char kind[GD_EVENT_KIND_SIZE];
    char text[GD_EVENT_TEXT_SIZE];
};
struct gd_event_log {
    struct gd_logged_event *entry; /* a ring when it is full */
    size_t count, cap, first;
    uint64_t dropped; /* older ones */
};

/* Longer texts are cut. */
void gd_event_log_add(struct gd_event_log *log, int64_t step, const char *kind, const char *text,
                      gd_node_id node);
/* The index-th one, oldest first; index < log->count. */
const struct gd_logged_event *gd_event_log_at(const struct gd_event_log *log, size_t index);
void gd_event_log_free(struct gd_event_log *log);

#endif
