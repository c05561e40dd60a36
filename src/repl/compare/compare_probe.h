// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * msprobe's table: one row for each tensor or number that a call of side A (its "NPU") was given or
 * made, in A's order, inputs first; what only B has is not in it. Columns depend on what the dumps
 * hold: elements, statistics, checksums. The Result of a row comes from all rows of its call.
 */
#ifndef GD_REPL_COMPARE_PROBE_H
#define GD_REPL_COMPARE_PROBE_H

#include "repl/compare/compare_rows.h"

#define PROBE_NONE "N/A"
enum { PROBE_INPUT, PROBE_PARAMETER, PROBE_OUTPUT }; /* probe_row.place */

/* Turns the rows from number `first` on, those of two tables, into msprobe's. The items of the rows
 * must be there yet. */
int compare_probe_make(struct command_call *call, const struct gd_table *a,
                       const struct gd_table *b, struct compare_rows *rows, size_t first,
                       struct gd_err *err);
/* Once all tables are in: which columns there are, what is judged from a call's rows together. */
int compare_probe_judge(struct command_call *call, struct compare_rows *rows, struct gd_err *err);

int compare_probe_titles(enum probe_mode mode, const char **title);
void compare_probe_cells(enum probe_mode mode, const struct probe_row *row, const char **cell);
/* As Python writes it; "Nan". */
const char *compare_probe_number(struct command_call *call, double value);
bool compare_probe_passed(const struct probe_row *row);

#endif
