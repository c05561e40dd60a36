// SPDX-License-Identifier: GPL-3.0-or-later
#include "proto/clock.h"

#include <time.h>

uint64_t gd_clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

double gd_clock_seconds(void)
{
    return (double)gd_clock_ns() * 1e-9;
}
