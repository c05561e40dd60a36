// SPDX-License-Identifier: GPL-3.0-or-later
/* Shared by source.c and source_stats.c. */
#ifndef GD_DUMP_SOURCE_IMPL_H
#define GD_DUMP_SOURCE_IMPL_H

#include <pthread.h>

#include "dump/io/strided_read.h"

struct gd_source {
    int refs;
    struct gd_source_ops ops; /* all NULL if not lazy */
    void *ctx;
    pthread_mutex_t mutex;   /* guards `inner` */
    struct gd_source *inner; /* the opened source of a lazy one; NULL: not open */
    bool is_known;           /* `info` of a lazy source is set and stays */
    struct gd_source_info info;
    char *note;
    struct gd_stored_elements elements; /* if not lazy */
    /* if not lazy; allocated, because a dump has one lazy source per file, which needs none */
    struct gd_layout *layout;
    bool is_contiguous;
};

/* Returns a reference on the source that has the elements: itself, or the one a lazy source
 * opens. */
int gd_source_resolve(struct gd_source *source, struct gd_source **ret, struct gd_err *err);

#endif
