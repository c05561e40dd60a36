// SPDX-License-Identifier: MIT
/*
 * Memory that is freed all at once: one arena per message, per command, per graph. Blocks never
 * move: pointers stay valid until gd_arena_deinit.
 */
#ifndef GD_BASE_ARENA_H
#define GD_BASE_ARENA_H

#include <stddef.h>

struct gd_arena_block;

struct gd_arena {
    struct gd_arena_block *head;
    size_t used;  /* bytes allocated from it */
    size_t total; /* bytes it allocated from the system */
    size_t max;   /* limit for total; 0: none */
};

void gd_arena_init(struct gd_arena *arena, size_t max);
void gd_arena_deinit(struct gd_arena *arena);

/* Aligned for any type; alloc does not zero. NULL: out of memory, or over the limit. */
void *gd_arena_alloc(struct gd_arena *arena, size_t size);
void *gd_arena_zalloc(struct gd_arena *arena, size_t size);

/* NUL-terminated copies; NULL as above. Not aligned. */
char *gd_arena_strndup(struct gd_arena *arena, const char *text, size_t len);
char *gd_arena_strdup(struct gd_arena *arena, const char *text);

#endif
