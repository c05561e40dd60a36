// SPDX-License-Identifier: GPL-3.0-or-later
/* Metrics that LossMonitor and TimeMonitor print, of a training whose process reports none. */
#include "repl/launch/launch_loss.h"

#include <stdlib.h>

#include "engine/log/monitor_line.h"
#include "repl/core/repl_impl.h"

struct losses {
    int session; /* its number; 0: none yet */
    bool ours;   /* the process reports no loss: the lines are taken */
    struct gd_monitor monitor;
    struct gd_monitor_line first; /* held back until it is known who reports the loss */
    int64_t first_step;           /* 0: none is held */
    bool has_time;                /* the process reports step_time */
};

static void report_loss(struct gd_session *session, const struct gd_monitor_line *line,
                        int64_t step)
{
    gd_session_on_late_scalar(session, "loss", line->loss, step);
    gd_session_on_late_scalar(session, "epoch", (double)line->epoch, step);
}

/* Its first loss may be on its way while the line is read: the second line decides. */
static void take_loss(struct losses *losses, struct gd_session *session,
                      const struct gd_monitor_line *line, int64_t step)
{
    if (!losses->ours && gd_session_scalar(session, "loss")) {
        losses->first_step = 0;
        return;
    }
    if (!losses->ours && losses->first_step == 0) {
        losses->first = *line;
        losses->first_step = step;
        losses->has_time = gd_session_scalar(session, "step_time") != NULL;
        return;
    }
    if (!losses->ours) {
        losses->ours = true;
        report_loss(session, &losses->first, losses->first_step);
    }
    report_loss(session, line, step);
}

void launch_take_loss(struct repl *repl, struct gd_session *session, const char *text)
{
    struct gd_monitor_line line;
    struct losses *losses = NULL;

    if (session && gd_session_is_live(session) && !gd_session_is_record(session) &&
        gd_monitor_parse(text, &line)) {
        losses = repl_make_slot(repl, REPL_SLOT_LOSSES, sizeof(*losses), free);
    }
    if (!losses) {
        return;
    }
    if (losses->session != session->number) {
        *losses = (struct losses){.session = session->number};
    }
    int64_t step = gd_monitor_step(&losses->monitor, &line);
    if (line.step >= 0) {
        take_loss(losses, session, &line, step);
    } else if (losses->ours && !losses->has_time) {
        gd_session_on_late_scalar(session, "step_time", line.step_ms / 1000, step);
    }
}
