// SPDX-License-Identifier: GPL-3.0-or-later
/* Advice about the reduction of gradients. */
#include <stdio.h>
#include <string.h>

#include "engine/format.h"
#include "engine/timing/advice_impl.h"
#include "engine/timing/split.h"

#define TAIL_SHARE 0.10 /* of a step */
#define LARGE      0.6  /* of all bytes, in one bucket */
#define HIDDEN     0.8  /* a predicted tail above this share of the measured one is not worth it */
#define MIB        1048576.0

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
