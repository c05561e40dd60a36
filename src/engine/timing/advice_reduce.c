// SPDX-License-Identifier: GPL-3.0-or-later
/* Advice about the reduction of gradients, and other collectives. */
#include <stdio.h>
#include <string.h>

#include "engine/format.h"
#include "engine/timing/advice_impl.h"
#include "engine/timing/split.h"

#define TAIL_SHARE 0.10 /* of a step */
#define LARGE      0.6  /* of all bytes, in one bucket */
#define HIDDEN     0.8  /* a predicted tail above this share of the measured one is not worth it */
#define MIB        1048576.0
#define SHARE      0.10    /* of a step, in collectives that the program calls */
#define FEWEST     8       /* steps in which they were counted */
#define MANY       8       /* calls per step at one line */
#define SMALL      65536   /* bytes of each of them */
#define LARGE_SUM  1048576 /* bytes per step: below, waiting is for the slowest rank */

/* The limit, a power of two of MiB, whose buckets leave the shortest tail. */
static double find_limit(const struct gd_time_facts *facts, double rate, double *tail, int *buckets)
{
    double best = 0;
    for (double limit = 1; limit <= 4096; limit *= 2) {
        int count;
        double left = gd_split_tail_of_limit(facts->gradient, facts->gradient_count, limit * MIB, 0,
                                             rate, &count);
        if (count <= 4 * GD_SPLIT_MOST && (best == 0 || left < *tail)) {
            best = limit;
            *tail = left;
            *buckets = count;
        }
    }
    return best;
}

static void say_ddp(const struct gd_time_facts *facts, double rate, double *tail, char *out,
                    size_t size)
{
    int buckets = 0;
    double limit = find_limit(facts, rate, tail, &buckets);
    snprintf(out, size, "DistributedDataParallel(..., bucket_cap_mb=%.0f) makes %d buckets", limit,
             buckets);
}

/* all_reduce_fusion_config has the number of the last parameter of each part. */
static void say_fusion(const struct gd_split *split, char *out, size_t size)
{
    size_t used = (size_t)snprintf(out, size, "all_reduce_fusion_config=[");
    for (int i = 0; i < split->count && used + 16 < size; i++) {
        used += (size_t)snprintf(out + used, size - used, "%s%d", i ? ", " : "", split->end[i]);
    }
    snprintf(out + used, size - used, "]");
}

/* MindSpore's reducer, where Python calls it: no split would let it begin earlier. */
static bool advise_on_reducer(const struct advice_input *in, double tail, struct gd_advice *ret)
{
    const struct gd_time_facts *facts = &in->report->facts;
    char now[32];
    return advice_say(ret, tail / in->median, "",
                      "%s of a step (%.0f %%) pass in %s on %lld ranks, with waiting for the "
                      "slowest one: in PyNative mode it begins when the backward pass has ended; "
                      "in graph mode all_reduce_fusion_config splits it, so that parts can run "
                      "beside the backward pass (how much that hides was not measured)",
                      advice_time(tail, now), 100 * tail / in->median, facts->reducer,
                      (long long)facts->world_size);
}

#define WHY 200

static void say_prediction(const struct advice_input *in, double tail, double rate, char why[WHY])
{
    char text[32];
    if (in->is_cpu) {
        snprintf(
            why, WHY,
            "how much that hides is not predicted: on a CPU, reducing takes the processors that "
            "the backward pass needs");
    } else {
        snprintf(why, WHY,
                 "predicted tail %s (at %.0f MB/s, measured; a call's latency is unknown with one "
                 "size)",
                 advice_time(tail, text), rate / 1e6);
    }
}

bool advice_on_reduction(const struct advice_input *in, struct gd_advice *ret)
{
    const struct gd_time_facts *facts = &in->report->facts;
    struct gd_time_spread tail = gd_time_spread_of(in->report, GD_SERIES_TAIL, GD_TIME_TOTAL);
    double bytes = 0, largest = 0, predicted;
    struct gd_split split;
    char how[160], now[32], why[WHY], room[40];
    for (int i = 0; i < facts->bucket_count; i++) {
        double bucket = (double)facts->bucket[i];
        bytes += bucket;
        largest = bucket > largest ? bucket : largest;
    }
    if (!facts->reducer[0] || facts->world_size < 2 || tail.count == 0 || in->median <= 0 ||
        tail.median < TAIL_SHARE * in->median) {
        return false;
    }
    if (strcmp(facts->reducer, "DistributedGradReducer") == 0 && facts->bucket_count == 0) {
        return tail.count >= 2 && advise_on_reducer(in, tail.median, ret);
    }
    if (bytes <= 0 || largest < LARGE * bytes || facts->gradient_count < 2) {
        return false;
    }
    double rate = largest / tail.median;
    if (gd_split_best(facts->gradient, facts->gradient_count, 0, rate, &split, NULL) != GD_OK) {
        return false;
    }
    predicted = split.tail;
    if (strcmp(facts->reducer, "DDP") == 0) {
        say_ddp(facts, rate, &predicted, how, sizeof(how));
    } else {
        say_fusion(&split, how, sizeof(how));
    }
    if (predicted > HIDDEN * tail.median) {
        return false;
    }
    say_prediction(in, predicted, rate, why);
    return advice_say(
        ret, tail.median / in->median, "",
        "%s of a step (%.0f %%) pass in AllReduce after the last gradient: %d bucket%s, the "
        "largest of %s, leave%s little to run beside the backward pass: %s, %s",
        advice_time(tail.median, now), 100 * tail.median / in->median, facts->bucket_count,
        facts->bucket_count == 1 ? "" : "s", gd_format_bytes((uint64_t)largest, room, sizeof(room)),
        facts->bucket_count == 1 ? "s" : "", how, why);
}

/* ---- collectives that the program calls itself ----------------------------------------------- */

/* Of a step; where the calls only begin the work, their time says nothing about it. */
static double seconds_of(const struct gd_time_collective *call)
{
    return call->on_device > 0 ? 0 : call->seconds / (double)call->steps;
}

static double share_of(const struct gd_time_collective *call)
{
    return call->on_device > 0 ? 0 : call->seconds / call->elapsed;
}

static bool is_small(const struct gd_time_collective *call)
{
    return call->calls >= MANY * (uint64_t)call->steps && call->bytes > 0 &&
           call->bytes / call->calls < SMALL;
}

/* The line that takes the most of those that are small, or of the others. */
static const struct gd_time_collective *find_call(const struct advice_input *in, bool small)
{
    const struct gd_time_facts *facts = &in->report->facts;
    const struct gd_time_collective *most = NULL;
    for (int i = 0; i < facts->collective_count; i++) {
        const struct gd_time_collective *call = &facts->collective[i];
        bool right = call->bytes > 0 && is_small(call) == small;
        if (right && (!most || seconds_of(call) > seconds_of(most))) {
            most = call;
        }
    }
    return most && most->steps >= FEWEST && share_of(most) >= SHARE ? most : NULL;
}

bool advice_on_small_collectives(const struct advice_input *in, struct gd_advice *ret)
{
    const struct gd_time_collective *call = find_call(in, true);
    char all[32], each[32], size[40];
    if (!call) {
        return false;
    }
    double seconds = seconds_of(call), calls = (double)call->calls / (double)call->steps;
    return advice_say(ret, share_of(call), call->place,
                      "%s of a step (%.0f %%) pass in %.4g calls of %s, of %s each on average: %s "
                      "each, with waiting for the slowest rank: join their tensors in one (a flat "
                      "tensor that is split again afterwards)",
                      advice_time(seconds, all), 100 * share_of(call), calls, call->kind,
                      gd_format_bytes(call->bytes / call->calls, size, sizeof(size)),
                      advice_time(seconds / calls, each));
}

bool advice_on_blocking_collectives(const struct advice_input *in, struct gd_advice *ret)
{
    const struct gd_time_collective *call = find_call(in, false);
    char all[32], size[40];
    if (!call || call->begun > 0 || call->bytes / (uint64_t)call->steps < LARGE_SUM) {
        return false; /* where it is begun earlier, what is left is known to be waiting */
    }
    double seconds = seconds_of(call), calls = (double)call->calls / (double)call->steps;
    return advice_say(
        ret, share_of(call), call->place,
        "%s of a step (%.0f %%) pass in %s (%.4g %s, %s), with waiting for the slowest rank, and "
        "this thread computes nothing meanwhile: begin each part with async_op=True as soon as its "
        "gradients are ready, and wait for all before the optimizer's step; "
        "DistributedDataParallel does that (%s)",
        advice_time(seconds, all), 100 * share_of(call), call->kind, calls,
        calls == 1 ? "call" : "calls",
        gd_format_bytes(call->bytes / (uint64_t)call->steps, size, sizeof(size)),
        in->is_cpu ? "how much that hides is not predicted: on a CPU, reducing takes the "
                     "processors that the backward pass needs"
                   : "how much that hides is not predicted");
}
