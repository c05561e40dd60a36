// SPDX-License-Identifier: GPL-3.0-or-later
/* Allocations that failed: `catch oom`, and what `why` says about them. */
#ifndef GD_REPL_OOM_H
#define GD_REPL_OOM_H

#include "repl/core/command.h"

int catch_oom(struct command_call *call, struct gd_err *err);

/* When the session is stopped at an allocation that failed, says what was asked for, what holds the
 * rest and what would fit. *done: whether that was the case. */
int why_oom(struct command_call *call, bool *done, struct gd_err *err);

#endif
