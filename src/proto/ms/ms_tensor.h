// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Streaming decoder of TensorProto: tensors that come as a run of messages, each with a piece of
 * the content, the last one marked finished. The bytes go from the socket's buffer straight into
 * the tensor's memory, whatever the boundaries they arrive with; they are checked against dims x
 * type.
 *
 * One decoder serves one SendTensors call.
 */
#ifndef GD_PROTO_MS_TENSOR_H
#define GD_PROTO_MS_TENSOR_H

#include "base/tensor.h"
#include "proto/block_pool.h"

#define GD_MS_MAX_NAME 1024

struct gd_ms_tensor_head { /* which tensor it is; longer texts are cut */
    char node_name[GD_MS_MAX_NAME];
    char slot[24];
    char iter[16]; /* "" or "prev" */
    bool truncate;
};

/* One whole tensor: the tensor is borrowed. err is set when what came makes no tensor; neither is
 * set when the trainer says that it does not have it. */
typedef void (*gd_ms_tensor_fn)(void *ctx, const struct gd_ms_tensor_head *head,
                                struct gd_tensor *tensor, const struct gd_err *err);

struct gd_ms_tensor_decoder;

/* Tensors over max_bytes are refused (0 = no limit). */
int gd_ms_tensor_decoder_create(size_t max_bytes, gd_ms_tensor_fn fn, void *ctx,
                                struct gd_ms_tensor_decoder **ret, struct gd_err *err);
/* A tensor that is not complete yet is dropped without a call. */
void gd_ms_tensor_decoder_destroy(struct gd_ms_tensor_decoder *decoder);

/* How large the next tensor will be, where that is known: saves moving its first piece. */
void gd_ms_tensor_expect(struct gd_ms_tensor_decoder *decoder, size_t bytes);

/* Large tensors stand on blocks of the pool, which must outlive the decoder (not the tensors). To
 * be said before the first byte. */
void gd_ms_tensor_use_pool(struct gd_ms_tensor_decoder *decoder, struct gd_block_pool *pool);

/* The next bytes of a message that is `total` long; offset counts from its start. GD_EPROTO: they
 * are no TensorProto, and the stream cannot go on. Never more memory than what was received plus
 * one tensor of at most max_bytes. */
int gd_ms_tensor_feed(struct gd_ms_tensor_decoder *decoder, const uint8_t *data, size_t len,
                      size_t offset, size_t total, struct gd_err *err);

/* Inside a tensor's content: where its next bytes belong and how many are left of this piece, so
 * that a reader can put them there; feeding them from there copies nothing. Else NULL. Valid until
 * the next call for this decoder. */
unsigned char *gd_ms_tensor_place(struct gd_ms_tensor_decoder *decoder, size_t *room);

/* The stream has ended: a tensor without its last piece is reported as broken. */
void gd_ms_tensor_end(struct gd_ms_tensor_decoder *decoder);

#endif
