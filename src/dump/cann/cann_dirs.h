// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Finds the directories of a listing that contain CANN dump files, and what their paths say.
 * Private to the readers of CANN's formats.
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
    CANN_FILE_RECORD      /* an overflow record written as JSON */
};

struct cann_dir {
    uint32_t entry;
    uint32_t root;           /* top directory of the whole tree */
    uint32_t files, records; /* all files; overflow records among them */
    struct gd_cann_path place;
};

struct cann_dirs {
    struct cann_dir *dir; /* in listing order */
    size_t count, cap;
    uint32_t graphs; /* compiled graphs: ge_proto_*_Build.txt */
    struct gd_arena arena;
};

int cann_dirs_read(const struct gd_listing *listing, struct cann_dirs *ret, struct gd_err *err);
void cann_dirs_clear(struct cann_dirs *tree);

/* Classifies a file by its name; *name is the parsed name, *text the original one if it had been
 * too long. */
enum cann_file_kind cann_file_kind(const struct gd_listing *listing, uint32_t entry,
                                   const struct gd_mapping *mapping, bool exceptions,
                                   struct gd_cann_name *name, const char **text);
/* ge_proto_*_Build.txt */
bool cann_is_build_graph(const char *name);

#endif
