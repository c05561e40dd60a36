// SPDX-License-Identifier: GPL-3.0-or-later
/* What the commands that run, end and choose training processes share. */
#ifndef GD_REPL_RUNNING_H
#define GD_REPL_RUNNING_H

#include "repl/core/command.h"

#define RUN_NEEDS (CMD_NEEDS_STOP | CMD_NEEDS_LIVE)

/* The optional N of `step` and similar commands; default 1. GD_EUSAGE: more than one argument. */
int run_take_count(struct command_call *call, int64_t *ret, struct gd_err *err);

/* The function of `step` and similar commands, whose .variant is the kind of run. */
int run_by_count(struct command_call *call, struct gd_err *err);

/* Calls fn for the other ranks of the job, where commands move them together. A rank that fails is
 * a warning. Returns how many succeeded. */
int run_for_other_ranks(struct command_call *call, struct gd_session *session,
                        int (*fn)(struct gd_target *target, struct gd_err *err));

/* The end of a training process, and of the others of its job. */
struct ending {
    const struct gd_session *session;
    uint64_t *sequence; /* by rank: the stop at which its end was requested; NULL: requested once */
    int count;
};
/* The caller frees ending->sequence. */
void ending_begin(struct ending *ending, const struct gd_session *session);
/* For repl_wait; ctx is a struct ending. Repeats the request for ranks that stopped again. */
bool ending_is_over(void *ctx);

/* "[Training process 2, rank 1 of 4, stopped]" */
void session_print(struct command_call *call, const struct gd_session *session);
/* Selects the process whose number call->line is. */
int session_select(struct command_call *call, struct gd_err *err);
/* Shows the selected process. */
int session_show_selected(struct command_call *call, struct gd_err *err);

/* `rank check [WHAT]` */
int rank_check(struct command_call *call, const char *what, struct gd_err *err);

#endif
