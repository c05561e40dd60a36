// SPDX-License-Identifier: GPL-3.0-or-later
/* Draws the whole screen: panes, the lines between them, the status line, the list of keys. */
#include "tui/tui_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tui/guard.h"
#include "tui/text.h"

#define WIDE_STACK 68 /* percent of the columns, while the source pane has nothing to show */

void tui_title_draw(struct tui *tui, int row, int col, int cols, const char *title, bool focused)
{
    draw_hline(tui->draw, row, col, cols);
    draw_text(tui->draw, row, col + 1, cols - 2, focused ? DRAW_REVERSE : DRAW_BOLD, title);
}

static void draw_pane(struct tui *tui, enum tui_pane_id pane, int row, int col, int rows, int cols)
{
    struct draw_rect rect = {row + 1, col, rows - 1, cols};
    char title[96], framed[104];

    tui_pane_title(tui, pane, title, sizeof(title));
    snprintf(framed, sizeof(framed), " %s ", title);
    tui_title_draw(tui, row, col, cols, framed, tui->focus == pane);
    if (rect.rows > 0 && rect.cols > 0) {
        tui_pane_draw(tui, pane, &rect);
    }
}

int tui_places(struct tui *tui, struct layout_place ret[LAYOUT_MAX_PLACES])
{
    struct layout_wish wish = tui_wish(tui);
    int rows, cols;

    draw_size(tui->draw, &rows, &cols);
    if (tui->layout == LAYOUT_STACK && tui_source_is_missing(tui)) {
        wish.left_percent = WIDE_STACK;
    }
    return layout_places(&wish, rows - 1, cols, ret);
}

/* Every visible pane, and a line between two columns of them. */
static void draw_panes(struct tui *tui)
{
    struct layout_place place[LAYOUT_MAX_PLACES];
    int count = tui_places(tui, place);

    for (int i = 0; i < count; i++) {
        const struct draw_rect *rect = &place[i].rect;
        tui_pane_update(tui, place[i].pane);
        draw_pane(tui, place[i].pane, rect->row, rect->col, rect->rows, rect->cols);
        if (rect->col > 0) {
            draw_vline(tui->draw, rect->row, rect->col - 1, rect->rows);
        }
    }
}

/* In the console's title, or above the status line if the console is hidden. */
static void draw_offer(struct tui *tui, int rows, int cols)
{
    struct layout_place place[LAYOUT_MAX_PLACES];
    int count = tui_places(tui, place);

    for (int i = 0; i < count; i++) {
        if (place[i].pane == TUI_CONSOLE && place[i].rect.cols > 20) {
            tui_offer_draw(tui, place[i].rect.row, place[i].rect.col + 12, place[i].rect.cols - 13);
            return;
        }
    }
    tui_offer_draw(tui, rows - 2, 0, cols);
}

/* The screen is too small for panes: shows the prompt and the reason. */
static void draw_small(struct tui *tui, int rows, int cols)
{
    char why[160];
    int top = rows > 1 ? 1 : 0;

    if (top > 0) {
        snprintf(why, sizeof(why), "%dx%d is too small for panes, which need %dx%d", cols, rows,
                 TUI_MIN_COLS, TUI_MIN_ROWS);
        draw_text(tui->draw, 0, 0, cols, DRAW_REVERSE, why);
    }
    struct draw_rect rect = {top, 0, rows - top, cols};
    tui_pane_draw(tui, TUI_CONSOLE, &rect);
}

static void draw_usual(struct tui *tui, int rows, int cols)
{
    if (tui->help) {
        tui_help_draw(tui, rows - 1, cols);
    } else if (tui_waiting_covers(tui)) {
        tui_waiting_draw(tui, rows - 1, cols);
    } else {
        draw_panes(tui);
    }
    if (tui->offers > 0 && !tui->help) {
        draw_offer(tui, rows, cols);
    }
    if (tui->form) {
        tui_form_draw(tui);
    }
    if (!tui_progress_draw(tui, rows - 1, cols)) {
        tui_status_draw(tui, rows - 1, cols);
    }
}

/* Applies `set mouse`. */
static void follow_mouse(struct tui *tui)
{
    bool wanted = tui->debugger->settings.mouse;
    const char *type = getenv("TERM");
    char text[160];

    if (wanted == tui->mouse) {
        return;
    }
    tui->mouse = wanted;
    if (!draw_set_mouse(tui->draw, wanted)) {
        snprintf(text, sizeof(text), "no mouse support is known for the terminal type %.60s",
                 type ? type : "");
        tui_console_add(tui, DRAW_ERROR, text, strlen(text));
    }
    tui_guard_arm(draw_restore_text(tui->draw)); /* a fatal signal must switch it off, too */
}

/* Applies `set theme`, `set color` and `set colors`. */
static void follow_theme(struct tui *tui)
{
    static const int most[] = {DRAW_ALL_COLORS, 8, 16, 256};
    const struct gd_settings *settings = &tui->debugger->settings;

    draw_set_theme(tui->draw, (enum draw_theme)settings->theme,
                   repl_wants_color(tui->repl) ? most[settings->colors] : 0);
}

static void spell_names(void *ctx, char *text, size_t len)
{
    const struct tui *tui = ctx;

    if (tui->debugger->current) {
        gd_graph_put_dots(tui->debugger->current->graph, text, len);
    }
}

void tui_draw_all(struct tui *tui)
{
    int rows, cols;

    follow_theme(tui);
    follow_mouse(tui);
    tui_tree_update(tui);
    tui_offer_update(tui);
    tui_status_update(tui);
    draw_size(tui->draw, &rows, &cols);
    draw_set_spelling(tui->draw, tui->debugger->settings.name_style ? spell_names : NULL, tui);
    draw_begin(tui->draw);
    if (tui->small) {
        draw_small(tui, rows, cols);
    } else {
        draw_usual(tui, rows, cols);
    }
    draw_end(tui->draw);
}
