// SPDX-License-Identifier: MIT
/*
 * Matrix multiplication C = alpha * A B with any strides, packed and blocked for the cache,
 * vectorised (AVX2 with FMA if available). The order of summation does not depend on the number of
 * threads.
 */
#ifndef CHARLM_GEMM_H
#define CHARLM_GEMM_H

#include <stddef.h>

#include "pool.h"

struct gemm {
    size_t m, n, k; /* C is m x n, A is m x k, B is k x n */
    const float *a;
    size_t a_row, a_col; /* strides in elements */
    const float *b;
    size_t b_row, b_col;
    float *c;
    size_t c_row; /* columns of C are contiguous */
    float alpha;
};

/* One multiplication; the pool shares its rows. */
void gemm_run(struct pool *pool, const struct gemm *gemm);
/* `count` multiplications whose operands are `*_next` elements apart; the pool shares them. */
void gemm_batch(struct pool *pool, const struct gemm *first, size_t count, size_t a_next,
                size_t b_next, size_t c_next);

#endif
