// SPDX-License-Identifier: MIT
#include "base/workers.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#define WORTH_WAKING ((size_t)4 << 20)   /* bytes */
#define WORTH_TAKING ((size_t)256 << 10) /* bytes, for threads that are awake */

struct call { /* on its caller's stack; in the list while it wants helpers */
    gd_work_fn work;
    void *ctx;
    size_t count;
    atomic_size_t next; /* the first part not taken */
    int wanted;         /* helpers that may still join */
    int helpers;        /* at work */
    pthread_cond_t left;
    struct call *next_call;
    int most; /* threads of a team that may join */
    atomic_int joined;
};

struct pool {
    pid_t pid; /* owner of the threads: a forked process inherits the memory, not the threads */
    struct pool *before_fork;
    pthread_mutex_t mutex;
    pthread_cond_t wake;
    struct call *calls;
    int threads;
};

/* The pool of this process, or of the one that it was forked from, whose mutex may stay locked
 * forever. Other pools stay referenced, so that it is not reported as a leak. */
static _Atomic(struct pool *) current;

static struct pool *get_pool(void)
{
    struct pool *old = atomic_load(&current), *pool;
    pid_t pid = getpid();

    if (old && old->pid == pid) {
        return old;
    }
    pool = calloc(1, sizeof(*pool));
    if (!pool) {
        return NULL;
    }
    pool->pid = pid;
    pool->before_fork = old;
    pthread_mutex_init(&pool->mutex, NULL);
    pthread_cond_init(&pool->wake, NULL);
    if (atomic_compare_exchange_strong(&current, &old, pool)) {
        return pool;
    }
    /* another thread was faster */
    pthread_cond_destroy(&pool->wake);
    pthread_mutex_destroy(&pool->mutex);
    free(pool);
    return old;
}

static void do_parts(struct call *call)
{
    size_t part;

    while ((part = atomic_fetch_add(&call->next, 1)) < call->count) {
        call->work(call->ctx, part);
    }
}

/* ---- the program's threads ------------------------------------------------------------------- */

static struct gd_openmp team;

void gd_workers_use_openmp(const struct gd_openmp *openmp)
{
    team = *openmp;
}

/* Not where the program itself computes with one thread, nor inside a region. */
static bool has_team(void)
{
    return team.parallel && !team.in_parallel() && team.max_threads() > 1;
}

bool gd_workers_pay(size_t bytes)
{
    return bytes >= WORTH_WAKING || (bytes >= WORTH_TAKING && has_team());
}

static void join_call(void *ctx)
{
    struct call *call = ctx;
    if (atomic_fetch_add(&call->joined, 1) < call->most) {
        do_parts(call);
    }
}

/* ---- threads of our own ---------------------------------------------------------------------- */

static struct call *find_call(struct pool *pool)
{
    for (struct call *call = pool->calls; call; call = call->next_call) {
        if (call->wanted > 0) {
            return call;
        }
    }
    return NULL;
}

static void *run_helper(void *arg)
{
    struct pool *pool = arg;
    struct call *call;

    pthread_mutex_lock(&pool->mutex);
    for (;;) {
        while (!(call = find_call(pool))) {
            pthread_cond_wait(&pool->wake, &pool->mutex);
        }
        call->wanted--;
        call->helpers++;
        pthread_mutex_unlock(&pool->mutex);
        do_parts(call);
        pthread_mutex_lock(&pool->mutex);
        if (--call->helpers == 0) {
            pthread_cond_signal(&call->left);
        }
    }
    return NULL;
}

/* Creates up to `wanted` threads; fewer if the system refuses. The mutex is held. */
static void make_threads(struct pool *pool, int wanted)
{
    pthread_attr_t attr;
    sigset_t all, before;
    pthread_t thread;

    if (pool->threads >= wanted || pthread_attr_init(&attr)) {
        return;
    }
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (pool->threads < wanted && pthread_create(&thread, &attr, run_helper, pool) == 0) {
        pool->threads++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
}

static void remove_call(struct pool *pool, struct call *call)
{
    struct call **link = &pool->calls;

    while (*link != call) {
        link = &(*link)->next_call;
    }
    *link = call->next_call;
}

void gd_workers_run(int threads, size_t count, gd_work_fn work, void *ctx)
{
    struct call call = {.work = work, .ctx = ctx, .count = count, .most = threads};
    bool shared = threads > 1 && count > 1;

    if (shared && has_team()) {
        team.parallel(join_call, &call, 0, 0);
        return;
    }
    struct pool *pool = shared ? get_pool() : NULL;
    if (!pool) {
        do_parts(&call);
        return;
    }
    call.wanted = (threads < GD_MAX_WORKERS ? threads : GD_MAX_WORKERS) - 1;
    if ((size_t)call.wanted > count - 1) {
        call.wanted = (int)(count - 1);
    }
    pthread_cond_init(&call.left, NULL);
    pthread_mutex_lock(&pool->mutex);
    make_threads(pool, call.wanted);
    call.next_call = pool->calls;
    pool->calls = &call;
    pthread_cond_broadcast(&pool->wake);
    pthread_mutex_unlock(&pool->mutex);
    do_parts(&call);
    pthread_mutex_lock(&pool->mutex);
    remove_call(pool, &call);
    while (call.helpers > 0) {
        pthread_cond_wait(&call.left, &pool->mutex);
    }
    pthread_mutex_unlock(&pool->mutex);
    pthread_cond_destroy(&call.left);
}
