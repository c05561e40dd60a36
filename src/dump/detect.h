// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * What formats are in a directory: each format looks through the listing and tells where it lies
 * and by which rule. All that are found are read, into one dump.
 */
#ifndef GD_DUMP_DETECT_H
#define GD_DUMP_DETECT_H

#include "dump/catalog.h"
#include "engine/debugger.h"

struct gd_findings { /* in the order of gd_dump_formats, then of the listing */
    struct gd_finding *item;
    size_t count, cap;
};

void gd_findings_clear(struct gd_findings *findings);

struct gd_detect_options {
    const char *format;                      /* this one and no other; NULL: all */
    const struct gd_open_options *open;      /* for the readers: gd_dump_options */
    uint64_t max_graph;                      /* bytes of a graph; 0 no limit */
    bool (*go_on)(void *ctx, uint64_t done); /* asked now and then; false: GD_EINTR */
    void *ctx;
};

/* By name; NULL: there is none. */
const struct gd_dump_format *gd_dump_format_find(const char *name);

/* Looks through what lies at the path and reads all that is found, in a dump that is finished.
 * GD_ENOTFOUND, GD_EIO; GD_EINVAL: no such format; GD_EPROTO: none is there, or nothing of it could
 * be read: why not, and what is known instead. */
int gd_detect(const char *path, const struct gd_detect_options *options, struct gd_dump **ret,
              struct gd_err *err);

#endif
