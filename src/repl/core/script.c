// SPDX-License-Identifier: GPL-3.0-or-later
/* Bodies (commands, define, document ... end), user commands, aliases. */
#include "repl/core/repl_impl.h"

#include <stdlib.h>
#include <string.h>

/* ---- bodies ---- */

static const char *const body_names[] = {[BODY_NONE] = "",
                                         [BODY_COMMANDS] = "commands",
                                         [BODY_DEFINE] = "define",
                                         [BODY_DOCUMENT] = "document",
                                         [BODY_INTERACT] = "interact"};

int repl_body_open(struct repl *repl, enum repl_body_kind kind, const char *name, int first,
                   int last, struct gd_err *err)
{
    struct repl_body *body = &repl->script.body;

    if (body->kind != BODY_NONE) {
        return gd_fail(err, GD_ESTATE, "the body of \"%s\" is still open: close it with \"end\"",
                       body_names[body->kind]);
    }
    if (strlen(name) >= sizeof(body->name)) {
        return gd_fail(err, GD_ELIMIT, "a name has at most %zu characters", sizeof(body->name) - 1);
    }
    *body = (struct repl_body){.kind = kind, .first = first, .last = last};
    snprintf(body->name, sizeof(body->name), "%s", name);
    return GD_OK;
}

const char *repl_body_name(const struct repl *repl)
{
    return body_names[repl->script.body.kind];
}

void repl_body_drop(struct repl *repl)
{
    repl_lines_clear(&repl->script.body.lines);
    repl->script.body = (struct repl_body){.kind = BODY_NONE};
}

static struct stop_commands *stop_commands_of(struct repl *repl, int number, bool make)
{
    struct stop_commands *at = repl->script.stop_commands;

    while (at && at->number != number) {
        at = at->next;
    }
    if (!at && make) {
        at = calloc(1, sizeof(*at));
        if (at) {
            at->number = number;
            at->next = repl->script.stop_commands;
            repl->script.stop_commands = at;
        }
    }
    return at;
}

static int set_stop_commands(struct repl *repl, int number, const struct repl_lines *lines)
{
    struct stop_commands *at = stop_commands_of(repl, number, true);

    if (!at) {
        return GD_ENOMEM;
    }
    repl_lines_clear(&at->lines);
    for (size_t i = 0; i < lines->count; i++) {
        if (repl_lines_add(&at->lines, lines->line[i]) != GD_OK) {
            return GD_ENOMEM;
        }
    }
    return GD_OK;
}

int repl_set_stop_count(struct repl *repl, int number, uint64_t count)
{
    struct stop_commands *at = stop_commands_of(repl, number, count > 0);

    if (!at) {
        return count > 0 ? GD_ENOMEM : GD_OK;
    }
    at->count = count;
    return GD_OK;
}

uint64_t repl_stop_count(struct repl *repl, int number)
{
    const struct stop_commands *at = stop_commands_of(repl, number, false);
    return at ? at->count : 0;
}

bool repl_count_stop(struct repl *repl, int number)
{
    struct stop_commands *at = stop_commands_of(repl, number, false);
    return at && at->count > 0 && --at->count == 0;
}

void repl_forget_number(struct repl *repl, int number)
{
    struct stop_commands **at = &repl->script.stop_commands;

    while (*at && (*at)->number != number) {
        at = &(*at)->next;
    }
    if (*at) {
        struct stop_commands *gone = *at;
        *at = gone->next;
        repl_lines_clear(&gone->lines);
        free(gone);
    }
}

static int set_user_command(struct repl *repl, struct repl_body *body)
{
    struct user_command *user = repl_user_command(repl, body->name, false);

    if (!user) {
        user = calloc(1, sizeof(*user));
        if (!user) {
            return GD_ENOMEM;
        }
        user->name = strdup(body->name);
        if (!user->name) {
            free(user);
            return GD_ENOMEM;
        }
        struct user_command **end = &repl->script.user_commands;
        while (*end) {
            end = &(*end)->next;
        }
        *end = user;
    }
    repl_lines_clear(&user->lines);
    user->lines = body->lines;
    body->lines = (struct repl_lines){.line = NULL};
    return GD_OK;
}

static int set_document(struct repl *repl, const struct repl_body *body)
{
    struct user_command *user = repl_user_command(repl, body->name, false);
    struct gd_buf text = GD_BUF_INIT((size_t)1 << 20);

    if (!user) {
        return GD_OK;
    }
    for (size_t i = 0; i < body->lines.count; i++) {
        gd_buf_printf(&text, "%s%s", i > 0 ? "\n" : "", body->lines.line[i]);
    }
    free(user->help);
    user->help = gd_buf_take(&text);
    return GD_OK;
}

static int close_body(struct repl *repl, struct gd_err *err)
{
    struct repl_body body = repl->script.body;
    int rc = GD_OK;

    repl->script.body = (struct repl_body){.kind = BODY_NONE};
    if (body.kind == BODY_COMMANDS) {
        for (int n = body.first; rc == GD_OK && n <= body.last; n++) {
            rc = set_stop_commands(repl, n, &body.lines);
        }
    } else if (body.kind == BODY_DEFINE) {
        rc = set_user_command(repl, &body);
    } else {
        rc = set_document(repl, &body);
    }
    repl_lines_clear(&body.lines);
    return rc == GD_OK ? rc : gd_fail_nomem(err);
}

/* Whether the first word of a line opens a body within a body. */
static bool opens_body(const char *word, size_t len)
{
    for (int kind = BODY_COMMANDS; kind <= BODY_DOCUMENT; kind++) {
        if (strlen(body_names[kind]) == len && strncmp(body_names[kind], word, len) == 0) {
            return true;
        }
    }
    return false;
}

/* `end` closes it, and as at Python's prompt exit() and quit(). */
static int feed_interact(struct repl *repl, const char *line, struct gd_err *err)
{
    static const char *const ends[] = {"end", "exit", "exit()", "quit", "quit()"};
    struct repl_body *body = &repl->script.body;
    size_t len = strcspn(line, "\r\n");

    while (len > 0 && (line[len - 1] == ' ' || line[len - 1] == '\t')) {
        len--;
    }
    for (size_t i = 0; body->lines.count == 0 && i < sizeof(ends) / sizeof(ends[0]); i++) {
        if (strlen(ends[i]) == len && strncmp(line, ends[i], len) == 0) {
            repl_body_drop(repl);
            return GD_OK;
        }
    }
    return body->interact(repl, line, err);
}

int repl_body_interact(struct repl *repl, repl_interact_fn interact, struct gd_err *err)
{
    int rc = repl_body_open(repl, BODY_INTERACT, "", 0, 0, err);

    repl->script.body.interact = rc == GD_OK ? interact : repl->script.body.interact;
    return rc;
}

bool repl_interact_ends(struct repl *repl)
{
    if (repl->script.body.kind != BODY_INTERACT) {
        return false;
    }
    repl_body_drop(repl);
    return true;
}

void repl_body_interrupt(struct repl *repl)
{
    if (repl->script.body.kind == BODY_INTERACT) {
        repl_lines_clear(&repl->script.body.lines);
    } else if (repl->script.body.kind != BODY_NONE) {
        repl_body_drop(repl);
    }
}

int repl_body_feed(struct repl *repl, const char *line, struct gd_err *err)
{
    struct repl_body *body = &repl->script.body;
    const char *text = line + strspn(line, " \t");
    size_t len = strcspn(text, " \t\r\n");

    if (body->kind == BODY_INTERACT) {
        return feed_interact(repl, line, err);
    }
    if (len == 3 && strncmp(text, "end", 3) == 0 && text[3 + strspn(text + 3, " \t\r\n")] == '\0') {
        if (body->nested == 0) {
            return close_body(repl, err);
        }
        body->nested--;
    } else if (body->kind != BODY_DOCUMENT && opens_body(text, len)) {
        body->nested++;
    }
    if (body->lines.count >= REPL_MAX_BODY) {
        const char *kind = body_names[body->kind];
        repl_body_drop(repl);
        return gd_fail(err, GD_ELIMIT, "the body of \"%s\" has more than %d lines", kind,
                       REPL_MAX_BODY);
    }
    if (repl_lines_add(&body->lines, body->kind == BODY_DOCUMENT ? line : text) != GD_OK) {
        repl_body_drop(repl);
        return gd_fail_nomem(err);
    }
    return GD_OK;
}

const struct repl_lines *repl_commands_of(struct repl *repl, int number)
{
    struct stop_commands *at = stop_commands_of(repl, number, false);
    return at && at->lines.count > 0 ? &at->lines : NULL;
}

/* ---- user commands and aliases ---- */

struct user_command *repl_user_command(struct repl *repl, const char *name, bool prefix)
{
    struct user_command *found = NULL;
    size_t len = strlen(name);

    for (struct user_command *c = repl->script.user_commands; c; c = c->next) {
        if (strcmp(c->name, name) == 0) {
            return c;
        }
        if (prefix && strncmp(c->name, name, len) == 0) {
            if (found) {
                return NULL;
            }
            found = c;
        }
    }
    return found;
}

struct user_alias *repl_alias(struct repl *repl, const char *name)
{
    for (struct user_alias *a = repl->script.aliases; a; a = a->next) {
        if (strcmp(a->name, name) == 0) {
            return a;
        }
    }
    return NULL;
}

void repl_script_free(struct repl *repl)
{
    repl_body_drop(repl);
    while (repl->script.user_commands) {
        struct user_command *user = repl->script.user_commands;
        repl->script.user_commands = user->next;
        repl_lines_clear(&user->lines);
        free(user->name);
        free(user->help);
        free(user);
    }
    while (repl->script.aliases) {
        struct user_alias *alias = repl->script.aliases;
        repl->script.aliases = alias->next;
        free(alias->name);
        free(alias->text);
        free(alias);
    }
    while (repl->script.stop_commands) {
        struct stop_commands *commands = repl->script.stop_commands;
        repl->script.stop_commands = commands->next;
        repl_lines_clear(&commands->lines);
        free(commands);
    }
}
