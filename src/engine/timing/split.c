// SPDX-License-Identifier: GPL-3.0-or-later
#include <float.h>
#include <stdlib.h>

#include "engine/timing/split.h"

#define NEAR 1.05

double gd_split_tail(const struct gd_time_gradient *gradient, int count, const int *end,
                     int buckets, double latency, double rate)
{
    double done = 0;
    int at = 0;
    for (int i = 0; i < buckets; i++) {
        double bytes = 0;
        for (; at < end[i] && at < count; at++) {
            bytes += (double)gradient[at].bytes;
        }
        double ready = at > 0 ? gradient[at - 1].ready : 0;
        done = (done > ready ? done : ready) + latency + bytes / rate;
    }
    return count > 0 ? done - gradient[count - 1].ready : 0;
}

double gd_split_tail_of_limit(const struct gd_time_gradient *gradient, int count, double limit,
                              double latency, double rate, int *buckets)
{
    double done = 0, bytes = 0;
    *buckets = 0;
    for (int i = 0; i < count; i++) {
        bytes += (double)gradient[i].bytes;
        if (bytes >= limit || i == count - 1) {
            double ready = gradient[i].ready;
            done = (done > ready ? done : ready) + latency + bytes / rate;
            bytes = 0;
            ++*buckets;
        }
    }
    return count > 0 ? done - gradient[count - 1].ready : 0;
}

/* done[b][i]: when the first i gradients are reduced at the earliest, in b buckets; from[b][i]: how
 * many of them are in the buckets before the last one. */
static void fill_row(const struct gd_time_gradient *gradient, int count, const double *sum,
                     double latency, double rate, const double *before, double *done, int *from)
{
    for (int i = 1; i <= count; i++) {
        done[i] = DBL_MAX;
        for (int j = 0; j < i; j++) {
            double begins = before[j] > gradient[i - 1].ready ? before[j] : gradient[i - 1].ready;
            double ends = begins + latency + (sum[i] - sum[j]) / rate;
            if (before[j] < DBL_MAX && ends < done[i]) {
                done[i] = ends;
                from[i] = j;
            }
        }
    }
    done[0] = DBL_MAX;
}

static void choose_split(const double *done, const int *from, int count, double last,
                         struct gd_split *ret)
{
    size_t width = (size_t)count + 1;
    double least = DBL_MAX;
    for (int b = 1; b <= GD_SPLIT_MOST; b++) {
        double tail = done[(size_t)b * width + (size_t)count] - last;
        least = tail < least ? tail : least;
    }
    int best = 1;
    while (best < GD_SPLIT_MOST &&
           done[(size_t)best * width + (size_t)count] - last > least * NEAR) {
        best++;
    }
    ret->count = best;
    ret->tail = done[(size_t)best * width + (size_t)count] - last;
    for (int b = best, at = count; b > 0; b--) {
        ret->end[b - 1] = at;
        at = from[(size_t)b * width + (size_t)at];
    }
}

int gd_split_best(const struct gd_time_gradient *gradient, int count, double latency, double rate,
                  struct gd_split *ret, struct gd_err *err)
{
    size_t width = (size_t)count + 1;
    double *sum = calloc(width, sizeof(*sum));
    double *done = calloc(width * (GD_SPLIT_MOST + 1), sizeof(*done));
    int *from = calloc(width * (GD_SPLIT_MOST + 1), sizeof(*from));
    int rc = count > 0 && rate > 0 ? GD_OK : GD_EINVAL;
    if (!sum || !done || !from) {
        rc = gd_fail_nomem(err);
    }
    if (rc == GD_OK) {
        for (int i = 0; i < count; i++) {
            sum[i + 1] = sum[i] + (double)gradient[i].bytes;
            done[i + 1] = DBL_MAX; /* without a bucket, only no gradient at all is reduced */
        }
        for (size_t b = 1; b <= GD_SPLIT_MOST; b++) {
            fill_row(gradient, count, sum, latency, rate, done + (b - 1) * width, done + b * width,
                     from + b * width);
        }
        choose_split(done, from, count, gradient[count - 1].ready, ret);
    }
    free(sum);
    free(done);
    free(from);
    return rc;
}
