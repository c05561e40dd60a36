// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Hits as they are reported in text: grouped by watchpoint and step, and only counted when there
 * are too many to read.
 */
#ifndef GD_REPL_HITS_TOLD_H
#define GD_REPL_HITS_TOLD_H

#include <stddef.h>
#include <stdint.h>

#include "engine/session.h"

struct repl;

struct repl_unclear { /* hits of one watchpoint that could not be checked for the same reasons */
    int watchpoint;
    unsigned error;
    size_t count;
    char *head, *first; /* the watchpoint's line and the first hit's; owned */
};
struct repl_told { /* the hits of one step that were reported */
    int session;   /* its number; 0: none */
    int64_t step;
    int watchpoint; /* the last hit's */
    char *head;     /* its line if it was not printed yet; owned */
    size_t lines, left_out;
    struct repl_unclear unclear[8]; /* of this step, not printed yet */
};

struct repl_flood { /* hits that come faster than anyone reads */
    double since;
    size_t lines; /* printed since then */
    size_t left_out;
};

void repl_hit_event(struct repl *repl, const struct gd_session *session, const struct gd_hit *hit,
                    const char *prefix);  /* text mode; `prefix` names the process */
void repl_hits_forget(struct repl *repl); /* drops what was not printed */
void repl_hits_over(struct repl *repl);   /* reports how many were left out; a new step begins */

#endif
