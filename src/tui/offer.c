// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The question whether to set the recommended watchpoints. It has a line of its own and blocks
 * nothing: other commands may be typed, and it disappears when the training runs.
 */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "repl/core/repl.h"
#include "tui/tui_impl.h"

static void offer_text(size_t offers, char *text, size_t size)
{
    snprintf(text, size, "Set the %zu recommended watchpoint%s? Type y or n, then Enter.", offers,
             offers == 1 ? "" : "s");
}

/* The console prints the question once; while it is open, the console's title repeats it. */
void tui_offer_update(struct tui *tui)
{
    size_t offers = repl_offers(tui->repl);
    char text[120];

    if (offers != tui->offers) {
        if (offers > 0) {
            offer_text(offers, text, sizeof(text));
            tui_console_add(tui, DRAW_MARK, text, strlen(text));
        }
        tui->offers = offers;
        tui_changed(tui);
    }
}

void tui_offer_draw(struct tui *tui, int row, int col, int cols)
{
    char text[120];

    offer_text(tui->offers, text, sizeof(text));
    draw_text(tui->draw, row, col, cols, DRAW_MARK, text);
}

bool tui_offer_line(struct tui *tui, const char *line)
{
    bool yes = strcasecmp(line, "y") == 0 || strcasecmp(line, "yes") == 0;
    bool no = strcasecmp(line, "n") == 0 || strcasecmp(line, "no") == 0;

    if (tui->offers == 0 || tui->executing || (!yes && !no)) {
        return false;
    }
    tui->offers = 0;
    tui_run_line(tui, yes ? "recommend yes" : "recommend no");
    tui_changed(tui);
    return true;
}
