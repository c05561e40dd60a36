// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Hits: watchpoints that fired or could not be checked. Hits are numbered from 1 in order of
 * arrival; dropped ones (set max-hits) keep their numbers, so numbers never change.
 */
#ifndef GD_REPL_HITS_H
#define GD_REPL_HITS_H

#include "engine/watch/watchpoint.h"
#include "repl/core/command.h"

uint64_t hits_number(const struct gd_session *session, const struct gd_hit *hit);
/* GD_ENOTFOUND: no such hit, or it was dropped. */
int hits_find(struct gd_session *session, uint64_t number, const struct gd_hit **ret,
              struct gd_err *err);
/* Index into session->hits of the first hit of this stop; hit_count: it has none. */
size_t hits_first_of_stop(const struct gd_session *session);
/* Indexes into session->hits by step, execution order, slot and watchpoint; for one watchpoint, or
 * for all if it is 0. The caller frees it. NULL: no hits, or out of memory. */
size_t *hits_in_order(const struct gd_session *session, int watchpoint, size_t *count);

/* The same order, kept up to date: redrawing costs no more than the new hits. */
struct hits_place {
    int64_t step;
    uint32_t order; /* of execution within the step */
    uint32_t slot;
    int watchpoint;
    uint64_t number; /* hits_find */
};
struct hits_order {
    struct hits_place *place;
    size_t count, capacity;
    /* hit numbers of the session, up to which hits were dropped and sorted in */
    uint64_t dropped, seen;
    uint64_t taken;      /* its hits_generation */
    uint64_t generation; /* of the graph */
    int session;         /* its number; 0: none */
    int watchpoint;
};
/* Brings it up to date. Places from *from on changed. False: nothing changed, or out of memory
 * (then it stays as it was). */
bool hits_order_update(struct hits_order *order, const struct gd_session *session, int watchpoint,
                       size_t *from);
void hits_order_free(struct hits_order *order);

/* The condition that fired, from the hit or from its watchpoint. NULL for an expression, and when
 * the watchpoint is gone. */
const struct gd_condition *hits_condition(struct gd_debugger *debugger, const struct gd_hit *hit);
/* "TO"; "expr" for an expression; "?" for a condition that nobody knows. A constant. */
const char *hits_abbr(struct gd_debugger *debugger, const struct gd_hit *hit);
/* "watchpoint", "trace", "catchpoint" */
const char *hits_noun(const struct gd_hit *hit);
/* "tensor_overflow (TO)", "max > 3", "watchpoint 2", or "lr" for a catchpoint. In the arena. */
const char *hits_what(struct command_call *call, const struct gd_hit *hit);
void hits_add_what(struct gd_debugger *debugger, const struct gd_hit *hit, struct gd_buf *out);
/* "model/x:0", with the micro-batch: "model/x:0 [2/4]"; or "loss". Not escaped. The hit is one of
 * the session's. */
void hits_add_where(const struct gd_session *session, const struct gd_hit *hit, struct gd_buf *out);
const char *hits_where(struct command_call *call, const struct gd_hit *hit);

/* "NODE:SLOT max_gt=0.5 (0.75)", or why it could not be checked. */
void repl_hit_text(const struct gd_session *session, const struct gd_hit *hit, struct gd_buf *out);

void repl_hit_record(cJSON *object, const struct gd_session *session, const struct gd_hit *hit);

#endif
