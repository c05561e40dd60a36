// SPDX-License-Identifier: MIT
/*
 * Interface between stats.c, which cuts tensors into blocks and joins the results, and the kernels,
 * which process one block. There is a set of kernels per instruction set, chosen at run time.
 *
 * A block is contiguous, unaligned, and a few thousand elements at most.
 */
#ifndef GD_BASE_STATS_IMPL_H
#define GD_BASE_STATS_IMPL_H

#include "base/stats.h"

struct gd_block_sums {
    double sum, abs, sq; /* of x, |x|, x*x; abs is not finite when an element is not */
    double min, max;
    double least;    /* the smallest |x| */
    uint64_t finite; /* number of finite elements */
    uint64_t signs;  /* finite elements whose sign bit is set */
};

/* Elements near zero. */
struct gd_block_small {
    uint64_t zero, neg_zero;
    /* |x| < tiny, zeros included */
    uint64_t below;
};

/* A block against another. Valid only when all elements are finite, i.e. abs and abs_prev are. */
struct gd_block_pair {
    double delta, abs_delta, sq_delta, max_delta; /* of x - p */
    double abs_prev, sq_prev, dot;
    uint64_t near; /* |x - p| <= atol + rtol * |p| */
};

/* `n`: a positive multiple of step. */
struct gd_stats_kernel {
    size_t step; /* 0: no kernel for the dtype */
    /* sums is the fast one; unless all elements are finite, only its abs is valid. */
    void (*sums)(const unsigned char *x, size_t n, struct gd_block_sums *ret);
    void (*sums_finite)(const unsigned char *x, size_t n, struct gd_block_sums *ret);
    /* Sum of (x - mean)^2 over the finite elements. all: all of them are finite. */
    double (*spread)(const unsigned char *x, size_t n, double mean, bool all);
    void (*small)(const unsigned char *x, size_t n, double tiny, struct gd_block_small *ret);
    uint64_t (*within)(const unsigned char *x, size_t n, struct gd_range range);
    void (*pair)(const unsigned char *x, const unsigned char *p, size_t n, double rtol, double atol,
                 struct gd_block_pair *ret);
};

#define GD_UNITED_STEP 128

struct gd_stats_level {
    const char *name;
    bool (*runs_here)(void);
    /* The bits that (word & mask) + add has for any of the 64-bit words; `bytes` is a multiple of
     * GD_UNITED_STEP. */
    uint64_t (*united)(const unsigned char *x, size_t bytes, uint64_t mask, uint64_t add);
    struct gd_stats_kernel float16, bfloat16, float32, float64;
};

extern const struct gd_stats_level gd_stats_avx512, gd_stats_avx2, gd_stats_neon, gd_stats_portable;

/* Best first; the last one runs everywhere. Ends with NULL. */
extern const struct gd_stats_level *const gd_stats_levels[];
/* The one in use: the first that runs here. */
const struct gd_stats_level *gd_stats_level(void);
/* For tests: from now on this one; NULL: the best again. */
void gd_stats_use_level(const struct gd_stats_level *level);

/* A dtype, as statistics see it. */
struct gd_stats_kind {
    /* Widens `n` elements, `step` bytes apart, to doubles; one part of complex elements. NULL: not
     * a numeric dtype. */
    void (*widen)(const unsigned char *x, size_t step, size_t n, double *out);
    double tiny; /* the smallest normal number; 0: no denormals */
    size_t part; /* bytes from the real to the imaginary part; 0 for real types */
};

/* NULL: not a numeric dtype. */
const struct gd_stats_kind *gd_stats_kind(enum gd_dtype dtype);
/* Widens `n` elements to doubles, complex ones to magnitudes. re and im are scratch of n
 * doubles. */
void gd_stats_widen(enum gd_dtype dtype, const unsigned char *x, size_t n, double *re, double *im);
/* The magnitude of a complex number; NaN, not infinity, when either part is NaN. */
double gd_stats_magnitude(double re, double im);

/* Reads a tensor, or a reader, as blocks. The caller provides the scratch memory for gathering. */
struct gd_stats_source {
    const unsigned char *data;
    size_t item;
    struct gd_walk walk;
    int64_t at; /* elements of the current run already taken */
    unsigned char *scratch;
    const struct gd_stats_reader *reader; /* NULL: reads a tensor */
    int64_t next, end;                    /* elements not requested from the reader yet */
    size_t held, used;                    /* elements in scratch */
    int rc; /* result of the reader; after a failure the elements are zeros */
    struct gd_err *err;
};

#define GD_BLOCK_BYTES 16384
#define GD_READ_BYTES  (4 * GD_BLOCK_BYTES) /* requested from a reader at a time */

/* Starts at element number `first`, which must exist. */
void gd_stats_source_init(struct gd_stats_source *source, const struct gd_tensor *tensor,
                          int64_t first, unsigned char scratch[GD_BLOCK_BYTES]);
/* Elements first ... end - 1 of a reader, in whole blocks except the last. */
void gd_stats_source_init_read(struct gd_stats_source *source, const struct gd_stats_reader *reader,
                               enum gd_dtype dtype, int64_t first, int64_t end,
                               unsigned char scratch[GD_READ_BYTES], struct gd_err *err);
/* The next n elements, which must exist and fit into GD_BLOCK_BYTES. Valid until the next call. */
const unsigned char *gd_stats_source_take(struct gd_stats_source *source, size_t n);

/* A compensated sum. */
struct gd_sum {
    double value, lost;
};

/* Result of a piece of a tensor. */
struct gd_stats_part {
    struct gd_sum sum, abs, sq, m2; /* m2: of (x - mean)^2 */
    struct gd_sum delta, abs_delta, sq_delta, abs_prev, sq_prev, dot;
    double mean; /* of the finite elements, for m2 */
    double min, max, max_delta;
    uint64_t count, finite, pairs; /* pairs: positions where both are finite */
    uint64_t nan, pos_inf, neg_inf, zero, neg_zero, negative, denormal, mismatch;
    uint64_t in_range[GD_MAX_RANGES];
    bool odd; /* the last block had a non-finite element: expect more */
};

void gd_stats_part_init(struct gd_stats_part *part);
/* Adds a block's sums; m2 is about the block's own mean. */
void gd_stats_part_sums(struct gd_stats_part *part, const struct gd_block_sums *sums, double m2);
/* Adds a block's pairs: `pairs` where both are finite, `others` elsewhere, `near` among all. */
void gd_stats_part_pair(struct gd_stats_part *part, const struct gd_block_pair *pair,
                        uint64_t pairs, uint64_t others);
/* Call in the order of the elements, so that results are reproducible. */
void gd_stats_part_merge(struct gd_stats_part *part, const struct gd_stats_part *next);
/* Sets everything but has_prev and range_count. */
void gd_stats_part_finish(const struct gd_stats_part *part, struct gd_stats *ret);

struct gd_stats_job {
    const struct gd_tensor *cur, *prev;     /* prev may be NULL */
    const struct gd_stats_options *options; /* never NULL */
    const struct gd_stats_level *level;
    const struct gd_stats_reader *reader, *prev_reader; /* instead of cur and prev */
    enum gd_dtype dtype;                                /* of a reader's elements */
};

/* Processes elements first ... first + count - 1 into an empty part, in the default floating-point
 * environment. */
void gd_stats_piece(const struct gd_stats_job *job, int64_t first, int64_t count,
                    struct gd_stats_part *ret);
/* The same for a reader; returns its error. */
int gd_stats_piece_read(const struct gd_stats_job *job, int64_t first, int64_t count,
                        struct gd_stats_part *ret, struct gd_err *err);

#endif
