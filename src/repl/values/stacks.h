// SPDX-License-Identifier: GPL-3.0-or-later
/* Stacks of nodes, for the commands that walk them and those that show source. */
#ifndef GD_REPL_STACKS_H
#define GD_REPL_STACKS_H

#include "repl/core/command.h"

struct stack_places {
    const struct gd_frame *frame; /* all entries including titles; owned by the graph */
    uint32_t frame_count;
    uint32_t *place; /* indexes of the entries that name a file: frame #0, #1, ... */
    uint32_t count;
};
/* GD_ENOMEM. The count may be 0. */
int stack_places(struct command_call *call, gd_node_id node, struct stack_places *ret,
                 struct gd_err *err);

/* The node of `text` (inspect_node). Without text, the current node; where none is selected, at a
 * line or between operators of a Python program, GD_NO_NODE, whose stack is that of the training
 * thread. */
int stack_subject(struct command_call *call, const char *text, gd_node_id *ret, struct gd_err *err);

/* For a pane: asks a stopped Python program for the stack of its training thread, once per stop.
 * GD_EV_STACK follows, and gd_session_line_stack has it. */
void stack_ask_later(struct gd_session *session);

/* stack_places; GD_ENODATA when there is none. */
int stack_need_places(struct command_call *call, gd_node_id node, struct stack_places *ret,
                      struct gd_err *err);

/* GD_ENODATA with the reason: the node has no source location, or it is the gradient of a weight
 * without one. */
int stack_missing(struct command_call *call, gd_node_id node, struct gd_err *err);

/* The node itself if it has a stack, else the first producer of the gradient or user of the weight,
 * which is printed if `tell`; without any, the node. */
gd_node_id stack_node(struct command_call *call, gd_node_id node, bool tell);

#define STACK_MAKERS 4 /* substitutes shown for a node without a stack */
struct stack_makers {  /* nodes with a stack, for one that has none */
    gd_node_id node[STACK_MAKERS];
    const struct gd_frame *stack[STACK_MAKERS];
    uint32_t count, more, looked;
};
/* Finds substitutes; "used by" or "made by" says what they are to the node. */
const char *stack_find_makers(struct command_call *call, const struct gd_node_info *info,
                              gd_node_id node, struct stack_makers *makers);

/* The number of the innermost frame outside installed packages, else 0; false: there are no
 * frames. */
bool stack_own_frame(const struct stack_places *places, uint32_t *ret);
/* Prints "#0 model.c:42 in f" and its source line, and adds the same to the object. */
void stack_show_frame(struct command_call *call, cJSON *object, uint32_t number,
                      const struct gd_frame *frame);

#endif
