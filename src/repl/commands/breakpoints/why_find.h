// SPDX-License-Identifier: GPL-3.0-or-later
/* What `why` would answer, for commands that report it themselves. */
#ifndef GD_REPL_WHY_FIND_H
#define GD_REPL_WHY_FIND_H

#include "repl/core/command.h"

/* As if `why` had been typed with call->argv at this stop. Adds "rule" ("" when nothing was found),
 * "text" (sentences), "step", and of the origin "node", "file" and "line", as far as they are
 * known. GD_ENOTFOUND, GD_ENODATA, GD_EINTR, ... as of `why`. */
int why_find(struct command_call *call, cJSON *ret, struct gd_err *err);

#endif
