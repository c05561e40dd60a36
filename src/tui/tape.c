// SPDX-License-Identifier: GPL-3.0-or-later
#include "tui/tape.h"

#include <stdint.h>
#include <string.h>

#include "base/buf.h"

#define BYTES_OF_A_CELL 16 /* room for accents; longer cells are cut */

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

bool tape_is_cell(int value)
{
    return value >= 0 && value < TAPE_MAX_CELLS;
}

void tape_add(enum tape_what what, int row, int col, int cells, enum draw_style style,
              const char *text, size_t len)
{
    size_t most = cells > 0 && cells < TAPE_MAX_CELLS ? (size_t)cells * BYTES_OF_A_CELL : 0;

    if (!tape.recording || !tape_is_cell(row) || !tape_is_cell(col) || !tape_is_cell(cells)) {
        return;
    }
    most = most < UINT16_MAX ? most : UINT16_MAX;
    len = len < most ? len : most;
    struct tape_entry entry = {.what = (uint8_t)what,
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
