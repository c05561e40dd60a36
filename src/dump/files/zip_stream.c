// SPDX-License-Identifier: GPL-3.0-or-later
#include "dump/files/zip_stream.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define WINDOW       ((size_t)32 << 20) /* bytes kept of what was inflated last */
#define STEP         ((size_t)1 << 20)
#define MOST_REWINDS 16

struct zip_stream {
    struct gd_zip *zip;
    const struct gd_zip_entry *entry;
    z_stream z;
    bool begun;
    unsigned rewinds;
    uint64_t at, left; /* of the packed bytes that were not read yet */
    uint64_t base;     /* of the window, in the content */
    size_t fill;       /* bytes in it */
    uLong crc;
    unsigned char in[STEP];
    unsigned char window[WINDOW];
};

struct zip_stream *zip_stream_new(struct gd_zip *zip, const struct gd_zip_entry *entry)
{
    struct zip_stream *stream =
        calloc(1, sizeof(*stream)); /* pages that are not used cost nothing */

    if (stream) {
        stream->zip = zip;
        stream->entry = entry;
        if (inflateInit2(&stream->z, -15) != Z_OK) {
            free(stream);
            stream = NULL;
        }
    }
    return stream;
}

void zip_stream_free(struct zip_stream *stream)
{
    if (stream) {
        inflateEnd(&stream->z);
        free(stream);
    }
}

static int fault(const struct zip_stream *s, const char *what, struct gd_err *err)
{
    return gd_fail(err, GD_EPROTO, "%.200s: the member %.100s is damaged: %s",
                   gd_disk_path(gd_zip_disk(s->zip)), s->entry->name, what);
}

static int begin(struct zip_stream *s, struct gd_err *err)
{
    if (s->begun && ++s->rewinds > MOST_REWINDS) {
        return gd_fail(err, GD_ENODATA, "the member is not read in order");
    }
    s->begun = true;
    s->base = s->fill = 0;
    s->crc = crc32(0, NULL, 0);
    s->left = s->entry->packed;
    s->z.avail_in = 0;
    inflateReset(&s->z);
    return gd_zip_locate(s->zip, s->entry, &s->at, err);
}

static int feed(struct zip_stream *s, struct gd_err *err)
{
    size_t n = s->left < STEP ? (size_t)s->left : STEP;

    if (n == 0) {
        return fault(s, "its data end too early", err);
    }
    int rc = gd_disk_read(gd_zip_disk(s->zip), s->at, s->in, n, err);
    s->at += n;
    s->left -= n;
    s->z.next_in = s->in;
    s->z.avail_in = (uInt)n;
    return rc;
}

/* All of it was inflated. */
static int check_end(struct zip_stream *s, int got, struct gd_err *err)
{
    unsigned char beyond;

    while (got != Z_STREAM_END) {
        int rc = s->z.avail_in == 0 ? feed(s, err) : GD_OK;
        if (rc) {
            return rc;
        }
        s->z.next_out = &beyond;
        s->z.avail_out = 1;
        got = inflate(&s->z, Z_NO_FLUSH);
        if (s->z.avail_out == 0 || (got != Z_OK && got != Z_STREAM_END)) {
            return fault(s, "it inflates to more than it claims", err);
        }
    }
    if (s->left || s->z.avail_in) {
        return fault(s, "it is not as long as it claims", err);
    }
    return s->crc == s->entry->crc ? GD_OK : fault(s, "its CRC is another one", err);
}

static int inflate_more(struct zip_stream *s, struct gd_err *err)
{
    if (s->fill + STEP > WINDOW) {
        memmove(s->window, s->window + WINDOW / 2, s->fill - WINDOW / 2);
        s->base += WINDOW / 2;
        s->fill -= WINDOW / 2;
    }
    uint64_t rest = s->entry->size - s->base - s->fill;
    size_t room = rest < STEP ? (size_t)rest : STEP;
    int rc = s->z.avail_in == 0 ? feed(s, err) : GD_OK;

    if (rc) {
        return rc;
    }
    s->z.next_out = s->window + s->fill;
    s->z.avail_out = (uInt)room;
    int got = inflate(&s->z, Z_NO_FLUSH);
    if (got != Z_OK && got != Z_STREAM_END && got != Z_BUF_ERROR) {
        return fault(s, s->z.msg ? s->z.msg : "it cannot be inflated", err);
    }
    room -= s->z.avail_out;
    s->crc = crc32(s->crc, s->window + s->fill, (uInt)room);
    s->fill += room;
    if (room == rest) {
        return check_end(s, got, err);
    }
    return got == Z_STREAM_END ? fault(s, "it is not as long as it claims", err) : GD_OK;
}

int zip_stream_read(struct zip_stream *s, uint64_t at, void *ret, size_t size, struct gd_err *err)
{
    unsigned char *out = ret;
    int rc = s->begun && at >= s->base ? GD_OK : begin(s, err);

    while (rc == GD_OK && size > 0) {
        uint64_t end = s->base + s->fill;
        if (at < end) {
            size_t n = end - at < size ? (size_t)(end - at) : size;
            memcpy(out, s->window + (at - s->base), n);
            at += n;
            out += n;
            size -= n;
        } else {
            rc = inflate_more(s, err);
        }
    }
    if (rc && rc != GD_ENODATA) {
        s->begun = false; /* the next reader finds the same */
    }
    return rc;
}
