// SPDX-License-Identifier: GPL-3.0-or-later
/* The session's end: its socket, its terminal, its viewers. */
#include "resident/resident.h"
#include "resident/resident_shell.h"
#include "resident/resident_wire.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <ev.h>
#include <fcntl.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/buf.h"
#include "repl/line/tty_out.h"
#include "tui/tape.h"

#define MAX_PEERS  16
#define KEPT_TEXT  ((size_t)64 << 10) /* bytes of console output kept for the next terminal */
#define SEND_SPACE (1 << 20)          /* send buffer of a viewer: screen images in flight */

enum role { PEER_NEW, PEER_NEXT, PEER_OWNER, PEER_VIEWER };

struct peer {
    struct resident *resident;
    ev_io io;
    int fd; /* -1: unused */
    enum role role;
    long pid;
    bool stale; /* a viewer that could not take the last image */
};

struct resident {
    struct ev_loop *loop;
    struct repl *repl;
    char name[64];
    char path[sizeof(((struct sockaddr_un *)NULL)->sun_path)];
    char terminal[64]; /* "": none */
    double since;
    int fd;
    ev_io io;
    struct peer peers[MAX_PEERS];
    struct peer *owner; /* whose terminal is in use; NULL: gradb's own, or none */
    bool waiting;
    bool asked;     /* left by `disconnect`: the training is not affected */
    bool suspended; /* Ctrl-Z: the owner's shell has the terminal */
    bool fresh;     /* the terminal has not shown the console yet */
    int next[RESIDENT_FDS];
    struct peer *next_owner; /* handed over a terminal that is not in use yet */
    struct resident_hello next_hello;
    struct gd_buf text;    /* the end of the console's output */
    struct gd_buf picture; /* image of the panes; empty: closed */
};

static bool send_message(struct peer *peer, enum resident_reply reply, const char *text, size_t len)
{
    char message[RESIDENT_MESSAGE_MAX];

    message[0] = (char)reply;
    memcpy(message + 1, text, len);
    return send(peer->fd, message, len + 1, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0;
}

/* Split into messages of at most RESIDENT_MESSAGE_MAX. A peer that does not read loses text; the
 * loop notices one that has closed. */
static void send_text(struct peer *peer, enum resident_reply reply, const char *text, size_t len)
{
    bool sent = peer->fd >= 0;

    do {
        size_t now = len < RESIDENT_MESSAGE_MAX - 1 ? len : RESIDENT_MESSAGE_MAX - 1;
        sent = sent && send_message(peer, reply, text, now);
        text += now;
        len -= now;
    } while (sent && len > 0);
}

static void drop_next(struct resident *resident)
{
    for (int i = 0; i < RESIDENT_FDS; i++) {
        if (resident->next[i] >= 0) {
            close(resident->next[i]);
            resident->next[i] = -1;
        }
    }
    resident->next_owner = NULL;
}

static int count_viewers(const struct resident *resident)
{
    int count = 0;

    for (int i = 0; i < MAX_PEERS; i++) {
        count += resident->peers[i].fd >= 0 && resident->peers[i].role == PEER_VIEWER;
    }
    return count;
}

static void update_recording(struct resident *resident);

static void drop_peer(struct peer *peer)
{
    struct resident *resident = peer->resident;

    if (peer->fd >= 0) {
        ev_io_stop(resident->loop, &peer->io);
        close(peer->fd);
        peer->fd = -1;
    }
    if (resident->next_owner == peer) {
        drop_next(resident);
    }
    if (resident->owner == peer) {
        resident->owner = NULL;
    }
    update_recording(resident);
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
    for (int i = 0; i < MAX_PEERS; i++) {
        struct peer *peer = &resident->peers[i];
        if (peer->fd >= 0 && peer->role == PEER_VIEWER && !peer->stale) {
            send_picture(peer);
        }
    }
}

/* Records images only while there are viewers. */
static void update_recording(struct resident *resident)
{
    bool wanted = count_viewers(resident) > 0;

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
    send_text(peer, RESIDENT_OK, "", 0);
    send_text(peer, RESIDENT_LINES, gd_buf_text(&resident->text), resident->text.len);
    update_recording(resident);
    if (!resident->waiting) {
        raise(SIGWINCH); /* makes open panes draw an image */
    }
}

/* ---- console output ---- */

static void keep_console(struct resident *resident, const char *text, size_t len)
{
    struct gd_buf *kept = &resident->text;

    if (len > KEPT_TEXT / 2) {
        text += len - KEPT_TEXT / 2;
        len = KEPT_TEXT / 2;
    }
    if (kept->len + len > KEPT_TEXT) {
        const char *half = gd_buf_text(kept) + kept->len - KEPT_TEXT / 2;
        const char *end = memchr(half, '\n', KEPT_TEXT / 2);
        size_t drop = end ? (size_t)(end + 1 - gd_buf_text(kept)) : kept->len;
        memmove(kept->data, kept->data + drop, kept->len - drop);
        kept->len -= drop;
    }
    gd_buf_add(kept, text, len);
}

static void on_lines(void *ctx, const char *text, size_t len)
{
    struct resident *resident = ctx;

    keep_console(resident, text, len);
    for (int i = 0; i < MAX_PEERS; i++) {
        if (resident->peers[i].fd >= 0 && resident->peers[i].role == PEER_VIEWER) {
            send_text(&resident->peers[i], RESIDENT_LINES, text, len);
        }
    }
}

/* The start of the last `rows` rows. */
static const char *find_last_rows(const char *text, size_t len, int rows, int cols)
{
    const char *begin = text + len;
    const char *end = begin;

    for (int used = 0; begin > text;) {
        const char *line = memrchr(text, '\n', (size_t)(begin - 1 - text));
        line = line ? line + 1 : text;
        used += 1 + (int)(end - line) / cols;
        if (used > rows) {
            return begin;
        }
        begin = line;
        end = line > text ? line - 1 : line;
    }
    return begin;
}

void resident_replay(struct resident *resident, bool color)
{
    struct winsize size = {.ws_row = 0};
    struct gd_buf shown = GD_BUF_INIT(2 * KEPT_TEXT);

    if (!resident || !resident->fresh) {
        return;
    }
    const char *text = gd_buf_text(&resident->text);
    const char *stop = text + resident->text.len;
    resident->fresh = false;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row < 2 || size.ws_col < 1) {
        size = (struct winsize){.ws_row = 24, .ws_col = 80};
    }
    text = find_last_rows(text, resident->text.len, size.ws_row - 1, size.ws_col);
    while (text < stop) {
        if (!color && *text == '\x1b') { /* skip colors: ESC [ ... m */
            const char *end = memchr(text, 'm', (size_t)(stop - text));
            text = end ? end + 1 : stop;
        } else {
            gd_buf_putc(&shown, *text++);
        }
    }
    tty_out_write(STDOUT_FILENO, gd_buf_text(&shown), shown.len);
    gd_buf_deinit(&shown);
}

/* ---- status ---- */

static void get_facts(void *ctx, struct repl_residence *ret)
{
    const struct resident *resident = ctx;

    *ret = (struct repl_residence){
        .name = resident->name,
        .socket = resident->path,
        .terminal = resident->terminal,
        .pid = (long)getpid(),
        .since = resident->since,
        .viewers = count_viewers(resident),
    };
}

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
    cJSON_AddNumberToObject(facts, "viewers", count_viewers(resident));
    char *text = cJSON_PrintUnformatted(facts);
    if (text) {
        send_text(peer, RESIDENT_FACTS, text, strlen(text));
    }
    free(text);
    cJSON_Delete(facts);
}

/* ---- changing terminals ---- */

static void redirect_to_null(void)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    for (int fd = 0; fd < RESIDENT_FDS && null >= 0; fd++) {
        dup2(null, fd);
    }
    if (null >= RESIDENT_FDS) {
        close(null);
    }
}

/* Message for the terminal that is released; "" if it is gone. */
static void explain_release(const struct resident *resident, char *text, size_t size)
{
    text[0] = '\0';
    if (resident->next_owner) {
        snprintf(text, size,
                 "[taken over by %s, process %ld; to take it back: gradb attach --take %s]",
                 resident->next_hello.terminal, resident->next_owner->pid, resident->name);
    } else if (resident->asked) {
        snprintf(text, size, "[disconnected; to return: gradb attach %s]", resident->name);
    }
}

static void release_terminal(struct resident *resident)
{
    char text[256];

    explain_release(resident, text, sizeof(text));
    if (resident->owner) {
        send_text(resident->owner, RESIDENT_RELEASED, text, strlen(text));
        drop_peer(resident->owner);
    } else if (text[0] != '\0') {
        tty_out_puts(STDOUT_FILENO, text);
        tty_out_puts(STDOUT_FILENO, "\n");
    }
    tty_out_end(0);
    redirect_to_null();
    resident_leave_shell();
    resident->terminal[0] = '\0';
    resident->suspended = false;
}

void resident_hangup(struct resident *resident)
{
    struct pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT};

    if (resident->waiting || repl_has_left(resident->repl)) {
        return;
    }
    if (poll(&out, 1, 0) != 1 || (out.revents & POLLOUT) == 0) {
        redirect_to_null(); /* writing to the terminal would block */
    }
    repl_leave(resident->repl);
}

static int on_disconnect(void *ctx, struct gd_err *err)
{
    struct resident *resident = ctx;

    (void)err;
    resident->asked = true;
    repl_leave(resident->repl);
    return GD_OK;
}

static void set_or_unset(const char *name, const char *value)
{
    if (value[0] != '\0') {
        setenv(name, value, 1);
    } else {
        unsetenv(name);
    }
}

/* Of a locale that is not installed here, only the encoding is used. */
static void adopt_locale(const char *name)
{
    if (!setlocale(LC_CTYPE, name)) {
        bool utf8 = strstr(name, "UTF-8") || strstr(name, "utf8");
        name = utf8 && setlocale(LC_CTYPE, "C.UTF-8") ? "C.UTF-8" : "C";
        setlocale(LC_CTYPE, name);
    }
    setenv("LC_ALL", name, 1);
}

static void adopt_terminal(struct resident *resident)
{
    const struct resident_hello *hello = &resident->next_hello;

    for (int fd = 0; fd < RESIDENT_FDS; fd++) {
        dup2(resident->next[fd], fd);
    }
    tty_out_begin(resident->loop);
    set_or_unset("TERM", hello->term);
    set_or_unset("COLORTERM", hello->colorterm);
    set_or_unset("NO_COLOR", hello->no_color);
    unsetenv("LINES"); /* of the previous terminal */
    unsetenv("COLUMNS");
    adopt_locale(hello->locale);
    snprintf(resident->terminal, sizeof(resident->terminal), "%s",
             hello->terminal[0] != '\0' ? hello->terminal : "another terminal");
    resident->owner = resident->next_owner;
    resident->owner->role = PEER_OWNER;
    drop_next(resident);
    resident->fresh = true;
    send_text(resident->owner, RESIDENT_OK, resident->name, strlen(resident->name));
}

/* ---- messages ---- */

static void accept_next(struct peer *peer, const struct resident_hello *hello,
                        const int fds[RESIDENT_FDS])
{
    struct resident *resident = peer->resident;

    if (resident->next_owner) { /* two at the same time: the later one wins */
        struct peer *before = resident->next_owner;
        send_text(before, RESIDENT_ERROR, "another terminal attached at the same time", 38);
        drop_peer(before);
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
        send_text(peer, RESIDENT_ERROR, err.text, strlen(err.text));
        drop_peer(peer);
        return;
    }
    switch (hello.request) {
    case RESIDENT_VIEW: add_viewer(peer); return;
    case RESIDENT_STATUS:
        send_facts(peer);
        drop_peer(peer);
        return;
    default: break;
    }
    if (resident->terminal[0] == '\0' || hello.take != 0) {
        accept_next(peer, &hello, fds);
        return;
    }
    send_text(peer, RESIDENT_BUSY, resident->terminal, strlen(resident->terminal));
    for (int i = 0; i < RESIDENT_FDS; i++) {
        close(fds[i]);
    }
    drop_peer(peer);
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
        drop_peer(peer);
        if (owner) {
            resident_hangup(resident);
        }
    }
}

/* NULL: all are in use. A peer that has not sent its hello yet is dropped if needed. */
static struct peer *find_free_peer(struct resident *resident)
{
    struct peer *silent = NULL;

    for (int i = 0; i < MAX_PEERS; i++) {
        if (resident->peers[i].fd < 0) {
            return &resident->peers[i];
        }
        silent = resident->peers[i].role == PEER_NEW ? &resident->peers[i] : silent;
    }
    if (silent) {
        drop_peer(silent);
    }
    return silent;
}

static void on_connection(struct ev_loop *loop, ev_io *io, int events)
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

/* ---- without a terminal ---- */

/* Runs the loop until there is a terminal: a new one, or the same one after Ctrl-Z. */
static void wait_for_terminal(struct resident *resident)
{
    struct gd_debugger *debugger = repl_debugger(resident->repl);
    bool paused = resident->suspended;
    double patience = 0; /* at first only poll: signals of the lost terminal may be pending */

    while (!repl_wants_quit(resident->repl) && (patience == 0 || !resident->next_owner)) {
        debugger->pump(debugger->pump_ctx, patience);
        gd_debugger_reap(debugger);
        patience = -1;
        if (paused && resident->owner && !resident->suspended) {
            return;
        }
        if (paused && !resident->owner) {
            paused = false;
            release_terminal(resident);
            repl_hang_up(resident->repl);
        }
        if (!paused && !resident->asked && !resident->next_owner &&
            !repl_has_reason_to_stay(resident->repl)) {
            repl_quit(resident->repl, STATUS_OK);
        }
    }
}

bool resident_wait(struct resident *resident)
{
    repl_clear_left(resident->repl);
    resident->waiting = true;
    if (resident->suspended) {
        send_text(resident->owner, RESIDENT_STOPPED, "", 0);
    } else {
        release_terminal(resident);
    }
    ev_ref(resident->loop); /* wait even if the socket is the only event source */
    if (!resident->suspended && !resident->next_owner && !resident->asked) {
        repl_hang_up(resident->repl);
    }
    wait_for_terminal(resident);
    ev_unref(resident->loop);
    if (!repl_wants_quit(resident->repl) && resident->next_owner) {
        if (resident->owner) {
            release_terminal(resident);
        }
        adopt_terminal(resident);
    }
    resident->waiting = resident->asked = resident->suspended = false;
    return !repl_wants_quit(resident->repl);
}

/* ---- creating and destroying ---- */

/* Renamed into place only when listening: a socket that refuses connections is taken for dead and
 * removed. */
static int listen_at(struct resident *resident, struct gd_err *err)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    if (strlen(resident->path) + sizeof(".new") > sizeof(address.sun_path)) {
        return gd_fail(err, GD_ELIMIT, "socket path too long: %.200s", resident->path);
    }
    snprintf(address.sun_path, sizeof(address.sun_path), "%.100s.new", resident->path);
    unlink(address.sun_path);
    resident->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (resident->fd < 0 || bind(resident->fd, (struct sockaddr *)&address, sizeof(address)) != 0 ||
        chmod(address.sun_path, 0600) != 0 || listen(resident->fd, 8) != 0 ||
        rename(address.sun_path, resident->path) != 0) {
        int rc = gd_fail_errno(err, GD_EIO, "%.200s", resident->path);
        unlink(address.sun_path);
        return rc;
    }
    return GD_OK;
}

static struct resident *new_resident(struct ev_loop *loop, struct repl *repl, const char *name)
{
    const char *terminal = ttyname(STDIN_FILENO);
    struct resident *resident = calloc(1, sizeof(*resident));

    if (!resident) {
        return NULL;
    }
    *resident = (struct resident){.loop = loop, .repl = repl, .fd = -1, .next = {-1, -1, -1}};
    gd_buf_init(&resident->text, 2 * KEPT_TEXT);
    gd_buf_init(&resident->picture, TAPE_MAX);
    for (int i = 0; i < MAX_PEERS; i++) {
        resident->peers[i] = (struct peer){.resident = resident, .fd = -1};
    }
    snprintf(resident->name, sizeof(resident->name), "%s", name ? name : "gradb");
    if (!name) {
        snprintf(resident->name, sizeof(resident->name), "gradb-%ld", (long)getpid());
    }
    snprintf(resident->terminal, sizeof(resident->terminal), "%.63s",
             terminal ? terminal : "a terminal");
    resident->since = ev_time();
    return resident;
}

static const struct repl_residence_ops residence_ops = {
    .disconnect = on_disconnect,
    .lines = on_lines,
    .facts = get_facts,
};

int resident_create(struct ev_loop *loop, struct repl *repl, const char *name,
                    struct resident **ret, struct gd_err *err)
{
    char directory[80];
    int rc = resident_directory(directory, sizeof(directory), err);
    struct resident *resident = rc == GD_OK ? new_resident(loop, repl, name) : NULL;

    if (!resident) {
        return rc != GD_OK ? rc : gd_fail_nomem(err);
    }
    snprintf(resident->path, sizeof(resident->path), "%s/%.20s.sock", directory, resident->name);
    rc = listen_at(resident, err);
    if (rc != GD_OK) {
        resident_destroy(resident);
        return rc;
    }
    ev_io_init(&resident->io, on_connection, resident->fd, EV_READ);
    resident->io.data = resident;
    ev_io_start(loop, &resident->io);
    ev_unref(loop);
    repl_set_residence(repl, &residence_ops, resident);
    *ret = resident;
    return GD_OK;
}

void resident_destroy(struct resident *resident)
{
    if (!resident) {
        return;
    }
    repl_set_residence(resident->repl, NULL, NULL);
    for (int i = 0; i < MAX_PEERS; i++) {
        send_text(&resident->peers[i], RESIDENT_RELEASED, "", 0);
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
    gd_buf_deinit(&resident->text);
    gd_buf_deinit(&resident->picture);
    free(resident);
}
