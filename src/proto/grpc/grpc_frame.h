// SPDX-License-Identifier: MIT
/*
 * What gRPC adds to HTTP/2, as pure functions over bytes: the 5-byte message prefix, message
 * compression, the encoding of grpc-message and grpc-timeout, and textual addresses.
 *
 * The deframer accepts pieces of any size. Input that violates the format or a limit ends with an
 * error; after that only gd_grpc_deframer_deinit may be called.
 */
#ifndef GD_PROTO_GRPC_FRAME_H
#define GD_PROTO_GRPC_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"

#define GD_GRPC_PREFIX_SIZE 5

/* Values of grpc-encoding. */
enum gd_grpc_encoding { GD_GRPC_IDENTITY, GD_GRPC_DEFLATE, GD_GRPC_GZIP };
#define GD_GRPC_ACCEPT_ENCODING "identity,deflate,gzip"

/* GD_OK, or GD_EUNSUPPORTED for a name that is not in GD_GRPC_ACCEPT_ENCODING. */
int gd_grpc_encoding_parse(const char *name, enum gd_grpc_encoding *ret);

/* The prefix of an uncompressed message. `len` must fit into 32 bits. */
void gd_grpc_prefix(uint8_t out[GD_GRPC_PREFIX_SIZE], size_t len);

/* Appends the decompressed bytes, at most out->max in total. GD_EPROTO (other format, or
 * truncated), GD_ELIMIT, GD_ENOMEM. */
int gd_grpc_decompress(enum gd_grpc_encoding encoding, const void *data, size_t len,
                       struct gd_buf *out, struct gd_err *err);

struct gd_grpc_deframer_ops {
    /* One complete message, decompressed; valid during the call. */
    int (*message)(void *ctx, const uint8_t *data, size_t len);
    /* If set, receives uncompressed messages instead of `message`, as their bytes arrive: `offset`
     * counts from the start of the message; the last piece has offset + len == total; an empty
     * message is one piece without bytes. */
    int (*chunk)(void *ctx, const uint8_t *data, size_t len, size_t offset, size_t total);
};

struct gd_grpc_deframer {
    const struct gd_grpc_deframer_ops *ops;
    void *ctx;
    enum gd_grpc_encoding encoding; /* of messages with the compressed flag */
    uint64_t max;                   /* bytes of a message, both as sent and decompressed */
    uint64_t messages;              /* delivered completely so far */
    uint8_t prefix[GD_GRPC_PREFIX_SIZE];
    unsigned prefix_len; /* received bytes of `prefix`; 5 inside a message */
    bool compressed;     /* the current message's flag */
    size_t total;        /* the current message's length */
    size_t offset;       /* received bytes of it */
    struct gd_buf body;  /* the stored part; unused for chunks */
};

void gd_grpc_deframer_init(struct gd_grpc_deframer *d, enum gd_grpc_encoding encoding, uint64_t max,
                           const struct gd_grpc_deframer_ops *ops, void *ctx);
void gd_grpc_deframer_deinit(struct gd_grpc_deframer *d);
/* GD_OK, GD_EPROTO, GD_ELIMIT (names the limit), GD_ENOMEM, or the nonzero result of a callback,
 * which stops feeding immediately. */
int gd_grpc_deframer_feed(struct gd_grpc_deframer *d, const void *data, size_t len,
                          struct gd_err *err);
/* True between messages: the stream may end here. */
bool gd_grpc_deframer_at_end(const struct gd_grpc_deframer *d);

/* For grpc-message: bytes outside printable ASCII, and '%', as %XX. */
int gd_grpc_percent_encode(const char *text, struct gd_buf *out);
/* The reverse; an invalid escape is kept, control bytes become spaces. */
int gd_grpc_percent_decode(const char *text, size_t len, struct gd_buf *out);

/* grpc-timeout ("20S", "1500m") in seconds. GD_EINVAL. */
int gd_grpc_timeout_parse(const char *text, double *ret);

/* "HOST:PORT", "[V6]:PORT", ":PORT" or "PORT" split in two; host "": absent. GD_EINVAL with a
 * message. */
struct gd_grpc_address {
    char host[256];
    char port[6]; /* digits, 0 ... 65535 */
};
int gd_grpc_address_parse(const char *text, struct gd_grpc_address *ret, struct gd_err *err);

#endif
