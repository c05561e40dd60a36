// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Finds the directories of a MindSpore dump in a listing: rank_R/NET/GRAPH/ITERATION, and
 * rank_R/NET/GRAPH/constants for values that hold in every step. Any part of the path may be above
 * what was opened. Private to the readers of MindSpore's formats.
 */
#ifndef GD_DUMP_MS_DIRS_H
#define GD_DUMP_MS_DIRS_H

#include "base/arena.h"
#include "dump/format.h"

struct ms_dir { /* a directory with dump files */
    uint32_t entry;
    uint32_t root;     /* the topmost directory of its net in the listing */
    uint32_t rank_dir; /* GD_NO_ENTRY: above what was opened */
    int rank;
    const char *net;   /* "" unknown */
    const char *graph; /* "0"; "" unknown */
    int64_t step;      /* GD_EVERY_STEP: constants */
    uint32_t files;
};

struct ms_dirs {
    /* by root, then graph, then in listing order, which sorts steps by number */
    struct ms_dir *dir;
    size_t count, cap;
    struct gd_arena arena;
};

/* Finds the directories of 1.3 and later (npy, statistic.csv) or of 1.0 to 1.2 (bin) below `root`
 * (0: everywhere). */
int ms_dirs_read(const struct gd_listing *listing, uint32_t root, bool bin, struct ms_dirs *ret,
                 struct gd_err *err);
void ms_dirs_clear(struct ms_dirs *tree);

struct ms_reading;

struct ms_dirs_rule { /* the detail of a format, for ms_dirs_find and ms_reading_run */
    bool is_bin;
    const char *text;
    /* Reads the directories that belong to the root. */
    int (*read)(struct ms_reading *reading, const struct ms_dirs *tree, uint32_t root,
                struct gd_err *err);
};

/* Adds one finding per root. */
int ms_dirs_find(const struct gd_dump_format *format, const struct gd_listing *listing,
                 struct gd_findings *findings, struct gd_err *err);

/* N of the first "rank_N" in a path; 0 if there is none. */
int ms_rank_of(const char *path);
/* Digits and ".npy": the original name was too long and is in mapping.csv. */
bool ms_is_renamed(const char *name);

#endif
