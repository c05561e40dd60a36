// SPDX-License-Identifier: GPL-3.0-or-later
/* Block kernels for any CPU, and the selection of the level. */
#include <stdatomic.h>

#include "compare/kernel.h"

#define VECTOR 16
#include "compare/kernel_body.h"

static bool runs_here(void)
{
    return true;
}

const struct gd_pair_level gd_pair_portable = {
    .name = "portable",
    .runs_here = runs_here,
    PAIR_KERNELS,
};

const struct gd_pair_level *const gd_pair_levels[] = {
#ifdef __x86_64__
    &gd_pair_avx512,
    &gd_pair_avx2,
#endif
    &gd_pair_portable,
    NULL,
};

/* threads that find NULL at the same time compute the same value */
static _Atomic(const struct gd_pair_level *) in_use;

const struct gd_pair_level *gd_pair_level(void)
{
    const struct gd_pair_level *level = atomic_load(&in_use);

    for (size_t i = 0; !level; i++) {
        if (gd_pair_levels[i]->runs_here()) {
            level = gd_pair_levels[i];
        }
    }
    atomic_store(&in_use, level);
    return level;
}
