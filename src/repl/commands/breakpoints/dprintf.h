// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * What a dprintf prints when one of its nodes has run. The session is held (GD_EV_PRINT) until the
 * values have come: tensors are fetched, statistics are computed where the tensors are.
 */
#ifndef GD_REPL_DPRINTF_H
#define GD_REPL_DPRINTF_H

#include "repl/core/command.h"

/* Prints at every GD_EV_PRINT from now on. */
int dprintf_watch_events(struct repl *repl, struct gd_err *err);

#endif
