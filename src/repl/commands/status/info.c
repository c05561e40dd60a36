// SPDX-License-Identifier: GPL-3.0-or-later
/* Commands: info. Each subject is in a file of its own. */
#include "repl/commands/status/info.h"

static const struct command info_subs[] = {
    {.name = "target",
     .usage = "info target",
     .summary = "Show the training process: program, host, state, capabilities",
     .flags = CMD_NEEDS_SESSION,
     .run = info_target},
    {.name = "graph",
     .aliases = "g gr gra",
     .usage = "info graph",
     .summary = "Show the size of the graph: nodes, edges, kinds, types, memory",
     .flags = CMD_NEEDS_SESSION,
     .run = info_graph},
    {.name = "nodes",
     .usage = "info nodes [SELECTOR] [-a]",
     .summary = "List nodes, or those of a selector: the model first, each part as it runs",
     .examples = "info nodes\n"
                 "info nodes gradients\n"
                 "info nodes type:linear -a",
     .args = {ARG_SELECTOR},
     .flags = CMD_NEEDS_SESSION,
     .run = info_nodes},
    {.name = "node",
     .usage = "info node [NODE]",
     .summary = "Show a node: type, outputs, inputs, consumers, attributes, source",
     .help = "Without an argument, show the current node.",
     .examples = "info node model/block0/attn/linear",
     .args = {ARG_NODE},
     .flags = CMD_NEEDS_SESSION,
     .run = info_node},
    {.name = "scopes",
     .usage = "info scopes [SCOPE] [-d DEPTH] [-r] [-a]",
     .summary = "Show the tree of scopes with node counts",
     .help = "-d sets the depth (default 3), -r shows all levels, -a more than 200 lines.",
     .examples = "info scopes\n"
                 "info scopes model -d 1",
     .args = {ARG_SCOPE},
     .flags = CMD_NEEDS_SESSION,
     .run = info_scopes},
    {.name = "types",
     .usage = "info types",
     .summary = "List operator types with their node counts",
     .flags = CMD_NEEDS_SESSION,
     .run = info_types},
    {.name = "params",
     .aliases = "parameters",
     .usage = "info params [-a]",
     .summary = "List weights and other parameters with shapes and totals",
     .flags = CMD_NEEDS_SESSION,
     .run = info_params},
    {.name = "init",
     .usage = "info init",
     .summary = "Compare the statistics of initial weights with the usual schemes",
     .help =
         "Before the first step. For each weight, fan_in and fan_out, the measured deviation\n"
         "with its sampling error, and the schemes with that deviation: Xavier, He, LeCun, the\n"
         "default of PyTorch and MindSpore (He uniform, a = sqrt 5), N(0, 0.01), N(0, 0.02),\n"
         "N(0, 1), truncated normal, orthogonal, constant. Below the table: weights that are\n"
         "not finite, all zero, have equal rows, or are 3 times off every scheme.",
     .flags = CMD_NEEDS_SESSION | CMD_NEEDS_STOP,
     .run = info_init},
    {.name = "stack",
     .aliases = "s",
     .usage = "info stack [NODE] [COUNT] [all]",
     .summary = "Show the call stack that created a node (same as backtrace)",
     .examples = "info stack model/block0/attn/linear",
     .args = {ARG_NODE},
     .flags = CMD_NEEDS_SESSION,
     .run = info_stack},
    {.name = "frame",
     .aliases = "f",
     .usage = "info frame",
     .summary = "Show the selected frame of the current node's stack",
     .flags = CMD_NEEDS_SESSION,
     .run = info_frame},
    {.name = "locals",
     .usage = "info locals [NAME]",
     .summary = "List the variables of the selected frame of a stopped Python program",
     .help = "The frame is the innermost one of your own code, or the one that `up`, `down` and\n"
             "`frame` select. With NAME, show that one: of a tensor the statistics, and the\n"
             "elements up to 1 MiB. No code of the program runs for that.",
     .args = {ARG_WORD},
     .flags = CMD_NEEDS_SESSION,
     .run = info_locals},
    {.name = "args",
     .usage = "info args [NAME]",
     .summary = "List the arguments of the selected frame of a stopped Python program",
     .args = {ARG_WORD},
     .flags = CMD_NEEDS_SESSION,
     .run = info_args},
    {.name = "source",
     .usage = "info source [TEXT]",
     .summary = "List the source files that created nodes (same as sources)",
     .args = {ARG_WORD},
     .flags = CMD_NEEDS_SESSION,
     .run = info_source},
    {.name = "line",
     .usage = "info line FILE:LINE [-a]",
     .summary = "List the nodes that a source line created",
     .help = "FILE may be the end of a path.",
     .examples = "info line model.py:42",
     .args = {ARG_FILE},
     .flags = CMD_NEEDS_SESSION,
     .run = info_line},
    {.name = "ranks",
     .aliases = "sessions threads inferiors",
     .usage = "info ranks",
     .summary = "List all training processes; `*` marks the selected one",
     .run = info_ranks},
    {.name = "breakpoints",
     .aliases = "b",
     .usage = "info breakpoints",
     .summary = "List breakpoints and watchpoints with their numbers, hit counts and commands",
     .run = info_breakpoints},
    {.name = "watchpoints",
     .aliases = "w wat",
     .usage = "info watchpoints [N [-a]]",
     .summary = "List watchpoints: what they watch, how often they fired, what they cost",
     .help =
         "When: exact (after each operator), step (at its end), start (before the first step),\n"
         "process (the training process evaluates it). Checks: number of checked tensors. "
         "Cost:\n"
         "time spent on statistics in the training process; the cost of statistics that "
         "several\n"
         "watchpoints share is divided among them, so that the rows add up. Reports: bytes "
         "sent\n"
         "to gradb. With a number, list the nodes too, up to 40; -a lists all of them.",
     .args = {ARG_WATCHPOINT},
     .run = info_watchpoints},
    {.name = "rules",
     .usage = "info rules [RULE]",
     .summary = "List the rules of `diagnose`, or explain one",
     .args = {ARG_WORD},
     .run = info_rules},
    {.name = "hits",
     .usage = "info hits [N] [-a] [-ranks]",
     .summary = "List hits and failed checks in order of step and execution",
     .help = "List the last 40 hits, those of watchpoint N, or all with -a; each with the "
             "values that\n"
             "were set and the actual ones. \"hit\" goes to one. -ranks lists the hits of all "
             "ranks\n"
             "of the job, by step.",
     .examples = "info hits\n"
                 "info hits 2\n"
                 "info hits -a",
     .args = {ARG_WATCHPOINT},
     .flags = CMD_NEEDS_SESSION,
     .run = info_hits},
    {.name = "conditions",
     .usage = "info conditions [CONDITION]",
     .summary = "List the conditions of watch, with their parameters and advice",
     .examples = "info conditions\n"
                 "info conditions TL",
     .args = {ARG_CONDITION},
     .run = info_conditions},
    {.name = "statistics",
     .aliases = "stats figures",
     .usage = "info statistics",
     .summary = "List the statistics that expressions of watch can use",
     .run = info_statistics},
    {.name = "display",
     .usage = "info display",
     .summary = "List what is displayed at every stop",
     .run = info_display},
    {.name = "metrics",
     .usage = "info metrics",
     .summary = "List the metrics that \"metric\" computes, with counts and what was left out",
     .flags = CMD_NEEDS_SESSION,
     .run = info_metrics},
    {.name = "scalars",
     .usage = "info scalars",
     .summary = "Show loss, learning rate and other metrics of the step",
     .flags = CMD_NEEDS_SESSION,
     .run = info_scalars},
    {.name = "history",
     .usage = "info history [TENSOR | SCALAR] [STATISTIC]... [-n STEPS] [-a]",
     .summary = "Show the recorded history: an overview, or one tensor by step",
     .help = "STATISTIC is one of those of expressions: min, max, mean, abs_mean, std, nan, inf,\n"
             "nonfinite, zero, zero_percentage, norm, abs_mean(cur-prev), update_ratio, ... The "
             "bars\n"
             "range from the lowest to the highest value, oldest step first; a cross marks a step\n"
             "with NaN or infinity. gradb records what is watched (\"watch\", \"trace\") and the\n"
             "metrics that the training reports.",
     .examples = "info history\n"
                 "info history loss\n"
                 "info history model/head/bias -n 5\n"
                 "info history model/head/bias norm max update_ratio",
     .args = {ARG_TENSOR, ARG_WORD},
     .flags = CMD_NEEDS_SESSION | CMD_METRICS | CMD_SHOWS,
     .run = info_history},
    {.name = "steps",
     .usage = "info steps [-a]",
     .summary = "List the steps of a dump and how much of each was dumped",
     .help = "\"goto STEP\", \"step\" and \"reverse-step\" go to these steps.",
     .flags = CMD_NEEDS_SESSION,
     .run = info_steps},
    {.name = "events",
     .usage = "info events [-a]",
     .summary = "List what happened: events of the training, or what a dump recorded",
     .help = "Of a training process: skipped steps, changes of the loss scale, checkpoints, the\n"
             "beginning and the end of epochs and evaluations, and what commands changed; the\n"
             "newest 1000 are kept. Of a dump: the overflows and errors that it recorded.\n"
             "Lists 40; -a lists all.",
     .flags = CMD_NEEDS_SESSION,
     .run = info_events},
    {.name = "formats",
     .usage = "info formats [PATH | -a]",
     .summary = "Show what was recognised in a dump, where and by which rule, and what was skipped",
     .help = "Shows the selected dump, or PATH without opening it; without either, list the known\n"
             "formats. -a lists all skipped files.",
     .args = {ARG_FILE},
     .run = info_formats},
    {.name = "timing",
     .usage = "info timing [operators | types | shapes | modules | steps | advice] [-a]",
     .summary = "Show where the time goes: parts of a step, operators, and what to change",
     .help =
         "The parts of a step are measured by the clock of the training process, without the time\n"
         "that it was stopped: of the last step, the median of the last 1,024 without the first,\n"
         "and the mean of all. Operators are measured after \"set timing on\". Each advice has\n"
         "its evidence; \"info timing advice\" adds the rules and their thresholds. Bound: "
         "whether\n"
         "an operator waits for memory or computes, by its shapes, against the best rates of the\n"
         "run. -a shows all rows. Of an opened trace, the same report is shown.",
     .examples = "info timing\n"
                 "info timing shapes\n"
                 "info timing advice",
     .args = {ARG_CHOICE},
     .flags = CMD_NEEDS_SESSION,
     .run = info_timing},
    {.name = "model",
     .usage = "info model [MODULE] [-a]",
     .summary = "Show the tree of modules: class, parameters, frozen ones, type, device, size",
     .help =
         "Parameters are counted with those of the modules below; tied ones once. With MODULE,\n"
         "show it and those below. Of C programs and dumps, what the graph has. -a shows all.",
     .examples = "info model\n"
                 "info model model/block0",
     .args = {ARG_SCOPE},
     .flags = CMD_NEEDS_SESSION,
     .run = info_model},
    {.name = "optimizer",
     .aliases = "optim optimizers opt",
     .usage = "info optimizer",
     .summary = "Show the optimizers: groups, rates, options, parameters, state, schedulers",
     .help = "\"set lr\" changes rates. Options that are off are left out.",
     .flags = CMD_NEEDS_SESSION,
     .run = info_optimizer},
    {.name = "lr",
     .usage = "info lr",
     .summary = "Show the learning rate of each group of each optimizer, and the schedulers",
     .help = "The rates are those that the next step uses. \"info history lr\" shows the past.",
     .flags = CMD_NEEDS_SESSION,
     .run = info_lr},
    {.name = "batch",
     .usage = "info batch",
     .summary = "Show the present batch: its tensors, the loader, epoch and number",
     .help = "Shapes and types are those of the batch as the loader returned it. Without a\n"
             "DataLoader, show the tensors of the program's frame.",
     .flags = CMD_NEEDS_SESSION,
     .run = info_batch},
    {.name = "gradients",
     .aliases = "grads grad gradient",
     .usage = "info gradients [SELECTOR] [-a]",
     .summary = "Show the norm and range of each gradient; count those that are missing or bad",
     .help =
         "Gradients are those of the last backward pass, without the scale of a GradScaler.\n"
         "Below the table: the norm of all together, and which weights have no gradient, one of\n"
         "zeros, or one with NaN or Inf. Lists 40; -a lists all.",
     .examples = "info gradients\n"
                 "info gradients -a",
     .args = {ARG_SELECTOR},
     .flags = CMD_NEEDS_SESSION | CMD_NEEDS_STOP,
     .run = info_gradients},
    {.name = "memory",
     .aliases = "mem",
     .usage = "info memory [-a]",
     .summary = "Show who holds the memory: by kind, module and node; peak, growth, limits",
     .help =
         "Bytes of weights, gradients, optimizer state, activations that are kept for the "
         "backward\n"
         "pass, and other tensors; each storage is counted once, views share it. The line is "
         "where\n"
         "the program made it. Growth compares the tensors that outlived the last steps: what "
         "grew\n"
         "in each of them is a leak, with the line that made it and the variable that holds it.\n"
         "The peak within a step is known when operators are observed; \"catch oom\" observes "
         "them.\n"
         "Of a C program or a dump, the shapes of the graph are counted. -a shows all rows.",
     .examples = "info memory\n"
                 "info memory -a",
     .args = {ARG_WORD},
     .flags = CMD_NEEDS_SESSION,
     .run = info_memory},
    {.name = "dump",
     .usage = "info dump",
     .summary = "Show which steps will be dumped and what was written",
     .run = info_dump},
    {.name = "overflows",
     .aliases = "o ov",
     .usage = "info overflows [-a]",
     .summary = "List operators with finite inputs whose output was infinite or NaN",
     .help =
         "Show the inputs and outputs of each, where it was written, the verdict of rerun, and\n"
         "whether overflow detection is on; see \"overflow\". -a includes intended ones, such "
         "as\n"
         "masks of -inf.",
     .examples = "info overflows\n"
                 "info overflows -a",
     .flags = CMD_NEEDS_SESSION | CMD_NEEDS_STOP | CMD_NEEDS_LIVE,
     .run = info_overflows},
    {.name = "log",
     .usage = "info log [N] [-a] [-module M] [-level L]",
     .summary = "Show the last output lines of the training program (20, N, or all that are kept)",
     .help = "In a log file that was opened, its lines. -module and -level show only messages of\n"
             "MindSpore's own log: of a submodule (PARSER), and of a level or above (WARNING).",
     .examples = "info log\n"
                 "info log 100\n"
                 "info log -module PARSER -level WARNING",
     .args = {ARG_WORD},
     .run = info_log},
    {.name = "settings",
     .aliases = "set",
     .usage = "info settings",
     .summary = "List all settings with their values",
     .run = info_settings},
    {.name = "session",
     .usage = "info session",
     .summary = "Show what gradb attach uses: name, process, socket, terminal, on-hangup",
     .run = info_session},
    {.name = NULL},
};

static int run_info(struct command_call *call, struct gd_err *err)
{
    cJSON *list = out_list(out_record(call->out, "info"), "subjects");

    (void)err;
    for (const struct command *sub = info_subs; sub->name; sub++) {
        out_push_text(list, sub->name);
        out_printf(call->out, "info %-12s %s\n", sub->name, sub->summary);
    }
    return GD_OK;
}

const struct command cmd_info = {
    .name = "info",
    .aliases = "i inf",
    .group = "status",
    .usage = "info SUBJECT",
    .summary = "Show the state of the training, its graph, nodes, stacks and timing",
    .examples = "info target\n"
                "info graph\n"
                "info node model/block0/attn/linear",
    .args = {ARG_SUBCOMMAND},
    .flags = CMD_REPEATS,
    .run = run_info,
    .sub = info_subs,
};
