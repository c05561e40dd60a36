// SPDX-License-Identifier: GPL-3.0-or-later
/* The end of a training process, and of the other ranks of its job. */
#include <stdlib.h>

#include "engine/ranks.h"
#include "repl/commands/running/running.h"
#include "repl/core/repl_impl.h"

int run_for_other_ranks(struct command_call *call, struct gd_session *session,
                        int (*fn)(struct gd_target *target, struct gd_err *err))
{
    const struct gd_ranks *ranks = gd_ranks_of(session);
    int done = 0;

    if (!gd_ranks_move_together(session, GD_RUN_CONTINUE)) {
        return 0;
    }
    for (int rank = 0; rank < gd_ranks_world_size(ranks); rank++) {
        const struct gd_session *other = gd_ranks_member(ranks, rank);
        struct gd_err why;
        if (!other || other == session || !gd_session_is_live(other)) {
            continue;
        }
        if (fn(other->target, &why) == GD_OK) {
            done++;
        } else {
            repl_printf(call->repl, true, "warning: [rank %d] %s\n", rank, why.text);
        }
    }
    return done;
}

static const struct gd_session *member_of(const struct ending *ending, int rank)
{
    const struct gd_ranks *ranks = gd_ranks_of(ending->session);
    return !ranks ? ending->session : gd_ranks_member(ranks, rank);
}

void ending_begin(struct ending *ending, const struct gd_session *session)
{
    const struct gd_ranks *ranks = gd_ranks_of(session);
    ending->session = session;
    ending->count = ranks ? gd_ranks_world_size(ranks) : 1;
    ending->sequence = calloc((size_t)ending->count, sizeof(*ending->sequence));
    for (int rank = 0; ending->sequence && rank < ending->count; rank++) {
        const struct gd_session *one = member_of(ending, rank);
        ending->sequence[rank] = one ? one->stop.sequence : 0;
    }
}

/* A hit in the rest of the step must not keep the training from ending: asks stopped ranks
 * again. */
static void let_go_again(const struct ending *ending)
{
    struct gd_err why;
    for (int rank = 0; ending->sequence && rank < ending->count; rank++) {
        const struct gd_session *one = member_of(ending, rank);
        if (one && one->state == GD_STOPPED && one->stop.sequence != ending->sequence[rank]) {
            ending->sequence[rank] = one->stop.sequence;
            /* a rank that cannot end is killed with its process */
            gd_target_kill(one->target, &why);
        }
    }
}

bool ending_is_over(void *ctx)
{
    const struct ending *ending = ctx;
    const struct gd_session *session = ending->session;
    const struct gd_ranks *ranks = gd_ranks_of(session);
    bool alone = session->debugger->settings.rank_locking == GD_LOCKING_ON;
    let_go_again(ending);
    return !gd_session_is_live(session) && (!ranks || alone || gd_ranks_live(ranks) == 0);
}
