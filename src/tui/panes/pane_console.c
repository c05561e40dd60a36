// SPDX-License-Identifier: GPL-3.0-or-later
/* What commands printed and what happened meanwhile, with the prompt below. */
#include "tui/tui_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tui/text.h"

/* A copy without the colours that the printers may have put in. */
static char *copy_plain(const char *text, size_t len)
{
    char *copy = malloc(len + 1);
    size_t used = 0;

    for (size_t i = 0; copy && i < len; i++) {
        if (text[i] == '\x1b' && i + 1 < len && text[i + 1] == '[') {
            size_t end = i + 2;
            while (end < len && ((text[end] >= '0' && text[end] <= '9') || text[end] == ';')) {
                end++;
            }
            if (end < len && text[end] == 'm') {
                i = end;
                continue;
            }
        }
        copy[used++] = text[i];
    }
    if (copy) {
        copy[used] = '\0';
    }
    return copy;
}

static void line_add(struct console_pane *pane, enum draw_style style, char *text)
{
    if (!pane->line) {
        pane->line = calloc(TUI_CONSOLE_LINES, sizeof(*pane->line));
    }
    if (!pane->line || !text) {
        free(text);
        return;
    }
    if (pane->count == TUI_CONSOLE_LINES) {
        free(pane->line[pane->first].text);
        pane->first = (pane->first + 1) % TUI_CONSOLE_LINES;
        pane->count--;
    }
    size_t at = (pane->first + pane->count) % TUI_CONSOLE_LINES;
    pane->line[at] = (struct console_line){text, style};
    pane->count++;
    if (pane->back > 0 && pane->back < pane->count) {
        pane->back++; /* who reads further up is not moved */
    }
}

void tui_console_add(struct tui *tui, enum draw_style style, const char *text, size_t len)
{
    while (len > 0) {
        const char *end = memchr(text, '\n', len);
        size_t line_len = end ? (size_t)(end - text) : len;
        line_add(&tui->console, style, copy_plain(text, line_len));
        line_len += end != NULL ? 1 : 0;
        text += line_len;
        len -= line_len;
    }
    tui_changed(tui);
}

void tui_console_write(void *ctx, const char *text, size_t len, bool is_error)
{
    tui_console_add(ctx, is_error ? DRAW_ERROR : DRAW_PLAIN, text, len);
}

void tui_console_free(struct tui *tui)
{
    struct console_pane *pane = &tui->console;

    for (size_t i = 0; i < pane->count; i++) {
        free(pane->line[(pane->first + i) % TUI_CONSOLE_LINES].text);
    }
    free(pane->line);
    *pane = (struct console_pane){.line = NULL};
}

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

/* Draws one logical line over its rows; those outside [top, bottom) are left out. Returns how many
 * rows it takes. */
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
    int bottom = rect->row + rect->rows - 1; /* the prompt's row */
    int row = bottom;

    pane->rows = rect->rows;
    if (pane->back > pane->count) {
        pane->back = pane->count;
    }
    for (size_t i = pane->count - pane->back; i > 0 && row > rect->row; i--) {
        const struct console_line *line = line_at(pane, i - 1);
        row -= draw_wrapped(tui, line, 0, 0, 0, rect); /* counted */
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
    .name = "console", .draw = console_draw, .request = console_request, .title = console_title};
