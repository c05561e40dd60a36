// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Watchpoints: a condition with its parameters, and what it applies to. They belong to the
 * debugger, share their numbers with breakpoints, and are given to every session that can evaluate
 * them: at once, and again whenever a graph arrives, so that they hold for a process that comes
 * back.
 */
#ifndef GD_ENGINE_WATCHPOINT_H
#define GD_ENGINE_WATCHPOINT_H

#include "engine/condition.h"
#include "engine/debugger.h"

struct gd_watchpoint {
    int number;
    const struct gd_condition *condition;
    struct gd_condition_value values[GD_MAX_CONDITION_PARAMS]; /* names point into the condition */
    size_t value_count;
    char *where; /* as typed */
    struct gd_selector *selector;
    bool enabled;
    uint64_t hits;    /* times it fired, in all sessions */
    uint64_t unclear; /* times it could not be checked */
    struct gd_watchpoint *next;
};

/* where NULL: what the condition is meant for (weights, gradients, ...). Without a test among the
 * values the condition's default is taken. GD_EINVAL: the values or the selector are wrong, or a
 * test is missing that has no default. The current session's refusal (GD_ESTATE, GD_EUNSUPPORTED,
 * GD_ENOTFOUND) refuses it; a session that cannot do it is told by a warning. */
int gd_watchpoint_add(struct gd_debugger *debugger, const struct gd_condition *condition,
                      const struct gd_condition_value *values, size_t count, const char *where,
                      struct gd_watchpoint **ret, struct gd_err *err);
int gd_watchpoint_delete(struct gd_debugger *debugger, int number, struct gd_err *err);
int gd_watchpoint_enable(struct gd_debugger *debugger, int number, bool enable, struct gd_err *err);
struct gd_watchpoint *gd_watchpoint_at(struct gd_debugger *debugger, int number);
/* Nodes that it covers in that session, constants left out; as gd_selector_resolve. */
int gd_watchpoint_nodes(const struct gd_watchpoint *watch, struct gd_session *session,
                        gd_node_id **ret, size_t *count, struct gd_err *err);
/* "TL abs_mean_gt=1000 on gradients" */
int gd_watchpoint_text(const struct gd_watchpoint *watch, struct gd_buf *out);

/* Called by gd_debugger_destroy. */
void gd_watchpoints_free(struct gd_debugger *debugger);

#endif
