// SPDX-License-Identifier: GPL-3.0-or-later
#include "repl/request/permit.h"

#include <string.h>

#include "repl/core/command.h"
#include "repl/core/repl_impl.h"

static const char *const shows[] = {
    "advice",
    "annotate",
    "apropos",
    "backtrace",
    "check",
    "check-config",
    "compare",
    "complete",
    "display",
    "down",
    "echo",
    "find",
    "frame",
    "help",
    "first-divergence",
    "first-nonfinite",
    "history",
    "hit",
    "info",
    "inputs",
    "list",
    "next-hit",
    "node",
    "node-info",
    "open",
    "outputs",
    "plot",
    "previous-hit",
    "print",
    "pwd",
    "rank",
    "scope",
    "search",
    "session",
    "show",
    "/",
    "source",
    "sources",
    "stats",
    "tensor",
    "tensors",
    "tensor-graph",
    "undisplay",
    "up",
    "whatis",
    "why",
    "x",
};

/* In a session over files. */
static const char *const moves[] = {
    "break",   "catch",     "condition",    "continue", "delete", "disable",   "edit",
    "enable",  "exclude",   "finish",       "goto",     "ignore", "merge",     "next",
    "recheck", "recommend", "reverse-step", "run-to",   "scan",   "step",      "tbreak",
    "tcatch",  "trace",     "twatch",       "unwatch",  "watch",  "interrupt",
};

static bool is_in(const char *name, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(names[i], name) == 0) {
            return true;
        }
    }
    return false;
}

bool permit_shows(const char *name)
{
    return is_in(name, shows, sizeof(shows) / sizeof(shows[0]));
}

/* Only files are open, and no training process can connect. */
static bool has_only_files(const struct gd_debugger *debugger)
{
    if (debugger->session_count == 0 ||
        (debugger->server && debugger->server->address(debugger->server_ctx))) {
        return false;
    }
    for (size_t i = 0; i < debugger->session_count; i++) {
        const struct gd_target *target = debugger->sessions[i]->target;
        if (!target || (target->capabilities & GD_CAN_GOTO) == 0) {
            return false;
        }
    }
    return true;
}

bool permit_may(const struct repl *repl, const struct command *command)
{
    return permit_shows(command->name) ||
           (is_in(command->name, moves, sizeof(moves) / sizeof(moves[0])) &&
            has_only_files(repl->debugger));
}

int permit_command(const struct repl *repl, const struct command *command, struct gd_err *err)
{
    if (!repl->read_only || permit_may(repl, command)) {
        return GD_OK;
    }
    return gd_fail(
        err, GD_EUNSUPPORTED,
        "%s may change the training or write a file, and this session is read-only: start "
        "it with --allow-run",
        command->name);
}

int permit_write(const struct repl *repl, struct gd_err *err)
{
    return repl->read_only
               ? gd_fail(err, GD_EUNSUPPORTED,
                         "this session is read-only and writes no file: start it with --allow-run")
               : GD_OK;
}
