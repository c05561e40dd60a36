// SPDX-License-Identifier: GPL-3.0-or-later
/* What `save` saves. */
#ifndef GD_REPL_SAVE_H
#define GD_REPL_SAVE_H

#include "repl/core/command.h"

/* A file name made from what is saved (call->argv), for a `save` without one. NULL: out of memory.
 */
const char *save_name(struct command_call *call, const char *mode);
/* `save TENSOR|SELECTOR FILE`: what call->argv has left. */
int save_tensors(struct command_call *call, const char *path, bool previous, bool difference,
                 bool force, struct gd_err *err);
/* `save watchpoints FILE`, `save breakpoints FILE` (both kinds). */
int save_points(struct command_call *call, bool breakpoints, const char *path, bool force,
                struct gd_err *err);
/* `save overflow N DIR` */
int save_overflow(struct command_call *call, const char *which, const char *folder,
                  struct gd_err *err);

#endif
