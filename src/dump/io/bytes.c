// SPDX-License-Identifier: GPL-3.0-or-later
#include "dump/io/bytes.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* bytes of loaded blocks that are cached for later readers */
#define MAX_KEPT ((uint64_t)256 << 20)

struct block { /* loaded bytes; lives while being read or cached */
    int refs;
    unsigned char *data;
};

struct row_part {
    struct gd_bytes *bytes;
    uint64_t at; /* of its first byte in the row */
};

struct gd_bytes {
    int refs;
    uint64_t size;
    struct gd_disk *disk;   /* a part of a file, starting at `at` */
    struct gd_bytes *whole; /* or a part of other bytes */
    uint64_t at;
    struct row_part *row; /* or a row of several, none of them empty */
    size_t row_count;
    gd_bytes_locate_fn locate; /* NULL once it has been found */
    gd_bytes_seen_fn seen;
    gd_bytes_load_fn load;
    gd_bytes_stream_fn stream;
    void (*free_ctx)(void *ctx);
    void *ctx;
    const unsigned char *memory;
    pthread_mutex_t mutex; /* guards locate, load and block */
    bool located;
    /* The cache; guarded by its mutex: */
    struct block *block;
    struct gd_bytes *newer, *older;
};

static struct {
    pthread_mutex_t mutex;
    struct gd_bytes *newest, *oldest;
    uint64_t bytes;
} kept = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static void block_unref(struct block *block)
{
    if (block && __atomic_sub_fetch(&block->refs, 1, __ATOMIC_ACQ_REL) == 0) {
        free(block->data);
        free(block);
    }
}

/* Removes the block from the cache. The lock is held. */
static struct block *kept_remove(struct gd_bytes *bytes)
{
    struct block *block = bytes->block;

    *(bytes->newer ? &bytes->newer->older : &kept.newest) = bytes->older;
    *(bytes->older ? &bytes->older->newer : &kept.oldest) = bytes->newer;
    bytes->newer = bytes->older = NULL;
    bytes->block = NULL;
    kept.bytes -= bytes->size;
    return block;
}

static void kept_add(struct gd_bytes *bytes, struct block *block)
{
    bytes->block = block;
    bytes->older = kept.newest;
    *(kept.newest ? &kept.newest->newer : &kept.oldest) = bytes;
    kept.newest = bytes;
    kept.bytes += bytes->size;
}

/* Returns a reference on the cached block, or NULL. */
static struct block *kept_find(struct gd_bytes *bytes)
{
    struct block *block;

    pthread_mutex_lock(&kept.mutex);
    block = bytes->block;
    if (block) {
        kept_remove(bytes);
        kept_add(bytes, block);
        __atomic_add_fetch(&block->refs, 1, __ATOMIC_RELAXED);
    }
    pthread_mutex_unlock(&kept.mutex);
    return block;
}

/* The newest block always stays: even one larger than the whole cache is read in pieces. */
static void kept_take(struct gd_bytes *bytes, struct block *block)
{
    pthread_mutex_lock(&kept.mutex);
    __atomic_add_fetch(&block->refs, 1, __ATOMIC_RELAXED);
    kept_add(bytes, block);
    while (kept.bytes > MAX_KEPT && kept.oldest != bytes) {
        block_unref(kept_remove(kept.oldest));
    }
    pthread_mutex_unlock(&kept.mutex);
}

static void kept_drop(struct gd_bytes *bytes)
{
    pthread_mutex_lock(&kept.mutex);
    if (bytes->block) {
        block_unref(kept_remove(bytes));
    }
    pthread_mutex_unlock(&kept.mutex);
}

/* ---- creating -------------------------------------------------------------------------------- */

static struct gd_bytes *bytes_new(uint64_t size)
{
    struct gd_bytes *bytes = calloc(1, sizeof(*bytes));

    if (bytes) {
        bytes->refs = 1;
        bytes->size = size;
        pthread_mutex_init(&bytes->mutex, NULL);
    }
    return bytes;
}

int gd_bytes_of_disk(struct gd_disk *disk, uint64_t at, uint64_t size, struct gd_bytes **ret,
                     struct gd_err *err)
{
    struct gd_bytes *bytes;

    if (at > gd_disk_size(disk) || size > gd_disk_size(disk) - at) {
        return gd_fail(err, GD_EPROTO, "%.300s ends at byte %llu: %llu bytes at %llu are missing",
                       gd_disk_path(disk), (unsigned long long)gd_disk_size(disk),
                       (unsigned long long)size, (unsigned long long)at);
    }
    bytes = bytes_new(size);
    if (!bytes) {
        return gd_fail_nomem(err);
    }
    bytes->disk = gd_disk_ref(disk);
    bytes->at = at;
    *ret = bytes;
    return GD_OK;
}

int gd_bytes_of_place(struct gd_disk *disk, gd_bytes_locate_fn locate, void (*free_ctx)(void *ctx),
                      void *ctx, uint64_t size, struct gd_bytes **ret, struct gd_err *err)
{
    struct gd_bytes *bytes = bytes_new(size);

    if (!bytes) {
        free_ctx(ctx);
        return gd_fail_nomem(err);
    }
    bytes->disk = gd_disk_ref(disk);
    bytes->locate = locate;
    bytes->free_ctx = free_ctx;
    bytes->ctx = ctx;
    *ret = bytes;
    return GD_OK;
}

void gd_bytes_tell(struct gd_bytes *bytes, gd_bytes_seen_fn seen)
{
    bytes->seen = seen;
}

int gd_bytes_of_load(gd_bytes_load_fn load, void (*free_ctx)(void *ctx), void *ctx, uint64_t size,
                     struct gd_bytes **ret, struct gd_err *err)
{
    struct gd_bytes *bytes = bytes_new(size);

    if (!bytes) {
        free_ctx(ctx);
        return gd_fail_nomem(err);
    }
    bytes->load = load;
    bytes->free_ctx = free_ctx;
    bytes->ctx = ctx;
    *ret = bytes;
    return GD_OK;
}

void gd_bytes_stream(struct gd_bytes *bytes, gd_bytes_stream_fn stream)
{
    bytes->stream = stream;
}

bool gd_bytes_want_order(const struct gd_bytes *bytes)
{
    while (bytes->whole) {
        bytes = bytes->whole;
    }
    return __atomic_load_n(&bytes->stream, __ATOMIC_RELAXED) != NULL;
}

int gd_bytes_of_memory(const void *data, size_t size, void (*free_ctx)(void *ctx), void *ctx,
                       struct gd_bytes **ret, struct gd_err *err)
{
    struct gd_bytes *bytes = bytes_new(size);

    if (!bytes) {
        if (free_ctx) {
            free_ctx(ctx);
        }
        return gd_fail_nomem(err);
    }
    bytes->memory = data;
    bytes->free_ctx = free_ctx;
    bytes->ctx = ctx;
    *ret = bytes;
    return GD_OK;
}

int gd_bytes_of_part(struct gd_bytes *whole, uint64_t at, uint64_t size, struct gd_bytes **ret,
                     struct gd_err *err)
{
    struct gd_bytes *bytes;

    if (at > whole->size || size > whole->size - at) {
        return gd_fail(err, GD_EPROTO, "%llu bytes at %llu are outside the %llu that exist",
                       (unsigned long long)size, (unsigned long long)at,
                       (unsigned long long)whole->size);
    }
    bytes = bytes_new(size);
    if (!bytes) {
        return gd_fail_nomem(err);
    }
    bytes->whole = gd_bytes_ref(whole);
    bytes->at = at;
    *ret = bytes;
    return GD_OK;
}

int gd_bytes_of_row(struct gd_bytes *const *part, size_t count, struct gd_bytes **ret,
                    struct gd_err *err)
{
    struct gd_bytes *bytes = bytes_new(0);

    if (bytes) {
        bytes->row = calloc(count + 1, sizeof(*bytes->row));
    }
    if (!bytes || !bytes->row) {
        gd_bytes_unref(bytes);
        return gd_fail_nomem(err);
    }
    for (size_t i = 0; i < count; i++) {
        uint64_t at = bytes->size;

        if (part[i]->size == 0) {
            continue;
        }
        if (__builtin_add_overflow(at, part[i]->size, &bytes->size)) {
            gd_bytes_unref(bytes);
            return gd_fail(err, GD_ELIMIT, "the size exceeds the range of 64 bits");
        }
        bytes->row[bytes->row_count++] =
            (struct row_part){.bytes = gd_bytes_ref(part[i]), .at = at};
    }
    *ret = bytes;
    return GD_OK;
}

struct gd_bytes *gd_bytes_ref(struct gd_bytes *bytes)
{
    __atomic_add_fetch(&bytes->refs, 1, __ATOMIC_RELAXED);
    return bytes;
}

void gd_bytes_unref(struct gd_bytes *bytes)
{
    if (!bytes || __atomic_sub_fetch(&bytes->refs, 1, __ATOMIC_ACQ_REL) != 0) {
        return;
    }
    if (bytes->load) {
        kept_drop(bytes);
    }
    if (bytes->free_ctx) {
        bytes->free_ctx(bytes->ctx);
    }
    gd_disk_unref(bytes->disk);
    gd_bytes_unref(bytes->whole);
    for (size_t i = 0; i < bytes->row_count; i++) {
        gd_bytes_unref(bytes->row[i].bytes);
    }
    free(bytes->row);
    pthread_mutex_destroy(&bytes->mutex);
    free(bytes);
}

/* ---- reading --------------------------------------------------------------------------------- */

uint64_t gd_bytes_size(const struct gd_bytes *bytes)
{
    return bytes->size;
}

static int find_place(struct gd_bytes *bytes, struct gd_err *err)
{
    int rc = GD_OK;

    pthread_mutex_lock(&bytes->mutex);
    if (!bytes->located) {
        rc = bytes->locate(bytes->ctx, &bytes->at, err);
        __atomic_store_n(&bytes->located, rc == GD_OK, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&bytes->mutex);
    return rc;
}

static int load_block(struct gd_bytes *bytes, struct block **ret, struct gd_err *err)
{
    struct block *block = calloc(1, sizeof(*block));
    int rc;

    if (block) {
        block->refs = 1;
        block->data = malloc((size_t)bytes->size);
    }
    if (!block || !block->data) {
        free(block);
        return gd_fail(err, GD_ENOMEM, "out of memory for %llu bytes that must be unpacked",
                       (unsigned long long)bytes->size);
    }
    rc = bytes->load(bytes->ctx, block->data, (size_t)bytes->size, err);
    if (rc != GD_OK) {
        block_unref(block);
        return rc;
    }
    kept_take(bytes, block);
    *ret = block;
    return GD_OK;
}

static int read_loaded(struct gd_bytes *bytes, uint64_t at, void *ret, size_t size,
                       struct gd_err *err)
{
    struct block *block;
    int rc = GD_OK;

    /* One thread loads, the others wait for it. */
    pthread_mutex_lock(&bytes->mutex);
    if (bytes->stream) {
        rc = bytes->stream(bytes->ctx, at, ret, size, err);
        if (rc != GD_ENODATA) {
            pthread_mutex_unlock(&bytes->mutex);
            return rc;
        }
        __atomic_store_n(&bytes->stream, NULL, __ATOMIC_RELAXED);
        rc = GD_OK;
    }
    block = kept_find(bytes);
    if (!block) {
        rc = load_block(bytes, &block, err);
    }
    pthread_mutex_unlock(&bytes->mutex);
    if (rc != GD_OK) {
        return rc;
    }
    memcpy(ret, block->data + at, size);
    block_unref(block);
    return GD_OK;
}

static int read_row(struct gd_bytes *bytes, uint64_t at, unsigned char *ret, size_t size,
                    struct gd_err *err)
{
    size_t low = 0, high = bytes->row_count;
    int rc = GD_OK;

    while (high - low > 1) { /* the last part that begins at or before `at` */
        size_t middle = low + (high - low) / 2;

        *(bytes->row[middle].at <= at ? &low : &high) = middle;
    }
    for (; rc == GD_OK && size; low++) {
        struct row_part *part = &bytes->row[low];
        uint64_t inside = at - part->at, left = part->bytes->size - inside;
        size_t some = size < left ? size : (size_t)left;

        rc = gd_bytes_read(part->bytes, inside, ret, some, err);
        ret += some;
        at += some;
        size -= some;
    }
    return rc;
}

/* Reads a part of a file. */
static int read_piece(struct gd_bytes *bytes, uint64_t at, void *ret, size_t size,
                      struct gd_err *err)
{
    int rc = GD_OK;

    if (bytes->locate && !__atomic_load_n(&bytes->located, __ATOMIC_ACQUIRE)) {
        rc = find_place(bytes, err);
    }
    rc = rc != GD_OK ? rc : gd_disk_read(bytes->disk, bytes->at + at, ret, size, err);
    return rc != GD_OK || !bytes->seen ? rc : bytes->seen(bytes->ctx, at, ret, size, err);
}

int gd_bytes_read(struct gd_bytes *bytes, uint64_t at, void *ret, size_t size, struct gd_err *err)
{
    if (at > bytes->size || size > bytes->size - at) {
        return gd_fail(err, GD_EPROTO, "%zu bytes at %llu are outside the %llu that exist", size,
                       (unsigned long long)at, (unsigned long long)bytes->size);
    }
    if (size == 0) {
        return GD_OK;
    }
    if (bytes->memory) {
        memcpy(ret, bytes->memory + at, size);
        return GD_OK;
    }
    if (bytes->whole) {
        return gd_bytes_read(bytes->whole, bytes->at + at, ret, size, err);
    }
    if (bytes->row) {
        return read_row(bytes, at, ret, size, err);
    }
    if (bytes->load) {
        return read_loaded(bytes, at, ret, size, err);
    }
    return read_piece(bytes, at, ret, size, err);
}
