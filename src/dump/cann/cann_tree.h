// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Where in a listing the dump files of CANN lie: the directories that hold them, each with what its
 * place says. Private to the readers of CANN's formats.
 */
#ifndef GD_DUMP_CANN_TREE_H
#define GD_DUMP_CANN_TREE_H

#include "base/arena.h"
#include "dump/cann/cann_name.h"
#include "dump/cann/cann_place.h"
#include "dump/io/listing.h"
#include "dump/io/mapping.h"

enum cann_file_kind {
    CANN_FILE_NONE,
    CANN_FILE_CONTAINER,
    CANN_FILE_STATISTICS, /* TYPE.NAME. ... .csv */
    CANN_FILE_RECORD      /* an overflow record that was written as JSON */
};

struct cann_dir {
    uint32_t entry;
    uint32_t root;           /* under which the whole tree lies */
    uint32_t files, records; /* all; those that tell of overflows */
    struct gd_cann_place place;
};

struct cann_tree {
    struct cann_dir *dir; /* in the order of the listing */
    size_t count, cap;
    uint32_t graphs; /* texts of compiled graphs, ge_proto_*_Build.txt */
    struct gd_arena arena;
};

int cann_tree_read(const struct gd_listing *listing, struct cann_tree *ret, struct gd_err *err);
void cann_tree_clear(struct cann_tree *tree);

/* What a file is by its name, which *name and *text (the name before it was too long) tell. */
enum cann_file_kind cann_file_kind(const struct gd_listing *listing, uint32_t entry,
                                   const struct gd_mapping *mapping, bool exceptions,
                                   struct gd_cann_name *name, const char **text);
/* ge_proto_*_Build.txt */
bool cann_is_build_graph(const char *name);

#endif
