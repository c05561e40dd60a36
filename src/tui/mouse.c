// SPDX-License-Identifier: GPL-3.0-or-later
/* With `set mouse on`: a click gives a pane the focus, the wheel scrolls the one below it. */
#include "tui/tui_impl.h"

#define WHEEL_LINES 3

void tui_mouse_follow(struct tui *tui)
{
    bool wanted = tui->debugger->settings.mouse;

    if (wanted != tui->mouse) {
        tui->mouse = wanted;
        draw_set_mouse(tui->draw, wanted);
    }
}

static bool holds(const struct draw_rect *rect, int row, int col)
{
    return row >= rect->row && row < rect->row + rect->rows && col >= rect->col &&
           col < rect->col + rect->cols;
}

static void on_pane(struct tui *tui, const struct layout_place *place,
                    const struct draw_mouse *mouse)
{
    const struct tui_pane_ops *pane = tui_panes[place->pane];
    enum tui_request up = place->pane == TUI_CONSOLE ? TUI_PAGE_UP : TUI_UP;
    enum tui_request down = place->pane == TUI_CONSOLE ? TUI_PAGE_DOWN : TUI_DOWN;

    if (mouse->button == DRAW_MOUSE_CLICK) {
        tui_focus(tui, place->pane);
        int row = mouse->row - place->rect.row - 1;
        if (pane->click != NULL && row >= 0) {
            pane->click(tui, row, mouse->col - place->rect.col);
        }
        return;
    }
    for (int i = 0; pane->request != NULL && i < (place->pane == TUI_CONSOLE ? 1 : WHEEL_LINES);
         i++) {
        pane->request(tui, mouse->button == DRAW_MOUSE_UP ? up : down);
    }
}

void tui_mouse(struct tui *tui)
{
    struct layout_place place[LAYOUT_MAX_PLACES];
    struct draw_mouse mouse;
    int count = tui_places(tui, place);

    if (!draw_mouse(tui->draw, &mouse) || tui->form != NULL || tui->small) {
        return;
    }
    if (tui->help) {
        tui_help_scroll(tui, mouse.button == DRAW_MOUSE_UP     ? TUI_UP
                             : mouse.button == DRAW_MOUSE_DOWN ? TUI_DOWN
                                                               : TUI_NOTHING);
        return;
    }
    for (int i = 0; i < count; i++) {
        if (holds(&place[i].rect, mouse.row, mouse.col) && tui_panes[place[i].pane] != NULL) {
            on_pane(tui, &place[i], &mouse);
        }
    }
}
