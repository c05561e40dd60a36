// SPDX-License-Identifier: GPL-3.0-or-later
/* info and its subcommands about the session: target, ranks, timing, scalars, log. */
#include <stdlib.h>
#include <string.h>

#include "engine/cache.h"
#include "engine/ranks.h"
#include "repl/core/commands.h"
#include "repl/launch/launch.h"
#include "repl/values/inspect.h"

/* ---- info target --------------------------------------------------------------------------- */

static const struct {
    unsigned bit;
    const char *word;
} capability_words[] = {
    {GD_CAN_STEP, "step"},
    {GD_CAN_NEXT, "next"},
    {GD_CAN_FINISH, "finish"},
    {GD_CAN_INTERRUPT, "interrupt"},
    {GD_CAN_FETCH, "tensors"},
    {GD_CAN_STATS, "statistics"},
    {GD_CAN_PREVIOUS, "previous"},
    {GD_CAN_WATCH_REMOTE, "watch"},
    {GD_CAN_CHECKPOINT, "checkpoint"},
    {GD_CAN_DETACH, "detach"},
    {GD_CAN_KILL, "kill"},
};
#define CAPABILITIES (sizeof(capability_words) / sizeof(capability_words[0]))

static const char *state_text(struct command_call *call, const struct gd_session *session)
{
    const char *text = gd_state_name(session->state);
    if (session->state == GD_STOPPED) {
        text = inspect_printf(call, "%s (%s)", text, gd_stop_reason_name(session->stop.reason));
    }
    if (session->end_text[0]) {
        text = inspect_printf(call, "%s: %s", text, session->end_text);
    }
    return text;
}

/* Where it is stopped; while it runs, and after its end, how far it is known to have come. */
static const char *place_text(struct command_call *call, const struct gd_session *session)
{
    const struct gd_stop *stop = &session->stop;
    const char *text = inspect_printf(call, "%lld", (long long)gd_session_step(session));
    if (gd_session_step(session) != stop->step) {
        return text;
    }
    if (gd_stop_is_before_first(stop)) {
        return "before the first step";
    }
    if (stop->at_step_end) {
        return inspect_printf(call, "%s (between steps)", text);
    }
    if (stop->phase[0]) {
        text = inspect_printf(call, "%s, %s", text, stop->phase);
    }
    if (stop->node_name[0]) {
        text = inspect_printf(call, "%s, at %s", text, stop->node_name);
    }
    return text;
}

/* Who it is and where it stands: what info target and info ranks have in common. */
static void add_session(struct command_call *call, cJSON *record, const struct gd_session *session)
{
    const struct gd_peer *peer = &session->peer;
    const struct gd_stop *stop = &session->stop;
    out_set(record, OUT_INT("session", session->number),
            OUT_BOOL("selected", session == call->debugger->current),
            OUT_BOOL("live", gd_session_is_live(session)),
            OUT_TEXT("state", gd_state_name(session->state)),
            OUT_TEXT("reason", gd_stop_reason_name(stop->reason)),
            OUT_INT("step", gd_session_step(session)), OUT_BOOL("at_step_end", stop->at_step_end),
            OUT_TEXT("node", stop->node_name), OUT_TEXT("phase", stop->phase),
            OUT_TEXT("end", session->end_text), OUT_TEXT("framework", peer->framework),
            OUT_TEXT("version", peer->version), OUT_TEXT("program", peer->program),
            OUT_TEXT("host", peer->host), OUT_TEXT("device", peer->device),
            OUT_TEXT("address", peer->address), OUT_INT("pid", peer->pid),
            OUT_INT("rank", peer->rank), OUT_INT("world_size", peer->world_size));
}

static void add_fact(void *ctx, const char *name, const char *value)
{
    if (value && value[0] != '\0') {
        out_set(ctx, OUT_TEXT(name, value));
    }
}

static cJSON *list_capabilities(const struct gd_target *target)
{
    cJSON *can = cJSON_CreateArray();
    for (size_t i = 0; target && i < CAPABILITIES; i++) {
        if (target->capabilities & capability_words[i].bit) {
            out_push_text(can, capability_words[i].word);
        }
    }
    return can;
}

static int info_target(struct command_call *call, struct gd_err *err)
{
    struct gd_session *session = call->session;
    struct gd_target *target = session->target;
    cJSON *record = out_record(call->out, "target");
    (void)err;
    add_session(call, record, session);
    out_set(record, OUT_INT("cached_bytes", gd_cache_bytes(session->cache)),
            OUT_TEXT("protocol", target ? target->ops->kind : ""),
            OUT_JSON("can", list_capabilities(target)));
    cJSON *facts = out_object(record, "facts");
    if (target && target->ops->describe) {
        target->ops->describe(target, add_fact, facts);
    }
    out_say(call->out, record,
            "Training process {session}:\n"
            "[  target             {protocol}\n]"
            "[  framework          {framework}[ {version}]\n]"
            "[  program            {program}\n]"
            "[  pid                {pid}\n]"
            "[  host               {host}\n]"
            "[  device             {device}\n]"
            "[  address            {address}\n]"
            "[{?ranked}  rank               {rank} of {world_size}\n]"
            "  state              {now}\n"
            "  step               {place}\n"
            "[  can                {can: }\n]",
            OUT_BOOL("ranked", session->peer.world_size > 1),
            OUT_TEXT("now", state_text(call, session)),
            OUT_TEXT("place", place_text(call, session)));
    for (const cJSON *fact = facts->child; fact; fact = fact->next) {
        bool again = strcmp(fact->string, "device") == 0 &&
                     strcmp(fact->valuestring, session->peer.device) == 0;
        out_say(call->out, NULL, "[{!again}  {name:-18} {value}\n]", OUT_BOOL("again", again),
                OUT_TEXT("name", fact->string), OUT_TEXT("value", fact->valuestring));
    }
    out_say(call->out, record, "  cached             {cached_bytes:bytes}\n");
    return GD_OK;
}

/* ---- info ranks ---------------------------------------------------------------------------- */

/* The program without its path and without the end of a long command line. */
static const char *program_name(struct command_call *call, const char *program)
{
    size_t name = strcspn(program, " ");
    while (name > 0 && program[name - 1] != '/') {
        name--;
    }
    const char *text = out_safe(call, program + name);
    return strlen(text) > 28 ? inspect_printf(call, "%.25s...", text) : text;
}

/* By job in order of appearance, then by rank. */
static int compare_rows(const void *a, const void *b)
{
    const struct gd_session *x = *(struct gd_session *const *)a;
    const struct gd_session *y = *(struct gd_session *const *)b;
    bool same_job = gd_ranks_of(x) && gd_ranks_of(x) == gd_ranks_of(y);
    if (same_job && x->peer.rank != y->peer.rank) {
        return x->peer.rank < y->peer.rank ? -1 : 1;
    }
    return x->number < y->number ? -1 : x->number > y->number;
}

/* All sessions in the order of the table; ranks of a job next to each other. */
static struct gd_session **rows_of(struct command_call *call)
{
    const struct gd_debugger *debugger = call->debugger;
    size_t count = debugger->session_count;
    struct gd_session **rows = gd_arena_alloc(call->arena, (count + 1) * sizeof(*rows));
    for (size_t i = 0; rows && i < count; i++) {
        rows[i] = debugger->sessions[i];
    }
    if (rows) {
        qsort(rows, count, sizeof(struct gd_session *), compare_rows);
    }
    return rows;
}

static int info_ranks(struct command_call *call, struct gd_err *err)
{
    static const struct out_column columns[] = {
        {"selected", " ", false, "[{?selected}*]"},
        {"session", "Num", true},
        {"rank", "Rank", false, "{rank}[{?job} of {world_size}]"},
        {"pid", "Pid", true, "[{pid}]"},
        {"host", "Host", false},
        {"device", "Device", false},
        {"state", "State", false},
        {"step", "Step", true},
        {"node", "Node", false, "[{?here}{node}]"},
        {"hits", "Hits", true},
        {"program", "Program", false, "{name}"},
    };
    struct gd_session **rows = rows_of(call);
    size_t count = call->debugger->session_count;
    if (!rows) {
        return gd_fail(err, GD_ENOMEM, "out of memory");
    }
    struct out_table *table =
        out_table_begin(call->out, "ranks", columns, sizeof(columns) / sizeof(columns[0]));
    for (size_t i = 0; i < count; i++) {
        const struct gd_session *session = rows[i];
        cJSON *row = out_row(table);
        add_session(call, row, session);
        out_set(row, OUT_INT("hits", session->hits_dropped + session->hit_count));
        out_put_text(table, OUT_BOOL("job", session->peer.world_size > 1),
                     OUT_BOOL("here", session->state == GD_STOPPED && !session->stop.at_step_end),
                     OUT_TEXT("name", program_name(call, session->peer.program)));
    }
    out_table_end(table);
    if (count == 0) {
        out_printf(call->out, "No training process has connected.\n");
    }
    return GD_OK;
}

/* ---- info scalars -------------------------------------------------------------------------- */

static int info_scalars(struct command_call *call, struct gd_err *err)
{
    static const struct out_column columns[] = {
        {"name", "Name", false}, {"value", "Value", true, "{value:.9}"}, {"step", "Step", true}};
    const struct gd_session *session = call->session;
    (void)err;
    struct out_table *table = out_table_begin(call->out, "scalars", columns, 3);
    for (int i = 0; i < session->scalar_count; i++) {
        const struct gd_scalar *scalar = &session->scalar[i];
        out_put(table, OUT_TEXT("name", scalar->name),
                OUT_NUMERAL("value", repl_scalar_text(call->arena, scalar->value, 9)),
                OUT_INT("step", scalar->step));
    }
    out_table_end(table);
    if (session->scalar_count == 0) {
        out_printf(call->out, "The training process has reported no metrics.\n");
    }
    return GD_OK;
}

/* ---- info log ------------------------------------------------------------------------------ */

static int info_log(struct command_call *call, struct gd_err *err)
{
    int64_t wanted = 20;
    bool all = inspect_take_flag(call, "-a");
    if (call->argc > 0) {
        int rc = arg_count(call->argv[0], 1, INT32_MAX, &wanted, err);
        if (rc != GD_OK) {
            return rc;
        }
    }
    size_t count = launch_log_count(call->repl);
    size_t first = all || count <= (size_t)wanted ? 0 : count - (size_t)wanted;
    if (out_is_json(call->out)) {
        cJSON *record = out_record(call->out, "log");
        cJSON *lines = cJSON_AddArrayToObject(record, "lines");
        for (size_t i = first; i < count; i++) {
            const char *line = inspect_name(call, launch_log_line(call->repl, i));
            cJSON_AddItemToArray(lines, cJSON_CreateString(line));
        }
        inspect_add_count(record, "count", count);
        inspect_add_count(record, "dropped", launch_log_dropped(call->repl));
        return GD_OK;
    }
    if (count == 0) {
        out_printf(call->out, "The trainer has written nothing.\n");
    }
    if (first > 0) {
        out_printf(call->out, "(%s before these: info log -a)\n",
                   inspect_plural(call, first, "line"));
    }
    for (size_t i = first; i < count; i++) {
        out_printf(call->out, "%s\n", out_safe(call, launch_log_line(call->repl, i)));
    }
    return GD_OK;
}

/* ---- the table ----------------------------------------------------------------------------- */

static int info_bare(struct command_call *call, struct gd_err *err);

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
        .run = inspect_info_graph,
    },
    {
        .name = "nodes",
        .usage = "info nodes [SELECTOR] [-a]",
        .summary = "Nodes in execution order, or those that a selector selects",
        .help = "  info nodes\n  info nodes gradients\n  info nodes type:MatMul -a\n",
        .args = {ARG_SELECTOR},
        .flags = CMD_NEEDS_SESSION,
        .run = inspect_info_nodes,
    },
    {
        .name = "node",
        .usage = "info node [NODE]",
        .summary = "One node: type, outputs, inputs, consumers, attributes, source",
        .help = "Without an argument: the current node.\n\n  info node attn/MatMul-op4\n",
        .args = {ARG_NODE},
        .flags = CMD_NEEDS_SESSION,
        .run = inspect_info_node,
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
        .run = inspect_info_scopes,
    },
    {
        .name = "types",
        .usage = "info types",
        .summary = "Operator types with their node counts",
        .help = "  info types\n",
        .flags = CMD_NEEDS_SESSION,
        .run = inspect_info_types,
    },
    {
        .name = "params",
        .aliases = "parameters",
        .usage = "info params [-a]",
        .summary = "Weights and other parameters with shapes and totals",
        .help = "  info params\n",
        .flags = CMD_NEEDS_SESSION,
        .run = inspect_info_params,
    },
    {
        .name = "stack",
        .aliases = "s",
        .usage = "info stack [NODE] [COUNT] [all]",
        .summary = "The stack of source places that made a node (as backtrace)",
        .help = "  info stack attn/MatMul-op4\n",
        .args = {ARG_NODE},
        .flags = CMD_NEEDS_SESSION,
        .run = inspect_info_stack,
    },
    {
        .name = "frame",
        .aliases = "f",
        .usage = "info frame",
        .summary = "The selected frame of the current node's stack",
        .help = "  info frame\n",
        .flags = CMD_NEEDS_SESSION,
        .run = inspect_info_frame,
    },
    {
        .name = "source",
        .usage = "info source [TEXT]",
        .summary = "Source files that made nodes (as sources)",
        .help = "  info source\n",
        .args = {ARG_WORD},
        .flags = CMD_NEEDS_SESSION,
        .run = inspect_info_source,
    },
    {
        .name = "line",
        .usage = "info line FILE:LINE [-a]",
        .summary = "Nodes that a source line made",
        .help = "FILE may be the end of a path.\n\n  info line model.c:42\n",
        .args = {ARG_FILE},
        .flags = CMD_NEEDS_SESSION,
        .run = inspect_info_line,
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
        .run = cmd_info_breakpoints,
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
        .run = cmd_info_watchpoints,
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
        .run = cmd_info_hits,
    },
    {
        .name = "conditions",
        .usage = "info conditions [CONDITION]",
        .summary = "Conditions that watch takes, with their parameters and advice",
        .help = "  info conditions\n  info conditions TL\n",
        .args = {ARG_CONDITION},
        .run = cmd_info_conditions,
    },
    {
        .name = "statistics",
        .aliases = "stats figures",
        .usage = "info statistics",
        .summary = "The figures that expressions of watch are made of",
        .help = "  info statistics\n",
        .run = cmd_info_statistics,
    },
    {
        .name = "display",
        .usage = "info display",
        .summary = "What is displayed at every stop",
        .help = "  info display\n",
        .run = inspect_info_display,
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
        .run = inspect_info_history,
    },
    {
        .name = "steps",
        .usage = "info steps [-a]",
        .summary = "The steps of a dump, with how much was dumped of each",
        .help = "\"goto STEP\", \"step\" and \"reverse-step\" go to them.\n\n  info steps\n",
        .flags = CMD_NEEDS_SESSION,
        .run = inspect_info_steps,
    },
    {
        .name = "events",
        .usage = "info events [-a]",
        .summary = "What a dump tells of overflows and errors, by step",
        .help = "  info events\n",
        .flags = CMD_NEEDS_SESSION,
        .run = inspect_info_events,
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
        .run = inspect_info_formats,
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
        .run = inspect_info_timing,
    },
    {
        .name = "dump",
        .usage = "info dump",
        .summary = "Which steps are dumped as the training passes them, and what was written",
        .help = "  info dump\n",
        .run = inspect_info_dump,
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
        .run = inspect_info_overflows,
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
        .run = cmd_info_settings,
    },
    {
        .name = "session",
        .usage = "info session",
        .summary = "What gradb attach finds: name, process, socket, terminal, on-hangup",
        .help = "  info session\n",
        .run = cmd_info_session,
    },
    {.name = NULL},
};

static int info_bare(struct command_call *call, struct gd_err *err)
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

const struct command cmd_info_table[] = {
    {
        .name = "info",
        .aliases = "i inf",
        .group = "status",
        .usage = "info SUBJECT",
        .summary = "Show what is known: the trainer, its graph, nodes, stacks, timing",
        .help = "  info target\n  info graph\n  info node attn/MatMul-op4\n",
        .args = {ARG_SUBCOMMAND},
        .flags = CMD_REPEATS,
        .run = info_bare,
        .sub = info_subs,
    },
    {.name = NULL},
};
