// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * What commands about watchpoints share: finding one by number, its name and record.
 */
#ifndef GD_REPL_WATCH_H
#define GD_REPL_WATCH_H

#include "engine/watch/watchpoint.h"
#include "repl/core/command.h"

/* "3", or "$bpnum" for the last one that was set. GD_EINVAL. */
int watch_number(struct command_call *call, const char *text, int *ret, struct gd_err *err);
/* The watchpoint with that number. GD_EINVAL, GD_ENOTFOUND. */
int watch_find(struct command_call *call, const char *text, struct gd_watchpoint **ret,
               struct gd_err *err);
/* The first word of a raw line ("" at the end), and what follows it. */
/* Says which metrics of the expression, NULL: none, were never reported. */
void watch_note_unknown(struct command_call *call, const struct gd_expr *expr);
const char *watch_first_word(struct command_call *call, const char **rest);

/* "watch", "trace", "temporary" */
const char *watch_kind(const struct gd_watchpoint *watch);
/* "Watchpoint", "Trace", "Temporary watchpoint", for the start of a sentence. */
const char *watch_noun(const struct gd_watchpoint *watch);
/* "TL abs_mean_gt=1000 on gradients if step > 10", escaped, in the arena. */
const char *watch_text(struct command_call *call, const struct gd_watchpoint *watch);
/* Nodes of the current session that it covers; 0 for a metric. */
size_t watch_nodes(struct command_call *call, const struct gd_watchpoint *watch);
/* Why it covers no node yet, in a process that may show some later; NULL when that is not so. */
/* "hid 40 values of 2 tensors: intentional, e.g. masks of -inf"; "": it hid none. */
const char *watch_hidden(struct command_call *call, const struct gd_watchpoint *watch);
const char *watch_waits(struct command_call *call, const struct gd_watchpoint *watch);
/* Adds its fields to `object`. */
void watch_record(struct command_call *call, cJSON *object, const struct gd_watchpoint *watch);
/* Prints "Watchpoint 2: TO on all: 212 nodes" and fills the record "watchpoint". */
void watch_show(struct command_call *call, const struct gd_watchpoint *watch);

/* Asks the training processes for the costs and waits: afterwards cost_ns and cost_bytes are
 * current. GD_EINTR, GD_ETIMEOUT, or why they are unavailable. */
int watch_ask_costs(struct command_call *call, struct gd_watch_total *ret, struct gd_err *err);

/* Numbers of the watchpoints that cover a node: "1, 4"; "": none. In the arena. */
const char *watch_numbers_of(struct command_call *call, gd_node_id node);
/* The same as an array. */
cJSON *watch_numbers_record(struct command_call *call, gd_node_id node);
/* ", watched", ", partly watched" or "". */
const char *watch_scope_mark(struct command_call *call, gd_scope_id scope);
/* "none", "part", "all", "cannot" */
const char *watch_state_name(enum gd_watch_state state);

#endif
