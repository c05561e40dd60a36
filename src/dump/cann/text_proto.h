// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Reads Protobuf's text format field by field, without a schema: `name: value`, `name { ... }`,
 * lists, strings with C escapes, comments. The file is read in pieces; overlong values are cut and
 * marked.
 *
 *     while (gd_text_next(text, &field, err) ...)
 *
 * A message begins with BEGIN and ends with END; the last END is that of the file, at depth 0.
 *
 * No library: protobuf-c has no text format, and the C++ one needs the schema and the whole file in
 * memory.
 */
#ifndef GD_DUMP_TEXT_PROTO_H
#define GD_DUMP_TEXT_PROTO_H

#include "dump/io/disk.h"

#define GD_TEXT_DEPTH 64    /* of nested messages */
#define GD_TEXT_VALUE 65536 /* bytes kept of a value */

struct gd_text;

enum gd_text_kind {
    GD_TEXT_BEGIN, /* `name {` */
    GD_TEXT_END,   /* of the innermost open message; at depth 0, of the file */
    GD_TEXT_STRING,
    GD_TEXT_WORD /* a number, true, DT_FLOAT */
};
struct gd_text_field {
    enum gd_text_kind kind;
    const char *name;  /* "" for END; valid until the next call, like value */
    const char *value; /* STRING (unescaped), WORD: NUL-terminated; otherwise "" */
    size_t len;
    bool is_cut; /* longer than GD_TEXT_VALUE */
    int depth;   /* number of enclosing messages */
    uint32_t line;
};

int gd_text_open(struct gd_disk *disk, struct gd_text **ret, struct gd_err *err);
void gd_text_close(struct gd_text *text); /* NULL is fine */

/* GD_EPROTO: a syntax error, or nested too deeply: names file and line. */
int gd_text_next(struct gd_text *text, struct gd_text_field *ret, struct gd_err *err);
/* Skips to the end of the innermost open message. */
int gd_text_skip(struct gd_text *text, struct gd_err *err);

#endif
