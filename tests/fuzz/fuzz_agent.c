// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * A debugger that asks libgradb for anything at all. The input is a sequence of messages, each a
 * length of two bytes (little endian) and that many bytes of a ToTrainer. The training reports two
 * metrics in a step after each of them, and every condition of an event is judged.
 */
#include <math.h>

#include "agent/agent_control.h"
#include "agent/agent_event.h"
#include "agent/agent_graph.h"
#include "agent/agent_metric.h"
#include "agent/agent_source.h"
#include "agent/agent_words.h"
#include "agent/line/agent_line.h"
#include "fuzz.h"

static void check_lines(void *ctx, const gradb_line *lines, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        FUZZ_CHECK(strlen(lines[i].file) + strlen(lines[i].function) < 65536 && lines[i].line >= 0);
    }
}

/* Without a connection and its thread. */
static struct agent *make_agent(void)
{
    struct agent *a = calloc(1, sizeof(*a));

    FUZZ_CHECK(a && pthread_mutex_init(&a->lock, NULL) == 0 &&
               pthread_cond_init(&a->go, NULL) == 0);
    gd_arena_init(&a->arena, 1 << 20);
    a->reports_end = &a->reports;
    a->wake[0] = a->wake[1] = -1;
    a->scalars = calloc(AGENT_MAX_SCALARS, sizeof(*a->scalars));
    FUZZ_CHECK(a->scalars);
    a->source.lines = check_lines;
    a->ask = calloc(1, sizeof(*a->ask));
    FUZZ_CHECK(a->ask);
    POKE(a->as_of, -1);
    return a;
}

static void free_agent(struct agent *a)
{
    agent_control_clear(a);
    agent_words_drop(a);
    agent_event_free(a);
    agent_graph_free(a);
    free(a->kept.nodes);
    agent_line_free(a);
    free(a->ask);
    free(a->later);
    free(a->scalars);
    pthread_cond_destroy(&a->go);
    pthread_mutex_destroy(&a->lock);
    free(a);
}

static void ask_metric(struct agent *a, const char *request)
{
    char text[160] = "", *reply = NULL;

    FUZZ_CHECK((agent_metric_request(a, request, &reply, text) == -1) == (reply != NULL));
    free(reply);
}

/* The number of a step is its value, NaN in some. */
static void run_step(struct agent *a, int64_t step)
{
    FUZZ_CHECK(!agent_event_step(a, true, step));
    POKE(a->step, step);
    POKE(a->in_step, 1);
    agent_scalar(a, "loss", step % 4 == 3 ? NAN : (double)step, step);
    agent_scalar(a, "accuracy", 1.0 / (double)step, step - step % 2);
    POKE(a->in_step, 0);
    FUZZ_CHECK(!agent_event_step(a, false, step)); /* nobody is connected who could stop it */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct agent *a = make_agent();

    for (int64_t step = 1; size >= 2; step++) {
        size_t len = data[0] | (size_t)data[1] << 8;

        data += 2, size -= 2;
        len = len < size ? len : size;
        agent_to *m = gradb__v1__to_trainer__unpack(NULL, len, data);
        data += len, size -= len;
        bool kept = m && agent_control(a, m);
        if (m && !kept && m->msg_case == GRADB__V1__TO_TRAINER__MSG_COMMAND) {
            ask_metric(a, m->command->args);
        }
        if (m && !kept) {
            gradb__v1__to_trainer__free_unpacked(m, NULL);
        }
        pthread_mutex_lock(&a->lock);
        agent_source_lines(a);
        pthread_mutex_unlock(&a->lock);
        run_step(a, step);
    }
    free_agent(a);
    return 0;
}
