// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * A hash index: finds the numbers stored under a hash. The caller keeps the items and compares
 * them. Each table has its own random seed, so that a hostile file cannot fill one bucket.
 */
#ifndef GD_ENGINE_HASH_INDEX_H
#define GD_ENGINE_HASH_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct gd_hash_index_slot {
    uint64_t hash;
    uint32_t number;
    bool used;
};

struct gd_hash_index { /* {0} is empty */
    struct gd_hash_index_slot *slot;
    size_t cap; /* 0 or a power of two */
    size_t used;
    uint64_t seed; /* 0 until the first hash */
};

void gd_hash_index_deinit(struct gd_hash_index *lookup);

uint64_t gd_hash_index_hash(struct gd_hash_index *lookup, const void *bytes, size_t size);
/* Adds a number; duplicates are not detected. GD_ENOMEM. */
int gd_hash_index_add(struct gd_hash_index *lookup, uint64_t hash, uint32_t number,
                      struct gd_err *err);
/* The same for a name. */
int gd_hash_index_add_name(struct gd_hash_index *lookup, const char *name, uint32_t number,
                           struct gd_err *err);
/* The number of the item with that name; UINT32_MAX: none. Items of `size` bytes, in order of
 * their numbers, begin with a pointer to their name. */
uint32_t gd_hash_index_find(const struct gd_hash_index *lookup, const char *name, const void *items,
                            size_t size);
/* Iterates over all numbers of a hash; *at is 0 at first. False: no more. */
bool gd_hash_index_next(const struct gd_hash_index *lookup, uint64_t hash, size_t *at,
                        uint32_t *ret);

#endif
