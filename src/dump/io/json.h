// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * JSON from outside, read token by token, or as a tree of cJSON nodes. It must be the JSON of the
 * standard in valid UTF-8, but that Python's NaN, Infinity and -Infinity are numbers, and that a
 * byte order mark in front is skipped. Neither is ever deeper than it may be, and a string has no
 * NUL inside. Errors tell the file and the line.
 */
#ifndef GD_DUMP_JSON_H
#define GD_DUMP_JSON_H

#include <cjson/cJSON.h>

#include "base/buf.h"
#include "dump/io/disk.h"

#define GD_JSON_MAX_DEPTH 256

enum gd_json_kind {
    GD_JSON_END, /* of the text */
    GD_JSON_OBJECT,
    GD_JSON_OBJECT_END,
    GD_JSON_ARRAY,
    GD_JSON_ARRAY_END,
    GD_JSON_KEY, /* of the value that follows */
    GD_JSON_STRING,
    GD_JSON_NUMBER,
    GD_JSON_TRUE,
    GD_JSON_FALSE,
    GD_JSON_NULL,
};

struct gd_json_token {
    enum gd_json_kind kind;
    const char *text; /* KEY, STRING: what it means, NUL-terminated; NUMBER: as it is written. Good
                         until the next token */
    size_t size;
    size_t at; /* byte of the text where it begins */
};

/* A text that is read. To be zeroed but for the first four. */
struct gd_json {
    const char *text;
    size_t size;
    int max_depth;    /* 0: 64; at most GD_JSON_MAX_DEPTH */
    const char *what; /* "model.index.json", for errors */
    /* Private: */
    size_t at;
    int depth;
    bool in_object[GD_JSON_MAX_DEPTH];
    int state;
    bool started;
    struct gd_buf string;
};

int gd_json_next(struct gd_json *json, struct gd_json_token *ret, struct gd_err *err);
/* The rest of the value that the token begins (nothing but of an object and an array). */
int gd_json_skip(struct gd_json *json, const struct gd_json_token *token, struct gd_err *err);
void gd_json_deinit(struct gd_json *json);
/* "FILE:LINE: ..." of what is wrong at a byte. Returns code. */
int gd_json_fail(const struct gd_json *json, size_t at, int code, struct gd_err *err,
                 const char *format, ...) __attribute__((format(printf, 5, 6)));

/* Digits and nothing else, that fit. */
bool gd_json_unsigned(const char *text, uint64_t *ret);

/* ---- trees ----------------------------------------------------------------------------------- */

struct gd_json_options {
    size_t max_bytes; /* 0: 256 MiB */
    int max_depth;    /* 0: 64 */
    size_t max_nodes; /* 0: 8 million */
    bool unique;      /* a key that an object has twice is an error; else the last one counts, as
                         Python has it */
    const char *what; /* for errors; NULL: the path of the file */
};
/* Numbers have their text in valuestring, so that gd_json_unsigned can have them exactly. Freed
 * with cJSON_Delete. GD_EPROTO, GD_ELIMIT. options may be NULL. */
int gd_json_parse(const char *text, size_t size, const struct gd_json_options *options, cJSON **ret,
                  struct gd_err *err);
int gd_json_read(struct gd_disk *disk, const struct gd_json_options *options, cJSON **ret,
                 struct gd_err *err);

#endif
