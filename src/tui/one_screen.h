// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Panes without the terminal's second screen, for who wants what they showed in the scroll-back: a
 * file of its own, because curses' names of the terminal's sequences are too common for others.
 */
#ifndef GD_TUI_ONE_SCREEN_H
#define GD_TUI_ONE_SCREEN_H

/* Right behind newterm: back from the second screen, which curses asked for, and never there again.
 * What the first one shows is moved into the scroll-back. */
void one_screen_start(int rows);

#endif
