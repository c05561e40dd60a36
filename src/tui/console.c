// SPDX-License-Identifier: GPL-3.0-or-later
/* The lines of the console. panes/pane_console.c draws them. */
#include <stdlib.h>
#include <string.h>

#include "tui/tui_impl.h"

/* A copy without colour sequences. */
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
        pane->back++; /* keeps the view of a user who has scrolled back */
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
