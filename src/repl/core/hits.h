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
/* "Default/x:0", "loss": where, not made safe. */
void hits_add_where(const struct gd_hit *hit, struct gd_buf *out);
const char *hits_where(struct command_call *call, const struct gd_hit *hit);

/* What an answer that no watchpoint fired is based on. "612 checks", "570 checks, 42 more could not
 * be made: NaN"; records: checks, unclear, why_unclear. `checks` counts the unclear ones, too. */
const char *hits_checked(struct command_call *call, uint64_t checks, uint64_t unclear,
                         unsigned errors);
void hits_add_checked(cJSON *record, uint64_t checks, uint64_t unclear, unsigned errors);
/* GD_ENODATA: nothing fired, and nothing could be checked. */
int hits_need_checked(uint64_t hits, uint64_t checks, uint64_t unclear, unsigned errors,
                      struct gd_err *err);

/* The hit that `hit` selected, else the first of this stop, else the last one. NULL with an error:
 * nothing has fired. */
const struct gd_hit *hits_current(struct command_call *call, struct gd_err *err);
/* The number of the one that `hit` selected at this stop; 0: none. */
uint64_t hits_selected(struct repl *repl, const struct gd_session *session);
/* How much a hit is what one wants to see first: 0 when it is not of this stop. */
int hits_weight(const struct gd_session *session, const struct gd_hit *hit);

#endif
