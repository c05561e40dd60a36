// SPDX-License-Identifier: MIT
/*
 * A growing byte buffer with a maximum size.
 *
 * The bytes are always followed by a NUL that `len` does not count, so that text can be read in
 * place. A failed append changes nothing but sets `failed`: check once after a series of appends.
 */
#ifndef GD_BASE_BUF_H
#define GD_BASE_BUF_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

struct gd_buf {
    char *data; /* read it with gd_buf_text(), which is never NULL */
    size_t len;
    size_t cap;
    size_t max;  /* limit for len; SIZE_MAX: none */
    bool failed; /* an append failed: out of memory or over max */
};

#define GD_BUF_INIT(max_bytes)                                                                     \
    {                                                                                              \
        .max = (max_bytes)                                                                         \
    }

void gd_buf_init(struct gd_buf *buf, size_t max);
void gd_buf_deinit(struct gd_buf *buf); /* frees; the buffer may be reused */
void gd_buf_clear(struct gd_buf *buf);  /* empties; keeps the memory */

/* Each returns GD_OK, GD_ENOMEM or GD_ELIMIT. */
int gd_buf_reserve(struct gd_buf *buf, size_t more);
int gd_buf_add(struct gd_buf *buf, const void *bytes, size_t len);
int gd_buf_puts(struct gd_buf *buf, const char *text);
int gd_buf_putc(struct gd_buf *buf, char c);
int gd_buf_put_quoted(struct gd_buf *buf, const char *text); /* in ""; \ before " and \ */
int gd_buf_fill(struct gd_buf *buf, char c, size_t times);
int gd_buf_printf(struct gd_buf *buf, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
int gd_buf_vprintf(struct gd_buf *buf, const char *format, va_list args)
    __attribute__((format(printf, 2, 0)));

/* "" when nothing was appended. Valid until the next append. */
const char *gd_buf_text(const struct gd_buf *buf);

/* Moves the bytes to the caller, who frees them with free(); the buffer is empty afterwards. NULL
 * when nothing was ever appended or an append failed. */
char *gd_buf_take(struct gd_buf *buf);

#endif
