// SPDX-License-Identifier: GPL-3.0-or-later
#include "repl/words/runner.h"

#include <stdio.h>
#include <string.h>

#include "repl/core/repl_impl.h"
#include "repl/words/foreign.h"
#include "repl/words/piped.h"
#include "repl/words/suggest.h"

/* Replaces a user's alias at the start of the line. Aliases may refer to each other. */
static int expand_alias(struct repl *repl, struct gd_arena *arena, struct parsed_line *line,
                        struct gd_err *err)
{
    for (int round = 0; round < 16; round++) {
        const struct user_alias *alias = repl_alias(repl, line->name);
        if (!alias) {
            return GD_OK;
        }
        struct parsed_line inner;
        int rc = parse_line(alias->text, arena, &inner, err);
        if (rc != GD_OK) {
            return rc;
        }
        size_t size = strlen(inner.rest) + strlen(line->rest) + 2;
        char *rest = gd_arena_alloc(arena, size);
        if (!rest) {
            return gd_fail_nomem(err);
        }
        snprintf(rest, size, "%s%s%s", inner.rest,
                 inner.rest[0] != '\0' && line->rest[0] != '\0' ? " " : "", line->rest);
        inner.rest = rest;
        if (line->format[0] != '\0') {
            inner.format = line->format;
        }
        bool same = strcmp(inner.name, line->name) == 0;
        *line = inner;
        if (same) { /* alias s = s 2: the built-in command is meant */
            return GD_OK;
        }
    }
    return gd_fail(err, GD_ELIMIT, "the alias \"%.80s\" refers to itself", line->name);
}

/* `info nodes | head` becomes the line of the command `pipe`. */
static int take_pipe(const struct command **command, struct parsed_line *line,
                     struct gd_arena *arena, struct gd_err *err)
{
    bool is_raw = *command && ((*command)->flags & CMD_RAW) != 0;

    if (is_raw || !strchr(line->rest, '|')) {
        return GD_OK;
    }
    bool is_search = line->name[0] == '/'; /* its rest has the slash */
    size_t size = strlen(line->name) + strlen(line->format) + strlen(line->rest) + 3;
    char *whole = gd_arena_alloc(arena, size);
    if (!whole) {
        return gd_fail_nomem(err);
    }
    snprintf(whole, size, "%s%s%s%s%s", is_search ? "" : line->name,
             line->format[0] != '\0' ? "/" : "", line->format, is_search ? "" : " ", line->rest);
    if (piped_at(whole) == 0) {
        return GD_OK;
    }
    *line = (struct parsed_line){.name = "pipe", .format = "", .rest = whole};
    return command_find(NULL, "pipe", 4, command, err);
}

/* Words of other tools, except where a command has that name. */
static int take_foreign(const struct command **command, struct parsed_line *line,
                        struct gd_arena *arena, struct gd_err *err)
{
    const char *rest = "";
    size_t size = strlen(line->name) + strlen(line->rest) + 2;
    char *whole = gd_arena_alloc(arena, size);

    if (!whole) {
        return gd_fail_nomem(err);
    }
    snprintf(whole, size, "%s %s", line->name, line->rest);
    const struct foreign *foreign = line->format[0] == '\0' ? foreign_find(whole, &rest) : NULL;
    if (!foreign ||
        (!strchr(foreign->words, ' ') && *command && command_is_named(*command, line->name))) {
        return GD_OK;
    }
    if (foreign->hint) {
        return gd_fail(err, GD_EUNSUPPORTED, "%s: %s", foreign->words, foreign->hint);
    }
    size = strlen(foreign->line) + strlen(rest) + 2;
    whole = gd_arena_alloc(arena, size);
    if (!whole) {
        return gd_fail_nomem(err);
    }
    snprintf(whole, size, "%s %s", foreign->line, rest);
    size_t at = line->rest_at;
    int rc = parse_line(whole, arena, line, err);
    line->rest_at = at;
    return rc == GD_OK ? command_find(NULL, line->name, strlen(line->name), command, err) : rc;
}

/* `loss.item()`, `x[0]` and `model/fc1/weight` are what print takes: the name is followed by one of
 * `marks`. */
static bool take_expression(const char *typed, const char *marks, const struct command **command,
                            struct parsed_line *line, struct gd_arena *arena)
{
    const char *text = typed + strspn(typed, " \t\r\n");
    size_t len = strlen(line->name), end = strlen(text);
    const struct command *print = NULL;
    bool is_expression = strncmp(text, line->name, len) == 0 && text[len] != '\0' &&
                         strchr(marks, text[len]) && !strchr("!|/", text[0]) &&
                         command_find(NULL, "print", 5, &print, NULL) == GD_OK &&
                         !command_is_named(print, line->name);

    while (end > 0 && strchr(" \t\r\n", text[end - 1])) {
        end--;
    }
    char *rest = is_expression ? gd_arena_strndup(arena, text, end) : NULL;
    if (rest) {
        *command = print;
        *line = (struct parsed_line){
            .name = print->name, .format = "", .rest = rest, .rest_at = (size_t)(text - typed)};
    }
    return rest != NULL;
}

/* The same without pipes. */
static int find_unpiped(struct repl *repl, const char *typed, struct parsed_line *line,
                        struct gd_arena *arena, const struct command **command,
                        struct user_command **user, struct gd_err *err)
{
    struct gd_err why = {.code = GD_OK};
    char meant[SUGGEST_MAX];
    int rc = expand_alias(repl, arena, line, err);

    *user = repl_user_command(repl, line->name, false);
    if (rc != GD_OK || *user || take_expression(typed, ".[(", command, line, arena)) {
        return rc;
    }
    int found = command_find(NULL, line->name, strlen(line->name), command, &why);
    rc = take_foreign(command, line, arena, err);
    if (rc != GD_OK || *command) {
        return rc;
    }
    *user = found == GD_ENOTFOUND ? repl_user_command(repl, line->name, true) : NULL;
    if (*user || (found == GD_ENOTFOUND && take_expression(typed, "/:", command, line, arena))) {
        return GD_OK;
    }
    if (found == GD_ENOTFOUND && suggest_thing(repl, line->name, meant)) {
        return gd_fail(err, found, "there is no command \"%.80s\"; did you mean \"%s\"?",
                       line->name, meant);
    }
    if (err) {
        *err = why;
    }
    return found;
}

int runner_find(struct repl *repl, const char *typed, struct parsed_line *line,
                struct gd_arena *arena, const struct command **command, struct user_command **user,
                struct gd_err *err)
{
    *command = NULL;
    *user = NULL;
    int rc = find_unpiped(repl, typed, line, arena, command, user, err);
    return rc == GD_OK ? take_pipe(command, line, arena, err) : rc;
}
