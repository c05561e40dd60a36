// SPDX-License-Identifier: GPL-3.0-or-later
/* Reproducible random bits: xorshift64 (G. Marsaglia, Xorshift RNGs, 2003). */
#ifndef RANDOM_BITS_H
#define RANDOM_BITS_H

#include <stdint.h>

static inline uint64_t random_bits(void)
{
    static uint64_t state = 88172645463325252u;

    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

#endif
