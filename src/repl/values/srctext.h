// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Source text that only the training process can read: notebook cells, a program given as text,
 * files of another host. Requested once per session and file, and kept.
 */
#ifndef GD_REPL_SRCTEXT_H
#define GD_REPL_SRCTEXT_H

#include <stdio.h>

#include "repl/core/command.h"

/* The text as a stream; NULL: none, or not yet. A command (with its session and output) waits for
 * the reply. Others get what is known, and the text is requested for the next call. */
FILE *srctext_open(struct command_call *call, const char *file);

/* fn runs after each reply that nobody waited for; NULL: none. */
void srctext_tell(struct repl *repl, void (*fn)(void *ctx), void *ctx);

#endif
