// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The table of each group of commands; each is defined in repl/cmd_*.c and listed in commands.c.
 */
#ifndef GD_REPL_COMMANDS_H
#define GD_REPL_COMMANDS_H

#include "repl/core/command.h"

extern const struct command cmd_agent_table[];
extern const struct command cmd_break_table[];
extern const struct command cmd_catch_table[];    /* catch, tcatch */
extern const struct command cmd_overflow_table[]; /* overflow, rerun */
extern const struct command cmd_run_table[];
extern const struct command cmd_settings_table[];
extern const struct command cmd_shell_table[];
extern const struct command cmd_start_table[];
extern const struct command cmd_support_table[];
extern const struct command cmd_ranks_table[];     /* rank, session */
extern const struct command cmd_watch_table[];     /* watch, trace, edit, condition, exclude, ... */
extern const struct command cmd_hits_table[];      /* hit, next-hit, previous-hit */
extern const struct command cmd_advice_table[];    /* advice */
extern const struct command cmd_recommend_table[]; /* recommend */
extern const struct command cmd_screen_table[];    /* layout, focus, winheight, refresh, bind */
/* inspection */
extern const struct command cmd_print_table[];      /* print, x, whatis, stats */
extern const struct command cmd_tensor_table[];     /* tensor */
extern const struct command cmd_data_table[];       /* tensors, find, save */
extern const struct command cmd_display_table[];    /* display, undisplay */
extern const struct command cmd_graph_table[];      /* search, inputs, outputs, node, scope */
extern const struct command cmd_stack_table[];      /* list, backtrace, frame, up, down, sources */
extern const struct command cmd_why_table[];        /* why, tensor-graph */
extern const struct command cmd_info_table[];       /* info and its subjects */
extern const struct command cmd_convert_table[];    /* convert */
extern const struct command cmd_dump_table[];       /* open */
extern const struct command cmd_dump_live_table[];  /* dump, check-config */
extern const struct command cmd_scan_table[];       /* scan, merge */
extern const struct command cmd_compare_table[];    /* compare */
extern const struct command cmd_divergence_table[]; /* first-divergence */
extern const struct command cmd_lockstep_table[];   /* lockstep */
extern const struct command cmd_nonfinite_table[];  /* first-nonfinite */
extern const struct command cmd_check_table[];      /* check */

/* `catch overflow [N]`, `tcatch overflow`: call->line is what follows. `save overflow N DIR`. */
int cmd_catch_overflow(struct command_call *call, bool temporary, struct gd_err *err);
int cmd_save_overflow(struct command_call *call, const char *which, const char *folder,
                      struct gd_err *err);

struct gd_buf;
/* What a hit is about: "NODE:SLOT max_gt=0.5 (0.75)", or why it could not be checked. */
void repl_hit_text(const struct gd_hit *hit, struct gd_buf *out);
/* As an object; with `head` the session's number and rank come first. */
cJSON *repl_hit_json(const struct gd_session *session, const struct gd_hit *hit, bool head);

struct gd_condition;
/* Where to look when it fired, and what it usually means. */
void watch_advice(struct command_call *call, const struct gd_condition *condition);
/* Text in lines that fit the output's width, behind so many blanks. */
void watch_fold(struct command_call *call, const char *text, int indent);
/* `help keys`, `help connect`. */
int cmd_help_keys(struct command_call *call, struct gd_err *err);
int cmd_help_connect(struct command_call *call);
int cmd_help_setting(struct command_call *call, const char *name, struct gd_err *err);
/* `disconnect`, `info session`. */
int cmd_disconnect(struct command_call *call, struct gd_err *err);
int cmd_info_session(struct command_call *call, struct gd_err *err);
/* `save TENSOR|SELECTOR FILE`: what call->argv has left. */
/* What a file without a name is called: by what is saved in it. NULL: out of memory. */
const char *cmd_save_name(struct command_call *call, const char *mode);
int cmd_save_tensors(struct command_call *call, const char *path, bool previous, bool difference,
                     bool force, struct gd_err *err);
/* `save watchpoints FILE`, `save breakpoints FILE` (both kinds). */
int cmd_save_points(struct command_call *call, bool breakpoints, const char *path, bool force,
                    struct gd_err *err);

#endif
