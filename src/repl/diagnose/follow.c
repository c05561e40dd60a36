// SPDX-License-Identifier: GPL-3.0-or-later
#include "repl/diagnose/follow.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/event/happening.h"
#include "engine/ranks.h"
#include "engine/watch/condition.h"
#include "engine/watch/expected.h"
#include "engine/watch/watchpoint.h"
#include "engine/why/why.h"
#include "repl/commands/breakpoints/why_find.h"
#include "repl/core/everyone.h"
#include "repl/core/hits.h"
#include "repl/core/repl_impl.h"
#include "repl/diagnose/rule.h"
#include "repl/values/stacks.h"

#define FIRST_CHUNK       8    /* steps until evidence is collected for the first time */
#define LONGEST_CHUNK     4096 /* and at most between two times: a killed process gives no last one */
#define OVERFLOWS         4    /* operators that made a non-finite value, at which `why` is asked */
#define EXACT_STEP        0.05 /* seconds: in longer steps the exact search costs too much */
#define INTERRUPT_SECONDS 10
#define MOST_WATCHPOINTS  16
#define STILL_STEPS       5  /* in which a weight does not change, or an activation is saturated */
#define LEFT_SECONDS      10 /* until a rank notices that another one has left */
#define LEAST_LEAP        4  /* deviations of the losses before */
#define MOST_SLOPING      10 /* percent of a saturated activation's results */

/* The state of one diagnosis. The session is looked up by number after each wait. */
struct follow {
    struct command_call *call;
    struct diagnose_run *run;
    int number;
    int64_t begun;               /* the step at which it began */
    double deadline;             /* by gd_debugger.now; 0: none */
    int end;                     /* the catchpoint of the end */
    int watch[MOST_WATCHPOINTS]; /* in a process without watchers: by number */
    int watch_count;
    bool exact;             /* overflows are looked for */
    bool theirs;            /* because the user asked for it before */
    const char *exceptions; /* which ones stopped the training before; NULL: the same as now */
    int asked;              /* answers of `why` about overflows */
};

static struct gd_session *session_of(const struct follow *f)
{
    return gd_debugger_session(f->call->debugger, f->number);
}

static double get_time(const struct follow *f)
{
    const struct gd_debugger *debugger = f->call->debugger;
    return debugger->now ? debugger->now(debugger->now_ctx) : 0;
}

/* ---- evidence -------------------------------------------------------------------------------- */

static int ask_process(struct follow *f, const char *command, const char *words, cJSON **ret,
                       struct gd_err *err)
{
    const char *text = NULL;
    int rc = repl_command(f->call, command, words, GD_NO_NODE, &text, err);

    *ret = rc == GD_OK ? cJSON_Parse(text) : NULL;
    if (rc == GD_OK && !cJSON_IsObject(*ret)) {
        cJSON_Delete(*ret);
        *ret = NULL;
        return gd_fail(err, GD_EPROTO, "the training process sent a malformed reply");
    }
    return rc;
}

static void ignore_reply(void *ctx, struct gd_session *session, const cJSON *reply)
{
    (void)ctx;
    (void)session;
    (void)reply;
}

/* Sends it to the processes of the followed job, but not to those of other trainings. */
static int tell_job(struct command_call *call, const char *command, const char *words,
                    struct gd_err *err)
{
    int refused;

    return job_command(call, command, words, ignore_reply, NULL, &refused, err);
}

/* What a stop has shown, which no watcher reports again. */
static bool is_lasting(const cJSON *piece)
{
    const char *kind = out_text_of(piece, "kind");
    return strncmp(kind, "why-", 4) == 0 || strcmp(kind, "exception") == 0;
}

/* Replaces what the watchers of that rank have reported so far; answers of `why` stay, and so does
 * what other ranks have reported. */
static void take_evidence(struct follow *f, int given, cJSON *report)
{
    int rank = given > 0 ? given : 0; /* a process alone has none */
    cJSON *kept = cJSON_CreateArray(), *old = f->run->pieces;
    cJSON *fresh = cJSON_DetachItemFromObject(report, "evidence");
    bool selected = session_of(f) && session_of(f)->peer.rank == given;

    while (old && old->child) {
        cJSON *piece = cJSON_DetachItemFromArray(old, 0);
        if (is_lasting(piece) || (int)out_number_of(piece, "rank") != rank) {
            cJSON_AddItemToArray(kept, piece);
        } else {
            cJSON_Delete(piece);
        }
    }
    while (fresh && fresh->child) {
        cJSON *piece = cJSON_DetachItemFromArray(fresh, 0);
        out_set(piece, OUT_IF(rank > 0, OUT_INT("rank", rank)));
        cJSON_AddItemToArray(kept, piece);
    }
    cJSON_Delete(old);
    cJSON_Delete(fresh);
    f->run->pieces = kept;
    if (selected) { /* its numbers are those of one rank */
        cJSON_Delete(f->run->looked_at);
        f->run->looked_at = report;
    } else {
        cJSON_Delete(report);
    }
}

static void take_from_rank(void *ctx, struct gd_session *session, const cJSON *reply)
{
    take_evidence(ctx, session->peer.rank, cJSON_Duplicate(reply, true));
}

static int collect_evidence(struct follow *f, struct gd_err *err)
{
    cJSON *report = f->watch_count > 0 ? cJSON_CreateObject() : NULL;

    if (report) { /* it has no watchers */
        out_set(report, OUT_INT("steps", gd_session_step(session_of(f)) - f->begun),
                OUT_BOOL("watched", true), OUT_BOOL("broad", f->watch_count > 1));
        cJSON_Delete(f->run->looked_at);
        f->run->looked_at = report;
        return GD_OK;
    }
    const struct gd_stop *stop = &session_of(f)->stop;
    bool ended = stop->reason == GD_STOP_EVENT && stop->happened.kind == GD_HAPPENED_END;
    const char *words = ended ? "ended" : "";
    int refused, rank = session_of(f)->peer.rank;
    if (gd_ranks_of(session_of(f)) && job_is_stopped(session_of(f))) {
        return job_command(f->call, "evidence", words, take_from_rank, f, &refused, err);
    }
    int rc = ask_process(f, "evidence", words, &report, err);

    if (rc == GD_OK) {
        take_evidence(f, rank, report);
    }
    return rc;
}

/* The first sentence becomes "text", the others "more". */
static void split_text(cJSON *piece)
{
    char *text = strdup(out_text_of(piece, "text"));
    char *end = text ? strstr(text, ". ") : NULL;

    while (end && !isupper((unsigned char)end[2])) {
        end = strstr(end + 1, ". ");
    }
    if (end) {
        *end = '\0';
        out_set(piece, OUT_TEXT("more", end + 2));
    } else if (text && text[0] != '\0' && text[strlen(text) - 1] == '.') {
        text[strlen(text) - 1] = '\0';
    }
    cJSON_DeleteItemFromObject(piece, "text");
    out_set(piece, OUT_TEXT("text", text ? text : ""));
    free(text);
}

/* A rate that explains an overflow comes after it in the text, but is the cause. */
static void turn_around(cJSON *piece)
{
    if (strcmp(out_text_of(piece, "rule"), "learning-rate") == 0 &&
        strncmp(out_text_of(piece, "more"), "The learning rate", 17) == 0) {
        cJSON *first = cJSON_DetachItemFromObject(piece, "text");
        cJSON_AddItemToObject(piece, "text", cJSON_DetachItemFromObject(piece, "more"));
        cJSON_AddItemToObject(piece, "more", first);
    }
}

/* Forgets what `why` has said about that. */
static void drop_kind(cJSON *pieces, const char *kind)
{
    for (int i = cJSON_GetArraySize(pieces); i-- > 0;) {
        if (strcmp(out_text_of(cJSON_GetArrayItem(pieces, i), "kind"), kind) == 0) {
            cJSON_DeleteItemFromArray(pieces, i);
        }
    }
}

/* Asks `why` at this stop; an answer without a cause is not evidence. */
static void ask_why(struct follow *f, const char *kind, const char *about)
{
    struct own_call own;
    struct gd_err ignored;
    cJSON *piece = cJSON_CreateObject();
    const char *argv[] = {about, NULL};
    static const struct command hook = {.name = "why"};
    struct command_call *call = repl_begin_call(&own, f->call->repl, &hook, session_of(f));

    call->argv = (char **)argv;
    call->argc = about ? 1 : 0;
    out_set(piece, OUT_TEXT("kind", kind));
    bool found = why_find(call, piece, &ignored) == GD_OK;
    /* without a rule it says at least where a value that is not finite comes from */
    const char *needed = diagnose_is(piece, "nonfinite") ? "node" : "rule";
    if (found && out_text_of(piece, needed)[0] != '\0') {
        split_text(piece);
        turn_around(piece);
        cJSON_AddItemToArray(f->run->pieces, piece);
    } else {
        cJSON_Delete(piece);
    }
    out_report_end(&own.report);
}

/* The place that ends the text of an exception: "(train.py:10 in <module>)". */
static void add_place_of_text(cJSON *piece, const char *text)
{
    const char *last = NULL;
    char file[256];
    int line = 0;

    for (const char *at = strstr(text, " ("); at; at = strstr(at + 2, " (")) {
        last = at;
    }
    if (last && sscanf(last, " (%255[^:():]:%d in ", file, &line) == 2) {
        out_set(piece, OUT_TEXT("file", file), OUT_INT("line", line));
    }
}

/* The exception that ends the training, with the innermost line of the user's own code. */
static void add_exception(struct follow *f)
{
    struct command_call *call = f->call;
    struct stack_places places;
    uint32_t own = 0;
    cJSON *piece = out_push(f->run->pieces);

    call->session = session_of(f);
    out_set(piece, OUT_TEXT("kind", "exception"), OUT_TEXT("text", call->session->stop.text),
            OUT_INT("step", call->session->stop.step));
    if (stack_places(call, GD_NO_NODE, &places, NULL) == GD_OK && stack_own_frame(&places, &own)) {
        const struct gd_frame *frame = &places.frame[places.place[own]];
        out_set(piece, OUT_TEXT("file", frame->file), OUT_INT("line", frame->line));
    } else {
        add_place_of_text(piece, call->session->stop.text);
    }
}

/* ---- moving ---------------------------------------------------------------------------------- */

static bool is_still(void *ctx)
{
    const struct follow *f = ctx;
    const struct gd_session *session = session_of(f);

    if (f->call->repl->options.batch && session) {
        repl_let_others_run(f->call->repl, session);
    }
    return !session || !gd_ranks_is_running(session);
}

/* Resumes and waits. GD_ETIMEOUT: the time is over, and it is stopped; GD_EINTR the same. */
static int move_on(struct follow *f, const struct gd_run *run, struct gd_err *err)
{
    int rc = gd_ranks_resume(session_of(f), run, err);
    double left = f->deadline > 0 ? f->deadline - get_time(f) : -1;

    if (rc != GD_OK) {
        return rc;
    }
    rc = repl_wait(f->call->repl, is_still, f, f->deadline > 0 && left < 0 ? 0 : left);
    if (rc == GD_EINTR || rc == GD_ETIMEOUT) {
        if (session_of(f) && gd_session_is_live(session_of(f))) {
            gd_ranks_interrupt(session_of(f), NULL);
            repl_wait(f->call->repl, is_still, f, INTERRUPT_SECONDS);
        }
        f->run->interrupted = rc == GD_EINTR;
    }
    f->call->session = session_of(f);
    return rc;
}

static bool is_over(const struct follow *f)
{
    const struct gd_session *session = session_of(f);

    return !session || !gd_session_is_live(session);
}

/* How many steps to run before evidence is collected again. */
static int64_t next_chunk(const struct follow *f)
{
    int64_t done = session_of(f)->stop.step - f->begun;
    int64_t chunk = done < FIRST_CHUNK ? FIRST_CHUNK - done : done;
    int64_t left = f->run->steps > 0 ? f->run->steps - done : INT64_MAX;

    chunk = chunk > LONGEST_CHUNK ? LONGEST_CHUNK : chunk;
    return chunk < left ? chunk : left;
}

/* After the first steps: whether they are short enough for the exact search. */
static void weigh_exact(struct follow *f, double seconds)
{
    struct gd_err ignored;

    if (f->exact && !f->theirs && seconds > FIRST_CHUNK * EXACT_STEP &&
        tell_job(f->call, "overflow", "off", &ignored) == GD_OK) {
        f->exact = false;
    }
}

/* The hit of this stop is about values that are not finite. */
static bool is_overflow(const struct gd_session *session)
{
    for (size_t i = session->hit_count; i-- > hits_first_of_stop(session);) {
        if (gd_why_of_hit(&session->hits[i]) == GD_BAD_NONFINITE) {
            return true;
        }
    }
    return false;
}

/* At a stop on the way. Returns whether to continue. */
static bool look_around(struct follow *f, struct gd_err *err)
{
    const struct gd_stop *stop = &session_of(f)->stop;
    bool ends = stop->reason == GD_STOP_EVENT && stop->happened.kind == GD_HAPPENED_END;

    if (stop->reason == GD_STOP_EXCEPTION) {
        f->run->raised = true;
        ask_why(f, "why-exception", NULL);
        add_exception(f);
        collect_evidence(f, err);
        return false;
    }
    if (stop->reason == GD_STOP_HIT && !is_overflow(session_of(f))) {
        ask_why(f, "why-hit", NULL);
        return true;
    }
    if (stop->reason == GD_STOP_PROGRAM || stop->reason == GD_STOP_HIT) {
        if (f->asked++ < OVERFLOWS) {
            ask_why(f, "why-overflow", NULL);
        }
        return true;
    }
    collect_evidence(f, err);
    if (stop->reason == GD_STOP_STEP) { /* the newest answer counts */
        drop_kind(f->run->pieces, "why-loss");
        ask_why(f, "why-loss", "loss");
    }
    bool done = f->run->steps > 0 && stop->step - f->begun >= f->run->steps;
    f->run->ended = ends;
    return !ends && !done && stop->reason != GD_STOP_INTERRUPT;
}

/* A rank that has not stopped, although the followed one has ended; NULL: none. */
static struct gd_session *find_left(const struct follow *f)
{
    const struct gd_ranks *ranks = gd_ranks_of(session_of(f));

    for (int rank = 0; ranks && rank < gd_ranks_world_size(ranks); rank++) {
        struct gd_session *member = gd_ranks_member(ranks, rank);
        if (member && gd_session_is_live(member) && member->state == GD_RUNNING) {
            return member;
        }
    }
    return NULL;
}

/* The followed rank has ended, and another one may wait for it in a collective: lets the first one
 * leave, and looks at how the other one ends. */
static void follow_left(struct follow *f)
{
    struct gd_run run = {.kind = GD_RUN_CONTINUE, .node = GD_NO_NODE};
    const struct gd_session *left = session_of(f) ? find_left(f) : NULL;
    struct gd_err ignored;

    if (!left || gd_ranks_resume(session_of(f), &run, &ignored) != GD_OK) {
        return;
    }
    int64_t last = session_of(f)->stop.step;
    int rank = session_of(f)->peer.rank;
    f->number = left->number;
    f->call->repl->job.drives[0] = f->number;
    repl_wait(f->call->repl, is_still, f, LEFT_SECONDS);
    const struct gd_session *session = session_of(f);
    if (session && session->state == GD_STOPPED && session->stop.reason == GD_STOP_EXCEPTION &&
        session->stop.step > last) {
        f->run->raised = true;
        add_exception(f);
        cJSON *pieces = f->run->pieces;
        out_set(cJSON_GetArrayItem(pieces, cJSON_GetArraySize(pieces) - 1),
                OUT_INT("ended_rank", rank), OUT_INT("ended_step", last),
                OUT_INT("rank", session->peer.rank));
    }
}

static int follow_run(struct follow *f, struct gd_err *err)
{
    double began = get_time(f);
    bool weighed = false;

    for (;;) {
        struct gd_run run = {.kind = GD_RUN_STEP, .count = next_chunk(f), .node = GD_NO_NODE};
        int rc = move_on(f, &run, err);
        if (is_over(f)) {
            f->run->ended = true;
            if (f->watch_count > 0 && session_of(f)) {
                collect_evidence(f, err);
            }
            return f->run->looked_at ? GD_OK
                                     : gd_fail(err, GD_ELOST,
                                               "the training ended before its first step was over");
        }
        if (rc == GD_EINTR || rc == GD_ETIMEOUT) {
            rc = session_of(f)->state == GD_STOPPED ? collect_evidence(f, err) : GD_OK;
            return rc != GD_OK || f->run->looked_at
                       ? rc
                       : gd_fail(err, GD_EINTR, "interrupted before anything was examined");
        }
        if (rc != GD_OK || !look_around(f, err)) {
            return rc;
        }
        if (!weighed && session_of(f)->stop.step - f->begun >= FIRST_CHUNK) {
            weigh_exact(f, get_time(f) - began);
            weighed = true;
        }
    }
}

/* ---- all of it ------------------------------------------------------------------------------- */

static int add_watchpoint(struct follow *f, const struct gd_recommendation *offer,
                          struct gd_err *err)
{
    struct gd_watch_spec spec = {.condition = offer->condition,
                                 .values = offer->values,
                                 .value_count = offer->value_count,
                                 .where = offer->where,
                                 .guard = offer->guard,
                                 .steps = offer->steps,
                                 .action = GD_WATCH_STOP,
                                 .temporary = true,
                                 .label = "diagnose"};
    struct gd_watchpoint *watch = NULL;
    int rc = gd_watchpoint_add(f->call->debugger, &spec, &watch, err);

    if (rc == GD_OK) {
        f->watch[f->watch_count++] = watch->number;
    }
    return rc;
}

/* What is watched beside what is recommended, since a stop is cheap here and `why` decides: weights
 * that nothing updates, a loss that leaps, saturated activations. */
static const struct {
    const char *condition;
    struct gd_recommendation offer;
} own_watches[] = {
    {"WNC", {.where = "weights", .steps = STILL_STEPS}},
    {"LS",
     {.where = "loss",
      .values = {{"mean_z_score_gt", GD_PARAM_FLOAT, LEAST_LEAP}},
      .value_count = 1}},
    {"AR",
     {.where = "type:tanh except backward/*, eval/*",
      .values = {{"range_percentage_lt", GD_PARAM_FLOAT, MOST_SLOPING},
                 {"range_start_inclusive", GD_PARAM_FLOAT, -0.99},
                 {"range_end_inclusive", GD_PARAM_FLOAT, 0.99}},
      .value_count = 3,
      .steps = STILL_STEPS}},
    {"AR",
     {.where = "type:sigmoid except backward/*, eval/*",
      .values = {{"range_percentage_lt", GD_PARAM_FLOAT, MOST_SLOPING},
                 {"range_start_inclusive", GD_PARAM_FLOAT, 0.01},
                 {"range_end_inclusive", GD_PARAM_FLOAT, 0.99}},
      .value_count = 3,
      .steps = STILL_STEPS}},
};

/* For a process without watchers: stops once for each recommended watchpoint. Of those that
 * MindSpore evaluates itself only the one that healthy runs do not trigger. */
static int watch_outputs(struct follow *f, struct gd_err *err)
{
    const struct gd_session *session = f->call->session;
    struct gd_recommendation offer = {.where = "all"};
    struct gd_err ignored;
    int rc = GD_OK;

    if (strcasecmp(session->peer.framework, "mindspore") == 0) {
        /* 2.x: its operators are nodes only while they are observed */
        tell_job(f->call, "operators", "on", &ignored);
    }
    if (session->target->capabilities & GD_CAN_WATCH_REMOTE) {
        rc = gd_condition_find("TO", &offer.condition, err);
        return rc == GD_OK ? add_watchpoint(f, &offer, err) : rc;
    }
    for (size_t i = 0; rc == GD_OK && f->watch_count < MOST_WATCHPOINTS &&
                       gd_recommendation_at(f->call->session, i, &offer);
         i++) {
        rc = add_watchpoint(f, &offer, err);
    }
    for (size_t i = 0; rc == GD_OK && i < sizeof(own_watches) / sizeof(own_watches[0]); i++) {
        offer = own_watches[i].offer;
        rc = gd_condition_find(own_watches[i].condition, &offer.condition, err);
        if (rc == GD_OK && f->watch_count < MOST_WATCHPOINTS) {
            add_watchpoint(f, &offer, &ignored); /* there may be no such node */
        }
    }
    return rc;
}

/* The user looks for overflows already, and continues to. */
static bool has_catchpoint(struct follow *f)
{
    struct gd_err ignored;
    cJSON *reply = NULL;
    bool ret =
        ask_process(f, "overflow", "", &reply, &ignored) == GD_OK &&
        (cJSON_IsString(cJSON_GetObjectItem(reply, "stop")) || out_number_of(reply, "stop") > 0 ||
         cJSON_IsString(cJSON_GetObjectItem(reply, "record")) ||
         out_number_of(reply, "record") > 0);

    cJSON_Delete(reply);
    return ret;
}

/* The program may catch an exception: only those that it does not catch stop the training. */
static void pass_exceptions(struct follow *f)
{
    static const char *const modes[] = {"all", "watched"}; /* which stop where they are raised */
    struct gd_err ignored;
    cJSON *reply = NULL;
    int rc = ask_process(f, "exceptions", "", &reply, &ignored);

    for (size_t i = 0; rc == GD_OK && i < sizeof(modes) / sizeof(modes[0]); i++) {
        if (strcmp(out_text_of(reply, "mode"), modes[i]) == 0 &&
            tell_job(f->call, "exceptions", "uncaught", &ignored) == GD_OK) {
            f->exceptions = modes[i];
        }
    }
    cJSON_Delete(reply);
}

static int arm_watchers(struct follow *f, struct gd_err *err)
{
    struct gd_catch_spec spec = {.kind = GD_HAPPENED_END, .every = 1};
    struct gd_breakpoint *at = NULL;
    struct gd_err ignored;
    bool can = f->call->session->target->capabilities & GD_CAN_COMMAND;
    int rc = can ? tell_job(f->call, "observe", "on", err) : GD_EUNSUPPORTED;

    if (rc != GD_OK && rc != GD_EINTR && rc != GD_ELOST) { /* it has no watchers */
        rc = watch_outputs(f, err);
    }
    if (rc != GD_OK) {
        return rc;
    }
    if (gd_debugger_catch(f->call->debugger, &spec, &at, &ignored) == GD_OK) {
        f->end = at->number; /* without it, the last evidence before the end counts */
    }
    pass_exceptions(f);
    f->theirs = f->watch_count == 0 && has_catchpoint(f);
    f->exact = f->theirs ||
               (f->watch_count == 0 && tell_job(f->call, "overflow", "stop 4", &ignored) == GD_OK);
    return rc;
}

static void remove_watchers(struct follow *f)
{
    struct gd_err ignored;

    gd_debugger_delete_breakpoint(f->call->debugger, f->end, &ignored);
    for (int i = 0; i < f->watch_count; i++) { /* unless they have stopped the training */
        gd_watchpoint_delete(f->call->debugger, f->watch[i], &ignored);
    }
    bool can = !is_over(f) && session_of(f)->state == GD_STOPPED;
    f->call->session = session_of(f);
    if (can && f->exceptions) {
        tell_job(f->call, "exceptions", f->exceptions, &ignored);
    }
    if (can && f->watch_count == 0) {
        tell_job(f->call, "observe", "off", &ignored);
        if (f->exact && !f->theirs) {
            tell_job(f->call, "overflow", "off", &ignored);
        }
    }
}

cJSON *diagnose_so_far(struct command_call *call)
{
    struct diagnose_run run = {.steps = 0};
    struct follow f = {.call = call, .run = &run, .number = call->session->number};
    struct gd_err ignored;
    bool can =
        gd_session_is_live(call->session) && call->session->target->capabilities & GD_CAN_COMMAND;
    cJSON *findings =
        can && collect_evidence(&f, &ignored) == GD_OK ? diagnose_judge(run.pieces) : NULL;

    cJSON_Delete(run.pieces);
    cJSON_Delete(run.looked_at);
    return findings;
}

/* When the loss was not finite for the first time, and what made it so was not seen. */
static void note_bad_loss(struct follow *f, double seconds)
{
    const struct diagnose_evidence all = {.pieces = f->run->pieces};
    const cJSON *course = diagnose_find(&all, "loss-course");
    double steps = out_number_of(f->run->looked_at, "steps");

    f->run->exact = f->exact;
    if (course && !f->exact && steps > 0 && !diagnose_find(&all, "why-overflow")) {
        f->run->bad_since = (int64_t)out_number_of(course, "not_finite_since");
        f->run->bad_after = seconds * (double)f->run->bad_since / steps;
    }
}

int diagnose_find_origin(struct command_call *call, struct diagnose_run *run, struct gd_err *err)
{
    struct follow f = {.call = call, .run = run, .number = call->session->number};
    struct gd_run there = {.kind = GD_RUN_STEP, .count = run->bad_since - 2, .node = GD_NO_NODE};
    int rc = GD_OK;

    call->repl->job.drives[0] = f.number;
    if (there.count > 0) {
        rc = move_on(&f, &there, err);
    }
    if (rc == GD_OK && !is_over(&f)) {
        rc = tell_job(call, "overflow", "stop 1", err);
    }
    there.count = 2;
    if (rc == GD_OK && !is_over(&f)) {
        rc = move_on(&f, &there, err);
    }
    if (rc == GD_OK && !is_over(&f) && session_of(&f)->stop.reason == GD_STOP_PROGRAM) {
        ask_why(&f, "why-overflow", NULL);
    }
    call->repl->job.drives[0] = 0;
    return rc;
}

int diagnose_follow(struct command_call *call, struct diagnose_run *run, struct gd_err *err)
{
    struct follow f = {.call = call, .run = run, .number = call->session->number};

    double began = get_time(&f);
    run->pieces = cJSON_CreateArray();
    f.begun = call->session->stop.step;
    f.deadline = run->seconds > 0 ? get_time(&f) + run->seconds : 0;
    int rc = arm_watchers(&f, err);
    if (rc == GD_OK) {
        call->repl->job.drives[0] = f.number;
        call->repl->job.diagnoses = true;
        rc = follow_run(&f, err);
        if (rc == GD_OK && run->ended) {
            follow_left(&f);
        }
        call->repl->job.diagnoses = false;
        call->repl->job.drives[0] = 0;
        note_bad_loss(&f, get_time(&f) - began);
    }
    remove_watchers(&f);
    return rc;
}
