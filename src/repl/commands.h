// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The table of each group of commands; each is defined in repl/cmd_*.c and listed in commands.c.
 */
#ifndef GD_REPL_COMMANDS_H
#define GD_REPL_COMMANDS_H

#include "repl/command.h"

extern const struct command cmd_break_table[];
extern const struct command cmd_run_table[];
extern const struct command cmd_settings_table[];
extern const struct command cmd_shell_table[];
extern const struct command cmd_start_table[];
extern const struct command cmd_support_table[];
extern const struct command cmd_watch_table[]; /* watch, unwatch, recheck */
/* inspection */
extern const struct command cmd_print_table[];   /* print, x, whatis, stats */
extern const struct command cmd_data_table[];    /* tensors, find, save */
extern const struct command cmd_display_table[]; /* display, undisplay */
extern const struct command cmd_graph_table[];   /* search, inputs, outputs, node, scope */
extern const struct command cmd_stack_table[];   /* list, backtrace, frame, up, down, sources */
extern const struct command cmd_info_table[];    /* info and its subjects */

struct gd_buf;
/* What a hit is about: "NODE:SLOT max_gt=0.5 (0.75)", or why it could not be checked. */
void repl_hit_text(const struct gd_hit *hit, struct gd_buf *out);
/* As an object; with a session, its number and rank come first. */
cJSON *repl_hit_json(const struct gd_session *session, const struct gd_hit *hit);

#endif
