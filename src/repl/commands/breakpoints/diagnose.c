// SPDX-License-Identifier: GPL-3.0-or-later
/* Commands: diagnose */
#include <stdlib.h>
#include <string.h>

#include "engine/ranks.h"
#include "repl/core/everyone.h"
#include "repl/core/exit_status.h"
#include "repl/core/parse.h"
#include "repl/core/repl_impl.h"
#include "repl/diagnose/report.h"
#include "repl/diagnose/rule.h"
#include "repl/launch/launch.h"
#include "repl/values/inspect.h"

#define AGAIN_SECONDS 600.0 /* a program is not started again to run longer than that */

struct words { /* of the command line */
    struct diagnose_run run;
    const char *html, *fail_on;
};

static int take_seconds(struct command_call *call, double *ret, struct gd_err *err)
{
    const char *text = NULL;
    char *end = NULL;
    int rc = inspect_take_option(call, "--time", &text, err);

    if (rc == GD_OK && text) {
        *ret = strtod(text, &end);
        if (end == text || *end != '\0' || !(*ret > 0) || *ret > 1e9) {
            return gd_fail(err, GD_EUSAGE, "diagnose --time: \"%.60s\" is not a number of seconds",
                           text);
        }
    }
    return rc;
}

/* Words after `--` belong to the program. */
static int take_words(struct command_call *call, struct words *ret, char ***program,
                      struct gd_err *err)
{
    int own = 0, all = call->argc;

    while (own < all && strcmp(call->argv[own], "--") != 0) {
        own++;
    }
    *program = own < all ? call->argv + own + 1 : NULL;
    if (*program && own + 1 == all) {
        return gd_fail(err, GD_EUSAGE, "diagnose: missing program after \"--\"");
    }
    call->argc = own;
    int rc = inspect_take_count(call, "--steps", 1, INT32_MAX, &ret->run.steps, err);
    rc = rc != GD_OK ? rc : take_seconds(call, &ret->run.seconds, err);
    rc = rc != GD_OK ? rc : inspect_take_option(call, "--html", &ret->html, err);
    rc = rc != GD_OK ? rc : inspect_take_option(call, "--fail-on", &ret->fail_on, err);
    if (rc == GD_OK && ret->fail_on && strcmp(ret->fail_on, "note") != 0 &&
        !diagnose_is_at_least(ret->fail_on, "note")) {
        return gd_fail(err, GD_EUSAGE, "diagnose --fail-on: expected fault, suspect or note");
    }
    if (rc == GD_OK && call->argc > 0) {
        return gd_fail(err, GD_EUSAGE,
                       "diagnose: unexpected argument \"%.60s\": put -- before a "
                       "program",
                       call->argv[0]);
    }
    return rc;
}

/* Starts the program as `run` does. */
static int start_program(struct command_call *call, char *const *program, int count,
                         struct gd_err *err)
{
    struct gd_buf line = GD_BUF_INIT(PARSE_MAX_LINE);

    call->repl->job.passes_output = !call->repl->options.interactive;
    gd_buf_puts(&line, "run --");
    for (int i = 0; i < count; i++) {
        gd_buf_putc(&line, ' ');
        gd_buf_put_quoted(&line, program[i]);
    }
    int rc = line.failed ? GD_ELIMIT : repl_run_line(call->repl, gd_buf_text(&line), LINE_SCRIPT);
    gd_buf_deinit(&line);
    call->session = call->debugger->current;
    if (rc != GD_OK) { /* `run` has said why */
        *err = (struct gd_err){.code = rc};
        return rc;
    }
    if (!call->session || call->session->state != GD_STOPPED) {
        return gd_fail(err, GD_ELOST, "the program ended before its first step");
    }
    return GD_OK;
}

static bool is_over(void *ctx)
{
    struct command_call *call = ctx;
    return !call->session || !gd_session_is_live(call->session);
}

static bool has_program_ended(void *ctx)
{
    struct command_call *call = ctx;

    if (call->repl->options.batch) {
        repl_let_others_run(call->repl, NULL);
    }
    return is_over(call) && !launch_is_running(call->repl);
}

/* The training is over: lets the program end, which may save its work, or train something else. */
static void let_end(struct command_call *call)
{
    struct gd_run run = {.kind = GD_RUN_CONTINUE, .node = GD_NO_NODE};
    struct gd_session *session = is_over(call) ? NULL : call->session;

    if (session) {
        gd_session_hold(session);
        call->repl->job.drives[0] = session->number;
        if (session->state == GD_STOPPED) {
            gd_ranks_resume(session, &run, NULL);
        }
    }
    call->repl->job.diagnoses = true;
    repl_wait(call->repl, has_program_ended, call, -1);
    call->repl->job.diagnoses = false;
    call->repl->job.drives[0] = 0;
    if (session) {
        gd_session_release(session);
    }
}

static void add_status(struct command_call *call, const struct words *words, const cJSON *findings)
{
    const cJSON *one;

    cJSON_ArrayForEach(one, findings)
    {
        const char *verdict = out_text_of(one, "verdict");
        if (diagnose_is_at_least(verdict, words->fail_on ? words->fail_on : "note")) {
            repl_add_status(call->repl, STATUS_WATCHPOINT);
        }
    }
    if (words->run.raised) {
        repl_training_failed(call->repl);
    }
}

/* The steps were too long to examine each operator's output in all of them: the program that this
 * command has started runs again, to the step in which the loss was not finite. */
static void run_again(struct command_call *call, struct words *words, char *const *program,
                      int count)
{
    struct gd_err err;

    if (words->run.bad_since == 0 || words->run.bad_after > AGAIN_SECONDS) {
        return;
    }
    out_printf(call->out,
               "The loss is not finite since step %lld: running the program again to that step, to "
               "find the operator.\n",
               (long long)words->run.bad_since);
    out_flush(call->out);
    launch_kill(call->repl);
    if (start_program(call, program, count, &err) != GD_OK ||
        diagnose_find_origin(call, &words->run, &err) != GD_OK) {
        repl_printf(call->repl, true, "warning: the second run failed%s%s\n",
                    err.text[0] != '\0' ? ": " : "", err.text);
    }
    call->repl->job.muted = true;
    launch_kill(call->repl);
    call->repl->job.muted = false;
}

/* There may be nothing else to see for hours. */
static void say_follows(struct command_call *call, const struct diagnose_run *run)
{
    cJSON *record = cJSON_CreateObject();

    if (run->steps > 0) {
        out_set(record, OUT_INT("steps", run->steps));
    }
    if (run->seconds > 0) {
        out_set(record, OUT_REAL("seconds", run->seconds));
    }
    if (out_is_text(call->out)) {
        out_say(
            call->out, record,
            "Following the training[ for {steps|step}][ for {seconds:time}][{?all} to its end]: "
            "Ctrl-C [{?at_prompt}stops][{!at_prompt}ends] it and prints what was found.\n",
            OUT_BOOL("all", run->steps == 0 && run->seconds <= 0),
            OUT_BOOL("at_prompt", call->repl->options.interactive));
        out_flush(call->out);
    }
    cJSON_Delete(record);
}

static int report_run(struct command_call *call, struct words *words, char *const *program,
                      int count, struct gd_err *err)
{
    bool recorded = !program && gd_session_is_record(call->session);

    call->repl->job.others = 0;
    if (!recorded) {
        say_follows(call, &words->run);
    }
    int rc = recorded ? diagnose_recorded(call, &words->run, err)
                      : diagnose_follow(call, &words->run, err);

    if (rc == GD_OK && (words->run.ended || words->run.raised)) {
        let_end(call);
        words->run.others = call->repl->job.others;
    }
    if (rc == GD_OK && program) {
        run_again(call, words, program, count);
    }
    cJSON *findings = rc == GD_OK ? diagnose_judge(words->run.pieces) : NULL;
    if (rc == GD_OK && !findings) {
        rc = gd_fail_nomem(err);
    }
    if (rc == GD_OK && words->html) {
        rc = diagnose_report_html(call, &words->run, findings, words->html, err);
    }
    if (findings) {
        add_status(call, words, findings);
        diagnose_report(call, &words->run, findings);
    }
    cJSON_Delete(words->run.pieces);
    cJSON_Delete(words->run.looked_at);
    return rc;
}

/* After `why loss` has turned it on. */
static int end_observation(struct command_call *call, struct gd_err *err)
{
    const char *reply = NULL;
    int rc = repl_check_needs(call, "diagnose off", CMD_NEEDS_STOP | CMD_NEEDS_LIVE, err);

    rc = rc == GD_OK ? everyone_command(call, "observe", "off", &reply, err) : rc;
    if (rc == GD_OK) {
        out_printf(call->out, "The training is no longer observed.\n");
    }
    return rc;
}

static int run_diagnose(struct command_call *call, struct gd_err *err)
{
    struct words words = {.html = NULL};
    char **program = NULL;
    int count = call->argc;

    if (count == 1 && strcmp(call->argv[0], "off") == 0) {
        return end_observation(call, err);
    }
    int rc = take_words(call, &words, &program, err);

    count -= program ? (int)(program - call->argv) : 0;
    if (rc == GD_OK && program) {
        rc = start_program(call, program, count, err);
    } else if (rc == GD_OK && !(call->session && gd_session_is_record(call->session))) {
        rc = repl_check_needs(call, "diagnose", CMD_NEEDS_STOP | CMD_NEEDS_LIVE, err);
    }
    return rc == GD_OK ? report_run(call, &words, program, count, err) : rc;
}

const struct command cmd_diagnose = {
    .name = "diagnose",
    .group = "breakpoints",
    .usage = "diagnose [--steps N] [--time S] [--html FILE] [--fail-on VERDICT] [-- PROGRAM...]",
    .summary = "Follow a training run and say what is wrong with it",
    .help =
        "Follow the stopped training (or start PROGRAM) to its end, for N steps or for S\n"
        "seconds, and print what was found: a fault is a mistake whatever the intention, a\n"
        "suspect is probably one, a note is an observation. Each finding names its cause, its\n"
        "place, the numbers that it is based on, and what to change. Without any finding the\n"
        "answer says what was checked. \"info rules\" lists the rules.\n"
        "\n"
        "The training computes the same as without it. Operators are observed in the first 8\n"
        "steps (4 where a step takes longer than 0.1 s), and in steps 8, 16, 32 and so on;\n"
        "losses, updates and the order of calls in each step. In C programs and MindSpore 2.x,\n"
        "weights, gradients, activations and the loss are watched; in other programs and dumps,\n"
        "values that are not finite.\n"
        "\n"
        "`why loss` uses the same rules. Where it finds nothing, it observes the training from "
        "then\n"
        "on; \"diagnose off\" ends that.\n"
        "\n"
        "Under --batch the exit status is 4 if anything was found, or with --fail-on only if a\n"
        "finding is at least that certain; 5 if the training failed.",
    .examples = "diagnose -- python train.py\n"
                "diagnose --steps 20\n"
                "diagnose --fail-on fault --html report.html -- python train.py",
    .args = {ARG_WORD},
    .flags = CMD_CHANGES,
    .run = run_diagnose,
};
