// SPDX-License-Identifier: MIT
/*
 * Whose turn it is. The functions that a training calls as it goes are for one thread at a time,
 * which need not always be the same: an autograd engine runs hooks on threads of its own while the
 * thread that started it waits. A second thread that comes meanwhile waits here for its turn, also
 * while the first one stands: then the whole training stands.
 *
 * The turn is kept while the lock is given up: during waits, and during calls into the source. A
 * function that is called from inside such a call, by the same thread, finds the turn taken by
 * itself: it does nothing, since the training neither runs nor stops there.
 */
#include "agent/agent_impl.h"

bool agent_turn_take(struct agent *a)
{
    pthread_t self = pthread_self();
    pthread_mutex_lock(&a->lock);
    if (a->taken && pthread_equal(a->holder, self)) {
        pthread_mutex_unlock(&a->lock);
        return false;
    }
    while (a->taken) {
        a->turn_waiters++;
        pthread_cond_wait(&a->go, &a->lock);
        a->turn_waiters--;
    }
    a->taken = true;
    a->holder = self;
    return true;
}

void agent_turn_end(struct agent *a)
{
    a->taken = false;
    if (a->turn_waiters > 0) {
        pthread_cond_broadcast(&a->go);
    }
    pthread_mutex_unlock(&a->lock);
}

void agent_table_lock(struct agent *a)
{
    pthread_t self = pthread_self();
    pthread_mutex_lock(&a->lock);
    while (a->taken && !pthread_equal(a->holder, self)) {
        a->turn_waiters++;
        pthread_cond_wait(&a->go, &a->lock);
        a->turn_waiters--;
    }
}
