// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * What the commands share: arguments, cells of tables, records, and the state that they keep.
 *
 * Returned text is in call->arena. JSON objects stay the caller's.
 */
#ifndef GD_REPL_INSPECT_H
#define GD_REPL_INSPECT_H

#include "repl/core/command.h"

/* ---- arguments ----------------------------------------------------------------------------- */

/* Takes the word out of call->argv; false: it is not there. */
bool inspect_take_flag(struct command_call *call, const char *flag);
/* Takes "--by W" or "--by=W" out of call->argv; the last one counts. Without it *ret keeps its
 * value. GD_EUSAGE: W is missing. */
int inspect_take_option(struct command_call *call, const char *option, const char **ret,
                        struct gd_err *err);
/* Takes "-d 3" (or "-d3") out of call->argv. Without it *ret keeps its value. */
int inspect_take_count(struct command_call *call, const char *flag, int64_t min, int64_t max,
                       int64_t *ret, struct gd_err *err);
/* GD_EUSAGE: a word that looks like an option ("-q") is left. */
int inspect_no_options(const struct command_call *call, struct gd_err *err);
/* Joins words that begin with a bracket to the previous one: "T [0, :]" was split at the blank. */
void inspect_join_slices(struct command_call *call);
/* Words first..last-1 joined by one blank. */
const char *inspect_join(struct command_call *call, int first, int last);

/* The path with "~/" replaced by the home directory. */
const char *inspect_home_path(struct command_call *call, const char *path);

/* The node named `text`; NULL: the current node. */
int inspect_node(struct command_call *call, const char *text, gd_node_id *ret, struct gd_err *err);

/* ---- cells --------------------------------------------------------------------------------- */

const char *inspect_printf(struct command_call *call, const char *format, ...)
    __attribute__((format(printf, 2, 3)));                                /* "" without memory */
const char *inspect_take(struct command_call *call, struct gd_buf *text); /* frees the buffer */
/* As out_safe; in JSON mode the text itself when it is valid UTF-8, for cJSON escapes the rest. */
const char *inspect_name(struct command_call *call, const char *text);
/* "12,345"; in JSON mode "12345". */
const char *inspect_number(struct command_call *call, uint64_t value);
/* "12,345 nodes", "1 node" */
const char *inspect_plural(struct command_call *call, uint64_t value, const char *noun);
/* "(64, ?)" */
const char *inspect_shape(struct command_call *call, const struct gd_shape *shape);
/* "[3, 0, 12]": the indices of element `flat` in C order; "[]" for a scalar */
const char *inspect_index(struct command_call *call, const struct gd_shape *shape, int64_t flat);
/* A slot as it is written: "0", "in0" */
const char *inspect_slot(struct command_call *call, gd_node_id node, uint32_t slot);
/* "NODE:0", unescaped */
const char *inspect_tensor_name(struct command_call *call, gd_node_id node, uint32_t slot);
/* "32 KiB" */
const char *inspect_bytes(struct command_call *call, uint64_t bytes);
/* "1.25 s", "3 min 20 s" */
const char *inspect_duration(struct command_call *call, double seconds);
/* As %.6g; nan, inf and -inf as numpy prints them. */
const char *inspect_double(struct command_call *call, double value);
/* The first output slot: "float32 (64, 32)", "" when it has none, with " +2" for more slots. */
const char *inspect_outputs(struct command_call *call, gd_node_id node);
/* The name, safe to print; on a terminal without leading scopes if it would not fit after `used`
 * columns. */
const char *inspect_fit(struct command_call *call, const char *name, int used);

/* The node's micro-batch, "[2/4]": the second of four in the step; "[2]" while their number is
 * unknown; "" where a step has one, or the node belongs to none. */
const char *inspect_micro_batch(struct command_call *call, const struct gd_session *session,
                                gd_node_id node);
/* The pass of the training that a node belongs to: "forward", "backward", "optimizer",
 * "evaluation", "data"; "": none, or it is unknown. */
const char *inspect_pass(const struct gd_session *session, gd_node_id node);

/* ---- records ------------------------------------------------------------------------------- */

/* [64, 32] */
cJSON *inspect_shape_json(const struct gd_shape *shape);
/* Adds "node", "node_type", "kind" and "order" to the object. */
void inspect_add_node(struct command_call *call, cJSON *object, gd_node_id node);

/* ---- state --------------------------------------------------------------------------------- */

struct inspect_state {
    /* the selected frame of this node at this stop */
    int session;
    gd_node_id node;
    uint64_t stop;
    uint32_t frame; /* index among the frames with a place; 0: innermost */
    bool live;      /* `frame` is one of the running Python program's instead, see live_stack.h */
    /* where `list` continues */
    char *list_file;
    uint32_t list_next;  /* first line of the next part */
    uint32_t list_first; /* first line of the part shown last */
    uint32_t list_mark;  /* line to mark; 0: none */
    uint64_t list_stop;  /* the selection at that time: stop, node, frame */
    gd_node_id list_node;
    uint32_t list_frame;
    /* where `x` continues */
    char *x_text; /* the tensor as typed */
    int64_t x_next;
    int64_t x_count;
    char x_letter;
};
/* Created on first use; NULL: out of memory. */
struct inspect_state *inspect_state(struct repl *repl);
/* The selected frame of a node: the innermost one of the user's code unless up, down or frame chose
 * another at this stop. */
uint32_t inspect_frame(struct command_call *call, gd_node_id node);
void inspect_set_frame(struct command_call *call, gd_node_id node, uint32_t frame);
/* Whether up, down or frame has chosen one of the current node's frames at this stop, and which. */
bool inspect_chosen_frame(struct command_call *call, gd_node_id *node, uint32_t *frame);
/* The same for the frames of the stopped Python program, which belong to no node. */
bool inspect_live_frame(struct command_call *call, uint32_t *frame);
void inspect_set_live_frame(struct command_call *call, uint32_t frame);

/* Adds the node to `set keep-previous`. GD_EUNSUPPORTED; GD_ELIMIT: the setting is full. */
int inspect_keep_previous(struct command_call *call, gd_node_id node, struct gd_err *err);

#endif
