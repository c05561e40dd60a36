// SPDX-License-Identifier: GPL-3.0-or-later
#include "repl/core/parse.h"

#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static bool is_name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '?';
}

static const char *skip_blanks(const char *p)
{
    while (is_blank(*p)) {
        p++;
    }
    return p;
}

static char *copy_trimmed(struct gd_arena *arena, const char *text, size_t len)
{
    while (len > 0 && is_blank(text[len - 1])) {
        len--;
    }
    return gd_arena_strndup(arena, text, len);
}

int parse_line(const char *line, struct gd_arena *arena, struct parsed_line *ret,
               struct gd_err *err)
{
    struct parsed_line parsed = {.name = "", .format = "", .rest = ""};
    const char *p = skip_blanks(line);
    size_t len = strnlen(p, PARSE_MAX_LINE + 1);

    if (len > PARSE_MAX_LINE) {
        return gd_fail(err, GD_ELIMIT, "the line is longer than %d bytes", PARSE_MAX_LINE);
    }
    if (*p == '\0' || *p == '#') {
        *ret = parsed;
        return GD_OK;
    }
    const char *start = p;
    if (*p == '!' || *p == '|') {
        p++;
    } else if (*p != '/') {
        while (is_name_char(*p)) {
            p++;
        }
        if (p == start) {
            return gd_fail(err, GD_EINVAL,
                           "a command starts with a letter, not with \"%.1s\": see \"help\"", p);
        }
    }
    parsed.name = *start == '/' ? "/" : gd_arena_strndup(arena, start, (size_t)(p - start));
    if (p > start && *p == '/' && is_name_char(*start)) {
        const char *letters = ++p;
        while (is_name_char(*p)) {
            p++;
        }
        parsed.format = gd_arena_strndup(arena, letters, (size_t)(p - letters));
    }
    p = skip_blanks(p);
    parsed.rest_at = (size_t)(p - line);
    parsed.rest = copy_trimmed(arena, p, strlen(p));
    if (!parsed.name || !parsed.format || !parsed.rest) {
        return gd_fail_nomem(err);
    }
    *ret = parsed;
    return GD_OK;
}

static char closer_of(char c)
{
    switch (c) {
    case '[': return ']';
    case '(': return ')';
    case '{': return '}';
    default: return '\0';
    }
}

/* For each opening bracket the offset of its partner; 0: none. One pass, so that a line of brackets
 * takes linear time. */
static uint32_t *match_brackets(const char *text, size_t len, struct gd_arena *arena)
{
    uint32_t *match = gd_arena_zalloc(arena, (len + 1) * sizeof(*match));
    uint32_t *stack = gd_arena_alloc(arena, (len + 1) * sizeof(*stack));
    size_t depth = 0;

    if (!match || !stack) {
        return NULL;
    }
    for (size_t i = 0; i < len; i++) {
        if (closer_of(text[i]) != '\0') {
            stack[depth++] = (uint32_t)i;
            continue;
        }
        if (text[i] != ']' && text[i] != ')' && text[i] != '}') {
            continue;
        }
        for (size_t d = depth; d > 0; d--) { /* skips an opening bracket without a partner */
            if (closer_of(text[stack[d - 1]]) == text[i]) {
                match[stack[d - 1]] = (uint32_t)i;
                depth = d - 1;
                break;
            }
        }
        if (depth > 4096) {
            depth = 4096; /* nobody types a deeper nesting */
        }
    }
    return match;
}

struct word {
    char *text;   /* quotes removed */
    size_t start; /* its offset in the line */
    size_t end;
    bool quoted; /* its first character was a quote */
};

struct scanner {
    const char *text;
    size_t len;
    size_t at;
    const uint32_t *match; /* NULL: brackets have no meaning */
    struct gd_arena *arena;
    char *out; /* room for all words: none gets longer */
};

static int scanner_init(struct scanner *scan, const char *text, size_t len, struct gd_arena *arena,
                        struct gd_err *err)
{
    *scan = (struct scanner){.text = text, .len = len, .arena = arena};
    scan->out = gd_arena_alloc(arena, 2 * len + 8); /* twice: a redirection is read again */
    return scan->out ? GD_OK : gd_fail_nomem(err);
}

/* Copies the text between quotes; the scanner is at the opening quote. */
static int scan_quoted(struct scanner *scan, char *out, size_t *used, struct gd_err *err)
{
    char quote = scan->text[scan->at];
    size_t opened = scan->at++;

    while (scan->at < scan->len && scan->text[scan->at] != quote) {
        char c = scan->text[scan->at];
        char following = scan->at + 1 < scan->len ? scan->text[scan->at + 1] : '\0';
        if (quote == '"' && c == '\\' && (following == '"' || following == '\\')) {
            c = following;
            scan->at++;
        }
        out[(*used)++] = c;
        scan->at++;
    }
    if (scan->at >= scan->len) {
        if (err) {
            err->offset = opened;
        }
        return gd_fail(err, GD_EINVAL, "the quote %c is not closed: %.40s", quote,
                       scan->text + opened);
    }
    scan->at++;
    return GD_OK;
}

/* 1: a word; 0: the end; negative: an error. */
static int scan_word(struct scanner *scan, struct word *ret, struct gd_err *err)
{
    while (scan->at < scan->len && is_blank(scan->text[scan->at])) {
        scan->at++;
    }
    if (scan->at >= scan->len) {
        return 0;
    }
    char *out = scan->out;
    size_t used = 0;
    ret->start = scan->at;
    ret->quoted = scan->text[scan->at] == '"' || scan->text[scan->at] == '\'';
    while (scan->at < scan->len && !is_blank(scan->text[scan->at])) {
        char c = scan->text[scan->at];
        if (c == '"' || c == '\'') {
            int rc = scan_quoted(scan, out, &used, err);
            if (rc != GD_OK) {
                return rc;
            }
            continue;
        }
        size_t last = scan->at;
        if (scan->match && scan->match[scan->at] != 0) {
            last = scan->match[scan->at];
        }
        while (scan->at <= last) {
            out[used++] = scan->text[scan->at++];
        }
    }
    out[used] = '\0';
    scan->out += used + 1;
    ret->text = out;
    ret->end = scan->at;
    return 1;
}

#define MAX_WORDS 4096

/* "print loss > 1" compares: no file has a number as its name, or begins with "=". */
static bool is_comparison(const struct scanner *scan, const struct word *word)
{
    const char *text = scan->text + word->start + 1;
    char *end;

    if (text[0] == '=') {
        return true;
    }
    strtod(text, &end);
    return end != text && strpbrk(text, "0123456789") && end[strspn(end, " \t")] == '\0';
}

/* Reads all words; stops before a word that starts with '>' when redirect is not NULL. */
static int scan_all(struct scanner *scan, struct word **words, int *count, struct word *redirect,
                    struct gd_err *err)
{
    int room = 16;
    *count = 0;
    *words = gd_arena_alloc(scan->arena, (size_t)room * sizeof(**words));

    while (*words) {
        struct word word;
        size_t before = scan->at;
        int rc = scan_word(scan, &word, err);
        if (rc <= 0) {
            return rc;
        }
        if (redirect && word.text[0] == '>' && !word.quoted && !is_comparison(scan, &word)) {
            *redirect = word;
            scan->at = before;
            return GD_OK;
        }
        if (*count == MAX_WORDS) {
            return gd_fail(err, GD_ELIMIT, "more than %d words in one line", MAX_WORDS);
        }
        if (*count == room) {
            struct word *more = gd_arena_alloc(scan->arena, (size_t)room * 2 * sizeof(*more));
            if (!more) {
                break;
            }
            memcpy(more, *words, (size_t)room * sizeof(*more));
            *words = more;
            room *= 2;
        }
        (*words)[(*count)++] = word;
    }
    return gd_fail_nomem(err);
}

/* Reads `> FILE` or `>> FILE` after the words; nothing may follow. */
static int take_redirect(struct scanner *scan, const struct word *word, struct parsed_args *args,
                         struct gd_err *err)
{
    struct word file;
    struct word extra;
    size_t at = word->start + 1;

    args->append = scan->text[at] == '>';
    scan->at = at + (args->append ? 1 : 0);
    int rc = scan_word(scan, &file, err);
    if (rc < 0) {
        return rc;
    }
    if (rc == 0 || file.text[0] == '\0') {
        return gd_fail(err, GD_EINVAL,
                       "a file is missing after \"%s\": write \"> FILE\", or quote the word",
                       args->append ? ">>" : ">");
    }
    rc = scan_word(scan, &extra, err);
    if (rc < 0) {
        return rc;
    }
    if (rc > 0) {
        return gd_fail(err, GD_EINVAL,
                       "unexpected \"%.80s\" after \"> %.200s\": the file comes last", extra.text,
                       file.text);
    }
    args->file = file.text;
    return GD_OK;
}

/* Removes an unquoted '&' at the end. Returns the new length. */
static size_t take_background(const char *text, size_t len, bool *background)
{
    *background = false;
    while (len > 0 && is_blank(text[len - 1])) {
        len--;
    }
    if (len > 0 && text[len - 1] == '&' && (len < 2 || text[len - 2] != '&')) {
        *background = true;
        len--;
    }
    return len;
}

static int fill_argv(struct gd_arena *arena, const struct word *words, int count, char ***argv,
                     struct gd_err *err)
{
    *argv = gd_arena_alloc(arena, ((size_t)count + 1) * sizeof(**argv));
    if (!*argv) {
        return gd_fail_nomem(err);
    }
    for (int i = 0; i < count; i++) {
        (*argv)[i] = words[i].text;
    }
    (*argv)[count] = NULL;
    return GD_OK;
}

int parse_args(const char *rest, struct gd_arena *arena, struct parsed_args *ret,
               struct gd_err *err)
{
    struct parsed_args args = {.file = NULL};
    struct word redirect = {.text = NULL};
    struct word *words = NULL;
    size_t len = strnlen(rest, PARSE_MAX_LINE);

    len = take_background(rest, len, &args.background);
    struct scanner scan;
    int rc = scanner_init(&scan, rest, len, arena, err);
    if (rc != GD_OK) {
        return rc;
    }
    scan.match = match_brackets(rest, len, arena);
    if (!scan.match) {
        return gd_fail_nomem(err);
    }
    rc = scan_all(&scan, &words, &args.argc, &redirect, err);
    if (rc != GD_OK) {
        return rc;
    }
    size_t line_len = len;
    if (redirect.text) {
        line_len = redirect.start;
        rc = take_redirect(&scan, &redirect, &args, err);
        if (rc != GD_OK) {
            return rc;
        }
    }
    args.line = copy_trimmed(arena, rest, line_len);
    if (!args.line) {
        return gd_fail_nomem(err);
    }
    size_t first_end = args.argc > 0 ? words[0].end : 0;
    size_t kept = strlen(args.line);
    args.after_first = skip_blanks(args.line + (first_end < kept ? first_end : kept));
    rc = fill_argv(arena, words, args.argc, &args.argv, err);
    if (rc == GD_OK) {
        *ret = args;
    }
    return rc;
}

int parse_words(const char *text, struct gd_arena *arena, int *argc, char ***argv,
                struct gd_err *err)
{
    struct scanner scan;
    struct word *words = NULL;
    int count = 0;
    int rc = scanner_init(&scan, text, strnlen(text, PARSE_MAX_LINE), arena, err);

    if (rc != GD_OK) {
        return rc;
    }
    rc = scan_all(&scan, &words, &count, NULL, err);
    if (rc != GD_OK) {
        return rc;
    }
    rc = fill_argv(arena, words, count, argv, err);
    if (rc == GD_OK) {
        *argc = count;
    }
    return rc;
}

bool parse_answer(const char *text, bool whole, bool *yes)
{
    static const char *const words[] = {"n", "no", "y", "yes"};
    char first = (char)tolower((unsigned char)text[0]);

    *yes = first == 'y';
    for (size_t i = 0; whole && i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcasecmp(text, words[i]) == 0) {
            return true;
        }
    }
    return !whole && (first == 'y' || first == 'n');
}
