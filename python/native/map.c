// SPDX-License-Identifier: MIT
#include "map.h"

#include <stdlib.h>
#include <string.h>

/* Where an address is, or belongs. More than half of the places are free. */
static struct native_place *find_place(const struct native_map *map, const void *address)
{
    size_t mask = map->room - 1;
    size_t place = (size_t)(((uintptr_t)address >> 4) * 0x9e3779b97f4a7c15ULL >> 32) & mask;
    while (map->places[place].address && map->places[place].address != address) {
        place = (place + 1) & mask;
    }
    return &map->places[place];
}

static bool grow_map(struct native_map *map)
{
    struct native_map grown = {.count = map->count, .room = map->room > 0 ? 2 * map->room : 512};
    grown.places = calloc(grown.room, sizeof(*grown.places));
    if (!grown.places) {
        return false;
    }
    for (size_t i = 0; i < map->room; i++) {
        if (map->places[i].address) {
            *find_place(&grown, map->places[i].address) = map->places[i];
        }
    }
    free(map->places);
    *map = grown;
    return true;
}

uint32_t native_map_get(const struct native_map *map, const void *address)
{
    const struct native_place *place = map->room > 0 ? find_place(map, address) : NULL;
    return place && place->address ? place->number : NATIVE_NONE;
}

bool native_map_put(struct native_map *map, const void *address, uint32_t number)
{
    if (2 * map->count >= map->room && !grow_map(map)) {
        return false;
    }
    struct native_place *place = find_place(map, address);
    map->count += place->address == NULL;
    *place = (struct native_place){address, number};
    return true;
}

void native_map_clear(struct native_map *map)
{
    if (map->count > 0) {
        memset(map->places, 0, map->room * sizeof(*map->places));
    }
    map->count = 0;
}

void native_map_free(struct native_map *map)
{
    free(map->places);
    *map = (struct native_map){0};
}
