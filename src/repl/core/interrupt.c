// SPDX-License-Identifier: GPL-3.0-or-later
#include "repl/core/interrupt.h"

#include "engine/progress.h"
#include "engine/ranks.h"
#include "repl/core/repl_impl.h"

bool repl_interrupt(struct repl *repl)
{
    struct gd_session *session = repl->debugger->current;

    repl->busy.interrupted_known = gd_progress_current(repl->debugger, &repl->busy.interrupted_at);
    gd_progress_stop_all(repl->debugger);
    if (repl->busy.waiting) {
        repl->debugger->interrupted = true;
        return true;
    }
    if (repl->options.interactive || repl->options.batch) {
        return false;
    }
    /* Commands come from a pipe, so there is no line to clear: interrupt the training. */
    if (session && session->state == GD_RUNNING) {
        gd_ranks_interrupt(session, NULL);
    }
    return true;
}

bool repl_is_interrupted(const struct repl *repl)
{
    return repl->debugger->interrupted || repl->end.quit != QUIT_NO || repl->front.left;
}

void repl_clear_interrupt(struct repl *repl)
{
    repl->debugger->interrupted = false;
}

int repl_interrupted_at(const struct gd_progress_info *at, struct gd_err *err)
{
    char amount[128];

    gd_progress_amount(at, amount, sizeof(amount));
    return gd_fail(err, GD_EINTR, "interrupted after %s", amount);
}

int repl_interrupted(struct repl *repl, const char *otherwise, struct gd_err *err)
{
    bool known = repl->busy.interrupted_known && repl->busy.interrupted_at.done > 0;

    repl->busy.interrupted_known = false;
    return known ? repl_interrupted_at(&repl->busy.interrupted_at, err)
                 : gd_fail(err, GD_EINTR, "%s", otherwise);
}
