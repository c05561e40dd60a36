// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * What `compare`, `first-divergence` and `check` are given: a tensor file, one tensor of it
 * (FILE:NAME), a directory, a checkpoint, a dump by its path or as a session (@N), a training that
 * is stopped (@N). Loaded as tables, one for each step and rank.
 */
#ifndef GD_REPL_SIDES_H
#define GD_REPL_SIDES_H

#include "compare/tensor_table.h"
#include "repl/core/command.h"

enum side_kind { SIDE_FILE, SIDE_DIRECTORY, SIDE_DUMP, SIDE_LIVE, SIDE_TENSOR };

struct side {
    enum side_kind kind;
    const char *label; /* as typed */
    struct gd_archive *archive;
    const char *entry;          /* FILE:NAME: the name; "" all */
    struct gd_dump *dump;       /* of a path: owned */
    struct gd_graph *graph[64]; /* of its catalogs */
    const struct gd_catalog *catalog[64];
    size_t catalog_count;       /* ranks */
    size_t ranks_left_out;      /* more than there is room for */
    struct gd_session *session; /* SIDE_LIVE, SIDE_DUMP of a session */
    bool previous;              /* "@1:prev": the step before the one it stands in */
    struct gd_source *tensor;   /* SIDE_TENSOR */
    const char *path;
};

/* Whether the word means such a thing rather than a tensor of the session. */
bool side_is_meant(struct command_call *call, const char *word);
/* Finds out what it is. GD_ENOTFOUND, and what reading says. */
int side_open(struct command_call *call, const char *word, struct side *ret, struct gd_err *err);
/* For who reads all steps of a dump, and cannot take the one before for another: GD_EUNSUPPORTED.
 */
int side_open_whole(struct command_call *call, const char *word, struct side *ret,
                    struct gd_err *err);
void side_close(struct side *side);

/* Steps that a rank has, ascending; none for what has no steps. */
const struct gd_catalog_step *side_steps(const struct side *side, size_t rank, size_t *count);
/* What it holds of a step (-1: what has no steps, or the one that a session stands in). */
int side_load(struct command_call *call, struct side *side, size_t rank, int64_t step,
              struct gd_table *ret, struct gd_err *err);
/* A value of a session, where it stands. What cannot be had is NULL, and why; GD_EINTR, GD_ENOMEM
 * and GD_ELOST are errors. *step: whose value it is, -1 unknown; step may be NULL. */
int side_fetch_value(struct command_call *call, struct gd_session *session,
                     const struct gd_tensor_ref *ref, struct gd_source **ret, const char **why,
                     int64_t *step, struct gd_err *err);
/* What an operator of a live session gave in the step that it is in; a value of a step before is a
 * problem of the item. */
int side_fetch_of_step(struct command_call *call, struct side *side, const struct gd_unit *unit,
                       struct gd_item *item, struct gd_err *err);
/* Of a live session: the value of an item, fetched. Of a step before that is not held a problem of
 * the item tells. */
int side_fetch(struct command_call *call, struct side *side, const struct gd_unit *unit,
               struct gd_item *item, struct gd_err *err);

#endif
