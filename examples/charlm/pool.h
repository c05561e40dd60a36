// SPDX-License-Identifier: MIT
/*
 * Threads that share a range of independent work.
 *
 * The calling thread works too. Ranges are always cut in the same way and each piece is computed by
 * one thread, so results do not depend on scheduling.
 */
#ifndef CHARLM_POOL_H
#define CHARLM_POOL_H

#include <stddef.h>

struct pool;

/* threads includes the caller. NULL: out of memory or threads. */
struct pool *pool_create(int threads);
void pool_destroy(struct pool *pool);
int pool_threads(const struct pool *pool); /* 1 for a NULL pool */

/* Processes [begin, end) of the range; worker is 0 ... pool_threads - 1. */
typedef void (*pool_fn)(void *ctx, size_t begin, size_t end, int worker);

/* Calls fn on disjoint pieces that cover [0, count) and returns when all are done. Pieces start at
 * multiples of `align` and have at least `grain` elements, so small ranges run in the caller
 * only. */
void pool_for(struct pool *pool, size_t count, size_t align, size_t grain, pool_fn fn, void *ctx);

#endif
