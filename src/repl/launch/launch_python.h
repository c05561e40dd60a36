// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Lets `run` debug a Python script that does not import gradb: a folder in front of PYTHONPATH
 * whose sitecustomize waits for PyTorch or MindSpore, and this gradb's libgradb. Both are searched
 * relative to this program, in the build tree or the installation; a wheel puts it into an
 * environment's bin.
 */
#ifndef GD_REPL_LAUNCH_PYTHON_H
#define GD_REPL_LAUNCH_PYTHON_H

#include <limits.h>
#include <stdbool.h>

#include "base/arena.h"

struct launch_python {
    const char *path;    /* for PYTHONPATH, before the user's own; NULL: leave it unchanged */
    const char *library; /* for GRADB_LIBRARY; NULL: not found, or set by the user */
};

/* The folder of this program, without a slash at its end. False: unknown. */
bool launch_own_folder(char ret[PATH_MAX]);

/* Fills *ret; texts are in the arena. What is not found is NULL: other programs need none. */
void launch_python_find(struct gd_arena *arena, struct launch_python *ret);

/* Why a program that never connected may have been missed, and what to do, as part of a sentence.
 * went_well: it ended with status 0 or still runs. NULL: not Python, or its error explains it. */
const char *launch_python_hint(struct gd_arena *arena, char *const argv[], bool went_well);

#endif
