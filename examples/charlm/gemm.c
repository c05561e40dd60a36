// SPDX-License-Identifier: MIT
#include "gemm.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* A packed block of B (K_BLOCK x N_BLOCK) stays in the L2 cache, a panel of A in L1. */
#define K_BLOCK  256
#define N_BLOCK  256
#define MAX_ROWS 6
#define MAX_COLS 16
#define VECTOR   8

typedef float vector __attribute__((vector_size(VECTOR * sizeof(float)), aligned(4), may_alias));

struct tile { /* a register tile: rows x cols of C */
    size_t rows, cols;
    /* out[rows][cols] = sum over k of a[k][rows] * b[k][cols], both packed */
    void (*run)(size_t k, const float *a, const float *b, float *out);
};

/* The sizes are constants in each caller, so that the loops unroll and acc stays in registers. */
static inline __attribute__((always_inline)) void
tile_body(size_t k, const float *a, const float *b, float *out, const int rows, const int vectors)
{
    vector acc[MAX_ROWS][MAX_COLS / VECTOR];
    for (int r = 0; r < rows; r++) {
        for (int v = 0; v < vectors; v++) {
            acc[r][v] = (vector){0};
        }
    }
    for (size_t p = 0; p < k; p++) {
#pragma GCC unroll 8
        for (int r = 0; r < rows; r++) {
#pragma GCC unroll 2
            for (int v = 0; v < vectors; v++) {
                acc[r][v] += a[r] * *(const vector *)(b + v * VECTOR);
            }
        }
        a += rows;
        b += vectors * VECTOR;
    }
    for (int r = 0; r < rows; r++) {
        for (int v = 0; v < vectors; v++) {
            *(vector *)(out + (r * vectors + v) * VECTOR) = acc[r][v];
        }
    }
}

static void tile_plain(size_t k, const float *a, const float *b, float *out)
{
    tile_body(k, a, b, out, 4, 1);
}

#if defined(__x86_64__)
__attribute__((target("avx2,fma"))) static void tile_avx2(size_t k, const float *a, const float *b,
                                                          float *out)
{
    tile_body(k, a, b, out, 6, 2);
}
#endif

static struct tile choose_tile(void)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        return (struct tile){6, 16, tile_avx2};
    }
#endif
    return (struct tile){4, 8, tile_plain};
}

/* Copies k x width of a matrix into k contiguous rows of `width`, zero-padded beyond `have`. Two
 * loops, so that memory is read along the contiguous axis. */
static void pack_panel(float *out, const float *in, size_t in_k, size_t in_w, size_t k, size_t have,
                       size_t width)
{
    if (in_w == 1 && have == width) {
        for (size_t p = 0; p < k; p++) {
            memcpy(out + p * width, in + p * in_k, width * sizeof(*out));
        }
        return;
    }
    for (size_t i = 0; i < have; i++) {
        for (size_t p = 0; p < k; p++) {
            out[p * width + i] = in[p * in_k + i * in_w];
        }
    }
    for (size_t i = have; i < width; i++) {
        for (size_t p = 0; p < k; p++) {
            out[p * width + i] = 0.0f;
        }
    }
}

static void store_tile(const struct gemm *g, const float *tile, size_t row, size_t col, size_t rows,
                       size_t cols, size_t tile_cols, bool add)
{
    for (size_t r = 0; r < rows; r++) {
        float *c = g->c + (row + r) * g->c_row + col;
        const float *t = tile + r * tile_cols;
        for (size_t i = 0; i < cols; i++) {
            c[i] = (add ? c[i] : 0.0f) + g->alpha * t[i];
        }
    }
}

static size_t min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Computes rows [begin, end) of C against one packed block of B. */
static void run_block(const struct gemm *g, const struct tile *t, const float *packed_b, size_t k0,
                      size_t k, size_t n0, size_t n, size_t begin, size_t end)
{
    float packed_a[K_BLOCK * MAX_ROWS];
    float out[MAX_ROWS * MAX_COLS];
    for (size_t row = begin; row < end; row += t->rows) {
        size_t rows = min_size(t->rows, end - row);
        pack_panel(packed_a, g->a + row * g->a_row + k0 * g->a_col, g->a_col, g->a_row, k, rows,
                   t->rows);
        for (size_t col = 0; col < n; col += t->cols) {
            t->run(k, packed_a, packed_b + col * k, out);
            store_tile(g, out, row, n0 + col, rows, min_size(t->cols, n - col), t->cols, k0 > 0);
        }
    }
}

static void run_rows(const struct gemm *g, size_t begin, size_t end)
{
    struct tile t = choose_tile();
    float packed_b[K_BLOCK * N_BLOCK];
    for (size_t n0 = 0; n0 < g->n; n0 += N_BLOCK) {
        size_t n = min_size(N_BLOCK, g->n - n0);
        for (size_t k0 = 0; k0 < g->k; k0 += K_BLOCK) {
            size_t k = min_size(K_BLOCK, g->k - k0);
            for (size_t col = 0; col < n; col += t.cols) {
                pack_panel(packed_b + col * k, g->b + k0 * g->b_row + (n0 + col) * g->b_col,
                           g->b_row, g->b_col, k, min_size(t.cols, n - col), t.cols);
            }
            run_block(g, &t, packed_b, k0, k, n0, n, begin, end);
        }
    }
}

static void run_rows_piece(void *ctx, size_t begin, size_t end, int worker)
{
    (void)worker;
    run_rows(ctx, begin, end);
}

/* Rows per thread: about a tenth of a millisecond of work. */
static size_t compute_grain(size_t flop_per_unit)
{
    return (size_t)1000000 / (flop_per_unit + 1) + 1;
}

void gemm_run(struct pool *pool, const struct gemm *gemm)
{
    struct gemm copy = *gemm;
    pool_for(pool, gemm->m, MAX_ROWS * 4, compute_grain(2 * gemm->n * gemm->k), run_rows_piece,
             &copy);
}

struct batch {
    struct gemm first;
    size_t a_next, b_next, c_next;
};

static void run_batch_piece(void *ctx, size_t begin, size_t end, int worker)
{
    (void)worker;
    const struct batch *batch = ctx;
    for (size_t i = begin; i < end; i++) {
        struct gemm g = batch->first;
        g.a += i * batch->a_next;
        g.b += i * batch->b_next;
        g.c += i * batch->c_next;
        run_rows(&g, 0, g.m);
    }
}

void gemm_batch(struct pool *pool, const struct gemm *first, size_t count, size_t a_next,
                size_t b_next, size_t c_next)
{
    struct batch batch = {*first, a_next, b_next, c_next};
    pool_for(pool, count, 1, compute_grain(2 * first->m * first->n * first->k), run_batch_piece,
             &batch);
}
