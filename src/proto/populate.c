// SPDX-License-Identifier: GPL-3.0-or-later
#include "proto/populate.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* since Linux 5.14; headers may be older than the kernel */
#endif

#define PAGE  ((size_t)4096)
#define PIECE ((size_t)1 << 20) /* a millisecond of work, for which a stop may have to wait */

struct gd_populate {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    char *data;
    size_t bytes; /* whole pages */
    size_t arrived;
    bool stop;
};

/* The next piece, once it is close enough to what has arrived; false at the end. If the received
 * bytes catch up, the reader faults in one piece by itself while this thread prepares the next: two
 * at work, seldom on the same page. */
static bool next_piece(struct gd_populate *populate, size_t *at, size_t *len)
{
    pthread_mutex_lock(&populate->lock);
    for (;;) {
        size_t near = (populate->arrived + PIECE) & ~(PAGE - 1);
        size_t from = *at > near ? *at : near;
        if (populate->stop || from >= populate->bytes) {
            break;
        }
        *at = from;
        *len = populate->bytes - from < PIECE ? populate->bytes - from : PIECE;
        if (from + *len - populate->arrived <= GD_POPULATE_AHEAD) {
            pthread_mutex_unlock(&populate->lock);
            return true;
        }
        pthread_cond_wait(&populate->changed, &populate->lock);
    }
    pthread_mutex_unlock(&populate->lock);
    return false;
}

static void *run_thread(void *ctx)
{
    struct gd_populate *populate = ctx;
    size_t at = 0, len;
    while (next_piece(populate, &at, &len) &&
           madvise(populate->data + at, len, MADV_POPULATE_WRITE) == 0) {
        at += len;
    }
    return NULL;
}

/* The thread blocks all signals: they belong to the program's own threads. */
static bool start_thread(struct gd_populate *populate)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool started = pthread_create(&populate->thread, NULL, run_thread, populate) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

struct gd_populate *gd_populate_start(void *data, size_t bytes)
{
    if (bytes < GD_POPULATE_MIN) {
        return NULL;
    }
    struct gd_populate *populate = calloc(1, sizeof(*populate));
    if (!populate) {
        return NULL;
    }
    pthread_mutex_init(&populate->lock, NULL);
    pthread_cond_init(&populate->changed, NULL);
    populate->data = data;
    populate->bytes = bytes & ~(PAGE - 1);
    if (start_thread(populate)) {
        return populate;
    }
    pthread_cond_destroy(&populate->changed);
    pthread_mutex_destroy(&populate->lock);
    free(populate);
    return NULL;
}

static void tell_thread(struct gd_populate *populate, size_t arrived, bool stop)
{
    pthread_mutex_lock(&populate->lock);
    populate->arrived = arrived;
    populate->stop = stop;
    pthread_cond_signal(&populate->changed);
    pthread_mutex_unlock(&populate->lock);
}

void gd_populate_arrived(struct gd_populate *populate, size_t arrived)
{
    if (populate) {
        tell_thread(populate, arrived, false);
    }
}

void gd_populate_stop(struct gd_populate *populate)
{
    if (!populate) {
        return;
    }
    tell_thread(populate, populate->arrived, true);
    pthread_join(populate->thread, NULL);
    pthread_cond_destroy(&populate->changed);
    pthread_mutex_destroy(&populate->lock);
    free(populate);
}
