// SPDX-License-Identifier: MIT
#include "base/buf.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

#define FIRST_CAP 64

void gd_buf_init(struct gd_buf *buf, size_t max)
{
    memset(buf, 0, sizeof(*buf));
    buf->max = max;
}

void gd_buf_deinit(struct gd_buf *buf)
{
    free(buf->data);
    gd_buf_init(buf, buf->max);
}

void gd_buf_clear(struct gd_buf *buf)
{
    buf->len = 0;
    buf->failed = false;
    if (buf->data) {
        buf->data[0] = '\0';
    }
}

int gd_buf_reserve(struct gd_buf *buf, size_t more)
{
    size_t cap, need;
    char *data;

    /* max itself must leave room for the NUL, which len does not count. */
    if (buf->len > buf->max || more > buf->max - buf->len || buf->len + more == SIZE_MAX) {
        buf->failed = true;
        return GD_ELIMIT;
    }
    need = buf->len + more + 1;
    if (need <= buf->cap) {
        return GD_OK;
    }
    cap = buf->cap < FIRST_CAP / 2 ? FIRST_CAP : buf->cap;
    while (cap < need) {
        cap = cap > SIZE_MAX / 2 ? need : cap * 2;
    }
    if (cap - 1 > buf->max) {
        cap = buf->max + 1;
    }
    data = realloc(buf->data, cap);
    if (!data) {
        buf->failed = true;
        return GD_ENOMEM;
    }
    if (!buf->data) {
        data[0] = '\0';
    }
    buf->data = data;
    buf->cap = cap;
    return GD_OK;
}

int gd_buf_add(struct gd_buf *buf, const void *bytes, size_t len)
{
    int rc = gd_buf_reserve(buf, len);

    if (rc != GD_OK) {
        return rc;
    }
    if (len) {
        memcpy(buf->data + buf->len, bytes, len);
    }
    buf->len += len;
    buf->data[buf->len] = '\0';
    return GD_OK;
}

int gd_buf_puts(struct gd_buf *buf, const char *text)
{
    return gd_buf_add(buf, text, strlen(text));
}

int gd_buf_putc(struct gd_buf *buf, char c)
{
    return gd_buf_add(buf, &c, 1);
}

int gd_buf_put_quoted(struct gd_buf *buf, const char *text)
{
    gd_buf_putc(buf, '"');
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\') {
            gd_buf_putc(buf, '\\');
        }
        gd_buf_putc(buf, *text);
    }
    return gd_buf_putc(buf, '"');
}

int gd_buf_fill(struct gd_buf *buf, char c, size_t times)
{
    int rc = gd_buf_reserve(buf, times);

    if (rc != GD_OK) {
        return rc;
    }
    memset(buf->data + buf->len, c, times);
    buf->len += times;
    buf->data[buf->len] = '\0';
    return GD_OK;
}

int gd_buf_printf(struct gd_buf *buf, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    int rc = gd_buf_vprintf(buf, format, args);
    va_end(args);
    return rc;
}

int gd_buf_vprintf(struct gd_buf *buf, const char *format, va_list args)
{
    va_list again;
    int rc, need;

    va_copy(again, args);
    need = vsnprintf(NULL, 0, format, args);
    rc = need < 0 ? GD_EINVAL : gd_buf_reserve(buf, (size_t)need);
    if (rc == GD_OK) {
        vsnprintf(buf->data + buf->len, (size_t)need + 1, format, again);
        buf->len += (size_t)need;
    }
    va_end(again);
    if (rc != GD_OK) {
        buf->failed = true;
    }
    return rc;
}

const char *gd_buf_text(const struct gd_buf *buf)
{
    return buf->data ? buf->data : "";
}

char *gd_buf_take(struct gd_buf *buf)
{
    char *data = buf->data;

    if (buf->failed) {
        gd_buf_deinit(buf);
        return NULL;
    }
    gd_buf_init(buf, buf->max);
    return data;
}
