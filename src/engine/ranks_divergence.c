// SPDX-License-Identifier: GPL-3.0-or-later
/* catch divergence: at each boundary of a run, the parameters of all ranks are compared. */
#include <stdio.h>
#include <string.h>

#include "engine/ranks_impl.h"
#include "engine/watch/watchpoint.h"

static struct gd_watchpoint *find_divergence(const struct gd_debugger *debugger)
{
    struct gd_watchpoint *watch = debugger->watchpoints;

    while (watch && !(watch->enabled && !watch->spent && watch->event &&
                      strcmp(watch->event, GD_DIVERGENCE) == 0)) {
        watch = watch->next;
    }
    return watch;
}

/* The rank that differs gets the hit. */
static void on_divergence(struct gd_ranks *ranks, const struct gd_ranks_digest *tensor)
{
    struct gd_session *session = gd_ranks_member(ranks, tensor->differs);
    struct gd_watchpoint *watch = find_divergence(ranks->debugger);
    struct gd_hit hit = {.step = ranks->checked, .node = GD_NO_NODE};

    if (!session || !watch) {
        return;
    }
    if (watch->ignore > 0) {
        watch->ignore--;
        watch->hits++;
        return;
    }
    hit.watchpoint = watch->number;
    hit.condition = GD_WIRE_OWN;
    hit.stop_sequence = session->stop.sequence;
    snprintf(hit.event, sizeof(hit.event), "%s", GD_DIVERGENCE);
    snprintf(hit.expression, sizeof(hit.expression), "%s", gd_expr_text(watch->expr));
    snprintf(hit.node_name, sizeof(hit.node_name), "%s", tensor->name);
    gd_session_on_hit(session, &hit); /* which counts it */
    session->impl->rank.cause = true;
    session->impl->rank.owes = true;
    session->stop.reason = GD_STOP_HIT;
    ranks->caused = true;
}

static void on_checked(void *ctx, const struct gd_ranks_digests *digests, const struct gd_err *err)
{
    struct gd_ranks *ranks = ctx;
    size_t i = 0;

    if (ranks->phase != RANKS_CHECK) {
        return; /* the job has moved on without waiting for it */
    }
    ranks->phase = RANKS_RUN;
    while (digests && digests->differing > 0 && digests->tensor[i].differs < 0) {
        i++;
    }
    if (digests && digests->differing > 0) {
        on_divergence(ranks, &digests->tensor[i]);
    }
    if (err && ranks->debugger->current) {
        gd_session_on_warning(ranks->debugger->current, err->text);
        ranks_settle(ranks);
    } else {
        ranks_advance(ranks);
    }
}

bool ranks_check(struct gd_ranks *ranks, const struct ranks_tally *tally)
{
    struct gd_err err;

    if (tally->low < 1 || tally->low < tally->high || ranks->checked == tally->low ||
        !find_divergence(ranks->debugger)) {
        return false;
    }
    ranks->checked = tally->low;
    ranks->phase = RANKS_CHECK;
    if (gd_ranks_digest(ranks, "parameters", on_checked, ranks, &err) == GD_OK) {
        return true;
    }
    ranks->phase = RANKS_RUN;
    if (ranks->debugger->current) {
        gd_session_on_warning(ranks->debugger->current, err.text);
    }
    return false;
}
