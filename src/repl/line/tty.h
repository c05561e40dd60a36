// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * What the program asks of a terminal.
 */
#ifndef GD_REPL_TTY_H
#define GD_REPL_TTY_H

#include <stdbool.h>

/*
 * What a terminal that was said to be readable has. Ctrl-C throws away what was typed before it, so
 * by the time one looks there may be nothing: a read would wait for the next key with everybody
 * else, and it is not the end of the terminal either.
 */
enum tty_input {
    TTY_NOTHING, /* a read would wait */
    TTY_BYTES,
    TTY_GONE, /* hung up, or its input ended */
};
enum tty_input tty_look(int fd);

/* The terminal once more, to write to without waiting: the description behind fd is shared with the
 * shell and with all that was started from it. -1: it cannot be had. */
int tty_open_again(int fd);

/* C-s and C-q are keys from now on, and a terminal that stands still goes on. true: they were not
 * before, so they are to be given back. */
bool tty_flow_take(int fd);
void tty_flow_give(int fd);

#endif
