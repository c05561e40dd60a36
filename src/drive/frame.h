// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Messages of the Debug Adapter Protocol on a byte stream: header lines, of which Content-Length
 * counts, an empty line, and that many bytes of JSON. Received bytes are not trusted.
 */
#ifndef GD_DRIVE_FRAME_H
#define GD_DRIVE_FRAME_H

#include "base/buf.h"
#include "base/error.h"

#define FRAME_MOST_BYTES  ((size_t)16 << 20) /* of a message */
#define FRAME_MOST_HEADER ((size_t)4096)     /* of its header */

struct frames {
    struct gd_buf input; /* not taken yet */
    size_t used;         /* of the message that was given last */
    bool broken;         /* the stream cannot be followed any more */
};

void frames_init(struct frames *frames);
void frames_deinit(struct frames *frames);
/* GD_ENOMEM. */
int frames_add(struct frames *frames, const void *bytes, size_t len);
/* The next whole message, valid until the next call; *text is NULL when there is none yet.
 * GD_EPROTO, GD_ELIMIT: the header is wrong or too long, or the message is too large; after that
 * the stream is broken, and there are no more messages. */
int frames_next(struct frames *frames, const char **text, size_t *len, struct gd_err *err);

#endif
