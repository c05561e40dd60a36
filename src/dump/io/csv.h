// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * CSV tables, row by row: fields separated by commas; a field in double quotes may contain commas,
 * doubled quotes and line ends. The file is read in pieces, so it may be larger than memory.
 *
 * No library: libcsv has callbacks, grows its field without a limit and does not report the line of
 * an error.
 */
#ifndef GD_DUMP_CSV_H
#define GD_DUMP_CSV_H

#include "base/buf.h"
#include "dump/io/disk.h"

#define GD_CSV_MAX_FIELDS 4096
#define GD_CSV_MAX_ROW    (UINT32_C(1) << 20) /* bytes */

struct gd_csv { /* zero all but the disk, which is borrowed */
    struct gd_disk *disk;
    /* private: */
    uint64_t at;  /* offset in the file after the buffer */
    char *buffer; /* read, but not yet consumed */
    size_t have, from;
    struct gd_buf text;
    size_t field_at[GD_CSV_MAX_FIELDS];
    const char *field[GD_CSV_MAX_FIELDS];
    uint64_t line, next_line;
};

/* Reads the next row that is not empty. *count 0: end of the table. Fields are NUL-terminated and
 * valid until the next call. GD_EPROTO, with the line: a row too large, a NUL, a quote that is not
 * closed. */
int gd_csv_next(struct gd_csv *csv, const char *const **ret, size_t *count, struct gd_err *err);
uint64_t gd_csv_line(const struct gd_csv *csv); /* of the row, from 1 */
void gd_csv_deinit(struct gd_csv *csv);

#endif
