// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The text of source files that only the training process can read: the cells of a notebook, a
 * program given as text, files of another machine. Asked for once per session and file, and kept.
 */
#ifndef GD_REPL_SRCTEXT_H
#define GD_REPL_SRCTEXT_H

#include <stdio.h>

#include "repl/core/command.h"

/* The text as a stream to read; NULL: there is none, or none yet. A command (with its session and
 * output) waits for the answer. Anybody else gets what is known by now, and asks for the next time.
 */
FILE *srctext_open(struct command_call *call, const char *file);

/* fn runs after each answer that has come without anybody waiting for it; NULL: nobody. */
void srctext_tell(struct repl *repl, void (*fn)(void *ctx), void *ctx);

#endif
