// SPDX-License-Identifier: GPL-3.0-or-later
/* Which hit is selected: the one that `hit` chose, else the strongest of this stop. */
#include <stdlib.h>

#include "repl/commands/breakpoints/hit.h"
#include "repl/core/hits.h"
#include "repl/core/repl_impl.h"

struct hit_selection *hit_selection(struct repl *repl)
{
    return repl_make_slot(repl, REPL_SLOT_HITS, sizeof(struct hit_selection), free);
}

static bool hit_is_selected(const struct hit_selection *state, const struct gd_session *session)
{
    return state && state->number > 0 && state->session == session->number &&
           state->stop == session->stop.sequence;
}

uint64_t hits_selected(struct repl *repl, const struct gd_session *session)
{
    const struct hit_selection *state = repl_slot(repl, REPL_SLOT_HITS);
    return hit_is_selected(state, session) ? state->number : 0;
}

/* Prefers a hit of this stop, then one that was checked, then the one that stopped the training. */
int hits_weight(const struct gd_session *session, const struct gd_hit *hit)
{
    if (hit->stop_sequence != session->stop.sequence) {
        return 0;
    }
    return 1 + (hit->error ? 0 : 1) +
           (!hit->error && !hit->traced && hit->step == session->stop.step ? 1 : 0);
}

/* Where in `order` to start; without a hit of this stop, at the first hit of the last step that has
 * one. */
static size_t first_of_stop(const struct gd_session *session, const size_t *order, size_t count)
{
    size_t found = count - 1;
    int best = 0;
    while (found > 0 &&
           session->hits[order[found - 1]].step == session->hits[order[count - 1]].step) {
        found--;
    }
    for (size_t i = 0; i < count; i++) {
        int w = hits_weight(session, &session->hits[order[i]]);
        if (w > best) {
            best = w;
            found = i;
        }
    }
    return found;
}

static int no_hits(struct gd_err *err)
{
    return gd_fail(err, GD_ENOTFOUND, "no watchpoint has fired yet");
}

int hit_choose(struct command_call *call, int by, const struct gd_hit **ret, struct gd_err *err)
{
    const struct gd_session *session = call->session;
    const struct hit_selection *state = hit_selection(call->repl);
    size_t count = 0;
    size_t *order = hits_in_order(session, 0, &count);
    if (count == 0) {
        free(order);
        return no_hits(err);
    }
    bool selected = false;
    size_t at = first_of_stop(session, order, count);
    for (size_t i = 0; hit_is_selected(state, session) && i < count; i++) {
        if (hits_number(session, &session->hits[order[i]]) == state->number) {
            at = i;
            selected = true;
        }
    }
    bool end = selected && ((by < 0 && at == 0) || (by > 0 && at + 1 == count));
    if (selected && !end && by != 0) {
        at = by > 0 ? at + 1 : at - 1;
    }
    const struct gd_hit *hit = &session->hits[order[at]];
    free(order);
    if (end) {
        return gd_fail(err, GD_ENODATA, "this is already the %s hit", by < 0 ? "first" : "last");
    }
    *ret = hit;
    return GD_OK;
}

const struct gd_hit *hits_current(struct command_call *call, struct gd_err *err)
{
    const struct gd_hit *hit = NULL;
    struct gd_err why = {.code = GD_OK};
    int rc = call->session ? hit_choose(call, 0, &hit, &why) : no_hits(&why);
    if (rc != GD_OK && err) {
        *err = why;
    }
    return rc == GD_OK ? hit : NULL;
}
