// SPDX-License-Identifier: GPL-3.0-or-later
/* Commands: interrupt */
#include "engine/ranks.h"
#include "repl/core/repl_impl.h"

static int run_interrupt(struct command_call *call, struct gd_err *err)
{
    const struct gd_ranks *ranks = gd_ranks_of(call->session);
    bool together = ranks && gd_ranks_are_busy(ranks);

    if (!gd_ranks_is_running(call->session)) {
        return gd_fail(err, GD_ESTATE, "the training is not running (%s)",
                       gd_state_name(call->session->state));
    }
    uint64_t before = call->session->stop.sequence;
    uint64_t settled = together ? gd_ranks_settled(ranks) : 0;
    if (call->repl->dump) {
        call->repl->dump->interrupted(call->repl);
    }
    int rc = gd_ranks_interrupt(call->session, err);
    /* a script continues once the training is stopped */
    if (rc == GD_OK && !call->repl->options.interactive) {
        rc = together ? repl_wait_ranks(call, settled, err) : repl_wait_stop(call, before, err);
    }
    return rc;
}

const struct command cmd_interrupt = {
    .name = "interrupt",
    .aliases = "int",
    .group = "running",
    .usage = "interrupt",
    .summary = "Stop a training that runs in the background",
    .help = "The training stops as soon as possible: at the next node or at the end of the step.\n"
            "Ctrl-C does the same for a training that runs in the foreground.",
    .flags = CMD_NEEDS_LIVE,
    .run = run_interrupt,
};
