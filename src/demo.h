// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * `gradb demo`: a small transformer that comes with gradb, trained with a bug.
 */
#ifndef GD_DEMO_H
#define GD_DEMO_H

#include "repl/core/repl.h"

/* Starts it. On a terminal it stops before the first step and prints what to try; otherwise it
 * plays a tour that ends at the bug. Returns GD_OK or the error that was printed. */
int demo_start(struct repl *repl, bool terminal);

#endif
