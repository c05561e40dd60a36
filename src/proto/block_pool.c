// SPDX-License-Identifier: GPL-3.0-or-later
#include "proto/block_pool.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define MAX_SPARES 16
#define PAGE       ((size_t)4096)

struct spare {
    void *data;
    size_t bytes; /* whole pages */
    unsigned age; /* ticks since it was returned */
};

struct gd_block_pool {
    pthread_mutex_t lock;
    size_t refs; /* the owner, and each block in use */
    struct spare spare[MAX_SPARES];
    size_t count;
    size_t kept;
    bool released; /* the owner is gone: keep nothing */
};

int gd_block_pool_create(struct gd_block_pool **ret, struct gd_err *err)
{
    struct gd_block_pool *pool = calloc(1, sizeof(*pool));
    if (!pool) {
        return gd_fail(err, GD_ENOMEM, "out of memory for a pool of blocks");
    }
    pthread_mutex_init(&pool->lock, NULL);
    pool->refs = 1;
    *ret = pool;
    return GD_OK;
}

static void drop_spare(struct gd_block_pool *pool, size_t i)
{
    munmap(pool->spare[i].data, pool->spare[i].bytes);
    pool->kept -= pool->spare[i].bytes;
    pool->spare[i] = pool->spare[--pool->count];
}

/* Unlocks; the last reference frees the pool. */
static void unref_and_unlock(struct gd_block_pool *pool)
{
    bool last = --pool->refs == 0;
    pthread_mutex_unlock(&pool->lock);
    if (last) {
        pthread_mutex_destroy(&pool->lock);
        free(pool);
    }
}

void gd_block_pool_release(struct gd_block_pool *pool)
{
    if (!pool) {
        return;
    }
    pthread_mutex_lock(&pool->lock);
    pool->released = true;
    while (pool->count > 0) {
        drop_spare(pool, 0);
    }
    unref_and_unlock(pool);
}

static size_t whole_pages(size_t bytes)
{
    return (bytes + PAGE - 1) & ~(PAGE - 1);
}

/* The smallest spare block that fits, unless most of it would be wasted. */
static void *take_spare(struct gd_block_pool *pool, size_t bytes)
{
    size_t best = pool->count;
    for (size_t i = 0; i < pool->count; i++) {
        size_t size = pool->spare[i].bytes;
        if (size >= bytes && size / 2 <= bytes &&
            (best == pool->count || size < pool->spare[best].bytes)) {
            best = i;
        }
    }
    if (best == pool->count) {
        return NULL;
    }
    struct spare found = pool->spare[best];
    pool->spare[best] = pool->spare[--pool->count];
    pool->kept -= found.bytes;
    if (found.bytes > bytes) {
        munmap((char *)found.data + bytes, found.bytes - bytes);
    }
    return found.data;
}

/* No huge pages: under a hypervisor that backs memory with small pages they made the first touch
 * slower (measured), and the second touch is what counts here. */
static void *map_fresh(size_t bytes)
{
    void *data = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return data == MAP_FAILED ? NULL : data;
}

void *gd_block_pool_take(struct gd_block_pool *pool, size_t bytes, bool *fresh)
{
    if (bytes > SIZE_MAX - PAGE) {
        return NULL;
    }
    bytes = whole_pages(bytes);
    pthread_mutex_lock(&pool->lock);
    void *data = take_spare(pool, bytes);
    if (fresh) {
        *fresh = !data;
    }
    if (!data) {
        data = map_fresh(bytes);
    }
    if (!data && pool->count > 0) { /* the spare blocks may be the missing memory */
        while (pool->count > 0) {
            drop_spare(pool, 0);
        }
        data = map_fresh(bytes);
    }
    if (data) {
        pool->refs++;
    }
    pthread_mutex_unlock(&pool->lock);
    return data;
}

void gd_block_pool_give(struct gd_block_pool *pool, void *data, size_t bytes)
{
    bytes = whole_pages(bytes);
    pthread_mutex_lock(&pool->lock);
    bool keep = bytes >= GD_BLOCK_MIN && bytes <= GD_BLOCK_KEEP_MAX && !pool->released;
    /* The oldest blocks make room for the newest. */
    while (keep && pool->count > 0 &&
           (pool->count == MAX_SPARES || pool->kept > GD_BLOCK_KEEP_MAX - bytes)) {
        size_t oldest = 0;
        for (size_t i = 1; i < pool->count; i++) {
            oldest = pool->spare[i].age > pool->spare[oldest].age ? i : oldest;
        }
        drop_spare(pool, oldest);
    }
    if (keep) {
        pool->spare[pool->count++] = (struct spare){.data = data, .bytes = bytes};
        pool->kept += bytes;
    } else {
        munmap(data, bytes);
    }
    unref_and_unlock(pool);
}

void gd_block_pool_tick(struct gd_block_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    for (size_t i = pool->count; i-- > 0;) {
        if (++pool->spare[i].age >= GD_BLOCK_KEEP) {
            drop_spare(pool, i);
        }
    }
    pthread_mutex_unlock(&pool->lock);
}

size_t gd_block_pool_kept(struct gd_block_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    size_t kept = pool->kept;
    pthread_mutex_unlock(&pool->lock);
    return kept;
}
