// SPDX-License-Identifier: GPL-3.0-or-later
/* Tables of msprobe's tools: cells by column name, and parsers for their numbers and shapes.
 * Private to the readers of these formats. */
#ifndef GD_DUMP_MSPROBE_TABLE_H
#define GD_DUMP_MSPROBE_TABLE_H

#include "base/arena.h"
#include "base/tensor.h"
#include "dump/io/csv.h"

struct table {
    const char *column[GD_CSV_MAX_FIELDS]; /* valid as long as the table */
    size_t columns;
    /* private: */
    struct gd_disk *disk;
    struct gd_csv csv;
    struct gd_arena arena;
    const char *const *row;
    size_t fields;
};

/* Reads the column names. Call table_close only if it succeeds. */
int table_open(const char *path, struct table *ret, struct gd_err *err);
void table_close(struct table *table);
/* *more false: end of the table. */
int table_next(struct table *table, bool *more, struct gd_err *err);
/* Of the current row; NULL: no such column, or the row is shorter. */
const char *table_cell(const struct table *table, const char *column);
const char *table_at(const struct table *table, size_t index);
uint64_t table_line(const struct table *table); /* of the current row, from 1 */

/* "0.5", "nan", "-inf\t"; false: not a number ("", "N/A", "None"). */
bool table_number(const char *text, double *ret);
bool table_whole(const char *text, int64_t *ret);
/* Statistics of the current row, in these columns. */
struct api_numbers;
void table_numbers(const struct table *table, const char *max, const char *min, const char *mean,
                   const char *norm, struct api_numbers *ret);
/* "[2, 3]", "(2, 3)", "torch.Size([2, 3])"; false: not a shape. */
bool table_shape(const char *text, struct gd_shape *ret);

#endif
