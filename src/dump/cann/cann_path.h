// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * What the directories above a dump file say: rank or device, model and step. Each CANN front end
 * arranges them differently.
 */
#ifndef GD_DUMP_CANN_PATH_H
#define GD_DUMP_CANN_PATH_H

#include <stdbool.h>
#include <stdint.h>

struct gd_cann_path {
    const char *layout; /* "rank_R/NET/GRAPH/ITERATION", for the user; NULL: unknown */
    int rank;           /* or device; 0 if not given */
    const char *model;  /* one of the parts; "" none */
    const char *graph;  /* number of the graph or model, one of the parts; "" none */
    const char *start;  /* directory named after the dump's start, YmdHMS; "" none */
    int64_t step;
    bool has_step;
    bool is_mindspore;
    bool exceptions; /* exception data */
    int levels;      /* number of directories in the layout */
};

/* part[0] is the file's directory, part[1] its parent, and so on; the first `inside` of them are
 * below what was opened. */
void gd_cann_path(const char *const *part, int count, int inside, struct gd_cann_path *ret);

#endif
