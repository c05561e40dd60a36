// SPDX-License-Identifier: GPL-3.0-or-later
/* The console: what commands and events print. It exists without a terminal, too. */
#ifndef GD_TUI_PANE_CONSOLE_H
#define GD_TUI_PANE_CONSOLE_H

#include <stdbool.h>
#include <stddef.h>

#include "tui/draw.h"

#define TUI_CONSOLE_LINES 10000 /* kept lines */

struct tui;

struct console_line {
    char *text;
    enum draw_style style;
};
struct console_pane {
    struct console_line *line; /* a ring */
    size_t first, count;
    size_t back; /* lines scrolled back from the end */
    int rows;
};

void tui_console_add(struct tui *tui, enum draw_style style, const char *text, size_t len);
void tui_console_write(void *ctx, const char *text, size_t len, bool is_error);
void tui_console_free(struct tui *tui);

#endif
