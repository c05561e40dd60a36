// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Where in a listing the dump files of CANN lie: the directories that hold them, each with what its
 * place says. Private to the readers of CANN's formats.
 */
#ifndef GD_DUMP_CANN_DIRS_H
#define GD_DUMP_CANN_DIRS_H

#include "base/arena.h"
#include "dump/cann/cann_file_name.h"
#include "dump/cann/cann_path.h"
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
    struct gd_cann_path place;
};

struct cann_dirs {
    struct cann_dir *dir; /* in the order of the listing */
    size_t count, cap;
    uint32_t graphs; /* texts of compiled graphs, ge_proto_*_Build.txt */
    struct gd_arena arena;
};

int cann_dirs_read(const struct gd_listing *listing, struct cann_dirs *ret, struct gd_err *err);
void cann_dirs_clear(struct cann_dirs *tree);

/* What a file is by its name, which *name and *text (the name before it was too long) tell. */
enum cann_file_kind cann_file_kind(const struct gd_listing *listing, uint32_t entry,
                                   const struct gd_mapping *mapping, bool exceptions,
                                   struct gd_cann_name *name, const char **text);
/* ge_proto_*_Build.txt */
bool cann_is_build_graph(const char *name);

#endif
