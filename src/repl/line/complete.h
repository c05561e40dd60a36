// SPDX-License-Identifier: GPL-3.0-or-later
/* Completion in progress: shared by the files named complete*.c. */
#ifndef GD_REPL_COMPLETE_H
#define GD_REPL_COMPLETE_H

#include "repl/core/repl_impl.h"

struct completion {
    struct repl *repl;
    const char *line; /* up to the cursor */
    size_t start;     /* where the word starts */
    const char *word; /* line + start */
    size_t len;
    char **words;
    size_t count, room;
};

/* The word starts there. */
void complete_at(struct completion *c, size_t start);
/* Each adds the candidates that start with the word. */
void complete_if(struct completion *c, const char *text);
void complete_list(struct completion *c, const char *list); /* blank-separated */
void complete_selectors(struct completion *c);
void complete_tensors(struct completion *c); /* nodes and their slots */
void complete_conditions(struct completion *c);
/* What an expression may use; no statistic with one of those needs (enum gd_stat_need). */
void complete_figures(struct completion *c, unsigned needs);
/* The arguments of watch and of `watch edit`, which start at `first`. */
void complete_watch(struct completion *c, size_t first);
void complete_watch_edit(struct completion *c, size_t first);
/* The line of dprintf, which starts at `first`. */
void complete_dprintf(struct completion *c, size_t first);

#endif
