// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * A debugger that says anything at all to the training process: bytes for the gRPC client with one
 * call open, and what comes of them is read as a ToTrainer. The first byte says how they are split
 * and whether a good HTTP/2 start and the headers of an answer go before them.
 */
#include "fuzz.h"

#include <sys/uio.h>

#include "gradb_v1.pb-c.h"
#include "proto/grpc/grpc_client.h"

#define LIMIT 4096

struct heard {
    struct gd_grpc_client_call *call;
    unsigned closed;
};

static void on_message(struct gd_grpc_client_call *call, void *ctx, const uint8_t *data, size_t len)
{
    Gradb__V1__ToTrainer *m = gradb__v1__to_trainer__unpack(NULL, len, data);

    FUZZ_CHECK(call == ((struct heard *)ctx)->call && len <= LIMIT);
    if (!m) {
        gd_grpc_client_cancel(call);
        return;
    }
    gd_grpc_client_send(call, data, len);
    gradb__v1__to_trainer__free_unpacked(m, NULL);
}

static void on_closed(struct gd_grpc_client_call *call, void *ctx, enum gd_grpc_code code,
                      const char *text)
{
    struct heard *heard = ctx;

    FUZZ_CHECK(call == heard->call && text);
    heard->closed++;
}

static void drain_output(struct gd_grpc_client *client)
{
    struct iovec out[8];
    size_t count;

    while ((count = gd_grpc_client_out(client, out, 8)) > 0) {
        size_t bytes = 0;
        for (size_t i = 0; i < count; i++) {
            bytes += out[i].iov_len;
        }
        gd_grpc_client_sent(client, bytes);
    }
}

static bool feed_chunks(struct gd_grpc_client *client, const uint8_t *data, size_t size,
                        size_t step)
{
    for (size_t i = 0; i < size; i += step) {
        if (gd_grpc_client_feed(client, data + i, size - i < step ? size - i : step, NULL) !=
            GD_OK) {
            return false;
        }
        drain_output(client);
    }
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct gd_grpc_client_ops ops = {on_message, on_closed};
    static const uint8_t start[] = "\0\0\0\4\0\0\0\0\0"               /* SETTINGS */
                                   "\0\0\0\4\1\0\0\0\0"               /* and their answer */
                                   "\0\0\x13\1\4\0\0\0\1\x88\x5f\x10" /* :status 200, */
                                   "application/grpc";                /* content-type */
    struct gd_grpc_client *client = NULL;
    struct heard heard = {.closed = 0};

    if (size < 1) {
        return 0;
    }
    FUZZ_CHECK(gd_grpc_client_create("localhost", LIMIT, &client, NULL) == GD_OK);
    FUZZ_CHECK(gd_grpc_client_start(client, "/gradb.v1.Trainer/Attach", NULL, 0, &ops, &heard,
                                    &heard.call, NULL) == GD_OK);
    drain_output(client);
    size_t step = data[0] & 1 ? size : 1u + (data[0] >> 2);
    if (!(data[0] & 2) || feed_chunks(client, start, sizeof(start) - 1, sizeof(start))) {
        feed_chunks(client, data + 1, size - 1, step);
    }
    gd_grpc_client_destroy(client);
    FUZZ_CHECK(heard.closed == 1);
    return 0;
}
