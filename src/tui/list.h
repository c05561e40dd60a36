// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * A scrolling list for panes whose rows have an index: cursor, top row, search. The pane owns the
 * rows; the list asks for those on the screen and, during a search, for one text at a time.
 */
#ifndef GD_TUI_LIST_H
#define GD_TUI_LIST_H

#include <stddef.h>

#include "base/buf.h"
#include "tui/draw.h"
#include "tui/keys.h"

struct tui;

struct tui_list {
    size_t count; /* set by the pane before each call */
    size_t cursor, top;
    int rows;         /* on the screen, at the last draw */
    int above;        /* rows of the pane above the list; for clicks */
    char pattern[64]; /* of the search; "": none */
    bool typing;      /* the pattern is being typed */
};

enum tui_search {
    TUI_NO_SEARCH,
    TUI_TYPING,   /* every printable key extends the pattern */
    TUI_SEARCHED, /* n finds the next match */
};

struct tui_list_ops {
    /* Draws a row into [col, col + cols) of screen row `row`. selected: under the cursor of the
     * focused pane, and already filled with DRAW_REVERSE. */
    void (*row)(struct tui *tui, size_t index, int row, int col, int cols, bool selected);
    /* Appends the text that a search matches. */
    void (*text)(struct tui *tui, size_t index, struct gd_buf *out);
};

void tui_list_draw(struct tui *tui, struct tui_list *list, const struct tui_list_ops *ops,
                   const struct draw_rect *rect, bool focused);
/* Moves or searches; false: the request was neither. */
bool tui_list_request(struct tui *tui, struct tui_list *list, const struct tui_list_ops *ops,
                      enum tui_request request);
/* Moves the cursor to the clicked row; true: it was already there. */
bool tui_list_click(struct tui_list *list, int row);
/* Takes every key while a pattern is typed; true: taken. */
bool tui_list_key(struct tui *tui, struct tui_list *list, const struct tui_list_ops *ops, int key);
enum tui_search tui_list_search(const struct tui_list *list);
void tui_list_settle(struct tui_list *list); /* makes cursor and top fit the count */

#endif
