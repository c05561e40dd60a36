// SPDX-License-Identifier: GPL-3.0-or-later
#include "dump/trace/trace_stream.h"

#include <stdlib.h>
#include <string.h>

#define WINDOW ((size_t)1 << 20)
#define PACKED ((size_t)1 << 18)

/* Reads the next bytes of the file. Returns how many; 0: none, and stream->err says why. */
static size_t read_file(struct trace_stream *stream, void *ret, size_t size)
{
    uint64_t left = gd_disk_size(stream->disk) - stream->at;

    size = left < size ? (size_t)left : size;
    if (stream->go_on && !stream->go_on(stream->ctx, stream->at)) {
        gd_fail(&stream->err, GD_EINTR, "interrupted");
        return 0;
    }
    if (size == 0 || gd_disk_read(stream->disk, stream->at, ret, size, &stream->err) != GD_OK) {
        return 0;
    }
    stream->at += size;
    return size;
}

/* Has packed bytes ready; after a member, zeros are padding, as for gzip. False: none are left. */
static bool have_packed(struct trace_stream *stream)
{
    z_stream *z = &stream->inflater;

    do {
        if (z->avail_in == 0) {
            z->next_in = stream->packed;
            z->avail_in = (uInt)read_file(stream, stream->packed, PACKED);
        }
        while (stream->at_end && z->avail_in > 0 && *z->next_in == 0) {
            z->next_in++;
            z->avail_in--;
        }
    } while (z->avail_in == 0 && stream->at < gd_disk_size(stream->disk) &&
             stream->err.code == GD_OK);
    return z->avail_in > 0;
}

/* One piece of a gzip file, which may consist of several members. False: nothing more comes. */
static bool inflate_piece(struct trace_stream *stream)
{
    z_stream *z = &stream->inflater;
    int rc;

    if (!have_packed(stream)) {
        return false;
    }
    rc = stream->at_end ? inflateReset(z) : Z_OK;
    stream->at_end = false;
    rc = rc != Z_OK ? rc : inflate(z, Z_NO_FLUSH);
    if (rc == Z_STREAM_END) {
        stream->at_end = true;
        return true;
    }
    if (rc == Z_OK || rc == Z_BUF_ERROR) {
        return true;
    }
    gd_fail(&stream->err, GD_EPROTO, "%.300s: damaged gzip data before byte %llu%s%.60s",
            gd_disk_path(stream->disk), (unsigned long long)stream->at, z->msg ? ": " : "",
            z->msg ? z->msg : "");
    return false;
}

static size_t inflate_some(struct trace_stream *stream, char *ret, size_t size)
{
    z_stream *z = &stream->inflater;

    z->next_out = (unsigned char *)ret;
    z->avail_out = (uInt)size;
    while (z->avail_out > 0 && inflate_piece(stream)) {
    }
    return size - z->avail_out;
}

static bool fill_window(void *ctx, size_t used, struct gd_json *json)
{
    struct trace_stream *stream = ctx;
    size_t left = json->size - used, got;

    memmove(stream->window, stream->window + used, left);
    got = stream->packed ? inflate_some(stream, stream->window + left, WINDOW - left)
                         : read_file(stream, stream->window + left, WINDOW - left);
    json->size = left + got;
    return got > 0;
}

int trace_stream_open(struct trace_stream *stream, struct gd_err *err)
{
    unsigned char magic[2] = {0};
    uint64_t size = gd_disk_size(stream->disk);
    int rc = size < 2 ? GD_OK : gd_disk_read(stream->disk, 0, magic, 2, err);

    if (rc != GD_OK) {
        return rc;
    }
    stream->window = malloc(WINDOW);
    if (magic[0] == 0x1f && magic[1] == 0x8b) {
        stream->packed = malloc(PACKED);
        stream->inflating = inflateInit2(&stream->inflater, 15 + 16) == Z_OK;
    }
    if (!stream->window ||
        (magic[0] == 0x1f && magic[1] == 0x8b && (!stream->packed || !stream->inflating))) {
        trace_stream_close(stream);
        return gd_fail_nomem(err);
    }
    stream->json = (struct gd_json){.text = stream->window,
                                    .what = gd_disk_path(stream->disk),
                                    .more = fill_window,
                                    .ctx = stream};
    return GD_OK;
}

void trace_stream_close(struct trace_stream *stream)
{
    if (stream->inflating) {
        inflateEnd(&stream->inflater);
    }
    gd_json_deinit(&stream->json);
    free(stream->window);
    free(stream->packed);
    *stream = (struct trace_stream){.disk = stream->disk};
}

bool trace_stream_is_cut(const struct trace_stream *stream, struct gd_err *err)
{
    if (stream->err.code != GD_OK) {
        if (err) {
            *err = stream->err;
        }
        return false;
    }
    return stream->json.is_over && stream->json.at >= stream->json.size;
}

bool trace_stream_is_open_list(const struct trace_stream *stream)
{
    const struct gd_json *json = &stream->json;

    return json->depth == 1 && !json->in_object[0] && (!stream->packed || stream->at_end);
}
