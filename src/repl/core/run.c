// SPDX-License-Identifier: GPL-3.0-or-later
/* How a line becomes a command's call. */
#include <stdlib.h>
#include <string.h>

#include "engine/ranks.h"
#include "repl/core/command.h"
#include "repl/core/parse.h"
#include "repl/core/repl_impl.h"
#include "repl/launch/deferred.h"
#include "repl/values/norms.h"
#include "repl/words/runner.h"

#define COMMAND_MEMORY ((size_t)1 << 30) /* of one command's arena */

int repl_report_failure(struct repl *repl, const struct command *command, int rc,
                        const struct gd_err *err)
{
    if (err->text[0] != '\0') { /* empty: already reported by a line that the command ran */
        repl_print_error(repl, command, err);
    }
    repl_set_failed(repl, rc);
    return rc;
}

static char *no_words[1] = {NULL};

struct command_call *repl_begin_call(struct own_call *own, struct repl *repl,
                                     const struct command *command, struct gd_session *session)
{
    own->call = (struct command_call){.repl = repl,
                                      .debugger = repl->debugger,
                                      .session = session,
                                      .out = out_report_begin(&own->report, repl),
                                      .arena = &own->report.arena,
                                      .command = command,
                                      .format = "",
                                      .line = "",
                                      .argv = no_words};
    return &own->call;
}

/* Checks what the command's flags require. */
static int check_needs(struct command_call *call, struct gd_err *err)
{
    call->session = call->debugger->current;
    return repl_check_needs(call, call->command->name, call->command->flags, err);
}

int repl_check_needs(struct command_call *call, const char *name, unsigned flags,
                     struct gd_err *err)
{
    if ((flags & (CMD_NEEDS_SESSION | CMD_NEEDS_STOP | CMD_NEEDS_LIVE)) == 0) {
        return GD_OK;
    }
    int rc = gd_debugger_need_session(call->debugger, &call->session, err);
    if (rc != GD_OK) {
        return rc;
    }
    const struct gd_session *session = call->session;
    if ((flags & CMD_NEEDS_LIVE) != 0 && !gd_session_is_live(session)) {
        return gd_fail(err, GD_ESTATE,
                       "the training process has ended (%s): %s needs a live one, "
                       "such as \"run\" starts",
                       gd_state_name(session->state), name);
    }
    bool runs = gd_ranks_is_running(session); /* it may be stopped between two steps of its job */
    if ((flags & CMD_NEEDS_STOP) != 0 && gd_session_is_live(session) &&
        (runs || session->state != GD_STOPPED)) {
        if (runs) {
            return gd_fail(err, GD_ESTATE,
                           "the training is running: stop it with \"interrupt\" before %s", name);
        }
        return gd_fail(err, GD_ESTATE, "the training process has not stopped yet (%s)",
                       gd_state_name(session->state));
    }
    return GD_OK;
}

int repl_need_commands(const struct command_call *call, const char *name, const char *without,
                       struct gd_err *err)
{
    const struct gd_session *session = call->session;

    if (gd_session_is_live(session) && gd_session_is_record(session)) {
        return gd_fail(err, GD_EUNSUPPORTED,
                       "what is open was recorded: %s needs a training process", name);
    }
    return session->target && session->target->capabilities & GD_CAN_COMMAND
               ? GD_OK
               : gd_fail(err, GD_EUNSUPPORTED, "this training process %s", without);
}

/* "info" + "graph": the entry, its arguments and a full name for JSON. */
static int find_sub(struct command_call *call, struct parsed_args *args, struct gd_buf *name,
                    struct gd_err *err)
{
    while (call->command->sub && args->argc > 0) {
        const struct command *sub = NULL;
        int rc = command_find(call->command->sub, args->argv[0], strlen(args->argv[0]), &sub, err);
        if (rc != GD_OK) {
            return rc;
        }
        call->command = sub;
        gd_buf_printf(name, " %s", sub->name);
        if ((sub->flags & CMD_RAW) != 0) {
            call->line = args->after_first;
            args->argc = 0;
            args->argv += 1;
            args->argv[0] = NULL;
            return GD_OK;
        }
        rc = parse_args(args->after_first, call->arena, args, err);
        if (rc != GD_OK) {
            return rc;
        }
        call->line = args->line;
    }
    return GD_OK;
}

/* The usage is only the name: `kill 2` must not end process 1. */
static bool takes_nothing(const struct command *command)
{
    size_t usage = strlen(command->usage), name = strlen(command->name);

    return !command->sub && usage >= name &&
           strcmp(command->usage + usage - name, command->name) == 0;
}

/* Splits the line as the command's flags require. */
static int prepare_call(struct command_call *call, const struct parsed_line *line,
                        struct gd_buf *name, struct gd_err *err)
{
    struct parsed_args args = {.file = NULL};

    call->format = line->format;
    call->line = line->rest;
    call->line_at = line->rest_at;
    call->argv = no_words;
    gd_buf_puts(name, call->command->name);
    if ((call->command->flags & CMD_RAW) != 0) {
        return GD_OK;
    }
    int rc = parse_args(line->rest, call->arena, &args, err);
    if (rc != GD_OK) {
        return rc;
    }
    const char *file = args.file;
    bool append = args.append;
    bool background = args.background;
    call->line = args.line;
    rc = find_sub(call, &args, name, err);
    if (rc != GD_OK) {
        return rc;
    }
    call->argc = args.argc;
    call->argv = args.argv;
    call->background = background;
    if (call->argc > 0 && takes_nothing(call->command)) {
        return gd_fail(err, GD_EUSAGE, "%s takes no argument", call->command->usage);
    }
    const struct command *command = call->command;
    if (command->words.missing && (call->argc < command->words.least ||
                                   (command->words.most > 0 && call->argc > command->words.most))) {
        return gd_fail(err, GD_EUSAGE, "%s: %s", command->name, command->words.missing);
    }
    return file ? out_redirect(call->out, file, append, err) : GD_OK;
}

static int run_now(struct command_call *call, struct gd_err *err)
{
    int rc = check_needs(call, err);
    if (rc != GD_OK) {
        return rc;
    }
    struct gd_session *held = call->session; /* it may end while this runs */
    gd_session_hold(held);
    if (call->command->flags & CMD_METRICS) {
        rc = norms_want(call, call->command->flags & CMD_SHOWS, err);
    }
    rc = rc != GD_OK ? rc : call->command->run(call, err);
    gd_session_release(held);
    return rc;
}

static bool is_deferred(const struct command_call *call)
{
    return (call->command->flags & CMD_DEFERRED) != 0 && call->line[0] != '\0' &&
           !deferred_is_due(call);
}

static int call_command(struct repl *repl, const struct command *command,
                        const struct parsed_line *line, struct gd_arena *arena, bool repeated)
{
    struct repl_out out;
    struct gd_err err = {.code = GD_OK};
    struct gd_buf name = GD_BUF_INIT(256);
    struct command_call call = {.repl = repl,
                                .debugger = repl->debugger,
                                .out = &out,
                                .arena = arena,
                                .command = command,
                                .repeated = repeated};

    out_begin(&out, repl, arena, NULL);
    int rc = prepare_call(&call, line, &name, &err);
    out.command = gd_buf_text(&name);
    if (rc == GD_OK && is_deferred(&call)) {
        rc = deferred_keep(&call, call.line, &err);
    } else if (rc == GD_OK) {
        rc = run_now(&call, &err);
    }
    if (rc != GD_OK && err.code == GD_OK) {
        err.code = rc;
    }
    struct gd_err end_err = {.code = GD_OK};
    int end_rc = out_end(&out, rc != GD_OK, &end_err);
    if (rc == GD_OK && end_rc != GD_OK) {
        rc = end_rc;
        err = end_err;
    }
    if (rc != GD_OK) {
        repl_report_failure(repl, call.command, rc, &err);
    }
    gd_buf_deinit(&name);
    return rc;
}

void repl_forget_repeat(struct repl *repl)
{
    free(repl->script.repeat);
    repl->script.repeat = NULL;
}

/* Keeps what an empty line repeats. */
static void keep_for_repeat(struct repl *repl, const struct command *command,
                            const struct parsed_line *line, const char *typed)
{
    struct gd_buf text = GD_BUF_INIT(PARSE_MAX_LINE + 16);

    repl_forget_repeat(repl);
    if ((command->flags & CMD_CHANGES) != 0) {
        return;
    }
    if ((command->flags & CMD_REPEATS_BARE) != 0) {
        gd_buf_puts(&text, line->name);
        if (line->format[0] != '\0') {
            gd_buf_printf(&text, "/%s", line->format);
        }
        repl->script.repeat = gd_buf_take(&text);
    } else if ((command->flags & CMD_REPEATS) != 0) {
        repl->script.repeat = strdup(typed);
    }
    gd_buf_deinit(&text);
}

/* ---- user commands ---- */

static int run_lines(struct repl *repl, const struct repl_lines *lines)
{
    for (size_t i = 0; i < lines->count && !repl->end.quit; i++) {
        if (repl->script.user_lines++ >= REPL_MAX_USER) { /* commands that call each other */
            struct gd_err err;
            int rc =
                gd_fail(&err, GD_ELIMIT, "user commands ran more than %d lines", REPL_MAX_USER);
            return repl_report_failure(repl, NULL, rc, &err);
        }
        int rc = repl_run_line(repl, lines->line[i], LINE_SCRIPT);
        if (rc != GD_OK) {
            return rc;
        }
    }
    return GD_OK;
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

static int run_user(struct repl *repl, const struct user_command *user, const char *rest,
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
        rc = run_lines(repl, &lines);
        repl->script.user_depth--;
        if (rc != GD_OK && err) {
            *err = (struct gd_err){.code = rc}; /* already reported by the line */
        }
    }
    if (rc == GD_OK && repl->script.body.kind != BODY_NONE) {
        const char *kind = repl_body_name(repl);
        repl_body_drop(repl);
        rc = gd_fail(err, GD_EINVAL, "\"%s\" has no \"end\"", kind);
    }
    repl_lines_clear(&lines);
    return rc;
}

/* ---- one line ---- */

static int run_parsed(struct repl *repl, const char *typed, struct parsed_line *line,
                      struct gd_arena *arena, bool repeated)
{
    struct gd_err err = {.code = GD_OK};
    const struct command *command = NULL;
    struct user_command *user = NULL;
    int rc = runner_find(repl, typed, line, arena, &command, &user, &err);

    if (rc == GD_OK && !command) {
        repl_forget_repeat(repl);
        rc = run_user(repl, user, line->rest, &err);
    } else if (rc == GD_OK) {
        rc = call_command(repl, command, line, arena, repeated);
        if (!repeated && repl->busy.depth == 1) {
            keep_for_repeat(repl, command, line, typed);
        }
        return rc;
    }
    return rc != GD_OK && err.text[0] != '\0' ? repl_report_failure(repl, NULL, rc, &err) : rc;
}

int repl_run_line(struct repl *repl, const char *line, enum line_origin origin)
{
    struct gd_arena arena;
    struct gd_err err = {.code = GD_OK};
    struct parsed_line parsed;
    int rc = GD_OK;

    if (repl->script.body.kind != BODY_NONE) {
        rc = repl_body_feed(repl, line, &err);
        return rc == GD_OK ? rc : repl_report_failure(repl, NULL, rc, &err);
    }
    if (repl->busy.depth >= REPL_MAX_DEPTH) {
        rc = gd_fail(&err, GD_ELIMIT, "commands are nested more than %d deep", REPL_MAX_DEPTH);
        return repl_report_failure(repl, NULL, rc, &err);
    }
    gd_arena_init(&arena, COMMAND_MEMORY);
    repl->busy.depth++;
    rc = parse_line(line, &arena, &parsed, &err);
    if (rc != GD_OK) {
        repl_report_failure(repl, NULL, rc, &err);
    } else if (parsed.name[0] != '\0') {
        rc = run_parsed(repl, line, &parsed, &arena, false);
    } else if (origin == LINE_TYPED && !repl->options.json &&
               line[strspn(line, " \t\r\n")] == '\0' && repl->script.repeat) {
        rc = parse_line(repl->script.repeat, &arena, &parsed, &err);
        if (rc == GD_OK) {
            rc = run_parsed(repl, repl->script.repeat, &parsed, &arena, true);
        }
    }
    repl->busy.depth--;
    gd_arena_deinit(&arena);
    return rc;
}
