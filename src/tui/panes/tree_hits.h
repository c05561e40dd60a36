// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The hits of this stop by node, with counts per scope. An update costs only what is new.
 */
#ifndef GD_TUI_TREE_HITS_H
#define GD_TUI_TREE_HITS_H

#include "engine/debugger.h"

#define TREE_HIT_WORDS 3

struct tree_hit {
    uint32_t key; /* number of the node or scope plus 1; 0: free entry */
    uint32_t count;
    const char *word[TREE_HIT_WORDS]; /* abbreviations, each once; NULL ends the list */
    bool unclear[TREE_HIT_WORDS];     /* the check failed */
};
struct tree_hit_table {
    struct tree_hit *entry;
    size_t capacity, count; /* a power of 2 */
};
struct tree_hits {
    struct tree_hit_table node, scope;
    const struct gd_session *session; /* only compared */
    uint64_t sequence, generation, taken;
    uint64_t seen; /* hits are counted up to this number */
};

void tree_hits_update(struct tree_hits *hits, struct gd_session *session);
void tree_hits_free(struct tree_hits *hits);
/* NULL: none. */
const struct tree_hit *tree_hits_of_node(const struct tree_hits *hits, gd_node_id node);
uint32_t tree_hits_below(const struct tree_hits *hits, gd_scope_id scope);

#endif
