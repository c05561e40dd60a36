// SPDX-License-Identifier: GPL-3.0-or-later
/* What the commands of the panes share. */
#include "repl/commands/screen/panes.h"

#include <stddef.h>

#include "repl/core/repl_impl.h"

const char *const pane_names[] = {"graph",  "node",   "console", "watch", "hits",    "stack",
                                  "source", "tensor", "history", "log",   "picture", NULL};

int panes_need(struct command_call *call, struct gd_err *err)
{
    return call->repl->front.screen ? GD_OK : gd_fail(err, GD_ESTATE, "this gradb has no panes");
}
