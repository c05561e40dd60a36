// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * mapping.csv: file names that were too long for the file system. Each line is NEW,ORIGINAL; the
 * file on disk is named NEW. ORIGINAL is only parsed as a name, never used as a path.
 */
#ifndef GD_DUMP_MAPPING_H
#define GD_DUMP_MAPPING_H

#include "dump/io/listing.h"

struct gd_mapping;

/* Of a directory, or of the directory a file is in; *ret is NULL if there is none. */
int gd_mapping_read(const struct gd_listing *listing, uint32_t place, struct gd_mapping **ret,
                    struct gd_err *err);
void gd_mapping_free(struct gd_mapping *mapping); /* NULL is fine */

/* The original name of a file; without an entry (or mapping), the name itself. */
const char *gd_mapping_name(const struct gd_mapping *mapping, const char *name);

#endif
