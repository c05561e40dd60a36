// SPDX-License-Identifier: GPL-3.0-or-later
#include "drive/serve_io.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

bool serve_io_take(int fds[2])
{
    int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);

    fds[0] = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
    fds[1] = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    bool taken = nothing >= 0 && fds[0] >= 0 && fds[1] >= 0 && dup2(nothing, STDIN_FILENO) >= 0 &&
                 dup2(STDERR_FILENO, STDOUT_FILENO) >= 0;
    if (nothing >= 0) {
        close(nothing);
    }
    return taken;
}

bool serve_io_write(int fd, const char *bytes, size_t len)
{
    while (len > 0) {
        ssize_t wrote = write(fd, bytes, len);
        if (wrote >= 0) {
            bytes += wrote;
            len -= (size_t)wrote;
        } else if (errno == EAGAIN) { /* another process may share the descriptor and set this */
            poll(&(struct pollfd){.fd = fd, .events = POLLOUT}, 1, -1);
        } else if (errno != EINTR) {
            return false;
        }
    }
    return true;
}
