// SPDX-License-Identifier: GPL-3.0-or-later
/* The debugger side of the wire benchmarks: the real server in its own process. */
#include <errno.h>
#include <ev.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"
#include "bench_trainer.h"
#include "engine/debugger.h"
#include "proto/server.h"

struct side {
    struct ev_loop *loop;
    struct gd_debugger *debugger;
    bool fetch;
    struct bench_memory_use use;
};

static void fail_with(const struct gd_err *err)
{
    errno = 0;
    bench_fail("debugger: %s", err->text);
}

static void resume_step(struct gd_session *session)
{
    const struct gd_run run = {.kind = GD_RUN_STEP, .count = 1, .node = GD_NO_NODE};
    struct gd_err err;

    if (gd_target_resume(session->target, &run, &err) != GD_OK) {
        fail_with(&err);
    }
}

static void on_tensor(void *ctx, struct gd_tensor *tensor, int64_t at, const struct gd_err *err)
{
    struct side *side = ctx;

    (void)at;
    if (!tensor) {
        fail_with(err);
    }
    side->use.fetched++;
    resume_step(side->debugger->current);
}

static void fetch_value(struct side *side, struct gd_session *session)
{
    struct gd_tensor_ref ref = {.slot = 0, .iter = GD_CURRENT};
    struct gd_err err;

    if (side->use.idle == 0) {
        bench_reset_peak();
        side->use.idle = bench_memory("VmRSS");
    }
    ref.node = gd_graph_lookup_wire(session->graph, BENCH_NODE, strlen(BENCH_NODE));
    if (ref.node == GD_NO_NODE) {
        bench_fail("the graph does not contain " BENCH_NODE);
    }
    if (gd_session_fetch(session, &ref, NULL, on_tensor, side, &err) != GD_OK) {
        fail_with(&err);
    }
}

static void on_event(void *ctx, const struct gd_event *event)
{
    struct side *side = ctx;

    if (event->type == GD_EV_STOPPED && side->fetch) {
        fetch_value(side, event->session);
    } else if (event->type == GD_EV_STOPPED) {
        resume_step(event->session);
    } else if (event->type == GD_EV_LOST || event->type == GD_EV_FINISHED) {
        ev_break(side->loop, EVBREAK_ALL);
    }
}

static void put_all(int fd, const void *data, size_t len)
{
    if (write(fd, data, len) != (ssize_t)len) {
        bench_fail("the debugger cannot write its report");
    }
}

static void run_server(int report, bool fetch)
{
    struct side side = {.loop = ev_default_loop(0), .fetch = fetch};
    struct gd_server *server = NULL;
    struct gd_err err;
    char address[sizeof((struct bench_debugger){0}.address)] = "";

    if (gd_debugger_create(&side.debugger, &err) != GD_OK ||
        gd_server_create(side.loop, side.debugger, &server, &err) != GD_OK ||
        gd_debugger_observe(side.debugger, on_event, &side) != GD_OK) {
        fail_with(&err);
    }
    const struct gd_server_ops *wire = side.debugger->server;
    if (wire->listen(side.debugger->server_ctx, "127.0.0.1:0", &err) != GD_OK) {
        fail_with(&err);
    }
    snprintf(address, sizeof(address), "%s", wire->address(side.debugger->server_ctx));
    put_all(report, address, sizeof(address));
    ev_run(side.loop, 0);
    side.use.peak = bench_memory("VmHWM");
    put_all(report, &side.use, sizeof(side.use));
    gd_server_destroy(server);
    gd_debugger_destroy(side.debugger);
    ev_loop_destroy(side.loop);
}

static void get_all(int fd, void *data, size_t len)
{
    for (size_t got = 0; got < len;) {
        ssize_t n = read(fd, (char *)data + got, len - got);
        if (n == 0 || (n < 0 && errno != EINTR)) {
            bench_fail("the debugger ended too early");
        }
        got += n > 0 ? (size_t)n : 0;
    }
}

void bench_debugger_start(struct bench_debugger *debugger, bool fetch)
{
    int ends[2];

    fflush(stdout);
    if (pipe(ends) != 0) {
        bench_fail("pipe");
    }
    debugger->pid = fork();
    if (debugger->pid < 0) {
        bench_fail("fork");
    }
    if (debugger->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(ends[0]);
        run_server(ends[1], fetch);
        exit(0);
    }
    close(ends[1]);
    debugger->report = ends[0];
    get_all(debugger->report, debugger->address, sizeof(debugger->address));
}

struct bench_memory_use bench_debugger_end(struct bench_debugger *debugger)
{
    struct bench_memory_use use;
    int status;

    get_all(debugger->report, &use, sizeof(use));
    close(debugger->report);
    if (waitpid(debugger->pid, &status, 0) != debugger->pid || status != 0) {
        bench_fail("the debugger failed");
    }
    return use;
}
