// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Commands that the training program itself carries out (`agent`, and those that are built on it).
 */
#ifndef GD_REPL_AGENT_H
#define GD_REPL_AGENT_H

#include "repl/core/command.h"

/* What the program of a session offers, blank-separated. "" while it is not known: then the program
 * is asked, and a later call knows. */
const char *agent_command_names(struct repl *repl, struct gd_session *session);

#endif
