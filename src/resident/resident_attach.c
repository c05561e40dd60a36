// SPDX-License-Identifier: GPL-3.0-or-later
/* The terminal's end: gradb attach. */
#include "resident/resident.h"
#include "resident/resident_list.h"
#include "resident/resident_view.h"
#include "resident/resident_wire.h"

#include <errno.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <termios.h>
#include <unistd.h>

#include "tui/draw.h"

struct attached {
    int fd;
    bool have_saved;
    struct termios saved;       /* terminal settings of the shell */
    sigset_t open;              /* signal mask while waiting */
    bool stopping;              /* Ctrl-Z: waiting for the session to release the screen */
    struct resident_view *view; /* NULL: the terminal was handed over */
};

static volatile sig_atomic_t signalled[65];

static void on_signal(int number)
{
    signalled[number] = 1;
}

static bool consume_signal(int number)
{
    bool was = signalled[number] != 0;

    signalled[number] = 0;
    return was;
}

static void send_news(const struct attached *attached, enum resident_news news)
{
    char byte = (char)news;

    if (!attached->view) {
        send(attached->fd, &byte, 1, MSG_NOSIGNAL);
    }
}

static void restore_modes(const struct attached *attached)
{
    if (attached->have_saved) {
        tcsetattr(STDIN_FILENO, TCSADRAIN, &attached->saved);
    }
}

/* Stops this process, so that the shell gets its terminal; when continued, the session redraws. */
static void stop_process(struct attached *attached)
{
    attached->stopping = false;
    restore_modes(attached);
    raise(SIGSTOP);
    send_news(attached, RESIDENT_CONTINUED);
}

/* Acts on the signals that arrived. */
static void forward_signals(struct attached *attached)
{
    if (consume_signal(SIGWINCH)) {
        send_news(attached, RESIDENT_RESIZED);
        if (attached->view) {
            resident_view_resize(attached->view);
        }
    }
    if (!attached->view && consume_signal(SIGINT)) {
        send_news(attached, RESIDENT_INTERRUPTED);
    }
    if (consume_signal(SIGTSTP)) {
        if (attached->view) {
            resident_view_leave(attached->view);
            stop_process(attached);
            resident_view_take(attached->view, RESIDENT_SHOW, "", 0);
        } else if (!attached->stopping) {
            attached->stopping = true;
            send_news(attached, RESIDENT_STOPS);
        }
    }
}

/* The session's process died: restores the terminal settings. */
static int report_death(const struct attached *attached, struct gd_err *err)
{
    char restore[256];

    if (!attached->view) {
        draw_restore_foreign(restore, sizeof(restore));
        fputs(restore, stdout);
        fflush(stdout);
    }
    return gd_fail(err, GD_ELOST, "connection to the session lost: its process died");
}

/* Returns true when the session ended or released the terminal; *rc is the result. */
static bool on_message(struct attached *attached, int *rc, struct gd_err *err)
{
    char text[RESIDENT_MESSAGE_MAX + 1];
    size_t got = resident_receive(attached->fd, text, sizeof(text), 0);

    if (got == 0) {
        *rc = report_death(attached, err);
        return true;
    }
    switch (text[0]) {
    case RESIDENT_RELEASED:
        if (attached->view) {
            resident_view_leave(attached->view);
        }
        restore_modes(attached);
        if (got > 1) {
            printf("%s\n", text + 1);
        }
        return true;
    case RESIDENT_ERROR: *rc = gd_fail(err, GD_EIO, "%s", text + 1); return true;
    case RESIDENT_STOPPED:
        if (attached->stopping) {
            stop_process(attached);
        }
        return false;
    default:
        if (attached->view) {
            resident_view_take(attached->view, text[0], text + 1, got - 1);
        }
        return false;
    }
}

static bool is_to_end(const struct attached *attached)
{
    return signalled[SIGTERM] || signalled[SIGHUP] || (attached->view && signalled[SIGINT]);
}

/* Returns when the session ends or releases the terminal. Signals are only admitted while
 * waiting. */
static int wait_for_release(struct attached *attached, struct gd_err *err)
{
    const struct timespec patience = {.tv_sec = RESIDENT_PATIENCE_MS / 1000};
    bool typed = attached->view && isatty(STDIN_FILENO);
    int rc = GD_OK;

    while (!is_to_end(attached)) {
        struct pollfd wait[2] = {{.fd = attached->fd, .events = POLLIN},
                                 {.fd = typed ? STDIN_FILENO : -1, .events = POLLIN}};
        int ready = ppoll(wait, 2, attached->stopping ? &patience : NULL, &attached->open);
        if (ready == 0 && attached->stopping) {
            stop_process(attached); /* the session does not answer: stop anyway */
        }
        forward_signals(attached);
        if (ready > 0 && wait[0].revents != 0 && on_message(attached, &rc, err)) {
            break;
        }
        if (ready > 0 && wait[1].revents != 0 &&
            ((wait[1].revents & POLLIN) == 0 || resident_view_keys(attached->view))) {
            break;
        }
    }
    return rc;
}

/* ---- attaching ---- */

static void copy_env(char *out, size_t size, const char *name)
{
    const char *value = getenv(name);
    snprintf(out, size, "%s", value ? value : "");
}

static void fill_hello(struct resident_hello *hello, bool read_only, bool take)
{
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    const char *terminal = ttyname(STDIN_FILENO);

    *hello = (struct resident_hello){.version = RESIDENT_VERSION,
                                     .request = read_only ? RESIDENT_VIEW : RESIDENT_ATTACH,
                                     .take = take};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && hello->locale[0] == '\0'; i++) {
        copy_env(hello->locale, sizeof(hello->locale), names[i]);
    }
    if (hello->locale[0] == '\0') {
        snprintf(hello->locale, sizeof(hello->locale), "C");
    }
    copy_env(hello->term, sizeof(hello->term), "TERM");
    copy_env(hello->colorterm, sizeof(hello->colorterm), "COLORTERM");
    copy_env(hello->no_color, sizeof(hello->no_color), "NO_COLOR");
    snprintf(hello->terminal, sizeof(hello->terminal), "%s", terminal ? terminal : "");
}

/* Blocks the signals that are only handled while waiting. */
static void block_signals(sigset_t *open, sigset_t *before)
{
    static const int forwarded[] = {SIGWINCH, SIGINT, SIGTSTP, SIGTERM, SIGHUP};
    sigset_t closed;

    sigemptyset(&closed);
    for (size_t i = 0; i < sizeof(forwarded) / sizeof(forwarded[0]); i++) {
        struct sigaction action = {.sa_handler = on_signal};
        sigaddset(&closed, forwarded[i]);
        sigaction(forwarded[i], &action, NULL);
    }
    sigprocmask(SIG_BLOCK, &closed, before);
    *open = *before;
    for (size_t i = 0; i < sizeof(forwarded) / sizeof(forwarded[0]); i++) {
        sigdelset(open, forwarded[i]);
    }
}

static int send_hello(struct attached *attached, bool take, struct gd_err *err)
{
    static const int terminal[] = {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO};
    char text[RESIDENT_MESSAGE_MAX + 1];
    struct resident_hello hello;
    bool view = attached->view != NULL;

    fill_hello(&hello, view, take);
    if (!resident_send_hello(attached->fd, &hello, terminal, view ? 0 : RESIDENT_FDS) ||
        resident_receive(attached->fd, text, sizeof(text), RESIDENT_PATIENCE_MS) == 0) {
        return gd_fail(err, GD_ELOST, "the session does not answer");
    }
    if (text[0] == RESIDENT_BUSY) {
        return gd_fail(err, GD_ESTATE, "the session is on %s: use --take to take it from there",
                       text + 1);
    }
    return text[0] == RESIDENT_OK ? GD_OK : gd_fail(err, GD_EIO, "%s", text + 1);
}

static int attach_at(const char *path, bool read_only, bool take, struct gd_err *err)
{
    struct attached attached = {.fd = resident_connect(path)};
    sigset_t before;

    if (attached.fd < 0) {
        return gd_fail(err, GD_EIO, "%.200s: %s", path, strerror(errno));
    }
    if (read_only) {
        setlocale(LC_CTYPE, "");
        attached.view = resident_view_new();
        if (!attached.view) {
            close(attached.fd);
            return gd_fail_nomem(err);
        }
    }
    attached.have_saved = tcgetattr(STDIN_FILENO, &attached.saved) == 0;
    block_signals(&attached.open, &before);
    int rc = send_hello(&attached, take, err);
    if (rc == GD_OK) {
        rc = wait_for_release(&attached, err);
    }
    close(attached.fd);
    resident_view_free(attached.view);
    restore_modes(&attached);
    sigprocmask(SIG_SETMASK, &before, NULL);
    return rc;
}

/* ---- choosing a session ---- */

static int choose_session(const char *name, struct resident_found *all, size_t count,
                          struct resident_found **ret, struct gd_err *err)
{
    size_t fits = 0;

    for (size_t i = 0; i < count; i++) {
        if (!name || strcmp(resident_found_text(&all[i], "name"), name) == 0) {
            *ret = &all[i];
            fits++;
        }
    }
    if (fits > 1) {
        for (size_t i = 0; i < count; i++) {
            resident_print_found(stderr, &all[i]);
        }
        return gd_fail(err, GD_EAMBIGUOUS, "%zu sessions are running: gradb attach NAME", fits);
    }
    if (fits == 0 && name) {
        return gd_fail(err, GD_ENOTFOUND, "no session is named \"%.80s\": see \"gradb sessions\"",
                       name);
    }
    return fits == 1 ? GD_OK : gd_fail(err, GD_ENOTFOUND, "no gradb session is running");
}

static bool confirm_takeover(const char *terminal)
{
    char line[64];

    printf("The session is on %s. Take it from there? (y or n) ", terminal);
    fflush(stdout);
    return fgets(line, sizeof(line), stdin) && (line[0] == 'y' || line[0] == 'Y');
}

int resident_attach(const char *name, bool read_only, bool take, struct gd_err *err)
{
    struct resident_found *all = NULL;
    struct resident_found *chosen = NULL;
    size_t count = 0;

    int rc = resident_find_all(&all, &count, err);
    if (rc == GD_OK) {
        rc = choose_session(name, all, count, &chosen, err);
    }
    if (rc == GD_OK && !read_only &&
        (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO) || !isatty(STDERR_FILENO))) {
        rc = gd_fail(err, GD_EINVAL, "attach needs a terminal, except with --read-only");
    }
    const char *terminal = rc == GD_OK ? resident_found_text(chosen, "terminal") : "";
    if (rc == GD_OK && !read_only && !take && terminal[0] != '\0') {
        take = confirm_takeover(terminal);
        rc = take ? GD_OK : gd_fail(err, GD_EINTR, "not attached");
    }
    if (rc == GD_OK) {
        rc = attach_at(chosen->path, read_only, take, err);
    }
    resident_forget_all(all, count);
    return rc;
}
