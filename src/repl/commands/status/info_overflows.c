// SPDX-License-Identifier: GPL-3.0-or-later
/* `info overflows`. */
#include "dump/dump_target.h"
#include "repl/commands/breakpoints/overflow.h"
#include "repl/commands/status/info.h"
#include "repl/values/inspect.h"

int info_overflows(struct command_call *call, struct gd_err *err)
{
    cJSON *reply = NULL;
    bool all = inspect_take_flag(call, "-a");
    if (call->session && gd_catalog_of(call->session)) { /* the device recorded them */
        return info_events(call, err);
    }
    int rc = overflow_ask(call, OVERFLOW_COMMAND, "", &reply, err);
    if (rc == GD_OK) {
        overflow_show(call, reply, all ? OVERFLOWS_ALL : OVERFLOWS_FOUND);
    }
    cJSON_Delete(reply);
    return rc;
}
