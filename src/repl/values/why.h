// SPDX-License-Identifier: GPL-3.0-or-later
/* What `why` and `tensor-graph` share: marks of nodes and one-line statistics. */
#ifndef GD_REPL_WHY_H
#define GD_REPL_WHY_H

#include "engine/why/why.h"
#include "repl/core/command.h"

/* What fired on a value at this stop: " [TO WL]" with a leading blank, or "". In the arena. */
const char *why_hits(struct command_call *call, gd_node_id node, uint32_t slot);
/* The same as an array of abbreviations. */
void why_add_hits(struct command_call *call, cJSON *object, gd_node_id node, uint32_t slot);
/* "float32 (4, 32) n=128 ... min -3 max 2", or the shape alone. */
const char *why_figures(struct command_call *call, enum gd_dtype dtype,
                        const struct gd_shape *shape, const struct gd_stats *stats);

/* GD_ENOMEM. all: every value that was checked, not only the path to the origin. */
int why_show_tree(struct command_call *call, const struct gd_why *why, bool all,
                  struct gd_err *err);

/* What the training process knows about the node; all 0 if it cannot say. Only GD_EINTR is an
 * error. */
int why_ask_facts(struct command_call *call, gd_node_id node, struct gd_why_facts *ret,
                  struct gd_err *err);

/* For a parameter that differs between ranks: whether its gradient does too, as far as ranks are
 * stopped. Only GD_EINTR is an error. */
int why_ask_ranks(struct command_call *call, struct gd_why_facts *facts, struct gd_err *err);

#endif
