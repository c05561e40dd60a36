// SPDX-License-Identifier: MIT
/* A small random number generator whose state is one number, so that runs can be repeated. */
#ifndef CHARLM_RNG_H
#define CHARLM_RNG_H

#include <math.h>
#include <stdint.h>

struct rng {
    uint64_t state;
};

static inline uint64_t rng_next(struct rng *rng)
{
    uint64_t x = rng->state += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* In [0, 1). */
static inline double rng_uniform(struct rng *rng)
{
    return (double)(rng_next(rng) >> 11) * 0x1p-53;
}

static inline float rng_normal(struct rng *rng)
{
    double radius = sqrt(-2.0 * log(1.0 - rng_uniform(rng)));
    return (float)(radius * cos(6.283185307179586 * rng_uniform(rng)));
}

#endif
