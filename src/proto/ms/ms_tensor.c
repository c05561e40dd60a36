// SPDX-License-Identifier: GPL-3.0-or-later
#include "proto/ms/ms_tensor.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "mindspore/ms_value.h"
#include "proto/populate.h"

#define MAPPED_FROM                                                                                \
    (1u << 20) /* blocks of this size and more are mappings, which grow by moving pages */

/* Of TensorProto */
enum field {
    FIELD_NODE_NAME = 1,
    FIELD_SLOT = 2,
    FIELD_CONTENT = 3,
    FIELD_DIMS = 4,
    FIELD_DATA_TYPE = 5,
    FIELD_FINISHED = 6,
    FIELD_ITER = 7,
    FIELD_TRUNCATE = 8,
};

enum state { AT_KEY, AT_VARINT, AT_LENGTH, AT_BYTES };

/* The content of the tensor so far. */
struct block {
    unsigned char *data;
    size_t cap;
    size_t filled;
    bool mapped;
    bool fresh;                 /* mapped, and not touched yet after what is filled */
    struct gd_populate *ahead;  /* supplies its pages */
    struct gd_block_pool *pool; /* where mappings come from and go; NULL: the system */
};

struct gd_ms_tensor_decoder {
    size_t max_bytes;
    gd_ms_tensor_fn fn;
    void *ctx;
    size_t expected;

    /* the message at hand */
    enum state state;
    uint64_t varint;
    unsigned shift;
    uint32_t field;
    unsigned wire;
    uint64_t left; /* AT_BYTES: of this field */
    char *text;    /* AT_BYTES: where a string goes, or NULL */
    size_t text_len, text_size;
    bool has_content, finished;
    int rank;
    int64_t dim[GD_MAX_RANK];
    int64_t data_type; /* -1: absent from this message */

    /* the current tensor */
    bool open; /* a message of it is complete, but the last one is not */
    struct gd_ms_tensor_head head;
    struct gd_shape shape;
    enum gd_dtype dtype;
    size_t bytes;
    struct block block;
    bool failed;
    struct gd_err err;
};

/* ---- memory -------------------------------------------------------------------------------- */

static void free_mapping(void *data, size_t bytes, void *ctx)
{
    struct gd_block_pool *pool = ctx;
    if (pool) {
        gd_block_pool_give(pool, data, bytes);
    } else {
        munmap(data, bytes);
    }
}

static void free_block(void *data, size_t bytes, void *ctx)
{
    (void)bytes;
    (void)ctx;
    free(data);
}

/* From here on the block's memory has one owner. */
static void block_settle(struct block *block)
{
    gd_populate_stop(block->ahead);
    block->ahead = NULL;
}

static void block_clear(struct block *block)
{
    struct gd_block_pool *pool = block->pool;
    block_settle(block);
    memset(block, 0, sizeof(*block));
    block->pool = pool;
}

static void block_release(struct block *block)
{
    block_settle(block);
    if (block->mapped) {
        free_mapping(block->data, block->cap, block->pool);
    } else {
        free(block->data);
    }
    block_clear(block);
}

static void *map_new(struct block *block, size_t size)
{
    block->fresh = true;
    if (block->pool) {
        return gd_block_pool_take(block->pool, size, &block->fresh);
    }
    void *data = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return data == MAP_FAILED ? NULL : data;
}

static unsigned char *map_block(struct block *block, size_t size)
{
    void *data;
    if (block->mapped) {
        block->fresh = true;
        data = mremap(block->data, block->cap, size, MREMAP_MAYMOVE);
        return data == MAP_FAILED ? NULL : data;
    }
    data = map_new(block, size);
    if (data && block->filled) {
        memcpy(data, block->data, block->filled);
    }
    return data;
}

/* Makes the block exactly `size` bytes; never shrinks it below what is filled. */
static bool block_resize(struct block *block, size_t size)
{
    if (size == block->cap) {
        return true;
    }
    block_settle(block);
    bool mapped = size >= MAPPED_FROM || block->mapped;
    unsigned char *data = mapped ? map_block(block, size) : realloc(block->data, size ? size : 1);
    if (!data) {
        return false;
    }
    if (mapped && !block->mapped) {
        free(block->data);
    }
    block->data = data;
    block->cap = size;
    block->mapped = mapped;
    return true;
}

/* More of it is filled. The first bytes show that the rest is on its way. */
static void block_filled(struct block *block, size_t len)
{
    block->filled += len;
    if (block->fresh) {
        block->fresh = false;
        block->ahead = gd_populate_start(block->data, block->cap);
    }
    gd_populate_arrived(block->ahead, block->filled);
}

/* ---- one tensor ---------------------------------------------------------------------------- */

/* The first failure counts. */
__attribute__((format(printf, 3, 4))) static void fail_tensor(struct gd_ms_tensor_decoder *decoder,
                                                              int code, const char *format, ...)
{
    if (!decoder->failed) {
        char text[GD_ERR_TEXT_MAX];
        va_list args;
        va_start(args, format);
        vsnprintf(text, sizeof(text), format, args);
        va_end(args);
        decoder->failed = true;
        gd_fail(&decoder->err, code, "%s", text);
    }
    block_release(&decoder->block);
}

static void close_tensor(struct gd_ms_tensor_decoder *decoder)
{
    block_release(&decoder->block);
    decoder->open = false;
    decoder->failed = false;
    decoder->dtype = GD_DT_NONE;
    decoder->bytes = 0;
    decoder->expected = 0;
    memset(&decoder->shape, 0, sizeof(decoder->shape));
    memset(&decoder->head, 0, sizeof(decoder->head));
}

static void deliver_tensor(struct gd_ms_tensor_decoder *decoder)
{
    struct block *block = &decoder->block;
    struct gd_tensor *tensor = NULL;
    struct gd_err err;
    if (!decoder->failed && block->filled != decoder->bytes) {
        char shape[256];
        fail_tensor(decoder, GD_EPROTO, "%s:%s arrived with %zu bytes, but %s %s takes %zu",
                    decoder->head.node_name, decoder->head.slot, block->filled,
                    gd_dtype_name(decoder->dtype),
                    gd_shape_text(&decoder->shape, shape, sizeof(shape)), decoder->bytes);
    }
    if (!decoder->failed && decoder->bytes && !block_resize(block, decoder->bytes)) {
        fail_tensor(decoder, GD_ENOMEM, "out of memory for a tensor of %zu bytes", decoder->bytes);
    }
    if (!decoder->failed) {
        int rc = gd_tensor_wrap(
            decoder->dtype, &decoder->shape, decoder->bytes ? block->data : NULL, decoder->bytes,
            block->mapped ? free_mapping : free_block, block->pool, &tensor, &err);
        if (rc != GD_OK) {
            fail_tensor(decoder, err.code, "%s", err.text);
        } else if (decoder->bytes) {
            block_clear(block); /* the tensor owns the memory now */
        }
    }
    decoder->fn(decoder->ctx, &decoder->head, tensor, decoder->failed ? &decoder->err : NULL);
    gd_tensor_unref(tensor);
    close_tensor(decoder);
}

/* Type and shape of a tensor whose first message is complete. */
static void describe_tensor(struct gd_ms_tensor_decoder *decoder)
{
    struct gd_err err;
    decoder->dtype = gd_ms_dtype(decoder->data_type);
    decoder->shape.rank = decoder->rank > GD_MAX_RANK ? GD_MAX_RANK : decoder->rank;
    memcpy(decoder->shape.dim, decoder->dim, sizeof(decoder->dim));
    if (decoder->rank > GD_MAX_RANK) {
        fail_tensor(decoder, GD_EPROTO, "%s:%s has more than %d dimensions",
                    decoder->head.node_name, decoder->head.slot, GD_MAX_RANK);
        return;
    }
    size_t item = gd_dtype_size(decoder->dtype);
    if (!item) {
        fail_tensor(decoder, GD_EUNSUPPORTED,
                    "%s:%s has elements of type %" PRId64 ", which is not a numeric type",
                    decoder->head.node_name, decoder->head.slot, decoder->data_type);
        return;
    }
    /* A scalar's dims are absent, or [0]. */
    if (decoder->rank == 1 && decoder->dim[0] == 0 && decoder->block.filled == item) {
        decoder->shape.rank = 0;
    }
    if (gd_shape_bytes(&decoder->shape, decoder->dtype, &decoder->bytes, &err) != GD_OK) {
        fail_tensor(decoder, err.code, "%s", err.text);
        return;
    }
    if (decoder->max_bytes && decoder->bytes > decoder->max_bytes) {
        fail_tensor(decoder, GD_ELIMIT, "%s:%s has %zu bytes, more than max-tensor (%zu) allows",
                    decoder->head.node_name, decoder->head.slot, decoder->bytes,
                    decoder->max_bytes);
    }
}

/* Makes room for a tensor that continues in further messages. */
static void prepare_rest(struct gd_ms_tensor_decoder *decoder)
{
    if (decoder->failed) {
        return;
    }
    if (decoder->block.filled > decoder->bytes) {
        fail_tensor(decoder, GD_EPROTO,
                    "%s:%s arrived with more bytes than the %zu of its type and shape",
                    decoder->head.node_name, decoder->head.slot, decoder->bytes);
    } else if (decoder->bytes && !block_resize(&decoder->block, decoder->bytes)) {
        fail_tensor(decoder, GD_ENOMEM, "out of memory for a tensor of %zu bytes", decoder->bytes);
    }
}

static void check_same(struct gd_ms_tensor_decoder *decoder)
{
    bool same = decoder->data_type < 0 || gd_ms_dtype(decoder->data_type) == decoder->dtype;
    if (decoder->rank && decoder->shape.rank) {
        same = same && decoder->rank == decoder->shape.rank &&
               memcmp(decoder->dim, decoder->shape.dim,
                      (size_t)decoder->rank * sizeof(*decoder->dim)) == 0;
    }
    if (same || decoder->failed) {
        return;
    }
    fail_tensor(decoder, GD_EPROTO, "the pieces of %s:%s disagree about its type or shape",
                decoder->head.node_name, decoder->head.slot);
}

/* ---- one message --------------------------------------------------------------------------- */

static void begin_message(struct gd_ms_tensor_decoder *decoder)
{
    decoder->state = AT_KEY;
    decoder->varint = 0;
    decoder->shift = 0;
    decoder->has_content = decoder->finished = false;
    decoder->rank = 0;
    decoder->data_type = -1;
}

static void end_message(struct gd_ms_tensor_decoder *decoder)
{
    bool empty =
        !decoder->open && !decoder->has_content && decoder->data_type < 0 && !decoder->rank;
    if (empty && decoder->finished) { /* the process does not have the tensor */
        decoder->fn(decoder->ctx, &decoder->head, NULL, NULL);
        close_tensor(decoder);
        return;
    }
    if (!decoder->open && !decoder->failed) {
        describe_tensor(decoder);
    } else if (decoder->open) {
        check_same(decoder);
    }
    decoder->open = true;
    if (decoder->finished) {
        deliver_tensor(decoder);
    } else {
        prepare_rest(decoder);
    }
}

static void begin_content(struct gd_ms_tensor_decoder *decoder, uint64_t len)
{
    struct block *block = &decoder->block;
    bool twice = decoder->has_content;
    decoder->has_content = decoder->has_content || len;
    if (decoder->failed || !len) {
        return;
    }
    if (twice || (decoder->open && len > decoder->bytes - block->filled)) {
        fail_tensor(decoder, GD_EPROTO,
                    "%s:%s arrived with more bytes than the %zu of its type and shape",
                    decoder->head.node_name, decoder->head.slot, decoder->bytes);
        return;
    }
    if (decoder->open) {
        return;
    }
    /* Type and shape follow the content: keeps this piece, in the tensor's own memory if its size
     * was announced. A piece is no longer than its message, which the server limits. */
    size_t room = decoder->expected > len ? decoder->expected : (size_t)len;
    if (!block_resize(block, room)) {
        fail_tensor(decoder, GD_ENOMEM, "out of memory for a tensor of %zu bytes", room);
    }
}

static void begin_text(struct gd_ms_tensor_decoder *decoder, char *text, size_t size)
{
    decoder->text = text;
    decoder->text_size = size;
    decoder->text_len = 0;
    text[0] = '\0';
}

static void add_dim(struct gd_ms_tensor_decoder *decoder, uint64_t value)
{
    if (decoder->rank < GD_MAX_RANK) {
        decoder->dim[decoder->rank] = (int64_t)value;
    }
    if (decoder->rank <= GD_MAX_RANK) {
        decoder->rank++;
    }
}

static void begin_bytes(struct gd_ms_tensor_decoder *decoder, uint64_t len)
{
    decoder->left = len;
    decoder->text = NULL;
    decoder->state = len ? AT_BYTES : AT_KEY;
    switch (decoder->wire == 2 ? decoder->field : 0) {
    case FIELD_NODE_NAME:
        begin_text(decoder, decoder->head.node_name, sizeof(decoder->head.node_name));
        break;
    case FIELD_SLOT: begin_text(decoder, decoder->head.slot, sizeof(decoder->head.slot)); break;
    case FIELD_ITER: begin_text(decoder, decoder->head.iter, sizeof(decoder->head.iter)); break;
    case FIELD_CONTENT: begin_content(decoder, len); break;
    default: break;
    }
}

static void take_bytes(struct gd_ms_tensor_decoder *decoder, const uint8_t *data, size_t len)
{
    if (decoder->text) {
        size_t room = decoder->text_size - 1 - decoder->text_len;
        size_t part = len < room ? len : room;
        memcpy(decoder->text + decoder->text_len, data, part);
        decoder->text_len += part;
        decoder->text[decoder->text_len] = '\0';
    } else if (decoder->wire == 2 && decoder->field == FIELD_CONTENT && !decoder->failed) {
        unsigned char *place = decoder->block.data + decoder->block.filled;
        if (data != place) { /* otherwise it was read to its place: gd_ms_tensor_place() */
            memcpy(place, data, len);
        }
        block_filled(&decoder->block, len);
    }
}

static void take_varint(struct gd_ms_tensor_decoder *decoder, uint64_t value)
{
    switch (decoder->field) {
    case FIELD_DIMS: add_dim(decoder, value); break;
    case FIELD_DATA_TYPE: decoder->data_type = (int64_t)(value & INT32_MAX); break;
    case FIELD_FINISHED: decoder->finished = value != 0; break;
    case FIELD_TRUNCATE: decoder->head.truncate = value != 0; break;
    default: break;
    }
}

/* Packed dims are varints inside bytes. */
static bool take_packed(struct gd_ms_tensor_decoder *decoder, uint8_t byte)
{
    decoder->varint |= decoder->shift < 64 ? (uint64_t)(byte & 0x7f) << decoder->shift : 0;
    decoder->shift += 7;
    if (byte & 0x80) {
        return decoder->shift < 70 && decoder->left > 1;
    }
    add_dim(decoder, decoder->varint);
    decoder->varint = 0;
    decoder->shift = 0;
    return true;
}

static bool use_key(struct gd_ms_tensor_decoder *decoder, uint64_t key)
{
    if (key >> 3 == 0 || key >> 3 > 0x1fffffff) {
        return false;
    }
    decoder->field = (uint32_t)(key >> 3);
    decoder->wire = (unsigned)(key & 7);
    switch (decoder->wire) {
    case 0: decoder->state = AT_VARINT; return true;
    case 2: decoder->state = AT_LENGTH; return true;
    case 1: begin_bytes(decoder, 8); return true;
    case 5: begin_bytes(decoder, 4); return true;
    default: return false;
    }
}

/* A byte of a key, length or integer. `after` is what remains of the message. */
static bool use_varint_byte(struct gd_ms_tensor_decoder *decoder, uint8_t byte, size_t after)
{
    decoder->varint |= decoder->shift < 64 ? (uint64_t)(byte & 0x7f) << decoder->shift : 0;
    decoder->shift += 7;
    if (byte & 0x80) {
        return decoder->shift < 70;
    }
    uint64_t value = decoder->varint;
    decoder->varint = 0;
    decoder->shift = 0;
    switch (decoder->state) {
    case AT_KEY: return use_key(decoder, value);
    case AT_LENGTH:
        if (value > after) {
            return false;
        }
        begin_bytes(decoder, value);
        return true;
    default:
        take_varint(decoder, value);
        decoder->state = AT_KEY;
        return true;
    }
}

static bool use_bytes(struct gd_ms_tensor_decoder *decoder, const uint8_t *data, size_t len,
                      size_t *used)
{
    *used = decoder->left < len ? (size_t)decoder->left : len;
    if (decoder->wire == 2 && decoder->field == FIELD_DIMS) {
        for (size_t i = 0; i < *used; i++, decoder->left--) {
            if (!take_packed(decoder, data[i])) {
                return false;
            }
        }
    } else {
        take_bytes(decoder, data, *used);
        decoder->left -= *used;
    }
    if (!decoder->left) {
        decoder->state = AT_KEY;
    }
    return true;
}

void gd_ms_tensor_use_pool(struct gd_ms_tensor_decoder *decoder, struct gd_block_pool *pool)
{
    decoder->block.pool = pool;
}

int gd_ms_tensor_feed(struct gd_ms_tensor_decoder *decoder, const uint8_t *data, size_t len,
                      size_t offset, size_t total, struct gd_err *err)
{
    if (offset == 0) {
        begin_message(decoder);
    }
    bool good = len <= total && offset <= total - len;
    for (size_t at = 0; good && at < len;) {
        if (decoder->state == AT_BYTES) {
            size_t used;
            good = use_bytes(decoder, data + at, len - at, &used);
            at += used;
        } else {
            good = use_varint_byte(decoder, data[at], total - offset - at - 1);
            at++;
        }
    }
    if (good && offset + len == total) {
        good = decoder->state == AT_KEY && decoder->shift == 0;
        if (good) {
            end_message(decoder);
        }
    }
    if (good) {
        return GD_OK;
    }
    close_tensor(decoder);
    return gd_fail(err, GD_EPROTO,
                   "the training process sent a tensor message that is not a TensorProto");
}

unsigned char *gd_ms_tensor_place(struct gd_ms_tensor_decoder *decoder, size_t *room)
{
    bool content = decoder->state == AT_BYTES && !decoder->text && decoder->wire == 2 &&
                   decoder->field == FIELD_CONTENT && !decoder->failed;
    if (!content) {
        return NULL;
    }
    *room = (size_t)decoder->left;
    return decoder->block.data + decoder->block.filled;
}

void gd_ms_tensor_end(struct gd_ms_tensor_decoder *decoder)
{
    if (!decoder->open) {
        return;
    }
    fail_tensor(decoder, GD_EPROTO, "%s:%s ended after %zu of %zu bytes", decoder->head.node_name,
                decoder->head.slot, decoder->block.filled, decoder->bytes);
    decoder->fn(decoder->ctx, &decoder->head, NULL, &decoder->err);
    close_tensor(decoder);
}

void gd_ms_tensor_expect(struct gd_ms_tensor_decoder *decoder, size_t bytes)
{
    decoder->expected = decoder->max_bytes && bytes > decoder->max_bytes ? 0 : bytes;
}

int gd_ms_tensor_decoder_create(size_t max_bytes, gd_ms_tensor_fn fn, void *ctx,
                                struct gd_ms_tensor_decoder **ret, struct gd_err *err)
{
    struct gd_ms_tensor_decoder *decoder = calloc(1, sizeof(*decoder));
    if (!decoder) {
        return gd_fail(err, GD_ENOMEM, "out of memory for a tensor");
    }
    decoder->max_bytes = max_bytes;
    decoder->fn = fn;
    decoder->ctx = ctx;
    decoder->data_type = -1;
    *ret = decoder;
    return GD_OK;
}

void gd_ms_tensor_decoder_destroy(struct gd_ms_tensor_decoder *decoder)
{
    if (!decoder) {
        return;
    }
    block_release(&decoder->block);
    free(decoder);
}
