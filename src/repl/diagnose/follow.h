// SPDX-License-Identifier: GPL-3.0-or-later
/* Follows a training run for `diagnose`: arms what the rules need, and collects their evidence. */
#ifndef GD_REPL_DIAGNOSE_FOLLOW_H
#define GD_REPL_DIAGNOSE_FOLLOW_H

#include <cjson/cJSON.h>

#include "repl/core/command.h"

struct diagnose_run {
    int64_t steps;  /* follow so many; 0: to the end */
    double seconds; /* follow for so long; 0: to the end */
    /* the results */
    cJSON *pieces;    /* evidence: a list; the caller deletes it, also after a failure */
    cJSON *looked_at; /* what was observed: an object; the same */
    bool ended;       /* the training has ended */
    bool raised;      /* by an exception */
    bool interrupted; /* by Ctrl-C: what is known until then counts */
};

/* From where call->session is stopped. It must be live, and able to run commands. Afterwards it is
 * stopped, or has ended. GD_EUNSUPPORTED: the process cannot be observed. GD_ELOST: it ended before
 * anything was observed. */
int diagnose_follow(struct command_call *call, struct diagnose_run *run, struct gd_err *err);

#endif
