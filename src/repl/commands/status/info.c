// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Commands: info
 * Show the state of the debugger and the training: the table of its subjects.
 */
#include "repl/commands/status/info.h"
#include "repl/core/command.h"

static const struct command info_subs[] = {
    {
        .name = "target",
        .usage = "info target",
        .summary = "The training process: who, where, in which state, what it can do",
        .help = "  info target\n",
        .flags = CMD_NEEDS_SESSION,
        .run = info_target,
    },
    {
        .name = "graph",
        .usage = "info graph",
        .summary = "The graph in numbers: nodes, edges, kinds, types, memory",
        .help = "  info graph\n",
        .flags = CMD_NEEDS_SESSION,
        .run = info_graph,
    },
    {
        .name = "nodes",
        .usage = "info nodes [SELECTOR] [-a]",
        .summary = "Nodes in execution order, or those that a selector selects",
        .help = "  info nodes\n  info nodes gradients\n  info nodes type:MatMul -a\n",
        .args = {ARG_SELECTOR},
        .flags = CMD_NEEDS_SESSION,
        .run = info_nodes,
    },
    {
        .name = "node",
        .usage = "info node [NODE]",
        .summary = "One node: type, outputs, inputs, consumers, attributes, source",
        .help = "Without an argument: the current node.\n\n  info node attn/MatMul-op4\n",
        .args = {ARG_NODE},
        .flags = CMD_NEEDS_SESSION,
        .run = info_node,
    },
    {
        .name = "scopes",
        .usage = "info scopes [SCOPE] [-d DEPTH] [-r] [-a]",
        .summary = "The tree of scopes with node counts",
        .help = "-d sets the depth (default 3), -r shows all levels, -a more than 200 lines.\n"
                "\n"
                "  info scopes\n"
                "  info scopes Default/network -d 1\n",
        .args = {ARG_SCOPE},
        .flags = CMD_NEEDS_SESSION,
        .run = info_scopes,
    },
    {
        .name = "types",
        .usage = "info types",
        .summary = "Operator types with their node counts",
        .help = "  info types\n",
        .flags = CMD_NEEDS_SESSION,
        .run = info_types,
    },
    {
        .name = "params",
        .aliases = "parameters",
        .usage = "info params [-a]",
        .summary = "Weights and other parameters with shapes and totals",
        .help = "  info params\n",
        .flags = CMD_NEEDS_SESSION,
        .run = info_params,
    },
    {
        .name = "stack",
        .aliases = "s",
        .usage = "info stack [NODE] [COUNT] [all]",
        .summary = "The stack of source places that made a node (as backtrace)",
        .help = "  info stack attn/MatMul-op4\n",
        .args = {ARG_NODE},
        .flags = CMD_NEEDS_SESSION,
        .run = info_stack,
    },
    {
        .name = "frame",
        .aliases = "f",
        .usage = "info frame",
        .summary = "The selected frame of the current node's stack",
        .help = "  info frame\n",
        .flags = CMD_NEEDS_SESSION,
        .run = info_frame,
    },
    {
        .name = "source",
        .usage = "info source [TEXT]",
        .summary = "Source files that made nodes (as sources)",
        .help = "  info source\n",
        .args = {ARG_WORD},
        .flags = CMD_NEEDS_SESSION,
        .run = info_source,
    },
    {
        .name = "line",
        .usage = "info line FILE:LINE [-a]",
        .summary = "Nodes that a source line made",
        .help = "FILE may be the end of a path.\n\n  info line model.c:42\n",
        .args = {ARG_FILE},
        .flags = CMD_NEEDS_SESSION,
        .run = info_line,
    },
    {
        .name = "ranks",
        .aliases = "sessions threads inferiors",
        .usage = "info ranks",
        .summary = "All training processes; `*` marks the selected one",
        .help = "  info ranks\n",
        .run = info_ranks,
    },
    {
        .name = "breakpoints",
        .aliases = "b",
        .usage = "info breakpoints",
        .summary = "Breakpoints and watchpoints with their numbers, hit counts and bodies",
        .help = "  info breakpoints\n",
        .run = info_breakpoints,
    },
    {
        .name = "watchpoints",
        .aliases = "w wat",
        .usage = "info watchpoints [N [-a]]",
        .summary = "Watchpoints: what they watch, how often they fired, what they cost",
        .help =
            "When: exact (behind each operator), step (at its end), start (before the first "
            "step),\n"
            "process (which evaluates it by itself). Checks: tensors that were judged. Cost: time\n"
            "spent on statistics in the training process; what several watchpoints share is\n"
            "divided among them, so that the rows add up. Reports: bytes sent to gradb. With a\n"
            "number the nodes are listed, too, with -a all of them.\n"
            "\n"
            "  info watchpoints\n",
        .args = {ARG_WATCHPOINT},
        .run = info_watchpoints,
    },
    {
        .name = "hits",
        .usage = "info hits [N] [-a] [-ranks]",
        .summary = "What fired, or could not be checked, in order of step and execution",
        .help = "The last 40, of watchpoint N alone, with -a all; with the values that were set\n"
                "and the actual ones. \"hit\" goes to one. -ranks: those of all ranks of the job\n"
                "in order of steps, not of the selected one alone.\n"
                "\n"
                "  info hits\n  info hits 2\n  info hits -a\n",
        .args = {ARG_WATCHPOINT},
        .flags = CMD_NEEDS_SESSION,
        .run = info_hits,
    },
    {
        .name = "conditions",
        .usage = "info conditions [CONDITION]",
        .summary = "Conditions that watch takes, with their parameters and advice",
        .help = "  info conditions\n  info conditions TL\n",
        .args = {ARG_CONDITION},
        .run = info_conditions,
    },
    {
        .name = "statistics",
        .aliases = "stats figures",
        .usage = "info statistics",
        .summary = "The figures that expressions of watch are made of",
        .help = "  info statistics\n",
        .run = info_statistics,
    },
    {
        .name = "display",
        .usage = "info display",
        .summary = "What is displayed at every stop",
        .help = "  info display\n",
        .run = info_display,
    },
    {
        .name = "scalars",
        .usage = "info scalars",
        .summary = "Loss, learning rate and other named values of the step",
        .help = "  info scalars\n",
        .flags = CMD_NEEDS_SESSION,
        .run = info_scalars,
    },
    {
        .name = "history",
        .usage = "info history [TENSOR | SCALAR] [FIGURE]... [-n STEPS] [-a]",
        .summary = "What was recorded of the last steps: in all, or of one tensor by step",
        .help =
            "Figures are those of expressions: min, max, mean, abs_mean, std, nan, inf, "
            "nonfinite,\n"
            "zero, zero_percentage, norm, abs_mean(cur-prev), update_ratio, ... The bars go from "
            "the\n"
            "lowest to the highest, oldest step first; a cross is a step with NaN or Inf. What is\n"
            "watched (\"watch\", \"trace\") is recorded, and the numbers that the trainer "
            "reports.\n"
            "\n"
            "  info history\n"
            "  info history loss\n"
            "  info history head.bias -n 5\n"
            "  info history head.bias norm max update_ratio\n",
        .args = {ARG_TENSOR, ARG_WORD},
        .flags = CMD_NEEDS_SESSION,
        .run = info_history,
    },
    {
        .name = "steps",
        .usage = "info steps [-a]",
        .summary = "The steps of a dump, with how much was dumped of each",
        .help = "\"goto STEP\", \"step\" and \"reverse-step\" go to them.\n\n  info steps\n",
        .flags = CMD_NEEDS_SESSION,
        .run = info_steps,
    },
    {
        .name = "events",
        .usage = "info events [-a]",
        .summary = "What a dump tells of overflows and errors, by step",
        .help = "  info events\n",
        .flags = CMD_NEEDS_SESSION,
        .run = info_events,
    },
    {
        .name = "formats",
        .usage = "info formats [PATH | -a]",
        .summary = "What was recognised in a dump, where and by which rule, and what was left out",
        .help =
            "Of the selected dump, or of PATH, which is not opened then. When neither is there,\n"
            "the formats that are known. -a lists all that was left out.\n"
            "\n"
            "  info formats\n",
        .args = {ARG_FILE},
        .run = info_formats,
    },
    {
        .name = "timing",
        .usage = "info timing",
        .summary = "Time spent running and stopped, and where the time of a step goes",
        .help =
            "The parts of a step are by the training's own clock, without the time that it\n"
            "stood: of the last step, the median of the last 256, and the mean of all. A first "
            "step\n"
            "that is slow is in the mean and does not move the median. The slowest operators are\n"
            "measured after \"agent timing on\", from the next step on.\n"
            "\n"
            "  info timing\n",
        .flags = CMD_NEEDS_SESSION,
        .run = info_timing,
    },
    {
        .name = "dump",
        .usage = "info dump",
        .summary = "Which steps are dumped as the training passes them, and what was written",
        .help = "  info dump\n",
        .run = info_dump,
    },
    {
        .name = "overflows",
        .usage = "info overflows [-a]",
        .summary = "Operators with finite inputs whose output was infinite or NaN",
        .help =
            "What each was given and made, where it lies when it was written, what rerun said\n"
            "of it, and whether more are looked for; see \"overflow\". With -a those, too, that\n"
            "did as they were told, as masks of -inf do.\n"
            "\n"
            "  info overflows\n  info overflows -a\n",
        .flags = CMD_NEEDS_SESSION | CMD_NEEDS_STOP | CMD_NEEDS_LIVE,
        .run = info_overflows,
    },
    {
        .name = "log",
        .usage = "info log [N] [-a]",
        .summary = "The trainer's last output lines (20, N, or all that are kept)",
        .help = "  info log\n  info log 100\n",
        .args = {ARG_WORD},
        .run = info_log,
    },
    {
        .name = "settings",
        .aliases = "set",
        .usage = "info settings",
        .summary = "All settings with their values",
        .help = "  info settings\n",
        .run = info_settings,
    },
    {
        .name = "session",
        .usage = "info session",
        .summary = "What gradb attach finds: name, process, socket, terminal, on-hangup",
        .help = "  info session\n",
        .run = info_session,
    },
    {.name = NULL},
};

static int run_info(struct command_call *call, struct gd_err *err)
{
    (void)err;
    if (out_is_json(call->out)) {
        cJSON *list = cJSON_AddArrayToObject(out_record(call->out, "info"), "subjects");
        for (const struct command *sub = info_subs; sub->name; sub++) {
            cJSON_AddItemToArray(list, cJSON_CreateString(sub->name));
        }
        return GD_OK;
    }
    for (const struct command *sub = info_subs; sub->name; sub++) {
        out_printf(call->out, "info %-12s %s\n", sub->name, sub->summary);
    }
    return GD_OK;
}

const struct command cmd_info = {
    .name = "info",
    .aliases = "i inf",
    .group = "status",
    .usage = "info SUBJECT",
    .summary = "Show what is known: the trainer, its graph, nodes, stacks, timing",
    .help = "  info target\n  info graph\n  info node attn/MatMul-op4\n",
    .args = {ARG_SUBCOMMAND},
    .flags = CMD_REPEATS,
    .run = run_info,
    .sub = info_subs,
};
