// SPDX-License-Identifier: GPL-3.0-or-later
/* What a dump says about values that it does not have in full. */
#ifndef GD_REPL_DUMP_NOTES_H
#define GD_REPL_DUMP_NOTES_H

#include "repl/core/command.h"

/* Of a value: a layout that was undone, missing bytes, its digest. NULL: nothing, or not a dump.
 * In the arena. */
const char *dump_note(struct command_call *call, const struct gd_tensor_ref *ref, int64_t step);
/* Of a node: why nothing of it was dumped, or the first note of its values in the current step. */
const char *dump_note_of_node(struct command_call *call, gd_node_id node);

#endif
