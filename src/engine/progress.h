// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Long work that a user waits for: a graph that arrives, a tensor that is fetched, statistics,
 * exports. The worker begins, reports as often as it likes, and ends; front ends show work that
 * lasts longer than a moment, with amount and rate, and may ask it to stop.
 */
#ifndef GD_ENGINE_PROGRESS_H
#define GD_ENGINE_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct gd_debugger;
struct gd_progress;

/* `what`: "fetching conv1.weight:0"; unit "B" for bytes, or "nodes". total 0: unknown. NULL if out
 * of memory: all functions accept that. */
struct gd_progress *gd_progress_begin(struct gd_debugger *debugger, const char *what,
                                      const char *unit, uint64_t total);
void gd_progress_at(struct gd_progress *progress, uint64_t done);
void gd_progress_of(struct gd_progress *progress, uint64_t total); /* known by now */
void gd_progress_end(struct gd_progress *progress);
/* Stopping: Ctrl-C marks all running work; the worker polls, and gives up with GD_EINTR. */
bool gd_progress_is_stopped(const struct gd_progress *progress);
void gd_progress_stop_all(struct gd_debugger *debugger);

struct gd_progress_info {
    char what[160];
    char unit[16];
    uint64_t done, total;
    double seconds, rate; /* since it began; units a second */
};
/* The oldest running one that was not asked to stop; false: none. */
bool gd_progress_current(const struct gd_debugger *debugger, struct gd_progress_info *ret);
/* "12.0 of 64.0 MiB", "812 nodes" */
void gd_progress_amount(const struct gd_progress_info *info, char *ret, unsigned size);
/* "fetching conv1.weight:0 [####------] 1.2 of 3.4 GiB 410 MiB/s" in that many columns. */
void gd_progress_text(const struct gd_progress_info *info, int cols, bool utf8, char *ret,
                      unsigned size);

#endif
