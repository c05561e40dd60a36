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

#endif
