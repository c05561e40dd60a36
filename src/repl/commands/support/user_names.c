// SPDX-License-Identifier: GPL-3.0-or-later
/* The names that users give to commands and aliases. */
#include <ctype.h>
#include <string.h>

#include "repl/commands/support/support.h"

int user_name_check(const char *what, const char *name, struct gd_err *err)
{
    if (!isalpha((unsigned char)name[0])) {
        return gd_fail(err, GD_EINVAL, "%s: a name starts with a letter, not \"%.40s\"", what,
                       name);
    }
    for (const char *p = name; *p != '\0'; p++) {
        if (!isalnum((unsigned char)*p) && *p != '_' && *p != '-') {
            return gd_fail(err, GD_EINVAL,
                           "%s: a name consists of letters, digits, '_' and '-': \"%.40s\"", what,
                           name);
        }
    }
    return GD_OK;
}

bool user_name_is_free(struct command_call *call, const char *name)
{
    struct gd_err ignored;
    const struct command *built_in = NULL;

    return command_find(NULL, name, strlen(name), &built_in, &ignored) != GD_OK ||
           strcmp(built_in->name, name) != 0 ||
           repl_confirm(call, "Really redefine the built-in command \"%s\"?", name);
}
