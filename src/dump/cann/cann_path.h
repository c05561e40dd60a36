// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * What the directories above a dump file say: whose rank or device it is, of which model and step.
 * Every front end of CANN has its own order of them.
 */
#ifndef GD_DUMP_CANN_PATH_H
#define GD_DUMP_CANN_PATH_H

#include <stdbool.h>
#include <stdint.h>

struct gd_cann_path {
    const char *layout; /* "rank_R/NET/GRAPH/ITERATION", for people; NULL: none that is known */
    int rank;           /* or device; 0 where none is told */
    const char *model;  /* one of the parts; "" none */
    const char *graph;  /* number of the graph or the model: one of the parts; "" none */
    const char *start;  /* the directory of the start of the dump, YmdHMS; "" none */
    int64_t step;
    bool has_step;
    bool is_mindspore;
    bool exceptions; /* what an exception left */
    int levels;      /* of directories that belong to the layout */
};

/* part[0] is the directory of the file, part[1] the one around it, and so on; the first `inside` of
 * them lie below what was opened. */
void gd_cann_path(const char *const *part, int count, int inside, struct gd_cann_path *ret);

#endif
