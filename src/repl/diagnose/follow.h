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
    cJSON *pieces;     /* evidence: a list; the caller deletes it, also after a failure */
    cJSON *looked_at;  /* what was observed: an object; the same */
    bool ended;        /* the training has ended */
    bool raised;       /* by an exception */
    int others;        /* trainings of the program that ran and were not followed */
    bool interrupted;  /* by Ctrl-C: what is known until then counts */
    bool exact;        /* each operator's output was examined, to the end */
    int64_t bad_since; /* if not: the first step whose loss was not finite; 0: none */
    double bad_after;  /* seconds from the beginning to the end of that step, about */
};

/* From where call->session is stopped. It must be live, and able to run commands. Afterwards it is
 * stopped, or has ended. GD_EUNSUPPORTED: the process cannot be observed. GD_ELOST: it ended before
 * anything was observed. */
int diagnose_follow(struct command_call *call, struct diagnose_run *run, struct gd_err *err);
/* What the watchers of a process that is observed already have seen: findings, as diagnose_judge
 * gives them; NULL: it is not observed. The caller deletes them. */
cJSON *diagnose_so_far(struct command_call *call);
/* The same where a dump is open: searches all of it. GD_ENODATA: it cannot be searched. */
int diagnose_recorded(struct command_call *call, struct diagnose_run *run, struct gd_err *err);
/* The same program, started again and stopped before its first step: runs to step run->bad_since -
 * 1 and examines each operator's output from there. Adds what `why` says to the evidence, if the
 * value is not finite this time, too. */
int diagnose_find_origin(struct command_call *call, struct diagnose_run *run, struct gd_err *err);

#endif
