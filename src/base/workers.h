// SPDX-License-Identifier: MIT
/*
 * Threads that share the work of one call. They are created on first use, wait for the next call,
 * and have all signals blocked. The caller works too, so a call also completes when no thread can
 * be created.
 *
 * Calls may be made from any thread, also at the same time. A forked process creates its own
 * threads.
 *
 * In a program that computes with OpenMP, its threads can do the work instead: they have just
 * computed something, and wait awake for more.
 */
#ifndef GD_BASE_WORKERS_H
#define GD_BASE_WORKERS_H

#include <stdbool.h>
#include <stddef.h>

#define GD_MAX_WORKERS 64

/* Functions of the OpenMP library that the program uses. */
struct gd_openmp {
    /* GOMP_parallel: each thread of the caller's team, with it, calls work(ctx). threads and
     * flags 0: as many as usual. */
    void (*parallel)(void (*work)(void *ctx), void *ctx, unsigned threads, unsigned flags);
    int (*max_threads)(void); /* omp_get_max_threads */
    int (*in_parallel)(void); /* omp_in_parallel */
};

/* Before the first call of gd_workers_run that may use it; the struct is copied. */
void gd_workers_use_openmp(const struct gd_openmp *openmp);

/* Whether threads pay for a call from this thread that processes that number of bytes. */
bool gd_workers_pay(size_t bytes);

/* Part number `part` of the work. Parts of one call run concurrently and in any order. */
typedef void (*gd_work_fn)(void *ctx, size_t part);

/* Runs parts 0 ... count - 1 on up to `threads` threads, including the caller's; returns when all
 * are done. */
void gd_workers_run(int threads, size_t count, gd_work_fn work, void *ctx);

#endif
