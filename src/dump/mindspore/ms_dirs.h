// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Where in a listing the directories of a MindSpore dump are: rank_R/NET/GRAPH/ITERATION and, for
 * what holds in every step, rank_R/NET/GRAPH/constants. Any part of the path may lie above what was
 * opened. Private to the readers of MindSpore's formats.
 */
#ifndef GD_DUMP_MS_DIRS_H
#define GD_DUMP_MS_DIRS_H

#include "base/arena.h"
#include "dump/format.h"

struct ms_dir { /* that holds files of the dump */
    uint32_t entry;
    uint32_t root;     /* the topmost directory of its net that is in the listing */
    uint32_t rank_dir; /* GD_NO_ENTRY: above what was opened */
    int rank;
    const char *net;   /* "" not told */
    const char *graph; /* "0"; "" not told */
    int64_t step;      /* GD_EVERY_STEP: of all */
    uint32_t files;
};

struct ms_dirs {
    struct ms_dir *dir; /* by root, then by graph, then as listed: steps by number */
    size_t count, cap;
    struct gd_arena arena;
};

/* The directories of 1.3 and later (npy, statistic.csv), or of 1.0 to 1.2 (bin): those below `root`
 * (0: all). */
int ms_dirs_read(const struct gd_listing *listing, uint32_t root, bool bin, struct ms_dirs *ret,
                 struct gd_err *err);
void ms_dirs_clear(struct ms_dirs *tree);

struct ms_reading;

struct ms_dirs_rule { /* the detail of a format: of ms_dirs_find, and of ms_reading_run */
    bool is_bin;
    const char *text;
    /* Takes the directories of the tree that are of the root. */
    int (*read)(struct ms_reading *reading, const struct ms_dirs *tree, uint32_t root,
                struct gd_err *err);
};

/* One finding for every root. */
int ms_dirs_find(const struct gd_dump_format *format, const struct gd_listing *listing,
                 struct gd_findings *findings, struct gd_err *err);

/* "rank_3" */
bool ms_is_rank(const char *name, int *ret);
/* Digits and ".npy": a name that was too long; mapping.csv has the true one. */
bool ms_is_renamed(const char *name);

#endif
