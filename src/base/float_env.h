// SPDX-License-Identifier: MIT
/*
 * The floating-point environment of a thread, set aside while we compute: in a trainer invalid
 * operations may raise signals, results may be rounded otherwise, and denormals may read as 0.
 *
 * On x86-64 all our arithmetic is SSE's, whose environment is one register; the C library's
 * functions go over that of the old coprocessor, too, which costs more than a small tensor.
 */
#ifndef GD_BASE_FLOAT_ENV_H
#define GD_BASE_FLOAT_ENV_H

#ifdef __x86_64__
#include <xmmintrin.h>

#define GD_FLOAT_ENV_DEFAULT                                                                       \
    0x1f80U /* all exceptions masked, to nearest, denormals are numbers                            \
             */

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
