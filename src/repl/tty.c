// SPDX-License-Identifier: GPL-3.0-or-later
#include "repl/tty.h"

#include <poll.h>
#include <sys/ioctl.h>

/* What it has now. TTY_GONE also where it is readable and yet has no byte: an end of input that was
 * typed, or bytes that were taken away just now. */
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

    return found == TTY_GONE ? look_once(fd) : found; /* an end stays one */
}
