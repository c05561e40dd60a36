// SPDX-License-Identifier: GPL-3.0-or-later
/* The side of the session: its socket, its terminal, its viewers. */
#include "resident.h"
#include "resident_wire.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <ev.h>
#include <fcntl.h>
#include <locale.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define MAX_PEERS 16

struct peer {
    struct resident *resident;
    ev_io io;
    int fd; /* -1: free */
    bool viewer;
};

struct resident {
    struct ev_loop *loop;
    struct repl *repl;
    char name[64];
    char path[sizeof(((struct sockaddr_un *)NULL)->sun_path)];
    char terminal[64]; /* "" none */
    double since;
    int fd;
    ev_io io;
    struct peer peers[MAX_PEERS];
    struct peer *owner; /* whose terminal it is; NULL: gradb's own, or none */
    bool waiting;
    int next[3]; /* handed over, not in use yet; -1 none */
    char next_terminal[64];
    struct peer *next_owner;
};

static void tell(struct peer *peer, enum resident_reply reply, const char *text, size_t len)
{
    char message[RESIDENT_MESSAGE_MAX];

    while (peer->fd >= 0) {
        size_t now = len < sizeof(message) - 1 ? len : sizeof(message) - 1;
        message[0] = (char)reply;
        memcpy(message + 1, text, now);
        if (send(peer->fd, message, now + 1, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
            return; /* who does not read misses it; who is gone is heard of by the loop */
        }
        text += now;
        len -= now;
        if (len == 0) {
            return;
        }
    }
}

static void drop_next(struct resident *resident)
{
    for (int i = 0; i < 3; i++) {
        if (resident->next[i] >= 0) {
            close(resident->next[i]);
            resident->next[i] = -1;
        }
    }
    resident->next_owner = NULL;
}

static void drop_peer(struct peer *peer)
{
    if (peer->fd >= 0) {
        ev_io_stop(peer->resident->loop, &peer->io);
        close(peer->fd);
        peer->fd = -1;
    }
    if (peer->resident->next_owner == peer) {
        drop_next(peer->resident);
    }
    if (peer->resident->owner == peer) {
        peer->resident->owner = NULL;
    }
}

static void on_lines(void *ctx, const char *text, size_t len)
{
    struct resident *resident = ctx;

    for (int i = 0; i < MAX_PEERS; i++) {
        if (resident->peers[i].fd >= 0 && resident->peers[i].viewer) {
            tell(&resident->peers[i], RESIDENT_LINES, text, len);
        }
    }
}

/* ---- what is said of it ---- */

static void send_facts(struct peer *peer)
{
    const struct resident *resident = peer->resident;
    const struct gd_session *session = repl_debugger(resident->repl)->current;
    cJSON *facts = cJSON_CreateObject();

    cJSON_AddStringToObject(facts, "name", resident->name);
    cJSON_AddNumberToObject(facts, "pid", (double)getpid());
    cJSON_AddNumberToObject(facts, "since", resident->since);
    cJSON_AddStringToObject(facts, "program", session != NULL ? session->peer.program : "");
    cJSON_AddStringToObject(facts, "state",
                            session != NULL ? gd_state_name(session->state) : "waiting");
    cJSON_AddNumberToObject(facts, "step", session != NULL ? (double)session->stop.step : 0);
    cJSON_AddStringToObject(facts, "terminal", resident->terminal);
    char *text = cJSON_PrintUnformatted(facts);
    if (text != NULL) {
        tell(peer, RESIDENT_FACTS, text, strlen(text));
    }
    free(text);
    cJSON_Delete(facts);
}

/* ---- terminals come and go ---- */

static void terminal_away(struct resident *resident, const char *why)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    for (int fd = 0; fd < 3 && null >= 0; fd++) {
        dup2(null, fd);
    }
    if (null >= 0) {
        close(null);
    }
    if (resident->owner != NULL) {
        tell(resident->owner, RESIDENT_LET_GO, why, strlen(why));
        drop_peer(resident->owner);
    }
    resident->terminal[0] = '\0';
}

void resident_hangup(struct resident *resident)
{
    if (!resident->waiting && !repl_has_left(resident->repl)) {
        terminal_away(resident, "");
        repl_leave(resident->repl);
    }
}

/* `disconnect`: the terminal is alive and gets its screen back before it goes. */
static int on_disconnect(void *ctx, struct gd_err *err)
{
    struct resident *resident = ctx;

    if (resident->owner == NULL) {
        return gd_fail(err, GD_ESTATE,
                       "this is the terminal that gradb was started on: close it, and the session "
                       "stays (\"show on-hangup\")");
    }
    repl_leave(resident->repl);
    return GD_OK;
}

static void take_terminal(struct resident *resident)
{
    char text[RESIDENT_MESSAGE_MAX];

    for (int fd = 0; fd < 3; fd++) {
        dup2(resident->next[fd], fd);
    }
    resident->owner = resident->next_owner;
    drop_next(resident);
    snprintf(resident->terminal, sizeof(resident->terminal), "%s", resident->next_terminal);
    snprintf(text, sizeof(text), "%s", resident->name);
    tell(resident->owner, RESIDENT_OK, text, strlen(text));
}

static void on_hello(struct peer *peer, const struct resident_hello *hello, const int fds[3])
{
    struct resident *resident = peer->resident;

    if (resident->terminal[0] != '\0' && hello->take == 0) {
        tell(peer, RESIDENT_BUSY, resident->terminal, strlen(resident->terminal));
        drop_peer(peer);
        return;
    }
    drop_next(resident);
    memcpy(resident->next, fds, sizeof(resident->next));
    resident->next_owner = peer;
    snprintf(resident->next_terminal, sizeof(resident->next_terminal), "%.63s",
             hello->terminal[0] != '\0' ? hello->terminal : "a terminal");
    setenv("TERM", hello->term, 1);
    if (setlocale(LC_CTYPE, hello->locale) != NULL) {
        setenv("LC_ALL", hello->locale, 1);
    }
    if (!resident->waiting) { /* the old one is told by the front end's end */
        repl_leave(resident->repl);
    }
}

static void read_hello(struct peer *peer)
{
    union {
        char bytes[CMSG_SPACE(3 * sizeof(int))];
        struct cmsghdr align;
    } control;
    struct resident_hello hello = {.version = 0};
    struct iovec io = {.iov_base = &hello, .iov_len = sizeof(hello)};
    struct msghdr message = {.msg_iov = &io,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof(control.bytes)};
    int fds[3] = {-1, -1, -1};
    ssize_t got = recvmsg(peer->fd, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    struct cmsghdr *head = got > 0 ? CMSG_FIRSTHDR(&message) : NULL;

    if (head != NULL && head->cmsg_type == SCM_RIGHTS) {
        size_t len = head->cmsg_len - CMSG_LEN(0);
        memcpy(fds, CMSG_DATA(head), len < sizeof(fds) ? len : sizeof(fds));
    }
    bool good = got == (ssize_t)sizeof(hello) && hello.version == RESIDENT_VERSION;
    hello.term[sizeof(hello.term) - 1] = hello.terminal[sizeof(hello.terminal) - 1] = '\0';
    hello.locale[sizeof(hello.locale) - 1] = '\0';
    if (good && hello.wish == RESIDENT_ATTACH && fds[2] >= 0 && isatty(fds[0])) {
        on_hello(peer, &hello, fds);
        if (peer->resident->next_owner == peer) {
            return; /* the descriptors are kept */
        }
    } else if (good && hello.wish == RESIDENT_VIEW) {
        peer->viewer = true;
        tell(peer, RESIDENT_OK, "", 0);
    } else {
        if (good && hello.wish == RESIDENT_STATUS) {
            send_facts(peer);
        }
        drop_peer(peer);
    }
    for (int i = 0; i < 3; i++) {
        if (fds[i] >= 0) {
            close(fds[i]);
        }
    }
}

static void on_peer(struct ev_loop *loop, ev_io *io, int events)
{
    struct peer *peer = io->data;
    struct resident *resident = peer->resident;
    char news = 0;

    (void)loop;
    (void)events;
    if (!peer->viewer && peer != resident->owner && peer != resident->next_owner) {
        read_hello(peer);
        return;
    }
    ssize_t got = recv(peer->fd, &news, 1, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
        return;
    }
    bool owner = peer == resident->owner;
    if (got <= 0) {
        drop_peer(peer);
        if (owner) {
            resident_hangup(resident);
        }
    } else if (owner && news == RESIDENT_RESIZED) {
        raise(SIGWINCH);
    } else if (owner && news == RESIDENT_INTERRUPTED) {
        raise(SIGINT);
    } else if (owner && news == RESIDENT_CONTINUED) {
        raise(SIGCONT);
        raise(SIGWINCH);
    }
}

static void on_connection(struct ev_loop *loop, ev_io *io, int events)
{
    struct resident *resident = io->data;
    struct ucred who;
    socklen_t size = sizeof(who);
    int fd = accept4(resident->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

    (void)events;
    if (fd < 0) {
        return;
    }
    bool ours = getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) == 0 && who.uid == geteuid();
    for (int i = 0; ours && i < MAX_PEERS; i++) {
        struct peer *peer = &resident->peers[i];
        if (peer->fd < 0) {
            *peer = (struct peer){.resident = resident, .fd = fd};
            ev_io_init(&peer->io, on_peer, fd, EV_READ);
            peer->io.data = peer;
            ev_io_start(loop, &peer->io);
            return;
        }
    }
    close(fd);
}

/* ---- nobody is there ---- */

static void do_as_set(struct resident *resident)
{
    struct gd_debugger *debugger = repl_debugger(resident->repl);
    bool stay = false;

    for (size_t i = 0; i < debugger->session_count; i++) {
        struct gd_session *session = debugger->sessions[i];
        if (!gd_session_is_live(session)) {
            continue;
        }
        if (debugger->settings.on_hangup == 0 && session->state == GD_RUNNING) {
            gd_target_interrupt(session->target, NULL);
        }
        stay = stay || repl_session_needs_us(session);
    }
    if (debugger->settings.on_hangup == 1) {
        repl_execute(resident->repl, "continue &");
    } else if (debugger->settings.on_hangup == 2 && !stay) {
        repl_execute(resident->repl, "detach");
        repl_quit(resident->repl, 0);
    }
}

bool resident_wait(struct resident *resident)
{
    struct gd_debugger *debugger = repl_debugger(resident->repl);

    terminal_away(resident, "[disconnected: gradb attach comes back]");
    repl_clear_left(resident->repl);
    resident->waiting = true;
    if (resident->next[0] < 0) {
        do_as_set(resident);
    }
    while (!repl_wants_quit(resident->repl) && resident->next[0] < 0) {
        debugger->pump(debugger->pump_ctx, -1);
        gd_debugger_reap(debugger);
    }
    resident->waiting = false;
    if (repl_wants_quit(resident->repl)) {
        return false;
    }
    take_terminal(resident);
    return true;
}

/* ---- start and end ---- */

static int listen_at(struct resident *resident, struct gd_err *err)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    unlink(resident->path); /* of an earlier process with this number */
    memcpy(address.sun_path, resident->path, sizeof(resident->path));
    resident->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (resident->fd < 0 || bind(resident->fd, (struct sockaddr *)&address, sizeof(address)) != 0 ||
        chmod(resident->path, 0600) != 0 || listen(resident->fd, 8) != 0) {
        return gd_fail_errno(err, GD_EIO, "%.200s", resident->path);
    }
    return GD_OK;
}

int resident_create(struct ev_loop *loop, struct repl *repl, const char *name,
                    struct resident **ret, struct gd_err *err)
{
    char directory[80];
    int rc = resident_directory(directory, sizeof(directory), err);
    struct resident *resident = rc == GD_OK ? calloc(1, sizeof(*resident)) : NULL;

    if (resident == NULL) {
        return rc != GD_OK ? rc : gd_fail(err, GD_ENOMEM, "out of memory");
    }
    *resident = (struct resident){.loop = loop, .repl = repl, .fd = -1, .next = {-1, -1, -1}};
    for (int i = 0; i < MAX_PEERS; i++) {
        resident->peers[i] = (struct peer){.resident = resident, .fd = -1};
    }
    snprintf(resident->name, sizeof(resident->name), "%s", name != NULL ? name : "gradb");
    if (name == NULL) {
        snprintf(resident->name, sizeof(resident->name), "gradb-%ld", (long)getpid());
    }
    snprintf(resident->path, sizeof(resident->path), "%s/%.20s.sock", directory, resident->name);
    const char *terminal = ttyname(STDIN_FILENO);
    snprintf(resident->terminal, sizeof(resident->terminal), "%.63s",
             terminal != NULL ? terminal : "a terminal");
    resident->since = ev_time();
    rc = listen_at(resident, err);
    if (rc != GD_OK) {
        resident_destroy(resident);
        return rc;
    }
    ev_io_init(&resident->io, on_connection, resident->fd, EV_READ);
    resident->io.data = resident;
    ev_io_start(loop, &resident->io);
    ev_unref(loop);
    repl_set_residence(repl, on_disconnect, on_lines, resident);
    *ret = resident;
    return GD_OK;
}

void resident_destroy(struct resident *resident)
{
    if (resident == NULL) {
        return;
    }
    repl_set_residence(resident->repl, NULL, NULL, NULL);
    for (int i = 0; i < MAX_PEERS; i++) {
        drop_peer(&resident->peers[i]);
    }
    if (ev_is_active(&resident->io)) {
        ev_ref(resident->loop);
        ev_io_stop(resident->loop, &resident->io);
    }
    if (resident->fd >= 0) {
        close(resident->fd);
        unlink(resident->path);
    }
    free(resident);
}
