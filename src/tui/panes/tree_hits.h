// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The hits of this stop by node, and how many there are below every scope: kept up to date at the
 * cost of the hits that are new.
 */
#ifndef GD_TUI_TREE_HITS_H
#define GD_TUI_TREE_HITS_H

#include "engine/debugger.h"

#define TREE_HIT_WORDS 3

struct tree_hit {
    uint32_t key; /* node or scope number and 1; 0: the place is free */
    uint32_t count;
    const char *word[TREE_HIT_WORDS]; /* abbreviations, each once; NULL: no more of them */
    bool unclear[TREE_HIT_WORDS];     /* could not be checked */
};
struct tree_hit_table {
    struct tree_hit *entry;
    size_t capacity, count; /* a power of 2 */
};
struct tree_hits {
    struct tree_hit_table node, scope;
    const struct gd_session *session; /* only compared */
    uint64_t sequence, generation, taken;
    uint64_t seen; /* hits of the session up to this number */
};

void tree_hits_update(struct tree_hits *hits, struct gd_session *session);
void tree_hits_free(struct tree_hits *hits);
/* NULL: none. */
const struct tree_hit *tree_hits_of_node(const struct tree_hits *hits, gd_node_id node);
uint32_t tree_hits_below(const struct tree_hits *hits, gd_scope_id scope);

#endif
