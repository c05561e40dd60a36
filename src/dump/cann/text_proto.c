// SPDX-License-Identifier: GPL-3.0-or-later
#include "dump/cann/text_proto.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"

#define PIECE    65536
#define MAX_NAME 256

enum mode { MODE_FIELDS, MODE_LIST };

struct level {
    char close;          /* '}' or '>' */
    bool in_list;        /* an item of a list, which continues after it */
    char name[MAX_NAME]; /* of that list */
};

struct gd_text {
    struct gd_disk *disk;
    uint64_t at; /* of the next piece */
    unsigned char piece[PIECE];
    size_t have, used;
    uint32_t line;
    int depth;
    struct level level[GD_TEXT_DEPTH + 1];
    enum mode mode; /* expected next in the open message */
    char name[MAX_NAME];
    struct gd_buf value;
    bool is_cut;
};

/* ---- characters ------------------------------------------------------------------------------ */

static int fill_buffer(struct gd_text *text, struct gd_err *err)
{
    uint64_t left = gd_disk_size(text->disk) - text->at;
    size_t want = left < PIECE ? (size_t)left : PIECE;
    int rc = GD_OK;

    text->have = text->used = 0;
    if (want > 0) {
        rc = gd_disk_read(text->disk, text->at, text->piece, want, err);
    }
    if (rc == GD_OK) {
        text->have = want;
        text->at += want;
    }
    return rc;
}

/* -1 at the end of the file. */
static int peek_char(struct gd_text *text, int *ret, struct gd_err *err)
{
    int rc = text->used == text->have ? fill_buffer(text, err) : GD_OK;

    *ret = rc == GD_OK && text->used < text->have ? text->piece[text->used] : -1;
    return rc;
}

static void take_char(struct gd_text *text)
{
    if (text->piece[text->used++] == '\n') {
        text->line++;
    }
}

static int fail_broken(const struct gd_text *text, const char *what, struct gd_err *err)
{
    return gd_fail(err, GD_EPROTO, "%.300s:%u: %s", gd_disk_path(text->disk), text->line, what);
}

/* Skips blanks and comments. */
static int skip_blank(struct gd_text *text, int *ret, struct gd_err *err)
{
    bool comment = false;
    int rc;

    for (;;) {
        rc = peek_char(text, ret, err);
        if (rc != GD_OK || *ret < 0) {
            return rc;
        }
        comment = *ret == '#' || (comment && *ret != '\n');
        if (!comment && !isspace(*ret)) {
            return GD_OK;
        }
        take_char(text);
    }
}

/* ---- words and strings ----------------------------------------------------------------------- */

static bool is_word(int c)
{
    return isalnum(c) || c == '_' || c == '.' || c == '+' || c == '-' || c == '/';
}

static void keep_char(struct gd_text *text, int c)
{
    if (text->value.len < GD_TEXT_VALUE) {
        gd_buf_putc(&text->value, (char)c);
    } else {
        text->is_cut = true;
    }
}

static int read_word(struct gd_text *text, struct gd_err *err)
{
    int c, rc;

    while ((rc = peek_char(text, &c, err)) == GD_OK && c >= 0 && is_word(c)) {
        keep_char(text, c);
        take_char(text);
    }
    if (rc == GD_OK && text->value.len == 0) {
        return fail_broken(text, "expected a name or a value", err);
    }
    return rc;
}

/* Parses up to `most` digits of a base. */
static int read_code(struct gd_text *text, int base, int most, struct gd_err *err)
{
    int value = 0, c, rc = GD_OK;

    for (int i = 0; i < most; i++) {
        rc = peek_char(text, &c, err);
        if (rc != GD_OK || c < 0 || !(base == 8 ? c >= '0' && c <= '7' : isxdigit(c))) {
            break;
        }
        value = value * base + (c <= '9' ? c - '0' : tolower(c) - 'a' + 10);
        take_char(text);
    }
    keep_char(text, value & 0xff);
    return rc;
}

static int read_escape(struct gd_text *text, struct gd_err *err)
{
    static const char from[] = "abfnrtv", to[] = "\a\b\f\n\r\t\v";
    const char *found;
    int c, rc = peek_char(text, &c, err);

    if (rc != GD_OK || c < 0) {
        return rc != GD_OK ? rc : fail_broken(text, "the text ends within a string", err);
    }
    if (c >= '0' && c <= '7') {
        return read_code(text, 8, 3, err);
    }
    take_char(text);
    if (c == 'x' || c == 'X') {
        return read_code(text, 16, 2, err);
    }
    found = strchr(from, c);
    keep_char(text, found && c != '\0' ? to[found - from] : c);
    return GD_OK;
}

static int read_string(struct gd_text *text, int quote, struct gd_err *err)
{
    int c, rc;

    take_char(text);
    while ((rc = peek_char(text, &c, err)) == GD_OK && c != quote) {
        if (c < 0 || c == '\n') {
            return fail_broken(text, "a string is not closed", err);
        }
        take_char(text);
        if (c == '\\') {
            rc = read_escape(text, err);
            if (rc != GD_OK) {
                return rc;
            }
        } else {
            keep_char(text, c);
        }
    }
    if (rc == GD_OK) {
        take_char(text);
    }
    return rc;
}

static void clear_value(struct gd_text *text)
{
    gd_buf_clear(&text->value);
    text->is_cut = false;
}

static int give_value(struct gd_text *text, enum gd_text_kind kind, struct gd_text_field *ret,
                      struct gd_err *err)
{
    bool has_value = kind == GD_TEXT_STRING || kind == GD_TEXT_WORD;

    if (text->value.failed) {
        return gd_fail_nomem(err);
    }
    *ret = (struct gd_text_field){.kind = kind,
                                  .name = kind == GD_TEXT_END ? "" : text->name,
                                  .value = has_value ? gd_buf_text(&text->value) : "",
                                  .len = has_value ? text->value.len : 0,
                                  .is_cut = has_value && text->is_cut,
                                  .depth = text->depth,
                                  .line = text->line};
    return GD_OK;
}

/* ---- fields ---------------------------------------------------------------------------------- */

static int begin_message(struct gd_text *text, int open, struct gd_text_field *ret,
                         struct gd_err *err)
{
    int rc = give_value(text, GD_TEXT_BEGIN, ret, err);

    if (text->depth == GD_TEXT_DEPTH) {
        return fail_broken(text, "messages are nested too deeply", err);
    }
    take_char(text);
    text->depth++;
    text->level[text->depth].close = open == '{' ? '}' : '>';
    text->level[text->depth].in_list = text->mode == MODE_LIST;
    memcpy(text->level[text->depth].name, text->name, sizeof(text->name));
    text->mode = MODE_FIELDS;
    return rc;
}

static int end_message(struct gd_text *text, struct gd_text_field *ret, struct gd_err *err)
{
    const struct level *level = &text->level[text->depth];

    take_char(text);
    text->mode = level->in_list ? MODE_LIST : MODE_FIELDS;
    memcpy(text->name, level->name, sizeof(text->name));
    text->depth--;
    return give_value(text, GD_TEXT_END, ret, err);
}

/* A value or message, after a name or in a list. */
static int read_value(struct gd_text *text, int c, struct gd_text_field *ret, struct gd_err *err)
{
    int rc;

    clear_value(text);
    if (c == '{' || c == '<') {
        return begin_message(text, c, ret, err);
    }
    if (c != '"' && c != '\'') {
        rc = read_word(text, err);
        return rc != GD_OK ? rc : give_value(text, GD_TEXT_WORD, ret, err);
    }
    /* Adjacent strings are joined. */
    do {
        rc = read_string(text, c, err);
        rc = rc != GD_OK ? rc : skip_blank(text, &c, err);
    } while (rc == GD_OK && (c == '"' || c == '\''));
    return rc != GD_OK ? rc : give_value(text, GD_TEXT_STRING, ret, err);
}

static int read_name(struct gd_text *text, struct gd_err *err)
{
    int rc;

    clear_value(text);
    rc = read_word(text, err);
    if (rc == GD_OK && text->value.len >= MAX_NAME) {
        rc = fail_broken(text, "a name is too long", err);
    }
    if (rc == GD_OK) {
        memcpy(text->name, gd_buf_text(&text->value), text->value.len + 1);
    }
    return rc;
}

/* What follows a name: `: value`, `{`, or `: [`. */
static int read_field(struct gd_text *text, struct gd_text_field *ret, bool *again,
                      struct gd_err *err)
{
    bool colon = false;
    int c, rc = read_name(text, err);

    rc = rc != GD_OK ? rc : skip_blank(text, &c, err);
    if (rc == GD_OK && c == ':') {
        colon = true;
        take_char(text);
        rc = skip_blank(text, &c, err);
    }
    if (rc != GD_OK) {
        return rc;
    }
    if (c == '[') {
        take_char(text);
        text->mode = MODE_LIST;
        *again = true;
        return GD_OK;
    }
    if (c < 0 || (!colon && c != '{' && c != '<')) {
        return fail_broken(text, "expected ':' or '{' after the name", err);
    }
    return read_value(text, c, ret, err);
}

static int next_of_list(struct gd_text *text, int c, struct gd_text_field *ret, bool *again,
                        struct gd_err *err)
{
    if (c == ']' || c == ',') {
        take_char(text);
        text->mode = c == ']' ? MODE_FIELDS : MODE_LIST;
        *again = true;
        return GD_OK;
    }
    return read_value(text, c, ret, err);
}

int gd_text_next(struct gd_text *text, struct gd_text_field *ret, struct gd_err *err)
{
    bool again = true;
    int c, rc = GD_OK;

    while (rc == GD_OK && again) {
        again = false;
        rc = skip_blank(text, &c, err);
        if (rc != GD_OK) {
            return rc;
        }
        if (c < 0) {
            return text->depth > 0 || text->mode == MODE_LIST
                       ? fail_broken(text, "the text ends within a message", err)
                       : give_value(text, GD_TEXT_END, ret, err);
        }
        if (text->mode == MODE_LIST) {
            rc = next_of_list(text, c, ret, &again, err);
        } else if (c == ',' || c == ';') {
            take_char(text);
            again = true;
        } else if (text->depth > 0 && c == text->level[text->depth].close) {
            return end_message(text, ret, err);
        } else {
            rc = read_field(text, ret, &again, err);
        }
    }
    return rc;
}

int gd_text_skip(struct gd_text *text, struct gd_err *err)
{
    int outside = text->depth - 1, rc = GD_OK;
    struct gd_text_field field;

    while (rc == GD_OK && text->depth > outside) {
        rc = gd_text_next(text, &field, err);
    }
    return rc;
}

/* ---- the file -------------------------------------------------------------------------------- */

int gd_text_open(struct gd_disk *disk, struct gd_text **ret, struct gd_err *err)
{
    struct gd_text *text = calloc(1, sizeof(*text));

    if (!text) {
        return gd_fail_nomem(err);
    }
    text->disk = gd_disk_ref(disk);
    text->line = 1;
    gd_buf_init(&text->value, GD_TEXT_VALUE + 1);
    *ret = text;
    return GD_OK;
}

void gd_text_close(struct gd_text *text)
{
    if (text) {
        gd_buf_deinit(&text->value);
        gd_disk_unref(text->disk);
        free(text);
    }
}
