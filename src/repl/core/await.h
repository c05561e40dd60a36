// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * An answer that comes later, through a callback, and may come after nobody waits for it any more.
 *
 * `struct await` is the first member of a struct from calloc, which is the callback's context:
 *
 *     struct costs { struct await await; struct gd_watch_total total; };
 *
 *     static void on_costs(void *ctx, const struct gd_watch_total *total)
 *     {
 *         struct costs *costs = ctx;
 *         if (await_take(costs)) {
 *             costs->total = *total;
 *         }
 *     }
 *
 * The asker frees the struct: when the question was refused, and after the answer. An asker that
 * gives up calls await_leave() (repl_await does it) and never touches the struct again: the
 * callback frees it. One thread; each callback comes exactly once.
 */
#ifndef GD_REPL_AWAIT_H
#define GD_REPL_AWAIT_H

#include <stdbool.h>

struct repl;

struct await {
    bool arrived;
    bool left; /* by the asker */
};

/* In the callback, first of all. False: the asker has left, and the struct is freed. */
bool await_take(void *answer);
void await_leave(void *answer);
/* Runs the loop until the answer is there. GD_OK; GD_EINTR, GD_ETIMEOUT: the answer was left.
 * seconds < 0: no limit. */
int repl_await(struct repl *repl, void *answer, double seconds);

#endif
