// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The hits of a session, or of all ranks of its job in one order: by step, rank, then order of
 * execution. Kept between pictures, so that an update costs only what is new.
 */
#ifndef GD_TUI_JOB_HITS_H
#define GD_TUI_JOB_HITS_H

#include "repl/core/hits.h"

struct gd_ranks;

struct job_hits_place {
    int rank;     /* of the hit; 0 for a session without a job */
    size_t place; /* index in the order of that rank */
    int64_t step;
};
struct job_hits {
    const struct gd_ranks *ranks; /* NULL: a single session */
    struct hits_order *order;     /* by rank */
    int rank_count;
    struct job_hits_place *place;
    size_t count, capacity;
};

/* Updates from the session and the other ranks of its job; watchpoint 0: all watchpoints. Places
 * from *from on have changed. false: nothing changed, or out of memory. */
bool job_hits_update(struct job_hits *hits, const struct gd_session *session, int watchpoint,
                     size_t *from);
void job_hits_free(struct job_hits *hits);

/* Whether these are the hits of the job, or the session, that `current` belongs to. */
bool job_hits_are_of(const struct job_hits *hits, const struct gd_session *current);
/* The session of a place; NULL: another session has taken its rank since the last update. */
const struct gd_session *job_hits_session(const struct job_hits *hits,
                                          const struct gd_session *current, size_t place);
/* The hit of a place; NULL as above, or when it was dropped. */
const struct gd_hit *job_hits_at(const struct job_hits *hits, const struct gd_session *current,
                                 size_t place);

#endif
