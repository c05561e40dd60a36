// SPDX-License-Identifier: GPL-3.0-or-later
#include "dump/files/tensor_writer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/buf.h"
#include "engine/format.h"
#include "engine/utf8.h"

#define MAX_NAME   65000
#define ALL32      0xffffffffU
#define ENTRY_ROOM 120 /* bytes of a safetensors header entry, without name and shape */

struct gd_tensor_writer {
    enum gd_tensor_file kind;
    FILE *file;
    uint64_t at;             /* bytes written so far */
    uint64_t header;         /* safetensors: bytes reserved for the JSON */
    struct gd_buf directory; /* zip: entries; safetensors: JSON */
    size_t count;            /* tensors begun */
    uint64_t left;           /* bytes of the current tensor still to come */
    uint64_t local;          /* zip: offset of its local header */
    uint64_t size;           /* zip: of the member */
    uint32_t crc;
    char *name;
};

/* ---- bytes ----------------------------------------------------------------------------------- */

static int put_bytes(struct gd_tensor_writer *w, const void *data, size_t size, struct gd_err *err)
{
    if (size && fwrite(data, 1, size, w->file) != size) {
        return gd_fail_errno(err, GD_EIO, "cannot write the tensor file");
    }
    w->at += size;
    return GD_OK;
}

/* Overwrites bytes written earlier, then returns to the end. */
static int put_at(struct gd_tensor_writer *w, uint64_t at, const void *data, size_t size,
                  struct gd_err *err)
{
    if (fseeko(w->file, (off_t)at, SEEK_SET) != 0 || fwrite(data, 1, size, w->file) != size ||
        fseeko(w->file, 0, SEEK_END) != 0) {
        return errno == ESPIPE ? gd_fail(err, GD_EUNSUPPORTED,
                                         "several tensors cannot be written to a pipe or terminal")
                               : gd_fail_errno(err, GD_EIO, "cannot write the tensor file");
    }
    return GD_OK;
}

static void put_u16(struct gd_buf *out, unsigned value)
{
    gd_buf_putc(out, (char)value);
    gd_buf_putc(out, (char)(value >> 8));
}

static void put_u32(struct gd_buf *out, uint64_t value)
{
    put_u16(out, (unsigned)value & 0xffff);
    put_u16(out, (unsigned)(value >> 16) & 0xffff);
}

static void put_u64(struct gd_buf *out, uint64_t value)
{
    put_u32(out, value & ALL32);
    put_u32(out, value >> 32);
}

/* ---- zip ------------------------------------------------------------------------------------- */

static bool is_ascii(const char *text)
{
    while (*text && (unsigned char)*text < 0x80) {
        text++;
    }
    return *text == '\0';
}

static uint64_t cap_to_u32(uint64_t value)
{
    return value < ALL32 ? value : ALL32;
}

/* The fields shared by local header and directory entry: from the required version to the size. */
static void add_common(const struct gd_tensor_writer *w, bool large, struct gd_buf *out)
{
    put_u16(out, large ? 45 : 20);
    put_u16(out, is_ascii(w->name) ? 0 : 0x0800);
    put_u16(out, 0);  /* stored */
    put_u16(out, 0);  /* midnight */
    put_u16(out, 33); /* 1 January 1980, as numpy writes */
    put_u32(out, w->crc);
    put_u32(out, large ? ALL32 : w->size);
    put_u32(out, large ? ALL32 : w->size);
}

static void add_local(const struct gd_tensor_writer *w, struct gd_buf *out)
{
    bool large = w->size >= ALL32;

    put_u32(out, 0x04034b50);
    add_common(w, large, out);
    put_u16(out, (unsigned)strlen(w->name) + 4);
    put_u16(out, large ? 20 : 0);
    gd_buf_printf(out, "%s.npy", w->name);
    if (large) {
        put_u16(out, 1);
        put_u16(out, 16);
        put_u64(out, w->size);
        put_u64(out, w->size);
    }
}

static void add_entry(struct gd_tensor_writer *w)
{
    struct gd_buf *out = &w->directory;
    bool large = w->size >= ALL32, far = w->local >= ALL32;
    unsigned extra = (large ? 16U : 0) + (far ? 8U : 0);

    put_u32(out, 0x02014b50);
    put_u16(out, 45);
    add_common(w, large, out);
    put_u16(out, (unsigned)strlen(w->name) + 4);
    put_u16(out, extra ? 4 + extra : 0);
    put_u16(out, 0);
    put_u16(out, 0);
    put_u16(out, 0);
    put_u32(out, 0);
    put_u32(out, cap_to_u32(w->local));
    gd_buf_printf(out, "%s.npy", w->name);
    if (large || far) {
        put_u16(out, 1);
        put_u16(out, extra);
    }
    if (large) {
        put_u64(out, w->size);
        put_u64(out, w->size);
    }
    if (far) {
        put_u64(out, w->local);
    }
}

static int finish_zip(struct gd_tensor_writer *w, struct gd_err *err)
{
    struct gd_buf end = GD_BUF_INIT(256);
    uint64_t start = w->at, size = w->directory.len;
    int rc = w->directory.failed ? gd_fail_nomem(err)
                                 : put_bytes(w, gd_buf_text(&w->directory), (size_t)size, err);

    if (w->count >= 0xffff || start >= ALL32 || size >= ALL32) {
        uint64_t at = w->at;

        put_u32(&end, 0x06064b50);
        put_u64(&end, 44);
        put_u16(&end, 45);
        put_u16(&end, 45);
        put_u64(&end, 0);
        put_u64(&end, w->count);
        put_u64(&end, w->count);
        put_u64(&end, size);
        put_u64(&end, start);
        put_u32(&end, 0x07064b50);
        put_u32(&end, 0);
        put_u64(&end, at);
        put_u32(&end, 1);
    }
    put_u32(&end, 0x06054b50);
    put_u32(&end, 0);
    put_u16(&end, w->count < 0xffff ? (unsigned)w->count : 0xffff);
    put_u16(&end, w->count < 0xffff ? (unsigned)w->count : 0xffff);
    put_u32(&end, cap_to_u32(size));
    put_u32(&end, cap_to_u32(start));
    put_u16(&end, 0);
    rc = rc != GD_OK ? rc : put_bytes(w, gd_buf_text(&end), end.len, err);
    gd_buf_deinit(&end);
    return rc;
}

/* ---- safetensors ----------------------------------------------------------------------------- */

static const char *const safe_types[GD_DT_COUNT] = {
    [GD_BOOL] = "BOOL",     [GD_INT8] = "I8",       [GD_INT16] = "I16",   [GD_INT32] = "I32",
    [GD_INT64] = "I64",     [GD_UINT8] = "U8",      [GD_UINT16] = "U16",  [GD_UINT32] = "U32",
    [GD_UINT64] = "U64",    [GD_FLOAT16] = "F16",   [GD_FLOAT32] = "F32", [GD_FLOAT64] = "F64",
    [GD_BFLOAT16] = "BF16", [GD_COMPLEX64] = "C64",
};

/* Invalid UTF-8 in a name becomes the replacement character. */
static void add_quoted(const char *text, struct gd_buf *out)
{
    gd_buf_putc(out, '"');
    while (*text) {
        uint32_t code;
        size_t len = gd_utf8_decode(text, &code);

        if (*text == '"' || *text == '\\') {
            gd_buf_printf(out, "\\%c", *text);
        } else if (len == 0) {
            gd_buf_puts(out, "\xef\xbf\xbd");
        } else if ((unsigned char)*text < 0x20) {
            gd_buf_printf(out, "\\u%04x", (unsigned)*text);
        } else {
            gd_buf_add(out, text, len);
        }
        text += len ? len : 1;
    }
    gd_buf_putc(out, '"');
}

static void add_described(struct gd_tensor_writer *w, enum gd_dtype dtype,
                          const struct gd_shape *shape, uint64_t bytes)
{
    uint64_t begin = w->at - 8 - w->header;
    struct gd_buf *out = &w->directory;

    gd_buf_puts(out, out->len > 1 ? "," : "");
    add_quoted(w->name, out);
    gd_buf_printf(out, ":{\"dtype\":\"%s\",\"shape\":[", safe_types[dtype]);
    for (int i = 0; i < shape->rank; i++) {
        gd_buf_printf(out, "%s%lld", i ? "," : "", (long long)shape->dim[i]);
    }
    gd_buf_printf(out, "],\"data_offsets\":[%llu,%llu]}", (unsigned long long)begin,
                  (unsigned long long)(begin + bytes));
}

/* The header is known only at the end: reserve room and fill the rest with blanks, as the format
 * allows. */
static int leave_room(struct gd_tensor_writer *w, const struct gd_tensor_plan *plan, size_t count,
                      const char *format, struct gd_err *err)
{
    struct gd_buf blanks = GD_BUF_INIT(SIZE_MAX);
    struct gd_buf name = GD_BUF_INIT(SIZE_MAX);
    int rc;

    gd_buf_putc(&w->directory, '{');
    if (format) {
        gd_buf_printf(&w->directory, "\"__metadata__\":{\"format\":\"%s\"}", format);
    }
    w->header = w->directory.len + 16;
    for (size_t i = 0; i < count; i++) {
        gd_buf_clear(&name);
        add_quoted(plan[i].name, &name);
        w->header += name.len + ENTRY_ROOM + 20 * (uint64_t)plan[i].rank;
    }
    w->header = (w->header + 7) / 8 * 8;
    gd_buf_fill(&blanks, ' ', (size_t)w->header + 8);
    rc = blanks.failed || name.failed ? gd_fail_nomem(err)
                                      : put_bytes(w, gd_buf_text(&blanks), blanks.len, err);
    gd_buf_deinit(&blanks);
    gd_buf_deinit(&name);
    return rc;
}

static int finish_safetensors(struct gd_tensor_writer *w, struct gd_err *err)
{
    struct gd_buf head = GD_BUF_INIT(16);
    int rc;

    gd_buf_putc(&w->directory, '}');
    if (w->directory.failed) {
        return gd_fail_nomem(err);
    }
    if (w->directory.len > w->header) {
        return gd_fail(err, GD_ELIMIT, "a tensor has more dimensions than announced");
    }
    put_u64(&head, w->header);
    rc = put_at(w, 0, gd_buf_text(&head), head.len, err);
    gd_buf_deinit(&head);
    return rc != GD_OK ? rc : put_at(w, 8, gd_buf_text(&w->directory), w->directory.len, err);
}

/* ---- the interface --------------------------------------------------------------------------- */

enum gd_tensor_file gd_tensor_file_of(const char *path)
{
    const char *dot = strrchr(path, '.');

    if (dot && strcmp(dot, ".npz") == 0) {
        return GD_FILE_NPZ;
    }
    return dot && strcmp(dot, ".safetensors") == 0 ? GD_FILE_SAFETENSORS : GD_FILE_NPY;
}

bool gd_tensor_file_holds(enum gd_tensor_file kind, enum gd_dtype dtype)
{
    if (kind == GD_FILE_SAFETENSORS) {
        return (unsigned)dtype < GD_DT_COUNT && safe_types[dtype];
    }
    return gd_dtype_descr(dtype) != NULL;
}

int gd_tensor_writer_create(enum gd_tensor_file kind, FILE *file, const struct gd_tensor_plan *plan,
                            size_t count, const char *format, struct gd_tensor_writer **ret,
                            struct gd_err *err)
{
    struct gd_tensor_writer *w = calloc(1, sizeof(*w));
    int rc = GD_OK;

    if (!w) {
        return gd_fail_nomem(err);
    }
    w->kind = kind;
    w->file = file;
    gd_buf_init(&w->directory, SIZE_MAX);
    if (kind == GD_FILE_SAFETENSORS) {
        rc = leave_room(w, plan, count, format, err);
    }
    if (rc != GD_OK) {
        gd_tensor_writer_destroy(w);
        return rc;
    }
    *ret = w;
    return GD_OK;
}

static int begin_member(struct gd_tensor_writer *w, const struct gd_buf *header, uint64_t bytes,
                        struct gd_err *err)
{
    struct gd_buf local = GD_BUF_INIT(SIZE_MAX);
    int rc;

    w->local = w->at;
    w->size = header->len + bytes;
    w->crc = 0;
    add_local(w, &local);
    rc = local.failed ? gd_fail_nomem(err) : put_bytes(w, gd_buf_text(&local), local.len, err);
    w->crc = (uint32_t)crc32(0, (const unsigned char *)gd_buf_text(header), (uInt)header->len);
    gd_buf_deinit(&local);
    return rc;
}

static int begin_npy(struct gd_tensor_writer *w, enum gd_dtype dtype, const struct gd_shape *shape,
                     uint64_t bytes, struct gd_err *err)
{
    struct gd_buf header = GD_BUF_INIT(65536);
    int rc = gd_npy_header(dtype, shape, &header, err);

    if (rc == GD_OK && w->kind == GD_FILE_NPZ) {
        rc = begin_member(w, &header, bytes, err);
    }
    rc = rc != GD_OK ? rc : put_bytes(w, gd_buf_text(&header), header.len, err);
    gd_buf_deinit(&header);
    return rc;
}

int gd_tensor_writer_begin(struct gd_tensor_writer *w, const char *name, enum gd_dtype dtype,
                           const struct gd_shape *shape, struct gd_err *err)
{
    size_t bytes;
    int rc = gd_shape_bytes(shape, dtype, &bytes, err);

    if (rc != GD_OK) {
        return rc;
    }
    if (!gd_tensor_file_holds(w->kind, dtype)) {
        return gd_fail(err, GD_EUNSUPPORTED, "the file cannot hold %.100s, which is of type %s",
                       name, gd_dtype_name(dtype));
    }
    if (w->kind == GD_FILE_NPY && w->count) {
        return gd_fail(err, GD_EUNSUPPORTED,
                       "an .npy file holds only one tensor: use .npz or .safetensors");
    }
    if (strlen(name) > MAX_NAME) {
        return gd_fail(err, GD_ELIMIT, "the tensor's name is longer than %d bytes", MAX_NAME);
    }
    free(w->name);
    w->name = strdup(name);
    if (!w->name) {
        return gd_fail_nomem(err);
    }
    w->count++;
    w->left = bytes;
    if (w->kind != GD_FILE_SAFETENSORS) {
        return begin_npy(w, dtype, shape, bytes, err);
    }
    add_described(w, dtype, shape, bytes);
    return GD_OK;
}

int gd_tensor_writer_data(struct gd_tensor_writer *w, const void *data, size_t size,
                          struct gd_err *err)
{
    if (size > w->left) {
        return gd_fail(err, GD_EINVAL, "more elements than the shape has");
    }
    w->left -= size;
    if (w->kind == GD_FILE_NPZ) {
        const unsigned char *p = data;

        for (size_t at = 0, n; at < size; at += n) {
            n = size - at < (1U << 30) ? size - at : 1U << 30;
            w->crc = (uint32_t)crc32(w->crc, p + at, (uInt)n);
        }
    }
    return put_bytes(w, data, size, err);
}

int gd_tensor_writer_end(struct gd_tensor_writer *w, struct gd_err *err)
{
    struct gd_buf crc = GD_BUF_INIT(4);
    int rc;

    if (w->left) {
        return gd_fail(err, GD_EINVAL, "fewer elements than the shape has");
    }
    if (w->kind != GD_FILE_NPZ) {
        return GD_OK;
    }
    add_entry(w);
    put_u32(&crc, w->crc);
    rc = put_at(w, w->local + 14, gd_buf_text(&crc), crc.len, err);
    gd_buf_deinit(&crc);
    return rc;
}

int gd_tensor_writer_finish(struct gd_tensor_writer *w, struct gd_err *err)
{
    if (w->kind == GD_FILE_NPZ) {
        return finish_zip(w, err);
    }
    if (w->kind == GD_FILE_SAFETENSORS) {
        return finish_safetensors(w, err);
    }
    return GD_OK;
}

void gd_tensor_writer_destroy(struct gd_tensor_writer *w)
{
    if (w) {
        gd_buf_deinit(&w->directory);
        free(w->name);
        free(w);
    }
}
