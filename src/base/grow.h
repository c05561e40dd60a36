// SPDX-License-Identifier: MIT
/*
 * Lists that grow: `list` holds items of `size` bytes and has room for `*cap` of them. Both
 * functions return the list, possibly moved, or NULL when out of memory; then the list is
 * unchanged.
 *
 *     struct item *items = gd_grow(list->items, list->count, &list->cap, sizeof(*items));
 *     if (!items) {
 *         return gd_fail_nomem(err);
 *     }
 *     list->items = items;
 *     items[list->count++] = item;
 */
#ifndef GD_BASE_GROW_H
#define GD_BASE_GROW_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define GD_GROW_FIRST 64 /* items that a new list has room for */

/* Makes room for `need` items. A list that has to grow at least doubles. */
static inline void *gd_grow_to(void *list, size_t need, size_t *cap, size_t size)
{
    size_t wanted = *cap ? *cap * 2 : GD_GROW_FIRST;

    if (list && need <= *cap) {
        return list;
    }
    wanted = wanted < need ? need : wanted;
    void *grown = reallocarray(list, wanted, size);
    if (grown) {
        *cap = wanted;
    }
    return grown;
}

/* Makes room for one item more than the `count` that the list has. */
static inline void *gd_grow(void *list, size_t count, size_t *cap, size_t size)
{
    return gd_grow_to(list, count + 1, cap, size);
}

/* The same for the list whose pointer, of any type, is at `list`. False: out of memory. */
static inline bool gd_grow_list(void *list, size_t count, size_t *cap, size_t size)
{
    void *items;

    memcpy(&items, list, sizeof(items));
    items = gd_grow(items, count, cap, size);
    if (items) {
        memcpy(list, &items, sizeof(items));
    }
    return items != NULL;
}

#endif
