// SPDX-License-Identifier: GPL-3.0-or-later
/* Commands: checkpoint */
#include "repl/commands/running/running.h"

static int run_checkpoint(struct command_call *call, struct gd_err *err)
{
    int rc = gd_target_checkpoint(call->session->target, err);
    if (rc == GD_OK) {
        run_for_other_ranks(call, call->session, gd_target_checkpoint);
        out_printf(call->out, "The training process will save a checkpoint at the end of a step "
                              "and print its path.\n");
    }
    return rc;
}

const struct command cmd_checkpoint = {
    .name = "checkpoint",
    .group = "running",
    .usage = "checkpoint",
    .summary = "Ask the training process to save a checkpoint",
    .help = "The checkpoint is saved at the end of a step; then its path is printed. A PyTorch\n"
            "script saves SCRIPT.stepN.pt in its current directory (next to the script if that is\n"
            "not writable) or calls its own function (gradb.torch.on_checkpoint). A C program\n"
            "chooses the place itself.",
    .flags = CMD_NEEDS_LIVE | CMD_CHANGES,
    .run = run_checkpoint,
};
