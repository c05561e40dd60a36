// SPDX-License-Identifier: GPL-3.0-or-later
#include "tui/panes/detail.h"

#include <stdio.h>
#include <string.h>

#include "tui/text.h"
#include "tui/tui_impl.h"

#define LEAST_ROWS 8 /* of a list pane with a detail area */
#define MOST_ROWS  5

/* Takes rows from the bottom of `rect` and returns them. */
static struct draw_rect take_detail(struct draw_rect *rect)
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

struct draw_rect tui_list_and_detail(struct tui *tui, struct tui_list *list,
                                     const struct tui_list_ops *ops, const struct draw_rect *rect,
                                     void (*heading)(struct tui *tui, const struct draw_rect *rect),
                                     bool focused)
{
    struct draw_rect rows = *rect;
    struct draw_rect detail = take_detail(&rows);

    list->above = rows.rows > 2 ? 1 : 0;
    if (list->above > 0) {
        heading(tui, &rows);
        rows.row++;
        rows.rows--;
    }
    tui_list_draw(tui, list, ops, &rows, focused);
    return detail;
}

int tui_draw_folded(struct tui *tui, const struct draw_rect *rect, int at, enum draw_style style,
                    const char *text)
{
    for (; *text != '\0' && at < rect->rows; at++) {
        size_t len;
        size_t next = tui_text_next(text, rect->cols, tui->utf8, &len);
        draw_text_len(tui->draw, rect->row + at, rect->col, rect->cols, style, text, len);
        text += next;
    }
    return at;
}

void tui_draw_typed(struct tui *tui, const struct draw_rect *rect, const char *text)
{
    int row = rect->row + rect->rows - 1;
    char line[96];

    snprintf(line, sizeof(line), "/%s", text);
    int used = draw_text(tui->draw, row, rect->col, rect->cols, DRAW_BOLD, line);
    draw_cursor(tui->draw, row, rect->col + (used < rect->cols ? used : rect->cols - 1));
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
        row = tui_draw_folded(tui, rect, row, DRAW_PLAIN, line);
    }
}
