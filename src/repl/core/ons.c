// SPDX-License-Identifier: GPL-3.0-or-later
/* The commands of `on`, run while the training is held at an event. */
#include "repl/core/stops.h"

#include <stdlib.h>
#include <string.h>

#include "engine/ranks.h"
#include "repl/core/repl_impl.h"

#define PATIENCE 10 /* how often in a row a command may need a value that is not there yet */

bool ons_hold(const struct gd_session *session)
{
    const struct gd_ranks *ranks = gd_ranks_of(session);

    for (int rank = 0; ranks && rank < gd_ranks_world_size(ranks); rank++) {
        const struct gd_session *member = gd_ranks_member(ranks, rank);
        if (member && member->state == GD_STOPPED && member->stop.passing) {
            return true;
        }
    }
    return session->state == GD_STOPPED && session->stop.passing;
}

/* Whether the command fails again next time: a value may only come later, such as that of the first
 * evaluation. */
static bool is_final(const struct repl *repl, int number, int rc)
{
    struct gd_breakpoint *at = gd_debugger_breakpoint(repl->debugger, number);

    if (at) {
        at->waited = rc == GD_ENODATA ? at->waited + 1 : 0;
    }
    return rc != GD_OK && rc != GD_EINTR && rc != GD_ELOST &&
           (rc != GD_ENODATA || !at || at->waited >= PATIENCE);
}

/* The command may delete its own `on`. */
static int run_one(struct repl *repl, int number, int64_t step)
{
    struct gd_breakpoint *at = gd_debugger_breakpoint(repl->debugger, number);
    char *command = at && at->command && at->enabled ? strdup(at->command) : NULL;
    if (command && at->temporary) {
        gd_debugger_delete_breakpoint(repl->debugger, number, NULL);
    }
    int rc = command ? repl_run_line(repl, command, LINE_SCRIPT) : GD_OK;

    free(command);
    if (repl->script.body.kind != BODY_NONE) {
        repl_body_drop(repl);
    }
    if (is_final(repl, number, rc) &&
        gd_debugger_enable_breakpoint(repl->debugger, number, false, NULL) == GD_OK) {
        repl_printf(repl, true, "warning: \"on\" %d is disabled: its command failed at step %lld\n",
                    number, (long long)step);
    }
    return rc;
}

/* GD_EINTR: Ctrl-C. */
static int run_all(struct repl *repl, struct gd_session *session)
{
    int numbers[GD_MAX_FIRED], count = session->fired_count, rc = GD_OK;
    int64_t step = session->stop.step;

    memcpy(numbers, session->fired, sizeof(numbers));
    session->fired_count = 0;
    repl->script.user_lines = 0;
    for (int i = 0; i < count && rc != GD_EINTR && !repl->end.quit && !repl->stop.resumed; i++) {
        rc = run_one(repl, numbers[i], step);
    }
    return rc;
}

bool ons_run(struct repl *repl, struct gd_session *session)
{
    bool passing = session->stop.passing, in_body = repl->stop.in_body;
    struct gd_err err = {.text = ""};

    if (session->fired_count == 0) {
        return false;
    }
    gd_session_hold(session);
    repl->stop.in_body = true;
    repl->stop.resumed = false;
    int rc = run_all(repl, session);
    bool resumed = repl->stop.resumed;
    repl->stop.in_body = in_body;
    repl->stop.resumed = false;
    bool goes_on = passing && !resumed && session->state == GD_STOPPED && rc != GD_EINTR &&
                   !repl->end.quit && !repl->front.left;
    if (goes_on && gd_session_go_on(session, &err) == GD_OK) {
        resumed = true;
    } else if (passing && !resumed && session->state == GD_STOPPED) {
        session->stop.passing = false;
        repl_report_stop(repl, session);
    }
    gd_session_release(session);
    return resumed;
}
