// SPDX-License-Identifier: GPL-3.0-or-later
/* Lists that grow while a dump is looked through. */
#ifndef GD_DUMP_GROW_H
#define GD_DUMP_GROW_H

#include <stdlib.h>

#define GD_GROW_FIRST 64

/* The list of `count` items of `size` bytes with room for one more: it doubles when there is none.
 * NULL: no memory, and the list is as it was. */
static inline void *gd_grow(void *list, size_t count, size_t *cap, size_t size)
{
    size_t wanted = *cap ? *cap * 2 : GD_GROW_FIRST;
    void *grown;

    if (count < *cap) {
        return list;
    }
    grown = reallocarray(list, wanted, size);
    if (grown) {
        *cap = wanted;
    }
    return grown;
}

#endif
