// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Hits: what fired, or could not be checked. Their numbers count in order of arrival from 1, those
 * that were dropped (set max-hits) too, so that a number stays what it is.
 */
#ifndef GD_REPL_HITS_H
#define GD_REPL_HITS_H

#include "engine/watch/watchpoint.h"
#include "repl/core/command.h"

uint64_t hits_number(const struct gd_session *session, const struct gd_hit *hit);
/* GD_ENOTFOUND: there is none, or it was dropped. */
int hits_find(struct gd_session *session, uint64_t number, const struct gd_hit **ret,
              struct gd_err *err);
/* Indexes of session->hits in order of step, then execution, then slot and watchpoint; only those
 * of one watchpoint unless it is 0. malloc'd; NULL when there is none or memory is short. */
size_t *hits_in_order(const struct gd_session *session, int watchpoint, size_t *count);

/* The same order, kept: what a picture needs of it costs no more than the hits that are new. */
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
    uint64_t dropped, seen; /* hits of the session up to those numbers */
    uint64_t taken;         /* its hits_generation */
    uint64_t generation;    /* of the graph */
    int session;            /* number; 0 none */
    int watchpoint;
};
/* Brings it up to date. Places from *from on are not what they were; false: nothing changed (or
 * memory is short, then it stays as it was). */
bool hits_order_update(struct hits_order *order, const struct gd_session *session, int watchpoint,
                       size_t *from);
void hits_order_free(struct hits_order *order);

/* What fired: the hit's own, else by the watchpoint's number; NULL for an expression and where it
 * is not known any more. */
const struct gd_condition *hits_condition(struct gd_debugger *debugger, const struct gd_hit *hit);
/* "watchpoint", "trace", "catchpoint" */
const char *hits_noun(const struct gd_hit *hit);
/* "tensor_overflow (TO)", "max > 3", "watchpoint 2", of a catchpoint "lr": in the arena. */
const char *hits_what(struct command_call *call, const struct gd_hit *hit);
void hits_add_what(struct gd_debugger *debugger, const struct gd_hit *hit, struct gd_buf *out);
/* "Default/x:0", "loss": where, not made safe. */
void hits_add_where(const struct gd_hit *hit, struct gd_buf *out);
const char *hits_where(struct command_call *call, const struct gd_hit *hit);

/* What a hit is about: "NODE:SLOT max_gt=0.5 (0.75)", or why it could not be checked. */
void repl_hit_text(const struct gd_hit *hit, struct gd_buf *out);
/* As an object; with `head` the session's number and rank come first. */
cJSON *repl_hit_json(const struct gd_session *session, const struct gd_hit *hit, bool head);

#endif
