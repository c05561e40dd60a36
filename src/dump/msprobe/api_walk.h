// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Walks the files of an API dump below a root, rank by rank. Shared by the readers of such dumps.
 */
#ifndef GD_DUMP_API_WALK_H
#define GD_DUMP_API_WALK_H

#include "dump/msprobe/api_load.h"
#include "dump/msprobe/msprobe_table.h"

struct api_walk_ops { /* the detail of a format that uses these functions */
    const char *rule;
    /* Whether this file of the listing marks the format. */
    bool (*wants)(const struct gd_listing *listing, uint32_t entry);
    /* Reads the whole file. On an error it is left out with the reason, but what was read before
     * stays. */
    int (*take)(struct api_load *load, const char *path, const struct api_where *where,
                struct gd_err *err);
    /* Called after the last file of a rank; may be NULL. */
    int (*finish)(struct api_load *load, const struct api_where *where, struct gd_err *err);
    bool steps_inside; /* steps are given in the files, not in their paths */
    /* What the path of a file says; NULL: api_where_of. */
    void (*where)(const char *path, struct api_where *ret);
};

int api_walk_find(const struct gd_dump_format *format, const struct gd_listing *listing,
                  struct gd_findings *findings, struct gd_err *err);
int api_walk_read(const struct gd_listing *listing, const struct gd_finding *finding,
                  struct gd_dump *dump, bool (*go_on)(void *ctx, uint64_t done), void *ctx,
                  struct gd_err *err);

/* Like gd_dump_leave_out, but strips the path from the beginning of the reason. */
int api_leave_out(struct gd_dump *dump, const char *path, const struct gd_err *why,
                  struct gd_err *err);
/* Reads the members of a JSON file's root object. A missing file is ignored. On an error the file
 * is left out with the reason, but what was read before stays: after a crash its end is missing. */
int api_take_members(struct api_load *load, const char *path, uint64_t max, api_member_fn fn,
                     void *ctx, struct gd_err *err);
/* Reports a row that was refused, if it is one of the first ones. */
int api_bad_row(struct api_load *load, const char *path, uint64_t line, size_t bad,
                const struct gd_err *why, struct gd_err *err);
/* Calls `take` for each row of a table. Rows it refuses are left out; the first ones of a file are
 * reported with their lines. */
int api_take_rows(struct api_load *load, struct table *table, const char *path,
                  int (*take)(void *ctx, struct gd_err *err), void *ctx, struct gd_err *err);

#endif
