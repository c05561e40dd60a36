// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * msprobe's table: one row for each input and output, tensor or number, of the calls of side A (its
 * "NPU"), in A's order, inputs first; units that only B has are omitted. The columns depend on what
 * the dumps contain: elements, statistics or checksums. The Result of a row depends on all rows of
 * its call.
 */
#ifndef GD_REPL_COMPARE_PROBE_H
#define GD_REPL_COMPARE_PROBE_H

#include "repl/compare/compare_rows.h"

#define PROBE_NONE "N/A"
enum { PROBE_INPUT, PROBE_PARAMETER, PROBE_OUTPUT }; /* probe_row.place */

/* Turns the rows of two tables, from row `first` on, into msprobe's. The items of the rows must
 * still exist. */
int compare_probe_make(struct command_call *call, const struct gd_table *a,
                       const struct gd_table *b, struct compare_rows *rows, size_t first,
                       struct gd_err *err);
/* After the last table: chooses the columns and fills what depends on all rows of a call. */
int compare_probe_judge(struct command_call *call, struct compare_rows *rows, struct gd_err *err);

/* The titles, and a row's cells unless it is NULL. Returns their number. */
int compare_probe_columns(enum probe_mode mode, const struct probe_row *row, const char **title,
                          const char **cell);
/* As Python prints it; "Nan". */
const char *compare_probe_number(struct command_call *call, double value);
bool compare_probe_passed(const struct probe_row *row);

#endif
