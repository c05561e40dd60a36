// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * A list that scrolls: cursor, top row, search, for panes whose rows have an index. The pane keeps
 * the rows; the list asks for what is on the screen and, in a search, for texts one by one.
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
    int rows;         /* when it was drawn last */
    int above;        /* rows of the pane above the list, for clicks */
    char pattern[64]; /* of the search; "" none */
    bool typing;      /* the pattern is being typed */
};

enum tui_search {
    TUI_NO_SEARCH,
    TUI_TYPING,   /* a pattern: all printable keys are its text */
    TUI_SEARCHED, /* n is the next match */
};

struct tui_list_ops {
    /* One row into [col, col + cols) of screen row `row`; selected: under the cursor, and the pane
     * has the focus. */
    void (*row)(void *ctx, size_t index, int row, int col, int cols, bool selected);
    void (*text)(void *ctx, size_t index, struct gd_buf *out); /* what a search looks in */
};

void tui_list_draw(struct tui *tui, struct tui_list *list, const struct tui_list_ops *ops,
                   void *ctx, const struct draw_rect *rect, bool focused);
/* Moving and searching; true: that was one. */
bool tui_list_request(struct tui_list *list, const struct tui_list_ops *ops, void *ctx,
                      enum tui_request request);
/* A click on a row of the pane: the cursor goes there. true: it was there before. */
bool tui_list_click(struct tui_list *list, int row);
/* While a pattern is typed all keys go here; true: taken. */
bool tui_list_key(struct tui_list *list, const struct tui_list_ops *ops, void *ctx, int key);
enum tui_search tui_list_search(const struct tui_list *list);
void tui_list_settle(struct tui_list *list); /* cursor and top fit the count again */

#endif
