// SPDX-License-Identifier: GPL-3.0-or-later
/* Commands: listen */
#include <string.h>

#include "repl/commands/running/running.h"
#include "repl/core/repl_impl.h"

static bool has_connected(void *ctx)
{
    return first_stop_session(ctx) != NULL;
}

/* Prints how to connect, at a prompt; the panes show it themselves until a process connects. */
static void tell_how_to_connect(struct command_call *call)
{
    const struct repl *repl = call->repl;
    struct gd_buf text = GD_BUF_INIT(16384);

    if (repl->options.interactive && !out_is_json(call->out) && !repl->front.lend) {
        repl_connect_short(call->debugger, out_width(call->out), &text);
        out_printf(call->out, "%s", gd_buf_text(&text));
    }
    gd_buf_deinit(&text);
}

static void show_addresses(struct command_call *call)
{
    const char *address = listening_address(call);
    const char *socket = listening_socket(call);
    cJSON *record = out_record(call->out, "listen");

    out_set(record, OUT_TEXT("address", address ? address : ""),
            OUT_IF(socket, OUT_TEXT("socket", socket)));
    out_say(call->out, record, "Listening on {address}[{?both} and {socket}]\n",
            OUT_BOOL("both", address && socket && strcmp(address, socket) != 0));
}

static int run_listen(struct command_call *call, struct gd_err *err)
{
    const char *address = call->repl->listen.chosen ? call->repl->listen.address : NULL;
    struct first_stop first = {.debugger = call->debugger, .repl = call->repl};

    if (call->argc == 1) {
        address = call->argv[0];
    }
    int rc = address ? listening_start(call, address, err) : listening_as_usual(call, err);
    if (rc != GD_OK) {
        call->repl->end.fail_status = STATUS_NO_CONNECTION;
        return rc;
    }
    show_addresses(call);
    if (!call->repl->options.batch) {
        tell_how_to_connect(call);
        return GD_OK;
    }
    out_flush(call->out);
    first.above = 0;
    rc = repl_wait(call->repl, has_connected, &first, -1);
    if (rc != GD_OK) {
        return gd_fail(err, rc, "interrupted before a training process connected");
    }
    return first_stop_wait(call, first_stop_session(&first), err);
}

const struct command cmd_listen = {
    .name = "listen",
    .group = "running",
    .usage = "listen [[ADDRESS:]PORT | unix:PATH]",
    .summary = "Wait for training processes that connect by themselves",
    .help =
        "Without an address, listen at a socket of yours, where your training processes look\n"
        "for a debugger, and on 127.0.0.1:50051 for MindSpore 1.1 to 2.3. Processes of other\n"
        "users are refused. Port 0 chooses a free port. Processes on other hosts need a token.\n"
        "In batch mode, wait for the first process.\n"
        "A script that is started by \"python -m gradb train.py\", or that calls gradb.attach(),\n"
        "connects by itself, even in the middle of a run: PyTorch, MindSpore 2.7 and later.",
    .examples = "listen\n"
                "listen 0.0.0.0:50051",
    .args = {ARG_WORD},
    .words = {0, 1, "only one address can be given"},
    .run = run_listen,
};
