// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Words of other tools (gdb, pdb, lldb, Weights & Biases, tfdbg, MindInsight) that are not the name
 * or an alias of a command here: what they mean, or why there is no such thing and what to do.
 */
#ifndef GD_REPL_FOREIGN_H
#define GD_REPL_FOREIGN_H

#include <stddef.h>

struct foreign {
    const char *words; /* "thread backtrace": the first words of the line, in full */
    const char *line;  /* runs in place of these words: "backtrace"; NULL: nothing is like it */
    const char *hint;  /* the error otherwise, after `words: ` */
};

extern const struct foreign foreign_rows[]; /* ends with NULL words */

/* The row with the most words that begin `line`; NULL: none does. *rest: what follows them. */
const struct foreign *foreign_find(const char *line, const char **rest);

#endif
