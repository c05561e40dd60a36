// SPDX-License-Identifier: GPL-3.0-or-later
/* How long work takes: nanoseconds of the monotonic clock. */
#ifndef GD_PROTO_CLOCK_H
#define GD_PROTO_CLOCK_H

#include <stdint.h>

uint64_t gd_clock_ns(void);

/* The same in seconds, for work that is done in slices of the event loop. */
double gd_clock_seconds(void);

#endif
