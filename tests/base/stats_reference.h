// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Statistics computed literally from their definitions in stats.h: one element after another, in
 * long double, with separate decoders.
 */
#ifndef TESTS_STATS_REFERENCE_H
#define TESTS_STATS_REFERENCE_H

#include "base/stats.h"

/* The value of one element of a real dtype. */
long double reference_value(enum gd_dtype dtype, const unsigned char *p);
/* For `count` contiguous elements of a real dtype; prev and options may be NULL. */
void reference_stats(enum gd_dtype dtype, const unsigned char *cur, const unsigned char *prev,
                     size_t count, const struct gd_stats_options *options, struct gd_stats *ret);
/* Fails the test if a count differs, or a sum by more than 1e-12 of the sum of magnitudes. */
void reference_compare(const struct gd_stats *got, const struct gd_stats *want, const char *what);

#endif
