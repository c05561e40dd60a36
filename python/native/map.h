// SPDX-License-Identifier: MIT
/* A map from addresses to numbers. */
#ifndef GRADB_PYTHON_MAP_H
#define GRADB_PYTHON_MAP_H

#include <stdint.h>

#include "native.h"

#define NATIVE_NONE UINT32_MAX /* never a number in a map */

struct native_place {
    const void *address; /* NULL: free */
    uint32_t number;
};
struct native_map { /* all 0: empty */
    struct native_place *places;
    size_t count, room; /* `room` is a power of two, or 0 */
};

uint32_t native_map_get(const struct native_map *map, const void *address);
/* In place of the number that the address has, if any. false: out of memory, nothing is done. */
bool native_map_put(struct native_map *map, const void *address, uint32_t number);
/* Empties it, and keeps its memory. */
void native_map_clear(struct native_map *map);
void native_map_free(struct native_map *map);

#endif
