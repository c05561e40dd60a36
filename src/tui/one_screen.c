// SPDX-License-Identifier: GPL-3.0-or-later
#define NCURSES_WIDECHAR 1
#include "tui/one_screen.h"

#include <curses.h>
#include <stdio.h>
#include <term.h>

/* curses has no switch for it, and keeps the table that term.h shows apart from the one it goes by;
 * but this is the text in the latter, on the heap, and an empty one is sent as nothing. */
static void make_empty(const char *capability)
{
    char *text = tigetstr(capability);

    if (text && text != (char *)-1) {
        text[0] = '\0';
    }
}

void one_screen_start(int rows)
{
    curs_set(0); /* with this goes out what newterm said, the way to the second screen too */
    curs_set(1);
    const char *back = tigetstr("rmcup");
    if (back && back != (char *)-1) {
        putp(back);
    }
    for (int i = 0; i < rows; i++) { /* the first picture would wipe out what stands here */
        putp("\n");
    }
    fflush(stdout);
    make_empty("smcup");
    make_empty("rmcup");
}
