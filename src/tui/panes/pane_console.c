// SPDX-License-Identifier: GPL-3.0-or-later
/* The output of commands and the messages of events, with the prompt below. */
#include "tui/tui_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tui/text.h"

static void console_request(struct tui *tui, enum tui_request request)
{
    struct console_pane *pane = &tui->console;
    size_t page = pane->rows > 2 ? (size_t)pane->rows - 2 : 1;

    if (request == TUI_PAGE_UP) {
        pane->back = pane->back + page < pane->count ? pane->back + page : pane->count;
    } else if (request == TUI_PAGE_DOWN) {
        pane->back = pane->back > page ? pane->back - page : 0;
    }
}

static const struct console_line *line_at(const struct console_pane *pane, size_t number)
{
    return &pane->line[(pane->first + number) % TUI_CONSOLE_LINES];
}

/* Draws one logical line, wrapped; rows outside [top, bottom) are skipped. Returns its number of
 * rows. */
static int draw_wrapped(struct tui *tui, const struct console_line *line, int row, int top,
                        int bottom, const struct draw_rect *rect)
{
    const char *text = line->text;
    int first = row;

    do {
        size_t len;
        size_t next = tui_text_next(text, rect->cols, tui->utf8, &len);
        if (row >= top && row < bottom) {
            draw_text_len(tui->draw, row, rect->col, rect->cols, line->style, text, len);
        }
        text += next;
        row++;
    } while (*text != '\0');
    return row - first;
}

static void console_draw(struct tui *tui, const struct draw_rect *rect, bool focused)
{
    struct console_pane *pane = &tui->console;
    int bottom = rect->row + rect->rows - 1; /* the row of the prompt */
    int row = bottom;

    pane->rows = rect->rows;
    if (pane->back > pane->count) {
        pane->back = pane->count;
    }
    for (size_t i = pane->count - pane->back; i > 0 && row > rect->row; i--) {
        const struct console_line *line = line_at(pane, i - 1);
        row -= draw_wrapped(tui, line, 0, 0, 0, rect); /* only counts */
        draw_wrapped(tui, line, row, rect->row, bottom, rect);
    }
    tui_prompt_draw(tui, bottom, rect->col, rect->cols, focused);
}

static void console_title(struct tui *tui, char *out, size_t size)
{
    if (tui->console.back > 0) {
        snprintf(out, size, "console (%zu lines back)", tui->console.back);
    } else {
        snprintf(out, size, "console");
    }
}

const struct tui_pane_ops tui_console_pane = {
    .draw = console_draw, .request = console_request, .title = console_title};
