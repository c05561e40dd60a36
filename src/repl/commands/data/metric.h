// SPDX-License-Identifier: GPL-3.0-or-later
/* What `metric` and `info metrics` share. */
#ifndef GD_REPL_METRIC_H
#define GD_REPL_METRIC_H

#include "base/metric.h"
#include "repl/core/command.h"

#define METRIC_COMMAND "metric" /* of the training process */

/* GD_EUNSUPPORTED: the session has no metrics. */
int metric_check(const struct command_call *call, struct gd_err *err);
/* Completes the definition by the nodes of the only loss, where it names none: *found. GD_ENODATA:
 * no loss, or several. */
int metric_resolve(struct command_call *call, struct gd_metric_spec *spec, bool *found,
                   struct gd_err *err);

/* Whether a number belongs to a metric that the stopped training process was asked for; then *err,
 * GD_ENODATA, says why it is not there yet. */
bool metric_is_awaited(struct command_call *call, const char *number, struct gd_err *err);

/* `metric` over the dump of the session: over all steps at once. */
int metric_of_dump(struct command_call *call, struct gd_metric_spec *spec, bool found,
                   struct gd_err *err);

/* ---- status/info_metrics.c: what both show ---- */

/* The text of a {"value": ...}. */
const char *metric_value_text(struct command_call *call, const cJSON *number);
/* Adds {"name", "value"}. */
void metric_add_number(cJSON *list, const struct gd_metric_number *number);
/* Adds the counts, numbers and matrix of a metric. */
void metric_add_counts(cJSON *to, const struct gd_metric *metric);
/* The matrix in such counts, where there is one. */
void metric_print_matrix(struct command_call *call, const char *name, const cJSON *sums,
                         const char *title);

#endif
