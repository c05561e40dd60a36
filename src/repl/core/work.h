// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Work that a command does itself and that may last: statistics of a big tensor, a search in one, a
 * file that is written. It is done in pieces; between them the loop runs, so that trainers are
 * answered, panes drawn, how far it is shown, and Ctrl-C heard.
 *
 * What happens meanwhile may end the session that the command is about: keep references.
 */
#ifndef GD_REPL_WORK_H
#define GD_REPL_WORK_H

#include "base/stats.h"
#include "engine/progress.h"
#include "repl/core/command.h"

struct repl_work {
    struct command_call *call;
    struct gd_progress *progress; /* NULL: too small to last */
    const char *unit;             /* as it was given: a constant */
    uint64_t total;
    double pumped_at;
    bool was_waiting, stopped;
    struct gd_progress_info at; /* where it was stopped */
};

/* `what`: "searching fc1.weight:0"; of so many bytes. */
void repl_work_begin(struct repl_work *work, struct command_call *call, const char *what,
                     uint64_t bytes);
/* The same of something else than bytes: "entries", "steps"; total 0: not known. */
void repl_work_begin_count(struct repl_work *work, struct command_call *call, const char *what,
                           const char *unit, uint64_t total);
/* So many are done, as often as you like. false: it was interrupted, and repl_work_end says so. */
bool repl_work_at(struct repl_work *work, uint64_t bytes);
/* rc, or GD_EINTR with "interrupted after 12.0 of 64.0 MiB". Called once, whatever came of it. */
int repl_work_end(struct repl_work *work, int rc, struct gd_err *err);

/* gd_stats_compute and gd_stats_histogram, as such work. */
int repl_stats_compute(struct command_call *call, const char *what, const struct gd_tensor *tensor,
                       const struct gd_tensor *prev, struct gd_stats *ret, struct gd_err *err);
/* gd_session_stats_of, as such work. */
int repl_stats_of(struct command_call *call, const struct gd_tensor_ref *ref,
                  struct gd_tensor *tensor, int64_t step, struct gd_stats *ret, struct gd_err *err);
int repl_stats_histogram(struct command_call *call, const char *what,
                         const struct gd_tensor *tensor, double lo, double hi, size_t bins,
                         uint64_t *ret, struct gd_err *err);

/* "statistics of fc1.weight:0", the name without its scopes. */
void repl_work_name(char *ret, size_t size, const char *doing, const struct gd_session *session,
                    const struct gd_tensor_ref *ref);

#endif
