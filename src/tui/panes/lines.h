// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The source lines that nodes of a graph were made in, with counts. They are counted by parts, so
 * that a big graph does not hold the keys up.
 */
#ifndef GD_TUI_LINES_H
#define GD_TUI_LINES_H

#include "base/arena.h"
#include "engine/session.h"

struct tui_line {
    const char *file; /* whole, as the trainer named it */
    const char *code; /* as it sent it; "" unknown */
    uint32_t line;
    uint32_t nodes; /* that have it in their stack */
};

struct tui_lines {
    struct tui_line *line; /* by file and line once all nodes were looked at */
    uint32_t count;
    bool done;
    /* of lines.c */
    struct gd_arena arena;
    uint32_t *slot; /* open addressing: 1 + index of a line, 0 free */
    uint32_t slots, capacity;
    gd_node_id next;
    const struct gd_session *session; /* only compared */
    uint64_t generation;
};

void tui_lines_init(struct tui_lines *lines);
void tui_lines_free(struct tui_lines *lines);
/* Looks at some nodes more of the session's graph (NULL: there is none), from the first on when it
 * is another one. True while there are nodes left. */
bool tui_lines_follow(struct tui_lines *lines, struct gd_session *session);
/* NULL: no node was made there, or none was seen yet. */
const struct tui_line *tui_lines_find(const struct tui_lines *lines, const char *file,
                                      uint32_t line);

#endif
