// SPDX-License-Identifier: GPL-3.0-or-later
/* Asking the training process to evaluate: whether it may, in which frame, and the wait. */
#include "repl/values/evaluate.h"

#include <stdlib.h>
#include <string.h>

#include "repl/core/await.h"
#include "repl/core/interrupt.h"
#include "repl/core/repl_impl.h"
#include "repl/values/evaluate_impl.h"
#include "repl/values/inspect.h"
#include "repl/values/stacks.h"

#define COMMAND  EVALUATE_COMMAND
#define PATIENCE 2.0 /* seconds until gradb says that Ctrl-C has no effect yet */

bool evaluate_is_python(const struct gd_session *session)
{
    return session && session->target && gd_session_is_live(session) &&
           (session->target->capabilities & GD_CAN_COMMAND) &&
           (strcmp(session->peer.framework, "pytorch") == 0 ||
            strcmp(session->peer.framework, "mindspore") == 0);
}

int evaluate_need_python(struct command_call *call, const char *what, struct gd_err *err)
{
    int rc = repl_need_session(call, err);

    rc = rc != GD_OK ? rc : repl_check_needs(call, what, CMD_NEEDS_STOP | CMD_NEEDS_LIVE, err);
    if (rc == GD_OK && !evaluate_is_python(call->session)) {
        return gd_fail(err, GD_EUNSUPPORTED,
                       "%s needs a Python program with gradb's agent (PyTorch, MindSpore)", what);
    }
    return rc;
}

/* ---- may it ---------------------------------------------------------------------------------- */

/* Others than this user's processes can reach gradb. */
static bool is_reachable(const struct gd_debugger *debugger)
{
    const char *address = debugger->server ? debugger->server->address(debugger->server_ctx) : NULL;

    return address && !repl_is_local_address(address);
}

bool evaluate_is_off(const struct gd_debugger *debugger)
{
    return debugger->settings.evaluate_code == GD_CODE_OFF || is_reachable(debugger);
}

/* Whatever the user says: GD_OK, or why it is never done. */
static int check_always(struct command_call *call, struct gd_err *err)
{
    int rc = repl_check_seal(call->repl, err);

    if (rc == GD_OK && call->repl->read_only) {
        rc = gd_fail(err, GD_EUNSUPPORTED,
                     "Python code is not evaluated in a read-only session: start it with "
                     "--allow-run");
    }
    if (rc != GD_OK) {
        return rc;
    }
    if (call->debugger->settings.evaluate_code == GD_CODE_OFF) {
        return gd_fail(err, GD_EUNSUPPORTED,
                       "Python code is not evaluated: `set evaluate-code` is off");
    }
    if (call->session->peer.remote) {
        return gd_fail(err, GD_EUNSUPPORTED,
                       "Python code is not evaluated in a training process of another host or "
                       "user: attach gradb there");
    }
    if (is_reachable(call->debugger)) {
        return gd_fail(err, GD_EUNSUPPORTED,
                       "Python code is not evaluated while other hosts can reach gradb: listen on "
                       "127.0.0.1 or a Unix socket");
    }
    return GD_OK;
}

/* The answer to the question, false at first. NULL: out of memory. */
static bool *answer_of(struct repl *repl)
{
    return repl_make_slot(repl, REPL_SLOT_EVALUATE, sizeof(bool), free);
}

int evaluate_may_now(struct command_call *call, struct gd_err *err)
{
    const bool *allowed = answer_of(call->repl);
    int rc = check_always(call, err);

    if (rc != GD_OK || call->debugger->settings.evaluate_code == GD_CODE_ON ||
        (allowed && *allowed)) {
        return rc;
    }
    return gd_fail(err, GD_EUNSUPPORTED,
                   "Python code is not evaluated here: allow it with `set evaluate-code on`");
}

static bool can_ask(const struct repl *repl)
{
    return !repl->options.batch && !repl->options.json && repl->options.interactive &&
           repl->front.ask;
}

int evaluate_may(struct command_call *call, struct gd_err *err)
{
    struct repl *repl = call->repl;
    bool *allowed = answer_of(repl);
    int rc = check_always(call, err);

    if (rc != GD_OK || !allowed || !can_ask(repl) || evaluate_may_now(call, err) == GD_OK) {
        return rc != GD_OK ? rc : evaluate_may_now(call, err);
    }
    out_flush(call->out);
    repl->front.ask_consent = true;
    *allowed = repl->front.ask(repl->front.ask_ctx,
                               "Run the Python code that you type in the training process?");
    repl->front.ask_consent = false;
    return *allowed ? GD_OK
                    : gd_fail(err, GD_EUNSUPPORTED,
                              "nothing was evaluated (see `help set evaluate-code`)");
}

/* ---- the frame ------------------------------------------------------------------------------- */

cJSON *evaluate_frame(struct command_call *call)
{
    uint32_t number;
    struct stack_places places;
    gd_node_id node;

    if (inspect_live_frame(call, &number)) {
        cJSON *frame = cJSON_CreateObject();
        cJSON_AddNumberToObject(frame, "number", number);
        return frame;
    }
    if (!inspect_chosen_frame(call, &node, &number) ||
        stack_places(call, node, &places, NULL) != GD_OK || number >= places.count) {
        return NULL;
    }
    const struct gd_frame *at = &places.frame[places.place[number]];
    int nth = 0;
    for (uint32_t i = 0; i < number; i++) {
        const struct gd_frame *inner = &places.frame[places.place[i]];
        nth += strcmp(inner->file, at->file) == 0 && strcmp(inner->function, at->function) == 0 &&
               inner->line == at->line;
    }
    cJSON *frame = cJSON_CreateObject();
    cJSON_AddStringToObject(frame, "file", at->file);
    cJSON_AddNumberToObject(frame, "line", at->line);
    cJSON_AddStringToObject(frame, "function", at->function);
    cJSON_AddNumberToObject(frame, "nth", nth);
    return frame;
}

const char *evaluate_place(struct command_call *call, const cJSON *reply)
{
    const cJSON *frame = cJSON_GetObjectItem(reply, "frame");
    const char *file = out_text_of(frame, "file");
    const char *base = strrchr(file, '/');
    double line = out_number_of(frame, "line");

    return frame ? inspect_printf(call, "in %s (%s:%d)", out_text_of(frame, "function"),
                                  base ? base + 1 : file, line > 0 && line < 1e9 ? (int)line : 0)
                 : "";
}

/* ---- the wait -------------------------------------------------------------------------------- */

struct answer {
    struct await await;
    struct gd_err err; /* code GD_OK: text is set */
    char *text;
};

static void on_reply(void *ctx, const char *text, const struct gd_err *err)
{
    struct answer *answer = ctx;

    if (!await_take(answer)) {
        return;
    }
    answer->text = err ? NULL : strdup(text);
    if (err) {
        answer->err = *err;
    } else if (!answer->text) {
        gd_fail_nomem(&answer->err);
    }
}

static bool has_arrived(void *ctx)
{
    return ((const struct answer *)ctx)->await.arrived;
}

/* Ctrl-C interrupts the code. Code that does not heed it continues; a second Ctrl-C leaves it. */
static int wait_for(struct command_call *call, struct answer *answer, struct gd_err *err)
{
    int number = call->session->number;
    double patience = -1;
    bool asked = false;

    for (;;) {
        int rc = repl_wait(call->repl, has_arrived, answer, patience);
        if (rc == GD_OK) {
            return GD_OK;
        }
        if (rc == GD_ETIMEOUT) {
            repl_printf(call->repl, true,
                        "The code does not react yet: Python waits for a function in C to "
                        "return.\nAnother Ctrl-C gives the prompt back.\n");
            patience = -1;
            continue;
        }
        const struct gd_session *session = gd_debugger_session(call->debugger, number);
        bool stays = session && session->target && !asked && call->repl->end.quit == QUIT_NO &&
                     !call->repl->front.left;
        if (!stays || gd_target_interrupt_command(session->target, NULL) != GD_OK) {
            await_leave(answer);
            return gd_fail(err, GD_EINTR,
                           asked ? "the code still runs: the training process answers no other "
                                   "command until it returns"
                                 : "interrupted while waiting for the training process");
        }
        asked = true;
        patience = PATIENCE;
    }
}

int evaluate_send(struct command_call *call, const char *name, const char *args, cJSON **ret,
                  struct gd_err *err)
{
    struct answer *answer = calloc(1, sizeof(*answer));

    if (!answer) {
        return gd_fail_nomem(err);
    }
    int rc =
        gd_target_command(call->session->target, name, args, GD_NO_NODE, on_reply, answer, err);
    if (rc != GD_OK) {
        free(answer);
        return rc;
    }
    out_flush(call->out);
    rc = wait_for(call, answer, err);
    if (rc != GD_OK) {
        return rc;
    }
    if (!answer->text) {
        rc = answer->err.code != GD_OK ? answer->err.code : GD_EIO;
        gd_fail(err, rc, "%s", answer->err.text);
    } else {
        *ret = cJSON_Parse(answer->text);
        rc = *ret ? GD_OK
                  : gd_fail(err, GD_EPROTO, "the training process sent an answer that is not JSON");
    }
    free(answer->text);
    free(answer);
    return rc;
}

char *evaluate_request(struct command_call *call, const char *mode, const char *code)
{
    cJSON *request = cJSON_CreateObject();
    cJSON *frame = evaluate_frame(call);

    cJSON_AddStringToObject(request, "mode", mode);
    cJSON_AddStringToObject(request, "code", code);
    if (frame) {
        cJSON_AddItemToObject(request, "frame", frame);
    }
    char *text = cJSON_PrintUnformatted(request);
    cJSON_Delete(request);
    return text;
}

int evaluate_run(struct command_call *call, const char *mode, const char *code, cJSON **ret,
                 struct gd_err *err)
{
    char *text = evaluate_request(call, mode, code);
    int rc = text ? evaluate_send(call, COMMAND, text, ret, err) : gd_fail_nomem(err);

    cJSON_free(text);
    return rc;
}
