// SPDX-License-Identifier: GPL-3.0-or-later
/* Commands: interact */
#include <string.h>

#include "repl/core/repl_impl.h"
#include "repl/values/evaluate.h"
#include "repl/values/inspect.h"
#include "repl/values/value.h"

#define MAX_STATEMENT ((size_t)64 << 10)

extern const struct command cmd_interact;

/* The lines of the statement, the new one last. */
static int join_statement(struct repl *repl, const char *line, struct gd_buf *code,
                          struct gd_err *err)
{
    const struct repl_lines *lines = &repl->script.body.lines;

    for (size_t i = 0; i < lines->count; i++) {
        gd_buf_printf(code, "%s\n", lines->line[i]);
    }
    gd_buf_puts(code, line);
    return code->failed
               ? gd_fail(err, GD_ELIMIT, "the statement has more than %zu KiB", MAX_STATEMENT >> 10)
               : GD_OK;
}

static int run_statement(struct command_call *call, const char *code, bool *more,
                         struct gd_err *err)
{
    struct gd_format format;
    cJSON *reply = NULL;
    int rc = evaluate_need_python(call, "interact", err);

    rc = rc != GD_OK ? rc : value_format(call, "", &format, err);
    rc = rc != GD_OK ? rc : evaluate_run(call, "interact", code, &reply, err);
    *more = rc == GD_OK && strcmp(out_text_of(reply, "kind"), "more") == 0;
    if (rc == GD_OK && !*more) {
        rc = evaluate_show(call, code, reply, &format, err);
    }
    cJSON_Delete(reply);
    return rc;
}

/* A statement with a body ends with an empty line, as at Python's own prompt. */
static int take_line(struct repl *repl, const char *line, struct gd_err *err)
{
    struct repl_lines *lines = &repl->script.body.lines;
    struct gd_buf code = GD_BUF_INIT(MAX_STATEMENT);
    struct own_call own;
    bool more = false;

    if (lines->count == 0 && line[strspn(line, " \t\r\n")] == '\0') {
        return GD_OK;
    }
    int rc = join_statement(repl, line, &code, err);
    if (rc == GD_OK) {
        struct command_call *call =
            repl_begin_call(&own, repl, &cmd_interact, repl->debugger->current);
        rc = run_statement(call, gd_buf_text(&code), &more, err);
        out_report_end(&own.report);
    }
    if (rc == GD_OK && more) {
        rc = repl_lines_add(lines, line) == GD_OK ? GD_OK : gd_fail_nomem(err);
    } else {
        repl_lines_clear(lines);
    }
    gd_buf_deinit(&code);
    const struct gd_session *session = repl->debugger->current;
    if (!session || session->state != GD_STOPPED || !evaluate_is_python(session)) {
        repl_body_drop(repl);
    }
    return rc;
}

static int run_interact(struct command_call *call, struct gd_err *err)
{
    int rc = evaluate_need_python(call, "interact", err);

    rc = rc != GD_OK ? rc : evaluate_may(call, err);
    rc = rc != GD_OK ? rc : repl_body_interact(call->repl, take_line, err);
    if (rc == GD_OK && call->repl->options.interactive) {
        out_printf(call->out, "Python in the stopped program; C-d or exit() returns to gradb.\n");
    }
    return rc;
}

const struct command cmd_interact = {
    .name = "interact",
    .group = "data",
    .usage = "interact",
    .summary = "Open a Python prompt in the selected frame of the stopped program",
    .help = "Each statement runs in the training process, as with `call`. One with a body ends\n"
            "with an empty line; _ is the last value. C-d, `end` or exit() returns to gradb, C-c\n"
            "drops what is typed, or interrupts what runs. Names that you make last until the\n"
            "next step.",
    .args = {ARG_NONE},
    .flags = CMD_NEEDS_SESSION | CMD_CHANGES,
    .run = run_interact,
};
