// SPDX-License-Identifier: GPL-3.0-or-later
/* Commands: rank */
#include <string.h>

#include "engine/ranks.h"
#include "repl/commands/running/running.h"
#include "repl/core/repl_impl.h"

#define MAX_PROCESSES 65536

/* The job of the selected process; NULL: it has none. */
static const struct gd_ranks *job_of(const struct command_call *call)
{
    const struct gd_session *current = call->debugger->current;
    return current ? gd_ranks_of(current) : NULL;
}

/* The numbers of the processes that "all" means: the live ones of the job, else all live ones. */
static int *all_numbers(struct command_call *call, int *count)
{
    const struct gd_debugger *debugger = call->debugger;
    const struct gd_ranks *ranks = job_of(call);
    size_t most = ranks ? (size_t)gd_ranks_world_size(ranks) : debugger->session_count;
    int *numbers = gd_arena_alloc(call->arena, (most + 1) * sizeof(*numbers));

    *count = 0;
    for (size_t i = 0; numbers && i < most; i++) {
        const struct gd_session *session =
            ranks ? gd_ranks_member(ranks, (int)i) : debugger->sessions[i];
        if (session && gd_session_is_live(session)) {
            numbers[(*count)++] = session->number;
        }
    }
    return numbers;
}

static int run_for_one(struct command_call *call, int number, const char *line)
{
    struct gd_session *session = gd_debugger_session(call->debugger, number);

    if (!session || gd_debugger_select(call->debugger, number, NULL) != GD_OK) {
        return GD_OK; /* it has ended meanwhile */
    }
    session_print(call, session);
    out_flush(call->out);
    if (out_is_json(call->out)) { /* the lines that follow belong to this process */
        cJSON *record = cJSON_CreateObject();
        out_set(record, OUT_INT("session", session->number), OUT_INT("rank", session->peer.rank));
        repl_write_json(call->repl, NULL, "rank", record);
    }
    return repl_run_line(call->repl, line, LINE_SCRIPT);
}

struct standing { /* where a process was when `rank all` began */
    uint64_t sequence;
    enum gd_state state;
};

static struct standing *all_standings(struct command_call *call, const int *numbers, int count)
{
    struct standing *was = gd_arena_alloc(call->arena, ((size_t)count + 1) * sizeof(*was));

    for (int i = 0; was && i < count; i++) {
        const struct gd_session *session = gd_debugger_session(call->debugger, numbers[i]);
        was[i] = (struct standing){session->stop.sequence, session->state};
    }
    return was;
}

/* Ranks of a job move together: the command for one rank may have moved the others. */
static bool is_moved(const struct command_call *call, int number, const struct standing *was)
{
    const struct gd_session *session = gd_debugger_session(call->debugger, number);

    return session && gd_ranks_of(session) &&
           call->debugger->settings.rank_locking != GD_LOCKING_ON &&
           (session->stop.sequence != was->sequence || session->state != was->state);
}

/* `rank all CMD`: runs the command once for each live process; moves a job only once. */
static int rank_all(struct command_call *call, const char *line, struct gd_err *err)
{
    int before = call->debugger->current ? call->debugger->current->number : 0;
    int count = 0;
    int rc = GD_OK;

    if (*line == '\0') {
        return gd_fail(err, GD_EUSAGE, "rank all: a command is missing");
    }
    int *numbers = all_numbers(call, &count);
    const struct standing *was = numbers ? all_standings(call, numbers, count) : NULL;
    if (!was) {
        return gd_fail_nomem(err);
    }
    for (int i = 0; i < count && rc == GD_OK && !call->repl->end.quit; i++) {
        if (!is_moved(call, numbers[i], &was[i])) {
            rc = run_for_one(call, numbers[i], line);
        }
    }
    gd_debugger_select(call->debugger, before, NULL);
    if (rc != GD_OK && err) {
        *err = (struct gd_err){.code = rc}; /* already reported */
    }
    return rc;
}

/* The command of "all COMMAND" or gdb's "apply all COMMAND"; NULL: neither. */
static const char *after_all(const char *line)
{
    const char *applied = arg_after(line, "apply");
    return arg_after(applied ? applied : line, "all");
}

static int select_rank(struct command_call *call, const struct gd_ranks *ranks, struct gd_err *err)
{
    int64_t rank = 0;
    int rc = arg_count(call->line, 0, MAX_PROCESSES, &rank, err);
    const struct gd_session *session = rc == GD_OK ? gd_ranks_member(ranks, (int)rank) : NULL;

    if (rc != GD_OK) {
        return rc;
    }
    if (rank >= gd_ranks_world_size(ranks)) {
        return gd_fail(err, GD_ENOTFOUND, "there is no rank %d: the job has ranks 0 to %d",
                       (int)rank, gd_ranks_world_size(ranks) - 1);
    }
    if (!session) {
        return gd_fail(err, GD_ENOTFOUND, "rank %d has not connected; see `info ranks`", (int)rank);
    }
    return gd_debugger_select(call->debugger, session->number, err);
}

/* Without a job, `rank 0` selects what the status line calls "rank 0". */
static int select_alone(struct command_call *call, struct gd_err *err)
{
    const struct gd_debugger *debugger = call->debugger;

    if (strcmp(call->line, "0") != 0) {
        return session_select(call, err);
    }
    const struct gd_session *found = debugger->current;
    for (size_t i = 0; i < debugger->session_count; i++) {
        if (!found || found->peer.rank != 0) {
            found = debugger->sessions[i];
        }
    }
    if (!found || found->peer.rank != 0) {
        return gd_fail(err, GD_ENOTFOUND, "there is no rank 0; see `info ranks`");
    }
    return gd_debugger_select(call->debugger, found->number, err);
}

static int run_rank(struct command_call *call, struct gd_err *err)
{
    const char *all = after_all(call->line), *what = arg_after(call->line, "check");
    const struct gd_ranks *ranks = job_of(call);
    int rc = GD_OK;

    if (all) {
        return rank_all(call, all, err);
    }
    if (what) {
        return rank_check(call, what, err);
    }
    if (call->line[0] != '\0') {
        rc = ranks ? select_rank(call, ranks, err) : select_alone(call, err);
    }
    return rc == GD_OK ? session_show_selected(call, err) : rc;
}

const struct command cmd_rank = {
    .name = "rank",
    .aliases = "thread",
    .group = "running",
    .usage = "rank [N | all COMMAND | check [WHAT]]",
    .summary = "Choose a rank of the job, run a command for each, or compare their tensors",
    .help =
        "N is the rank, from 0, as \"info ranks\" shows it. Processes that do not form one job\n"
        "are chosen by the number in the first column of \"info ranks\", as with \"session\";\n"
        "\"rank 0\" is the process that reports rank 0.\n"
        "\"rank all\" runs a command for each live rank of the job, or each live process.\n"
        "The ranks of a job move together (\"help set rank-locking\"), so \"rank all step\"\n"
        "moves the job once.\n"
        "\"rank check\" compares tensors that must be equal on all ranks, using 64-bit digests\n"
        "that each rank computes locally. WHAT is parameters, optimizer, gradients, buffers,\n"
        "all, or a pattern of names; the default is parameters and optimizer state. Sharded\n"
        "tensors are skipped. gradb --batch exits with status 6 when something differs.",
    .examples = "rank 2\n"
                "rank all print loss\n"
                "rank check\n"
                "rank check *.weight",
    .args = {ARG_RANK, ARG_COMMAND},
    .flags = CMD_RAW,
    .run = run_rank,
};
