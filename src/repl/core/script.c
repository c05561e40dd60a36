// SPDX-License-Identifier: GPL-3.0-or-later
/* Bodies (commands, define, document ... end), user commands, aliases, command files. */
#include "repl/core/parse.h"
#include "repl/core/repl_impl.h"

#include <stdlib.h>
#include <string.h>

/* ---- bodies ---- */

static const char *const body_names[] = {[BODY_NONE] = "",
                                         [BODY_COMMANDS] = "commands",
                                         [BODY_DEFINE] = "define",
                                         [BODY_DOCUMENT] = "document"};

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
    return rc == GD_OK ? rc : gd_fail(err, rc, "out of memory");
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

int repl_body_feed(struct repl *repl, const char *line, struct gd_err *err)
{
    struct repl_body *body = &repl->script.body;
    const char *text = line + strspn(line, " \t");
    size_t len = strcspn(text, " \t\r\n");

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

/* Replaces $argc, $arg0 ... $argN and $arg* by the user command's arguments. */
static void substitute_arguments(const char *line, int argc, char *const *argv, const char *rest,
                                 struct gd_buf *out)
{
    const char *p = line;

    while (*p != '\0') {
        if (strncmp(p, "$argc", 5) == 0) {
            gd_buf_printf(out, "%d", argc);
            p += 5;
        } else if (strncmp(p, "$arg*", 5) == 0) {
            gd_buf_puts(out, rest);
            p += 5;
        } else if (strncmp(p, "$arg", 4) == 0 && p[4] >= '0' && p[4] <= '9') {
            char *end = NULL;
            long number = strtol(p + 4, &end, 10);
            if (number < argc) {
                gd_buf_puts(out, argv[number]);
            }
            p = end;
        } else {
            gd_buf_putc(out, *p++);
        }
    }
}

int repl_run_user(struct repl *repl, const struct user_command *user, const char *rest,
                  struct gd_err *err)
{
    struct gd_arena arena;
    struct parsed_args args;
    struct repl_lines lines = {.line = NULL}; /* the command may redefine itself */
    struct gd_buf text = GD_BUF_INIT(PARSE_MAX_LINE);

    gd_arena_init(&arena, (size_t)64 << 20);
    int rc = parse_args(rest, &arena, &args, err);
    for (size_t i = 0; rc == GD_OK && i < user->lines.count; i++) {
        gd_buf_clear(&text);
        substitute_arguments(user->lines.line[i], args.argc, args.argv, args.line, &text);
        if (text.failed || repl_lines_add(&lines, gd_buf_text(&text)) != GD_OK) {
            rc = gd_fail(err, GD_ELIMIT, "%s: with its arguments, line %zu is too long", user->name,
                         i + 1);
        }
    }
    gd_buf_deinit(&text);
    gd_arena_deinit(&arena);
    if (rc == GD_OK) {
        repl->script.user_lines = repl->script.user_depth == 0 ? 0 : repl->script.user_lines;
        repl->script.user_depth++;
        rc = repl_run_lines(repl, &lines);
        repl->script.user_depth--;
        if (rc != GD_OK && err) {
            *err = (struct gd_err){.code = rc}; /* already reported by the line */
        }
    }
    if (rc == GD_OK && repl->script.body.kind != BODY_NONE) {
        const char *kind = body_names[repl->script.body.kind];
        repl_body_drop(repl);
        rc = gd_fail(err, GD_EINVAL, "\"%s\" has no \"end\"", kind);
    }
    repl_lines_clear(&lines);
    return rc;
}

/* ---- files ---- */

/* One line without its end, at most PARSE_MAX_LINE bytes. 1: a line; 0: the end; negative: an
 * error. */
static int read_line(FILE *file, struct gd_buf *line, struct gd_err *err)
{
    int c;

    gd_buf_clear(line);
    while ((c = getc(file)) != EOF && c != '\n') {
        if (c == '\0') { /* the rest would be lost silently */
            return gd_fail(err, GD_EINVAL,
                           "the line contains a NUL byte: this is not a command file");
        }
        if (gd_buf_putc(line, (char)c) != GD_OK) {
            return gd_fail(err, GD_ELIMIT, "the line is longer than %d bytes", PARSE_MAX_LINE);
        }
    }
    return c == EOF && line->len == 0 ? 0 : 1;
}

static int source_lines(struct repl *repl, FILE *file, struct gd_err *err)
{
    struct gd_buf line = GD_BUF_INIT(PARSE_MAX_LINE);
    int rc = GD_OK;

    while (rc == GD_OK && !repl->end.quit && !repl->front.left) {
        rc = read_line(file, &line, err);
        if (rc == 0) {
            break;
        }
        repl->script.source_line++;
        if (rc < 0) {
            break;
        }
        rc = repl_run_line(repl, gd_buf_text(&line), LINE_SCRIPT);
        rc = repl_goes_on_after(repl, rc) ? GD_OK : rc;
    }
    gd_buf_deinit(&line);
    return rc;
}

int repl_source(struct repl *repl, const char *path)
{
    const char *outer_path = repl->script.source_path;
    int outer_line = repl->script.source_line;
    struct gd_err err = {.code = GD_OK};
    int rc = repl_check_seal(repl, &err);
    FILE *file = rc == GD_OK ? fopen(path, "re") : NULL;

    if (rc != GD_OK) {
        /* reported below */
    } else if (!file) {
        rc = gd_fail_errno(&err, GD_EIO, "cannot read the command file %s", path);
    } else if (repl->busy.depth >= REPL_MAX_DEPTH) {
        rc = gd_fail(&err, GD_ELIMIT, "command files are nested more than %d deep", REPL_MAX_DEPTH);
    } else {
        bool had_body = repl->script.body.kind != BODY_NONE;
        repl->script.source_path = path;
        repl->script.source_line = 0;
        repl->busy.depth++;
        rc = source_lines(repl, file, &err);
        repl->busy.depth--;
        if (rc == GD_OK && ferror(file) != 0) { /* a directory can be opened, but not read */
            repl->script.source_path = outer_path;
            rc = gd_fail_errno(&err, GD_EIO, "cannot read the command file %s", path);
        }
        if (!had_body && repl->script.body.kind != BODY_NONE) {
            int open_rc =
                gd_fail(&err, GD_EINVAL, "the file ends inside \"%s\": \"end\" is missing",
                        body_names[repl->script.body.kind]);
            rc = rc == GD_OK ? open_rc : rc;
            repl_body_drop(repl);
        }
    }
    if (err.code != GD_OK) {
        repl_report_failure(repl, NULL, rc, &err);
    }
    repl->script.source_path = outer_path;
    repl->script.source_line = outer_line;
    if (file) {
        fclose(file);
    }
    return rc;
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
