// SPDX-License-Identifier: GPL-3.0-or-later
/* The REPL object, and how a line becomes a command's call. */
#include "base/grow.h"
#include "engine/ranks.h"
#include "repl/core/command.h"
#include "repl/core/events.h"
#include "repl/core/interrupt.h"
#include "repl/core/parse.h"
#include "repl/core/repl_impl.h"
#include "repl/launch/launch.h"

#include <ev.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#define COMMAND_MEMORY ((size_t)1 << 30) /* of one command's arena */

static double default_now(void *ctx)
{
    (void)ctx;
    struct timeval now;
    gettimeofday(&now, NULL);
    return (double)now.tv_sec + 1e-6 * (double)now.tv_usec;
}

/* Its only effect is that the loop returns. */
static void on_pump_limit(struct ev_loop *loop, ev_timer *timer, int events)
{
    (void)loop;
    (void)timer;
    (void)events;
}

/* Runs the loop once, for max_seconds at most. */
static void default_pump(void *ctx, double max_seconds)
{
    struct repl *repl = ctx;
    ev_timer timer;

    if (max_seconds < 0) {
        ev_run(repl->loop, EVRUN_ONCE);
        return;
    }
    ev_timer_init(&timer, on_pump_limit, max_seconds, 0.);
    ev_timer_start(repl->loop, &timer);
    ev_run(repl->loop, EVRUN_ONCE);
    ev_timer_stop(repl->loop, &timer);
}

#define RANKS_TICK 0.1 /* seconds */

static void on_ranks_timer(struct ev_loop *loop, ev_timer *timer, int events)
{
    struct repl *repl = timer->data;

    (void)events;
    gd_ranks_tick(repl->debugger);
    if (!gd_ranks_need_tick(repl->debugger)) {
        ev_timer_stop(loop, timer);
    }
}

#define WORK_SECONDS 0.02 /* before keys and connections are served again */

static void on_work_check(struct ev_loop *loop, ev_prepare *prepare, int events)
{
    struct repl *repl = prepare->data;

    (void)events;
    if (gd_debugger_has_work(repl->debugger)) {
        ev_idle_start(loop, &repl->watchers.work);
    } else {
        ev_idle_stop(loop, &repl->watchers.work);
    }
}

static void on_work_idle(struct ev_loop *loop, ev_idle *idle, int events)
{
    struct repl *repl = idle->data;

    (void)loop;
    (void)events;
    gd_debugger_work(repl->debugger, WORK_SECONDS);
}

static void on_follow_timer(struct ev_loop *loop, ev_timer *timer, int events)
{
    (void)loop;
    (void)events;
    repl_follow_up(timer->data);
}

int repl_create(struct ev_loop *loop, struct gd_debugger *debugger,
                const struct repl_options *options, struct repl **ret, struct gd_err *err)
{
    struct repl *repl = calloc(1, sizeof(*repl));
    if (!repl) {
        return gd_fail_nomem(err);
    }
    repl->loop = loop;
    repl->debugger = debugger;
    repl->options = *options;
    ev_timer_init(&repl->watchers.ranks, on_ranks_timer, RANKS_TICK, RANKS_TICK);
    repl->watchers.ranks.data = repl;
    ev_timer_init(&repl->watchers.follow, on_follow_timer, 0., 0.);
    repl->watchers.follow.data = repl;
    ev_idle_init(&repl->watchers.work, on_work_idle);
    repl->watchers.work.data = repl;
    ev_prepare_init(&repl->watchers.work_check, on_work_check);
    repl->watchers.work_check.data = repl;
    if (!debugger->pump) {
        debugger->pump = default_pump;
        debugger->pump_ctx = repl;
    }
    if (!debugger->now) {
        debugger->now = default_now;
    }
    int rc = gd_debugger_observe(debugger, repl_on_event, repl);
    if (rc != GD_OK) {
        free(repl);
        return gd_fail(err, rc, "out of memory");
    }
    ev_prepare_start(loop, &repl->watchers.work_check);
    *ret = repl;
    return GD_OK;
}

void repl_destroy(struct repl *repl)
{
    if (!repl) {
        return;
    }
    gd_debugger_unobserve(repl->debugger, repl_on_event, repl);
    ev_timer_stop(repl->loop, &repl->watchers.ranks);
    ev_timer_stop(repl->loop, &repl->watchers.follow);
    ev_prepare_stop(repl->loop, &repl->watchers.work_check);
    ev_idle_stop(repl->loop, &repl->watchers.work);
    if (repl->debugger->pump_ctx == repl) {
        repl->debugger->pump = NULL;
        repl->debugger->pump_ctx = NULL;
    }
    for (int i = 0; i < REPL_SLOT_COUNT; i++) {
        repl_set_slot(repl, (enum repl_slot)i, NULL, NULL);
    }
    repl_launch_free(repl);
    repl_values_free(repl);
    repl_script_free(repl);
    repl_lines_clear(&repl->history);
    free(repl->script.repeat);
    repl_hits_forget(repl);
    free(repl);
}

void repl_set_writer(struct repl *repl, repl_write_fn fn, void *ctx)
{
    repl->front.write = fn;
    repl->front.write_ctx = ctx;
}

void repl_set_ask(struct repl *repl, repl_ask_fn fn, void *ctx)
{
    repl->front.ask = fn;
    repl->front.ask_ctx = ctx;
}

void repl_set_lend(struct repl *repl, repl_lend_fn fn, void *ctx)
{
    repl->front.lend = fn;
    repl->front.lend_ctx = ctx;
}

void repl_set_width(struct repl *repl, int width)
{
    repl->options.width = width;
}

void repl_set_looks(struct repl *repl, bool color, bool utf8)
{
    repl->options.color = color;
    repl->options.utf8 = utf8;
}

struct gd_debugger *repl_debugger(struct repl *repl)
{
    return repl->debugger;
}

bool repl_wants_color(const struct repl *repl)
{
    int color = repl->debugger->settings.color;
    return color == 1 || (color == 0 && repl->options.color);
}

bool repl_wants_quit(const struct repl *repl)
{
    return repl->end.quit != QUIT_NO;
}

int repl_exit_status(const struct repl *repl)
{
    return repl->end.quit_status != STATUS_OK ? repl->end.quit_status : (int)repl->end.status;
}

int repl_check_seal(const struct repl *repl, struct gd_err *err)
{
    return repl->options.sealed
               ? gd_fail(err, GD_EUNSUPPORTED, "files and programs cannot be used here")
               : GD_OK;
}

void repl_set_screen(struct repl *repl, const struct repl_screen_ops *ops, void *ctx)
{
    repl->front.screen = ops;
    repl->front.screen_ctx = ctx;
}

bool repl_take_prompt_wish(struct repl *repl)
{
    bool wish = repl->front.wants_prompt;
    repl->front.wants_prompt = false;
    return wish;
}

void repl_leave(struct repl *repl)
{
    repl->front.left = true;
    ev_break(repl->loop, EVBREAK_ALL);
}

bool repl_has_left(const struct repl *repl)
{
    return repl->front.left;
}

void repl_clear_left(struct repl *repl)
{
    repl->front.left = false;
}

void repl_clear_status(struct repl *repl)
{
    repl->end.status = STATUS_OK;
}

void repl_end(struct repl *repl)
{
    struct gd_debugger *debugger = repl->debugger;

    repl->end.quit = repl->end.quit == QUIT_NO ? QUIT_ORDERLY : repl->end.quit;
    repl->end.closing = true;
    if (repl->end.let_go) {
        launch_detach(repl);
    } else if (!launch_is_detached(repl)) {
        launch_kill(repl);
    }
    for (size_t i = 0; i < debugger->session_count; i++) {
        struct gd_session *session = debugger->sessions[i];
        if (gd_session_is_live(session) && (session->target->capabilities & GD_CAN_DETACH) != 0) {
            gd_target_detach(session->target, NULL);
        }
    }
    repl_pump(repl, 0); /* sends what is queued */
    if (debugger->server) {
        debugger->server->close(debugger->server_ctx);
    }
}

void repl_quit(struct repl *repl, int status)
{
    repl->end.quit = repl->end.quit == QUIT_NO ? QUIT_ORDERLY : repl->end.quit;
    repl->end.quit_status = status;
}

void repl_quit_at_once(struct repl *repl, int status)
{
    repl->end.quit = QUIT_AT_ONCE;
    repl_quit(repl, status);
}

bool repl_is_waiting(const struct repl *repl)
{
    return repl->busy.waiting;
}

const char *repl_prompt(struct repl *repl)
{
    return repl->script.body.kind != BODY_NONE ? ">" : "(gradb) ";
}

void *repl_slot(struct repl *repl, enum repl_slot slot)
{
    return repl->slot[slot];
}

void *repl_make_slot(struct repl *repl, enum repl_slot slot, size_t size,
                     void (*free_fn)(void *data))
{
    if (!repl->slot[slot]) {
        repl->slot[slot] = calloc(1, size);
        repl->slot_free[slot] = free_fn;
    }
    return repl->slot[slot];
}

void repl_set_slot(struct repl *repl, enum repl_slot slot, void *data, void (*free_fn)(void *data))
{
    if (repl->slot[slot] && repl->slot_free[slot]) {
        repl->slot_free[slot](repl->slot[slot]);
    }
    repl->slot[slot] = data;
    repl->slot_free[slot] = free_fn;
}

void repl_at_stop(struct repl *repl, repl_stop_fn fn, void *ctx)
{
    repl->stop.fn = fn;
    repl->stop.fn_ctx = ctx;
}

/* ---- lists of lines ---- */

int repl_lines_add(struct repl_lines *lines, const char *text)
{
    char **more = gd_grow(lines->line, lines->count, &lines->room, sizeof(*more));

    if (!more) {
        return GD_ENOMEM;
    }
    lines->line = more;
    more[lines->count] = strdup(text);
    if (!more[lines->count]) {
        return GD_ENOMEM;
    }
    lines->count++;
    return GD_OK;
}

void repl_lines_clear(struct repl_lines *lines)
{
    for (size_t i = 0; i < lines->count; i++) {
        free(lines->line[i]);
    }
    free(lines->line);
    *lines = (struct repl_lines){.line = NULL};
}

/* ---- one command ---- */

void repl_set_failed(struct repl *repl, int rc)
{
    repl_add_status(repl, rc == GD_EINTR                       ? STATUS_INTERRUPTED
                          : repl->end.fail_status != STATUS_OK ? repl->end.fail_status
                                                               : STATUS_FAILED);
    repl->end.fail_status = STATUS_OK;
}

void repl_training_failed(struct repl *repl)
{
    if (!repl->end.closing && !repl->job.muted) {
        repl_add_status(repl, STATUS_TRAINING_FAILED);
    }
}

int repl_report_failure(struct repl *repl, const struct command *command, int rc,
                        const struct gd_err *err)
{
    if (err->text[0] != '\0') { /* empty: already reported by a line that the command ran */
        repl_print_error(repl, command, err);
    }
    repl_set_failed(repl, rc);
    return rc;
}

/* Checks what the command's flags require. */
static int check_needs(struct command_call *call, struct gd_err *err)
{
    unsigned flags = call->command->flags;

    call->session = call->debugger->current;
    if ((flags & (CMD_NEEDS_SESSION | CMD_NEEDS_STOP | CMD_NEEDS_LIVE)) == 0) {
        return GD_OK;
    }
    int rc = gd_debugger_need_session(call->debugger, &call->session, err);
    if (rc != GD_OK) {
        return rc;
    }
    const struct gd_session *session = call->session;
    if ((flags & CMD_NEEDS_LIVE) != 0 && !gd_session_is_live(session)) {
        return gd_fail(err, GD_ESTATE, "the training process has ended (%s): %s needs a live one",
                       gd_state_name(session->state), call->command->name);
    }
    bool runs = gd_ranks_is_running(session); /* it may be stopped between two steps of its job */
    if ((flags & CMD_NEEDS_STOP) != 0 && gd_session_is_live(session) &&
        (runs || session->state != GD_STOPPED)) {
        if (runs) {
            return gd_fail(err, GD_ESTATE,
                           "the training is running: stop it with \"interrupt\" before %s",
                           call->command->name);
        }
        return gd_fail(err, GD_ESTATE, "the training process has not stopped yet (%s)",
                       gd_state_name(session->state));
    }
    return GD_OK;
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
    static char *no_words[1] = {NULL};
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
    if (rc == GD_OK) {
        rc = check_needs(&call, &err);
    }
    if (rc == GD_OK) {
        struct gd_session *held = call.session; /* it may end while this runs */
        gd_session_hold(held);
        rc = call.command->run(&call, &err);
        gd_session_release(held);
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

/* ---- one line ---- */

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

static int run_parsed(struct repl *repl, const char *typed, struct parsed_line *line,
                      struct gd_arena *arena, bool repeated)
{
    struct gd_err err = {.code = GD_OK};
    const struct command *command = NULL;
    int rc = expand_alias(repl, arena, line, &err);
    struct user_command *user = repl_user_command(repl, line->name, false);

    if (rc == GD_OK && !user) {
        rc = command_find(NULL, line->name, strlen(line->name), &command, &err);
        if (rc == GD_ENOTFOUND) {
            user = repl_user_command(repl, line->name, true);
            rc = user ? GD_OK : rc;
        }
    }
    if (rc == GD_OK && user) {
        repl_forget_repeat(repl);
        rc = repl_run_user(repl, user, line->rest, &err);
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

int repl_run_lines(struct repl *repl, const struct repl_lines *lines)
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

int repl_execute(struct repl *repl, const char *line)
{
    if (repl->busy.pumping) {
        return GD_ESTATE;
    }
    repl_clear_interrupt(repl);
    int rc = repl_run_line(repl, line, LINE_TYPED);
    repl_follow_up(repl);
    repl_clear_interrupt(repl);
    if (!repl->end.quit) { /* otherwise the processes are detached first */
        repl_out_wait(repl, 0);
    }
    return rc;
}
