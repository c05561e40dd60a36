// SPDX-License-Identifier: GPL-3.0-or-later
/* What the files evaluate*.c share. */
#ifndef GD_REPL_EVALUATE_IMPL_H
#define GD_REPL_EVALUATE_IMPL_H

#include "repl/core/command.h"

/* A request in JSON or words to the training process, and its answer in JSON. Ctrl-C interrupts
 * what the request runs. */
int evaluate_send(struct command_call *call, const char *name, const char *args, cJSON **ret,
                  struct gd_err *err);

/* The form of the tensor in a reply. GD_EPROTO: it has none. */
int evaluate_shape(const cJSON *reply, enum gd_dtype *dtype, struct gd_shape *shape, size_t *bytes,
                   struct gd_err *err);
/* The tensor in a reply; asks for what did not fit into it. */
int evaluate_tensor(struct command_call *call, const cJSON *reply, struct gd_tensor **ret,
                    struct gd_err *err);

#endif
