// SPDX-License-Identifier: GPL-3.0-or-later
/* Commands: session */
#include "repl/commands/running/running.h"
#include "repl/core/repl_impl.h"

void session_print(struct command_call *call, const struct gd_session *session)
{
    out_printf(call->out, "[Training process %d, rank %d of %d, %s]\n", session->number,
               session->peer.rank, session->peer.world_size, gd_state_name(session->state));
}

int session_show_selected(struct command_call *call, struct gd_err *err)
{
    struct gd_session *session = NULL;
    int rc = gd_debugger_need_session(call->debugger, &session, err);

    if (rc == GD_OK) {
        session_print(call, session);
        call->session = session;
        repl_state_record(call);
    }
    return rc;
}

int session_select(struct command_call *call, struct gd_err *err)
{
    int64_t number = 0;
    int rc = arg_count(call->line, 1, INT32_MAX, &number, err);
    return rc == GD_OK ? gd_debugger_select(call->debugger, (int)number, err) : rc;
}

static int run_session(struct command_call *call, struct gd_err *err)
{
    int rc = call->line[0] != '\0' ? session_select(call, err) : GD_OK;
    return rc == GD_OK ? session_show_selected(call, err) : rc;
}

const struct command cmd_session = {
    .name = "session",
    .group = "running",
    .usage = "session [N]",
    .summary = "Choose a training process by its number",
    .help = "N is the number in the first column of \"info ranks\". It is unique across jobs and\n"
            "includes processes that have ended.",
    .examples = "session\n"
                "session 1",
    .args = {ARG_RANK},
    .flags = CMD_RAW,
    .run = run_session,
};
