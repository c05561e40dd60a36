// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/stack.h"

#include <string.h>

#include "base/cursor.h"

struct span {
    const char *text;
    size_t len;
};

static bool starts_with(const struct span *span, const char *text)
{
    size_t len = strlen(text);

    return span->len >= len && memcmp(span->text, text, len) == 0;
}

static void skip_bytes(struct span *span, size_t len)
{
    span->text += len;
    span->len -= len;
}

static void trim_blanks(struct span *span)
{
    while (span->len && (span->text[0] == ' ' || span->text[0] == '\t')) {
        skip_bytes(span, 1);
    }
    while (span->len && (span->text[span->len - 1] == ' ' || span->text[span->len - 1] == '\t' ||
                         span->text[span->len - 1] == '\r')) {
        span->len--;
    }
}

static uint32_t read_line_number(const char *text, size_t len)
{
    uint64_t value = 0;

    for (size_t i = 0; i < len; i++) {
        value = value * 10 + (uint64_t)(text[i] - '0');
        if (value > UINT32_MAX) {
            return 0;
        }
    }
    return (uint32_t)value;
}

struct location {
    size_t path_len;
    size_t code_at; /* first byte of the code */
    uint32_t line;
};

/* A line number whose last digit is before `end`: "(12)" or ":12", then '/'. The path is before. */
static bool number_before(const struct span *span, size_t end, struct location *ret)
{
    bool paren = end > 0 && span->text[end - 1] == ')';
    size_t digits_end = paren ? end - 1 : end;
    size_t digits = digits_end;

    while (digits > 0 && gd_is_digit(span->text[digits - 1])) {
        digits--;
    }
    if (digits == digits_end || digits < 2 || span->text[digits - 1] != (paren ? '(' : ':')) {
        return false;
    }
    ret->path_len = digits - 1;
    ret->line = read_line_number(span->text + digits, digits_end - digits);
    ret->code_at = end + 1;
    return true;
}

/* How likely the text before a number is a file's path. */
static int path_score(const struct span *span, size_t len)
{
    if (len > 3 && memcmp(span->text + len - 3, ".py", 3) == 0) {
        return 3;
    }
    for (size_t i = len; i > 0 && span->text[i - 1] != '/'; i--) {
        if (span->text[i - 1] == '.') {
            return 2;
        }
    }
    return 1;
}

/*
 * PATH(LINE)/CODE/ or PATH:LINE/CODE/. Both the path and the code may contain '(', ':' and '/', so
 * of all numbers that are followed by '/', the first one after a Python file's name is taken, else
 * the first one after a name with a dot, else the first.
 */
static bool find_location(const struct span *span, struct location *ret)
{
    struct location at;
    int best = 0;

    for (size_t i = 1; i < span->len && best < 3; i++) {
        if (span->text[i] == '/' && number_before(span, i, &at)) {
            int score = path_score(span, at.path_len);

            if (score > best) {
                best = score;
                *ret = at;
            }
        }
    }
    /* "PATH:LINE" without any code. */
    if (best == 0 && number_before(span, span->len, ret)) {
        ret->code_at = span->len;
        best = 1;
    }
    return best > 0;
}

static int set_text(struct gd_arena *arena, const char *text, size_t len, const char **ret)
{
    *ret = len ? gd_arena_strndup(arena, text, len) : "";
    return *ret ? GD_OK : GD_ENOMEM;
}

/* "CODE/ in FUNCTION", as gradb's own dumps have it: the function is cut off. */
static void cut_function(struct span *span, struct span *function)
{
    static const char mark[] = "/ in ";
    size_t at = span->len;

    *function = (struct span){.text = "", .len = 0};
    while (at > 0 && span->text[at - 1] != ' ') {
        at--;
    }
    if (at >= strlen(mark) && at < span->len &&
        memcmp(span->text + at - strlen(mark), mark, strlen(mark)) == 0) {
        *function = (struct span){.text = span->text + at, .len = span->len - at};
        span->len = at - strlen(mark) + 1;
    }
}

static int parse_line(struct span span, struct gd_arena *arena, struct gd_frame *frame)
{
    struct span whole, function;
    struct location at;

    *frame = (struct gd_frame){.file = "", .function = "", .code = ""};
    trim_blanks(&span);
    if (starts_with(&span, "#")) {
        skip_bytes(&span, 1);
        trim_blanks(&span);
    }
    whole = span;
    if (starts_with(&span, "- ")) {
        skip_bytes(&span, 2);
        trim_blanks(&span);
    }
    if (starts_with(&span, "In file ")) {
        skip_bytes(&span, strlen("In file "));
        trim_blanks(&span);
        if (find_location(&span, &at)) {
            frame->line = at.line;
            if (set_text(arena, span.text, at.path_len, &frame->file) != GD_OK) {
                return GD_ENOMEM;
            }
            skip_bytes(&span, at.code_at);
            cut_function(&span, &function);
            if (set_text(arena, function.text, function.len, &frame->function) != GD_OK) {
                return GD_ENOMEM;
            }
            if (span.len && span.text[span.len - 1] == '/') {
                span.len--;
            }
            trim_blanks(&span);
            return set_text(arena, span.text, span.len, &frame->code);
        }
    }
    frame->is_title = starts_with(&whole, "Corresponding ") && whole.text[whole.len - 1] == ':';
    return set_text(arena, whole.text, whole.len, &frame->code);
}

/* The next line that is not blank. */
static bool next_line(struct span *rest, struct span *line)
{
    while (rest->len) {
        const char *newline = memchr(rest->text, '\n', rest->len);
        size_t len = newline ? (size_t)(newline - rest->text) : rest->len;
        struct span trimmed = {rest->text, len};

        *line = trimmed;
        skip_bytes(rest, newline ? len + 1 : len);
        trim_blanks(&trimmed);
        if (trimmed.len && !(trimmed.len == 1 && trimmed.text[0] == '#')) {
            return true;
        }
    }
    return false;
}

int gd_stack_parse(const char *text, size_t len, struct gd_arena *arena, struct gd_frame **ret,
                   uint32_t *count)
{
    /* a NUL would cut the strings that are made from it */
    struct span whole = {text, strnlen(text, len)};
    struct span rest = whole;
    struct span line;
    struct gd_frame *frames = NULL;
    uint32_t lines = 0, done = 0;

    while (lines < UINT32_MAX && next_line(&rest, &line)) {
        lines++;
    }
    if (lines) {
        frames = gd_arena_alloc(arena, (size_t)lines * sizeof(*frames));
        if (!frames) {
            return GD_ENOMEM;
        }
    }
    rest = whole;
    while (done < lines && next_line(&rest, &line)) {
        if (parse_line(line, arena, &frames[done]) != GD_OK) {
            return GD_ENOMEM;
        }
        done++;
    }
    *ret = frames;
    *count = done;
    return GD_OK;
}
