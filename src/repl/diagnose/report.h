// SPDX-License-Identifier: GPL-3.0-or-later
/* The report of a diagnosis. */
#ifndef GD_REPL_DIAGNOSE_REPORT_H
#define GD_REPL_DIAGNOSE_REPORT_H

#include "repl/diagnose/follow.h"

/* Prints the findings alone. */
void diagnose_say_findings(struct command_call *call, const cJSON *findings);
/* Prints the findings (diagnose_judge) and what was examined; in JSON the record "diagnosis".
 * Takes ownership of the findings. */
void diagnose_report(struct command_call *call, const struct diagnose_run *run, cJSON *findings);
/* Writes the same as one self-contained page. GD_EIO. */
int diagnose_report_html(struct command_call *call, const struct diagnose_run *run,
                         const cJSON *findings, const char *path, struct gd_err *err);

/* A label, then the text folded into the columns after it. */
void diagnose_say(struct command_call *call, const char *label, const char *text);

#endif
