// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Parses the subset of Python literals that numpy writes in the header: nothing is evaluated,
 * nothing nests.
 */
#include "dump/files/npy.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cursor.h"
#include "dump/format.h"
#include "dump/io/little_endian.h"

#define IS_BIG_ENDIAN (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__)

static const unsigned char magic[6] = {0x93, 'N', 'U', 'M', 'P', 'Y'};

struct reader {
    struct gd_cursor in;
    struct gd_npy *npy;
    const char *dtype;
    bool has_descr, has_order, has_shape;
    struct gd_err *err;
};

static int fail_header(struct reader *reader, const char *what)
{
    return gd_fail(reader->err, GD_EPROTO, "broken .npy header: %s at character %zu", what,
                   reader->in.at);
}

/* ---- literals -------------------------------------------------------------------------------- */

static int read_string(struct reader *reader, char *ret, size_t size)
{
    struct gd_cursor *in = &reader->in;
    char quote = gd_cursor_peek(in);
    size_t used = 0;

    if (quote != '\'' && quote != '"') {
        return fail_header(reader, "expected a string");
    }
    for (in->at++; in->at < in->len && in->text[in->at] != quote; in->at++) {
        char c = in->text[in->at];

        if (c == '\\' && in->at + 1 < in->len && strchr("\\'\"", in->text[in->at + 1])) {
            c = in->text[++in->at];
        } else if (c == '\\' || (unsigned char)c < 0x20) {
            return fail_header(reader, "unsupported escape in a string");
        }
        if (used + 1 >= size) {
            return fail_header(reader, "string too long");
        }
        ret[used++] = c;
    }
    ret[used] = '\0';
    if (in->at >= in->len) {
        return fail_header(reader, "unterminated string");
    }
    in->at++;
    return GD_OK;
}

static int read_dimension(struct reader *reader, int64_t *ret)
{
    bool overflow = false;

    if (!gd_cursor_take_integer(&reader->in, ret, &overflow)) {
        return fail_header(reader, "expected a dimension");
    }
    if (overflow) {
        return fail_header(reader, "dimension exceeds 64 bits");
    }
    gd_cursor_take(&reader->in, "L"); /* Python 2's suffix */
    return GD_OK;
}

static int read_shape(struct reader *reader)
{
    struct gd_shape *shape = &reader->npy->shape;

    shape->rank = 0;
    if (!gd_cursor_take(&reader->in, "(")) {
        return fail_header(reader, "expected a tuple as shape");
    }
    while (!gd_cursor_take(&reader->in, ")")) {
        int rc;

        if (shape->rank == GD_MAX_RANK) {
            return gd_fail(reader->err, GD_ELIMIT, "a tensor with more than %d dimensions",
                           GD_MAX_RANK);
        }
        rc = read_dimension(reader, &shape->dim[shape->rank++]);
        if (rc != GD_OK) {
            return rc;
        }
        /* A tuple of one ends with a comma. */
        if (!gd_cursor_take(&reader->in, ",") &&
            (shape->rank == 1 || gd_cursor_peek(&reader->in) != ')')) {
            return fail_header(reader, "expected a comma in the shape");
        }
    }
    return GD_OK;
}

/* ---- the type -------------------------------------------------------------------------------- */

static int refuse_type(struct reader *reader, const char *why)
{
    return gd_fail(reader->err, GD_EUNSUPPORTED, "element type %s: %s", reader->npy->descr, why);
}

/* numpy does not know bfloat16 and writes it as "<V2", with a byte order; one-byte types are
 * ambiguous. */
static int read_raw(struct reader *reader, char order, long item)
{
    enum gd_stored told = reader->dtype ? gd_stored_from_name(reader->dtype) : GD_STORED_NONE;
    struct gd_npy *npy = reader->npy;

    if (told != GD_STORED_NONE && (long)gd_stored_bits(told) == item * 8) {
        npy->stored = told;
        npy->assumed = "the user chose the type: the file has only its size";
    } else if (item == 2 && order == '<') {
        npy->stored = GD_STORED_BFLOAT16;
        npy->assumed = "assumed to be bfloat16, which numpy writes as <V2";
    } else {
        npy->stored = GD_STORED_OPAQUE;
        npy->assumed =
            item != 1 ? "raw bytes"
            : told != GD_STORED_NONE && gd_stored_bits(told) < 8
                ? "numpy has one value of this type per byte: shown as bytes"
                : "raw bytes: may be float8 or a small integer type (choose with --dtype)";
    }
    npy->item = (size_t)item;
    return GD_OK;
}

static int read_number_type(struct reader *reader, char kind, long item, bool other_order)
{
    char name[16];

    if (kind == 'f' && item == 1) {
        snprintf(name, sizeof(name), "f8_e5m2");
    } else if (kind == 'c' && item == 4) {
        snprintf(name, sizeof(name), "chalf");
    } else {
        snprintf(name, sizeof(name), "%c%d", kind, (int)item);
    }
    reader->npy->stored = gd_stored_from_name(name);
    if ((long)gd_stored_bits(reader->npy->stored) != item * 8) {
        return refuse_type(reader, "numbers of this size are not supported");
    }
    reader->npy->item = (size_t)item;
    reader->npy->swap = other_order && item > 1;
    return GD_OK;
}

/* Parses digits to the end of the text; 0: not a number, or too large. */
static long read_size(const char *p)
{
    char *end;
    long size;

    if (*p < '1' || *p > '9') {
        return 0;
    }
    size = strtol(p, &end, 10);
    return *end || size > 1 << 20 ? 0 : size;
}

/* Parses a NumPy type code: "<f4", "|b1", "|V2". */
static int read_code(struct reader *reader, const char *p)
{
    struct gd_npy *npy = reader->npy;
    char order = *p && strchr("<>|=", *p) ? *p++ : '=';
    char kind = *p ? *p++ : '\0';
    long item;

    if (kind == 'O') {
        return refuse_type(reader, "pickled Python objects are not read");
    }
    if (kind == 'M' || kind == 'm') {
        return refuse_type(reader, "dates and times cannot be read as numbers");
    }
    item = read_size(p);
    if (item == 0 || !strchr("biufcVSUa", kind) || !kind) {
        return refuse_type(reader, "unknown type");
    }
    if (kind == 'S' || kind == 'U' || kind == 'a') {
        npy->stored = GD_STORED_OPAQUE;
        npy->item = (size_t)item * (kind == 'U' ? 4 : 1);
        npy->assumed = "strings, shown as bytes";
        return GD_OK;
    }
    if (kind == 'V') {
        return read_raw(reader, order, item);
    }
    return read_number_type(reader, kind, item, order == (IS_BIG_ENDIAN ? '<' : '>'));
}

static int read_descr(struct reader *reader)
{
    struct gd_npy *npy = reader->npy;
    const char *p = npy->descr;
    int rc;

    if (gd_cursor_peek(&reader->in) == '[' || gd_cursor_peek(&reader->in) == '(') {
        return gd_fail(reader->err, GD_EUNSUPPORTED,
                       "a structured array with fields %.120s: only arrays of numbers can be read",
                       reader->in.text + reader->in.at);
    }
    rc = read_string(reader, npy->descr, sizeof(npy->descr));
    if (rc != GD_OK) {
        return rc;
    }
    if (isalpha((unsigned char)p[0]) &&
        isalpha((unsigned char)p[1])) { /* some writers use a name: 'bfloat16' */
        npy->stored = gd_stored_from_name(p);
        npy->item = gd_stored_bits(npy->stored) / 8;
        return npy->item ? GD_OK : refuse_type(reader, "unknown type");
    }
    if (strcmp(p, "<E2") == 0 || strcmp(p, "<T2") == 0 || strcmp(p, "<h2") == 0) {
        npy->stored = GD_STORED_BFLOAT16; /* MindSpore writes this; NumPy cannot read it */
        npy->item = 2;
        npy->swap = IS_BIG_ENDIAN;
        return GD_OK;
    }
    return read_code(reader, p);
}

/* ---- the header ------------------------------------------------------------------------------ */

static int read_key(struct reader *reader)
{
    char key[32];
    int rc = read_string(reader, key, sizeof(key));
    bool *has = NULL;

    if (rc != GD_OK) {
        return rc;
    }
    has = strcmp(key, "descr") == 0           ? &reader->has_descr
          : strcmp(key, "fortran_order") == 0 ? &reader->has_order
          : strcmp(key, "shape") == 0         ? &reader->has_shape
                                              : NULL;
    if (!has || *has || !gd_cursor_take(&reader->in, ":")) {
        return fail_header(reader, "expected the keys descr, fortran_order and shape, each once");
    }
    *has = true;
    if (has == &reader->has_descr) {
        return read_descr(reader);
    }
    if (has == &reader->has_shape) {
        return read_shape(reader);
    }
    reader->npy->fortran = gd_cursor_take(&reader->in, "True");
    if (!reader->npy->fortran && !gd_cursor_take(&reader->in, "False")) {
        return fail_header(reader, "expected True or False for fortran_order");
    }
    return GD_OK;
}

static int read_dict(struct reader *reader)
{
    if (!gd_cursor_take(&reader->in, "{")) {
        return fail_header(reader, "expected a dictionary");
    }
    while (!gd_cursor_take(&reader->in, "}")) {
        int rc = read_key(reader);

        if (rc != GD_OK) {
            return rc;
        }
        if (!gd_cursor_take(&reader->in, ",") && gd_cursor_peek(&reader->in) != '}') {
            return fail_header(reader, "expected a comma");
        }
    }
    if (gd_cursor_peek(&reader->in) != '\0' || reader->in.at < reader->in.len) {
        return fail_header(reader, "unexpected text after the dictionary");
    }
    if (!reader->has_descr || !reader->has_order || !reader->has_shape) {
        return fail_header(reader, "descr, fortran_order or shape is missing");
    }
    return GD_OK;
}

bool gd_npy_is(const unsigned char *start, size_t size)
{
    return size >= sizeof(magic) && memcmp(start, magic, sizeof(magic)) == 0;
}

/* Reads the length of the header's text; *at gets its offset. */
static int read_length(struct gd_bytes *bytes, size_t *at, size_t *length, struct gd_err *err)
{
    unsigned char head[12];
    uint64_t size = gd_bytes_size(bytes);
    int rc = size < 10 ? GD_EPROTO : gd_bytes_read(bytes, 0, head, 10, err);

    if (size < 10 || (rc == GD_OK && !gd_npy_is(head, 10))) {
        return gd_fail(err, GD_EPROTO, "no .npy header");
    }
    if (rc == GD_OK && (head[6] < 1 || head[6] > 3 || head[7] != 0)) {
        return gd_fail(err, GD_EUNSUPPORTED,
                       "unsupported .npy version %d.%d: only 1.0, 2.0 and 3.0 can be read", head[6],
                       head[7]);
    }
    *at = rc == GD_OK && head[6] == 1 ? 10 : 12;
    if (rc == GD_OK && *at == 12) {
        rc = size < 12 ? gd_fail(err, GD_EPROTO, "no .npy header")
                       : gd_bytes_read(bytes, 10, head + 10, 2, err);
    }
    if (rc != GD_OK) {
        return rc;
    }
    *length = (size_t)gd_little_endian(head + 8, *at - 8);
    if (*length > GD_NPY_MAX_HEADER) {
        return gd_fail(err, GD_ELIMIT, "an .npy header of %zu bytes exceeds the limit of %d",
                       *length, GD_NPY_MAX_HEADER);
    }
    if (*length > size - *at) {
        return gd_fail(err, GD_EPROTO, "the .npy file ends within its header of %zu bytes",
                       *length);
    }
    return GD_OK;
}

int gd_npy_read_header(struct gd_bytes *bytes, const char *dtype, struct gd_npy *ret,
                       struct gd_err *err)
{
    struct gd_npy npy = {.stored = GD_STORED_NONE};
    struct reader reader = {.npy = &npy, .dtype = dtype, .err = err};
    size_t at = 0, length = 0;
    char *text;
    int rc = read_length(bytes, &at, &length, err);

    if (rc != GD_OK) {
        return rc;
    }
    text = malloc(length + 1);
    if (!text) {
        return gd_fail_nomem(err);
    }
    rc = gd_bytes_read(bytes, at, text, length, err);
    text[length] = '\0';
    reader.in = (struct gd_cursor){.text = text, .len = length};
    rc = rc != GD_OK ? rc : read_dict(&reader);
    free(text);
    if (rc != GD_OK) {
        return rc;
    }
    npy.data = at + length;
    *ret = npy;
    return GD_OK;
}

/* ---- the tensor ------------------------------------------------------------------------------ */

/* Elements of raw bytes get a last axis of bytes. */
static int add_byte_axis(struct gd_npy *npy, struct gd_err *err)
{
    if (npy->stored != GD_STORED_OPAQUE || npy->item == 1) {
        return GD_OK;
    }
    if (npy->shape.rank == GD_MAX_RANK) {
        return gd_fail(err, GD_ELIMIT, "a tensor with more than %d dimensions", GD_MAX_RANK);
    }
    npy->shape.dim[npy->shape.rank++] = (int64_t)npy->item;
    return GD_OK;
}

/* Shortens the axis that is outermost in the file to its complete rows. */
static void cut_short(struct gd_npy *npy, uint64_t left)
{
    int axis = npy->fortran ? npy->shape.rank - 1 : 0;
    uint64_t row = gd_stored_bits(npy->stored) / 8;

    for (int i = 0; i < npy->shape.rank; i++) {
        row *= i == axis ? 1 : (uint64_t)npy->shape.dim[i];
    }
    if (npy->shape.rank > 0 && row > 0) {
        npy->shape.dim[axis] = (int64_t)(left / row);
    }
}

static void strides_of(const struct gd_npy *npy, struct gd_source_desc *desc)
{
    int bytes_axis = npy->stored == GD_STORED_OPAQUE && npy->item > 1;
    int64_t step = bytes_axis ? (int64_t)npy->item : 1;

    desc->has_stride = npy->fortran;
    for (int i = 0; i < npy->shape.rank - bytes_axis; i++) {
        desc->stride[i] = step;
        step *= npy->shape.dim[i] ? npy->shape.dim[i] : 1;
    }
    if (bytes_axis) {
        desc->stride[npy->shape.rank - 1] = 1;
    }
}

static size_t bytes_of(const struct gd_npy *npy)
{
    return (size_t)gd_shape_count(&npy->shape) * (gd_stored_bits(npy->stored) / 8);
}

/* *npy gets the shape that is really there; *cut: less than the header says. */
static int fit_bytes(struct gd_npy *npy, uint64_t left, bool partial, bool *cut, struct gd_err *err)
{
    size_t need;
    int rc = add_byte_axis(npy, err);

    rc = rc != GD_OK ? rc : gd_shape_bytes(&npy->shape, gd_stored_dtype(npy->stored), &need, err);
    if (rc != GD_OK) {
        return rc;
    }
    need = bytes_of(npy);
    *cut = need > left;
    if (*cut && partial) {
        cut_short(npy, left);
    }
    if (bytes_of(npy) > left) {
        return gd_fail(err, GD_EPROTO, "truncated: %zu bytes of elements expected, %llu found",
                       need, (unsigned long long)left);
    }
    return GD_OK;
}

int gd_npy_source(struct gd_bytes *bytes, const struct gd_npy *npy, const char *name, bool partial,
                  struct gd_source **ret, uint64_t *trailing, struct gd_err *err)
{
    struct gd_npy fitted = *npy;
    struct gd_source_desc desc = {.stored = npy->stored, .swap = npy->swap};
    struct gd_err why;
    char note[200];
    bool cut;
    uint64_t left = gd_bytes_size(bytes) - npy->data;
    int rc = fit_bytes(&fitted, left, partial, &cut, &why);

    if (rc != GD_OK) {
        return gd_fail(err, rc, "%.250s: %.240s", name, why.text);
    }
    snprintf(note, sizeof(note), "%s%s%s", npy->assumed ? npy->assumed : "",
             npy->assumed && cut ? "; " : "",
             cut ? "the file is truncated: shown is what there is" : "");
    desc.note = note;
    desc.shape.rank = fitted.shape.rank;
    memcpy(desc.shape.dim, fitted.shape.dim, sizeof(desc.shape.dim[0]) * (size_t)fitted.shape.rank);
    strides_of(&fitted, &desc);
    rc = gd_bytes_of_part(bytes, npy->data, bytes_of(&fitted), &desc.bytes, err);
    if (rc != GD_OK) {
        return rc;
    }
    rc = gd_source_create(&desc, ret, err);
    gd_bytes_unref(desc.bytes);
    if (rc == GD_OK && trailing) {
        *trailing = cut ? 0 : left - bytes_of(&fitted);
    }
    return rc;
}

/* ---- as an archive --------------------------------------------------------------------------- */

static bool is_npy(const unsigned char *start, size_t size, struct gd_disk *disk)
{
    (void)disk;
    return gd_npy_is(start, size);
}

/* "weights.npy" becomes "weights". */
static void base_name(const char *path, char *ret, size_t size)
{
    const char *slash = strrchr(path, '/');
    size_t len;

    snprintf(ret, size, "%s", slash ? slash + 1 : path);
    len = strlen(ret);
    if (len > 4 && strcmp(ret + len - 4, ".npy") == 0) {
        ret[len - 4] = '\0';
    }
}

static int open_source(struct gd_disk *disk, const struct gd_archive_options *options,
                       struct gd_source **ret, uint64_t *trailing, struct gd_err *err)
{
    struct gd_bytes *bytes;
    struct gd_npy npy;
    struct gd_err why;
    int rc = gd_bytes_of_disk(disk, 0, gd_disk_size(disk), &bytes, err);

    if (rc != GD_OK) {
        return rc;
    }
    rc = gd_npy_read_header(bytes, options->dtype, &npy, &why);
    if (rc != GD_OK) {
        gd_fail(err, rc, "%.250s: %.240s", gd_disk_path(disk), why.text);
    } else {
        rc = gd_npy_source(bytes, &npy, gd_disk_path(disk), options->partial, ret, trailing, err);
    }
    gd_bytes_unref(bytes);
    return rc;
}

static int read_npy(struct gd_archive *archive, struct gd_disk *disk,
                    const struct gd_archive_options *options, struct gd_err *err)
{
    struct gd_archive_entry entry = {.kind = GD_ENTRY_TENSOR};
    struct gd_source_info info;
    uint64_t trailing = 0;
    char name[256];
    int rc = open_source(disk, options, &entry.source, &trailing, err);

    if (rc != GD_OK) {
        return rc;
    }
    base_name(gd_disk_path(disk), name, sizeof(name));
    entry.name = name;
    rc = gd_archive_add(archive, &entry, err);
    if (rc == GD_OK && trailing) {
        gd_archive_add_note(archive, "%llu bytes after the array were ignored",
                            (unsigned long long)trailing);
    }
    if (rc == GD_OK && gd_source_info(entry.source, &info, NULL) == GD_OK && info.note[0]) {
        gd_archive_add_note(archive, "%s", info.note);
    }
    gd_source_unref(entry.source);
    return rc;
}

const struct gd_archive_format gd_npy_format = {
    .name = "npy",
    .what = "NumPy array (.npy)",
    .is = is_npy,
    .read = read_npy,
};
