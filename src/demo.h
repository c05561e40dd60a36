// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * `gradb demo`: the little transformer that comes with gradb, with a fault in it.
 */
#ifndef GD_DEMO_H
#define GD_DEMO_H

#include "repl/core/repl.h"

/* Starts it. For a person it stops before the first step with a hint of what to type; otherwise a
 * tour is played that ends at the fault. Returns GD_OK or the error that was printed. */
int demo_start(struct repl *repl, bool terminal);

#endif
