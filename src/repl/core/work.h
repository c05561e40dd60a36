// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Long work inside a command: statistics of a large tensor, a search in one, writing a file. It is
 * done in pieces. In between the loop runs: training processes are served, panes drawn, progress
 * shown, and Ctrl-C is noticed.
 *
 * The session that the command is about may end meanwhile: keep references.
 */
#ifndef GD_REPL_WORK_H
#define GD_REPL_WORK_H

#include "base/stats.h"
#include "engine/progress.h"
#include "repl/core/command.h"

struct repl_work {
    struct command_call *call;
    struct gd_progress *progress; /* NULL: too little work */
    const char *unit;             /* borrowed */
    uint64_t total;
    double pumped_at;
    bool was_waiting, stopped;
    struct gd_progress_info at; /* where it was stopped */
};

/* `what` is "searching fc1.weight:0"; `bytes` is the total. */
void repl_work_begin(struct repl_work *work, struct command_call *call, const char *what,
                     uint64_t bytes);
/* The same with another unit: "entries", "steps". total 0: unknown. */
void repl_work_begin_count(struct repl_work *work, struct command_call *call, const char *what,
                           const char *unit, uint64_t total);
/* So many are done; call it as often as you like. False: interrupted, which repl_work_end
 * reports. A function of the kind that engine and dump call while they work; `work` is a struct
 * repl_work. */
bool repl_work_at(void *work, uint64_t done);
/* Returns rc, or GD_EINTR with "interrupted after 12.0 of 64.0 MiB". Call it once in any case. */
int repl_work_end(struct repl_work *work, int rc, struct gd_err *err);

/* gd_stats_compute and gd_stats_histogram as such work. */
int repl_stats_compute(struct command_call *call, const char *what, const struct gd_tensor *tensor,
                       const struct gd_tensor *prev, struct gd_stats *ret, struct gd_err *err);
/* gd_session_stats_of as such work. */
int repl_stats_of(struct command_call *call, const struct gd_tensor_ref *ref,
                  struct gd_tensor *tensor, int64_t step, struct gd_stats *ret, struct gd_err *err);
int repl_stats_histogram(struct command_call *call, const char *what,
                         const struct gd_tensor *tensor, double lo, double hi, size_t bins,
                         uint64_t *ret, struct gd_err *err);

/* "statistics of fc1.weight:0": the name without its scopes. */
void repl_work_name(char *ret, size_t size, const char *doing, const struct gd_session *session,
                    const struct gd_tensor_ref *ref);

#endif
