// SPDX-License-Identifier: GPL-3.0-or-later
/* Replays a picture from a tape, which another process may have sent. */
#include <string.h>

#include "tui/tape.h"

static void play_entry(struct draw *draw, const struct tape_entry *entry, const char *text,
                       int rows, int cols)
{
    enum draw_style style = (enum draw_style)entry->style;
    int wide = entry->cells < cols - entry->col ? entry->cells : cols - entry->col;
    int high = entry->cells < rows - entry->row ? entry->cells : rows - entry->row;

    switch ((enum tape_what)entry->what) {
    case TAPE_TEXT:
        draw_text_len(draw, entry->row, entry->col, wide, style, text, entry->len);
        break;
    case TAPE_FILL: draw_fill(draw, entry->row, entry->col, wide, style); break;
    case TAPE_HLINE: draw_hline(draw, entry->row, entry->col, wide); break;
    case TAPE_VLINE: draw_vline(draw, entry->row, entry->col, high); break;
    case TAPE_CURSOR: draw_cursor(draw, entry->row, entry->col); break;
    case TAPE_THEME:
        if (entry->cells < DRAW_THEME_COUNT) {
            draw_set_theme(draw, (enum draw_theme)entry->cells, draw_most_colors(draw));
        }
        break;
    case TAPE_WHAT_COUNT: break;
    }
}

void tape_play(struct draw *draw, const char *bytes, size_t len)
{
    int rows, cols;

    draw_size(draw, &rows, &cols);
    for (size_t at = 0; at < len;) {
        struct tape_entry entry;
        if (len - at < sizeof(entry)) {
            return;
        }
        memcpy(&entry, bytes + at, sizeof(entry));
        at += sizeof(entry);
        if (entry.what >= TAPE_WHAT_COUNT || entry.style >= DRAW_STYLE_COUNT ||
            !tape_is_cell(entry.row) || !tape_is_cell(entry.col) || !tape_is_cell(entry.cells) ||
            entry.len > len - at) {
            return;
        }
        if (entry.row < rows && entry.col < cols) {
            play_entry(draw, &entry, bytes + at, rows, cols);
        }
        at += entry.len;
    }
}
