// SPDX-License-Identifier: GPL-3.0-or-later
/* Lists that grow. */
#ifndef GD_GROW_H
#define GD_GROW_H

#include <stdlib.h>

#define GD_GROW_FIRST 64

/* The list with room for `need` items of `size` bytes: at least twice what it had when it has to
 * move. NULL: no memory, and the list is as it was. */
static inline void *gd_grow_to(void *list, size_t need, size_t *cap, size_t size)
{
    size_t wanted = *cap ? *cap * 2 : GD_GROW_FIRST;
    void *grown;

    if (list && need <= *cap) {
        return list;
    }
    wanted = wanted < need ? need : wanted;
    grown = reallocarray(list, wanted, size);
    if (grown) {
        *cap = wanted;
    }
    return grown;
}

/* The same for one more than the `count` items that it has. */
static inline void *gd_grow(void *list, size_t count, size_t *cap, size_t size)
{
    return gd_grow_to(list, count + 1, cap, size);
}

#endif
