// SPDX-License-Identifier: GPL-3.0-or-later
/* JSON tokens. Nesting is kept in an array of flags, never on the call stack. */
#include "dump/io/json.h"

#include <stdio.h>
#include <string.h>

#include "engine/utf8.h"

#define MAX_STRING ((size_t)64 << 20)

enum state { VALUE, FIRST_VALUE, FIRST_KEY, KEY, COLON, AFTER, DONE };

int gd_json_fail(const struct gd_json *json, size_t at, int code, struct gd_err *err,
                 const char *format, ...)
{
    char what[GD_ERR_TEXT_MAX];
    size_t line = 1 + json->passed_lines;
    va_list args;

    for (size_t i = 0; json->passed + i < at && i < json->size; i++) {
        line += json->text[i] == '\n';
    }
    va_start(args, format);
    vsnprintf(what, sizeof(what), format, args);
    va_end(args);
    gd_fail(err, code, "%.250s:%zu: %.240s", json->what ? json->what : "JSON", line, what);
    if (err) {
        err->offset = at;
    }
    return code;
}

static size_t place_of(const struct gd_json *json)
{
    return json->passed + json->at;
}

static int fail_syntax(struct gd_json *json, const char *what, struct gd_err *err)
{
    size_t at = place_of(json);

    if (json->at >= json->size) {
        return gd_json_fail(json, at, GD_EPROTO, err, "the JSON ends unexpectedly");
    }
    return gd_json_fail(json, at, GD_EPROTO, err, "invalid JSON at byte %zu: %s", at, what);
}

/* Moves the window to the current place if less than `need` bytes are left in it. False: nothing is
 * left. */
static bool fill_window(struct gd_json *json, size_t need)
{
    while (json->more && !json->is_over && json->size - json->at < need) {
        const char *end = json->text + json->at;

        for (const char *p = json->text; p < end && (p = memchr(p, '\n', (size_t)(end - p))); p++) {
            json->passed_lines++;
        }
        json->passed += json->at;
        json->is_over = !json->more(json->ctx, json->at, json);
        json->at = 0;
    }
    return json->at < json->size;
}

static void skip_blanks(struct gd_json *json)
{
    while (fill_window(json, 1)) {
        char c = json->text[json->at];

        if (c != ' ' && c != '\n' && c != '\t' && c != '\r') {
            break;
        }
        json->at++;
    }
}

static bool accept_char(struct gd_json *json, const char *word)
{
    size_t len = strlen(word);

    if (json->size - json->at < len || memcmp(json->text + json->at, word, len) != 0) {
        return false;
    }
    json->at += len;
    return true;
}

/* ---- strings --------------------------------------------------------------------------------- */

static int parse_hex4(struct gd_json *json, uint32_t *ret, struct gd_err *err)
{
    *ret = 0;
    for (int i = 0; i < 4; i++) {
        char c = json->at < json->size ? json->text[json->at] : '\0';
        int digit = c >= '0' && c <= '9'   ? c - '0'
                    : c >= 'a' && c <= 'f' ? c - 'a' + 10
                    : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                           : -1;

        if (digit < 0) {
            return fail_syntax(json, "\\u must be followed by four hexadecimal digits", err);
        }
        *ret = *ret << 4 | (uint32_t)digit;
        json->at++;
    }
    return GD_OK;
}

static void add_utf8(struct gd_buf *out, uint32_t code)
{
    char bytes[4];

    gd_buf_add(out, bytes, gd_utf8_encode(code, bytes));
}

/* Reads what follows \u. A lone surrogate, which Python may write, becomes the replacement
 * character. */
static int read_code(struct gd_json *json, struct gd_err *err)
{
    uint32_t code, low;
    int rc = parse_hex4(json, &code, err);

    if (rc != GD_OK) {
        return rc;
    }
    if (code == 0) {
        return fail_syntax(json, "a NUL in a string", err);
    }
    if (code >= 0xd800 && code < 0xdc00 && accept_char(json, "\\u")) {
        rc = parse_hex4(json, &low, err);
        if (rc != GD_OK) {
            return rc;
        }
        if (low >= 0xdc00 && low < 0xe000) {
            code = 0x10000 + ((code - 0xd800) << 10 | (low - 0xdc00));
        } else {
            json->at -= 6;
        }
    }
    add_utf8(&json->string, code >= 0xd800 && code < 0xe000 ? 0xfffd : code);
    return GD_OK;
}

static int read_escape(struct gd_json *json, struct gd_err *err)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    char c = json->at < json->size ? json->text[json->at] : '\0';
    const char *found = c ? strchr(from, c) : NULL;

    if (found) {
        json->at++;
        gd_buf_putc(&json->string, to[found - from]);
        return GD_OK;
    }
    if (c == 'u') {
        json->at++;
        return read_code(json, err);
    }
    return fail_syntax(json, "invalid escape in a string", err);
}

static int check_utf8(struct gd_json *json, size_t start, struct gd_err *err)
{
    const char *p = gd_buf_text(&json->string), *end = p + json->string.len;
    uint32_t code;

    while (p < end) {
        size_t len = (unsigned char)*p < 0x80 ? 1 : gd_utf8_decode(p, &code);

        if (len == 0) {
            return gd_json_fail(json, start, GD_EPROTO, err,
                                "invalid JSON at byte %zu: a string is not valid UTF-8", start);
        }
        p += len;
    }
    return GD_OK;
}

/* Reads what follows the opening quote. */
static int read_string(struct gd_json *json, struct gd_json_token *ret, struct gd_err *err)
{
    size_t start = place_of(json);
    int rc = GD_OK;

    gd_buf_clear(&json->string);
    json->string.max = MAX_STRING;
    while (rc == GD_OK && !json->string.failed) {
        size_t plain;

        fill_window(json, sizeof("\\ud83d\\ude00"));
        plain = json->at;

        while (plain < json->size && json->text[plain] != '"' && json->text[plain] != '\\' &&
               (unsigned char)json->text[plain] >= 0x20) {
            plain++;
        }
        gd_buf_add(&json->string, json->text + json->at, plain - json->at);
        json->at = plain;
        if (plain == json->size && json->more && !json->is_over) {
            continue;
        }
        if (accept_char(json, "\"")) {
            break;
        }
        rc = accept_char(json, "\\") ? read_escape(json, err)
                                     : fail_syntax(json, "a control character in a string", err);
    }
    if (rc != GD_OK) {
        return rc;
    }
    if (json->string.failed) {
        return gd_json_fail(json, start, GD_ELIMIT, err, "a string is longer than %zu bytes",
                            MAX_STRING);
    }
    ret->text = gd_buf_text(&json->string);
    ret->size = json->string.len;
    return check_utf8(json, start, err);
}

/* ---- numbers --------------------------------------------------------------------------------- */

static size_t count_digits(const struct gd_json *json, size_t at)
{
    size_t n = 0;

    while (at + n < json->size && json->text[at + n] >= '0' && json->text[at + n] <= '9') {
        n++;
    }
    return n;
}

static char char_at(const struct gd_json *json, size_t at)
{
    return at < json->size ? json->text[at] : '\0';
}

/* The length of the number at `at`; 0: not a number. */
static size_t number_length(const struct gd_json *json, size_t at)
{
    size_t start = at, n;

    at += char_at(json, at) == '-';
    if (char_at(json, at) == 'I' || char_at(json, at) == 'N') {
        const char *word = char_at(json, at) == 'I' ? "Infinity" : "NaN";

        n = strlen(word);
        return json->size - at >= n && memcmp(json->text + at, word, n) == 0 &&
                       (*word == 'I' || at == start)
                   ? at + n - start
                   : 0;
    }
    n = count_digits(json, at);
    if (n == 0 || (n > 1 && json->text[at] == '0')) {
        return 0;
    }
    at += n;
    if (char_at(json, at) == '.') {
        n = count_digits(json, at + 1);
        if (n == 0) {
            return 0;
        }
        at += 1 + n;
    }
    if (char_at(json, at) == 'e' || char_at(json, at) == 'E') {
        at++;
        at += char_at(json, at) == '+' || char_at(json, at) == '-';
        n = count_digits(json, at);
        if (n == 0) {
            return 0;
        }
        at += n;
    }
    return at - start;
}

static int read_number(struct gd_json *json, struct gd_json_token *ret, struct gd_err *err)
{
    size_t len = number_length(json, json->at);

    if (len == 0) {
        return fail_syntax(json, "expected a value", err);
    }
    if (json->more && !json->is_over && len >= json->size - json->at) {
        return fail_syntax(json, "a number has too many digits", err);
    }
    gd_buf_clear(&json->string);
    json->string.max = MAX_STRING;
    gd_buf_add(&json->string, json->text + json->at, len);
    if (json->string.failed) {
        return fail_syntax(json, "a number has too many digits", err);
    }
    json->at += len;
    ret->kind = GD_JSON_NUMBER;
    ret->text = gd_buf_text(&json->string);
    ret->size = len;
    return GD_OK;
}

bool gd_json_unsigned(const char *text, uint64_t *ret)
{
    uint64_t value = 0;

    if (!*text) {
        return false;
    }
    for (; *text; text++) {
        if (*text < '0' || *text > '9' || __builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*text - '0'), &value)) {
            return false;
        }
    }
    *ret = value;
    return true;
}

/* ---- tokens ---------------------------------------------------------------------------------- */

static int open_one(struct gd_json *json, bool object, struct gd_json_token *ret,
                    struct gd_err *err)
{
    int max = json->max_depth ? json->max_depth : 64;

    if (json->depth >= (max < GD_JSON_MAX_DEPTH ? max : GD_JSON_MAX_DEPTH)) {
        return gd_json_fail(json, place_of(json), GD_ELIMIT, err,
                            "JSON nested deeper than %d levels", max);
    }
    json->at++;
    json->in_object[json->depth++] = object;
    json->state = object ? FIRST_KEY : FIRST_VALUE;
    ret->kind = object ? GD_JSON_OBJECT : GD_JSON_ARRAY;
    return GD_OK;
}

static void close_one(struct gd_json *json, struct gd_json_token *ret)
{
    json->at++;
    json->depth--;
    ret->kind = json->in_object[json->depth] ? GD_JSON_OBJECT_END : GD_JSON_ARRAY_END;
    json->state = json->depth ? AFTER : DONE;
}

static int read_value(struct gd_json *json, struct gd_json_token *ret, struct gd_err *err)
{
    char c = char_at(json, json->at);
    int rc = GD_OK;

    if (c == '{' || c == '[') {
        return open_one(json, c == '{', ret, err);
    }
    if (c == '"') {
        json->at++;
        ret->kind = GD_JSON_STRING;
        rc = read_string(json, ret, err);
    } else if (accept_char(json, "true")) {
        ret->kind = GD_JSON_TRUE;
    } else if (accept_char(json, "false")) {
        ret->kind = GD_JSON_FALSE;
    } else if (accept_char(json, "null")) {
        ret->kind = GD_JSON_NULL;
    } else {
        rc = read_number(json, ret, err);
    }
    json->state = json->depth ? AFTER : DONE;
    return rc;
}

static int read_key(struct gd_json *json, struct gd_json_token *ret, struct gd_err *err)
{
    int rc;

    if (!accept_char(json, "\"")) {
        return fail_syntax(json, "expected a key in quotes", err);
    }
    ret->kind = GD_JSON_KEY;
    rc = read_string(json, ret, err);
    skip_blanks(json);
    if (rc == GD_OK && !accept_char(json, ":")) {
        rc = fail_syntax(json, "expected a colon after a key", err);
    }
    json->state = VALUE;
    return rc;
}

int gd_json_next(struct gd_json *json, struct gd_json_token *ret, struct gd_err *err)
{
    bool object = json->depth && json->in_object[json->depth - 1];

    fill_window(json, GD_JSON_WINDOW / 2);
    *ret = (struct gd_json_token){.text = "", .at = place_of(json)};
    if (!json->started) {
        json->started = true;
        accept_char(json, "\xef\xbb\xbf");
    }
    skip_blanks(json);
    if (json->state == AFTER) {
        if (char_at(json, json->at) == (object ? '}' : ']')) {
            close_one(json, ret);
            return GD_OK;
        }
        if (!accept_char(json, ",")) {
            return fail_syntax(json, object ? "expected ',' or '}'" : "expected ',' or ']'", err);
        }
        skip_blanks(json);
        json->state = object ? KEY : VALUE;
    }
    ret->at = place_of(json);
    if ((json->state == FIRST_KEY || json->state == FIRST_VALUE) &&
        char_at(json, json->at) == (object ? '}' : ']')) {
        close_one(json, ret);
        return GD_OK;
    }
    if (json->state == FIRST_KEY || json->state == KEY) {
        return read_key(json, ret, err);
    }
    if (json->state == DONE) {
        ret->kind = GD_JSON_END;
        return json->at < json->size ? fail_syntax(json, "unexpected text after the end", err)
                                     : GD_OK;
    }
    return read_value(json, ret, err);
}

int gd_json_skip(struct gd_json *json, const struct gd_json_token *token, struct gd_err *err)
{
    struct gd_json_token next;
    int depth = json->depth;

    if (token->kind != GD_JSON_OBJECT && token->kind != GD_JSON_ARRAY) {
        return GD_OK;
    }
    while (json->depth >= depth) {
        int rc = gd_json_next(json, &next, err);

        if (rc != GD_OK) {
            return rc;
        }
    }
    return GD_OK;
}

void gd_json_deinit(struct gd_json *json)
{
    gd_buf_deinit(&json->string);
}
