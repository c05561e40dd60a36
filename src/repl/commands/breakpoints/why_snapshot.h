// SPDX-License-Identifier: GPL-3.0-or-later
/* `why` where a memory snapshot is open. */
#ifndef GD_REPL_WHY_SNAPSHOT_H
#define GD_REPL_WHY_SNAPSHOT_H

#include "repl/core/command.h"

/* Says what memory ran out for, if the session is a snapshot that recorded it; else *done is false.
 * GD_ENODATA: it has nothing else to ask about. */
int why_snapshot(struct command_call *call, bool *done, struct gd_err *err);

#endif
