// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/event/event_log.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/grow.h"

void gd_event_log_add(struct gd_event_log *log, int64_t step, const char *kind, const char *text,
                      gd_node_id node)
{
    struct gd_logged_event *entry;

    if (log->count == GD_MAX_EVENTS) {
        entry = &log->entry[log->first];
        log->first = (log->first + 1) % GD_MAX_EVENTS;
        log->dropped++;
    } else if (gd_grow_list(&log->entry, log->count, &log->cap, sizeof(*log->entry))) {
        entry = &log->entry[log->count++];
    } else {
        return;
    }
    entry->step = step;
    entry->node = node;
    snprintf(entry->kind, sizeof(entry->kind), "%s", kind);
    snprintf(entry->text, sizeof(entry->text), "%s", text);
}

const struct gd_logged_event *gd_event_log_at(const struct gd_event_log *log, size_t index)
{
    return &log->entry[(log->first + index) % log->count];
}

void gd_event_log_free(struct gd_event_log *log)
{
    free(log->entry);
    *log = (struct gd_event_log){.count = 0};
}
