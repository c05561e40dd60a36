// SPDX-License-Identifier: GPL-3.0-or-later
/* The life of a session that survives its terminal. */
#include "resident/resident_impl.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tui/tape.h"

/* ---- callbacks of the front end ---- */

static void get_facts(void *ctx, struct repl_residence *ret)
{
    const struct resident *resident = ctx;

    *ret = (struct repl_residence){
        .name = resident->name,
        .socket = resident->path,
        .terminal = resident->terminal,
        .pid = (long)getpid(),
        .since = resident->since,
        .viewers = resident_count_viewers(resident),
    };
}

static int on_disconnect(void *ctx, struct gd_err *err)
{
    struct resident *resident = ctx;

    (void)err;
    resident->asked = true;
    repl_leave(resident->repl);
    return GD_OK;
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
            resident_release_terminal(resident);
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
        resident_send(resident->owner, RESIDENT_STOPPED, "", 0);
    } else {
        resident_release_terminal(resident);
    }
    ev_ref(resident->loop); /* wait even if the socket is the only event source */
    if (!resident->suspended && !resident->next_owner && !resident->asked) {
        repl_hang_up(resident->repl);
    }
    wait_for_terminal(resident);
    ev_unref(resident->loop);
    if (!repl_wants_quit(resident->repl) && resident->next_owner) {
        if (resident->owner) {
            resident_release_terminal(resident);
        }
        resident_adopt_terminal(resident);
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
    gd_buf_init(&resident->text, 2 * RESIDENT_KEPT);
    gd_buf_init(&resident->picture, TAPE_MAX);
    for (int i = 0; i < RESIDENT_PEERS; i++) {
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
    .lines = resident_on_lines,
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
    ev_io_init(&resident->io, resident_on_connection, resident->fd, EV_READ);
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
    for (int i = 0; i < RESIDENT_PEERS; i++) {
        resident_send(&resident->peers[i], RESIDENT_RELEASED, "", 0);
        resident_drop_peer(&resident->peers[i]);
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
