// SPDX-License-Identifier: MIT
/*
 * A few threads that share out a range of independent work.
 *
 * The calling thread works too. Ranges are cut the same way every time, and each piece is computed
 * by one thread in one order, so results do not depend on scheduling.
 */
#ifndef CHARLM_POOL_H
#define CHARLM_POOL_H

#include <stddef.h>

struct pool;

/* threads counts the caller; 1 makes none. NULL when out of memory or threads. */
struct pool *pool_create(int threads);
void pool_destroy(struct pool *pool);
int pool_threads(const struct pool *pool); /* a NULL pool has 1 */

/* Works on [begin, end) of the range; worker is 0 ... pool_threads - 1. */
typedef void (*pool_fn)(void *ctx, size_t begin, size_t end, int worker);

/* Calls fn on disjoint pieces that cover [0, count); pieces start at multiples of `align` and hold
 * at least `grain` elements, so small ranges run in the caller alone. Returns when all is done. */
void pool_for(struct pool *pool, size_t count, size_t align, size_t grain, pool_fn fn, void *ctx);

#endif
