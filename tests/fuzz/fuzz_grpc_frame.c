// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The gRPC deframer with decompression, and the text codings of gRPC. The first byte chooses the
 * encoding, chunks or messages, and the split; what is delivered must not depend on the split.
 */
#include "fuzz.h"

#include "proto/grpc/grpc_frame.h"

#define LIMIT 2000

struct sum {
    uint64_t hash; /* of all bytes delivered, in order */
    uint64_t messages;
    size_t expected_offset;
};

static void add_bytes(struct sum *sum, const uint8_t *data, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        sum->hash = (sum->hash ^ data[i]) * 1099511628211u;
    }
}

static int on_message(void *ctx, const uint8_t *data, size_t len)
{
    struct sum *sum = ctx;

    FUZZ_CHECK(len <= LIMIT && sum->expected_offset == 0);
    add_bytes(sum, data, len);
    sum->messages++;
    return GD_OK;
}

static int on_chunk(void *ctx, const uint8_t *data, size_t len, size_t offset, size_t total)
{
    struct sum *sum = ctx;

    FUZZ_CHECK(total <= LIMIT && offset == sum->expected_offset && len <= total - offset);
    FUZZ_CHECK(len > 0 || total == 0);
    add_bytes(sum, data, len);
    sum->expected_offset = offset + len == total ? 0 : offset + len;
    sum->messages += offset + len == total;
    return GD_OK;
}

static struct sum feed_chunks(unsigned options, const uint8_t *data, size_t size, size_t step,
                              int *rc)
{
    static const struct gd_grpc_deframer_ops whole = {.message = on_message};
    static const struct gd_grpc_deframer_ops chunks = {.message = on_message, .chunk = on_chunk};
    struct gd_grpc_deframer d;
    struct gd_err err;
    struct sum sum = {0};

    gd_grpc_deframer_init(&d, (enum gd_grpc_encoding)(options % 3), LIMIT,
                          options & 4 ? &chunks : &whole, &sum);
    *rc = GD_OK;
    for (size_t i = 0; i < size && *rc == GD_OK; i += step) {
        *rc = gd_grpc_deframer_feed(&d, data + i, size - i < step ? size - i : step, &err);
    }
    FUZZ_CHECK(*rc != GD_OK || sum.messages == d.messages);
    FUZZ_CHECK(d.body.len <= LIMIT);
    gd_grpc_deframer_deinit(&d);
    return sum;
}

static void check_texts(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    struct gd_buf coded = GD_BUF_INIT(SIZE_MAX), plain = GD_BUF_INIT(SIZE_MAX);
    struct gd_grpc_address address;
    struct gd_err err;
    double seconds;

    FUZZ_CHECK(gd_grpc_percent_encode(text, &coded) == GD_OK);
    FUZZ_CHECK(gd_grpc_percent_decode(gd_buf_text(&coded), coded.len, &plain) == GD_OK);
    FUZZ_CHECK(plain.len == strlen(text));
    for (size_t i = 0; i < coded.len; i++) {
        FUZZ_CHECK(coded.data[i] >= 0x20 && coded.data[i] < 0x7f);
    }
    if (gd_grpc_timeout_parse(text, &seconds) == GD_OK) {
        FUZZ_CHECK(seconds >= 0 && seconds < 4e11);
    }
    if (gd_grpc_address_parse(text, &address, &err) == GD_OK) {
        FUZZ_CHECK(strlen(address.host) < sizeof(address.host) && address.port[0] != '\0');
    }
    gd_buf_deinit(&coded);
    gd_buf_deinit(&plain);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int rc, again;

    if (size < 1) {
        return 0;
    }
    struct sum whole = feed_chunks(data[0], data + 1, size - 1, size, &rc);
    struct sum split = feed_chunks(data[0], data + 1, size - 1, 1 + (data[0] >> 3), &again);
    FUZZ_CHECK(rc == again && whole.messages == split.messages);
    FUZZ_CHECK(rc != GD_OK || whole.hash == split.hash);
    check_texts(data + 1, size - 1);
    return 0;
}
