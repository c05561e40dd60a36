// SPDX-License-Identifier: GPL-3.0-or-later
/* The session's terminal: disconnecting, and what a hangup does. */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "engine/ranks.h"
#include "repl/core/repl_impl.h"
#include "repl/launch/launch.h"
#include "repl/launch/launch_output.h"

#define HANGUP_CONTINUE 1 /* values of `on-hangup`; 0: hold */
#define HANGUP_DETACH   2
#define DETACH_SECONDS  2.0 /* for training processes to receive the detach */

static const char *const hangup_words[] = {"hold", "continue", "detach"};

const char *repl_hangup_name(const struct repl *repl)
{
    return hangup_words[repl->debugger->settings.on_hangup];
}

void repl_set_residence(struct repl *repl, const struct repl_residence_ops *ops, void *ctx)
{
    repl->front.residence = ops;
    repl->front.residence_ctx = ctx;
}

bool repl_is_resident(const struct repl *repl)
{
    return repl->front.residence != NULL;
}

void repl_tell_typed(struct repl *repl, const char *line)
{
    const char *prompt = repl_prompt(repl);

    if (repl->front.residence) {
        repl->front.residence->lines(repl->front.residence_ctx, prompt, strlen(prompt));
        repl->front.residence->lines(repl->front.residence_ctx, line, strlen(line));
        repl->front.residence->lines(repl->front.residence_ctx, "\n", 1);
    }
}

/* ---- what a hangup does ---- */

static bool all_are_over(void *ctx)
{
    const struct gd_debugger *debugger = ctx;

    for (size_t i = 0; i < debugger->session_count; i++) {
        if (gd_session_is_live(debugger->sessions[i])) {
            return false;
        }
    }
    return true;
}

bool repl_ends_without_us(const struct gd_session *session)
{
    return session->target && strcmp(session->target->ops->kind, "mindspore") == 0;
}

void repl_let_all_go(struct repl *repl)
{
    struct gd_debugger *debugger = repl->debugger;
    bool muted = repl->job.muted, waits = false;

    repl->job.muted = true; /* they detach: "the training ended" would be wrong */
    for (size_t i = 0; i < debugger->session_count; i++) {
        struct gd_session *session = debugger->sessions[i];
        if (gd_session_is_live(session)) {
            repl->end.left_behind = repl->end.left_behind || repl_ends_without_us(session);
            waits = gd_target_detach(session->target, NULL) == GD_OK || waits;
        }
    }
    launch_detach(repl);
    if (waits) { /* not for dumps */
        repl_wait(repl, all_are_over, debugger, DETACH_SECONDS);
    }
    repl->job.muted = muted;
}

/* Whether no earlier live session belongs to the same job. */
static bool is_first_of_job(const struct gd_debugger *debugger, size_t index)
{
    const struct gd_ranks *ranks = gd_ranks_of(debugger->sessions[index]);

    for (size_t i = 0; ranks && i < index; i++) {
        if (gd_ranks_of(debugger->sessions[i]) == ranks &&
            gd_session_is_live(debugger->sessions[i])) {
            return false;
        }
    }
    return true;
}

/* Each process or job on its own: without a user, the selected one is not special. */
static void hold_or_continue(struct repl *repl, bool go_on)
{
    struct gd_debugger *debugger = repl->debugger;

    for (size_t i = 0; i < debugger->session_count; i++) {
        struct gd_session *session = debugger->sessions[i];
        struct gd_run run = {.kind = GD_RUN_CONTINUE, .node = GD_NO_NODE};
        if (!gd_session_is_live(session)) {
            continue;
        }
        if (go_on && session->state == GD_STOPPED) {
            gd_ranks_resume(session, &run, NULL); /* resumes its whole job */
        } else if (!go_on && gd_ranks_is_running(session) && is_first_of_job(debugger, i)) {
            gd_ranks_interrupt(session, NULL);
        }
    }
}

void repl_hang_up(struct repl *repl)
{
    int how = repl->debugger->settings.on_hangup;

    repl_printf(repl, false, "[The terminal was closed: on-hangup %s]\n", hangup_words[how]);
    if (how == HANGUP_DETACH) {
        repl_let_all_go(repl);
    } else {
        hold_or_continue(repl, how == HANGUP_CONTINUE);
    }
}

bool repl_has_reason_to_stay(const struct repl *repl)
{
    struct gd_debugger *debugger = repl->debugger;
    const struct gd_server_ops *server = debugger->server;

    if (debugger->settings.on_hangup == HANGUP_DETACH) {
        bool serves = server && server->serves && server->serves(debugger->server_ctx);
        return serves || !all_are_over(debugger);
    }
    return debugger->session_count > 0 || (server && server->address(debugger->server_ctx));
}

void repl_let_go_at_end(struct repl *repl)
{
    repl->end.let_go = true;
}
