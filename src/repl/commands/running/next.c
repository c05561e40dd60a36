// SPDX-License-Identifier: GPL-3.0-or-later
/* Commands: next */
#include "repl/commands/running/running.h"

const struct command cmd_next = {
    .name = "next",
    .aliases = "n",
    .group = "running",
    .usage = "next [N] [&]",
    .summary = "Run N nodes in execution order, then stop",
    .help =
        "Without N, run one node. A training process that cannot stop at nodes reports an error.",
    .args = {ARG_WORD},
    .flags = RUN_NEEDS | CMD_REPEATS,
    .variant = GD_RUN_NEXT,
    .run = run_by_count,
};
