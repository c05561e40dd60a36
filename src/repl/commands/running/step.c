// SPDX-License-Identifier: GPL-3.0-or-later
/* Commands: step, reverse-step */
#include "repl/commands/running/running.h"

const struct command cmd_step = {
    .name = "step",
    .aliases = "s ste",
    .group = "running",
    .usage = "step [N] [&]",
    .summary = "Run N training steps, then stop",
    .help = "Without N, run one step. A breakpoint on the way stops earlier. In a dump, go to the\n"
            "next step that was dumped.",
    .examples = "step\n"
                "step 100",
    .args = {ARG_WORD},
    .flags = RUN_NEEDS | CMD_REPEATS,
    .variant = GD_RUN_STEP,
    .run = run_by_count,
};

const struct command cmd_reverse_step = {
    .name = "reverse-step",
    .aliases = "rs",
    .group = "running",
    .usage = "reverse-step [N]",
    .summary = "Go back N steps of a dump",
    .help = "Without N, go back one step. Watchpoints are not evaluated on the way back. A live\n"
            "training cannot go back.",
    .examples = "reverse-step 2",
    .args = {ARG_WORD},
    .flags = RUN_NEEDS | CMD_REPEATS,
    .variant = GD_RUN_BACK,
    .run = run_by_count,
};
