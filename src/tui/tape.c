// SPDX-License-Identifier: GPL-3.0-or-later
#include "tui/tape.h"

#include <stdint.h>
#include <string.h>

#include "base/buf.h"

#define MOST_CELLS      4096 /* a row or a column */
#define BYTES_OF_A_CELL 16   /* a letter with accents; what is longer is cut off anyway */

struct entry { /* text follows */
    uint8_t what;
    uint8_t style;
    int16_t row, col, cells;
    uint16_t len;
};

static struct {
    void (*fn)(void *ctx, const char *bytes, size_t len);
    void *ctx;
    struct gd_buf picture;
    bool recording;
} tape;

void tape_listen(void (*fn)(void *ctx, const char *bytes, size_t len), void *ctx)
{
    tape.fn = fn;
    tape.ctx = ctx;
    if (!fn) {
        gd_buf_deinit(&tape.picture);
        tape.recording = false;
    }
}

void tape_begin(void)
{
    tape.recording = tape.fn != NULL;
    if (tape.recording) {
        gd_buf_deinit(&tape.picture);
        gd_buf_init(&tape.picture, TAPE_MAX);
    }
}

static bool is_cell(int value)
{
    return value >= 0 && value < MOST_CELLS;
}

void tape_add(enum tape_what what, int row, int col, int cells, enum draw_style style,
              const char *text, size_t len)
{
    size_t most = cells > 0 && cells < MOST_CELLS ? (size_t)cells * BYTES_OF_A_CELL : 0;

    if (!tape.recording || !is_cell(row) || !is_cell(col) || !is_cell(cells)) {
        return;
    }
    most = most < UINT16_MAX ? most : UINT16_MAX;
    len = len < most ? len : most;
    struct entry entry = {.what = (uint8_t)what,
                          .style = (uint8_t)style,
                          .row = (int16_t)row,
                          .col = (int16_t)col,
                          .cells = (int16_t)cells,
                          .len = (uint16_t)len};
    gd_buf_add(&tape.picture, &entry, sizeof(entry));
    if (len > 0) {
        gd_buf_add(&tape.picture, text, len);
    }
}

void tape_end(void)
{
    if (tape.recording && tape.fn && !tape.picture.failed) {
        tape.fn(tape.ctx, gd_buf_text(&tape.picture), tape.picture.len);
    }
    tape.recording = false;
}

void tape_close(void)
{
    if (tape.fn) {
        tape.fn(tape.ctx, "", 0);
    }
}

static void play(struct draw *draw, const struct entry *entry, const char *text, int rows, int cols)
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

bool tape_play(struct draw *draw, const char *bytes, size_t len)
{
    int rows, cols;

    draw_size(draw, &rows, &cols);
    for (size_t at = 0; at < len;) {
        struct entry entry;
        if (len - at < sizeof(entry)) {
            return false;
        }
        memcpy(&entry, bytes + at, sizeof(entry));
        at += sizeof(entry);
        if (entry.what >= TAPE_WHAT_COUNT || entry.style >= DRAW_STYLE_COUNT ||
            !is_cell(entry.row) || !is_cell(entry.col) || !is_cell(entry.cells) ||
            entry.len > len - at) {
            return false;
        }
        if (entry.row < rows && entry.col < cols) {
            play(draw, &entry, bytes + at, rows, cols);
        }
        at += entry.len;
    }
    return true;
}
