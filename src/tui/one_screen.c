// SPDX-License-Identifier: GPL-3.0-or-later
#define NCURSES_WIDECHAR 1
#include "tui/one_screen.h"

#include <curses.h>
#include <stdio.h>
#include <term.h>

/* curses has no option for this and keeps its own copy of the capability table. The strings in it
 * are on the heap; an empty one is sent as nothing. */
static void make_empty(const char *capability)
{
    char *text = tigetstr(capability);

    if (text && text != (char *)-1) {
        text[0] = '\0';
    }
}

void one_screen_start(int rows)
{
    curs_set(0); /* flushes what newterm wrote, including the switch to the alternate screen */
    curs_set(1);
    const char *back = tigetstr("rmcup");
    if (back && back != (char *)-1) {
        putp(back);
    }
    for (int i = 0; i < rows; i++) { /* the first picture would overwrite what is visible */
        putp("\n");
    }
    fflush(stdout);
    make_empty("smcup");
    make_empty("rmcup");
}
