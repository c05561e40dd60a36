// SPDX-License-Identifier: GPL-3.0-or-later
/* Charts as the output of a command. */
#ifndef GD_REPL_CHART_PRINT_H
#define GD_REPL_CHART_PRINT_H

#include "repl/chart/chart.h"
#include "repl/core/command.h"

/* Rows of the terminal; 24 where there is none. */
int chart_screen_rows(struct command_call *call);
/* The picture with its colours; nothing in JSON mode. */
void chart_print(struct command_call *call, const struct chart_picture *picture);

/* "100-300", "100-", "-300", "120": steps as options take them. GD_EINVAL. */
int chart_parse_steps(const char *text, int64_t *from, int64_t *to, struct gd_err *err);

#endif
