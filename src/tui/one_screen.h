// SPDX-License-Identifier: GPL-3.0-or-later
/* Panes on the normal screen of the terminal, so that what they showed stays in the scroll-back. */
#ifndef GD_TUI_ONE_SCREEN_H
#define GD_TUI_ONE_SCREEN_H

/* Call between newterm and the first picture: keeps curses from switching to the alternate screen,
 * and moves what the normal one shows into the scroll-back. */
void one_screen_start(int rows);

#endif
