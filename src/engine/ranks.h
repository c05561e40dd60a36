// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The ranks of one job: sessions that train together, and that have to be moved together, since
 * each waits for the others in its collectives.
 *
 * A boundary is a place between two steps; boundary N is the end of step N, 0 before the first. Two
 * rules keep a job from being torn apart:
 * - nobody is asked to stand inside a step in which others wait for it: ranks are stopped at
 *   boundaries, and one that stopped inside a step by itself is never moved behind the user's back;
 * - as long as something may stop one rank (a watchpoint, a breakpoint), all go from boundary to
 *   boundary together, so that the others stand at the boundary before the next step when one
 *   stops. Where nothing can, they run free, and are brought together when they are asked to stop.
 *
 * While a run is under way stops are taken down silently; when all ranks stand, or those that run
 * have not come for a while, the run is settled: each stop is told (GD_EV_STOPPED, in order of
 * ranks, the selected session last), then GD_EV_RANKS. Nothing here waits: gd_ranks_tick is called
 * by who has a clock, about ten times a second, while gd_ranks_need_tick says so.
 */
#ifndef GD_ENGINE_RANKS_H
#define GD_ENGINE_RANKS_H

#include "base/buf.h"
#include "engine/debugger.h"

struct gd_ranks; /* a job; lives as long as the debugger */

/* The job that a session is a rank of; NULL: it is alone in its. */
struct gd_ranks *gd_ranks_of(const struct gd_session *session);
int gd_ranks_world_size(const struct gd_ranks *ranks);
/* The process that has that rank now; when there is none, the last one that had it, or NULL. */
struct gd_session *gd_ranks_member(const struct gd_ranks *ranks, int rank);
size_t gd_ranks_live(const struct gd_ranks *ranks);

/* Goes on with the session and, as settings.rank_locking has it, with all others of its job. A
 * session without a job: gd_target_resume. GD_ESTATE and others as that: nothing was moved then. */
int gd_ranks_resume(struct gd_session *session, const struct gd_run *run, struct gd_err *err);
/* Whether gd_ranks_resume would move the others, too. */
bool gd_ranks_move_together(const struct gd_session *session, enum gd_run_kind kind);
/* Asks all ranks to stand at the same boundary; asked again, and for a session without a job:
 * gd_target_interrupt. GD_ESTATE: none runs. */
int gd_ranks_interrupt(struct gd_session *session, struct gd_err *err);
/* Grows each time that a run is settled. */
uint64_t gd_ranks_settled(const struct gd_ranks *ranks);
bool gd_ranks_are_busy(const struct gd_ranks *ranks); /* a run is not settled yet */
/* The session runs, or stands for a moment between two steps of a run of its job. */
bool gd_ranks_is_running(const struct gd_session *session);
/* Ranks connect and not all are there: what is settled now goes on without them. */
void gd_ranks_give_up(struct gd_ranks *ranks);
/* Ranks that have not connected, ", ..." behind the first of very many; false: all have, or are
 * known to have ended. */
bool gd_ranks_missing(const struct gd_ranks *ranks, struct gd_buf *out);

bool gd_ranks_need_tick(const struct gd_debugger *debugger);
void gd_ranks_tick(struct gd_debugger *debugger);

/* Who stands where, a sentence a line: "All 2 ranks stand at the end of step 3." */
void gd_ranks_text(const struct gd_ranks *ranks, struct gd_buf *out);

/* The event of a catchpoint for which digests of the parameters are compared at each boundary that
 * a run comes to; the first rank that differs has the hit. */
#define GD_DIVERGENCE "divergence"

/* ---- digests (ranks_digest.c) ---- */

/* Asks every rank, which must stand, for the digests of its parameters ("", "parameters"),
 * "optimizer", "buffers", "gradients", "all", or of the nodes that a pattern names, and compares
 * them. The training program computes them where the values lie. fn is called once. GD_ESTATE: a
 * rank does not stand; GD_EUNSUPPORTED: one cannot. */
struct gd_ranks_digest {
    const char *name;     /* of the tensor */
    const uint64_t *hash; /* by index of `rank`; 0 where it has no such tensor */
    int differs;          /* the first rank that has another than the one before it; -1: none */
};
struct gd_ranks_digests {
    const int *rank; /* those that answered, ascending */
    size_t rank_count;
    const struct gd_ranks_digest *tensor; /* in the order of the first rank */
    size_t tensor_count;
    size_t differing;
    size_t compared; /* that two ranks or more have */
    size_t alone;    /* that one rank alone has: compared with nothing */
    size_t left_out; /* the most of a rank: sharded, or with no bytes to read */
};
typedef void (*gd_ranks_digests_fn)(void *ctx, const struct gd_ranks_digests *digests,
                                    const struct gd_err *err);
int gd_ranks_digest(struct gd_ranks *ranks, const char *what, gd_ranks_digests_fn fn, void *ctx,
                    struct gd_err *err);

#endif
