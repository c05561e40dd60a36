// SPDX-License-Identifier: GPL-3.0-or-later
/* The progress of long work, in the row of the status line while it lasts. */
#include "engine/progress.h"

#include "tui/text.h"
#include "tui/tui_impl.h"

#define PATIENCE 0.5 /* seconds; shorter work shows nothing */

bool tui_progress_moves(struct tui *tui)
{
    struct gd_progress_info info;
    bool runs = gd_progress_current(tui->debugger, &info);
    bool was = tui->progress;

    tui->progress = runs;
    return runs || was; /* one more draw removes it */
}

bool tui_progress_draw(struct tui *tui, int row, int cols)
{
    static const char stop[] = "  C-c stops it";
    struct gd_progress_info info;
    char text[512];
    int room = (int)sizeof(stop) - 1;

    if (!gd_progress_current(tui->debugger, &info) || info.seconds < PATIENCE) {
        return false;
    }
    draw_fill(tui->draw, row, 0, cols, DRAW_REVERSE);
    int col = tui_status_mode(tui, row, cols) + 1;
    bool hint = cols - col > 2 * room;
    gd_progress_text(&info, cols - 1 - col - (hint ? room : 0), tui->utf8, text, sizeof(text));
    int used = draw_text(tui->draw, row, col, cols - 1 - col, DRAW_REVERSE, text);
    if (hint) {
        draw_text(tui->draw, row, col + used, cols - col - used, DRAW_REVERSE, stop);
    }
    return true;
}
