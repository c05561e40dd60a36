// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The ranks of one job: sessions that train together and must be moved together, because each waits
 * for the others in its collectives. A boundary is a place between two steps; boundary N is the end
 * of step N, 0 before the first. Two rules keep a job from being torn apart:
 * - no rank is asked to stop inside a step in which others wait for it: ranks stop at boundaries,
 *   and one that stopped inside a step by itself is only moved when the user asks for it;
 * - as long as something can stop one rank (a watchpoint, a breakpoint), all ranks move from
 *   boundary to boundary together, so that the others are at the boundary before the next step when
 *   one stops. Otherwise they run free, and are brought together when they are asked to stop.
 * During a run, stops are recorded silently. When all ranks have stopped, or those that run have
 * not come for a while, the run is settled: each stop is announced (GD_EV_STOPPED, in rank order,
 * the selected session last), then GD_EV_RANKS. Nothing here waits: the owner of a clock calls
 * gd_ranks_tick about ten times a second while gd_ranks_need_tick says so.
 */
#ifndef GD_ENGINE_RANKS_H
#define GD_ENGINE_RANKS_H

#include "base/buf.h"
#include "engine/debugger.h"

struct gd_ranks; /* a job; lives as long as the debugger */

/* The session's job; NULL: it is the only rank. */
struct gd_ranks *gd_ranks_of(const struct gd_session *session);
int gd_ranks_world_size(const struct gd_ranks *ranks);
/* The process that has that rank now, else the last one that had it, or NULL. */
struct gd_session *gd_ranks_member(const struct gd_ranks *ranks, int rank);
size_t gd_ranks_live(const struct gd_ranks *ranks);

/* Resumes the session and, as settings.rank_locking says, all others of its job. Without a job:
 * gd_target_resume. On GD_ESTATE and other errors nothing was moved. */
int gd_ranks_resume(struct gd_session *session, const struct gd_run *run, struct gd_err *err);
/* Seconds after which the framework ends a job in which a rank waits in a collective; 0: so long
 * that it does not matter. Such ranks also move together for "next", and finish their step before
 * that time is over, unless rank-locking is on. */
int gd_ranks_limit(const struct gd_ranks *ranks);
/* Whether gd_ranks_resume would also move the others. */
bool gd_ranks_move_together(const struct gd_session *session, enum gd_run_kind kind);
/* Asks all ranks to stop at the same boundary; when asked again, and without a job:
 * gd_target_interrupt. GD_ESTATE: none is running. */
int gd_ranks_interrupt(struct gd_session *session, struct gd_err *err);
/* Grows each time a run is settled. */
uint64_t gd_ranks_settled(const struct gd_ranks *ranks);
bool gd_ranks_are_busy(const struct gd_ranks *ranks); /* a run is not settled yet */
/* The session is running, or paused between two steps of its job's run. */
bool gd_ranks_is_running(const struct gd_session *session);
/* Ranks are connecting and some are missing: what is settled now continues without them. */
void gd_ranks_give_up(struct gd_ranks *ranks);
/* Ranks that have not connected, followed by ", ..." if there are many; false: all have, or have
 * ended. */
bool gd_ranks_missing(const struct gd_ranks *ranks, struct gd_buf *out);

bool gd_ranks_need_tick(const struct gd_debugger *debugger);
void gd_ranks_tick(struct gd_debugger *debugger);

/* Where each rank is, one sentence per line: "All 2 ranks are stopped at the end of step 3." */
void gd_ranks_text(const struct gd_ranks *ranks, struct gd_buf *out);

/* The event of a catchpoint for which digests of the parameters are compared at each boundary of a
 * run; the first rank that differs gets the hit. */
#define GD_DIVERGENCE "divergence"

/* ---- digests (ranks_digest.c) ---- */

/* Asks every rank, all of which must be stopped, for the digests of its parameters ("",
 * "parameters"), "optimizer", "buffers", "gradients", "all", or of the nodes that match a pattern,
 * and compares them. The training process computes them where the values are. fn is called once.
 * GD_ESTATE: a rank is not stopped; GD_EUNSUPPORTED: a rank cannot. */
struct gd_ranks_digest {
    const char *name;     /* of the tensor */
    const uint64_t *hash; /* by index of `rank`; 0 if it has no such tensor */
    int differs;          /* the first rank that differs from the one before it; -1: none */
};
struct gd_ranks_digests {
    const int *rank; /* those that answered, ascending */
    size_t rank_count;
    const struct gd_ranks_digest *tensor; /* in the order of the first rank */
    size_t tensor_count;
    size_t differing;
    size_t compared; /* on two or more ranks */
    size_t alone;    /* on one rank only: compared with nothing */
    size_t left_out; /* the most of any rank: sharded, or without readable bytes */
};
typedef void (*gd_ranks_digests_fn)(void *ctx, const struct gd_ranks_digests *digests,
                                    const struct gd_err *err);
int gd_ranks_digest(struct gd_ranks *ranks, const char *what, gd_ranks_digests_fn fn, void *ctx,
                    struct gd_err *err);

#endif
