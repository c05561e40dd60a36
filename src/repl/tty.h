// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * What a terminal that was said to be readable has. Ctrl-C throws away what was typed before it, so
 * by the time one looks there may be nothing: a read would wait for the next key with everybody
 * else, and it is not the end of the terminal either.
 */
#ifndef GD_REPL_TTY_H
#define GD_REPL_TTY_H

enum tty_input {
    TTY_NOTHING, /* a read would wait */
    TTY_BYTES,
    TTY_GONE, /* hung up, or its input ended */
};
enum tty_input tty_look(int fd);

#endif
