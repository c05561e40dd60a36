// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The hits of a session that can go back: finding one again replaces it instead of adding another.
 */
#ifndef GD_ENGINE_HIT_INDEX_H
#define GD_ENGINE_HIT_INDEX_H

#include "engine/session.h"

struct gd_hit_index { /* zero: empty */
    uint64_t *number; /* of hits, as they are counted from 1; by hash, 0 none */
    size_t cap, used;
};

/* The session's hit of the same watchpoint, step and tensor; NULL: none is kept. */
struct gd_hit *gd_hit_index_find(const struct gd_hit_index *index, const struct gd_session *session,
                                 const struct gd_hit *hit);
/* One of session->hits. If out of memory it is not indexed, and may come twice. */
void gd_hit_index_add(struct gd_hit_index *index, const struct gd_session *session,
                      const struct gd_hit *hit);
/* After hits were removed from the session. If out of memory the index is empty. */
void gd_hit_index_rebuild(struct gd_hit_index *index, const struct gd_session *session);
void gd_hit_index_free(struct gd_hit_index *index);

#endif
