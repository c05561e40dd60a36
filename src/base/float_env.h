// SPDX-License-Identifier: MIT
/*
 * Sets the thread's floating-point environment aside while gradb computes: in a training process
 * invalid operations may trap, rounding may differ and denormals may be flushed to zero.
 *
 * On x86-64 all our arithmetic is SSE, whose environment is one register. The C library's functions
 * also switch the x87 environment, which costs more than the statistics of a small tensor.
 */
#ifndef GD_BASE_FLOAT_ENV_H
#define GD_BASE_FLOAT_ENV_H

#ifdef __x86_64__
#include <xmmintrin.h>

#define GD_FLOAT_ENV_DEFAULT 0x1f80U /* exceptions masked, round to nearest, denormals kept */

typedef unsigned gd_float_env;

static inline gd_float_env gd_float_env_enter(void)
{
    unsigned before = _mm_getcsr();

    _mm_setcsr(GD_FLOAT_ENV_DEFAULT);
    return before;
}

static inline void gd_float_env_leave(gd_float_env before)
{
    _mm_setcsr(before);
}

#else
#include <fenv.h>

typedef fenv_t gd_float_env;

static inline gd_float_env gd_float_env_enter(void)
{
    fenv_t before;

    fegetenv(&before);
    fesetenv(FE_DFL_ENV);
    return before;
}

static inline void gd_float_env_leave(gd_float_env before)
{
    fesetenv(&before);
}

#endif
#endif
