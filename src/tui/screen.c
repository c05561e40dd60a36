// SPDX-License-Identifier: GPL-3.0-or-later
/* Where the panes stand, the lines between them, the status line, the list of keys. */
#include "tui/tui_impl.h"

#include <stdio.h>
#include <string.h>

#include "tui/text.h"

#define WIDE_STACK 68 /* percent of the columns, beside a source that is not there */

/* ---- panes ---- */

static void draw_title(struct tui *tui, int row, int col, int cols, enum tui_pane_id pane)
{
    char title[96];
    char framed[104];

    tui_panes[pane]->title(tui, title, sizeof(title));
    snprintf(framed, sizeof(framed), " %s ", title);
    draw_hline(tui->draw, row, col, cols);
    draw_text(tui->draw, row, col + 1, cols - 2, tui->focus == pane ? DRAW_REVERSE : DRAW_BOLD,
              framed);
}

static void draw_pane(struct tui *tui, enum tui_pane_id pane, int row, int col, int rows, int cols)
{
    struct draw_rect rect = {row + 1, col, rows - 1, cols};

    draw_title(tui, row, col, cols, pane);
    if (rect.rows > 0 && rect.cols > 0) {
        tui_panes[pane]->draw(tui, &rect, tui->focus == pane);
    }
}

struct layout_wish tui_wish(struct tui *tui)
{
    return (struct layout_wish){
        .layout = tui->layout,
        .pane = tui_shown(tui),
        .typing = tui->focus == TUI_CONSOLE,
        .one = tui->one_pane,
        .console_rows = tui->console_rows,
    };
}

bool tui_shows_one(struct tui *tui)
{
    struct layout_wish wish = tui_wish(tui);
    int rows, cols;

    draw_size(tui->draw, &rows, &cols);
    return layout_is_one(&wish, rows - 1, cols);
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

/* Every shown pane, and a line between two columns of them. */
static void draw_panes(struct tui *tui)
{
    struct layout_place place[LAYOUT_MAX_PLACES];
    int count = tui_places(tui, place);

    for (int i = 0; i < count; i++) {
        const struct draw_rect *rect = &place[i].rect;
        if (!tui_panes[place[i].pane]) {
            continue;
        }
        if (tui_panes[place[i].pane]->update) {
            tui_panes[place[i].pane]->update(tui);
        }
        draw_pane(tui, place[i].pane, rect->row, rect->col, rect->rows, rect->cols);
        if (rect->col > 0) {
            draw_vline(tui->draw, rect->row, rect->col - 1, rect->rows);
        }
    }
}

/* In the console's title; above the status line where no console is shown. */
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

/* Too small for panes: the prompt, and why. */
static void draw_small(struct tui *tui, int rows, int cols)
{
    char why[160];
    int top = rows > 1 ? 1 : 0;

    if (top > 0) {
        snprintf(why, sizeof(why), "%dx%d is too small for panes, they need %dx%d", cols, rows,
                 TUI_MIN_COLS, TUI_MIN_ROWS);
        draw_text(tui->draw, 0, 0, cols, DRAW_REVERSE, why);
    }
    struct draw_rect rect = {top, 0, rows - top, cols};
    tui_panes[TUI_CONSOLE]->draw(tui, &rect, true);
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

/* As `set theme`, `set color` and `set colors` say. */
static void follow_theme(struct tui *tui)
{
    static const int most[] = {DRAW_ALL_COLORS, 8, 16, 256};
    const struct gd_settings *settings = &tui->debugger->settings;

    draw_set_theme(tui->draw, (enum draw_theme)settings->theme,
                   repl_wants_color(tui->repl) ? most[settings->colors] : 0);
}

int tui_draw_folded(struct tui *tui, const struct draw_rect *rect, int at, enum draw_style style,
                    const char *text)
{
    for (; *text != '\0' && at < rect->rows; at++) {
        size_t len;
        size_t next = tui_text_next(text, rect->cols, tui->utf8, &len);
        draw_text_len(tui->draw, rect->row + at, rect->col, rect->cols, style, text, len);
        text += next;
    }
    return at;
}

void tui_draw_all(struct tui *tui)
{
    int rows, cols;

    follow_theme(tui);
    tui_mouse_follow(tui);
    tui_tree_update(tui);
    tui_offer_update(tui);
    tui_status_update(tui);
    draw_size(tui->draw, &rows, &cols);
    draw_begin(tui->draw);
    if (tui->small) {
        draw_small(tui, rows, cols);
    } else {
        draw_usual(tui, rows, cols);
    }
    draw_end(tui->draw);
}
