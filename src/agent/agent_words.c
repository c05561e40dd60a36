// SPDX-License-Identifier: MIT
/*
 * What a training run reports as it proceeds, and what it is asked. Any thread may report at any
 * time.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent_core.h"
#include "agent/agent_event.h"
#include "agent/agent_metric.h"
#include "agent/agent_watch.h"
#include "agent/agent_words.h"
#include "proto/envelope.h"

#define LATE         UINT64_C(1000000000) /* nanoseconds after an interrupt */
#define MAX_OP_TIMES 16384                /* per step */
#define MAX_FACTS    ((size_t)1 << 20)

/* Makes room in a queue for the I/O thread; if it is full, drops the older half. */
static void make_room(void *items, size_t *count, size_t most, size_t size)
{
    if (*count == most) {
        *count = most / 2;
        memmove(items, (char *)items + (most - *count) * size, *count * size);
    }
}

int64_t agent_number_step(const struct agent *a)
{
    if (PEEK(a->as_of) >= 0) {
        return PEEK(a->as_of);
    }
    return agent_said_step(a, PEEK(a->step));
}

bool agent_is_late(const struct agent *a, int64_t step)
{
    return (!PEEK(a->in_step) && !a->looking) || step != PEEK(a->step);
}

void agent_scalar(struct agent *a, const char *name, double value, int64_t step)
{
    size_t before = a->scalar_count;
    make_room(a->scalars, &a->scalar_count, AGENT_MAX_SCALARS, sizeof(*a->scalars));
    a->scalars_told += 1 - (before - a->scalar_count);
    struct agent_scalar *s = &a->scalars[a->scalar_count++];
    size_t len = strnlen(name, sizeof(s->name) - 1);
    memcpy(s->name, name, len);
    s->name[len] = '\0';
    s->value = value;
    s->step = step;
    s->when = PEEK(a->step);
    s->late = agent_is_late(a, step);
    if (a->scalar_items) {
        agent_watch_scalar(a, name, value, step);
    }
    agent_event_scalar(a, s);
}

void gradb_scalar(gradb *g, const char *name, double value)
{
    struct agent *a = agent_of(g);
    if (!a || !name || !PEEK(a->connected) || !agent_usable(a)) {
        return;
    }
    pthread_mutex_lock(&a->lock);
    int64_t step = agent_number_step(a);
    agent_scalar(a, name, value, step);
    agent_metric_scalar(a, name, value, step);
    pthread_mutex_unlock(&a->lock);
}

/* What is checked at the end of the step comes after gradb_on_look's call, which reports them. */
bool gradb_wants_numbers(gradb *g)
{
    struct agent *a = agent_of(g);
    if (!agent_usable(a)) {
        return false;
    }
    pthread_mutex_lock(&a->lock);
    bool wants = !a->on_look || a->exact_items || a->seen_items || PEEK(a->has_metrics) ||
                 agent_event_tests_numbers(a);
    pthread_mutex_unlock(&a->lock);
    return wants;
}

void gradb_as_of(gradb *g, int64_t step)
{
    struct agent *a = agent_of(g);
    if (a) {
        POKE(a->as_of, step);
    }
}

void gradb_log(gradb *g, const char *line)
{
    struct agent *a = agent_of(g);
    if (!a || !line || !PEEK(a->connected) || !agent_usable(a)) {
        return;
    }
    pthread_mutex_lock(&a->lock);
    char *copy = a->log_count < AGENT_MAX_LOG ? strndup(line, AGENT_MAX_LINE) : NULL;
    bool first = a->log_count == 0;
    if (copy) {
        a->log[a->log_count++] = copy;
    } else {
        a->log_dropped++;
    }
    pthread_mutex_unlock(&a->lock);
    if (first) {
        agent_wake(a);
    }
}

bool gradb_wants_stop(gradb *g)
{
    const struct agent *a = agent_of(g);
    return a && PEEK(a->wants_stop) && agent_usable(a);
}

bool gradb_given_up(const gradb *g)
{
    const struct agent *a = (const struct agent *)g;
    return a && PEEK(a->given_up);
}

bool gradb_wants_checkpoint(gradb *g)
{
    struct agent *a = agent_of(g);
    return a && PEEK(a->wants_checkpoint) && agent_usable(a) &&
           atomic_exchange(&a->wants_checkpoint, 0) != 0;
}

/* A debugger is connected. */
static bool is_heard(const struct agent *a)
{
    return a && PEEK(a->connected) && agent_usable(a);
}

void agent_words_queue(struct agent *a, const ProtobufCMessage *message)
{
    pthread_mutex_lock(&a->lock);
    if (a->link == LINK_UP && !agent_queue(a, message)) {
        agent_set_error(a, "messages were dropped because the debugger is too slow");
    }
    pthread_mutex_unlock(&a->lock);
}

void gradb_event(gradb *g, const char *kind, const char *text, gradb_node node)
{
    struct agent *a = agent_of(g);
    char kept_kind[64], kept_text[AGENT_MAX_LINE];
    if (!is_heard(a) || !kind) {
        return;
    }
    snprintf(kept_kind, sizeof(kept_kind), "%s", kind);
    snprintf(kept_text, sizeof(kept_text), "%s", text ? text : "");
    Gradb__V1__Event m = GRADB__V1__EVENT__INIT;
    m.kind = kept_kind;
    m.text = kept_text;
    m.step = PEEK(a->step);
    m.node = node;
    agent_words_queue(a, &m.base);
    agent_wake(a);
}

void agent_words_drop(struct agent *a)
{
    while (a->reports) {
        struct agent_packet *next = a->reports->next;
        free(a->reports);
        a->reports = next;
    }
    a->reports_end = &a->reports;
    a->reports_bytes = 0;
    for (size_t i = 0; i < a->log_count; i++) {
        free(a->log[i]);
    }
    a->log_count = a->scalar_count = a->times_count = 0;
    a->scalars_told = 0;
    a->log_dropped = 0;
}

void agent_tell_late(struct agent *a)
{
    static const char *const phases[] = {"", "the forward phase of ", "the backward phase of ",
                                         "the optimizer phase of "};
    if (!a->interrupt.wanted || a->stopped || !a->interrupt.heard ||
        agent_now_ns() - a->interrupt.heard < LATE) {
        return;
    }
    a->interrupt.heard = 0;
    unsigned phase = PEEK(a->phase);
    const struct agent_node *last = agent_node_at(a, PEEK(a->last_node));
    char text[512];
    snprintf(text, sizeof(text),
             "still %s %sstep %lld%s%.200s: it stops at the next operator that gradb sees",
             PEEK(a->in_step) ? "in" : "after", phases[phase < 4 ? phase : 0],
             (long long)PEEK(a->step), last ? ", after " : "", last ? last->name : "");
    Gradb__V1__Event m = GRADB__V1__EVENT__INIT;
    m.kind = gd_envelope_text("busy");
    m.text = text;
    m.step = PEEK(a->step);
    agent_queue(a, &m.base);
}

void agent_fill_timing(Gradb__V1__Timing *m, const struct agent_times *from)
{
    m->step = from->step;
    m->total = from->times.total;
    m->data = from->times.data;
    m->forward = from->times.forward;
    m->backward = from->times.backward;
    m->optimizer = from->times.optimizer;
    m->gap = from->times.gap;
    m->compiled = from->compiled;
}

static void queue_with_ops(struct agent *a, const gradb_times *times)
{
    size_t count = times->op_count < MAX_OP_TIMES ? times->op_count : MAX_OP_TIMES;
    Gradb__V1__OpTime *ops = calloc(count, sizeof(*ops));
    Gradb__V1__OpTime **list = calloc(count, sizeof(Gradb__V1__OpTime *));
    Gradb__V1__Timing m = GRADB__V1__TIMING__INIT;
    for (size_t i = 0; ops && list && i < count; i++) {
        gradb__v1__op_time__init(&ops[i]);
        ops[i].node = times->ops[i].node;
        ops[i].calls = times->ops[i].calls;
        ops[i].seconds = times->ops[i].seconds;
        list[m.n_ops++] = &ops[i];
    }
    m.ops = list;
    agent_fill_timing(&m, &(struct agent_times){*times, a->compiled, PEEK(a->step)});
    agent_words_queue(a, &m.base);
    free(list);
    free(ops);
}

/* The I/O thread polls and packs them: waking it in every step, or packing here, would cost
 * more. */
static void keep_times(struct agent *a, const gradb_times *times)
{
    pthread_mutex_lock(&a->lock);
    make_room(a->times, &a->times_count, AGENT_MAX_TIMES, sizeof(*a->times));
    if (a->link == LINK_UP) {
        a->times[a->times_count++] = (struct agent_times){*times, a->compiled, PEEK(a->step)};
    }
    pthread_mutex_unlock(&a->lock);
}

void gradb_timing_compiled(gradb *g, double seconds)
{
    struct agent *a = agent_of(g);
    if (is_heard(a)) {
        a->compiled = seconds;
    }
}

void gradb_timing(gradb *g, const gradb_times *times)
{
    struct agent *a = agent_of(g);
    if (!is_heard(a) || !times) {
        return;
    }
    if (times->ops && times->op_count > 0) {
        queue_with_ops(a, times);
    } else {
        keep_times(a, times);
    }
    a->compiled = 0;
}

void gradb_timing_facts(gradb *g, const char *json)
{
    struct agent *a = agent_of(g);
    if (!is_heard(a) || !json || strlen(json) > MAX_FACTS) {
        return;
    }
    Gradb__V1__TimingFacts m = GRADB__V1__TIMING_FACTS__INIT;
    m.json = gd_envelope_text(json);
    agent_words_queue(a, &m.base);
}
