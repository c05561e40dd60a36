// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * How alike two short names are, for "did you mean".
 */
#ifndef GD_ENGINE_SIMILAR_H
#define GD_ENGINE_SIMILAR_H

#include <stdbool.h>
#include <stddef.h>

#define GD_SIMILAR_LONGEST 127 /* letters of a name that is compared */

/* The fewest letters to put in, take out, replace or swap with their neighbour to make b of a, case
 * ignored; limit + 1 when they are more than limit, SIZE_MAX when either is too long. */
size_t gd_similar_within(const char *a, size_t a_len, const char *b, size_t b_len, size_t limit);
/* Of whole strings, without a limit. */
size_t gd_similar_distance(const char *a, const char *b);
/* The same for a suggestion: 0 where a, of at least two letters, begins b. */
size_t gd_similar_suggestion(const char *a, size_t a_len, const char *b, size_t b_len,
                             size_t limit);
/* A slip of the fingers rather than another word: one letter in four is wrong at most. */
bool gd_similar_slip(const char *typed, const char *name);
/* A slip, or the beginning of the name. */
bool gd_similar_meant(const char *typed, const char *name);

#endif
