// SPDX-License-Identifier: MIT
#include "timing.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

static double get_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Seconds since gradb was left; they count for the phase. */
static double take_time(struct timing *timing)
{
    double now = get_seconds(), took = now - timing->since;
    timing->spent[timing->phase] += took;
    timing->since = now;
    return took;
}

void timing_begin(struct timing *timing)
{
    timing->on = timing->wanted;
    timing->phase = 0;
    timing->op_count = 0;
    memset(timing->spent, 0, sizeof(timing->spent));
    timing->since = get_seconds();
}

void timing_phase(struct timing *timing, enum phase phase)
{
    if (timing->on) {
        take_time(timing);
        timing->phase = phase;
    }
}

void timing_ran(struct timing *timing, gradb_node node)
{
    if (!timing->on) {
        return;
    }
    double took = take_time(timing);
    if (timing->op_count == timing->op_cap) {
        size_t cap = timing->op_cap ? 2 * timing->op_cap : 256;
        gradb_op_time *grown = realloc(timing->op, cap * sizeof(*grown));
        if (!grown) {
            return;
        }
        timing->op = grown;
        timing->op_cap = cap;
    }
    timing->op[timing->op_count++] = (gradb_op_time){node, 1, took};
}

void timing_resume(struct timing *timing)
{
    if (timing->on) {
        timing->since = get_seconds();
    }
}

void timing_end(struct timing *timing, gradb *g)
{
    if (!timing->on || timing->op_count == 0) {
        return;
    }
    take_time(timing);
    gradb_times times = {.data = -1,
                         .forward = timing->spent[PHASE_FORWARD],
                         .backward = timing->spent[PHASE_BACKWARD],
                         .optimizer = timing->spent[PHASE_OPTIMIZER],
                         .gap = timing->spent[0],
                         .ops = timing->op,
                         .op_count = timing->op_count};
    times.total = times.forward + times.backward + times.optimizer + times.gap;
    gradb_timing(g, &times);
    gradb_timing_facts(g, "{\"framework\":\"charlm\",\"device\":\"cpu\"}");
}

void timing_free(struct timing *timing)
{
    free(timing->op);
}
