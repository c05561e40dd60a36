// SPDX-License-Identifier: GPL-3.0-or-later
/* Block kernels with AVX2: see kernel_body.h. */
#include "compare/kernel.h"

#ifdef __x86_64__
#ifdef __clang__
#pragma clang attribute push(__attribute__((target("avx2,lzcnt,bmi"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,lzcnt,bmi")
#endif

#define VECTOR 32
#include "compare/kernel_body.h"

static bool runs_here(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi");
}

const struct gd_pair_level gd_pair_avx2 = {
    .name = "avx2",
    .runs_here = runs_here,
    PAIR_KERNELS,
};

#ifdef __clang__
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif
