// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Tables of text, row by row: fields between commas, one in double quotes may hold commas, doubled
 * quotes and line ends. A file is read in pieces, so that it may be larger than memory.
 */
#ifndef GD_DUMP_CSV_H
#define GD_DUMP_CSV_H

#include "base/buf.h"
#include "dump/io/disk.h"

#define GD_CSV_MAX_FIELDS 256
#define GD_CSV_MAX_ROW    (UINT32_C(1) << 20) /* bytes */

struct gd_csv { /* to be zeroed but for the disk, which is borrowed */
    struct gd_disk *disk;
    /* private: */
    uint64_t at;  /* byte of the file behind what is in the buffer */
    char *buffer; /* what was read and is not taken yet */
    size_t have, from;
    struct gd_buf text;
    size_t field_at[GD_CSV_MAX_FIELDS];
    const char *field[GD_CSV_MAX_FIELDS];
    uint64_t line, next_line;
};

/* The next row that is not empty. *count 0: the table is over. Fields are NUL-terminated and good
 * until the next call. GD_EPROTO: more than a row may have, a NUL, a quote that is not closed: says
 * the line. */
int gd_csv_next(struct gd_csv *csv, const char *const **ret, size_t *count, struct gd_err *err);
uint64_t gd_csv_line(const struct gd_csv *csv); /* of the row, from 1 */
void gd_csv_deinit(struct gd_csv *csv);

#endif
