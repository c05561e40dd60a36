// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * With `set mouse on`: a click focuses a pane and moves its cursor; a click on the cursor's row
 * (also the second one of a double click) opens what is there; the wheel scrolls the pane under it.
 * Otherwise mouse reports stay off, and the terminal selects text as usual.
 */
#include "tui/tui_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tui/guard.h"

#define WHEEL_LINES    3
/* a second click at the same place within this time completes a double click */
#define DOUBLE_SECONDS 0.4

static bool rect_holds(const struct draw_rect *rect, int row, int col)
{
    return row >= rect->row && row < rect->row + rect->rows && col >= rect->col &&
           col < rect->col + rect->cols;
}

static bool is_second_half(const struct tui *tui, const struct draw_mouse *mouse)
{
    const struct tui_click *last = &tui->clicked;
    double since = ev_time() - last->at;

    return since >= 0 && since < DOUBLE_SECONDS && last->row == mouse->row &&
           last->col == mouse->col;
}

/* A double click opens only once, whether its first click opened something or only moved the
 * cursor. */
static void click_pane(struct tui *tui, const struct layout_place *place,
                       const struct draw_mouse *mouse)
{
    int row = mouse->row - place->rect.row - 1; /* below the title */
    bool had_focus = tui->focus == place->pane;

    tui_focus(tui, place->pane);
    if (row >= 0 && tui_pane_click(tui, place->pane, row, mouse->col - place->rect.col) &&
        had_focus) {
        tui->clicked.opened = true;
        tui_pane_request(tui, place->pane, TUI_OPEN);
    }
}

static void turn_wheel(struct tui *tui, enum tui_pane_id id, bool up)
{
    bool pages = id == TUI_CONSOLE; /* it has no cursor to move */

    for (int i = 0; i < (pages ? 1 : WHEEL_LINES); i++) {
        if (pages) {
            tui_pane_request(tui, id, up ? TUI_PAGE_UP : TUI_PAGE_DOWN);
        } else {
            tui_pane_request(tui, id, up ? TUI_UP : TUI_DOWN);
        }
    }
}

static void on_panes(struct tui *tui, const struct draw_mouse *mouse)
{
    struct layout_place place[LAYOUT_MAX_PLACES];
    int count = tui_places(tui, place);

    if (mouse->button == DRAW_MOUSE_CLICK) {
        if (is_second_half(tui, mouse) && tui->clicked.opened) {
            return; /* something it opened may now be below the mouse */
        }
        tui->clicked = (struct tui_click){.row = mouse->row, .col = mouse->col, .at = ev_time()};
    }
    for (int i = 0; i < count; i++) {
        if (!rect_holds(&place[i].rect, mouse->row, mouse->col)) {
            continue;
        }
        if (mouse->button == DRAW_MOUSE_CLICK) {
            click_pane(tui, &place[i], mouse);
        } else {
            turn_wheel(tui, place[i].pane, mouse->button == DRAW_MOUSE_UP);
        }
        return;
    }
}

static void on_waiting(struct tui *tui, const struct draw_mouse *mouse)
{
    enum tui_pane_id pane = tui_waiting_pane(tui, mouse->row);

    if (mouse->button == DRAW_MOUSE_CLICK) {
        tui_focus(tui, pane);
    } else if (pane == TUI_CONSOLE) {
        turn_wheel(tui, pane, mouse->button == DRAW_MOUSE_UP);
    }
}

void tui_mouse(struct tui *tui)
{
    struct draw_mouse mouse;

    draw_mouse(tui->draw, &mouse);
    if (tui->question || tui->small) { /* a question needs a key */
        return;
    }
    if (tui->form && !tui->help) {
        tui_form_mouse(tui, &mouse);
    } else if (tui->help) {
        tui_help_scroll(tui, mouse.button == DRAW_MOUSE_UP     ? TUI_UP
                             : mouse.button == DRAW_MOUSE_DOWN ? TUI_DOWN
                                                               : TUI_NOTHING);
    } else if (tui_waiting_covers(tui)) {
        on_waiting(tui, &mouse);
    } else {
        on_panes(tui, &mouse);
    }
}
