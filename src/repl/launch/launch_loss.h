// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The loss in the output of a program that `run` started: lines of MindSpore's LossMonitor and
 * TimeMonitor become the metrics loss, epoch and step_time of its session, unless its process
 * reports the loss itself.
 */
#ifndef GD_REPL_LAUNCH_LOSS_H
#define GD_REPL_LAUNCH_LOSS_H

struct gd_session;
struct repl;

/* A line of the output; session: the one whose output it is, or NULL. */
void launch_take_loss(struct repl *repl, struct gd_session *session, const char *text);

#endif
