// SPDX-License-Identifier: GPL-3.0-or-later
#include "repl/core/announce.h"

#include <string.h>

#include "engine/ranks.h"
#include "repl/core/repl_impl.h"

/* A command moves it, alone or with its job, and reports its stops itself. */
static bool is_driven(const struct repl *repl, const struct gd_session *session)
{
    for (size_t i = 0; i < sizeof(repl->job.drives) / sizeof(repl->job.drives[0]); i++) {
        const struct gd_session *driven =
            repl->job.drives[i] > 0 ? gd_debugger_session(repl->debugger, repl->job.drives[i])
                                    : NULL;
        if (driven && (driven == session ||
                       (gd_ranks_of(driven) && gd_ranks_of(driven) == gd_ranks_of(session)))) {
            return true;
        }
    }
    return false;
}

/* A command ends the process (kill, detach, a hangup): "the training ended" would mislead. */
static bool is_muted(const struct repl *repl, enum gd_event_type type)
{
    return repl->job.muted && !repl->options.json &&
           (type == GD_EV_LOST || type == GD_EV_FINISHED || type == GD_EV_HIT ||
            type == GD_EV_STOPPED);
}

bool repl_announces_event(const struct repl *repl, const struct gd_event *event)
{
    bool moves = event->type == GD_EV_STOPPED || event->type == GD_EV_RUNNING;

    if (event->type == GD_EV_RANKS && ons_hold(event->session)) {
        return false;
    }
    if (repl->job.diagnoses &&
        (event->type == GD_EV_HIT || (event->type == GD_EV_EVENT && !repl->options.json))) {
        return false;
    }
    if (repl->job.diagnoses && repl->options.batch && event->type == GD_EV_STOPPED &&
        !is_driven(repl, event->session)) {
        return false; /* it runs on */
    }
    return !repl->end.closing && !is_muted(repl, event->type) &&
           !(moves && is_driven(repl, event->session));
}

bool repl_is_told_with_job(const struct repl *repl, const struct gd_session *session)
{
    return session->stop.together && !repl->options.json;
}

bool repl_stop_is_silent(struct repl *repl)
{
    for (int i = 0; i < repl->stop.number_count; i++) {
        const struct repl_lines *body = repl_commands_of(repl, repl->stop.numbers[i]);
        if (body && body->count > 0 && strcmp(body->line[0], "silent") == 0) {
            return true;
        }
    }
    return false;
}

bool repl_announces_stop(struct repl *repl, const struct gd_session *session)
{
    return !ons_hold(session) && !repl_stop_is_silent(repl) &&
           !repl_is_told_with_job(repl, session) &&
           !(repl->dump && repl->dump->is_passing(repl, session)); /* it runs on */
}
