// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Opens files that a training run left behind as sessions. File contents are never trusted and
 * never executed.
 */
#ifndef GD_DUMP_DUMP_H
#define GD_DUMP_DUMP_H

#include "engine/debugger.h"

/* A gd_open_fn: detects the format. options may be NULL. */
int gd_dump_open(struct gd_debugger *debugger, const char *path,
                 const struct gd_open_options *options, struct gd_session **ret,
                 struct gd_err *err);

/* Opens a flight record (engine/history/history.h): statistics of the last steps. Its graph has the
 * recorded nodes and no edges. GD_ELIMIT: larger than max-graph-memory. */
int gd_recorder_open(struct gd_debugger *debugger, const char *path, struct gd_session **ret,
                     struct gd_err *err);

#endif
