// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The way of a picture from curses to the terminal. curses waits until the terminal has taken every
 * byte; a terminal behind a line that stands still would so hold the training. Therefore what
 * curses writes is caught in memory, and given to the terminal as far as it takes it.
 *
 * Where the terminal cannot be opened a second time (it is somebody else's), curses writes to it
 * itself, and only whether it takes anything at all is known.
 */
#ifndef GD_TUI_DRAW_OUT_H
#define GD_TUI_DRAW_OUT_H

#include <stdbool.h>
#include <stdio.h>

#include "base/error.h"

struct draw_out;

/* The terminal on stdout. */
int draw_out_open(struct draw_out **ret, struct gd_err *err);
void draw_out_close(struct draw_out *out); /* after curses let go of the file */
/* What curses shall write to; it is the terminal until something is caught. */
FILE *draw_out_file(struct draw_out *out);
/* From now on. Not while curses changes the terminal's modes: those are the terminal's own. */
void draw_out_catch(struct draw_out *out);
/* Gives the terminal what it takes of what was caught; true: all of it is out. */
bool draw_out_send(struct draw_out *out);
/* The rest goes out, and curses writes to the terminal itself again. false: it took nothing for so
 * many milliseconds (-1: for ever); the rest is dropped, and so is what curses still writes. */
bool draw_out_release(struct draw_out *out, int most_ms);

#endif
