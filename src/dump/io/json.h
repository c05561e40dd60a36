// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Reads untrusted JSON, token by token or into a tree of cJSON nodes. Accepts standard JSON in
 * valid UTF-8, with two additions: Python's NaN, Infinity and -Infinity are numbers, and a leading
 * byte order mark is skipped. Depth and size are limited, strings have no NUL. Errors name the file
 * and line.
 *
 * cJSON's own parser cannot do this: it refuses NaN, rounds integers above 2^53, keeps duplicate
 * keys, looks keys up linearly and needs the whole text as a tree.
 */
#ifndef GD_DUMP_JSON_H
#define GD_DUMP_JSON_H

#include <cjson/cJSON.h>

#include "base/buf.h"
#include "dump/io/disk.h"

#define GD_JSON_MAX_DEPTH 256
#define GD_JSON_WINDOW    ((size_t)1 << 16)

enum gd_json_kind {
    GD_JSON_END, /* end of the text */
    GD_JSON_OBJECT,
    GD_JSON_OBJECT_END,
    GD_JSON_ARRAY,
    GD_JSON_ARRAY_END,
    GD_JSON_KEY, /* the next token is its value */
    GD_JSON_STRING,
    GD_JSON_NUMBER,
    GD_JSON_TRUE,
    GD_JSON_FALSE,
    GD_JSON_NULL,
};

struct gd_json_token {
    enum gd_json_kind kind;
    /* KEY, STRING: decoded, NUL-terminated; NUMBER: as written. Valid until the next token */
    const char *text;
    size_t size;
    size_t at; /* byte offset of its beginning */
};

/* A text being read. Zero all but the first six members. A text that is larger than memory comes in
 * pieces: `text` is then a window of it, at least GD_JSON_WINDOW bytes where there are as many. */
struct gd_json {
    const char *text;
    size_t size;
    int max_depth;    /* 0: 64; at most GD_JSON_MAX_DEPTH */
    const char *what; /* named in errors: "model.index.json" */
    /* Drops the first `used` bytes of the window, and adds the next ones: changes text and size.
     * False: there are none. NULL: the text is whole. */
    bool (*more)(void *ctx, size_t used, struct gd_json *json);
    void *ctx;
    /* Private: */
    size_t passed, passed_lines; /* before the window */
    bool is_over;                /* the window reaches the end */
    size_t at;
    int depth;
    bool in_object[GD_JSON_MAX_DEPTH];
    int state;
    bool started;
    struct gd_buf string;
};

int gd_json_next(struct gd_json *json, struct gd_json_token *ret, struct gd_err *err);
/* Skips the rest of the value that `token` begins (nothing unless it is an object or array). */
int gd_json_skip(struct gd_json *json, const struct gd_json_token *token, struct gd_err *err);
void gd_json_deinit(struct gd_json *json);
/* Fails with "FILE:LINE: ..." for the byte `at`. Returns code. */
int gd_json_fail(const struct gd_json *json, size_t at, int code, struct gd_err *err,
                 const char *format, ...) __attribute__((format(printf, 5, 6)));

/* Parses decimal digits only; false: anything else, or out of range. */
bool gd_json_unsigned(const char *text, uint64_t *ret);

/* ---- trees ----------------------------------------------------------------------------------- */

struct gd_json_options {
    size_t max_bytes; /* 0: 256 MiB */
    int max_depth;    /* 0: 64 */
    size_t max_nodes; /* 0: 8 million */
    bool unique;      /* a duplicate key is an error; otherwise the last one counts, as in Python */
    const char *what; /* named in errors; NULL: the file's path */
};
/* Numbers keep their text in valuestring, so gd_json_unsigned can read them exactly. Free with
 * cJSON_Delete. GD_EPROTO, GD_ELIMIT. options may be NULL. */
int gd_json_parse(const char *text, size_t size, const struct gd_json_options *options, cJSON **ret,
                  struct gd_err *err);
int gd_json_read(struct gd_disk *disk, const struct gd_json_options *options, cJSON **ret,
                 struct gd_err *err);

#endif
