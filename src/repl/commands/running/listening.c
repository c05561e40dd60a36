// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The addresses that gradb listens on: a socket of this user's, a TCP port, or what the user
 * named.
 */
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/owner.h"
#include "repl/commands/running/running.h"
#include "repl/core/repl_impl.h"

void repl_set_listen(struct repl *repl, const char *address)
{
    snprintf(repl->listen.address, sizeof(repl->listen.address), "%s", address);
    repl->listen.chosen = true;
}

#define DEFAULT_TCP "127.0.0.1:50051" /* MindSpore's default */

/* "127.0.0.1:50051", "localhost:1", "[::1]:1", ":1", "50051", "unix:/run/user/1000/x" */
bool repl_is_local_address(const char *address)
{
    const char *colon = strrchr(address, ':');
    size_t len = colon ? (size_t)(colon - address) : 0;

    return gd_unix_path(address) || len == 0 || strncmp(address, "127.", 4) == 0 ||
           (len == 9 && strncasecmp(address, "localhost", 9) == 0) ||
           (len == 5 && strncmp(address, "[::1]", 5) == 0) ||
           (len == 3 && strncmp(address, "::1", 3) == 0);
}

/* Other hosts can connect: they need a secret. */
static int make_token(struct command_call *call, struct gd_err *err)
{
    char *token = call->debugger->settings.token;
    unsigned char random[16];

    if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random)) {
        return gd_fail_errno(err, GD_EIO, "cannot create a random token");
    }
    for (size_t i = 0; i < sizeof(random); i++) {
        snprintf(token + 2 * i, 3, "%02x", random[i]);
    }
    repl_printf(call->repl, false,
                "Training processes need this token: GRADB_TOKEN=%s (\"set token\" changes it)\n",
                token);
    return GD_OK;
}

int listening_start(struct command_call *call, const char *address, struct gd_err *err)
{
    struct gd_debugger *debugger = call->debugger;

    if (!debugger->server) {
        return gd_fail(err, GD_EUNSUPPORTED,
                       "this gradb was built without a server: it cannot listen");
    }
    int rc = debugger->server->listen(debugger->server_ctx, address, err);
    if (rc == GD_OK && !repl_is_local_address(address) && debugger->settings.token[0] == '\0') {
        rc = make_token(call, err);
    }
    return rc;
}

const char *listening_address(struct command_call *call)
{
    struct gd_debugger *debugger = call->debugger;
    return debugger->server ? debugger->server->address(debugger->server_ctx) : NULL;
}

const char *listening_socket(struct command_call *call)
{
    struct gd_debugger *debugger = call->debugger;
    return debugger->server ? debugger->server->socket(debugger->server_ctx) : NULL;
}

static void warn_of(struct command_call *call, const char *text, const char *hint)
{
    repl_printf(call->repl, false, "warning: %s%s\n", text, hint);
}

/* Listens at a socket in the user's own directory. If another user owns that directory in /tmp, TCP
 * remains, where users are checked as well. */
static int listen_at_home(struct command_call *call, const char *name, struct gd_err *err)
{
    char address[GD_SOCKET_PATH + sizeof(GD_UNIX_PREFIX)];
    char directory[GD_SOCKET_PATH - 30];
    int rc = gd_own_directory(directory, sizeof(directory), err);

    if (rc == GD_OK) {
        snprintf(address, sizeof(address), GD_UNIX_PREFIX "%s/%.28s", directory, name);
        rc = listening_start(call, address, err);
    }
    return rc;
}

int listening_as_usual(struct command_call *call, struct gd_err *err)
{
    struct gd_err tcp_err = {.code = GD_OK};
    int rc = listen_at_home(call, GD_MEETING_POINT, err);

    if (rc == GD_ESTATE) {
        return rc; /* another gradb listens there */
    }
    int tcp = listening_start(call, DEFAULT_TCP, &tcp_err);
    if (rc != GD_OK && tcp == GD_OK) {
        warn_of(call, err->text, "; training processes find gradb with GRADB_ADDRESS=" DEFAULT_TCP);
    } else if (rc == GD_OK && tcp != GD_OK) {
        warn_of(call, tcp_err.text, "; MindSpore processes cannot connect");
    } else if (rc != GD_OK) {
        warn_of(call, err->text, "");
        *err = tcp_err;
        return tcp;
    }
    return GD_OK;
}

/* A program started by `run` connects to a socket of this gradb; MindSpore to a free port. */
static int listen_for_run(struct command_call *call, struct gd_err *err)
{
    char name[32];
    unsigned short random = 0;

    if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random)) {
        return gd_fail_errno(err, GD_EIO, "cannot get random bytes");
    }
    snprintf(name, sizeof(name), GD_RUN_PREFIX "%ld-%04x", (long)getpid(), random);
    int rc = listen_at_home(call, name, err);
    if (rc != GD_OK) {
        warn_of(call, err->text, "; listening on a TCP port of this host instead");
    }
    return listening_start(call, "127.0.0.1:0", err);
}

int listening_ensure(struct command_call *call, struct gd_err *err)
{
    if (listening_address(call)) {
        return GD_OK;
    }
    return call->repl->listen.chosen ? listening_start(call, call->repl->listen.address, err)
                                     : listen_for_run(call, err);
}
