// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * mapping.csv: names that were too long for the file system. A line is NEW,ORIGINAL; the file is
 * called NEW. What it says is only ever taken for a name to be read, never for a path.
 */
#ifndef GD_DUMP_MAPPING_H
#define GD_DUMP_MAPPING_H

#include "dump/io/listing.h"

struct gd_mapping;

/* Of a directory, or the one that a file is in; *ret is NULL when it has none. */
int gd_mapping_read(const struct gd_listing *listing, uint32_t place, struct gd_mapping **ret,
                    struct gd_err *err);
int gd_mapping_read_file(const char *path, struct gd_mapping **ret, struct gd_err *err);
void gd_mapping_free(struct gd_mapping *mapping); /* NULL is fine */

/* The original name of a file; the name itself where there is none (or no mapping). */
const char *gd_mapping_name(const struct gd_mapping *mapping, const char *name);

#endif
