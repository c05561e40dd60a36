// SPDX-License-Identifier: MIT
/*
 * The functions that a training run calls as it proceeds admit one thread at a time, not always the
 * same one: an autograd engine runs hooks on its own threads while the thread that started it
 * waits. A second thread waits here for its turn, also while the first one is stopped; then the
 * whole training is stopped.
 *
 * The turn is kept while the lock is released: during waits, and during calls into the source. A
 * function called from inside the source by the same thread finds that it already has the turn, and
 * does nothing, because the training neither runs nor stops there.
 */
#include "agent/agent_turn.h"

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
