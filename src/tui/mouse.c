// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * With `set mouse on`: a click gives a pane the focus and moves its cursor, a click on the row of
 * the cursor (so the second of a double click, too) opens what is there, the wheel scrolls the pane
 * below it. Without, the terminal is asked for nothing and selects text as ever.
 */
#include "tui/tui_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tui/guard.h"

#define WHEEL_LINES    3
#define DOUBLE_SECONDS 0.4 /* a click so soon behind one at the same place is its other half */

void tui_mouse_follow(struct tui *tui)
{
    bool wanted = tui->debugger->settings.mouse;
    const char *type = getenv("TERM");
    char text[160];

    if (wanted == tui->mouse) {
        return;
    }
    tui->mouse = wanted;
    if (!draw_set_mouse(tui->draw, wanted)) {
        snprintf(text, sizeof(text), "the terminal's type %.60s has no mouse that is known here",
                 type ? type : "");
        tui_console_add(tui, DRAW_ERROR, text, strlen(text));
    }
    tui_guard_arm(draw_restore_text(tui->draw)); /* a fault must switch it off, too */
}

static bool holds(const struct draw_rect *rect, int row, int col)
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

/* A double click opens once, whether its first half did already or only moved the cursor. */
static void click(struct tui *tui, const struct layout_place *place, const struct draw_mouse *mouse)
{
    const struct tui_pane_ops *pane = tui_panes[place->pane];
    int row = mouse->row - place->rect.row - 1; /* below the title */
    bool had_focus = tui->focus == place->pane;

    tui_focus(tui, place->pane);
    if (!pane->click || row < 0) {
        return;
    }
    if (pane->click(tui, row, mouse->col - place->rect.col) && had_focus) {
        tui->clicked.opened = true;
        pane->request(tui, TUI_OPEN);
    }
}

static void wheel(struct tui *tui, enum tui_pane_id id, bool up)
{
    const struct tui_pane_ops *pane = tui_panes[id];
    bool pages = id == TUI_CONSOLE; /* it has no lines to go to */

    for (int i = 0; pane->request && i < (pages ? 1 : WHEEL_LINES); i++) {
        if (pages) {
            pane->request(tui, up ? TUI_PAGE_UP : TUI_PAGE_DOWN);
        } else {
            pane->request(tui, up ? TUI_UP : TUI_DOWN);
        }
    }
}

static void on_panes(struct tui *tui, const struct draw_mouse *mouse)
{
    struct layout_place place[LAYOUT_MAX_PLACES];
    int count = tui_places(tui, place);

    if (mouse->button == DRAW_MOUSE_CLICK) {
        if (is_second_half(tui, mouse) && tui->clicked.opened) {
            return; /* what it opened may stand below the mouse now */
        }
        tui->clicked = (struct tui_click){.row = mouse->row, .col = mouse->col, .at = ev_time()};
    }
    for (int i = 0; i < count; i++) {
        if (!holds(&place[i].rect, mouse->row, mouse->col) || !tui_panes[place[i].pane]) {
            continue;
        }
        if (mouse->button == DRAW_MOUSE_CLICK) {
            click(tui, &place[i], mouse);
        } else {
            wheel(tui, place[i].pane, mouse->button == DRAW_MOUSE_UP);
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
        wheel(tui, pane, mouse->button == DRAW_MOUSE_UP);
    }
}

void tui_mouse(struct tui *tui)
{
    struct draw_mouse mouse;

    draw_mouse(tui->draw, &mouse);
    if (tui->question || tui->small) { /* a question wants a key */
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
