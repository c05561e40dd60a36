// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Where gradb keeps files that outlive it: $XDG_STATE_HOME/gradb, or ~/.local/state/gradb.
 */
#ifndef GD_ENGINE_STATE_DIR_H
#define GD_ENGINE_STATE_DIR_H

#include "base/error.h"

/* Its path, without a trailing slash; created for the user alone if missing. GD_EIO. */
int gd_state_directory(char *out, size_t size, struct gd_err *err);

#endif
