// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * TensorProto streaming. The first byte is the size of the pieces in which a message arrives, the
 * rest are messages, each after a length of two bytes. The same messages in one piece must give
 * the same tensors.
 */
#include "fuzz.h"

#include "proto/ms/ms_tensor.h"

#define MAX_TENSOR 4096u

struct seen {
    size_t calls;
    uint64_t hash;
};

static void mix_bytes(struct seen *seen, const void *data, size_t len)
{
    const uint8_t *bytes = data;

    for (size_t i = 0; i < len; i++) {
        seen->hash = (seen->hash ^ bytes[i]) * 0x100000001b3u;
    }
}

static void on_tensor(void *ctx, const struct gd_ms_tensor_head *head, struct gd_tensor *tensor,
                      const struct gd_err *err)
{
    struct seen *seen = ctx;

    FUZZ_CHECK(!tensor || !err);
    seen->calls++;
    mix_bytes(seen, head->node_name, strlen(head->node_name));
    mix_bytes(seen, head->slot, strlen(head->slot));
    mix_bytes(seen, err ? err->text : "", err ? strlen(err->text) : 0);
    if (!tensor) {
        return;
    }
    FUZZ_CHECK(gd_tensor_bytes(tensor) <= MAX_TENSOR);
    FUZZ_CHECK(gd_tensor_count(tensor) >= 0);
    mix_bytes(seen, &tensor->shape.rank, sizeof(tensor->shape.rank));
    mix_bytes(seen, tensor->data, gd_tensor_bytes(tensor));
}

static int feed_chunks(struct gd_ms_tensor_decoder *decoder, const uint8_t *data, size_t len,
                       size_t step)
{
    int rc = GD_OK;
    size_t at = 0;

    do {
        size_t part = len - at < step ? len - at : step;
        uint8_t *copy = malloc(part + 1); /* exact size: a sanitizer detects a read beyond it */

        if (part) {
            memcpy(copy, data + at, part);
        }
        rc = gd_ms_tensor_feed(decoder, copy, part, at, len, NULL);
        free(copy);
        at += part;
    } while (rc == GD_OK && at < len);
    return rc;
}

static struct seen play_tensor(const uint8_t *data, size_t size, size_t step, size_t expect)
{
    struct seen seen = {.hash = 1};
    struct gd_ms_tensor_decoder *decoder;

    FUZZ_CHECK(gd_ms_tensor_decoder_create(MAX_TENSOR, on_tensor, &seen, &decoder, NULL) == GD_OK);
    gd_ms_tensor_expect(decoder, expect);
    while (size >= 2) {
        size_t len = (size_t)data[0] | (size_t)data[1] << 8;

        data += 2;
        size -= 2;
        len = len < size ? len : size;
        if (feed_chunks(decoder, data, len, step) != GD_OK) {
            break;
        }
        data += len;
        size -= len;
    }
    gd_ms_tensor_end(decoder);
    gd_ms_tensor_decoder_destroy(decoder);
    return seen;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1) {
        return 0;
    }
    struct seen whole = play_tensor(data + 1, size - 1, SIZE_MAX, 0);
    struct seen pieces = play_tensor(data + 1, size - 1, (size_t)(data[0] & 15) + 1, 0);
    struct seen expected = play_tensor(data + 1, size - 1, SIZE_MAX, data[0]);

    FUZZ_CHECK(whole.calls == pieces.calls && whole.hash == pieces.hash);
    FUZZ_CHECK(whole.calls == expected.calls && whole.hash == expected.hash);
    return 0;
}
