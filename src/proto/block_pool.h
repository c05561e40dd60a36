// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Large blocks of memory that are used again. The first touch of fresh pages costs more than
 * receiving a tensor into them, and a run that is stepped shows tensors of the same sizes again and
 * again; so the last blocks that were given back are kept for a while.
 *
 * take and give may be called from any thread, the others from the owner's.
 */
#ifndef GD_ENGINE_BLOCK_POOL_H
#define GD_ENGINE_BLOCK_POOL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

#define GD_BLOCK_MIN      ((size_t)1 << 20) /* smaller blocks are not worth keeping */
#define GD_BLOCK_KEEP_MAX ((size_t)2 << 30) /* bytes kept in all */
#define GD_BLOCK_KEEP     30                /* ticks that an unused block is kept */

struct gd_block_pool;

/* GD_ENOMEM. */
int gd_block_pool_create(struct gd_block_pool **ret, struct gd_err *err);
/* The owner is done. Blocks that are out may still be given back afterwards. NULL is fine. */
void gd_block_pool_release(struct gd_block_pool *pool);

/* A private mapping of `bytes` (> 0), with anything in it; NULL when there is no memory. Its size
 * may be changed by mremap. *fresh (may be NULL): nothing has touched it yet. */
void *gd_block_pool_take(struct gd_block_pool *pool, size_t bytes, bool *fresh);
/* Takes it back, with the size that it has now. */
void gd_block_pool_give(struct gd_block_pool *pool, void *data, size_t bytes);
/* Once a second: returns to the system what nobody took for GD_BLOCK_KEEP ticks. */
void gd_block_pool_tick(struct gd_block_pool *pool);
/* Bytes kept and unused now. */
size_t gd_block_pool_kept(struct gd_block_pool *pool);

#endif
