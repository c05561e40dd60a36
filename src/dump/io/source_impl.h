// SPDX-License-Identifier: GPL-3.0-or-later
/* Between source.c and source_stats.c. */
#ifndef GD_DUMP_SOURCE_IMPL_H
#define GD_DUMP_SOURCE_IMPL_H

#include <pthread.h>

#include "dump/io/strided_read.h"

struct gd_source {
    int refs;
    struct gd_source_ops ops; /* of a lazy one; else all NULL */
    void *ctx;
    pthread_mutex_t mutex;   /* of the one below */
    struct gd_source *inner; /* where the values of a lazy one are; NULL: it is not open */
    bool is_known;           /* of a lazy one: what it is, which stays */
    struct gd_source_info info;
    char *note;
    struct gd_stored_elements elements; /* of one that is not lazy */
    struct gd_layout *layout; /* the same; a dump has a lazy one for every file, which has none */
    bool is_contiguous;
};

/* A reference on the source that has the elements: itself, or what a lazy one found. */
int gd_source_resolve(struct gd_source *source, struct gd_source **ret, struct gd_err *err);

#endif
