// SPDX-License-Identifier: MIT
/*
 * The thread that keeps the connection: connects, waits, reads, writes, and connects again.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "agent/agent_io.h"

#define PATH            "/gradb.v1.Trainer/Attach"
#define MAX_MESSAGE     ((size_t)16 << 20)
#define BACKOFF_FIRST   0.1
#define BACKOFF_MAX     5.0
#define BACKOFF_HOLDING 1.0  /* a trainer that waits for a debugger looks more often */
#define CONNECT_SECONDS 10.0 /* for TCP, and again for the Welcome */
#define GOODBYE_SECONDS 1.5  /* for the debugger to take the last words */
#define LOST_BEATS      3.0
#define STEADY_SECONDS  5.0

double agent_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

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

/* A connection that lasted is found again quickly; one that ends as soon as it is made is not
 * tried again and again. */
static void schedule(struct agent_io *io, bool holding)
{
    double most = holding ? BACKOFF_HOLDING : BACKOFF_MAX;
    io->backoff = io->backoff > 0 ? io->backoff * 2 : BACKOFF_FIRST;
    io->backoff = io->backoff < most ? io->backoff : most;
    io->next_try = agent_now() + io->backoff;
    io->address_index = 0;
}

/* With the lock: words for the debugger that is gone. */
static void drop_words(struct agent *a)
{
    while (a->reports) {
        struct agent_packet *next = a->reports->next;
        free(a->reports);
        a->reports = next;
    }
    a->reports_end = &a->reports;
    a->reports_bytes = 0;
    for (size_t i = 0; i < a->log_count; i++) {
        free(a->log[i]);
    }
    a->log_count = a->scalar_count = a->times_count = 0;
    a->log_dropped = 0;
}

static void lost(struct agent_io *io, const char *why)
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
    drop_words(a);
    a->link = LINK_DOWN;
    a->attempts++;
    agent_set_error(a, "%s: %s", a->address, why);
    agent_arm(a);
    bool holding = a->stopped || a->hold_pending;
    pthread_cond_broadcast(&a->go);
    pthread_mutex_unlock(&a->lock);
    schedule(io, holding);
}

static void set_link(struct agent *a, enum agent_link link)
{
    pthread_mutex_lock(&a->lock);
    a->link = link;
    pthread_mutex_unlock(&a->lock);
}

/* An address that is none, or a socket that another user could have made: waiting changes nothing.
 */
static void tell_bad_place(struct agent *a, int code, const struct gd_err *err)
{
    const char *path = gd_unix_path(a->address);

    if (code == GD_EINVAL || (path && gd_own_socket_check(path, NULL) == GD_EIO)) {
        agent_refused(a, err->text);
    }
}

/* One address of the name after the other; the backoff starts when all have failed. */
static void try_connect(struct agent_io *io)
{
    struct agent *a = io->agent;
    struct gd_err err = {0};
    int fd = -1;
    int rc = gd_grpc_connect(a->address, io->address_index, &fd, &err);
    if (rc != GD_OK) {
        tell_bad_place(a, rc, &err);
        lost(io, io->address_index && io->close_text[0] ? io->close_text : err.text);
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

/* Another user's debugger closes the connection before it says a word. */
static void tell_stranger(struct agent_io *io)
{
    char why[200];
    if (!io->met && io->listener >= 0 && io->listener != (long)geteuid()) {
        refuse_user(io->agent, io->listener, why, sizeof(why));
    }
}

/* Who listens there may be anybody: nothing is said to a process of another user. Over TCP its
 * first bytes are waited for: before it has accepted, nobody owns its end. */
static void meet(struct agent_io *io)
{
    struct agent *a = io->agent;
    char why[200];

    io->met = true;
    io->owner = gd_owner_of_peer(atomic_load(&a->socket));
    if (io->owner.kind == GD_OWNER_OTHER && a->token[0] == '\0') {
        refuse_user(a, io->owner.uid, why, sizeof(why));
        lost(io, why);
    } else if (io->owner.kind == GD_OWNER_REMOTE && a->token[0] == '\0') {
        snprintf(why, sizeof(why),
                 "a debugger on another host must prove a token: set "
                 "GRADB_TOKEN to what `show token` says there");
        agent_refused(a, why);
        lost(io, why);
    } else if (agent_wire_greet(io) != GD_OK) {
        lost(io, "out of memory or of random bytes");
    }
}

static void connected(struct agent_io *io)
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
        lost(io, err.text);
        return;
    }
    set_link(a, LINK_HELLO);
    if (local) {
        meet(io);
    }
}

/* ---- the loop ------------------------------------------------------------------------ */

/* Something that a clock decides. */
static void check_time(struct agent_io *io, enum agent_link link)
{
    double now = agent_now();
    if (!io->client && !io->connecting) {
        return;
    }
    if (io->connecting && now - io->since > CONNECT_SECONDS) {
        next_address(io, "the connection attempt timed out");
    } else if (link == LINK_HELLO && now - io->since > CONNECT_SECONDS) {
        lost(io, "who listens there does not answer as a debugger");
    } else if (link == LINK_UP && io->keepalive > 0 &&
               now - io->last_heard > LOST_BEATS * io->keepalive) {
        lost(io, "the debugger went silent");
    } else if (io->goodbye_at > 0 && io->client && now - io->goodbye_at > GOODBYE_SECONDS) {
        lost(io, "detached");
    }
}

static double least(double a, double b)
{
    return a < b ? a : b;
}

/* Seconds until the clock decides something, at least a millisecond. */
static double patience(const struct agent_io *io, enum agent_link link, bool quiet)
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
        until = quiet ? until : now + 0.1; /* scalars are fetched, not announced */
        if (io->keepalive > 0) {
            until = least(until, io->last_beat + io->keepalive);
            until = least(until, io->last_heard + LOST_BEATS * io->keepalive);
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
        connected(io);
        return;
    }
    struct gd_err err = {0};
    if (gd_grpc_client_read(io->client, fds[1].fd, &err) != GD_OK) {
        tell_stranger(io);
        lost(io, io->closed && io->close_text[0] ? io->close_text : err.text);
    } else if (!io->met) {
        meet(io);
    }
}

/* Says what there is to say. Returns whether more can be said at once. */
static bool say(struct agent_io *io)
{
    struct gd_err err = {0};
    bool more = false;
    if (io->closed) {
        char why[sizeof(io->close_text)];
        memcpy(why, io->close_text, sizeof(why));
        lost(io, why);
        return false;
    }
    if (agent_wire_pump(io, &more) != GD_OK) {
        lost(io, io->close_text[0] && io->closed ? io->close_text : "the connection failed");
        return false;
    }
    if (gd_grpc_client_write(io->client, atomic_load(&io->agent->socket), &err) != GD_OK) {
        lost(io, err.text);
        return false;
    }
    return io->closed || (more && io->call && gd_grpc_client_queued(io->call) < AGENT_QUEUE);
}

/* The trainer closes: at once without a debugger, after the last words with one. */
static bool is_over(struct agent_io *io, enum agent_link link)
{
    if (link == LINK_UP) {
        return io->goodbye_at > 0 && (io->closed || !io->client);
    }
    return link != LINK_UP && !(io->goodbye_at > 0 && io->client);
}

static void turn(struct agent_io *io, enum agent_link link, bool quiet)
{
    if (!io->client && !io->connecting && agent_now() >= io->next_try) {
        try_connect(io);
    }
    bool more = io->client && say(io);
    check_time(io, link);
    wait_for_something(io, more ? 0 : patience(io, link, quiet));
}

void *agent_io_main(void *agent)
{
    struct agent *a = agent;
    pthread_setname_np(pthread_self(), "gradb");
    pthread_mutex_lock(&a->lock);
    while (!(a->closing && is_over(a->io, a->link))) {
        enum agent_link link = a->link;
        /* A command may log while the process is stopped. */
        bool quiet = a->stopped && !a->scalar_count && !a->times_count && !a->log_count;
        pthread_mutex_unlock(&a->lock);
        turn(a->io, link, quiet);
        pthread_mutex_lock(&a->lock);
    }
    pthread_mutex_unlock(&a->lock);
    drop_connection(a->io);
    pthread_mutex_lock(&a->lock);
    a->thread_done = true;
    bool orphan = a->orphan;
    pthread_cond_broadcast(&a->go);
    pthread_mutex_unlock(&a->lock);
    if (orphan) {
        agent_free(a);
    }
    return NULL;
}
