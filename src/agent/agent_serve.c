// SPDX-License-Identifier: MIT
/*
 * Requests that only the program can answer. The I/O thread posts one at a time and continues its
 * heartbeats; the stopped thread carries it out, because a framework's state is per thread and a
 * command may take long.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent_core.h"
#include "agent/agent_source.h"
#include "agent/agent_watch.h"
#include "agent/line/agent_line.h"

static void serve_stats(struct agent *a, struct agent_ask *ask)
{
    const Gradb__V1__StatsRequest *m = ask->message->stats;
    const Gradb__V1__Bins *bins = m->options ? m->options->histogram : NULL;
    struct agent_look look = {.code = -1};
    if (bins && agent_bins_ok(bins)) {
        look.histogram = calloc(bins->count, sizeof(*look.histogram));
    }
    uint64_t start = agent_now_ns();
    agent_stats_look(a, m->node, m->slot, m->iteration, m->options, &look);
    look.cost_ns = agent_now_ns() - start;
    ask->look = look;
}

/* The message does not change during the call: only this thread frees it while the request runs. */
static void serve_ask(struct agent *a, struct agent_ask *ask)
{
    ask->state = ASK_RUNNING;
    POKE(a->given_up, 0);
    ask->code = -1;
    switch (ask->message->msg_case) {
    case GRADB__V1__TO_TRAINER__MSG_FETCH: {
        const Gradb__V1__Fetch *m = ask->message->fetch;
        ask->code = agent_find_part(a, m, &ask->value, &ask->cut, ask->text);
        break;
    }
    case GRADB__V1__TO_TRAINER__MSG_STATS: serve_stats(a, ask); break;
    default:
        ask->code = agent_source_command(a, ask->message->command, &ask->reply, ask->text);
        break;
    }
    ask->state = ASK_DONE;
    if (ask->dropped) {
        agent_ask_free(a);
    } else {
        agent_wake(a);
    }
}

bool agent_serve(struct agent *a)
{
    if (a->kept.asked_new || agent_line_is_new(a)) {
        agent_source_keep(a);
    } else if (a->located && a->ask->state != ASK_DONE) {
        agent_source_release(a);
    } else if (a->ask && a->ask->state == ASK_WAITING) {
        serve_ask(a, a->ask);
    } else {
        return false;
    }
    return true;
}

void agent_ask_free(struct agent *a)
{
    struct agent_ask *ask = a->ask;
    if (ask && ask->message) {
        gradb__v1__to_trainer__free_unpacked(ask->message, NULL);
        free(ask->look.histogram);
        free(ask->reply);
        *ask = (struct agent_ask){.state = ASK_NONE};
    }
}

enum agent_ask_state agent_ask_state(struct agent *a)
{
    pthread_mutex_lock(&a->lock);
    enum agent_ask_state state = a->ask->state;
    if (a->ask->dropped && state != ASK_NONE) {
        state = ASK_RUNNING; /* of the previous request, which is still running in the program */
    }
    pthread_mutex_unlock(&a->lock);
    return state;
}

void agent_ask_post(struct agent *a, agent_to *message)
{
    pthread_mutex_lock(&a->lock);
    a->ask->message = message;
    a->ask->state = ASK_WAITING;
    pthread_cond_broadcast(&a->go);
    pthread_mutex_unlock(&a->lock);
}

void agent_ask_end(struct agent *a)
{
    if (!a->ask) {
        return;
    }
    pthread_mutex_lock(&a->lock);
    if (a->ask->state == ASK_DONE) {
        agent_ask_free(a);
        pthread_cond_broadcast(&a->go); /* so that the source is asked to release */
    }
    pthread_mutex_unlock(&a->lock);
}

static bool is_wanted(const struct agent_ask *ask)
{
    return ask->state != ASK_NONE && !ask->dropped;
}

static void drop_ask(struct agent *a)
{
    if (a->ask->state == ASK_RUNNING) {
        a->ask->dropped = true;
        POKE(a->given_up, 1);
    } else {
        agent_ask_free(a);
        pthread_cond_broadcast(&a->go);
    }
}

bool agent_ask_drop(struct agent *a, uint64_t *request)
{
    if (!a->ask) {
        return false;
    }
    pthread_mutex_lock(&a->lock);
    bool wanted = is_wanted(a->ask);
    if (wanted) {
        *request = agent_request_id(a->ask->message);
        drop_ask(a);
    }
    pthread_mutex_unlock(&a->lock);
    return wanted;
}

void agent_ask_cancel(struct agent *a, uint64_t request)
{
    if (!a->ask) {
        return;
    }
    pthread_mutex_lock(&a->lock);
    if (is_wanted(a->ask) && agent_request_id(a->ask->message) == request) {
        drop_ask(a);
    }
    pthread_mutex_unlock(&a->lock);
}

void agent_ask_interrupt(struct agent *a)
{
    if (a->ask && a->ask->state == ASK_RUNNING) {
        POKE(a->given_up, 1);
    }
}
