// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Where gradb keeps files that outlive it: $XDG_STATE_HOME/gradb, or ~/.local/state/gradb.
 */
#ifndef GD_ENGINE_STATE_DIR_H
#define GD_ENGINE_STATE_DIR_H

#include "base/error.h"

/* Its path, without a trailing slash; created for the user alone if missing. GD_EIO. */
int gd_state_directory(char *out, size_t size, struct gd_err *err);

/* Removes all but the `keep` newest of the files in that directory whose names begin and end so.
 * `time_of` returns when one was written, < 0: leave it. A file that someone has locked stays. */
void gd_state_trim(const char *path, const char *prefix, const char *suffix, size_t keep,
                   double (*time_of)(int directory, const char *name));

#endif
