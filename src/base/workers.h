// SPDX-License-Identifier: MIT
/*
 * Threads that share the work of one call. They are made when they are first asked for, wait for
 * the next call, and have all signals blocked. The caller does its share, so that a call comes to
 * its end when no thread can be had.
 *
 * Any thread may call, several at once. A process that was forked makes threads of its own.
 */
#ifndef GD_BASE_WORKERS_H
#define GD_BASE_WORKERS_H

#include <stddef.h>

#define GD_MAX_WORKERS 64

/* Part number `part` of the work. The parts of one call run at the same time and in any order. */
typedef void (*gd_work_fn)(void *ctx, size_t part);

/* Runs the parts 0 ... count - 1 on up to `threads` threads, the caller's among them; back when all
 * of them are done. */
void gd_workers_run(int threads, size_t count, gd_work_fn work, void *ctx);

#endif
