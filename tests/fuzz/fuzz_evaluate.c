// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * What a training process answers to `print EXPR`: the first line of the input is the reply, the
 * second is the answer to each request for more bytes of a tensor. What is printed has no control
 * characters, and a failure has its reason.
 */
#include "fuzz.h"

#include <ev.h>

#include "repl/core/repl_impl.h"
#include "repl/values/evaluate.h"
#include "repl/values/value.h"

#define MAX_TENSOR 65536

static const char *more; /* the second line */

static int answer_command(struct gd_target *target, const char *name, const char *args,
                          gd_node_id node, gd_command_fn fn, void *ctx, struct gd_err *err)
{
    fn(ctx, more, NULL);
    return GD_OK;
}

static void destroy_target(struct gd_target *target)
{
}

static const struct gd_target_ops ops = {
    .kind = "fuzz", .command = answer_command, .destroy = destroy_target};

static void on_write(void *ctx, const char *text, size_t len, bool is_error)
{
    for (size_t i = 0; i < len; i++) {
        FUZZ_CHECK((unsigned char)text[i] >= 0x20 || text[i] == '\n');
        FUZZ_CHECK(text[i] != 0x7f);
    }
}

static void show_reply(struct repl *repl, struct gd_session *session, const cJSON *reply)
{
    static const struct command asker = {.name = "print"};
    struct gd_err err = {.text = ""};
    struct gd_tensor *tensor = NULL;
    struct gd_format format;
    struct own_call own;
    struct command_call *call = repl_begin_call(&own, repl, &asker, session);

    FUZZ_CHECK(value_format(call, "", &format, &err) == GD_OK);
    int rc = evaluate_show(call, "x", reply, &format, &err);
    FUZZ_CHECK(rc == GD_OK || (err.code == rc && err.text[0] != '\0'));
    FUZZ_CHECK(evaluate_place(call, reply));
    rc = evaluate_small_tensor(reply, &tensor, &err);
    FUZZ_CHECK(rc == GD_OK ? tensor != NULL : err.text[0] != '\0');
    gd_tensor_unref(tensor);
    out_report_end(&own.report);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct ev_loop *loop;
    static const struct repl_options options = {.batch = true, .sealed = true, .utf8 = true};
    struct gd_target target = {.ops = &ops, .capabilities = GD_CAN_COMMAND};
    struct gd_peer peer = {.framework = "pytorch"};
    struct gd_debugger *debugger = NULL;
    struct gd_session *session = NULL;
    struct repl *repl = NULL;
    char *text = fuzz_text(data, size), *end = strchr(text, '\n');

    more = end ? end + 1 : "{}";
    if (end) {
        *end = '\0';
    }
    loop = loop ? loop : ev_loop_new(EVFLAG_AUTO);
    cJSON *reply = cJSON_Parse(text);
    FUZZ_CHECK(loop && gd_debugger_create(&debugger, NULL) == GD_OK);
    FUZZ_CHECK(repl_create(loop, debugger, &options, &repl, NULL) == GD_OK);
    debugger->settings.max_tensor = MAX_TENSOR;
    repl_set_writer(repl, on_write, NULL);
    FUZZ_CHECK(gd_session_create(debugger, &target, &peer, &session, NULL) == GD_OK);
    struct gd_stop stop = {.reason = GD_STOP_CONNECTED};
    gd_session_on_stopped(session, &stop);
    show_reply(repl, session, reply);
    cJSON_Delete(reply);
    repl_destroy(repl);
    gd_debugger_destroy(debugger);
    free(text);
    return 0;
}
