// SPDX-License-Identifier: GPL-3.0-or-later
/* Completion for readline, and the rows that show its candidates. */
#include "repl/core/repl_impl.h"
#include "repl/line/line.h"

#include <stdlib.h>
#include <string.h>

#include <readline/readline.h>

/* Our word may start elsewhere than readline's: removes or adds the part in between. */
static void shift_words(char **words, const char *line, int theirs, size_t ours)
{
    for (char **w = words; *w; w++) {
        size_t len = strlen(*w);
        if (ours <= (size_t)theirs) {
            size_t cut = (size_t)theirs - ours;
            cut = cut < len ? cut : len;
            memmove(*w, *w + cut, len - cut + 1);
            continue;
        }
        size_t more = ours - (size_t)theirs;
        char *longer = malloc(more + len + 1);
        if (longer) {
            memcpy(longer, line + theirs, more);
            memcpy(longer + more, *w, len + 1);
            free(*w);
            *w = longer;
        }
    }
}

/* readline's form of the array: the common prefix first. Takes ownership of words. */
static char **with_common_prefix(char **words)
{
    size_t count = 0;
    size_t common = strlen(words[0]);

    for (; words[count]; count++) {
        size_t same = 0;
        while (same < common && words[count][same] == words[0][same]) {
            same++;
        }
        common = same;
    }
    char **all = calloc(count + 2, sizeof(*all));
    if (!all) {
        return NULL;
    }
    all[0] = strndup(words[0], common);
    if (count > 1) {
        memcpy(all + 1, words, count * sizeof(*words));
    } else {
        free(words[0]);
    }
    free(words);
    return all;
}

char **line_complete(struct repl *repl, int start, int end)
{
    size_t ours = 0;

    rl_attempted_completion_over = 1; /* no file names from readline */
    rl_completion_append_character = ' ';
    rl_completion_suppress_append = 0;
    char **words = repl_complete(repl, rl_line_buffer, (size_t)end, &ours);
    if (!words) {
        return NULL;
    }
    size_t len = strlen(words[0]);
    if (!words[1] && len > 0 && strchr("/:=", words[0][len - 1])) {
        rl_completion_suppress_append = 1; /* the word continues */
    }
    shift_words(words, rl_line_buffer, start, ours);
    return with_common_prefix(words);
}

/* Padded to `width`, except for the last of a row. */
static void add_match(struct gd_buf *row, const char *match, int width, bool last)
{
    int used = repl_display_width(match);

    gd_buf_puts(row, match);
    if (!last) {
        gd_buf_fill(row, ' ', (size_t)(used < width ? width - used : 1));
    }
}

void line_match_rows(char **matches, int count, int cols, int most_rows, line_row_fn fn, void *ctx)
{
    struct gd_buf row = GD_BUF_INIT(65536);
    int width = 1;

    for (int i = 1; i <= count; i++) {
        int used = repl_display_width(matches[i]) + 2;
        width = used > width ? used : width;
    }
    int per_row = width < cols ? cols / width : 1;
    int most = per_row * (most_rows > 1 ? most_rows : 1);
    int shown = count < most ? count : most;
    for (int i = 1; i <= shown; i++) {
        bool last = i % per_row == 0 || i == shown;
        add_match(&row, matches[i], width, last);
        if (last) {
            fn(ctx, gd_buf_text(&row));
            gd_buf_clear(&row);
        }
    }
    if (count > shown) {
        gd_buf_printf(&row, "and %d more: type more characters", count - shown);
        fn(ctx, gd_buf_text(&row));
    }
    gd_buf_deinit(&row);
}
