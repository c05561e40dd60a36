// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * How alike two short names are, for "did you mean".
 */
#ifndef GD_ENGINE_SIMILAR_H
#define GD_ENGINE_SIMILAR_H

#include <stdbool.h>
#include <stddef.h>

/* The fewest letters to put in, take out or replace to make b of a, case ignored; SIZE_MAX when
 * either has 64 letters or more. */
size_t gd_similar_distance(const char *a, const char *b);
/* A slip of the fingers rather than another word: one letter in four is wrong at most. */
bool gd_similar_slip(const char *typed, const char *name);

#endif
