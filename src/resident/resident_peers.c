// SPDX-License-Identifier: GPL-3.0-or-later
/* The processes connected to the session's socket: new terminals, the owner, viewers. */
#include "resident/resident_impl.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tui/tape.h"

#define SEND_SPACE (1 << 20) /* send buffer of a viewer: screen images in flight */

static bool send_message(struct peer *peer, enum resident_reply reply, const char *text, size_t len)
{
    char message[RESIDENT_MESSAGE_MAX];

    message[0] = (char)reply;
    memcpy(message + 1, text, len);
    return send(peer->fd, message, len + 1, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0;
}

void resident_send(struct peer *peer, enum resident_reply reply, const char *text, size_t len)
{
    bool sent = peer->fd >= 0;

    do {
        size_t now = len < RESIDENT_MESSAGE_MAX - 1 ? len : RESIDENT_MESSAGE_MAX - 1;
        sent = sent && send_message(peer, reply, text, now);
        text += now;
        len -= now;
    } while (sent && len > 0);
}

void resident_drop_next(struct resident *resident)
{
    for (int i = 0; i < RESIDENT_FDS; i++) {
        if (resident->next[i] >= 0) {
            close(resident->next[i]);
            resident->next[i] = -1;
        }
    }
    resident->next_owner = NULL;
}

int resident_count_viewers(const struct resident *resident)
{
    int count = 0;

    for (int i = 0; i < RESIDENT_PEERS; i++) {
        count += resident->peers[i].fd >= 0 && resident->peers[i].role == PEER_VIEWER;
    }
    return count;
}

/* ---- viewers ---- */

static void set_peer_events(struct peer *peer, int events)
{
    ev_io_stop(peer->resident->loop, &peer->io);
    ev_io_set(&peer->io, peer->fd, events);
    ev_io_start(peer->resident->loop, &peer->io);
}

/* Sends the newest image; if the viewer is slow, it is sent again when the socket is writable. */
static void send_picture(struct peer *peer)
{
    const struct gd_buf *picture = &peer->resident->picture;
    const char *text = gd_buf_text(picture);
    size_t left = picture->len;
    bool sent = send_message(peer, RESIDENT_BEGIN, "", 0);

    while (sent && left > RESIDENT_MESSAGE_MAX - 1) {
        sent = send_message(peer, RESIDENT_PICTURE, text, RESIDENT_MESSAGE_MAX - 1);
        text += RESIDENT_MESSAGE_MAX - 1;
        left -= RESIDENT_MESSAGE_MAX - 1;
    }
    sent = sent && send_message(peer, RESIDENT_SHOW, text, left);
    if (sent == peer->stale) {
        peer->stale = !sent;
        set_peer_events(peer, peer->stale ? EV_READ | EV_WRITE : EV_READ);
    }
}

static void on_picture(void *ctx, const char *bytes, size_t len)
{
    struct resident *resident = ctx;

    gd_buf_clear(&resident->picture);
    gd_buf_add(&resident->picture, bytes, len);
    for (int i = 0; i < RESIDENT_PEERS; i++) {
        struct peer *peer = &resident->peers[i];
        if (peer->fd >= 0 && peer->role == PEER_VIEWER && !peer->stale) {
            send_picture(peer);
        }
    }
}

/* Records images only while there are viewers. */
static void update_recording(struct resident *resident)
{
    bool wanted = resident_count_viewers(resident) > 0;

    tape_listen(wanted ? on_picture : NULL, resident);
    if (!wanted) {
        gd_buf_clear(&resident->picture);
    }
}

static void add_viewer(struct peer *peer)
{
    struct resident *resident = peer->resident;
    int space = SEND_SPACE;

    peer->role = PEER_VIEWER;
    setsockopt(peer->fd, SOL_SOCKET, SO_SNDBUF, &space, sizeof(space));
    resident_send(peer, RESIDENT_OK, "", 0);
    resident_send(peer, RESIDENT_LINES, gd_buf_text(&resident->text), resident->text.len);
    update_recording(resident);
    if (!resident->waiting) {
        raise(SIGWINCH); /* makes open panes draw an image */
    }
}

void resident_on_lines(void *ctx, const char *text, size_t len)
{
    struct resident *resident = ctx;

    resident_keep_console(resident, text, len);
    for (int i = 0; i < RESIDENT_PEERS; i++) {
        if (resident->peers[i].fd >= 0 && resident->peers[i].role == PEER_VIEWER) {
            resident_send(&resident->peers[i], RESIDENT_LINES, text, len);
        }
    }
}

void resident_drop_peer(struct peer *peer)
{
    struct resident *resident = peer->resident;

    if (peer->fd >= 0) {
        ev_io_stop(resident->loop, &peer->io);
        close(peer->fd);
        peer->fd = -1;
    }
    if (resident->next_owner == peer) {
        resident_drop_next(resident);
    }
    if (resident->owner == peer) {
        resident->owner = NULL;
    }
    update_recording(resident);
}

/* ---- messages ---- */

static void send_facts(struct peer *peer)
{
    const struct resident *resident = peer->resident;
    const struct gd_session *session = repl_debugger(resident->repl)->current;
    cJSON *facts = cJSON_CreateObject();

    cJSON_AddStringToObject(facts, "name", resident->name);
    cJSON_AddNumberToObject(facts, "pid", (double)getpid());
    cJSON_AddNumberToObject(facts, "since", resident->since);
    cJSON_AddStringToObject(facts, "program", session ? session->peer.program : "");
    cJSON_AddStringToObject(facts, "state", session ? gd_state_name(session->state) : "waiting");
    cJSON_AddNumberToObject(facts, "step", session ? (double)gd_session_step(session) : 0);
    cJSON_AddStringToObject(facts, "terminal", resident->terminal);
    cJSON_AddNumberToObject(facts, "viewers", resident_count_viewers(resident));
    char *text = cJSON_PrintUnformatted(facts);
    if (text) {
        resident_send(peer, RESIDENT_FACTS, text, strlen(text));
    }
    free(text);
    cJSON_Delete(facts);
}

static void accept_next(struct peer *peer, const struct resident_hello *hello,
                        const int fds[RESIDENT_FDS])
{
    struct resident *resident = peer->resident;

    if (resident->next_owner) { /* two at the same time: the later one wins */
        struct peer *before = resident->next_owner;
        resident_send(before, RESIDENT_ERROR, "another terminal attached at the same time", 38);
        resident_drop_peer(before);
    }
    memcpy(resident->next, fds, sizeof(resident->next));
    resident->next_owner = peer;
    resident->next_hello = *hello;
    peer->role = PEER_NEXT;
    if (!resident->waiting) {
        repl_leave(resident->repl);
    }
}

static void on_hello(struct peer *peer)
{
    struct resident *resident = peer->resident;
    struct resident_hello hello;
    struct gd_err err = {.code = GD_OK};
    int fds[RESIDENT_FDS];

    int rc = resident_read_hello(peer->fd, &hello, fds, &err);
    if (rc != GD_OK) {
        resident_send(peer, RESIDENT_ERROR, err.text, strlen(err.text));
        resident_drop_peer(peer);
        return;
    }
    switch (hello.request) {
    case RESIDENT_VIEW: add_viewer(peer); return;
    case RESIDENT_STATUS:
        send_facts(peer);
        resident_drop_peer(peer);
        return;
    default: break;
    }
    if (resident->terminal[0] == '\0' || hello.take != 0) {
        accept_next(peer, &hello, fds);
        return;
    }
    resident_send(peer, RESIDENT_BUSY, resident->terminal, strlen(resident->terminal));
    for (int i = 0; i < RESIDENT_FDS; i++) {
        close(fds[i]);
    }
    resident_drop_peer(peer);
}

static void on_news(struct resident *resident, char news)
{
    switch (news) {
    case RESIDENT_RESIZED: raise(SIGWINCH); break;
    case RESIDENT_INTERRUPTED: raise(SIGINT); break;
    case RESIDENT_STOPS:
        if (!resident->waiting) {
            resident->suspended = true;
            repl_leave(resident->repl);
        }
        break;
    case RESIDENT_CONTINUED: resident->suspended = false; break;
    default: break;
    }
}

static void on_peer(struct ev_loop *loop, ev_io *io, int events)
{
    struct peer *peer = io->data;
    struct resident *resident = peer->resident;
    bool owner = peer == resident->owner;
    char news = 0;

    (void)loop;
    if (peer->role == PEER_NEW) {
        on_hello(peer);
        return;
    }
    if ((events & EV_WRITE) != 0 && peer->stale) {
        send_picture(peer);
    }
    ssize_t got = recv(peer->fd, &news, 1, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
        return;
    }
    if (got > 0 && owner) {
        on_news(resident, news);
    } else if (got <= 0) {
        resident_drop_peer(peer);
        if (owner) {
            resident_hangup(resident);
        }
    }
}

/* NULL: all are in use. A peer that has not sent its hello yet is dropped if needed. */
static struct peer *find_free_peer(struct resident *resident)
{
    struct peer *silent = NULL;

    for (int i = 0; i < RESIDENT_PEERS; i++) {
        if (resident->peers[i].fd < 0) {
            return &resident->peers[i];
        }
        silent = resident->peers[i].role == PEER_NEW ? &resident->peers[i] : silent;
    }
    if (silent) {
        resident_drop_peer(silent);
    }
    return silent;
}

void resident_on_connection(struct ev_loop *loop, ev_io *io, int events)
{
    struct resident *resident = io->data;
    int fd = accept4(resident->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    long pid = 0;

    (void)events;
    if (fd < 0) {
        return;
    }
    struct peer *peer = resident_peer_is_ours(fd, &pid) ? find_free_peer(resident) : NULL;
    if (!peer) {
        close(fd);
        return;
    }
    *peer = (struct peer){.resident = resident, .fd = fd, .pid = pid};
    ev_io_init(&peer->io, on_peer, fd, EV_READ);
    peer->io.data = peer;
    ev_io_start(loop, &peer->io);
}
