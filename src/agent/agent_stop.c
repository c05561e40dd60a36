// SPDX-License-Identifier: MIT
/* Stops the training thread until the debugger resumes it or is lost. */
#include <pthread.h>
#include <stdio.h>

#include "agent/agent_core.h"
#include "agent/agent_mark.h"
#include "agent/agent_source.h"
#include "agent/agent_stop.h"

/* The program reports the numbers that it has put off: they come before the stop. False: the
 * debugger was lost meanwhile. */
static bool report_put_off(struct agent *a)
{
    bool up = a->link == LINK_UP;
    struct agent_looking *looking = agent_begin_looking(a);
    if (looking) {
        agent_end_looking(a, looking);
    }
    return !up || a->link == LINK_UP;
}

void agent_stop_thread(struct agent *a, Gradb__V1__StopReason reason, gradb_node node,
                       bool at_step_end, const char *text, uint64_t report)
{
    if (!report_put_off(a)) {
        return;
    }
    a->stop = (struct agent_stop){.reason = reason, .node = node, .at_step_end = at_step_end};
    /* a step that has begun, but computed nothing, is not where it is stopped */
    bool before = PEEK(a->in_step) && (at_step_end || PEEK(a->evaluates));
    a->stop.step = before ? PEEK(a->ended) : PEEK(a->step);
    a->stop.phase = at_step_end ? 0 : PEEK(a->phase);
    a->stop.report = report;
    snprintf(a->stop.text, sizeof(a->stop.text), "%s", text ? text : "");
    a->run = (struct agent_run){0};
    a->interrupt.wanted = a->stop_pending = a->hold_pending = false;
    if (at_step_end && a->stop.step >= a->interrupt.at) {
        a->interrupt.at = 0;
    }
    a->published = a->node_count;
    a->late_published = a->late_count;
    a->stop_sent = false;
    a->stopped = true;
    agent_arm(a);
    agent_wake(a);
    if (a->stopped_by[0] != '\0') {
        agent_say("gradb: stopped by the debugger at %s\n", a->stopped_by);
        a->stopped_by[0] = '\0';
    }
    while (a->stopped) {
        if (!agent_serve(a)) {
            pthread_cond_wait(&a->go, &a->lock);
        }
    }
    agent_source_release(a);
    agent_source_keep(a);
}
