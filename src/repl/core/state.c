// SPDX-License-Identifier: GPL-3.0-or-later
/* Plain access to the state of the REPL, for its front end and its commands. */
#include <ev.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "repl/core/repl_impl.h"

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

void repl_set_read_only(struct repl *repl, bool read_only)
{
    repl->read_only = read_only;
}

void repl_set_recorder(struct repl *repl, repl_record_fn fn, void *ctx)
{
    repl->front.record = fn;
    repl->front.record_ctx = ctx;
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
    const struct repl_body *body = &repl->script.body;

    if (body->kind == BODY_INTERACT) {
        return body->lines.count > 0 ? "... " : ">>> ";
    }
    return body->kind != BODY_NONE ? ">" : "(gradb) ";
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

int repl_need_session(struct command_call *call, struct gd_err *err)
{
    if (call->session) {
        return GD_OK;
    }
    return gd_debugger_need_session(call->debugger, &call->session, err);
}

double repl_now(struct repl *repl)
{
    return repl->debugger->now(repl->debugger->now_ctx);
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
