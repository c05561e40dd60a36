// SPDX-License-Identifier: GPL-3.0-or-later
/* Panes without the terminal's second screen, for who wants what they showed in the scroll-back. */
#ifndef GD_TUI_ONE_SCREEN_H
#define GD_TUI_ONE_SCREEN_H

/* Between newterm and the first picture: curses does not go to the second screen. What the first
 * one shows is moved into the scroll-back. */
void one_screen_start(int rows);

#endif
