// SPDX-License-Identifier: GPL-3.0-or-later
/* Commands: refresh */
#include <string.h>

#include "repl/commands/screen/panes.h"
#include "repl/core/interrupt.h"
#include "repl/core/repl_impl.h"

struct graph_wait {
    struct gd_debugger *debugger;
    int number;
    uint64_t generation;
};

static bool graph_came(void *ctx)
{
    const struct graph_wait *wait = ctx;
    const struct gd_session *session = gd_debugger_session(wait->debugger, wait->number);

    return !session || !gd_session_is_live(session) ||
           session->graph_generation != wait->generation;
}

/* Asks again for a graph whose reading Ctrl-C interrupted. */
static int refresh_graph(struct command_call *call, struct gd_err *err)
{
    struct gd_session *session;
    int rc = gd_debugger_need_session(call->debugger, &session, err);

    if (rc != GD_OK) {
        return rc;
    }
    if (!gd_session_is_live(session)) {
        return gd_fail(err, GD_ENODATA, "the training process has ended, and its graphs are gone");
    }
    struct graph_wait wait = {call->debugger, session->number, session->graph_generation};
    rc = gd_target_take_graphs(session->target, err);
    if (rc == GD_OK && repl_wait(call->repl, graph_came, &wait, -1) == GD_EINTR) {
        return repl_interrupted(call->repl, "interrupted", err);
    }
    return rc;
}

static int run_refresh(struct command_call *call, struct gd_err *err)
{
    if (call->argc == 1 && strcmp(call->argv[0], "graph") == 0) {
        return refresh_graph(call, err);
    }
    if (call->argc != 0) {
        return gd_fail(err, GD_EUSAGE, "refresh: expected graph, or nothing");
    }
    int rc = panes_need(call, err);

    if (rc == GD_OK) {
        call->repl->front.screen->refresh(call->repl->front.screen_ctx);
    }
    return rc;
}

const struct command cmd_refresh = {
    .name = "refresh",
    .group = "screen",
    .usage = "refresh [graph]",
    .summary = "Redraw the screen",
    .help = "Use it after another program wrote to the terminal; C-l does the same.\n"
            "With `graph`: read the graph again if Ctrl-C interrupted reading it.",
    .examples = "refresh\n"
                "refresh graph",
    .args = {ARG_CHOICE},
    .run = run_refresh,
};
