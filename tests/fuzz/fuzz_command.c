// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The command language without a trainer: the input is lines as they would be typed. The repl is
 * sealed, so that no program is started and no file touched. What is printed must be whole lines of
 * valid UTF-8 without control characters when nothing but the repl itself wrote them (echo may
 * write what it is told), and completion must answer at every prefix of the last line.
 */
#include "fuzz.h"

#include <ev.h>

#include "repl/core/repl.h"

struct seen {
    size_t errors;
};

static void on_write(void *ctx, const char *text, size_t len, bool is_error)
{
    struct seen *seen = ctx;

    if (!is_error) {
        return;
    }
    seen->errors++;
    FUZZ_CHECK(len > 8 && (memcmp(text, "error: ", 7) == 0 || memcmp(text, "warning", 7) == 0));
    FUZZ_CHECK(text[len - 1] == '\n');
    for (size_t i = 0; i + 1 < len; i++) {
        FUZZ_CHECK((unsigned char)text[i] >= 0x20 && text[i] != 0x7f);
    }
}

static void complete_prefixes(struct repl *repl, const char *line, size_t len)
{
    for (size_t point = 0; point <= len && point <= 64; point++) {
        size_t start = 0;
        char **words = repl_complete(repl, line, point, &start);
        FUZZ_CHECK(!words || (start <= point && words[0]));
        for (char **w = words; w && *w; w++) {
            free(*w);
        }
        free(words);
    }
}

static void run_lines(struct repl *repl, struct seen *seen, const char *text, size_t size)
{
    const char *end = text + size;

    while (text < end && !repl_wants_quit(repl)) {
        const char *stop = memchr(text, '\n', (size_t)(end - text));
        size_t len = (size_t)((stop ? stop : end) - text);
        char *line = strndup(text, len);
        FUZZ_CHECK(line);
        if (!stop) {
            complete_prefixes(repl, line, strlen(line));
        }
        seen->errors = 0;
        int rc = repl_execute(repl, line);
        FUZZ_CHECK(rc == GD_OK || seen->errors > 0); /* no failure without a word */
        free(line);
        text += len + 1;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct ev_loop *loop;
    static const struct repl_options options = {.batch = true, .sealed = true, .utf8 = true};
    struct gd_debugger *debugger = NULL;
    struct repl *repl = NULL;
    struct seen seen = {.errors = 0};

    if (!loop) {
        loop = ev_loop_new(EVFLAG_AUTO);
    }
    FUZZ_CHECK(loop);
    FUZZ_CHECK(gd_debugger_create(&debugger, NULL) == GD_OK);
    FUZZ_CHECK(repl_create(loop, debugger, &options, &repl, NULL) == GD_OK);
    repl_set_writer(repl, on_write, &seen);
    run_lines(repl, &seen, (const char *)data, size);
    repl_destroy(repl);
    gd_debugger_destroy(debugger);
    return 0;
}
