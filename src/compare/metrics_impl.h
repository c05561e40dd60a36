// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Between metrics.c, which splits two sources into segments and merges their results, and
 * metrics_block.c, which reads and summarises one block of both.
 */
#ifndef GD_COMPARE_METRICS_IMPL_H
#define GD_COMPARE_METRICS_IMPL_H

#include "base/stats_impl.h"
#include "compare/compare.h"
#include "compare/kernel.h"

#define GD_PAIR_BLOCK 16384 /* elements */

enum gd_pair_mode {
    GD_PAIR_FLOAT32, /* both are floats of at most 32 bits */
    GD_PAIR_FLOAT64, /* at least one is a float, and one needs double */
    GD_PAIR_INT,     /* both are integers or bools */
    GD_PAIR_COMPLEX, /* one is complex */
};

/* value * 2^exp, plus the rounding error: squares of doubles do not overflow. */
struct gd_scaled {
    double value, lost;
    int exp;
};

struct gd_pair_spot { /* a block, rated by its worst element */
    int64_t block;
    double score; /* infinity: a mismatch */
};

struct gd_pair_part {
    struct gd_stats_part a, b;
    uint64_t count, finite, same_nonfinite, mismatch, equal, close, r1k, r5k;
    struct gd_scaled abs, sq, aa, bb, ab;
    double max_abs, max_rel;
    int64_t max_abs_block; /* -1: none */
    uint64_t ulp[GD_ULP_BUCKETS];
    struct gd_pair_spot spot[GD_WORST]; /* worst first; equal ones in tensor order */
    int spot_count;
};

struct gd_pair_job {
    struct gd_source *a, *b;
    struct gd_source_info info_a, info_b;
    enum gd_pair_mode mode;
    enum gd_dtype ulp; /* the coarser type, in which distances are counted; NONE: not floats */
    bool same_type;    /* same stored type: equal bytes are equal values */
    struct gd_pair_rule rule;
    const struct gd_pair_level *level;
    int64_t count;
};

/* Buffers for one block of both: as read, and converted for the kernels. */
struct gd_pair_room {
    unsigned char *raw_a, *raw_b;
    void *wide_a, *wide_b;
    uint32_t *key_a, *key_b;
    void *all;
};
int gd_pair_room_init(const struct gd_pair_job *job, struct gd_pair_room *room, struct gd_err *err);
void gd_pair_room_deinit(struct gd_pair_room *room);

void gd_pair_part_init(struct gd_pair_part *part);
/* Merge parts in element order, so that the result is always the same. */
void gd_pair_part_merge(struct gd_pair_part *part, const struct gd_pair_part *next);
/* Reads block number `block` of both and adds it. */
int gd_pair_block(const struct gd_pair_job *job, int64_t block, struct gd_pair_room *room,
                  struct gd_pair_part *part, struct gd_err *err);
int gd_pair_read(const struct gd_pair_job *job, int64_t block, struct gd_pair_room *room,
                 size_t *count, struct gd_err *err);

struct gd_pair_element {
    double a, b; /* the magnitude if complex */
    /* |a - b|; valid only if both are finite */
    double distance;
    bool finite; /* both are */
    bool same;   /* otherwise: the same non-finite value */
};
/* One element of what was read. */
struct gd_pair_element gd_pair_at(const struct gd_pair_job *job, const struct gd_pair_room *room,
                                  size_t i);

double gd_scaled_get(const struct gd_scaled *sum);
/* sqrt(x / y) and xy / sqrt(x y), without intermediate overflow. */
double gd_scaled_root_ratio(const struct gd_scaled *x, const struct gd_scaled *y);
double gd_scaled_cosine(const struct gd_scaled *ab, const struct gd_scaled *aa,
                        const struct gd_scaled *bb);

#endif
