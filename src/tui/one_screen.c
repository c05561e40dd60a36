// SPDX-License-Identifier: GPL-3.0-or-later
#include "tui/one_screen.h"

#include <curses.h>
#include <term.h>

void one_screen_start(int rows)
{
    if (exit_ca_mode != NULL) {
        putp(exit_ca_mode);
    }
    enter_ca_mode = NULL; /* curses asks these strings whenever it enters or leaves */
    exit_ca_mode = NULL;
    for (int i = 0; i < rows; i++) { /* the first picture would wipe it out */
        putp("\n");
    }
}
