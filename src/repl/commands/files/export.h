// SPDX-License-Identifier: GPL-3.0-or-later
/* The parts of `export`. */
#ifndef GD_REPL_EXPORT_H
#define GD_REPL_EXPORT_H

#include "repl/core/command.h"

int export_tensorboard(struct command_call *call, struct gd_err *err);
int export_html(struct command_call *call, struct gd_err *err);

#endif
