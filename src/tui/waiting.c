// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * What the screen shows before there is a training to look at: how one connects; then the question
 * whether to watch what is recommended. The question stands in a line of its own and waits for
 * nothing: other commands may be typed, and when the training runs it is gone.
 */
#include "tui/tui_impl.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "repl/core/repl.h"

/* ---- no trainer ---- */

static void connect_text(struct tui *tui, int cols, struct gd_buf *out)
{
    repl_connect_text(tui->debugger, cols, out);
}

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

static void draw_console(struct tui *tui, const struct draw_rect *rect)
{
    if (rect->rows > 0) {
        tui_panes[TUI_CONSOLE]->draw(tui, rect, tui->focus == TUI_CONSOLE);
    }
}

static void draw_title(struct tui *tui, int row, int cols, const char *title, bool focused)
{
    draw_hline(tui->draw, row, 0, cols);
    draw_text(tui->draw, row, 1, cols - 2, focused ? DRAW_REVERSE : DRAW_BOLD, title);
}

/* The console gives up the rows that the text lacks, but for four of its own. Returns the rows of
 * the text with its title. */
static int rows_of_text(struct tui *tui, const char *text, int rows, int cols)
{
    struct layout_place place[LAYOUT_MAX_PLACES];
    struct layout_wish wish = tui_wish(tui);
    wish.layout = LAYOUT_GRAPH;
    int count = layout_places(&wish, rows, cols, place);
    bool console = tui->focus == TUI_CONSOLE;
    int upper = count > 1 ? place[count - 1].rect.row : console ? 0 : rows;
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

    connect_text(tui, cols - 1, &text);
    int upper = rows_of_text(tui, gd_buf_text(&text), rows, cols);
    if (upper > 0) {
        draw_title(tui, 0, cols, " no trainer is connected: what to type so that one does ",
                   !console);
        draw_text_lines(tui, gd_buf_text(&text), 1, upper - 1, cols);
    }
    if (upper < rows) {
        draw_title(tui, upper, cols, " console ", console);
        draw_console(tui, &(struct draw_rect){upper + 1, 0, rows - upper - 1, cols});
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
    connect_text(tui, cols - 1, &text);
    int upper = rows_of_text(tui, gd_buf_text(&text), rows - 1, cols);
    gd_buf_deinit(&text);
    return row < upper ? TUI_TREE : TUI_CONSOLE;
}

/* ---- the recommended watchpoints ---- */

static void offer_text(size_t offers, char *text, size_t size)
{
    snprintf(text, size, "Set the %zu recommended watchpoint%s? Type y or n, and Enter.", offers,
             offers == 1 ? "" : "s");
}

/* The console says it when it comes up; while it stands, the console's title does. */
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

void tui_offer_answer(struct tui *tui, bool yes)
{
    tui->offers = 0;
    tui_run_line(tui, yes ? "recommend yes" : "recommend no");
    tui_changed(tui);
}

bool tui_offer_line(struct tui *tui, const char *line)
{
    bool yes = strcasecmp(line, "y") == 0 || strcasecmp(line, "yes") == 0;
    bool no = strcasecmp(line, "n") == 0 || strcasecmp(line, "no") == 0;

    if (tui->offers == 0 || tui->executing || (!yes && !no)) {
        return false;
    }
    tui_offer_answer(tui, yes);
    return true;
}
