// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * What the screen shows before a training process has connected: how to start one.
 */
#include "tui/tui_impl.h"

#include <stdio.h>
#include <string.h>

#include "repl/core/repl.h"

static int lines_of(const char *text)
{
    int lines = 0;
    for (; *text != '\0'; text++) {
        lines += *text == '\n' ? 1 : 0;
    }
    return lines;
}

static void draw_text_lines(struct tui *tui, const char *text, int row, int rows, int cols)
{
    for (int end = row + rows; row < end && *text != '\0'; row++) {
        size_t len = strcspn(text, "\n");
        bool typed = text[0] == ' ';
        draw_text_len(tui->draw, row, 1, cols - 1, typed ? DRAW_BOLD : DRAW_PLAIN, text, len);
        text += len + (text[len] == '\n' ? 1 : 0);
    }
}

/* If the text needs more rows, the console gives up all but four of its own. Returns the rows of
 * the text including its title. */
static int rows_of_text(struct tui *tui, const char *text, int rows, int cols)
{
    struct layout_place place[LAYOUT_MAX_PLACES];
    struct layout_wish wish = tui_wish(tui);
    wish.layout = LAYOUT_GRAPH;
    int count = layout_places(&wish, rows, cols, place);
    bool console = tui->focus == TUI_CONSOLE;
    bool beside = place[count - 1].rect.col > 0; /* a low, wide screen */
    int upper = beside      ? rows - rows / 4 - 1
                : count > 1 ? place[count - 1].rect.row
                : console   ? 0
                            : rows;
    int wanted = lines_of(text) + 1;

    if (upper == 0 || upper == rows || upper >= wanted) {
        return upper;
    }
    int most = rows - 4 > upper ? rows - 4 : upper;
    return wanted < most ? wanted : most;
}

void tui_waiting_draw(struct tui *tui, int rows, int cols)
{
    struct gd_buf text = GD_BUF_INIT(16384);
    bool console = tui->focus == TUI_CONSOLE;

    repl_connect_text(tui->debugger, cols - 1, &text);
    int upper = rows_of_text(tui, gd_buf_text(&text), rows, cols);
    if (upper > 0) {
        tui_title_draw(tui, 0, 0, cols, " no training process is connected; type one of these ",
                       !console);
        draw_text_lines(tui, gd_buf_text(&text), 1, upper - 1, cols);
    }
    if (upper < rows) {
        struct draw_rect rect = {upper + 1, 0, rows - upper - 1, cols};
        tui_title_draw(tui, upper, 0, cols, " console ", console);
        if (rect.rows > 0) {
            tui_pane_draw(tui, TUI_CONSOLE, &rect);
        }
    }
    gd_buf_deinit(&text);
}

bool tui_waiting_covers(const struct tui *tui)
{
    enum tui_pane_id pane = tui_shown(tui);

    return !tui->debugger->current && (pane == TUI_CONSOLE || pane == TUI_TREE || pane == TUI_NODE);
}

enum tui_pane_id tui_waiting_pane(struct tui *tui, int row)
{
    struct gd_buf text = GD_BUF_INIT(16384);
    int rows, cols;

    draw_size(tui->draw, &rows, &cols);
    repl_connect_text(tui->debugger, cols - 1, &text);
    int upper = rows_of_text(tui, gd_buf_text(&text), rows - 1, cols);
    gd_buf_deinit(&text);
    return row < upper ? TUI_TREE : TUI_CONSOLE;
}
