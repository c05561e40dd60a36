// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The way of text to the terminal. A terminal takes nothing while its user has stopped it (C-s),
 * nor while the line to it hangs; a write would wait then, and with it the training and every
 * signal. So what the terminal does not take at once waits in memory, and the loop sends it on.
 *
 * There is one terminal: the one that stdout leads to, else stderr. Text for a stream that leads
 * elsewhere is written there at once. Where that is a pipe that nobody reads, it waits, as every
 * program does, and the training with it when it comes to something that is to be told; signals are
 * answered all the same.
 */
#ifndef GD_REPL_TTY_OUT_H
#define GD_REPL_TTY_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define TTY_STUCK_MS 2000 /* a terminal that took nothing for so long is left as it is */

struct ev_loop;

/* The terminal that is there now, if there is one; another one than before. */
void tty_out_begin(struct ev_loop *loop);
/* Sends what waits, as long as the terminal takes something every so many milliseconds; the rest is
 * dropped. The streams are written to as ever afterwards. */
void tty_out_end(int patience_ms);

/* fd: STDOUT_FILENO or STDERR_FILENO. Text that would be the first to exceed some megabytes still
 * waits; what comes then is left out, and a line says so where it would stand. false: it could not
 * be written, with errno. */
bool tty_out_write(int fd, const char *text, size_t len);
bool tty_out_puts(int fd, const char *text);
size_t tty_out_waiting(void); /* bytes */
/* Nobody wants what waits. The row that has begun is ended. */
void tty_out_drop(void);
/* For the handler of a signal that the loop answers: until that is done (tty_out_interrupted), text
 * that nobody takes for a second is dropped instead of waited with. */
void tty_out_interrupt(void);
void tty_out_interrupted(void);
/* Whether text was dropped so, and nothing answered the signal since. */
bool tty_out_gave_up(void);
/* From the loop, each time that all has gone out. NULL: no more. */
void tty_out_when_empty(void (*fn)(void *ctx), void *ctx);

/* For who writes to a FILE (readline): what is flushed goes this way, as for stdout. NULL: out of
 * memory. It stays. */
FILE *tty_out_file(void);

#endif
