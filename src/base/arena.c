// SPDX-License-Identifier: MIT
#include "base/arena.h"

#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_BLOCK  4096
#define LARGEST_STEP (1 << 20)

struct gd_arena_block {
    struct gd_arena_block *next;
    size_t size; /* bytes */
    size_t used;
    alignas(max_align_t) unsigned char bytes[];
};

void gd_arena_init(struct gd_arena *arena, size_t max)
{
    memset(arena, 0, sizeof(*arena));
    arena->max = max;
}

void gd_arena_deinit(struct gd_arena *arena)
{
    struct gd_arena_block *block = arena->head;

    while (block) {
        struct gd_arena_block *next = block->next;

        free(block);
        block = next;
    }
    gd_arena_init(arena, arena->max);
}

static struct gd_arena_block *add_block(struct gd_arena *arena, size_t need)
{
    const size_t head = sizeof(struct gd_arena_block);
    size_t room = arena->max ? arena->max - arena->total : SIZE_MAX;
    size_t size = arena->total < FIRST_BLOCK    ? FIRST_BLOCK
                  : arena->total < LARGEST_STEP ? arena->total
                                                : LARGEST_STEP;

    if (need > SIZE_MAX - head || need + head > room) {
        return NULL;
    }
    if (size < need + head) {
        size = need + head;
    }
    if (size > room) {
        size = room;
    }
    struct gd_arena_block *block = malloc(size);
    if (!block) {
        return NULL;
    }
    block->size = size - head;
    block->used = 0;
    arena->total += size;
    /* Keep the current block in front when it has more free room than a block made for one big
     * piece. */
    if (arena->head && arena->head->size - arena->head->used > block->size - need) {
        block->next = arena->head->next;
        arena->head->next = block;
    } else {
        block->next = arena->head;
        arena->head = block;
    }
    return block;
}

static void *take_from_block(struct gd_arena *arena, size_t size, size_t align)
{
    struct gd_arena_block *block = arena->head;
    size_t start = 0;

    if (block) {
        start = (block->used + align - 1) & ~(align - 1);
    }
    if (!block || start > block->size || size > block->size - start) {
        block = add_block(arena, size);
        if (!block) {
            return NULL;
        }
        start = 0;
    }
    block->used = start + size;
    arena->used += size;
    return block->bytes + start;
}

void *gd_arena_alloc(struct gd_arena *arena, size_t size)
{
    return take_from_block(arena, size, alignof(max_align_t));
}

void *gd_arena_zalloc(struct gd_arena *arena, size_t size)
{
    void *bytes = gd_arena_alloc(arena, size);

    if (bytes) {
        memset(bytes, 0, size);
    }
    return bytes;
}

char *gd_arena_strndup(struct gd_arena *arena, const char *text, size_t len)
{
    char *copy = len < SIZE_MAX ? take_from_block(arena, len + 1, 1) : NULL;

    if (!copy) {
        return NULL;
    }
    if (len) {
        memcpy(copy, text, len);
    }
    copy[len] = '\0';
    return copy;
}

char *gd_arena_strdup(struct gd_arena *arena, const char *text)
{
    return gd_arena_strndup(arena, text, strlen(text));
}
