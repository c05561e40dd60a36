// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Fresh memory that is about to be filled from its beginning: a thread of its own has the system
 * supply the pages a little ahead of the bytes, so that they need not be waited for one by one.
 *
 * It never looks at the memory, never goes past its end, and goes at most GD_POPULATE_AHEAD past
 * what has arrived: memory of a transfer that stops is not spent. Where the system cannot do this
 * (Linux before 5.14) the pages come as they always did, at their first use.
 *
 * Huge pages are not asked for: see block_pool.c.
 */
#ifndef GD_ENGINE_POPULATE_H
#define GD_ENGINE_POPULATE_H

#include <stddef.h>

#define GD_POPULATE_MIN   ((size_t)16 << 20) /* less is not worth a thread */
#define GD_POPULATE_AHEAD ((size_t)256 << 20)

struct gd_populate;

/* For `bytes` of private memory that begin at a page. NULL when they are fewer than
 * GD_POPULATE_MIN, or when there is no thread to be had: then there is nothing to stop. */
struct gd_populate *gd_populate_start(void *data, size_t bytes);
/* The first `arrived` bytes are filled. From the thread that started it; NULL is fine. */
void gd_populate_arrived(struct gd_populate *populate, size_t arrived);
/* Ends it and waits until it has (soon), after which the memory may be unmapped or moved. NULL is
 * fine. */
void gd_populate_stop(struct gd_populate *populate);

#endif
