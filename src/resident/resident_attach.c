// SPDX-License-Identifier: GPL-3.0-or-later
/* The side of the new terminal: gradb attach. */
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
    struct termios saved;       /* as the shell had it */
    sigset_t open;              /* what is let in while it waits */
    bool stopping;              /* Ctrl-Z: the session was asked to leave the screen */
    struct resident_view *view; /* NULL: the terminal is handed over */
};

static volatile sig_atomic_t signalled[65];

static void on_signal(int number)
{
    signalled[number] = 1;
}

static bool take_signal(int number)
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

/* The shell gets its terminal; back from there the session draws anew. */
static void stop_here(struct attached *attached)
{
    attached->stopping = false;
    restore_modes(attached);
    raise(SIGSTOP);
    send_news(attached, RESIDENT_CONTINUED);
}

/* What the signals that came ask for. */
static void forward(struct attached *attached)
{
    if (take_signal(SIGWINCH)) {
        send_news(attached, RESIDENT_RESIZED);
        if (attached->view) {
            resident_view_resize(attached->view);
        }
    }
    if (!attached->view && take_signal(SIGINT)) {
        send_news(attached, RESIDENT_INTERRUPTED);
    }
    if (take_signal(SIGTSTP)) {
        if (attached->view) {
            resident_view_leave(attached->view);
            stop_here(attached);
            resident_view_take(attached->view, RESIDENT_SHOW, "", 0);
        } else if (!attached->stopping) {
            attached->stopping = true;
            send_news(attached, RESIDENT_STOPS);
        }
    }
}

/* Its process died without a word: the terminal is as it left it. */
static int died(const struct attached *attached, struct gd_err *err)
{
    char restore[256];

    if (!attached->view) {
        draw_restore_foreign(restore, sizeof(restore));
        fputs(restore, stdout);
        fflush(stdout);
    }
    return gd_fail(err, GD_ELOST, "the session is gone: its process ended without a word");
}

/* True: it is over, *rc says how. */
static bool on_message(struct attached *attached, int *rc, struct gd_err *err)
{
    char text[RESIDENT_MESSAGE_MAX + 1];
    size_t got = resident_receive(attached->fd, text, sizeof(text), 0);

    if (got == 0) {
        *rc = died(attached, err);
        return true;
    }
    switch (text[0]) {
    case RESIDENT_LET_GO:
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
            stop_here(attached);
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

/* Until the session lets go. Signals are let in only while it waits. */
static int stay(struct attached *attached, struct gd_err *err)
{
    const struct timespec patience = {.tv_sec = RESIDENT_PATIENCE_MS / 1000};
    bool typed = attached->view && isatty(STDIN_FILENO);
    int rc = GD_OK;

    while (!is_to_end(attached)) {
        struct pollfd wait[2] = {{.fd = attached->fd, .events = POLLIN},
                                 {.fd = typed ? STDIN_FILENO : -1, .events = POLLIN}};
        int ready = ppoll(wait, 2, attached->stopping ? &patience : NULL, &attached->open);
        if (ready == 0 && attached->stopping) {
            stop_here(attached); /* it does not answer; the shell shall */
        }
        forward(attached);
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

/* ---- the way in ---- */

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
                                     .wish = read_only ? RESIDENT_VIEW : RESIDENT_ATTACH,
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

/* They are held back until stay waits for them. */
static void take_signals(sigset_t *open, sigset_t *before)
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

static int knock(struct attached *attached, bool take, struct gd_err *err)
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
        return gd_fail(err, GD_ESTATE, "it is on %s: --take takes it over", text + 1);
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
            return gd_fail(err, GD_ENOMEM, "out of memory");
        }
    }
    attached.have_saved = tcgetattr(STDIN_FILENO, &attached.saved) == 0;
    take_signals(&attached.open, &before);
    int rc = knock(&attached, take, err);
    if (rc == GD_OK) {
        rc = stay(&attached, err);
    }
    close(attached.fd);
    resident_view_free(attached.view);
    restore_modes(&attached);
    sigprocmask(SIG_SETMASK, &before, NULL);
    return rc;
}

/* ---- which one ---- */

static int choose(const char *name, struct resident_found *all, size_t count,
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
        return gd_fail(err, GD_EAMBIGUOUS, "there are %zu sessions: gradb attach NAME", fits);
    }
    if (fits == 0 && name) {
        return gd_fail(err, GD_ENOTFOUND,
                       "no session has the name \"%.80s\": gradb sessions lists them", name);
    }
    return fits == 1
               ? GD_OK
               : gd_fail(err, GD_ENOTFOUND, "there is no session: each gradb on a terminal is one");
}

static bool says_yes(const char *terminal)
{
    char line[64];

    printf("The session is on %s: take it over? (y or n) ", terminal);
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
        rc = choose(name, all, count, &chosen, err);
    }
    if (rc == GD_OK && !read_only &&
        (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO) || !isatty(STDERR_FILENO))) {
        rc = gd_fail(err, GD_EINVAL, "attach needs a terminal; --read-only does not");
    }
    const char *terminal = rc == GD_OK ? resident_found_text(chosen, "terminal") : "";
    if (rc == GD_OK && !read_only && !take && terminal[0] != '\0') {
        take = says_yes(terminal);
        rc = take ? GD_OK : gd_fail(err, GD_EINTR, "the session stays where it is");
    }
    if (rc == GD_OK) {
        rc = attach_at(chosen->path, read_only, take, err);
    }
    resident_forget_all(all, count);
    return rc;
}
