// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Numbers found again by the hash of what they stand for. The caller keeps the things themselves
 * and compares them; the hash has a seed of its own in every table, so that a file cannot be made
 * to fill one bucket.
 */
#ifndef GD_DUMP_HASH_INDEX_H
#define GD_DUMP_HASH_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct gd_hash_index_slot {
    uint64_t hash;
    uint32_t number;
    bool used;
};

struct gd_hash_index { /* zeroed is empty */
    struct gd_hash_index_slot *slot;
    size_t cap; /* 0 or a power of two */
    size_t used;
    uint64_t seed; /* 0 until the first hash is asked for */
};

void gd_hash_index_deinit(struct gd_hash_index *lookup);

uint64_t gd_hash_index_hash(struct gd_hash_index *lookup, const void *bytes, size_t size);
/* The number may stand there already, under this hash or another. GD_ENOMEM. */
int gd_hash_index_add(struct gd_hash_index *lookup, uint64_t hash, uint32_t number,
                      struct gd_err *err);
/* All numbers under a hash, one a call; *at is 0 at first. */
bool gd_hash_index_next(const struct gd_hash_index *lookup, uint64_t hash, size_t *at,
                        uint32_t *ret);

#endif
