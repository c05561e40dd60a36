// SPDX-License-Identifier: GPL-3.0-or-later
/* The end of the console's output, kept for the next terminal. */
#include "resident/resident_impl.h"

#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "repl/out/tty_out.h"

void resident_keep_console(struct resident *resident, const char *text, size_t len)
{
    struct gd_buf *kept = &resident->text;

    if (len > RESIDENT_KEPT / 2) {
        text += len - RESIDENT_KEPT / 2;
        len = RESIDENT_KEPT / 2;
    }
    if (kept->len + len > RESIDENT_KEPT) {
        const char *half = gd_buf_text(kept) + kept->len - RESIDENT_KEPT / 2;
        const char *end = memchr(half, '\n', RESIDENT_KEPT / 2);
        size_t drop = end ? (size_t)(end + 1 - gd_buf_text(kept)) : kept->len;
        memmove(kept->data, kept->data + drop, kept->len - drop);
        kept->len -= drop;
    }
    gd_buf_add(kept, text, len);
}

/* The start of the last `rows` rows. */
static const char *find_last_rows(const char *text, size_t len, int rows, int cols)
{
    const char *begin = text + len;
    const char *end = begin;

    for (int used = 0; begin > text;) {
        const char *line = memrchr(text, '\n', (size_t)(begin - 1 - text));
        line = line ? line + 1 : text;
        used += 1 + (int)(end - line) / cols;
        if (used > rows) {
            return begin;
        }
        begin = line;
        end = line > text ? line - 1 : line;
    }
    return begin;
}

void resident_replay(struct resident *resident, bool color)
{
    struct winsize size = {.ws_row = 0};
    struct gd_buf shown = GD_BUF_INIT(2 * RESIDENT_KEPT);

    if (!resident || !resident->fresh) {
        return;
    }
    const char *text = gd_buf_text(&resident->text);
    const char *stop = text + resident->text.len;
    resident->fresh = false;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row < 2 || size.ws_col < 1) {
        size = (struct winsize){.ws_row = 24, .ws_col = 80};
    }
    text = find_last_rows(text, resident->text.len, size.ws_row - 1, size.ws_col);
    while (text < stop) {
        if (!color && *text == '\x1b') { /* skip colors: ESC [ ... m */
            const char *end = memchr(text, 'm', (size_t)(stop - text));
            text = end ? end + 1 : stop;
        } else {
            gd_buf_putc(&shown, *text++);
        }
    }
    tty_out_write(STDOUT_FILENO, gd_buf_text(&shown), shown.len);
    gd_buf_deinit(&shown);
}
