// SPDX-License-Identifier: MIT
#include "ops.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

/* Elements per thread, for cheap and for expensive element-wise work. */
#define GRAIN_CHEAP 65536
#define GRAIN_DEAR  8192

/* e^x without branches, so that loops over it vectorise; relative error below 2e-7. 0 below -87,
 * infinity above 88.7, NaN for NaN. */
static inline float fast_exp(float x)
{
    const float magic = 12582912.0f; /* 1.5 * 2^23: adding it rounds to an integer */
    float t = x * 1.44269504f + magic;
    uint32_t bits;
    memcpy(&bits, &t, sizeof(bits));
    float n = t - magic;
    float r = x - n * 0.693359375f + n * 2.12194440e-4f;
    float p = 1.98756915e-4f;
    p = p * r + 1.39819995e-3f;
    p = p * r + 8.33345205e-3f;
    p = p * r + 4.16657962e-2f;
    p = p * r + 1.66666665e-1f;
    p = p * r + 5.0e-1f;
    p = p * r * r + r + 1.0f;
    bits = (bits << 23) + 0x3f800000u; /* 2^n: the low bits of `magic` are shifted out */
    float scale;
    memcpy(&scale, &bits, sizeof(scale));
    float y = p * scale;
    y = x < -87.0f ? 0.0f : y;
    return x > 88.0f ? HUGE_VALF : y;
}

static inline float fast_tanh(float x)
{
    return 1.0f - 2.0f / (fast_exp(2.0f * x) + 1.0f);
}

void ops_gather(float *out, const float *table, const int32_t *ids, size_t count, size_t cols)
{
    for (size_t i = 0; i < count; i++) {
        memcpy(out + i * cols, table + (size_t)ids[i] * cols, cols * sizeof(*out));
    }
}

void ops_gather_grad(float *table_grad, size_t table_rows, const float *grad, const int32_t *ids,
                     size_t count, size_t cols)
{
    memset(table_grad, 0, table_rows * cols * sizeof(*table_grad));
    for (size_t i = 0; i < count; i++) {
        float *row = table_grad + (size_t)ids[i] * cols;
        for (size_t c = 0; c < cols; c++) {
            row[c] += grad[i * cols + c];
        }
    }
}

void ops_add_repeated(float *out, const float *x, const float *y, size_t count, size_t period)
{
    for (size_t base = 0; base < count; base += period) {
        for (size_t i = 0; i < period; i++) {
            out[base + i] = x[base + i] + y[i];
        }
    }
}

void ops_sum_repeated(float *out, const float *grad, size_t count, size_t period)
{
    memset(out, 0, period * sizeof(*out));
    for (size_t base = 0; base < count; base += period) {
        for (size_t i = 0; i < period; i++) {
            out[i] += grad[base + i];
        }
    }
}

void ops_add(float *out, const float *a, const float *b, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        out[i] = a[i] + b[i];
    }
}

void ops_scale(float *out, const float *x, float factor, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        out[i] = x[i] * factor;
    }
}

/* ---- layer norm ---------------------------------------------------------------------------- */

struct layernorm {
    float *out, *mean, *rstd, *weight_grad, *bias_grad;
    const float *grad, *x, *weight, *bias, *saved_mean, *saved_rstd;
    size_t rows, cols;
    float eps;
};

static void layernorm_rows(void *ctx, size_t begin, size_t end, int worker)
{
    (void)worker;
    const struct layernorm *l = ctx;
    for (size_t row = begin; row < end; row++) {
        const float *x = l->x + row * l->cols;
        float *out = l->out + row * l->cols;
        float mean = ops_mean(x, l->cols);
        float variance = 0.0f;
        for (size_t i = 0; i < l->cols; i++) {
            variance += (x[i] - mean) * (x[i] - mean);
        }
        float rstd = 1.0f / sqrtf(variance / (float)l->cols + l->eps);
        for (size_t i = 0; i < l->cols; i++) {
            out[i] = (x[i] - mean) * rstd * l->weight[i] + l->bias[i];
        }
        l->mean[row] = mean;
        l->rstd[row] = rstd;
    }
}

void ops_layernorm(struct pool *pool, float *out, float *mean, float *rstd, const float *x,
                   const float *weight, const float *bias, size_t rows, size_t cols, float eps)
{
    struct layernorm l = {.out = out,
                          .mean = mean,
                          .rstd = rstd,
                          .x = x,
                          .weight = weight,
                          .bias = bias,
                          .rows = rows,
                          .cols = cols,
                          .eps = eps};
    pool_for(pool, rows, 1, GRAIN_CHEAP / cols + 1, layernorm_rows, &l);
}

static void layernorm_grad_rows(void *ctx, size_t begin, size_t end, int worker)
{
    (void)worker;
    const struct layernorm *l = ctx;
    for (size_t row = begin; row < end; row++) {
        const float *x = l->x + row * l->cols;
        const float *grad = l->grad + row * l->cols;
        float *out = l->out + row * l->cols;
        float mean = l->saved_mean[row];
        float rstd = l->saved_rstd[row];
        float sum = 0.0f;
        float dot = 0.0f;
        for (size_t i = 0; i < l->cols; i++) {
            float g = grad[i] * l->weight[i];
            sum += g;
            dot += g * (x[i] - mean) * rstd;
        }
        sum /= (float)l->cols;
        dot /= (float)l->cols;
        for (size_t i = 0; i < l->cols; i++) {
            out[i] = rstd * (grad[i] * l->weight[i] - sum - (x[i] - mean) * rstd * dot);
        }
    }
}

void ops_layernorm_grad(struct pool *pool, float *x_grad, float *weight_grad, float *bias_grad,
                        const float *grad, const float *x, const float *weight, const float *mean,
                        const float *rstd, size_t rows, size_t cols)
{
    struct layernorm l = {.out = x_grad,
                          .grad = grad,
                          .x = x,
                          .weight = weight,
                          .saved_mean = mean,
                          .saved_rstd = rstd,
                          .rows = rows,
                          .cols = cols};
    pool_for(pool, rows, 1, GRAIN_CHEAP / cols + 1, layernorm_grad_rows, &l);
    memset(weight_grad, 0, cols * sizeof(*weight_grad));
    memset(bias_grad, 0, cols * sizeof(*bias_grad));
    for (size_t row = 0; row < rows; row++) {
        for (size_t i = 0; i < cols; i++) {
            float g = grad[row * cols + i];
            weight_grad[i] += g * (x[row * cols + i] - mean[row]) * rstd[row];
            bias_grad[i] += g;
        }
    }
}

/* ---- activations --------------------------------------------------------------------------- */

struct elements {
    enum activation kind;
    float *out;
    const float *x, *y, *grad;
};

/* sqrt(2 / pi) and the cubic term of the tanh form of GELU. */
#define GELU_SCALE 0.79788456f
#define GELU_CUBIC 0.044715f

static void activate_piece(void *ctx, size_t begin, size_t end, int worker)
{
    (void)worker;
    const struct elements *e = ctx;
    float *out = e->out;
    const float *x = e->x;
    if (e->kind == ACTIVATION_GELU) {
        for (size_t i = begin; i < end; i++) {
            float inner = GELU_SCALE * (x[i] + GELU_CUBIC * x[i] * x[i] * x[i]);
            out[i] = 0.5f * x[i] * (1.0f + fast_tanh(inner));
        }
    } else if (e->kind == ACTIVATION_RELU) {
        for (size_t i = begin; i < end; i++) {
            out[i] = x[i] <= 0.0f ? 0.0f : x[i]; /* written so that NaN stays NaN */
        }
    } else {
        for (size_t i = begin; i < end; i++) {
            out[i] = fast_tanh(x[i]);
        }
    }
}

void ops_activate(struct pool *pool, enum activation kind, float *out, const float *x, size_t count)
{
    struct elements e = {.kind = kind, .out = out, .x = x};
    pool_for(pool, count, 16, GRAIN_DEAR, activate_piece, &e);
}

static void activate_grad_piece(void *ctx, size_t begin, size_t end, int worker)
{
    (void)worker;
    const struct elements *e = ctx;
    float *out = e->out;
    const float *x = e->x;
    const float *grad = e->grad;
    if (e->kind == ACTIVATION_GELU) {
        for (size_t i = begin; i < end; i++) {
            float inner = GELU_SCALE * (x[i] + GELU_CUBIC * x[i] * x[i] * x[i]);
            float t = fast_tanh(inner);
            float slope = GELU_SCALE * (1.0f + 3.0f * GELU_CUBIC * x[i] * x[i]);
            out[i] = grad[i] * (0.5f * (1.0f + t) + 0.5f * x[i] * (1.0f - t * t) * slope);
        }
    } else if (e->kind == ACTIVATION_RELU) {
        for (size_t i = begin; i < end; i++) {
            out[i] = x[i] <= 0.0f ? 0.0f : grad[i];
        }
    } else {
        for (size_t i = begin; i < end; i++) {
            out[i] = grad[i] * (1.0f - e->y[i] * e->y[i]);
        }
    }
}

void ops_activate_grad(struct pool *pool, enum activation kind, float *x_grad, const float *grad,
                       const float *x, const float *out, size_t count)
{
    struct elements e = {.kind = kind, .out = x_grad, .x = x, .y = out, .grad = grad};
    pool_for(pool, count, 16, GRAIN_DEAR, activate_grad_piece, &e);
}

/* ---- softmax ------------------------------------------------------------------------------- */

struct softmax {
    float *out;
    const float *x, *y, *grad;
    size_t cols;
};

static void softmax_rows(void *ctx, size_t begin, size_t end, int worker)
{
    (void)worker;
    const struct softmax *s = ctx;
    for (size_t row = begin; row < end; row++) {
        const float *x = s->x + row * s->cols;
        float *out = s->out + row * s->cols;
        float max = x[0];
        for (size_t i = 1; i < s->cols; i++) {
            max = x[i] > max ? x[i] : max;
        }
        float sum = 0.0f;
        for (size_t i = 0; i < s->cols; i++) {
            out[i] = fast_exp(x[i] - max);
        }
        for (size_t i = 0; i < s->cols; i++) {
            sum += out[i];
        }
        for (size_t i = 0; i < s->cols; i++) {
            out[i] /= sum;
        }
    }
}

void ops_softmax(struct pool *pool, float *out, const float *x, size_t rows, size_t cols)
{
    struct softmax s = {.out = out, .x = x, .cols = cols};
    pool_for(pool, rows, 1, GRAIN_DEAR / cols + 1, softmax_rows, &s);
}

static void softmax_grad_rows(void *ctx, size_t begin, size_t end, int worker)
{
    (void)worker;
    const struct softmax *s = ctx;
    for (size_t row = begin; row < end; row++) {
        const float *y = s->y + row * s->cols;
        const float *grad = s->grad + row * s->cols;
        float *out = s->out + row * s->cols;
        float dot = 0.0f;
        for (size_t i = 0; i < s->cols; i++) {
            dot += grad[i] * y[i];
        }
        for (size_t i = 0; i < s->cols; i++) {
            out[i] = y[i] * (grad[i] - dot);
        }
    }
}

void ops_softmax_grad(struct pool *pool, float *x_grad, const float *grad, const float *out,
                      size_t rows, size_t cols)
{
    struct softmax s = {.out = x_grad, .y = out, .grad = grad, .cols = cols};
    pool_for(pool, rows, 1, GRAIN_CHEAP / cols + 1, softmax_grad_rows, &s);
}

void ops_mask(float *out, const float *x, float value, size_t matrices, size_t size)
{
    for (size_t m = 0; m < matrices; m++) {
        for (size_t row = 0; row < size; row++) {
            size_t base = (m * size + row) * size;
            memcpy(out + base, x + base, (row + 1) * sizeof(*out));
            for (size_t col = row + 1; col < size; col++) {
                out[base + col] = value;
            }
        }
    }
}

/* ---- heads --------------------------------------------------------------------------------- */

static size_t head_offset(const struct heads *s, size_t b, size_t h, size_t t)
{
    return ((b * s->heads + h) * s->time + t) * s->dim;
}

void ops_split_heads(float *const *out, const float *x, const struct heads *s, size_t parts)
{
    for (size_t b = 0; b < s->batch; b++) {
        for (size_t t = 0; t < s->time; t++) {
            for (size_t p = 0; p < parts; p++) {
                for (size_t h = 0; h < s->heads; h++) {
                    memcpy(out[p] + head_offset(s, b, h, t), x, s->dim * sizeof(*x));
                    x += s->dim;
                }
            }
        }
    }
}

void ops_merge_heads(float *out, const float *const *x, const struct heads *s, size_t parts)
{
    for (size_t b = 0; b < s->batch; b++) {
        for (size_t t = 0; t < s->time; t++) {
            for (size_t p = 0; p < parts; p++) {
                for (size_t h = 0; h < s->heads; h++) {
                    memcpy(out, x[p] + head_offset(s, b, h, t), s->dim * sizeof(*out));
                    out += s->dim;
                }
            }
        }
    }
}

/* ---- the loss ------------------------------------------------------------------------------ */

void ops_pick(float *out, const float *x, const int32_t *ids, size_t rows, size_t cols)
{
    for (size_t i = 0; i < rows; i++) {
        out[i] = x[i * cols + (size_t)ids[i]];
    }
}

void ops_pick_grad(float *x_grad, const float *grad, const int32_t *ids, size_t rows, size_t cols)
{
    memset(x_grad, 0, rows * cols * sizeof(*x_grad));
    for (size_t i = 0; i < rows; i++) {
        x_grad[i * cols + (size_t)ids[i]] = grad[i];
    }
}

void ops_log(float *out, const float *x, float floor, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        out[i] = logf(x[i] < floor ? floor : x[i]);
    }
}

void ops_log_grad(float *x_grad, const float *grad, const float *x, float floor, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        x_grad[i] = grad[i] / (x[i] < floor ? floor : x[i]);
    }
}

float ops_mean(const float *x, size_t count)
{
    double sum = 0.0;
    for (size_t i = 0; i < count; i++) {
        sum += (double)x[i];
    }
    return (float)(sum / (double)count);
}

double ops_sum_squares(const float *x, size_t count)
{
    double sum = 0.0;
    for (size_t i = 0; i < count; i++) {
        sum += (double)x[i] * (double)x[i];
    }
    return sum;
}

/* ---- half precision ------------------------------------------------------------------------ */

static float round_half(float x)
{
    float magnitude = fabsf(x);
    if (!(magnitude < HUGE_VALF)) {
        return x; /* NaN and infinity */
    }
    if (magnitude >= 65520.0f) {
        return copysignf(HUGE_VALF, x);
    }
    /* Adding 2^(e+13) rounds to the 10 bits of half precision; below 2^-14 the spacing is fixed. */
    int exponent;
    frexpf(magnitude, &exponent);
    float big = ldexpf(1.5f, (exponent < -13 ? -13 : exponent) - 1 + 13);
    volatile float sum = magnitude + big; /* volatile: keeps the rounding of this sum */
    return copysignf(sum - big, x);
}

void ops_round_half(float *x, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        x[i] = round_half(x[i]);
    }
}

/* ---- the optimizer ------------------------------------------------------------------------- */

struct adamw_job {
    float *w, *m, *v;
    const float *grad;
    const struct adamw *a;
};

static void adamw_piece(void *ctx, size_t begin, size_t end, int worker)
{
    (void)worker;
    const struct adamw_job *j = ctx;
    const struct adamw a = *j->a;
    float *w = j->w;
    float *m = j->m;
    float *v = j->v;
    for (size_t i = begin; i < end; i++) {
        float g = j->grad[i] * a.grad_scale;
        m[i] = a.beta1 * m[i] + (1.0f - a.beta1) * g;
        v[i] = a.beta2 * v[i] + (1.0f - a.beta2) * g * g;
        float step = m[i] / a.correction1 / (sqrtf(v[i] / a.correction2) + a.eps);
        w[i] -= a.lr * (step + a.decay * w[i]);
    }
}

void ops_adamw(struct pool *pool, float *w, float *m, float *v, const float *grad, size_t count,
               const struct adamw *a)
{
    struct adamw_job job = {w, m, v, grad, a};
    pool_for(pool, count, 16, GRAIN_CHEAP, adamw_piece, &job);
}
