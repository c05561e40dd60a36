// SPDX-License-Identifier: GPL-3.0-or-later
/* The selected hit, and how one hit is shown. */
#ifndef GD_REPL_HIT_H
#define GD_REPL_HIT_H

#include "repl/core/hits.h"

struct hit_selection { /* what `hit` selected */
    int session;
    uint64_t number; /* 0: none */
    uint64_t stop;   /* the stop at which it was selected */
};
/* Made on first use; NULL: out of memory. */
struct hit_selection *hit_selection(struct repl *repl);
/* The current hit, moved by one place in order of execution when `by` is not 0. GD_ENOTFOUND: no
 * hit; GD_ENODATA: there is none before or after it. */
int hit_choose(struct command_call *call, int by, const struct gd_hit **ret, struct gd_err *err);
/* The selected hit, else the first one of this stop, else the last one. NULL and an error: nothing
 * has fired. */
const struct gd_hit *hits_current(struct command_call *call, struct gd_err *err);
/* The number of the hit that `hit` selected at this stop; 0: none. */
uint64_t hits_selected(struct repl *repl, const struct gd_session *session);
/* Which hit of this stop to show first: the greatest; 0: not of this stop. */
int hits_weight(const struct gd_session *session, const struct gd_hit *hit);

/* One line per parameter of the condition, "max_gt: set 5, actual 7.2". */
void hit_print_params(struct command_call *call, const struct gd_hit *hit, int indent);
/* repl_hit_record with the hit's number. */
void hit_record(struct command_call *call, cJSON *object, const struct gd_hit *hit);

#endif
