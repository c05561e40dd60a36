// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Commands: checkpoint
 * Ask the training process for a checkpoint.
 */
#include "repl/commands/running/running.h"
#include "repl/core/command.h"

static int run_checkpoint(struct command_call *call, struct gd_err *err)
{
    int rc = gd_target_checkpoint(call->session->target, err);
    if (rc == GD_OK) {
        run_for_other_ranks(call, call->session, gd_target_checkpoint);
        out_printf(call->out, "The training process saves a checkpoint at the end of a step, and "
                              "then says where.\n");
    }
    return rc;
}

const struct command cmd_checkpoint = {
    .name = "checkpoint",
    .group = "running",
    .usage = "checkpoint",
    .summary = "Ask the training process to save a checkpoint",
    .help = "It saves at the end of a step; the path of the file is shown then. A PyTorch script\n"
            "saves SCRIPT.stepN.pt in its current directory, beside itself where that cannot be\n"
            "written, or with its own function (gradb.torch.on_checkpoint). A C program chooses\n"
            "the place itself.",
    .flags = CMD_NEEDS_LIVE | CMD_CHANGES,
    .run = run_checkpoint};
