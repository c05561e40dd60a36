// SPDX-License-Identifier: GPL-3.0-or-later
#include "drive/frame.h"

#include <stdint.h>
#include <string.h>
#include <strings.h>

void frames_init(struct frames *frames)
{
    *frames = (struct frames){.used = 0};
    gd_buf_init(&frames->input, SIZE_MAX);
}

void frames_deinit(struct frames *frames)
{
    gd_buf_deinit(&frames->input);
}

int frames_add(struct frames *frames, const void *bytes, size_t len)
{
    return gd_buf_add(&frames->input, bytes, len);
}

/* Digits only. False: none, others, or more than the limit. */
static bool read_length(const char *text, size_t len, size_t *ret)
{
    size_t value = 0, at = 0;

    for (; at < len && text[at] >= '0' && text[at] <= '9'; at++) {
        value = value * 10 + (size_t)(text[at] - '0');
        if (value > FRAME_MOST_BYTES) {
            return false;
        }
    }
    *ret = value;
    return at > 0 && at == len;
}

static int read_header(const char *header, size_t size, size_t *ret, struct gd_err *err)
{
    static const char name[] = "Content-Length:";
    bool found = false;

    for (const char *line = header, *stop = header + size; line < stop;) {
        const char *end = memchr(line, '\n', (size_t)(stop - line));
        size_t len = (size_t)((end ? end : stop) - line), skip = sizeof(name) - 1;
        len -= len > 0 && line[len - 1] == '\r' ? 1 : 0;
        if (len > skip && strncasecmp(line, name, skip) == 0) {
            while (skip < len && line[skip] == ' ') {
                skip++;
            }
            if (!read_length(line + skip, len - skip, ret)) {
                return gd_fail(err, GD_EPROTO, "Content-Length is not a number up to %zu",
                               FRAME_MOST_BYTES);
            }
            found = true;
        }
        line = end ? end + 1 : stop;
    }
    return found ? GD_OK : gd_fail(err, GD_EPROTO, "a header without Content-Length");
}

/* Bytes of the header with its empty line; 0: it is not complete. */
static size_t header_size(const char *text, size_t len)
{
    for (size_t at = 0; at + 1 < len && at < FRAME_MOST_HEADER; at++) {
        if (text[at] == '\n' && text[at + 1] == '\n') {
            return at + 2;
        }
        if (text[at] == '\n' && at + 2 < len && text[at + 1] == '\r' && text[at + 2] == '\n') {
            return at + 3;
        }
    }
    return 0;
}

int frames_next(struct frames *frames, const char **text, size_t *len, struct gd_err *err)
{
    struct gd_buf *input = &frames->input;
    size_t size = 0;

    *text = NULL;
    *len = 0;
    if (frames->used > 0) {
        memmove(input->data, input->data + frames->used, input->len - frames->used + 1);
        input->len -= frames->used;
        frames->used = 0;
    }
    if (frames->broken || input->len == 0) {
        return GD_OK;
    }
    size_t header = header_size(input->data, input->len);
    if (header == 0 && input->len <= FRAME_MOST_HEADER) {
        return GD_OK;
    }
    int rc = header == 0
                 ? gd_fail(err, GD_ELIMIT, "a header longer than %zu bytes", FRAME_MOST_HEADER)
                 : read_header(input->data, header, &size, err);
    if (rc != GD_OK) {
        frames->broken = true;
        return rc;
    }
    if (input->len - header >= size) {
        *text = input->data + header;
        *len = size;
        frames->used = header + size;
    }
    return GD_OK;
}
