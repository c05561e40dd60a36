// SPDX-License-Identifier: GPL-3.0-or-later
#include "tui/panes/detail.h"

#include <string.h>

#include "tui/text.h"
#include "tui/tui_impl.h"

#define LEAST_ROWS 8 /* of a pane that has one */
#define MOST_ROWS  5

struct draw_rect tui_detail_take(struct draw_rect *rect)
{
    struct draw_rect detail = {rect->row + rect->rows, rect->col, 0, rect->cols};

    if (rect->rows >= LEAST_ROWS) {
        int rows = rect->rows * 2 / 5 + 1;
        detail.rows = rows < MOST_ROWS ? rows : MOST_ROWS;
        detail.row -= detail.rows;
        rect->rows -= detail.rows;
    }
    return detail;
}

void tui_detail_draw(struct tui *tui, const struct draw_rect *rect, const char *text)
{
    char line[1024];

    if (rect->rows < 2) {
        return;
    }
    draw_hline(tui->draw, rect->row, rect->col, rect->cols);
    for (int row = 1; row < rect->rows && *text != '\0';) {
        size_t len = strcspn(text, "\n");
        size_t kept = len < sizeof(line) ? len : sizeof(line) - 1;
        memcpy(line, text, kept);
        line[kept] = '\0';
        text += len + (text[len] == '\n' ? 1 : 0);
        for (const char *rest = line; *rest != '\0' && row < rect->rows; row++) {
            size_t cut;
            size_t next = tui_text_next(rest, rect->cols, tui->utf8, &cut);
            draw_text_len(tui->draw, rect->row + row, rect->col, rect->cols, DRAW_PLAIN, rest, cut);
            rest += next;
        }
    }
}
