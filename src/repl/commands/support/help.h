// SPDX-License-Identifier: GPL-3.0-or-later
/* What `help` and `apropos` share, and help that other files produce. */
#ifndef GD_REPL_HELP_H
#define GD_REPL_HELP_H

#include "repl/core/command.h"

/* What `help` explains that is not a command; ends with a NULL name. */
extern const struct command help_topics[];
const struct command *help_find_topic(const char *word); /* NULL: none */
/* The help text with the names in its examples as the framework of the current session has them. */
const char *help_examples(struct command_call *call, const char *text);
/* "PREFIX NAME  summary", in JSON mode an object in the list. */
void help_list_row(struct command_call *call, cJSON *list, const struct command *command,
                   const char *prefix);

int help_setting(struct command_call *call, const char *name, struct gd_err *err);
int help_keys(struct command_call *call, struct gd_err *err); /* screen/bind.c */
int help_connect(struct command_call *call);                  /* launch/connect.c */

#endif
