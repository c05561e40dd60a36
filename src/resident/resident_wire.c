// SPDX-License-Identifier: GPL-3.0-or-later
#include "resident/resident_wire.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/owner.h"

#define MOST_FDS 32 /* received, so that surplus ones can be closed */

/* ---- addresses and peers ---- */

int resident_directory(char *path, size_t size, struct gd_err *err)
{
    int rc = gd_own_directory(path, size, err);
    return rc == GD_OK ? gd_own_directory_check(path, true, err) : rc;
}

bool resident_peer_is_ours(int fd, long *pid)
{
    struct gd_peer_owner owner = gd_owner_of_peer(fd);
    *pid = owner.pid;
    return owner.kind == GD_OWNER_OURS;
}

/* ---- messages ---- */

struct control {
    union {
        char bytes[CMSG_SPACE(MOST_FDS * sizeof(int))];
        struct cmsghdr align;
    };
};

static void close_all(const int *fds, int count)
{
    for (int i = 0; i < count; i++) {
        close(fds[i]);
    }
}

/* All descriptors that came with the message; the caller owns them. */
static int receive_fds(struct msghdr *message, int fds[MOST_FDS])
{
    int count = 0;

    for (struct cmsghdr *head = CMSG_FIRSTHDR(message); head; head = CMSG_NXTHDR(message, head)) {
        if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS) {
            continue;
        }
        size_t bytes = head->cmsg_len - CMSG_LEN(0);
        for (size_t at = 0; at + sizeof(int) <= bytes && count < MOST_FDS; at += sizeof(int)) {
            memcpy(&fds[count++], CMSG_DATA(head) + at, sizeof(int));
        }
    }
    return count;
}

static void terminate_strings(struct resident_hello *hello)
{
    hello->terminal[sizeof(hello->terminal) - 1] = '\0';
    hello->term[sizeof(hello->term) - 1] = '\0';
    hello->locale[sizeof(hello->locale) - 1] = '\0';
    hello->colorterm[sizeof(hello->colorterm) - 1] = '\0';
    hello->no_color[sizeof(hello->no_color) - 1] = '\0';
    for (char *p = hello->terminal; *p != '\0'; p++) { /* is shown on other terminals */
        *p = (unsigned char)*p < 0x20 || (unsigned char)*p > 0x7e ? '?' : *p;
    }
}

/* NULL: valid. */
static const char *find_fault(const struct resident_hello *hello, ssize_t len, int flags,
                              const int *fds, int count)
{
    int wanted = hello->request == RESIDENT_ATTACH ? RESIDENT_FDS : 0;

    if (len != (ssize_t)sizeof(*hello) || hello->version != RESIDENT_VERSION) {
        return "the session runs another release of gradb: attach with that release";
    }
    if ((flags & (MSG_TRUNC | MSG_CTRUNC)) != 0 || count != wanted) {
        return "the hello lacks its file descriptors";
    }
    if (hello->request < RESIDENT_STATUS || hello->request > RESIDENT_VIEW) {
        return "the hello has an unknown request";
    }
    for (int i = 0; i < count; i++) {
        if (!isatty(fds[i])) {
            return "a file descriptor in the hello is not a terminal";
        }
    }
    return NULL;
}

int resident_read_hello(int fd, struct resident_hello *hello, int fds[RESIDENT_FDS],
                        struct gd_err *err)
{
    struct control control;
    int all[MOST_FDS];

    *hello = (struct resident_hello){.version = 0};
    struct iovec io = {.iov_base = hello, .iov_len = sizeof(*hello)};
    struct msghdr message = {.msg_iov = &io,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof(control.bytes)};
    for (int i = 0; i < RESIDENT_FDS; i++) {
        fds[i] = -1;
    }
    ssize_t len = recvmsg(fd, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    if (len < 0) {
        return gd_fail_errno(err, GD_ELOST, "cannot read the hello");
    }
    int count = receive_fds(&message, all);
    if (len == 0 && count == 0) {
        return gd_fail(err, GD_ELOST, "the peer hung up");
    }
    const char *fault = find_fault(hello, len, message.msg_flags, all, count);
    if (fault) {
        close_all(all, count);
        *hello = (struct resident_hello){.version = 0};
        return gd_fail(err, GD_EPROTO, "%s", fault);
    }
    memcpy(fds, all, (size_t)count * sizeof(int));
    terminate_strings(hello);
    return GD_OK;
}

bool resident_send_hello(int fd, const struct resident_hello *hello, const int *fds, int count)
{
    struct control control;
    size_t bytes = (size_t)count * sizeof(int);
    struct iovec io = {.iov_base = (void *)(uintptr_t)hello, .iov_len = sizeof(*hello)};
    struct msghdr message = {.msg_iov = &io, .msg_iovlen = 1};

    memset(&control, 0, sizeof(control));
    if (count > 0) {
        message.msg_control = control.bytes;
        message.msg_controllen = CMSG_SPACE(bytes);
        struct cmsghdr *head = CMSG_FIRSTHDR(&message);
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN(bytes);
        memcpy(CMSG_DATA(head), fds, bytes);
    }
    return sendmsg(fd, &message, MSG_NOSIGNAL) == (ssize_t)sizeof(*hello);
}
