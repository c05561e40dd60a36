// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Terminals: input that may vanish, a second descriptor, flow control.
 */
#ifndef GD_REPL_TTY_H
#define GD_REPL_TTY_H

#include <stdbool.h>

/*
 * What a terminal has that was reported as readable. Ctrl-C discards earlier input, so there may be
 * nothing left: a read would block, although the terminal has not ended.
 */
enum tty_input {
    TTY_NOTHING, /* a read would block */
    TTY_BYTES,
    TTY_GONE, /* hung up, or end of input */
};
enum tty_input tty_look(int fd);

/* Opens the terminal again for non-blocking writes: fd's open file is shared with the shell and its
 * programs. -1: impossible. */
int tty_open_again(int fd);

/* Makes C-s and C-q ordinary keys and resumes a stopped terminal. True: they were not; restore them
 * later. */
bool tty_flow_take(int fd);
void tty_flow_give(int fd);

#endif
