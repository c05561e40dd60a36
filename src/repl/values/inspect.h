// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * What the inspection commands (info, print, list, search, ...) share: their tables, small helpers
 * for arguments and cells, and the state they keep between commands.
 *
 * Text that these helpers return lies in call->arena. JSON objects given to them stay the caller's.
 */
#ifndef GD_REPL_INSPECT_H
#define GD_REPL_INSPECT_H

#include "repl/core/command.h"

/* ---- arguments ----------------------------------------------------------------------------- */

/* Takes the word out of call->argv; false when it is not there. */
bool inspect_take_flag(struct command_call *call, const char *flag);
/* Takes "--by W" out of call->argv, and gives the W; NULL when it is not there. */
const char *inspect_take_word(struct command_call *call, const char *option);
/* Takes "-d 3" (or "-d3") out of call->argv. *ret keeps its value when the option is not there. */
int inspect_take_count(struct command_call *call, const char *flag, int64_t min, int64_t max,
                       int64_t *ret, struct gd_err *err);
/* GD_EUSAGE when a word that looks like an option ("-q") is left. */
int inspect_no_options(const struct command_call *call, struct gd_err *err);
/* "T [0, :]" was split at the blank: a word that opens with a bracket joins the one before. */
void inspect_join_slices(struct command_call *call);
/* Words first..last-1 joined by one blank. */
const char *inspect_join(struct command_call *call, int first, int last);

/* The path with "~/" replaced by the home directory. */
const char *inspect_home_path(struct command_call *call, const char *path);

/* Sets call->session to the selected one; GD_ESTATE when there is none. */
int inspect_session(struct command_call *call, struct gd_err *err);
/* The node that `text` names, or the current one when text is NULL. */
int inspect_node(struct command_call *call, const char *text, gd_node_id *ret, struct gd_err *err);

/* ---- cells --------------------------------------------------------------------------------- */

const char *inspect_printf(struct command_call *call, const char *format, ...)
    __attribute__((format(printf, 2, 3))); /* "" when memory is short */
/* As out_safe; in JSON mode the text itself when it is valid UTF-8, for cJSON escapes the rest. */
const char *inspect_name(struct command_call *call, const char *text);
/* "12,345"; in JSON mode without the commas. */
const char *inspect_number(struct command_call *call, uint64_t value);
/* "12,345 nodes", "1 node" */
const char *inspect_plural(struct command_call *call, uint64_t value, const char *noun);
/* "(64, ?)" */
const char *inspect_shape(struct command_call *call, const struct gd_shape *shape);
/* "[3, 0, 12]": where element number `flat` in C order lies; "[]" of a scalar */
const char *inspect_index(struct command_call *call, const struct gd_shape *shape, int64_t flat);
/* A slot as it is written: "0", "in0" */
const char *inspect_slot(struct command_call *call, gd_node_id node, uint32_t slot);
/* "32 KiB" */
const char *inspect_bytes(struct command_call *call, uint64_t bytes);
/* "1.25 s", "3 min 20 s" */
const char *inspect_duration(struct command_call *call, double seconds);
/* The value as %.6g, non-finite ones as numpy spells them. */
const char *inspect_double(struct command_call *call, double value);
/* The first output slot: "float32 (64, 32)", "" when it has none, with " +2" for more slots. */
const char *inspect_outputs(struct command_call *call, gd_node_id node);
/* The name, safe; for a person at a terminal without leading scopes where it would not fit behind
 * `used` columns. */
const char *inspect_fit(struct command_call *call, const char *name, int used);

/* ---- records ------------------------------------------------------------------------------- */

/* [64, 32] */
cJSON *inspect_shape_json(const struct gd_shape *shape);
/* {"node":NAME,"node_type":...,"kind":...,"order":...} into object. */
void inspect_add_node(struct command_call *call, cJSON *object, gd_node_id node);

/* ---- state --------------------------------------------------------------------------------- */

struct inspect_state {
    /* the selected frame, of this node as it was selected at this stop */
    int session;
    gd_node_id node;
    uint64_t stop;
    uint32_t frame; /* index among the frames that have a place, innermost 0 */
    /* where `list` goes on */
    char *list_file;
    uint32_t list_next;  /* first line of the next part */
    uint32_t list_first; /* first line of the part shown last */
    uint32_t list_mark;  /* line to mark, 0 none */
    uint64_t list_stop;  /* what was selected then: stop, node, frame */
    gd_node_id list_node;
    uint32_t list_frame;
    /* where `x` goes on */
    char *x_text; /* the tensor as typed */
    int64_t x_next;
    int64_t x_count;
    char x_letter;
};
/* The repl's state, made on first use; NULL when memory is short. */
struct inspect_state *inspect_state(struct repl *repl);
/* The selected frame of a node: the innermost of the user's own unless up, down or frame chose
 * another at this stop. */
uint32_t inspect_frame(struct command_call *call, gd_node_id node);
void inspect_set_frame(struct command_call *call, gd_node_id node, uint32_t frame);

/* Adds the node to `set keep-previous`. GD_EUNSUPPORTED; GD_ELIMIT: the setting is full. */
int inspect_keep_previous(struct command_call *call, gd_node_id node, struct gd_err *err);

#endif
