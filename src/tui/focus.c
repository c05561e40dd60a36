// SPDX-License-Identifier: GPL-3.0-or-later
/* Which pane has the keyboard, which panes are visible, and where they are. */
#include "repl/core/repl.h"
#include "tui/tui_impl.h"

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

static bool shows_one(struct tui *tui)
{
    struct layout_wish wish = tui_wish(tui);
    int rows, cols;

    draw_size(tui->draw, &rows, &cols);
    return layout_is_one(&wish, rows - 1, cols);
}

enum tui_pane_id tui_shown(const struct tui *tui)
{
    return tui->focus != TUI_CONSOLE ? tui->focus : tui->shown;
}

void tui_focus(struct tui *tui, enum tui_pane_id pane)
{
    tui->next = TUI_CONSOLE;
    repl_forget_repeat(tui->repl);
    tui_redraw(tui);
    if (tui->small) { /* the prompt keeps the keys until there is room for panes again */
        tui->focus_of = pane;
        return;
    }
    tui->focus = pane;
    if (pane != TUI_CONSOLE || shows_one(tui)) {
        tui->shown = pane;
    }
}

void tui_show(struct tui *tui, enum tui_pane_id pane)
{
    if (tui->keyboard) {
        tui_focus(tui, pane);
        return;
    }
    tui->shown = tui->next = pane;
    tui_redraw(tui);
}

void tui_to_prompt(struct tui *tui)
{
    tui->focus = TUI_CONSOLE;
    tui->single_key = false;
    tui->prefix = 0;
    tui->console.back = 0;
    repl_forget_repeat(tui->repl);
}

/* Cycles through the panes of the layout, including those that a small screen shows one at a
 * time. */
enum tui_pane_id tui_next_pane(struct tui *tui, int by)
{
    struct layout_place place[LAYOUT_MAX_PLACES];
    enum tui_pane_id from = tui->small ? tui->focus_of : tui->focus;
    int rows, cols, at = 0;

    draw_size(tui->draw, &rows, &cols);
    int count =
        layout_order(tui->layout, from != TUI_CONSOLE ? from : tui->shown, rows - 1, cols, place);
    while (at < count && place[at].pane != from) {
        at++;
    }
    return place[(at + by + count) % count].pane;
}

void tui_focus_next(struct tui *tui, int by)
{
    bool chosen = by > 0 && tui->focus == TUI_CONSOLE && tui->next != TUI_CONSOLE;

    tui_focus(tui, chosen ? tui->next : tui_next_pane(tui, by));
}

/* A pane that was shown only because it had the focus is replaced by one of the new layout. */
void tui_set_layout(struct tui *tui, enum tui_layout layout)
{
    struct layout_place place[LAYOUT_MAX_PLACES];
    int rows, cols;
    bool holds = tui->focus == TUI_CONSOLE;

    tui->layout = layout;
    tui->one_pane = false;
    tui->shown = tui->next = TUI_CONSOLE;
    draw_size(tui->draw, &rows, &cols);
    int count = layout_order(layout, TUI_CONSOLE, rows - 1, cols, place);
    for (int i = 0; i < count; i++) {
        holds = holds || place[i].pane == tui->focus;
    }
    if (!holds && count > 0) {
        tui->focus = place[0].pane;
    }
    tui_redraw(tui);
}
