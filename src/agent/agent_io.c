// SPDX-License-Identifier: MIT
/*
 * The thread that maintains the connection: it connects, waits, reads, writes, and reconnects.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "agent/agent_control.h"
#include "agent/agent_core.h"
#include "agent/agent_io.h"
#include "agent/agent_mark.h"
#include "agent/agent_shm.h"
#include "agent/agent_words.h"

#define PATH            "/gradb.v1.Trainer/Attach"
#define MAX_MESSAGE     ((size_t)16 << 20)
#define BACKOFF_FIRST   0.1
#define BACKOFF_MAX     5.0
#define BACKOFF_HOLDING 1.0  /* a run that waits for a debugger tries more often */
#define CONNECT_SECONDS 10.0 /* for TCP, and again for Welcome */
#define GOODBYE_SECONDS 1.5  /* for the debugger to read the last messages */
#define LOST_BEATS      3.0
#define STEADY_SECONDS  5.0

int agent_io_create(struct agent *a)
{
    a->io = calloc(1, sizeof(*a->io));
    if (!a->io) {
        return GD_ENOMEM;
    }
    a->io->agent = a;
    a->io->requests_end = &a->io->requests;
    return GD_OK;
}

static void drop_connection(struct agent_io *io)
{
    struct agent *a = io->agent;
    agent_wire_drop_requests(io);
    gd_grpc_client_destroy(io->client);
    io->client = NULL;
    io->call = NULL;
    io->closed = io->connecting = io->leaving = io->shm_ok = false;
    int fd = atomic_exchange(&a->socket, -1);
    if (fd >= 0) {
        close(fd);
    }
    agent_shm_destroy(io->shm);
    io->shm = NULL;
}

void agent_io_destroy(struct agent *a)
{
    drop_connection(a->io);
    free(a->io);
    a->io = NULL;
}

/* ---- losing and finding a debugger --------------------------------------------------- */

/* Reconnects soon after a connection that lasted; backs off from one that ends as soon as it is
 * made. */
static void schedule_retry(struct agent_io *io, bool holding)
{
    double most = holding ? BACKOFF_HOLDING : BACKOFF_MAX;
    io->backoff = io->backoff > 0 ? io->backoff * 2 : BACKOFF_FIRST;
    io->backoff = io->backoff < most ? io->backoff : most;
    io->next_try = agent_now() + io->backoff;
    io->address_index = 0;
}

static void lose_connection(struct agent_io *io, const char *why)
{
    struct agent *a = io->agent;
    drop_connection(io);
    pthread_mutex_lock(&a->lock);
    bool was_up = a->link == LINK_UP;
    if (was_up) {
        io->backoff = agent_now() - io->since > STEADY_SECONDS ? 0 : io->backoff;
        agent_disarm(a);
        if (!a->hold) {
            a->stopped = false;
        } else if (!a->stopped) {
            a->hold_pending = true;
        }
    }
    atomic_store(&a->connected, 0);
    agent_words_drop(a);
    a->link = LINK_DOWN;
    a->attempts++;
    agent_set_error(a, "%s: %s", a->address, why);
    agent_arm(a);
    bool holding = a->stopped || a->hold_pending;
    pthread_cond_broadcast(&a->go);
    pthread_mutex_unlock(&a->lock);
    schedule_retry(io, holding);
}

static void set_link(struct agent *a, enum agent_link link)
{
    pthread_mutex_lock(&a->lock);
    a->link = link;
    pthread_mutex_unlock(&a->lock);
}

/* An invalid address, or a socket that another user could have created: waiting does not help. */
static void tell_bad_place(struct agent *a, int code, const struct gd_err *err)
{
    const char *path = gd_unix_path(a->address);

    if (code == GD_EINVAL || (path && gd_own_socket_check(path, NULL) == GD_EIO)) {
        agent_refused(a, err->text);
    }
}

/* Tries the name's addresses in turn; backs off when all have failed. */
static void try_connect(struct agent_io *io)
{
    struct agent *a = io->agent;
    struct gd_err err = {0};
    int fd = -1;
    int rc = gd_grpc_connect(a->address, io->address_index, &fd, &err);
    if (rc != GD_OK) {
        tell_bad_place(a, rc, &err);
        lose_connection(io, io->address_index && io->close_text[0] ? io->close_text : err.text);
        return;
    }
    io->address_index++;
    atomic_store(&a->socket, fd);
    io->connecting = true;
    io->since = agent_now();
    set_link(a, LINK_CONNECTING);
}

static void next_address(struct agent_io *io, const char *why)
{
    snprintf(io->close_text, sizeof(io->close_text), "%.180s", why);
    drop_connection(io);
    io->next_try = 0;
    try_connect(io);
}

static void refuse_user(struct agent *a, long uid, char *why, size_t size)
{
    snprintf(why, size, "the process that listens there belongs to another user (uid %ld)", uid);
    agent_refused(a, why);
}

/* Another user's debugger closes the connection without a message. */
static void tell_stranger(struct agent_io *io)
{
    char why[200];
    if (!io->met && io->listener >= 0 && io->listener != (long)geteuid()) {
        refuse_user(io->agent, io->listener, why, sizeof(why));
    }
}

/* The listener may be anybody: a process of another user receives nothing. Over TCP we wait for its
 * first bytes: until it has accepted the connection, nobody owns the other end. */
static void check_owner(struct agent_io *io)
{
    struct agent *a = io->agent;
    char why[200];

    io->met = true;
    io->owner = gd_owner_of_peer(atomic_load(&a->socket));
    if (io->owner.kind == GD_OWNER_OTHER && a->token[0] == '\0') {
        refuse_user(a, io->owner.uid, why, sizeof(why));
        lose_connection(io, why);
    } else if (io->owner.kind == GD_OWNER_REMOTE && a->token[0] == '\0') {
        snprintf(why, sizeof(why),
                 "a debugger on another host must prove a token: set GRADB_TOKEN to the output of "
                 "`show token` there");
        agent_refused(a, why);
        lose_connection(io, why);
    } else if (agent_wire_greet(io) != GD_OK) {
        lose_connection(io, "out of memory or random bytes");
    }
}

static void socket_connected(struct agent_io *io)
{
    struct agent *a = io->agent;
    struct gd_err err = {0};
    io->connecting = false;
    if (gd_grpc_connect_finish(atomic_load(&a->socket), &err) != GD_OK) {
        next_address(io, err.text);
        return;
    }
    bool local = gd_unix_path(a->address) != NULL;
    io->since = io->last_heard = agent_now();
    io->goodbye_at = 0;
    io->met = false;
    io->listener = gd_uid_of_listener(atomic_load(&a->socket));
    io->refusal[0] = '\0';
    if (gd_grpc_client_create(local ? "localhost" : a->address, MAX_MESSAGE, &io->client, &err) !=
            GD_OK ||
        gd_grpc_client_start(io->client, PATH, NULL, 0, &agent_wire_ops, io, &io->call, &err) !=
            GD_OK) {
        lose_connection(io, err.text);
        return;
    }
    set_link(a, LINK_HELLO);
    if (local) {
        check_owner(io);
    }
}

/* ---- the loop ------------------------------------------------------------------------ */

/* Handles timeouts. */
static void check_time(struct agent_io *io, enum agent_link link)
{
    double now = agent_now();
    if (!io->client && !io->connecting) {
        return;
    }
    if (io->connecting && now - io->since > CONNECT_SECONDS) {
        next_address(io, "the connection attempt timed out");
    } else if (link == LINK_HELLO && now - io->since > CONNECT_SECONDS) {
        lose_connection(io, "the process that listens there does not answer as a debugger");
    } else if (link == LINK_UP && io->keepalive > 0 &&
               now - io->last_heard > LOST_BEATS * io->keepalive) {
        lose_connection(io, "the debugger stopped responding");
    } else if (io->goodbye_at > 0 && io->client && now - io->goodbye_at > GOODBYE_SECONDS) {
        lose_connection(io, "detached");
    }
}

static double least_of(double a, double b)
{
    return a < b ? a : b;
}

/* Seconds until the next timeout, at least a millisecond. */
static double seconds_to_wait(const struct agent_io *io, enum agent_link link, bool quiet)
{
    double now = agent_now();
    double until = now + 60;
    if (!io->client && !io->connecting) {
        until = io->next_try;
    } else if (io->goodbye_at > 0) {
        until = io->goodbye_at + GOODBYE_SECONDS;
    } else if (link != LINK_UP) {
        until = io->since + CONNECT_SECONDS;
    } else {
        until = quiet ? until : now + 0.1; /* scalars are polled, not announced */
        if (io->keepalive > 0) {
            until = least_of(until, io->last_beat + io->keepalive);
            until = least_of(until, io->last_heard + LOST_BEATS * io->keepalive);
        }
    }
    return until - now > 0.001 ? until - now : 0.001;
}

static void wait_for_something(struct agent_io *io, double seconds)
{
    struct agent *a = io->agent;
    struct pollfd fds[2] = {{.fd = a->wake[0], .events = POLLIN}};
    fds[1].fd = atomic_load(&a->socket);
    fds[1].events = POLLIN;
    if (io->connecting) {
        fds[1].events = POLLOUT;
    } else if (io->client && gd_grpc_client_wants_write(io->client)) {
        fds[1].events = POLLIN | POLLOUT;
    }
    if (poll(fds, fds[1].fd >= 0 ? 2 : 1, (int)(seconds * 1000)) < 0) {
        return;
    }
    if (fds[0].revents) {
        char bytes[64];
        while (read(a->wake[0], bytes, sizeof(bytes)) == (ssize_t)sizeof(bytes)) {
        }
    }
    if (fds[1].fd < 0 || !fds[1].revents) {
        return;
    }
    if (io->connecting) {
        socket_connected(io);
        return;
    }
    struct gd_err err = {0};
    if (gd_grpc_client_read(io->client, fds[1].fd, &err) != GD_OK) {
        tell_stranger(io);
        lose_connection(io, io->closed && io->close_text[0] ? io->close_text : err.text);
    } else if (!io->met) {
        check_owner(io);
    }
}

/* Sends queued messages. Returns whether more can be sent immediately. */
static bool send_queued(struct agent_io *io)
{
    struct gd_err err = {0};
    bool more = false;
    if (io->closed) {
        char why[sizeof(io->close_text)];
        memcpy(why, io->close_text, sizeof(why));
        lose_connection(io, why);
        return false;
    }
    if (agent_wire_pump(io, &more) != GD_OK) {
        lose_connection(io,
                        io->close_text[0] && io->closed ? io->close_text : "the connection failed");
        return false;
    }
    if (gd_grpc_client_write(io->client, atomic_load(&io->agent->socket), &err) != GD_OK) {
        lose_connection(io, err.text);
        return false;
    }
    return io->closed || (more && io->call && gd_grpc_client_queued(io->call) < AGENT_QUEUE);
}

/* When the program closes: immediately without a debugger, otherwise after the last messages. */
static bool is_over(struct agent_io *io, enum agent_link link)
{
    if (link == LINK_UP) {
        return io->goodbye_at > 0 && (io->closed || !io->client);
    }
    return link != LINK_UP && !(io->goodbye_at > 0 && io->client);
}

static void run_turn(struct agent_io *io, enum agent_link link, bool quiet)
{
    if (!io->client && !io->connecting && agent_now() >= io->next_try) {
        try_connect(io);
    }
    bool more = io->client && send_queued(io);
    check_time(io, link);
    wait_for_something(io, more ? 0 : seconds_to_wait(io, link, quiet));
}

bool agent_io_main(struct agent *a)
{
    pthread_setname_np(pthread_self(), "gradb");
    pthread_mutex_lock(&a->lock);
    while (!(a->closing && is_over(a->io, a->link))) {
        enum agent_link link = a->link;
        /* A command may log while the training is stopped. */
        bool quiet = a->stopped && !a->scalar_count && !a->times_count && !a->log_count;
        pthread_mutex_unlock(&a->lock);
        run_turn(a->io, link, quiet);
        pthread_mutex_lock(&a->lock);
    }
    pthread_mutex_unlock(&a->lock);
    drop_connection(a->io);
    pthread_mutex_lock(&a->lock);
    a->thread_done = true;
    bool orphan = a->orphan;
    pthread_cond_broadcast(&a->go);
    pthread_mutex_unlock(&a->lock);
    return orphan;
}
