// SPDX-License-Identifier: GPL-3.0-or-later
/* The line of a dprintf, and its format filled in with numbers and texts. */

#include <math.h>

#include "fuzz.h"
#include "repl/commands/breakpoints/dprintf_text.h"

static void fill_format(const struct dprintf_text *text)
{
    static const double numbers[] = {0, -1.5, 1e300, -0.0, 255, 9.3e18};
    struct gd_buf out = GD_BUF_INIT(1 << 20);

    for (int i = 0; i < text->piece_count; i++) {
        if (text->piece[i].conversion) {
            for (size_t k = 0; k < sizeof(numbers) / sizeof(*numbers); k++) {
                dprintf_number(&out, &text->piece[i], numbers[k]);
            }
            dprintf_number(&out, &text->piece[i], NAN);
            dprintf_string(&out, &text->piece[i], "text");
        }
    }
    gd_buf_deinit(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *line = fuzz_text(data, size);
    const char *where, *print, *guard;
    struct dprintf_text text;
    struct gd_arena arena;
    struct gd_err err;

    gd_arena_init(&arena, 1 << 20);
    if (dprintf_split(&arena, line, &where, &print, &guard, &err) == GD_OK &&
        dprintf_parse(&arena, print, &text, &err) == GD_OK) {
        for (int i = 0; i < text.arg_count; i++) {
            FUZZ_CHECK(text.arg[i].is_string || text.arg[i].text[0] != '\0');
        }
        fill_format(&text);
    }
    gd_arena_deinit(&arena);
    free(line);
    return 0;
}
