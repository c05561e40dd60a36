// SPDX-License-Identifier: GPL-3.0-or-later
/* Commands: detach */
#include "repl/commands/running/running.h"
#include "repl/core/repl_impl.h"
#include "repl/launch/launch.h"

static int run_detach(struct command_call *call, struct gd_err *err)
{
    struct gd_session *session = call->session;
    bool needs_us = repl_ends_without_us(session);
    bool muted = call->repl->job.muted;
    int number = session->number;
    struct ending ending = {.session = session};

    call->repl->job.muted = true; /* do not report "the training ended" */
    int others = run_for_other_ranks(call, session, gd_target_detach);
    int rc = gd_target_detach(session->target, err);
    if (rc == GD_OK) {
        repl_wait(call->repl, ending_is_over, &ending, 2.0);
        launch_detach(call->repl);
        const char *output = launch_output_path(call->repl);
        if (output[0] != '\0') {
            out_printf(call->out, "Output of %s: %s\n", out_safe(call, launch_program(call->repl)),
                       out_safe(call, output));
        }
        if (others > 0) {
            out_printf(call->out, "Detached: %d ranks continue.\n", others + 1);
        } else {
            out_printf(call->out, "Detached: training process %d continues%s.\n", number,
                       needs_us ? " while gradb runs" : "");
        }
        if (needs_us) {
            call->repl->end.left_behind = true;
            out_printf(call->out, "A MindSpore process ends about 15 s after its debugger exits: "
                                  "keep gradb running.\n");
        }
    }
    call->repl->job.muted = muted;
    return rc;
}

const struct command cmd_detach = {
    .name = "detach",
    .group = "running",
    .usage = "detach",
    .summary = "Release the training process; it continues without the debugger",
    .help = "Values that were fetched stay readable. A MindSpore 1.x process continues only as\n"
            "long as gradb runs: it ends about 15 s after its debugger exits.",
    .flags = CMD_NEEDS_LIVE | CMD_CHANGES,
    .run = run_detach,
};
