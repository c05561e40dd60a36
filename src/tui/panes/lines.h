// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The source lines that created nodes of a graph, with node counts. They are counted in parts, so
 * that a large graph does not block the keys.
 */
#ifndef GD_TUI_LINES_H
#define GD_TUI_LINES_H

#include "base/arena.h"
#include "engine/session.h"

struct tui_line {
    const char *file; /* full path, as sent by the training process */
    const char *code; /* as sent by the training process; "": unknown */
    uint32_t line;
    uint32_t nodes; /* with this line in their stack */
};

struct tui_lines {
    struct tui_line *line; /* sorted by file and line once all nodes are counted */
    uint32_t count;
    bool done;
    /* private to lines.c */
    struct gd_arena arena;
    uint32_t *slot; /* hash table with open addressing: 1 + index of a line; 0: free */
    uint32_t slots;
    size_t capacity;
    gd_node_id next;
    const struct gd_session *session; /* only compared */
    uint64_t generation;
};

void tui_lines_init(struct tui_lines *lines);
void tui_lines_free(struct tui_lines *lines);
/* Counts some more nodes of the session's graph (NULL: none), from the beginning if it is another
 * graph. Returns true while nodes are left. */
bool tui_lines_follow(struct tui_lines *lines, struct gd_session *session);
/* NULL: no node counted so far was created there. */
const struct tui_line *tui_lines_find(const struct tui_lines *lines, const char *file,
                                      uint32_t line);

#endif
