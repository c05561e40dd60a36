// SPDX-License-Identifier: GPL-3.0-or-later
/* Lines of the program's source as commands take and show them. */
#ifndef GD_REPL_LINES_H
#define GD_REPL_LINES_H

#include "repl/core/command.h"

/* The selected frame: of the line at which the training is stopped, else of the current node.
 * NULL: there is none. */
const struct gd_frame *lines_frame(struct command_call *call);
/* FILE:LINE of what was typed: itself, or of the number of a line in the selected frame's file; ""
 * is the selected frame's line. NULL: it names no line. In the arena. */
const char *lines_place(struct command_call *call, const char *text);
/* The same; with `functions` also for the name of a function, if no node and no module has it.
 * GD_OK with *ret NULL: it is neither. GD_ESTATE: the number of a line, and no frame is selected.
 */
int lines_place_of(struct command_call *call, const char *text, bool functions, const char **ret,
                   struct gd_err *err);

enum lines_life {
    LINES_STAYS,
    LINES_ONCE,      /* as `tbreak` sets it */
    LINES_MOMENTARY, /* as `until` does: if no function has that name, it is deleted unasked */
};
/* Sets a breakpoint there (lines_place_of), and settles it; guard "": none. */
int lines_break(struct command_call *call, const char *where, enum lines_life life,
                const char *guard, struct gd_breakpoint **ret, struct gd_err *err);
/* Waits for what the training process says about a new breakpoint's line. Where the source is not
 * loaded, asks whether it is to wait for it; *ret NULL: the user said no, and it is deleted.
 * GD_ENOTFOUND: there is no such line, and it is deleted. */
int lines_settle(struct command_call *call, struct gd_breakpoint **ret, struct gd_err *err);
/* A guard without values of tensors. GD_EINVAL, GD_ENOTFOUND. */
int lines_set_guard(struct command_call *call, struct gd_breakpoint *at, const char *guard,
                    struct gd_err *err);

/* "nano.py:38 (Net.forward)", "nano.py:38 (pending: ...)" */
const char *lines_text(struct command_call *call, const struct gd_breakpoint *at);
/* Adds file, line, function, places and pending. */
void lines_record(cJSON *object, const struct gd_breakpoint *at);

#endif
