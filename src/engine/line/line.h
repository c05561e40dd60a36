// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Breakpoints at lines of the program's source. The training process finds the line, stops before
 * it executes it, and sends the stack there. A breakpoint of a line is a struct gd_breakpoint with
 * `line`; where a process cannot stop at lines, its selector "at:FILE:LINE" stops at the nodes of
 * the line instead. A function is a line, too: its first.
 */
#ifndef GD_ENGINE_LINE_H
#define GD_ENGINE_LINE_H

#include "engine/target.h"

struct gd_debugger;
struct gd_breakpoint;
struct gd_session;

enum gd_line_state {
    GD_LINE_ASKED,   /* no process has answered yet */
    GD_LINE_FOUND,   /* `place` */
    GD_LINE_PENDING, /* its source is not loaded yet */
    GD_LINE_NOWHERE, /* there is no such line: `why` */
};

struct gd_line_place { /* where it stops */
    char *file;
    uint32_t line;
    char *function;
};

struct gd_line {
    char *file;     /* as typed: a path, or the end of one; "": any file with the function */
    uint32_t line;  /* 0: the first of `function` */
    char *function; /* "forward", "Net.forward"; "": none */
    bool returns; /* not the line, but the end of a function that it calls: gd_line_break_return */
    enum gd_line_state state;
    char why[160];
    struct gd_line_place *place;
    size_t place_count;
};

#define GD_MAX_LINES 1024 /* that a process is asked for */

/* "FILE:LINE" or "FILE:FUNCTION", where FILE has a suffix of source files; with `functions` also a
 * name that a function may have. *ret NULL: `where` is none of these. */
int gd_line_parse(const char *where, bool functions, struct gd_line **ret, struct gd_err *err);
/* Whether it is FILE:LINE, and not a function. */
bool gd_line_is_numbered(const struct gd_line *line);
void gd_line_destroy(struct gd_line *line); /* NULL is fine */

/* A momentary breakpoint where a frame that runs now returns to the line `where`. Which frame it
 * is, the process must know already or be asked for before it resumes. */
int gd_line_break_return(struct gd_debugger *debugger, const char *where,
                         struct gd_breakpoint **ret, struct gd_err *err);

/* Whether the session's process stops at lines by itself. */
bool gd_session_has_lines(const struct gd_session *session);
/* From the target: where the line of breakpoint `number` is; why: as in LinePlaces. */
void gd_session_on_line_place(struct gd_session *session, int number, const struct gd_frame *place,
                              size_t count, const char *why);
/* From the target, before gd_session_on_stopped with stop.at_line: the breakpoints of the line, and
 * the stack. Both are copied. */
void gd_session_on_line(struct gd_session *session, const uint32_t *numbers, size_t number_count,
                        const struct gd_frame *frames, size_t frame_count);
/* Whether nobody has begun to ask for the stack at this stop; now somebody has. */
bool gd_session_begin_stack(struct gd_session *session);
/* What a process answered that was asked for its stack at this stop; empty: it has none. Copied. */
void gd_session_on_stack(struct gd_session *session, const struct gd_frame *frames,
                         size_t frame_count);
/* The stack of the line at which the session is stopped, or the one it was asked for, innermost
 * first; NULL: neither, or a node was selected since. */
const struct gd_frame *gd_session_line_stack(const struct gd_session *session, uint32_t *count);

#endif
