// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Hits of a session that can go back to what was judged already: what is found there again is the
 * same hit, not one more.
 */
#ifndef GD_ENGINE_HIT_INDEX_H
#define GD_ENGINE_HIT_INDEX_H

#include "engine/session.h"

struct gd_hit_index { /* zero: empty */
    uint64_t *number; /* of hits, as they are counted from 1; by hash, 0 none */
    size_t cap, used;
};

/* The session's hit of the same watchpoint, step and tensor; NULL: there is none that is kept. */
struct gd_hit *gd_hit_index_find(const struct gd_hit_index *index, const struct gd_session *session,
                                 const struct gd_hit *hit);
/* One of session->hits. When memory is short it is not known, and can come twice. */
void gd_hit_index_add(struct gd_hit_index *index, const struct gd_session *session,
                      const struct gd_hit *hit);
/* After hits were taken out of the session. Without memory it is empty. */
void gd_hit_index_rebuild(struct gd_hit_index *index, const struct gd_session *session);
void gd_hit_index_free(struct gd_hit_index *index);

#endif
