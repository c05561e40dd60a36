// SPDX-License-Identifier: MIT
/*
 * Memory that is given back in one stroke: one arena per message, per command, per graph.
 * Blocks never move, so pointers into an arena stay valid until it is cleared or deinited.
 */
#ifndef GD_BASE_ARENA_H
#define GD_BASE_ARENA_H

#include <stddef.h>

struct gd_arena_block;

struct gd_arena {
    struct gd_arena_block *head;
    size_t used;  /* bytes handed out */
    size_t total; /* bytes held from the system */
    size_t max;   /* total never exceeds this; 0 means no limit */
};

void gd_arena_init(struct gd_arena *arena, size_t max);
void gd_arena_deinit(struct gd_arena *arena);

/* `size` bytes aligned for any type, not zeroed; NULL when out of memory or over the maximum. */
void *gd_arena_alloc(struct gd_arena *arena, size_t size);
void *gd_arena_zalloc(struct gd_arena *arena, size_t size);

/* A NUL-terminated copy of text[0..len); NULL as above. Not aligned. */
char *gd_arena_strndup(struct gd_arena *arena, const char *text, size_t len);
char *gd_arena_strdup(struct gd_arena *arena, const char *text);

#endif
