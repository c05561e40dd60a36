// SPDX-License-Identifier: MIT
/*
 * Threads that share the work of one call. They are created on first use, wait for the next call,
 * and have all signals blocked. The caller works too, so a call also completes when no thread can
 * be created.
 *
 * Calls may be made from any thread, also at the same time. A forked process creates its own
 * threads.
 */
#ifndef GD_BASE_WORKERS_H
#define GD_BASE_WORKERS_H

#include <stddef.h>

#define GD_MAX_WORKERS 64

/* Part number `part` of the work. Parts of one call run concurrently and in any order. */
typedef void (*gd_work_fn)(void *ctx, size_t part);

/* Runs parts 0 ... count - 1 on up to `threads` threads, including the caller's; returns when all
 * are done. */
void gd_workers_run(int threads, size_t count, gd_work_fn work, void *ctx);

#endif
