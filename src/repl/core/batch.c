// SPDX-License-Identifier: GPL-3.0-or-later
/* --batch: what a failed command does (`on-error`), and the end of the program that `run` started.
 */
#include "repl/core/repl_impl.h"
#include "repl/launch/launch.h"

#define ON_ERROR_DETACH   0 /* values of `on-error`; 1: kill */
#define ON_ERROR_CONTINUE 2

/* After its training the program may still write results, or begin another training. */
static void wind_up(struct repl *repl)
{
    const struct gd_session *current = repl->debugger->current;

    if (!current || gd_session_is_live(current) || launch_is_detached(repl)) {
        return; /* a training that the commands left running ends with gradb */
    }
    struct gd_session *stopped;
    repl->job.batch = BATCH_WINDING_UP;
    if (repl_wait_job(repl, &stopped) == GD_EINTR) {
        repl_set_failed(repl, GD_EINTR);
    }
    repl->job.batch = BATCH_ONE_STOP;
}

/* Processes that connect during the wait are detached too. */
static bool has_program_ended(void *ctx)
{
    struct repl *repl = ctx;

    for (size_t i = 0; i < repl->debugger->session_count; i++) {
        struct gd_session *session = repl->debugger->sessions[i];
        if (session->state == GD_STOPPED) {
            gd_target_detach(session->target, NULL);
        }
    }
    return !launch_is_running(repl);
}

bool repl_goes_on_after(const struct repl *repl, int rc)
{
    return rc != GD_OK && rc != GD_EINTR && repl->options.batch && !repl->end.quit &&
           repl->debugger->settings.on_error == ON_ERROR_CONTINUE;
}

bool repl_batch_fails(struct repl *repl, int rc)
{
    if (rc == GD_OK || repl_goes_on_after(repl, rc)) {
        return false;
    }
    if (rc == GD_EINTR || !repl->options.batch || repl->end.quit ||
        repl->debugger->settings.on_error != ON_ERROR_DETACH) {
        return true;
    }
    repl_let_all_go(repl);
    if (!launch_is_running(repl)) {
        return true;
    }
    bool waits = repl->debugger->session_count > 0; /* otherwise it may not be a training */
    repl_printf(repl, true,
                "warning: a command failed: %s continues without gradb (see \"set on-error\")%s; "
                "output: %s\n",
                launch_program(repl), waits ? ", and gradb waits for its end" : "",
                launch_output_path(repl));
    if (waits && repl_wait(repl, has_program_ended, repl, -1) == GD_EINTR) {
        repl_set_failed(repl, GD_EINTR);
    }
    return true;
}

/* A misspelled place must not look like a training in which nothing happened. */
static void tell_never_matched(struct repl *repl)
{
    for (const struct gd_breakpoint *b = repl->debugger->breakpoints; b; b = b->next) {
        if (!b->event && !b->matched && b->enabled && repl->debugger->session_count > 0) {
            repl_printf(repl, true, "%s %d (%s) never matched\n",
                        b->print ? "dprintf" : "breakpoint", b->number, b->where);
            repl_add_status(repl, STATUS_FAILED);
        }
    }
}

void repl_end_batch(struct repl *repl)
{
    struct gd_debugger *debugger = repl->debugger;

    wind_up(repl);
    tell_never_matched(repl);
    if (repl->job.program_failed) {
        repl_training_failed(repl);
    }
    for (size_t i = 0; i < debugger->session_count; i++) {
        const struct gd_session *session = debugger->sessions[i];
        if (session->state == GD_STOPPED && session->stop.reason == GD_STOP_EXCEPTION) {
            repl_training_failed(repl);
        }
    }
}
