// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * What the commands about watchpoints share: finding one by its number, how one is named and
 * recorded, and the words of hits.
 */
#ifndef GD_REPL_WATCH_H
#define GD_REPL_WATCH_H

#include "engine/watch/watchpoint.h"
#include "repl/core/command.h"

/* "3" or "$bpnum" (the number given last). GD_EINVAL. */
int watch_number(struct command_call *call, const char *text, int *ret, struct gd_err *err);
/* The same, and there is such a watchpoint. GD_ENOTFOUND. */
int watch_find(struct command_call *call, const char *text, struct gd_watchpoint **ret,
               struct gd_err *err);
/* The first word of a command that takes its line raw ("" at the end), and what follows it. */
const char *watch_first_word(struct command_call *call, const char **rest);

/* "watch", "trace", "temporary" */
const char *watch_kind(const struct gd_watchpoint *watch);
/* "Watchpoint", "Trace", "Temporary watchpoint": as a sentence begins. */
const char *watch_noun(const struct gd_watchpoint *watch);
/* "TL abs_mean_gt=1000 on gradients if step > 10", safe to print, in the arena. */
const char *watch_text(struct command_call *call, const struct gd_watchpoint *watch);
/* Nodes of the current session that it covers; 0 for a number of the training. */
size_t watch_nodes(struct command_call *call, const struct gd_watchpoint *watch);
/* Why it covers no node yet, in a process that may show some later; NULL when that is not so. */
/* "hid 40 values of 2 tensors: intentional, e.g. masks of -inf"; "": it hid none. */
const char *watch_hidden(struct command_call *call, const struct gd_watchpoint *watch);
const char *watch_waits(struct command_call *call, const struct gd_watchpoint *watch);
/* Everything known of it, into `object`. */
void watch_record(struct command_call *call, cJSON *object, const struct gd_watchpoint *watch);
/* "Watchpoint 2: TO on all: 212 nodes", and the record "watchpoint". */
void watch_show(struct command_call *call, const struct gd_watchpoint *watch);

/* The name of the current node, of the graph. GD_EUSAGE: there is none. */
int watch_current_node(struct command_call *call, const char **ret, struct gd_err *err);
/* Where the line of `break` or `tbreak` has an `if`: makes the watchpoint that it stands for, which
 * looks at the node right when it has executed. *ret: whether it has one; else nothing is done.
 * GD_EUSAGE, and what gd_watchpoint_add says. */
int watch_break_if(struct command_call *call, bool temporary, bool *ret, struct gd_err *err);

/* Asks for the costs and waits: the watchpoints' cost_ns and cost_bytes are up to date then.
 * GD_EINTR, GD_ETIMEOUT, or why the targets cannot tell. */
int watch_ask_costs(struct command_call *call, struct gd_watch_total *ret, struct gd_err *err);

/* The numbers of the watchpoints that cover a node, "1, 4", "" when none does; in the arena. */
const char *watch_numbers_of(struct command_call *call, gd_node_id node);
/* The same into an array. */
cJSON *watch_numbers_record(struct command_call *call, gd_node_id node);
/* ", watched" or ", partly watched"; "" */
const char *watch_scope_mark(struct command_call *call, gd_scope_id scope);
/* "none", "part", "all", "cannot" */
const char *watch_state_name(enum gd_watch_state state);

#endif
