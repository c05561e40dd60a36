// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Large memory blocks for reuse. Touching fresh pages costs more than receiving a tensor into them,
 * and a run that is stepped shows tensors of the same sizes again and again, so returned blocks are
 * kept for a while.
 *
 * gd_block_pool_take and _give may be called from any thread, the others only from the owner's.
 */
#ifndef GD_ENGINE_BLOCK_POOL_H
#define GD_ENGINE_BLOCK_POOL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

#define GD_BLOCK_MIN      ((size_t)1 << 20) /* smaller blocks are not worth keeping */
#define GD_BLOCK_KEEP_MAX ((size_t)2 << 30) /* total bytes kept */
#define GD_BLOCK_KEEP     30                /* ticks for which an unused block is kept */

struct gd_block_pool;

/* GD_ENOMEM. */
int gd_block_pool_create(struct gd_block_pool **ret, struct gd_err *err);
/* Called by the owner at its end. Blocks in use may still be returned afterwards. NULL is
 * allowed. */
void gd_block_pool_release(struct gd_block_pool *pool);

/* A private mapping of `bytes` (> 0) with undefined content; NULL: out of memory. Its size may be
 * changed by mremap. *fresh (may be NULL): the memory is untouched. */
void *gd_block_pool_take(struct gd_block_pool *pool, size_t bytes, bool *fresh);
/* Returns a block, with its current size. */
void gd_block_pool_give(struct gd_block_pool *pool, void *data, size_t bytes);
/* Call once a second: frees blocks that were unused for GD_BLOCK_KEEP ticks. */
void gd_block_pool_tick(struct gd_block_pool *pool);
/* Bytes kept in unused blocks. */
size_t gd_block_pool_kept(struct gd_block_pool *pool);

#endif
