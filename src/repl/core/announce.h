// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Whether an event, a stop above all, is announced: printed when it happens. Every reason for
 * silence is in announce.c.
 *
 * The engine decides before that what is an event at all: a stop that it resumes by itself (a
 * breakpoint that is ignored: see engine/session_stop.c), and that of one rank while others of its
 * job still run, is not reported to anybody.
 */
#ifndef GD_REPL_ANNOUNCE_H
#define GD_REPL_ANNOUNCE_H

#include "engine/debugger.h"

struct repl;

/* False: nothing is printed; a stop is reported by the command that caused it. */
bool repl_announces_event(const struct repl *repl, const struct gd_event *event);
/* After repl_note_stop, of a stop whose event is announced: whether it is reported. */
bool repl_announces_stop(struct repl *repl, const struct gd_session *session);
/* In text, one report for all ranks says it (GD_EV_RANKS). */
bool repl_is_told_with_job(const struct repl *repl, const struct gd_session *session);
/* gdb's habit: the first line of a stop's `commands` is `silent`. */
bool repl_stop_is_silent(struct repl *repl);

#endif
