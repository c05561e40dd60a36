// SPDX-License-Identifier: GPL-3.0-or-later
/* What `help`, `apropos` and the commands about settings and names share. */
#ifndef GD_REPL_SUPPORT_H
#define GD_REPL_SUPPORT_H

#include "repl/core/command.h"
#include "repl/core/settings_table.h"

/* What `help` explains that is not a command; ends with a NULL name. */
extern const struct command help_topics[];
const struct command *help_find_topic(const char *word); /* NULL: none */
/* The help with its examples, which use names as the framework of the current session has them. */
const char *help_text(struct command_call *call, const struct command *command);
/* "PREFIX NAME  summary", in JSON mode an object in the list. */
void help_list_row(struct command_call *call, cJSON *list, const struct command *command,
                   const char *prefix);

int help_keys(struct command_call *call, struct gd_err *err); /* screen/bind.c */
int help_connect(struct command_call *call);                  /* launch/connect.c */

/* Adds the setting with its value, default, range and text. */
void setting_record(const struct setting *setting, const struct gd_settings *settings,
                    cJSON *object);

/* `set lr = EXPR`: whether call->line is that, and what it does (set_lr.c). */
bool set_lr_is_meant(const char *line);
int set_lr(struct command_call *call, struct gd_err *err);
/* `set NODE = VALUE`, `set requires_grad NODE off`: the same (set_node.c). */
bool set_node_is_meant(const char *line);
int set_node(struct command_call *call, struct gd_err *err);

/* GD_EINVAL: `name` cannot be a name; `what` is the command that takes it. */
int user_name_check(const char *what, const char *name, struct gd_err *err);
/* Not a built-in command's name, or the user agreed to redefine that command. */
bool user_name_is_free(struct command_call *call, const char *name);

#endif
