// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The hits of a session in order, or of all ranks of its job in one order: by step, then by rank,
 * then of execution. Kept from picture to picture: an update costs no more than what is new.
 */
#ifndef GD_TUI_JOB_HITS_H
#define GD_TUI_JOB_HITS_H

#include "repl/core/hits.h"

struct gd_ranks;

struct job_hits_place {
    int rank;     /* whose hit; 0 for a session without a job */
    size_t place; /* in the order of that rank */
    int64_t step;
};
struct job_hits {
    const struct gd_ranks *ranks; /* NULL: a session alone */
    struct hits_order *order;     /* by rank */
    int rank_count;
    struct job_hits_place *place;
    size_t count, capacity;
};

/* Brings it up to date with the session, and with the other ranks of its job; watchpoint 0: of all.
 * Places from *from on are not what they were; false: nothing changed (or memory is short). */
bool job_hits_update(struct job_hits *hits, const struct gd_session *session, int watchpoint,
                     size_t *from);
void job_hits_free(struct job_hits *hits);

/* Whether it is about the ranks of a job, or the session, that `current` belongs to. */
bool job_hits_are_of(const struct job_hits *hits, const struct gd_session *current);
/* The session of a place; NULL: another one has taken its rank since the last update. */
const struct gd_session *job_hits_session(const struct job_hits *hits,
                                          const struct gd_session *current, size_t place);
/* Its hit; NULL as above, or it was dropped. */
const struct gd_hit *job_hits_at(const struct job_hits *hits, const struct gd_session *current,
                                 size_t place);

#endif
