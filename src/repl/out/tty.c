// SPDX-License-Identifier: GPL-3.0-or-later
#include "repl/out/tty.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

/* What it has now. TTY_GONE also when it is readable but empty: an end of input, or input that was
 * just discarded. */
static enum tty_input look_once(int fd)
{
    struct pollfd look = {.fd = fd, .events = POLLIN};
    int waiting = 0;

    if (poll(&look, 1, 0) <= 0) {
        return TTY_NOTHING;
    }
    if (look.revents & (POLLHUP | POLLERR | POLLNVAL)) {
        return TTY_GONE;
    }
    return ioctl(fd, FIONREAD, &waiting) == 0 && waiting > 0 ? TTY_BYTES : TTY_GONE;
}

enum tty_input tty_look(int fd)
{
    enum tty_input found = look_once(fd);

    return found == TTY_GONE ? look_once(fd) : found; /* an end of input stays one */
}

static int open_to_write(const char *name)
{
    return open(name, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

int tty_open_again(int fd)
{
    struct stat wanted, got;
    char name[256];

    if (ttyname_r(fd, name, sizeof(name)) == 0 && fstat(fd, &wanted) == 0) {
        int again = open_to_write(name);
        if (again >= 0 && fstat(again, &got) == 0 && got.st_rdev == wanted.st_rdev) {
            return again;
        }
        if (again >= 0) {
            close(again);
        }
    }
    /* Its name may belong to another user (su) or not exist here (a container). */
    return tcgetsid(fd) >= 0 ? open_to_write("/dev/tty") : -1;
}

bool tty_flow_take(int fd)
{
    struct termios now;

    if (tcgetattr(fd, &now) != 0 || (now.c_iflag & IXON) == 0) {
        return false;
    }
    now.c_iflag &= ~(tcflag_t)IXON;
    return tcsetattr(fd, TCSANOW, &now) == 0; /* without waiting for queued output */
}

void tty_flow_give(int fd)
{
    struct termios now;

    if (tcgetattr(fd, &now) == 0) {
        now.c_iflag |= IXON;
        tcsetattr(fd, TCSANOW, &now);
    }
}
