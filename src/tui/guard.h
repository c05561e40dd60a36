// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Gives the terminal back when the program dies: on fatal signals the saved terminal settings and
 * the leaving sequences are written before the signal goes its way.
 */
#ifndef GD_TUI_GUARD_H
#define GD_TUI_GUARD_H

struct draw;

/* Before draw_open: remembers the terminal's settings and who handles the signals. One at a time.
 */
void tui_guard_save(void);
/* After draw_open: `restore` (copied) is written to stdout when a fatal signal comes. */
void tui_guard_arm(const char *restore);
void tui_guard_disarm(void); /* hands the signals back, or to the prompt's guard */

/* Around all that a terminal is used for: the prompt changes its settings, too. Again for another
 * terminal on stdin. */
void tui_guard_begin(void);
void tui_guard_end(void);

#endif
