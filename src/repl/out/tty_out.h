// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Text on its way to the terminal. A terminal takes nothing while its user has stopped it (C-s) or
 * its connection hangs. A write would then block the training and every signal, so what the
 * terminal does not take at once is queued in memory and sent by the loop.
 *
 * There is one terminal: that of stdout, else that of stderr. Text for a stream that is not a
 * terminal is written at once. If that is a pipe that nobody reads, gradb blocks like any program,
 * and so does the training as soon as something is to be reported; signals are still handled.
 */
#ifndef GD_REPL_TTY_OUT_H
#define GD_REPL_TTY_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define TTY_STUCK_MS 2000 /* a terminal that takes nothing for this long is given up */

struct ev_loop;

/* Uses the present terminal, if any. */
void tty_out_begin(struct ev_loop *loop);
/* Sends the queue while the terminal takes something at least every patience_ms; drops the rest.
 * Afterwards the streams are written to directly. */
void tty_out_end(int patience_ms);

/* fd: STDOUT_FILENO or STDERR_FILENO. Some megabytes are queued; text beyond them is left out, and
 * a line marks the place. False: writing failed, with errno. */
bool tty_out_write(int fd, const char *text, size_t len);
bool tty_out_puts(int fd, const char *text);
size_t tty_out_waiting(void); /* bytes */
/* Drops the queue and ends the current row. */
void tty_out_drop(void);
/* For the handler of a signal that the loop handles: until tty_out_interrupted, text that is not
 * taken within a second is dropped. */
void tty_out_interrupt(void);
void tty_out_interrupted(void);
/* Whether text was dropped like this and the signal has not been handled since. */
bool tty_out_gave_up(void);
/* fn is called from the loop each time the queue has become empty. NULL: removes it. */
void tty_out_when_empty(void (*fn)(void *ctx), void *ctx);

/* A FILE for readline: what is flushed is queued as for stdout. Never closed. NULL: out of
 * memory. */
FILE *tty_out_file(void);

#endif
