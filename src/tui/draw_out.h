// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The output of curses on its way to the terminal. curses blocks until the terminal has accepted
 * every byte, so a terminal on a stalled line would stall the training. Therefore the output of
 * curses is caught in memory and handed to the terminal as fast as it accepts it.
 *
 * If the terminal cannot be opened a second time (it belongs to another user), curses writes to it
 * directly, and all we know is whether it accepts anything.
 */
#ifndef GD_TUI_DRAW_OUT_H
#define GD_TUI_DRAW_OUT_H

#include <stdbool.h>
#include <stdio.h>

#include "base/error.h"

struct draw_out;

/* Takes the terminal on stdout. */
int draw_out_open(struct draw_out **ret, struct gd_err *err);
void draw_out_close(struct draw_out *out); /* after curses has released the file */
/* The file for curses to write to. It is the terminal itself until draw_out_catch. */
FILE *draw_out_file(struct draw_out *out);
/* Starts catching. Do not call it while curses changes the terminal's modes: those apply to the
 * real terminal. */
void draw_out_catch(struct draw_out *out);
/* Hands caught output to the terminal; true: all of it is out. */
bool draw_out_send(struct draw_out *out);
/* Sends the rest and lets curses write to the terminal directly again. Returns false when the
 * terminal accepted nothing for most_ms milliseconds (-1: wait forever): the rest is dropped, and
 * so is everything curses still writes. */
bool draw_out_release(struct draw_out *out, int most_ms);

#endif
