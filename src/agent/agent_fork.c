// SPDX-License-Identifier: MIT
/*
 * fork copies the training process without libgradb's thread. The child must not touch the lock
 * (that thread may hold it), must not be sent requests, and must not keep the connection open after
 * its parent is gone. pthread_atfork passes no argument, so the agents of the process are listed in
 * a table here: the only global of libgradb.
 *
 * A child unknown to the C library (clone as a raw system call) runs no handler. So each agent has
 * a page that the kernel zeroes in every child (Linux 4.14); where that is unavailable, every hook
 * asks for the process id, which is a system call.
 */
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

#include "agent/agent_fork.h"

#define MAX_AGENTS 8 /* one per process is normal; further ones rely on the process id */

static _Atomic(struct agent *) agents[MAX_AGENTS];

static void in_child(void)
{
    for (size_t i = 0; i < MAX_AGENTS; i++) {
        struct agent *a = atomic_exchange(&agents[i], NULL);
        if (!a) {
            continue;
        }
        atomic_store(&a->pid, 0);
        /* This thread may be inside a call into the source and return into libgradb. The lock may
         * be held by a thread that does not exist here, and nobody would resume this one. */
        pthread_mutex_init(&a->lock, NULL);
        pthread_cond_init(&a->go, NULL);
        a->link = LINK_DOWN;
        a->stopped = a->located = a->kept.asked_new = false;
        atomic_store(&a->attention, 0);
        atomic_store(&a->event_due, 0);
        atomic_store(&a->event_step, INT64_MAX);
        atomic_store(&a->connected, 0);
        atomic_store(&a->wants_stop, 0);
        __atomic_store_n(&a->pub.armed, 0, __ATOMIC_RELAXED);
        int fd = atomic_exchange(&a->socket, -1);
        if (fd >= 0) {
            close(fd);
        }
        close(a->wake[0]);
        close(a->wake[1]);
        a->wake[0] = a->wake[1] = -1;
    }
}

static void install_handlers(void)
{
    pthread_atfork(NULL, NULL, in_child);
}

bool agent_fork_is_ours(const struct agent *a)
{
    pid_t pid = PEEK(a->pid);
    if (pid == 0) {
        return false;
    }
    return a->alive ? atomic_load_explicit(a->alive, memory_order_relaxed) != 0 : pid == getpid();
}

static atomic_int *make_alive(void)
{
#ifdef MADV_WIPEONFORK
    void *page =
        mmap(NULL, sizeof(int), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) {
        return NULL;
    }
    if (madvise(page, sizeof(int), MADV_WIPEONFORK) == 0) {
        atomic_int *alive = page;
        atomic_store(alive, 1);
        return alive;
    }
    munmap(page, sizeof(int));
#endif
    return NULL;
}

void agent_fork_register(struct agent *a)
{
    a->alive = make_alive();
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, install_handlers);
    for (size_t i = 0; i < MAX_AGENTS; i++) {
        struct agent *none = NULL;
        if (atomic_compare_exchange_strong(&agents[i], &none, a)) {
            return;
        }
    }
}

void agent_fork_unregister(struct agent *a)
{
    if (a->alive) {
        munmap(a->alive, sizeof(int));
        a->alive = NULL;
    }
    for (size_t i = 0; i < MAX_AGENTS; i++) {
        struct agent *mine = a;
        if (atomic_compare_exchange_strong(&agents[i], &mine, NULL)) {
            return;
        }
    }
}
