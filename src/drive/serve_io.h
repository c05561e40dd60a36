// SPDX-License-Identifier: GPL-3.0-or-later
/* Stdin and stdout for a protocol alone: nothing else that the process or its children print may
 * get between the messages. */
#ifndef GD_DRIVE_SERVE_IO_H
#define GD_DRIVE_SERVE_IO_H

#include <stdbool.h>
#include <stddef.h>

/* fds: copies of stdin and stdout for the protocol, not inherited by programs. Afterwards stdin is
 * empty, and stdout is stderr. Call it once, before anything is printed. */
bool serve_io_take(int fds[2]);
/* Writes all of it, also to a descriptor that does not block. False: the peer is gone. */
bool serve_io_write(int fd, const char *bytes, size_t len);

#endif
