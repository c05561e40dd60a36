// SPDX-License-Identifier: GPL-3.0-or-later
/* Running and stopping: continue, step, next, run-to, finish, interrupt, kill, detach, checkpoint.
 * How a training process comes to us is in cmd_start.c. */
#include "engine/ranks.h"
#include "engine/watch/watchpoint.h"
#include "repl/commands/files/dump_live.h"
#include "repl/core/commands.h"
#include "repl/core/repl_impl.h"
#include "repl/launch/launch.h"
#include "repl/values/nodes.h"

#include <stdlib.h>
#include <string.h>

#define GO (CMD_NEEDS_STOP | CMD_NEEDS_LIVE)

void repl_state_record(struct command_call *call)
{
    const struct gd_session *session = call->session;
    cJSON *record = out_record(call->out, "run");

    cJSON_AddNumberToObject(record, "session", session->number);
    cJSON_AddStringToObject(record, "state", gd_state_name(session->state));
    if (session->state == GD_STOPPED) {
        cJSON_AddStringToObject(record, "reason", gd_stop_reason_name(session->stop.reason));
    }
    cJSON_AddNumberToObject(record, "step", (double)gd_session_step(session));
}

#define INITIAL_SECONDS 10 /* that the check of initial weights may hold up a run */

/* Of the session, or of all ranks of its job. */
static bool initial_is_done(void *ctx)
{
    const struct gd_session *session = ctx;
    const struct gd_ranks *ranks = gd_ranks_of(session);

    for (int rank = 0; ranks && rank < gd_ranks_world_size(ranks); rank++) {
        const struct gd_session *member = gd_ranks_member(ranks, rank);
        if (member && gd_session_is_live(member) && gd_watch_is_busy(member)) {
            return false;
        }
    }
    return !gd_watch_is_busy(session);
}

int repl_wait_initial(struct repl *repl, struct gd_session *session, struct gd_err *err)
{
    return repl_wait(repl, initial_is_done, session, INITIAL_SECONDS) == GD_EINTR
               ? gd_fail(err, GD_EINTR, "interrupted while the initial weights were checked")
               : GD_OK;
}

int repl_resume(struct command_call *call, const struct gd_run *run, struct gd_err *err)
{
    if (repl_wait_initial(call->repl, call->session, err) != GD_OK) {
        return GD_EINTR;
    }
    out_flush(call->out); /* the stop may be told before this returns */
    int number = call->session->number;
    uint64_t before = call->session->stop.sequence;
    const struct gd_ranks *ranks =
        gd_ranks_move_together(call->session, run->kind) ? gd_ranks_of(call->session) : NULL;
    uint64_t settled = ranks ? gd_ranks_settled(ranks) : 0;
    struct gd_run aimed = *run;
    repl_dump_aim(call->repl, call->session, &aimed);
    int rc = gd_ranks_resume(call->session, &aimed, err);

    bool whole_job = call->repl->options.batch && run->kind == GD_RUN_CONTINUE &&
                     !call->repl->in_stop_body && call->repl->stop_session == 0;
    if (rc == GD_OK) {
        call->repl->whole_job = whole_job;
        rc = ranks ? repl_wait_ranks(call, settled, err) : repl_wait_stop(call, before, err);
        call->repl->whole_job = false;
    }
    call->session =
        ranks || whole_job ? call->debugger->current : gd_debugger_session(call->debugger, number);
    if (rc == GD_OK && call->session && out_is_json(call->out)) {
        repl_state_record(call);
    }
    return rc;
}

static int at_most_one(struct command_call *call, struct gd_err *err)
{
    if (call->argc > 1) {
        return gd_fail(err, GD_EUSAGE, "%s: \"%.60s\" is one argument too many",
                       call->command->name, call->argv[1]);
    }
    return GD_OK;
}

static int optional_count(struct command_call *call, int64_t *ret, struct gd_err *err)
{
    *ret = 1;
    int rc = at_most_one(call, err);
    if (rc == GD_OK && call->argc == 1) {
        rc = arg_count(call->argv[0], 1, INT64_MAX, ret, err);
    }
    return rc;
}

/* As gdb: continue N passes the breakpoint just hit N - 1 times. */
static void ignore_crossings(struct command_call *call, int64_t count)
{
    bool any = false;

    for (struct gd_breakpoint *b = call->debugger->breakpoints; b; b = b->next) {
        if (b->caused && call->session->stop.reason == GD_STOP_BREAKPOINT) {
            b->ignore = (uint64_t)(count - 1);
            any = true;
            out_printf(call->out, "Breakpoint %d lets %lld more pass. ", b->number,
                       (long long)(count - 1));
        }
    }
    if (!any) {
        out_printf(call->out, "No breakpoint stopped it: the count means nothing here.\n");
    }
}

static int run_continue(struct command_call *call, struct gd_err *err)
{
    struct gd_run run = {.kind = GD_RUN_CONTINUE, .node = GD_NO_NODE};
    int64_t count = 1;
    int rc = optional_count(call, &count, err);

    if (rc != GD_OK) {
        return rc;
    }
    if (count > 1) {
        ignore_crossings(call, count);
    }
    if (!call->repl->in_stop_body) { /* a silent breakpoint that goes on says nothing */
        out_printf(call->out, "Continuing.\n");
    }
    return repl_resume(call, &run, err);
}

static int run_step(struct command_call *call, struct gd_err *err)
{
    struct gd_run run = {.kind = GD_RUN_STEP, .node = GD_NO_NODE};
    int rc = optional_count(call, &run.count, err);
    return rc == GD_OK ? repl_resume(call, &run, err) : rc;
}

static int run_reverse_step(struct command_call *call, struct gd_err *err)
{
    struct gd_run run = {.kind = GD_RUN_BACK, .node = GD_NO_NODE};
    int rc = optional_count(call, &run.count, err);
    return rc == GD_OK ? repl_resume(call, &run, err) : rc;
}

static int run_goto(struct command_call *call, struct gd_err *err)
{
    struct gd_run run = {.kind = GD_RUN_GOTO, .node = GD_NO_NODE};

    if (call->argc != 1) {
        return gd_fail(err, GD_EUSAGE, "goto: the number of one step is needed");
    }
    int rc = arg_count(call->argv[0], INT64_MIN + 1, INT64_MAX, &run.count, err);
    return rc == GD_OK ? repl_resume(call, &run, err) : rc;
}

static int run_next(struct command_call *call, struct gd_err *err)
{
    struct gd_run run = {.kind = GD_RUN_NEXT, .node = GD_NO_NODE};
    int rc = optional_count(call, &run.count, err);
    return rc == GD_OK ? repl_resume(call, &run, err) : rc;
}

static int run_to(struct command_call *call, struct gd_err *err)
{
    struct gd_run run = {.kind = GD_RUN_TO_NODE, .node = GD_NO_NODE};
    struct gd_graph_counts counts;

    if (call->argc != 1) {
        return gd_fail(err, GD_EUSAGE, "%s: the name of one node is needed", call->command->name);
    }
    int rc = arg_node(call, call->argv[0], &run.node, err);
    rc = rc == GD_OK ? nodes_must_run(call, run.node, err) : rc;
    gd_graph_counts(call->session->graph, &counts);
    if (rc == GD_ENOTFOUND && counts.nodes == 0) {
        run.name = call->argv[0]; /* a process that sent no graph knows its nodes all the same */
        rc = GD_OK;
    }
    return rc == GD_OK ? repl_resume(call, &run, err) : rc;
}

static int run_finish(struct command_call *call, struct gd_err *err)
{
    struct gd_run run = {.kind = GD_RUN_FINISH, .node = GD_NO_NODE};
    int rc = call->argc == 0 ? GD_OK : gd_fail(err, GD_EUSAGE, "finish: takes no argument");
    return rc == GD_OK ? repl_resume(call, &run, err) : rc;
}

static int run_interrupt(struct command_call *call, struct gd_err *err)
{
    const struct gd_ranks *ranks = gd_ranks_of(call->session);
    bool together = ranks && gd_ranks_are_busy(ranks);

    if (!gd_ranks_is_running(call->session)) {
        return gd_fail(err, GD_ESTATE, "the training is not running (%s)",
                       gd_state_name(call->session->state));
    }
    uint64_t before = call->session->stop.sequence;
    uint64_t settled = together ? gd_ranks_settled(ranks) : 0;
    repl_dump_interrupted(call->repl);
    int rc = gd_ranks_interrupt(call->session, err);
    if (rc == GD_OK && !call->repl->options.interactive) { /* a script goes on when it stands */
        rc = together ? repl_wait_ranks(call, settled, err) : repl_wait_stop(call, before, err);
    }
    return rc;
}

/* ---- the end ---- */

/* Does the same to the other ranks of the job, where commands move them together. What one of them
 * cannot is a warning. Returns how many did it. */
static int for_other_ranks(struct command_call *call, struct gd_session *session,
                           int (*fn)(struct gd_target *target, struct gd_err *err))
{
    const struct gd_ranks *ranks = gd_ranks_of(session);
    int done = 0;

    if (!gd_ranks_move_together(session, GD_RUN_CONTINUE)) {
        return 0;
    }
    for (int rank = 0; rank < gd_ranks_world_size(ranks); rank++) {
        const struct gd_session *other = gd_ranks_member(ranks, rank);
        struct gd_err why;
        if (!other || other == session || !gd_session_is_live(other)) {
            continue;
        }
        if (fn(other->target, &why) == GD_OK) {
            done++;
        } else {
            repl_printf(call->repl, true, "warning: [rank %d] %s\n", rank, why.text);
        }
    }
    return done;
}

#define END_PATIENCE                                                                               \
    10.0 /* seconds for the rest of the step, and for what is saved then; or Ctrl-C */

struct ending { /* the end of a training, and of the others of its job */
    const struct gd_session *session;
    uint64_t
        *sequence; /* by rank: of the stop that it was let go from; NULL: it is not asked again */
    int count;
};

static const struct gd_session *member(const struct ending *ending, int rank)
{
    const struct gd_ranks *ranks = gd_ranks_of(ending->session);
    return !ranks ? ending->session : gd_ranks_member(ranks, rank);
}

static void ending_begin(struct ending *ending, const struct gd_session *session)
{
    const struct gd_ranks *ranks = gd_ranks_of(session);
    ending->session = session;
    ending->count = ranks ? gd_ranks_world_size(ranks) : 1;
    ending->sequence = calloc((size_t)ending->count, sizeof(*ending->sequence));
    for (int rank = 0; ending->sequence && rank < ending->count; rank++) {
        const struct gd_session *one = member(ending, rank);
        ending->sequence[rank] = one ? one->stop.sequence : 0;
    }
}

/* What fires in the rest of the step does not keep a training from its end. */
static void let_go(const struct ending *ending)
{
    struct gd_err why;
    for (int rank = 0; ending->sequence && rank < ending->count; rank++) {
        const struct gd_session *one = member(ending, rank);
        if (one && one->state == GD_STOPPED && one->stop.sequence != ending->sequence[rank]) {
            ending->sequence[rank] = one->stop.sequence;
            gd_target_kill(one->target, &why); /* one that cannot is ended with its process */
        }
    }
}

/* With all ranks of its job, where commands move them together. */
static bool session_over(void *ctx)
{
    const struct ending *ending = ctx;
    const struct gd_session *session = ending->session;
    const struct gd_ranks *ranks = gd_ranks_of(session);
    bool alone = session->debugger->settings.rank_locking == GD_LOCKING_ON;
    let_go(ending);
    return !gd_session_is_live(session) && (!ranks || alone || gd_ranks_live(ranks) == 0);
}

/* Asks it to end, and waits a moment. False: it cannot be asked. */
static bool end_training(struct command_call *call, struct gd_session *session)
{
    struct ending ending;
    struct gd_err why;
    if ((session->target->capabilities & GD_CAN_KILL) == 0) {
        return false;
    }
    ending_begin(&ending, session);
    bool asked = gd_target_kill(session->target, &why) == GD_OK;
    if (asked) {
        for_other_ranks(call, session, gd_target_kill);
        repl_wait(call->repl, session_over, &ending, END_PATIENCE);
        launch_wait(call->repl, END_PATIENCE); /* it may have something to save */
    }
    free(ending.sequence);
    return asked;
}

static int run_kill(struct command_call *call, struct gd_err *err)
{
    struct gd_session *session = call->debugger->current;
    bool live = session && gd_session_is_live(session);

    if (!live && !launch_is_running(call->repl)) {
        return gd_fail(err, GD_ESTATE, "no training process is running");
    }
    if (!repl_confirm(call, "End the training process?")) {
        return GD_OK;
    }
    out_flush(call->out);
    call->repl->muted = true;
    int rc = GD_OK;
    if (live && !end_training(call, session) && !launch_is_running(call->repl)) {
        rc = gd_target_kill(session->target, err);
    }
    launch_kill(call->repl);
    call->repl->muted = false;
    if (rc == GD_OK) {
        out_printf(call->out, "The training process was ended.\n");
    }
    return rc;
}

bool repl_ends_without_us(const struct gd_session *session)
{
    return session->target && strcmp(session->target->ops->kind, "mindspore") == 0;
}

static int run_detach(struct command_call *call, struct gd_err *err)
{
    struct gd_session *session = call->session;
    bool needs_us = repl_ends_without_us(session);
    bool muted = call->repl->muted;
    int number = session->number;
    struct ending ending = {.session = session};

    call->repl->muted = true; /* "the training ended" would be untrue */
    int others = for_other_ranks(call, session, gd_target_detach);
    int rc = gd_target_detach(session->target, err);
    if (rc == GD_OK) {
        repl_wait(call->repl, session_over, &ending, 2.0);
        launch_detach(call->repl);
        const char *output = launch_output_path(call->repl);
        if (output[0] != '\0') {
            out_printf(call->out, "Output of %s: %s\n", out_safe(call, launch_program(call->repl)),
                       out_safe(call, output));
        }
        if (others > 0) {
            out_printf(call->out, "Detached: %d ranks run on.\n", others + 1);
        } else {
            out_printf(call->out, "Detached: training process %d runs on%s.\n", number,
                       needs_us ? " while gradb does" : "");
        }
        if (needs_us) {
            call->repl->left_behind = true;
            out_printf(call->out, "A MindSpore process ends itself about 15 s after its debugger "
                                  "is gone: keep gradb open.\n");
        }
    }
    call->repl->muted = muted;
    return rc;
}

static int run_checkpoint(struct command_call *call, struct gd_err *err)
{
    int rc = gd_target_checkpoint(call->session->target, err);
    if (rc == GD_OK) {
        for_other_ranks(call, call->session, gd_target_checkpoint);
        out_printf(call->out, "The training process saves a checkpoint at the end of a step, and "
                              "then says where.\n");
    }
    return rc;
}

const struct command cmd_run_table[] = {
    {.name = "continue",
     .aliases = "c cont fg",
     .group = "running",
     .usage = "continue [N] [&]",
     .summary = "Let the training run until something stops it",
     .help =
         "With N, the breakpoint that stopped it is passed N - 1 times first. With &, the prompt\n"
         "comes back at once; while it runs, values are not to be had: \"interrupt\" stops it.\n"
         "With --batch there is no prompt, and & waits, too: until a process stops, or until all\n"
         "processes and the program that run started have ended. Ctrl-C stops the training. In a\n"
         "dump: to the next step in which a watchpoint fires, evaluated from the values on the "
         "disk.",
     .args = {ARG_WORD},
     .flags = GO | CMD_REPEATS,
     .run = run_continue},
    {.name = "step",
     .aliases = "s",
     .group = "running",
     .usage = "step [N] [&]",
     .summary = "Run N training steps, then stop",
     .help = "Without N, one step. A breakpoint on the way stops earlier. In a dump: to the next\n"
             "step that was dumped.\n"
             "Examples:\n"
             "  step\n"
             "  step 100",
     .args = {ARG_WORD},
     .flags = GO | CMD_REPEATS,
     .run = run_step},
    {.name = "reverse-step",
     .aliases = "rs",
     .group = "running",
     .usage = "reverse-step [N]",
     .summary = "Go back N steps of a dump",
     .help = "Without N, one step. Nothing is evaluated on the way back. A training that runs\n"
             "cannot go back.\n"
             "Example:\n"
             "  reverse-step 2",
     .args = {ARG_WORD},
     .flags = GO | CMD_REPEATS,
     .run = run_reverse_step},
    {.name = "goto",
     .group = "running",
     .usage = "goto STEP",
     .summary = "Go to a step of a dump",
     .help =
         "\"info steps\" lists them. All ranks of the dump go there, unless rank-locking is on;\n"
         "one that lacks the step goes to the last that it has before it.\n"
         "Example:\n"
         "  goto 100",
     .args = {ARG_WORD},
     .flags = GO,
     .run = run_goto},
    {.name = "next",
     .aliases = "n",
     .group = "running",
     .usage = "next [N] [&]",
     .summary = "Run N nodes in execution order, then stop",
     .help = "Without N, one node. Not every training process can stop at a node; it says so then.",
     .args = {ARG_WORD},
     .flags = GO | CMD_REPEATS,
     .run = run_next},
    {.name = "run-to",
     .aliases = "until u advance",
     .group = "running",
     .usage = "run-to NODE [&]",
     .summary = "Run until a node has executed",
     .help = "Example:\n"
             "  run-to Default/network/loss/Log-op49",
     .args = {ARG_NODE},
     .flags = GO | CMD_REPEATS,
     .run = run_to},
    {.name = "finish",
     .aliases = "fin",
     .group = "running",
     .usage = "finish [&]",
     .summary = "Run to the end of the current phase: forward, backward or optimizer",
     .help = "Not every training process knows its phases; it says so then.",
     .flags = GO | CMD_REPEATS,
     .run = run_finish},
    {.name = "interrupt",
     .aliases = "int",
     .group = "running",
     .usage = "interrupt",
     .summary = "Stop a training that runs in the background",
     .help =
         "It stops as soon as it can, at the next node or the end of the step. Ctrl-C does the\n"
         "same to a training that runs in the foreground.",
     .flags = CMD_NEEDS_LIVE,
     .run = run_interrupt},
    {.name = "kill",
     .aliases = "k",
     .group = "running",
     .usage = "kill",
     .summary = "End the training process",
     .help =
         "It is asked to end at the end of its step, as Ctrl-C would, so that it may save\n"
         "something. A program that \"run\" started is ended when it takes ten seconds for that,\n"
         "or at Ctrl-C.",
     .flags = CMD_CHANGES,
     .run = run_kill},
    {.name = "detach",
     .group = "running",
     .usage = "detach",
     .summary = "Let go of the training process; it runs on without the debugger",
     .help = "What was learned of it stays readable. A MindSpore process runs on only as long as\n"
             "gradb does: it ends itself about 15 s after its debugger is gone.",
     .flags = CMD_NEEDS_LIVE | CMD_CHANGES,
     .run = run_detach},
    {.name = "checkpoint",
     .group = "running",
     .usage = "checkpoint",
     .summary = "Ask the training process to save a checkpoint",
     .help = "It saves at the end of a step; the path of the file is shown then. A PyTorch script\n"
             "saves SCRIPT.stepN.pt in its current directory, beside itself where that cannot be\n"
             "written, or with its own function (gradb.torch.on_checkpoint). A C program chooses\n"
             "the place itself.",
     .flags = CMD_NEEDS_LIVE | CMD_CHANGES,
     .run = run_checkpoint},
    {.name = NULL},
};
