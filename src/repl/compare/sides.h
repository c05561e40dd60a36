// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The arguments of `compare`, `first-divergence` and `check`: a tensor file, one tensor in it
 * (FILE:NAME), a directory, a checkpoint, a dump by its path or as a session (@N), a stopped
 * training (@N). Each is loaded as tables, one for each step and rank.
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
    size_t ranks_left_out;      /* there are more than fit */
    struct gd_session *session; /* SIDE_LIVE, SIDE_DUMP of a session */
    bool previous;              /* "@1:prev": the step before the current one */
    struct gd_source *tensor;   /* SIDE_TENSOR */
    const char *path;
};

/* Whether the word means one of these rather than a tensor of the session. */
bool side_is_meant(struct command_call *call, const char *word);
/* Finds out what it is. GD_ENOTFOUND, and errors of reading. */
int side_open(struct command_call *call, const char *word, struct side *ret, struct gd_err *err);
/* GD_EUNSUPPORTED for "@N:prev", for commands that read all steps. */
int side_open_whole(struct command_call *call, const char *word, struct side *ret,
                    struct gd_err *err);
void side_close(struct side *side);

/* The steps of a rank, ascending; none for files without steps. */
const struct gd_catalog_step *side_steps(const struct side *side, size_t rank, size_t *count);
/* The table of a step (-1: without steps, or the session's current one). */
int side_load(struct command_call *call, struct side *side, size_t rank, int64_t step,
              struct gd_table *ret, struct gd_err *err);
/* The current value of a session's tensor. A missing value is NULL with a reason; only GD_EINTR,
 * GD_ENOMEM and GD_ELOST are errors. *step: whose value it is, -1: unknown; step may be NULL. */
int side_fetch_value(struct command_call *call, struct gd_session *session,
                     const struct gd_tensor_ref *ref, struct gd_source **ret, const char **why,
                     int64_t *step, struct gd_err *err);
/* The output of an operator of a live session in its current step; an older value is a problem of
 * the item. */
int side_fetch_of_step(struct command_call *call, struct side *side, const struct gd_unit *unit,
                       struct gd_item *item, struct gd_err *err);
/* The value of an item of a live session. If the previous step's value was not kept, the item says
 * so. */
int side_fetch(struct command_call *call, struct side *side, const struct gd_unit *unit,
               struct gd_item *item, struct gd_err *err);

#endif
