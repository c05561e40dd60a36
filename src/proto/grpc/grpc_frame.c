// SPDX-License-Identifier: MIT
#include "proto/grpc/grpc_frame.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

int gd_grpc_encoding_parse(const char *name, enum gd_grpc_encoding *ret)
{
    static const char *const names[] = {
        [GD_GRPC_IDENTITY] = "identity", [GD_GRPC_DEFLATE] = "deflate", [GD_GRPC_GZIP] = "gzip"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(name, names[i]) == 0) {
            *ret = (enum gd_grpc_encoding)i;
            return GD_OK;
        }
    }
    return GD_EUNSUPPORTED;
}

void gd_grpc_prefix(uint8_t out[GD_GRPC_PREFIX_SIZE], size_t len)
{
    out[0] = 0;
    out[1] = (uint8_t)(len >> 24);
    out[2] = (uint8_t)(len >> 16);
    out[3] = (uint8_t)(len >> 8);
    out[4] = (uint8_t)len;
}

/* Decompresses the whole stream a block at a time, so that a small message cannot claim much memory
 * before it proves to contain it. */
static int inflate_all(z_stream *z, struct gd_buf *out, struct gd_err *err)
{
    uint8_t block[16384];
    int rc;
    do {
        z->next_out = block;
        z->avail_out = sizeof(block);
        rc = inflate(z, Z_NO_FLUSH);
        if (rc == Z_MEM_ERROR) {
            return gd_fail(err, GD_ENOMEM, "out of memory while decompressing a message");
        }
        if (rc != Z_OK && rc != Z_STREAM_END) {
            return gd_fail(err, GD_EPROTO,
                           "a compressed message is damaged or cut short at byte %lu",
                           (unsigned long)z->total_in);
        }
        size_t got = sizeof(block) - z->avail_out;
        int added = gd_buf_add(out, block, got);
        if (added == GD_ELIMIT) {
            return gd_fail(err, GD_ELIMIT,
                           "a compressed message exceeds the limit of %zu bytes when unpacked",
                           out->max);
        }
        if (added != GD_OK) {
            return gd_fail(err, added, "out of memory while decompressing a message");
        }
    } while (rc != Z_STREAM_END);
    if (z->avail_in > 0) {
        return gd_fail(err, GD_EPROTO, "a compressed message has %u extra bytes", z->avail_in);
    }
    return GD_OK;
}

int gd_grpc_decompress(enum gd_grpc_encoding encoding, const void *data, size_t len,
                       struct gd_buf *out, struct gd_err *err)
{
    if (encoding == GD_GRPC_IDENTITY) {
        return gd_fail(err, GD_EPROTO,
                       "a message is marked compressed, but no grpc-encoding was named");
    }
    if (len > UINT32_MAX) {
        return gd_fail(err, GD_ELIMIT, "a compressed message of %zu bytes is too large", len);
    }

    z_stream z = {0};
    z.next_in = (z_const Bytef *)data;
    z.avail_in = (uInt)len;
    int window = encoding == GD_GRPC_GZIP ? 16 + MAX_WBITS : MAX_WBITS;
    if (inflateInit2(&z, window) != Z_OK) {
        return gd_fail(err, GD_ENOMEM, "out of memory while decompressing a message");
    }
    int rc = inflate_all(&z, out, err);
    inflateEnd(&z);
    return rc;
}

void gd_grpc_deframer_init(struct gd_grpc_deframer *d, enum gd_grpc_encoding encoding, uint64_t max,
                           const struct gd_grpc_deframer_ops *ops, void *ctx)
{
    memset(d, 0, sizeof(*d));
    d->ops = ops;
    d->ctx = ctx;
    d->encoding = encoding;
    d->max = max < UINT32_MAX ? max : UINT32_MAX;
    gd_buf_init(&d->body, (size_t)d->max);
}

void gd_grpc_deframer_deinit(struct gd_grpc_deframer *d)
{
    gd_buf_deinit(&d->body);
}

bool gd_grpc_deframer_at_end(const struct gd_grpc_deframer *d)
{
    return d->prefix_len == 0;
}

static int begin_message(struct gd_grpc_deframer *d, struct gd_err *err)
{
    const uint8_t *p = d->prefix;
    d->compressed = p[0] == 1;
    d->total = (size_t)p[1] << 24 | (size_t)p[2] << 16 | (size_t)p[3] << 8 | p[4];
    d->offset = 0;
    if (p[0] > 1) {
        return gd_fail(err, GD_EPROTO,
                       "message %" PRIu64 " starts with flag %u, must be 0 or 1: not gRPC framing",
                       d->messages + 1, p[0]);
    }
    if (d->total > d->max) {
        return gd_fail(err, GD_ELIMIT,
                       "a message of %zu bytes exceeds the limit of %" PRIu64
                       " bytes (set max-message)",
                       d->total, d->max);
    }
    if (d->compressed && d->encoding == GD_GRPC_IDENTITY) {
        return gd_grpc_decompress(GD_GRPC_IDENTITY, NULL, 0, NULL, err);
    }
    return GD_OK;
}

/* The message is complete: `data` is all of it. */
static int deliver_message(struct gd_grpc_deframer *d, const uint8_t *data, struct gd_err *err)
{
    size_t len = d->total;
    bool compressed = d->compressed;
    d->prefix_len = 0;
    d->messages++;
    if (!compressed) {
        return d->ops->message(d->ctx, data, len);
    }

    struct gd_buf plain;
    gd_buf_init(&plain, (size_t)d->max);
    int rc = gd_grpc_decompress(d->encoding, data, len, &plain, err);
    if (rc == GD_OK) {
        rc = d->ops->message(d->ctx, (const uint8_t *)gd_buf_text(&plain), plain.len);
    }
    gd_buf_deinit(&plain);
    return rc;
}

static int take_chunk(struct gd_grpc_deframer *d, const uint8_t *data, size_t len)
{
    size_t offset = d->offset;
    d->offset += len;
    if (d->offset == d->total) {
        d->prefix_len = 0;
        d->messages++;
    }
    return d->ops->chunk(d->ctx, data, len, offset, d->total);
}

/* Keeps a part of a message. A message that is complete in the input never gets here, so it is not
 * copied. Memory grows with what has arrived, not with what the prefix announces. */
static int take_part(struct gd_grpc_deframer *d, const uint8_t *data, size_t len,
                     struct gd_err *err)
{
    int rc = gd_buf_add(&d->body, data, len);
    if (rc != GD_OK) {
        return gd_fail(err, rc, "no memory for a message of %zu bytes", d->total);
    }
    d->offset += len;
    if (d->offset < d->total) {
        return GD_OK;
    }
    rc = deliver_message(d, (const uint8_t *)gd_buf_text(&d->body), err);
    gd_buf_deinit(&d->body);
    return rc;
}

static int feed_body(struct gd_grpc_deframer *d, const uint8_t *data, size_t len, size_t *used,
                     struct gd_err *err)
{
    size_t want = d->total - d->offset;
    *used = len < want ? len : want;
    if (!d->compressed && d->ops->chunk) {
        return *used > 0 || want == 0 ? take_chunk(d, data, *used) : GD_OK;
    }
    if (d->offset == 0 && *used == want) {
        return deliver_message(d, data, err);
    }
    return *used > 0 ? take_part(d, data, *used, err) : GD_OK;
}

int gd_grpc_deframer_feed(struct gd_grpc_deframer *d, const void *data, size_t len,
                          struct gd_err *err)
{
    const uint8_t *p = data;
    int rc = GD_OK;
    while (rc == GD_OK && len > 0) {
        if (d->prefix_len < GD_GRPC_PREFIX_SIZE) {
            d->prefix[d->prefix_len++] = *p++;
            len--;
            if (d->prefix_len < GD_GRPC_PREFIX_SIZE) {
                continue;
            }
            rc = begin_message(d, err);
            if (rc != GD_OK || (len == 0 && d->total > 0)) {
                break;
            }
        }
        size_t used;
        rc = feed_body(d, p, len, &used, err);
        p += used;
        len -= used;
    }
    return rc;
}

int gd_grpc_percent_encode(const char *text, struct gd_buf *out)
{
    static const char digits[] = "0123456789ABCDEF";
    for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
        if (*p >= 0x20 && *p < 0x7f && *p != '%') {
            gd_buf_putc(out, (char)*p);
            continue;
        }
        char escape[3] = {'%', digits[*p >> 4], digits[*p & 15]};
        gd_buf_add(out, escape, sizeof(escape));
    }
    return out->failed ? GD_ENOMEM : GD_OK;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    if (c >= 'A' && c <= 'F') {
        return c - 'A' + 10;
    }
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int gd_grpc_percent_decode(const char *text, size_t len, struct gd_buf *out)
{
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c == '%' && len - i > 2 && hex_digit(text[i + 1]) >= 0 && hex_digit(text[i + 2]) >= 0) {
            c = (unsigned char)(hex_digit(text[i + 1]) << 4 | hex_digit(text[i + 2]));
            i += 2;
        }
        gd_buf_putc(out, c < 0x20 || c == 0x7f ? ' ' : (char)c);
    }
    return out->failed ? GD_ENOMEM : GD_OK;
}

int gd_grpc_timeout_parse(const char *text, double *ret)
{
    static const struct {
        char unit;
        double seconds;
    } units[] = {{'H', 3600.0}, {'M', 60.0}, {'S', 1.0}, {'m', 1e-3}, {'u', 1e-6}, {'n', 1e-9}};
    double value = 0;
    size_t digits = 0;

    while (text[digits] >= '0' && text[digits] <= '9' && digits < 9) {
        value = value * 10 + (text[digits] - '0');
        digits++;
    }
    if (digits == 0 || digits > 8 || text[digits] == '\0' || text[digits + 1] != '\0') {
        return GD_EINVAL;
    }
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (text[digits] == units[i].unit) {
            *ret = value * units[i].seconds;
            return GD_OK;
        }
    }
    return GD_EINVAL;
}

static int bad_address(const char *text, struct gd_err *err)
{
    return gd_fail(err, GD_EINVAL,
                   "\"%.200s\" is not an address; write HOST:PORT, [IPV6]:PORT, :PORT or PORT, "
                   "with a port from 0 to 65535",
                   text);
}

static int parse_port(const char *port, struct gd_grpc_address *ret)
{
    size_t len = strspn(port, "0123456789");
    if (len == 0 || len >= sizeof(ret->port) || port[len] != '\0' ||
        strtoul(port, NULL, 10) > 65535) {
        return GD_EINVAL;
    }
    memcpy(ret->port, port, len + 1);
    return GD_OK;
}

int gd_grpc_address_parse(const char *text, struct gd_grpc_address *ret, struct gd_err *err)
{
    const char *colon = strrchr(text, ':');
    const char *host = text;
    size_t host_len = colon ? (size_t)(colon - text) : 0;
    struct gd_grpc_address address = {.host = ""};
    if (host_len > 0 && host[0] == '[') {
        if (host_len < 3 || host[host_len - 1] != ']') {
            return bad_address(text, err);
        }
        host++;
        host_len -= 2;
    } else if (host_len > 0 && memchr(host, ':', host_len)) {
        return bad_address(text, err); /* a bare IPv6 address: the port is ambiguous */
    }
    if (host_len >= sizeof(address.host) ||
        parse_port(colon ? colon + 1 : text, &address) != GD_OK) {
        return bad_address(text, err);
    }
    memcpy(address.host, host, host_len);
    *ret = address;
    return GD_OK;
}
