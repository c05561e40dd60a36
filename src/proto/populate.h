// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Fresh memory that is about to be filled from its beginning: a thread makes the kernel supply the
 * pages a little ahead of the bytes, so that the reader does not wait for each page.
 *
 * It never reads the memory, never goes beyond its end, and stays within GD_POPULATE_AHEAD bytes of
 * what has arrived, so that an aborted transfer wastes no memory. Where the kernel cannot do this
 * (Linux before 5.14), pages appear at their first use as usual.
 *
 * No huge pages: see block_pool.c.
 */
#ifndef GD_ENGINE_POPULATE_H
#define GD_ENGINE_POPULATE_H

#include <stddef.h>

#define GD_POPULATE_MIN   ((size_t)16 << 20) /* less is not worth a thread */
#define GD_POPULATE_AHEAD ((size_t)256 << 20)

struct gd_populate;

/* For `bytes` of private memory that begin at a page. NULL if they are fewer than GD_POPULATE_MIN,
 * or no thread could be started: then there is nothing to stop. */
struct gd_populate *gd_populate_start(void *data, size_t bytes);
/* The first `arrived` bytes are filled. Call it from the thread that started it; NULL is
 * allowed. */
void gd_populate_arrived(struct gd_populate *populate, size_t arrived);
/* Ends it and waits until it has ended (soon), after which the memory may be unmapped or moved.
 * NULL is allowed. */
void gd_populate_stop(struct gd_populate *populate);

#endif
