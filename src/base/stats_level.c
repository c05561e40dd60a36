// SPDX-License-Identifier: MIT
#include <stdatomic.h>

#include "base/stats_impl.h"

const struct gd_stats_level *const gd_stats_levels[] = {
#ifdef __x86_64__
    &gd_stats_avx512,   &gd_stats_avx2,
#endif
#ifdef __aarch64__
    &gd_stats_neon,
#endif
    &gd_stats_portable, NULL,
};

/* Threads that race to set it choose the same level. */
static _Atomic(const struct gd_stats_level *) in_use;

const struct gd_stats_level *gd_stats_level(void)
{
    const struct gd_stats_level *level = atomic_load(&in_use);

    if (level) {
        return level;
    }
    for (size_t i = 0; gd_stats_levels[i]; i++) {
        level = gd_stats_levels[i];
        if (level->runs_here()) {
            break;
        }
    }
    atomic_store(&in_use, level);
    return level;
}

void gd_stats_use_level(const struct gd_stats_level *level)
{
    atomic_store(&in_use, level);
}
