// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Restores the terminal when the program dies: on a fatal signal the saved terminal settings and
 * the escape sequences that leave the panes are written before the signal takes its course.
 */
#ifndef GD_TUI_GUARD_H
#define GD_TUI_GUARD_H

struct draw;

/* Call before draw_open: saves the terminal's settings and the current signal handlers. */
void tui_guard_save(void);
/* Call after draw_open: `restore` (copied) is written to stdout when a fatal signal arrives. */
void tui_guard_arm(const char *restore);
void tui_guard_disarm(void); /* restores the signal handlers, or those of the prompt's guard */

/* Brackets every use of a terminal (the prompt changes its settings, too). Call again for another
 * terminal on stdin. */
void tui_guard_begin(void);
void tui_guard_end(void);

#endif
