// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Protobuf's text format, read field by field without a schema: `name: value`, `name { ... }`,
 * lists, strings with C escapes, comments. The file is read in pieces; a value that is longer than
 * anybody needs is cut, and said to be.
 *
 *     while (gd_text_next(text, &field, err) ...)
 *
 * A message begins with BEGIN and ends with END; the last END is that of the file, at depth 0.
 */
#ifndef GD_DUMP_TEXT_PROTO_H
#define GD_DUMP_TEXT_PROTO_H

#include "dump/io/disk.h"

#define GD_TEXT_DEPTH 64    /* messages within messages */
#define GD_TEXT_VALUE 65536 /* bytes of a value that are kept */

struct gd_text;

enum gd_text_kind {
    GD_TEXT_BEGIN, /* `name {` */
    GD_TEXT_END,   /* of the message that began last; at depth 0 of the file */
    GD_TEXT_STRING,
    GD_TEXT_WORD /* a number, true, DT_FLOAT */
};
struct gd_text_field {
    enum gd_text_kind kind;
    const char *name;  /* "" of an END; valid until the next call, as the value is */
    const char *value; /* of a STRING (unescaped) and a WORD, with a NUL behind; else "" */
    size_t len;
    bool is_cut; /* the value was longer than GD_TEXT_VALUE */
    int depth;   /* of the messages around it */
    uint32_t line;
};

int gd_text_open(struct gd_disk *disk, struct gd_text **ret, struct gd_err *err);
void gd_text_close(struct gd_text *text); /* NULL is fine */

/* GD_EPROTO: the text breaks the format, or is nested too deep: file, line and what is wrong. */
int gd_text_next(struct gd_text *text, struct gd_text_field *ret, struct gd_err *err);
/* To behind the end of the message that began last. */
int gd_text_skip(struct gd_text *text, struct gd_err *err);

#endif
