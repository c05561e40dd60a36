// SPDX-License-Identifier: GPL-3.0-or-later
/* Commands: undo, skip-update, zero-grad */
#include "repl/core/repl_impl.h"
#include "repl/values/change.h"

static int run_undo(struct command_call *call, struct gd_err *err)
{
    return change_send(call, "undo", cJSON_CreateObject(), err);
}

static int run_on_optimizer(struct command_call *call, struct gd_err *err)
{
    cJSON *request = change_request(call->command->name);

    cJSON_AddStringToObject(request, "optimizer", call->argc > 0 ? call->argv[0] : "");
    return change_send(call, "change", request, err);
}

#define FLAGS (CMD_NEEDS_SESSION | CMD_NEEDS_STOP | CMD_NEEDS_LIVE | CMD_CHANGES)

const struct command cmd_undo = {
    .name = "undo",
    .group = "running",
    .usage = "undo",
    .summary = "Take back the last change that you made by hand in a Python program",
    .help =
        "What `set NODE = VALUE`, `set requires_grad`, `set lr`, `skip-update` and `zero-grad`\n"
        "changed is as it was, bit by bit; again, the one before. Values and gradients only\n"
        "until the training runs again, and up to 256 MiB of them. What `call` and `interact`\n"
        "changed cannot be undone.",
    .args = {ARG_NONE},
    .flags = FLAGS,
    .run = run_undo,
};

const struct command cmd_skip_update = {
    .name = "skip-update",
    .group = "running",
    .usage = "skip-update [OPTIMIZER]",
    .summary = "Let the next step of the optimizer change nothing (PyTorch)",
    .help = "Neither parameters nor the optimizer's state change in its next step. Without a name\n"
            "it is the main optimizer, whose steps are the steps of the training.",
    .examples = "skip-update",
    .args = {ARG_WORD},
    .flags = FLAGS,
    .words = {0, 1, "name at most one optimizer"},
    .run = run_on_optimizer,
};

const struct command cmd_zero_grad = {
    .name = "zero-grad",
    .group = "running",
    .usage = "zero-grad [OPTIMIZER]",
    .summary = "Remove the gradients of the optimizer's parameters (PyTorch)",
    .help = "As zero_grad() does: the parameters have no gradient until the next backward pass.",
    .examples = "zero-grad",
    .args = {ARG_WORD},
    .flags = FLAGS,
    .words = {0, 1, "name at most one optimizer"},
    .run = run_on_optimizer,
};
