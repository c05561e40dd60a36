// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The commands that the training program itself carries out: their names, for completion.
 */
#ifndef GD_REPL_COMPLETE_AGENT_H
#define GD_REPL_COMPLETE_AGENT_H

#include "repl/core/command.h"

#define AGENT_LIST "commands" /* its command that lists the others */

/* What the program of a session offers, blank-separated. "" while it is not known: then the program
 * is asked, and a later call knows. */
const char *agent_command_names(struct repl *repl, struct gd_session *session);
/* Takes them from the reply to AGENT_LIST. */
void agent_take_names(struct repl *repl, const struct gd_session *session, const cJSON *reply);

#endif
