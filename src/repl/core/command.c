// SPDX-License-Identifier: GPL-3.0-or-later
#include "repl/core/command.h"
#include "base/buf.h"
#include "repl/words/suggest.h"

#include <string.h>

const struct command *command_next(const struct command *previous)
{
    size_t at = 0;

    if (!previous) {
        return command_table[0];
    }
    while (command_table[at] != previous) {
        at++;
    }
    return command_table[at + 1];
}

void command_add_help(const struct command *command, struct gd_buf *text)
{
    const char *line = command->examples;
    bool several = false;

    gd_buf_puts(text, command->help ? command->help : "");
    if (!line) {
        return;
    }
    for (const char *p = strchr(line, '\n'); p; p = strchr(p + 1, '\n')) {
        several = several || (p[1] != ' ' && strcmp(p + 1, "end") != 0);
    }
    gd_buf_printf(text, "%s%s:", command->help ? "\n\n" : "", several ? "Examples" : "Example");
    for (; *line != '\0'; line += strcspn(line, "\n"), line += *line == '\n') {
        gd_buf_puts(text, "\n  ");
        gd_buf_add(text, line, strcspn(line, "\n"));
    }
}

static const struct command *first_of(const struct command *table)
{
    if (!table) {
        return command_next(NULL);
    }
    return table->name ? table : NULL;
}

static const struct command *next_of(const struct command *table, const struct command *command)
{
    if (!table) {
        return command_next(command);
    }
    return command[1].name ? command + 1 : NULL;
}

static bool has_alias(const struct command *command, const char *word, size_t len)
{
    const char *p = command->aliases;

    while (p && *p != '\0') {
        size_t alias_len = strcspn(p, " ");
        if (alias_len == len && memcmp(p, word, len) == 0) {
            return true;
        }
        p += alias_len + (p[alias_len] == ' ' ? 1 : 0);
    }
    return false;
}

/* Lists the candidates of an ambiguous prefix, as gdb does. */
static int fail_ambiguous(const struct command *table, const char *word, size_t len,
                          struct gd_err *err)
{
    struct gd_buf names = GD_BUF_INIT(400);

    for (const struct command *c = first_of(table); c; c = next_of(table, c)) {
        if (strncmp(c->name, word, len) == 0) {
            gd_buf_printf(&names, "%s%s", names.len > 0 ? ", " : "", c->name);
        }
    }
    int rc = gd_fail(err, GD_EAMBIGUOUS, "\"%.*s\" is ambiguous: %s", (int)len, word,
                     gd_buf_text(&names));
    gd_buf_deinit(&names);
    return rc;
}

static int not_found(const struct command *table, const char *word, size_t len, struct gd_err *err)
{
    char near[SUGGEST_MAX];
    const char *of = table ? suggest_parent(table) : "";
    const char *kind = table ? "" : "command ", *blank = of[0] != '\0' ? " " : "";
    int shown = len < 80 ? (int)len : 80;

    if (suggest_name(table, word, len, near)) {
        return gd_fail(err, GD_ENOTFOUND, "there is no %s\"%s%s%.*s\"; did you mean \"%s\"?", kind,
                       of, blank, shown, word, near);
    }
    return gd_fail(err, GD_ENOTFOUND, "there is no %s\"%s%s%.*s\": see \"help%s%s\"", kind, of,
                   blank, shown, word, blank, of);
}

bool command_is_named(const struct command *command, const char *word)
{
    return strcmp(command->name, word) == 0 || has_alias(command, word, strlen(word));
}

int command_find(const struct command *table_or_null, const char *word, size_t len,
                 const struct command **ret, struct gd_err *err)
{
    const struct command *found = NULL;
    int matches = 0;

    if (len == 0) {
        return gd_fail(err, GD_ENOTFOUND, "a command is missing: see \"help\"");
    }
    for (const struct command *c = first_of(table_or_null); c; c = next_of(table_or_null, c)) {
        if (strlen(c->name) == len && memcmp(c->name, word, len) == 0) {
            *ret = c;
            return GD_OK;
        }
    }
    for (const struct command *c = first_of(table_or_null); c; c = next_of(table_or_null, c)) {
        if (has_alias(c, word, len)) {
            *ret = c;
            return GD_OK;
        }
        if (strncmp(c->name, word, len) == 0) {
            found = c;
            matches++;
        }
    }
    if (matches > 1) {
        return fail_ambiguous(table_or_null, word, len, err);
    }
    if (matches == 0) {
        return not_found(table_or_null, word, len, err);
    }
    *ret = found;
    return GD_OK;
}
