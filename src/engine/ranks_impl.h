// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Shared by ranks*.c only.
 */
#ifndef GD_ENGINE_RANKS_IMPL_H
#define GD_ENGINE_RANKS_IMPL_H

#include "engine/ranks.h"
#include "engine/session_impl.h"

enum ranks_phase {
    RANKS_IDLE,
    RANKS_CONNECT, /* ranks are stopped before they first run, and others have not connected yet */
    RANKS_RUN,
    RANKS_CHECK, /* all are stopped at a boundary; waiting for digests of their parameters */
};

struct over_ranks; /* metric/over_ranks_impl.h */

struct gd_ranks {
    struct gd_ranks *next;
    struct over_ranks *over; /* metrics over all ranks; NULL: there were none */
    struct gd_debugger *debugger;
    char job[64];
    int world_size;
    enum ranks_phase phase;
    struct gd_run run; /* the requested run; its names are those of the sessions' graphs */
    bool together;     /* they move from one boundary to the next */
    int64_t last;      /* the boundary where the run ends; INT64_MAX none */
    bool pause;        /* stop where all can */
    bool caused;       /* one stopped by itself, or is lost */
    bool gave_up;      /* no longer waits for ranks that have not connected */
    double since;      /* when the clock was started */
    double patience;
    double waits;    /* when one was first seen to run while another is stopped; 0: none */
    int64_t checked; /* the boundary where digests were last compared; -1 none */
    uint64_t settled;
    bool advancing, again;
};

struct ranks_tally { /* of the live ranks */
    int live, running, standing;
    bool caused;
    int64_t low, high; /* boundaries of the stopped ones; 0 if there are none */
};
/* The live sessions by rank; owned by the caller. NULL: none, or no memory. */
struct gd_session **ranks_list(const struct gd_ranks *ranks, size_t *count);
/* Something has changed: decides what to do next. */
void ranks_advance(struct gd_ranks *ranks);
/* Announces the stops of the run, and ends it. */
void ranks_settle(struct gd_ranks *ranks);
/* All are at a boundary. Whether to wait for digests before anyone continues. */
bool ranks_check(struct gd_ranks *ranks, const struct ranks_tally *tally);

#endif
