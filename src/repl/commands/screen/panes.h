// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef GD_REPL_PANES_H
#define GD_REPL_PANES_H

#include "repl/core/command.h"

/* In the order of enum tui_pane_id (tui/keys.h); ends with NULL. */
extern const char *const pane_names[];

/* GD_ESTATE: this program has no panes. */
int panes_need(struct command_call *call, struct gd_err *err);

#endif
