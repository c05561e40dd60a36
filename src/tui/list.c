// SPDX-License-Identifier: GPL-3.0-or-later
#include "tui/list.h"

#include <stdio.h>
#include <string.h>

#include "tui/panes/detail.h"
#include "tui/text.h"
#include "tui/tui_impl.h"

void tui_list_settle(struct tui_list *list)
{
    size_t rows = list->rows > 0 ? (size_t)list->rows : 1;

    if (list->count == 0) {
        list->cursor = list->top = 0;
        return;
    }
    list->cursor = list->cursor < list->count ? list->cursor : list->count - 1;
    if (list->cursor < list->top) {
        list->top = list->cursor;
    } else if (list->cursor >= list->top + rows) {
        list->top = list->cursor - rows + 1;
    }
    if (list->top + rows > list->count) { /* no blank rows while lines above are hidden */
        list->top = list->count > rows ? list->count - rows : 0;
    }
}

void tui_list_draw(struct tui *tui, struct tui_list *list, const struct tui_list_ops *ops,
                   const struct draw_rect *rect, bool focused)
{
    bool bar = list->typing && rect->rows > 1;

    list->rows = rect->rows - (bar ? 1 : 0);
    tui_list_settle(list);
    for (size_t i = list->top; i < list->count && i < list->top + (size_t)list->rows; i++) {
        int row = rect->row + (int)(i - list->top);
        bool selected = focused && i == list->cursor;
        if (selected) {
            draw_fill(tui->draw, row, rect->col, rect->cols, DRAW_REVERSE);
        }
        ops->row(tui, i, row, rect->col, rect->cols, selected);
    }
    if (bar) {
        tui_draw_typed(tui, rect, list->pattern);
    }
}

bool tui_list_click(struct tui_list *list, int row)
{
    size_t at = row >= list->above ? list->top + (size_t)(row - list->above) : list->count;

    if (at >= list->count || row - list->above >= list->rows) {
        return false;
    }
    bool was_there = at == list->cursor;
    list->cursor = at;
    return was_there;
}

static bool row_matches(struct tui *tui, const struct tui_list *list,
                        const struct tui_list_ops *ops, size_t index)
{
    struct gd_buf text = GD_BUF_INIT(1 << 16);

    ops->text(tui, index, &text);
    bool found = text.len > 0 && strcasestr(gd_buf_text(&text), list->pattern);
    gd_buf_deinit(&text);
    return found;
}

/* Finds the next matching row, starting with `from` itself, and wraps around. */
static bool search_from(struct tui *tui, struct tui_list *list, const struct tui_list_ops *ops,
                        size_t from, bool back)
{
    if (list->pattern[0] == '\0' || !ops->text) {
        return false;
    }
    for (size_t i = 0; i < list->count; i++) {
        size_t at = back ? (from + list->count - i) % list->count : (from + i) % list->count;
        if (row_matches(tui, list, ops, at)) {
            list->cursor = at;
            return true;
        }
    }
    return false;
}

bool tui_list_key(struct tui *tui, struct tui_list *list, const struct tui_list_ops *ops, int key)
{
    if (!list->typing) {
        return false;
    }
    if (key == '\r' || key == '\n') {
        list->typing = false;
    } else if (key == 0x1b) {
        list->typing = false;
        list->pattern[0] = '\0';
    } else if (tui_text_key(list->pattern, sizeof(list->pattern), key)) {
        search_from(tui, list, ops, list->cursor, false);
    }
    return true;
}

enum tui_search tui_list_search(const struct tui_list *list)
{
    return list->typing ? TUI_TYPING : list->pattern[0] != '\0' ? TUI_SEARCHED : TUI_NO_SEARCH;
}

static void move_by(struct tui_list *list, long by)
{
    if (by < 0) {
        size_t up = (size_t)-by;
        list->cursor = list->cursor > up ? list->cursor - up : 0;
    } else {
        list->cursor += (size_t)by;
    }
}

bool tui_list_request(struct tui *tui, struct tui_list *list, const struct tui_list_ops *ops,
                      enum tui_request request)
{
    long page = list->rows > 1 ? list->rows - 1 : 1;
    size_t last = list->count > 0 ? list->count - 1 : 0;

    switch (request) {
    case TUI_UP: move_by(list, -1); break;
    case TUI_DOWN: move_by(list, 1); break;
    case TUI_PAGE_UP: move_by(list, -page); break;
    case TUI_PAGE_DOWN: move_by(list, page); break;
    case TUI_HALF_UP: move_by(list, -(page + 1) / 2); break;
    case TUI_HALF_DOWN: move_by(list, (page + 1) / 2); break;
    case TUI_TOP: list->cursor = 0; break;
    case TUI_BOTTOM: list->cursor = last; break;
    case TUI_SEARCH:
        list->typing = true;
        list->pattern[0] = '\0';
        break;
    case TUI_NEXT_MATCH: search_from(tui, list, ops, list->cursor + 1, false); break;
    case TUI_PREVIOUS_MATCH:
        search_from(tui, list, ops, list->cursor > 0 ? list->cursor - 1 : last, true);
        break;
    default: return false;
    }
    tui_list_settle(list);
    return true;
}
