// SPDX-License-Identifier: GPL-3.0-or-later
/* `catch oom`. */
#include <string.h>

#include "repl/commands/breakpoints/oom.h"
#include "repl/core/everyone.h"

#define ON_SAYS                                                                                    \
    "The training will stop where an allocation fails; its operators and allocations are "         \
    "observed from the next step on.\n"
#define OFF_SAYS "Allocations are no longer observed.\n"
#define C_SAYS                                                                                     \
    "The training stops where it reports a failed allocation with gradb_raised(); there is "       \
    "nothing to switch on.\n"

int catch_oom(struct command_call *call, struct gd_err *err)
{
    const char *reply = NULL;
    bool off = strcmp(call->line, "off") == 0;
    if (call->line[0] != '\0' && !off) {
        return gd_fail(err, GD_EUSAGE, "catch oom: expected \"off\" or nothing");
    }
    int rc = repl_need_session(call, err);
    if (rc == GD_OK &&
        (!gd_session_is_live(call->session) || gd_session_is_record(call->session))) {
        return gd_fail(err, GD_EUNSUPPORTED, "catch oom: a record allocates nothing");
    }
    bool asks = rc == GD_OK && call->session->target->capabilities & GD_CAN_COMMAND;
    rc = asks ? everyone_command(call, "oom", off ? "off" : "on", &reply, err) : rc;
    if ((rc == GD_OK && !asks) || rc == GD_EUNSUPPORTED) { /* a C program */
        out_set(out_record(call->out, "catch_oom"), OUT_TEXT("mode", "reported"));
        out_printf(call->out, C_SAYS);
        return GD_OK;
    }
    if (rc == GD_OK) {
        out_set(out_record(call->out, "catch_oom"), OUT_TEXT("mode", off ? "off" : "on"));
        out_printf(call->out, off ? OFF_SAYS : ON_SAYS);
    }
    return rc;
}
