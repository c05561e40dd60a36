// SPDX-License-Identifier: GPL-3.0-or-later
#include "repl/core/everyone.h"
#include "repl/core/command.h"

#include "repl/core/repl_impl.h"

/* Asks call->session's process. False: the wait was interrupted. */
static bool ask_other(struct command_call *call, const char *name, const char *args)
{
    struct gd_err why = {.code = GD_OK};
    const char *reply = NULL;
    int rank = call->session->peer.rank;
    int rc = repl_command(call, name, args, GD_NO_NODE, &reply, &why);

    if (rc != GD_OK && rc != GD_EINTR) {
        repl_printf(call->repl, true, "warning: [rank %d] refused: %s\n", rank,
                    out_safe(call, why.text));
    }
    return rc != GD_EINTR;
}

/* Their numbers, because sessions may be freed during a wait. */
static int *other_numbers(struct command_call *call, size_t *ret)
{
    const struct gd_debugger *debugger = call->debugger;
    int *numbers = gd_arena_alloc(call->arena, (debugger->session_count + 1) * sizeof(*numbers));

    *ret = 0;
    for (size_t i = 0; numbers && i < debugger->session_count; i++) {
        const struct gd_session *session = debugger->sessions[i];
        if (session != call->session && gd_session_is_live(session)) {
            numbers[(*ret)++] = session->number;
        }
    }
    return numbers;
}

int everyone_command(struct command_call *call, const char *name, const char *args,
                     const char **reply, struct gd_err *err)
{
    struct gd_session *selected = call->session;
    size_t count;
    const int *numbers = other_numbers(call, &count);

    if (!numbers) {
        return gd_fail_nomem(err);
    }
    int rc = repl_command(call, name, args, GD_NO_NODE, reply, err);
    bool goes_on = rc != GD_EINTR;
    for (size_t i = 0; goes_on && i < count; i++) {
        call->session = gd_debugger_session(call->debugger, numbers[i]);
        goes_on = !call->session || ask_other(call, name, args);
    }
    call->session = selected;
    if (!goes_on && rc == GD_OK) {
        rc = gd_fail(err, GD_EINTR, "interrupted: some processes were not asked");
    }
    return rc;
}
