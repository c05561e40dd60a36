// SPDX-License-Identifier: GPL-3.0-or-later
/* The side of the new terminal: gradb sessions, gradb attach. */
#include "resident.h"
#include "resident_wire.h"

#include <cjson/cJSON.h>
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#define MAX_SESSIONS 256
#define PATIENCE_MS  5000

struct found {
    char path[sizeof(((struct sockaddr_un *)NULL)->sun_path)];
    cJSON *facts;
};

static int check_directory(const char *path, struct gd_err *err)
{
    struct stat st;

    if (mkdir(path, 0700) != 0 && errno != EEXIST) {
        return gd_fail(err, GD_ENOTFOUND, "%.300s cannot be made: %s", path, strerror(errno));
    }
    if (lstat(path, &st) != 0 || !S_ISDIR(st.st_mode) || st.st_uid != geteuid() ||
        (st.st_mode & 077) != 0) {
        return gd_fail(err, GD_EIO, "%.300s must be a directory of yours alone (mode 0700)", path);
    }
    return GD_OK;
}

int resident_directory(char *path, size_t size, struct gd_err *err)
{
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    char usual[64];
    int len;

    snprintf(usual, sizeof(usual), "/run/user/%ld", (long)geteuid());
    if (runtime != NULL && runtime[0] == '/') {
        len = snprintf(path, size, "%s/gradb", runtime);
    } else if (access(usual, W_OK) == 0) {
        len = snprintf(path, size, "%s/gradb", usual);
    } else {
        len = snprintf(path, size, "/tmp/gradb-%ld", (long)geteuid());
    }
    if (len < 0 || (size_t)len >= size) {
        return gd_fail(err, GD_ELIMIT, "XDG_RUNTIME_DIR is too long for a socket in it");
    }
    return check_directory(path, err);
}

static int connect_to(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

    memcpy(address.sun_path, path, strlen(path) + 1);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0) {
        int code = errno;
        close(fd);
        errno = code;
        return -1;
    }
    return fd;
}

static bool greet(int fd, const struct resident_hello *hello, bool with_terminal)
{
    union {
        char bytes[CMSG_SPACE(3 * sizeof(int))];
        struct cmsghdr align;
    } control = {.bytes = {0}};
    struct iovec io = {.iov_base = (void *)(uintptr_t)hello, .iov_len = sizeof(*hello)};
    struct msghdr message = {.msg_iov = &io, .msg_iovlen = 1};

    if (with_terminal) {
        const int fds[3] = {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO};
        message.msg_control = control.bytes;
        message.msg_controllen = sizeof(control.bytes);
        struct cmsghdr *head = CMSG_FIRSTHDR(&message);
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN(sizeof(fds));
        memcpy(CMSG_DATA(head), fds, sizeof(fds));
    }
    return sendmsg(fd, &message, MSG_NOSIGNAL) == (ssize_t)sizeof(*hello);
}

/* One message; its length, 0 when the session went or does not answer in time. */
static size_t receive(int fd, char *text, size_t size, int milliseconds)
{
    struct pollfd wait = {.fd = fd, .events = POLLIN};

    if (poll(&wait, 1, milliseconds) != 1) {
        return 0;
    }
    ssize_t got = recv(fd, text, size - 1, 0);
    text[got > 0 ? got : 0] = '\0';
    return got > 0 ? (size_t)got : 0;
}

static cJSON *facts_of(const char *path)
{
    struct resident_hello hello = {.version = RESIDENT_VERSION, .wish = RESIDENT_STATUS};
    char text[RESIDENT_MESSAGE_MAX + 1];
    cJSON *facts = NULL;
    int fd = connect_to(path);

    if (fd < 0) {
        if (errno == ECONNREFUSED) { /* whoever made it is gone */
            unlink(path);
        }
        return NULL;
    }
    if (greet(fd, &hello, false) && receive(fd, text, sizeof(text), PATIENCE_MS) > 1 &&
        text[0] == RESIDENT_FACTS) {
        facts = cJSON_Parse(text + 1);
    }
    close(fd);
    return facts;
}

static size_t find_all(struct found *all, size_t room, struct gd_err *err)
{
    char directory[80];
    size_t count = 0;

    if (resident_directory(directory, sizeof(directory), err) != GD_OK) {
        return 0;
    }
    DIR *dir = opendir(directory);
    for (struct dirent *e = dir != NULL ? readdir(dir) : NULL; e != NULL && count < room;
         e = readdir(dir)) {
        size_t len = strlen(e->d_name);
        struct found *found = &all[count];
        int used = snprintf(found->path, sizeof(found->path), "%s/%.200s", directory, e->d_name);
        if (len < 6 || strcmp(e->d_name + len - 5, ".sock") != 0 ||
            (size_t)used >= sizeof(found->path)) {
            continue;
        }
        found->facts = facts_of(found->path);
        count += found->facts != NULL;
    }
    if (dir != NULL) {
        closedir(dir);
    }
    return count;
}

static void forget_all(struct found *all, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        cJSON_Delete(all[i].facts);
    }
    free(all);
}

static const char *text_of(const struct found *found, const char *name)
{
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItem(found->facts, name));
    return text != NULL ? text : "";
}

static double number_of(const struct found *found, const char *name)
{
    const cJSON *item = cJSON_GetObjectItem(found->facts, name);
    return cJSON_IsNumber(item) ? item->valuedouble : 0;
}

static void print_found(FILE *out, const struct found *found)
{
    time_t since = (time_t)number_of(found, "since");
    struct tm when;
    char text[32] = "";

    if (localtime_r(&since, &when) != NULL) {
        strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &when);
    }
    const char *terminal = text_of(found, "terminal");
    fprintf(out, "%-20s %8.0f  %s  %-20s %-9s step %-8.0f %s\n", text_of(found, "name"),
            number_of(found, "pid"), text, text_of(found, "program"), text_of(found, "state"),
            number_of(found, "step"), terminal[0] != '\0' ? terminal : "no terminal");
}

int resident_list(bool json, struct gd_err *err)
{
    struct found *all = calloc(MAX_SESSIONS, sizeof(*all));
    struct gd_err local = {.code = GD_OK};

    if (all == NULL) {
        return gd_fail(err, GD_ENOMEM, "out of memory");
    }
    size_t count = find_all(all, MAX_SESSIONS, &local);
    for (size_t i = 0; i < count; i++) {
        char *text = json ? cJSON_PrintUnformatted(all[i].facts) : NULL;
        if (text != NULL) {
            puts(text);
        } else {
            print_found(stdout, &all[i]);
        }
        free(text);
    }
    if (count == 0 && local.code == GD_OK && !json) {
        puts("No session. Each gradb on a terminal is one, and stays when its terminal goes.");
    }
    forget_all(all, count);
    return local.code == GD_OK ? GD_OK : gd_fail(err, local.code, "%s", local.text);
}

/* ---- attach ---- */

static volatile sig_atomic_t signalled[65];

static void on_signal(int number)
{
    signalled[number] = 1;
}

static const int forwarded[] = {SIGWINCH, SIGINT, SIGTSTP, SIGTERM, SIGHUP};

static int choose(const char *name, struct found *all, size_t count, struct found **ret,
                  struct gd_err *err)
{
    struct found *chosen = NULL;
    size_t fits = 0;

    for (size_t i = 0; i < count; i++) {
        if (name == NULL || strcmp(text_of(&all[i], "name"), name) == 0) {
            chosen = &all[i];
            fits++;
        }
    }
    if (fits > 1) {
        for (size_t i = 0; i < count; i++) {
            print_found(stderr, &all[i]);
        }
        return gd_fail(err, GD_EAMBIGUOUS, "there are %zu sessions: gradb attach NAME", fits);
    }
    if (fits == 0) {
        return name != NULL ? gd_fail(err, GD_ENOTFOUND,
                                      "no session has the name \"%.80s\": gradb sessions lists "
                                      "them",
                                      name)
                            : gd_fail(err, GD_ENOTFOUND,
                                      "there is no session: each gradb on a terminal is one");
    }
    *ret = chosen;
    return GD_OK;
}

static void fill_hello(struct resident_hello *hello, bool read_only, bool take)
{
    const char *locale = getenv("LC_ALL");
    const char *term = getenv("TERM");
    const char *terminal = ttyname(STDIN_FILENO);

    if (locale == NULL || locale[0] == '\0') {
        locale = getenv("LC_CTYPE");
    }
    if (locale == NULL || locale[0] == '\0') {
        locale = getenv("LANG");
    }
    *hello = (struct resident_hello){.version = RESIDENT_VERSION,
                                     .wish = read_only ? RESIDENT_VIEW : RESIDENT_ATTACH,
                                     .take = take};
    snprintf(hello->term, sizeof(hello->term), "%s", term != NULL ? term : "dumb");
    snprintf(hello->locale, sizeof(hello->locale), "%s", locale != NULL ? locale : "C");
    snprintf(hello->terminal, sizeof(hello->terminal), "%s", terminal != NULL ? terminal : "");
}

static bool says_yes(const char *terminal)
{
    char line[64];

    printf("The session is on %s: take it over? (y or n) ", terminal);
    fflush(stdout);
    return fgets(line, sizeof(line), stdin) != NULL && (line[0] == 'y' || line[0] == 'Y');
}

/* Ctrl-Z: the shell gets the terminal as it was, and back it is as the session had it. */
static void suspend(int fd, const struct termios *saved)
{
    struct termios now;
    char news = RESIDENT_CONTINUED;
    bool have = tcgetattr(STDIN_FILENO, &now) == 0;

    tcsetattr(STDIN_FILENO, TCSADRAIN, saved);
    raise(SIGSTOP);
    if (have) {
        tcsetattr(STDIN_FILENO, TCSADRAIN, &now);
    }
    send(fd, &news, 1, MSG_NOSIGNAL);
}

static void forward(int fd, const struct termios *saved)
{
    if (signalled[SIGWINCH]) {
        signalled[SIGWINCH] = 0;
        send(fd, &(char){RESIDENT_RESIZED}, 1, MSG_NOSIGNAL);
    }
    if (signalled[SIGINT]) {
        signalled[SIGINT] = 0;
        send(fd, &(char){RESIDENT_INTERRUPTED}, 1, MSG_NOSIGNAL);
    }
    if (signalled[SIGTSTP]) {
        signalled[SIGTSTP] = 0;
        suspend(fd, saved);
    }
}

/* Until the session lets go. Signals are let in only while it waits. */
static void stay(int fd, const struct termios *saved, const sigset_t *open, bool read_only)
{
    char text[RESIDENT_MESSAGE_MAX + 1];

    while (!signalled[SIGTERM] && !signalled[SIGHUP] && !(read_only && signalled[SIGINT])) {
        struct pollfd wait = {.fd = fd, .events = POLLIN};
        int ready = ppoll(&wait, 1, NULL, open);
        forward(fd, saved);
        if (ready != 1) {
            continue;
        }
        ssize_t got = recv(fd, text, sizeof(text) - 1, 0);
        if (got <= 0) {
            return; /* the session ended */
        }
        text[got] = '\0';
        if (text[0] == RESIDENT_LINES) {
            fwrite(text + 1, 1, (size_t)got - 1, stdout);
            fflush(stdout);
        } else if (text[0] == RESIDENT_LET_GO) {
            tcsetattr(STDIN_FILENO, TCSADRAIN, saved);
            printf("%s\n", text + 1);
            return;
        }
    }
}

static int attach_at(const char *path, bool read_only, bool take, struct gd_err *err)
{
    char text[RESIDENT_MESSAGE_MAX + 1];
    struct resident_hello hello;
    struct termios saved;
    sigset_t closed, open;
    int fd = connect_to(path);

    if (fd < 0) {
        return gd_fail(err, GD_EIO, "%.200s: %s", path, strerror(errno));
    }
    bool have = tcgetattr(STDIN_FILENO, &saved) == 0;
    fill_hello(&hello, read_only, take);
    sigemptyset(&closed);
    for (size_t i = 0; i < sizeof(forwarded) / sizeof(forwarded[0]); i++) {
        sigaddset(&closed, forwarded[i]);
    }
    sigprocmask(SIG_BLOCK, &closed, &open);
    for (size_t i = 0; i < sizeof(forwarded) / sizeof(forwarded[0]); i++) {
        sigdelset(&open, forwarded[i]);
        struct sigaction action = {.sa_handler = on_signal};
        sigaction(forwarded[i], &action, NULL);
    }
    int rc = GD_OK;
    if (!greet(fd, &hello, !read_only) || receive(fd, text, sizeof(text), PATIENCE_MS) == 0) {
        rc = gd_fail(err, GD_ELOST, "the session does not answer");
    } else if (text[0] == RESIDENT_BUSY) {
        rc = gd_fail(err, GD_ESTATE, "%s", text + 1);
    } else if (text[0] != RESIDENT_OK) {
        rc = gd_fail(err, GD_EIO, "%s", text + 1);
    } else {
        stay(fd, &saved, &open, read_only);
    }
    close(fd);
    if (have) {
        tcsetattr(STDIN_FILENO, TCSADRAIN, &saved);
    }
    sigprocmask(SIG_UNBLOCK, &closed, NULL);
    return rc;
}

int resident_attach(const char *name, bool read_only, bool take, struct gd_err *err)
{
    struct found *all = calloc(MAX_SESSIONS, sizeof(*all));
    struct found *chosen = NULL;

    if (all == NULL) {
        return gd_fail(err, GD_ENOMEM, "out of memory");
    }
    err->code = GD_OK;
    size_t count = find_all(all, MAX_SESSIONS, err);
    int rc = err->code != GD_OK ? err->code : choose(name, all, count, &chosen, err);
    if (rc == GD_OK && !read_only && (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))) {
        rc = gd_fail(err, GD_EINVAL, "attach needs a terminal; --read-only does not");
    }
    if (rc == GD_OK && !read_only && !take && text_of(chosen, "terminal")[0] != '\0') {
        take = says_yes(text_of(chosen, "terminal"));
        rc = take ? GD_OK : gd_fail(err, GD_EINTR, "the session stays where it is");
    }
    if (rc == GD_OK) {
        rc = attach_at(chosen->path, read_only, take, err);
    }
    forget_all(all, count);
    return rc;
}
