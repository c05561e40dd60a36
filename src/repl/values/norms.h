// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * "grad_norm", "grad_norm(NODE)" and "update_ratio(NODE)": metrics that a training process computes
 * when it is asked to (python/gradb/norms.py), under the name that was typed.
 */
#ifndef GD_REPL_NORMS_H
#define GD_REPL_NORMS_H

#include "repl/core/command.h"

/* Asks the process for all that the command's line names, before the command runs. shows: the
 * command shows the present values; GD_ENODATA: the present step has none, and from which step on
 * it is known. GD_ENOTFOUND: NODE is not a node. Without a stopped process nothing happens. */
int norms_want(struct command_call *call, bool shows, struct gd_err *err);

#endif
