// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Files that a training left behind, opened as sessions. Nothing of a file is trusted, and nothing
 * in it is executed.
 */
#ifndef GD_DUMP_DUMP_H
#define GD_DUMP_DUMP_H

#include "engine/debugger.h"

/* A gd_open_fn: finds out what it is. The options may be NULL. */
int gd_dump_open(struct gd_debugger *debugger, const char *path,
                 const struct gd_open_options *options, struct gd_session **ret,
                 struct gd_err *err);

/* A flight record (engine/history/history.h): statistics of the last steps. The graph holds what
 * was recorded, without edges. GD_ELIMIT: larger than max-graph-memory. */
int gd_recorder_open(struct gd_debugger *debugger, const char *path, struct gd_session **ret,
                     struct gd_err *err);

#endif
