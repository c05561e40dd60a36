// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/hash_index.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#define FIRST_CAP 64

void gd_hash_index_deinit(struct gd_hash_index *lookup)
{
    free(lookup->slot);
    *lookup = (struct gd_hash_index){0};
}

static uint64_t new_seed(void)
{
    uint64_t seed = 0;

    if (getrandom(&seed, sizeof(seed), GRND_NONBLOCK) != (ssize_t)sizeof(seed)) {
        struct timespec now;

        clock_gettime(CLOCK_REALTIME, &now);
        seed = (uint64_t)now.tv_nsec * UINT64_C(0x9e3779b97f4a7c15) ^ (uint64_t)now.tv_sec;
    }
    return seed | 1;
}

static uint64_t mix_bits(uint64_t a)
{
    a ^= a >> 32;
    a *= UINT64_C(0xd6e8feb86659fd93);
    a ^= a >> 32;
    a *= UINT64_C(0xd6e8feb86659fd93);
    return a ^ (a >> 32);
}

static uint64_t hash_bytes(uint64_t seed, const void *bytes, size_t size)
{
    const unsigned char *at = bytes;
    uint64_t hash = seed + size, word;

    for (; size >= sizeof(word); size -= sizeof(word), at += sizeof(word)) {
        memcpy(&word, at, sizeof(word));
        hash = mix_bits(hash ^ word) + seed;
    }
    if (size) {
        word = 0;
        memcpy(&word, at, size);
        hash = mix_bits(hash ^ word) + seed;
    }
    return mix_bits(hash);
}

uint64_t gd_hash_index_hash(struct gd_hash_index *lookup, const void *bytes, size_t size)
{
    if (!lookup->seed) {
        lookup->seed = new_seed();
    }
    return hash_bytes(lookup->seed, bytes, size);
}

static void insert_slot(struct gd_hash_index *lookup, uint64_t hash, uint32_t number)
{
    size_t mask = lookup->cap - 1, i = (size_t)hash & mask;

    while (lookup->slot[i].used) {
        i = (i + 1) & mask;
    }
    lookup->slot[i] = (struct gd_hash_index_slot){.hash = hash, .number = number, .used = true};
    lookup->used++;
}

static int grow_table(struct gd_hash_index *lookup, struct gd_err *err)
{
    struct gd_hash_index grown = {.cap = lookup->cap ? lookup->cap * 2 : FIRST_CAP,
                                  .seed = lookup->seed};

    grown.slot = calloc(grown.cap, sizeof(*grown.slot));
    if (!grown.slot) {
        return gd_fail(err, GD_ENOMEM, "out of memory for a table of %zu entries", grown.cap);
    }
    for (size_t i = 0; i < lookup->cap; i++) {
        if (lookup->slot[i].used) {
            insert_slot(&grown, lookup->slot[i].hash, lookup->slot[i].number);
        }
    }
    free(lookup->slot);
    *lookup = grown;
    return GD_OK;
}

int gd_hash_index_add(struct gd_hash_index *lookup, uint64_t hash, uint32_t number,
                      struct gd_err *err)
{
    if (lookup->used + 1 > lookup->cap - lookup->cap / 4) {
        int rc = grow_table(lookup, err);

        if (rc != GD_OK) {
            return rc;
        }
    }
    insert_slot(lookup, hash, number);
    return GD_OK;
}

int gd_hash_index_add_name(struct gd_hash_index *lookup, const char *name, uint32_t number,
                           struct gd_err *err)
{
    return gd_hash_index_add(lookup, gd_hash_index_hash(lookup, name, strlen(name)), number, err);
}

uint32_t gd_hash_index_find(const struct gd_hash_index *lookup, const char *name, const void *items,
                            size_t size)
{
    uint64_t hash = hash_bytes(lookup->seed, name, strlen(name));
    uint32_t number;

    for (size_t at = 0; gd_hash_index_next(lookup, hash, &at, &number);) {
        const char *known;

        memcpy(&known, (const char *)items + number * size, sizeof(known));
        if (strcmp(known, name) == 0) {
            return number;
        }
    }
    return UINT32_MAX;
}

bool gd_hash_index_next(const struct gd_hash_index *lookup, uint64_t hash, size_t *at,
                        uint32_t *ret)
{
    size_t mask = lookup->cap - 1;

    for (; *at < lookup->cap; ++*at) {
        const struct gd_hash_index_slot *slot = &lookup->slot[((size_t)hash + *at) & mask];

        if (!slot->used) {
            break;
        }
        if (slot->hash == hash) {
            ++*at;
            *ret = slot->number;
            return true;
        }
    }
    return false;
}
