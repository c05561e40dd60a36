// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * What lets `run` show a Python program that has never heard of gradb: a folder in front of
 * PYTHONPATH whose sitecustomize waits for PyTorch, and the libgradb that belongs to this gradb.
 * Both are looked for where this program was built or installed, from its own place on: a wheel
 * puts it into the bin of an environment.
 */
#ifndef GD_REPL_LAUNCH_PYTHON_H
#define GD_REPL_LAUNCH_PYTHON_H

#include <stdbool.h>

#include "base/arena.h"

struct launch_python {
    const char *path;    /* for PYTHONPATH, the user's own behind ours; NULL: leave it as it is */
    const char *library; /* for GRADB_LIBRARY; NULL: none was found, or the user names one */
};

/* Fills *ret; its texts are the arena's. What is not found is NULL: other programs need none. */
void launch_python_find(struct gd_arena *arena, struct launch_python *ret);

/* Why a program that never connected may not have been seen, and what to do: a part of a sentence.
 * went_well: it ended with status 0, or runs still. NULL: it is no Python, or speaks for itself. */
const char *launch_python_hint(struct gd_arena *arena, char *const argv[], bool went_well);

#endif
