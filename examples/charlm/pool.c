// SPDX-License-Identifier: MIT
#include "pool.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

/* How often an idle thread polls before it yields its core: the gap between two kernels of a step
 * is shorter than a sleep and a wake-up. */
#define SPIN_ROUNDS 4000

struct job {
    pool_fn fn;
    void *ctx;
    size_t count, align;
    int pieces;
};

struct worker {
    struct pool *pool;
    pthread_t thread;
    int number;
};

struct pool {
    struct worker *workers; /* threads - 1; worker 0 is the caller */
    int threads;
    struct job job;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    atomic_uint generation; /* job number */
    atomic_int pending;     /* workers still at work */
    atomic_bool quit;
};

static void run_piece(const struct job *job, int piece)
{
    if (piece >= job->pieces) {
        return;
    }
    size_t blocks = (job->count + job->align - 1) / job->align;
    size_t n = (size_t)job->pieces;
    size_t begin = blocks * (size_t)piece / n * job->align;
    size_t end = blocks * ((size_t)piece + 1) / n * job->align;
    if (end > job->count) {
        end = job->count;
    }
    if (begin < end) {
        job->fn(job->ctx, begin, end, piece);
    }
}

static unsigned wait_for_job(struct pool *pool, unsigned seen)
{
    for (int i = 0; i < SPIN_ROUNDS; i++) {
        unsigned now = atomic_load_explicit(&pool->generation, memory_order_acquire);
        if (now != seen) {
            return now;
        }
        if (i % 64 == 63) {
            sched_yield();
        }
    }
    pthread_mutex_lock(&pool->lock);
    unsigned now;
    while ((now = atomic_load(&pool->generation)) == seen) {
        pthread_cond_wait(&pool->wake, &pool->lock);
    }
    pthread_mutex_unlock(&pool->lock);
    return now;
}

static void *run_worker(void *arg)
{
    struct worker *worker = arg;
    struct pool *pool = worker->pool;
    unsigned seen = 0;
    for (;;) {
        seen = wait_for_job(pool, seen);
        if (atomic_load(&pool->quit)) {
            return NULL;
        }
        run_piece(&pool->job, worker->number);
        atomic_fetch_sub_explicit(&pool->pending, 1, memory_order_release);
    }
}

static void announce_job(struct pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    atomic_fetch_add_explicit(&pool->generation, 1, memory_order_release);
    pthread_cond_broadcast(&pool->wake);
    pthread_mutex_unlock(&pool->lock);
}

struct pool *pool_create(int threads)
{
    struct pool *pool = calloc(1, sizeof(*pool));
    if (!pool) {
        return NULL;
    }
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->wake, NULL);
    pool->threads = 1;
    pool->workers = calloc((size_t)(threads > 1 ? threads - 1 : 1), sizeof(*pool->workers));
    for (int i = 1; pool->workers && i < threads; i++) {
        struct worker *worker = &pool->workers[i - 1];
        *worker = (struct worker){.pool = pool, .number = i};
        if (pthread_create(&worker->thread, NULL, run_worker, worker) != 0) {
            break;
        }
        pool->threads++;
    }
    if (!pool->workers || pool->threads < threads) {
        pool_destroy(pool);
        return NULL;
    }
    return pool;
}

void pool_destroy(struct pool *pool)
{
    if (!pool) {
        return;
    }
    atomic_store(&pool->quit, true);
    announce_job(pool);
    for (int i = 1; i < pool->threads; i++) {
        pthread_join(pool->workers[i - 1].thread, NULL);
    }
    pthread_cond_destroy(&pool->wake);
    pthread_mutex_destroy(&pool->lock);
    free(pool->workers);
    free(pool);
}

int pool_threads(const struct pool *pool)
{
    return pool ? pool->threads : 1;
}

void pool_for(struct pool *pool, size_t count, size_t align, size_t grain, pool_fn fn, void *ctx)
{
    size_t pieces = grain > 0 ? count / grain : count;
    if (pieces > (size_t)pool_threads(pool)) {
        pieces = (size_t)pool_threads(pool);
    }
    if (pieces <= 1) {
        if (count > 0) {
            fn(ctx, 0, count, 0);
        }
        return;
    }
    pool->job =
        (struct job){.fn = fn, .ctx = ctx, .count = count, .align = align, .pieces = (int)pieces};
    atomic_store(&pool->pending, pool->threads - 1);
    announce_job(pool);
    run_piece(&pool->job, 0);
    for (unsigned i = 0; atomic_load_explicit(&pool->pending, memory_order_acquire) > 0; i++) {
        if (i % 256 == 255) {
            sched_yield();
        }
    }
}
