// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * What ranks.c, ranks_text.c and ranks_digest.c share and nobody else sees.
 */
#ifndef GD_ENGINE_RANKS_IMPL_H
#define GD_ENGINE_RANKS_IMPL_H

#include "engine/ranks.h"
#include "engine/session_impl.h"

enum ranks_phase {
    RANKS_IDLE,
    RANKS_CONNECT, /* ranks stand before they first run, and others have not come yet */
    RANKS_RUN,
    RANKS_CHECK, /* all stand at a boundary, and digests of their parameters are awaited */
};

struct gd_ranks {
    struct gd_ranks *next;
    struct gd_debugger *debugger;
    char job[64];
    int world_size;
    enum ranks_phase phase;
    struct gd_run run; /* what was asked for; its names are those of the sessions' graphs */
    bool together;     /* from one boundary to the next */
    int64_t last;      /* the boundary where the run is over; INT64_MAX none */
    bool pause;        /* stand where all can */
    bool caused;       /* one stopped by itself, or is lost */
    bool gave_up;      /* on those that have not connected */
    double since;      /* of what the clock counts */
    double patience;
    int64_t checked; /* the boundary where the digests were compared last; -1 none */
    uint64_t settled;
    bool advancing, again;
};

struct ranks_tally { /* of the live ranks */
    int live, running, standing;
    bool caused;
    int64_t low, high; /* boundaries of those that stand; 0 when none does */
};
void ranks_count(const struct gd_ranks *ranks, struct ranks_tally *ret);
/* The boundary behind which a session stands: inside step 5 it is 4. */
int64_t ranks_boundary(const struct gd_session *session);
/* The live sessions by rank; owned by the caller. NULL: none, or no memory. */
struct gd_session **ranks_list(const struct gd_ranks *ranks, size_t *count);
bool ranks_is_live(const struct gd_ranks *ranks, const struct gd_session *session);
/* Something has changed: looks what is to be done now. */
void ranks_advance(struct gd_ranks *ranks);
/* What there is to tell of the run is told, and it is over. */
void ranks_settle(struct gd_ranks *ranks);
/* All stand at a boundary. Whether digests are waited for before anybody goes on. */
bool ranks_check(struct gd_ranks *ranks, const struct ranks_tally *tally);

#endif
