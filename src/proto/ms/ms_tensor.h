// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Streaming decoder of TensorProto: a tensor arrives as a series of messages, each with a piece of
 * the content, the last one marked as finished. The bytes go from the socket's buffer directly into
 * the tensor's memory, wherever they are split, and are checked against shape and type.
 *
 * One decoder serves one SendTensors call.
 */
#ifndef GD_PROTO_MS_TENSOR_H
#define GD_PROTO_MS_TENSOR_H

#include "base/tensor.h"
#include "proto/block_pool.h"

#define GD_MS_MAX_NAME 1024

struct gd_ms_tensor_head { /* identifies the tensor; longer texts are truncated */
    char node_name[GD_MS_MAX_NAME];
    char slot[24];
    char iter[16]; /* "" or "prev" */
    bool truncate;
};

/* One complete tensor, borrowed. err: what arrived is not a valid tensor; neither: the process does
 * not have it. */
typedef void (*gd_ms_tensor_fn)(void *ctx, const struct gd_ms_tensor_head *head,
                                struct gd_tensor *tensor, const struct gd_err *err);

struct gd_ms_tensor_decoder;

/* Tensors over max_bytes are refused (0: no limit). */
int gd_ms_tensor_decoder_create(size_t max_bytes, gd_ms_tensor_fn fn, void *ctx,
                                struct gd_ms_tensor_decoder **ret, struct gd_err *err);
/* Drops an incomplete tensor without a call. */
void gd_ms_tensor_decoder_destroy(struct gd_ms_tensor_decoder *decoder);

/* The size of the next tensor, if known: saves moving its first piece. */
void gd_ms_tensor_expect(struct gd_ms_tensor_decoder *decoder, size_t bytes);

/* Uses blocks of the pool for large tensors; it must outlive the decoder (not the tensors). Call
 * before the first byte. */
void gd_ms_tensor_use_pool(struct gd_ms_tensor_decoder *decoder, struct gd_block_pool *pool);

/* The next bytes of a message of length `total`, at `offset`. GD_EPROTO: not a TensorProto; the
 * stream cannot continue. Never uses more memory than what was received plus one tensor of
 * max_bytes. */
int gd_ms_tensor_feed(struct gd_ms_tensor_decoder *decoder, const uint8_t *data, size_t len,
                      size_t offset, size_t total, struct gd_err *err);

/* Inside a tensor's content: the place of its next bytes and how many are left of this piece, so
 * that a reader can put them there; feeding them from there copies nothing. Otherwise NULL. Valid
 * until the next call. */
unsigned char *gd_ms_tensor_place(struct gd_ms_tensor_decoder *decoder, size_t *room);

/* The stream has ended: reports an incomplete tensor as broken. */
void gd_ms_tensor_end(struct gd_ms_tensor_decoder *decoder);

#endif
