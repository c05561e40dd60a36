// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The files of an API dump below a root, one rank after another: what all readers of such dumps
 * have in common. Private to them.
 */
#ifndef GD_DUMP_API_WALK_H
#define GD_DUMP_API_WALK_H

#include "dump/msprobe/api_load.h"
#include "dump/msprobe/msprobe_table.h"

struct api_walk_ops { /* the detail of a format whose functions are these */
    const char *rule;
    /* Whether the file of the listing is one that the format begins with. */
    bool (*wants)(const struct gd_listing *listing, uint32_t entry);
    /* Takes it all. An error leaves it out with that reason, what was taken stays. */
    int (*take)(struct api_load *load, const char *path, const struct api_where *where,
                struct gd_err *err);
    /* Behind the last file of a rank; NULL: there is nothing to be done. */
    int (*finish)(struct api_load *load, const struct api_where *where, struct gd_err *err);
    bool steps_inside; /* files tell steps, their paths do not */
    /* What the path of a file tells; NULL: api_where_of. */
    void (*where)(const char *path, struct api_where *ret);
};

int api_walk_find(const struct gd_dump_format *format, const struct gd_listing *listing,
                  struct gd_findings *findings, struct gd_err *err);
int api_walk_read(const struct gd_listing *listing, const struct gd_finding *finding,
                  struct gd_dump *dump, bool (*go_on)(void *ctx, uint64_t done), void *ctx,
                  struct gd_err *err);

/* As gd_dump_leave_out; a reason that begins with the path is told without it. */
int api_leave_out(struct gd_dump *dump, const char *path, const struct gd_err *why,
                  struct gd_err *err);
/* The rows of a table, one after another; `take` looks at the one it stands at. Of a file the first
 * that it refuses are told, with their lines, and left out like all it refuses. */
int api_take_rows(struct api_load *load, struct table *table, const char *path,
                  int (*take)(void *ctx, struct gd_err *err), void *ctx, struct gd_err *err);
/* The first bytes of a file, NUL-terminated; 0: it cannot be read. */
size_t api_peek(const struct gd_listing *listing, uint32_t entry, char *out, size_t size);

#endif
