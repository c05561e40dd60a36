// SPDX-License-Identifier: GPL-3.0-or-later
/* The sessions that there are, as `gradb sessions` and `gradb attach` find them. */
#ifndef GD_RESIDENT_LIST_H
#define GD_RESIDENT_LIST_H

#include <cjson/cJSON.h>
#include <stdio.h>
#include <sys/un.h>

#include "base/error.h"

#define RESIDENT_PATIENCE_MS 5000 /* that a session may take to answer */

struct resident_found {
    char path[sizeof(((struct sockaddr_un *)NULL)->sun_path)];
    cJSON *facts;
};

/* All that answer; *ret is to be given to resident_forget_all. Sockets of
 * sessions that have ended are removed, with one line on stderr for all. GD_EIO: the directory is
 * not to be trusted; GD_ENOMEM. */
int resident_find_all(struct resident_found **ret, size_t *count, struct gd_err *err);
void resident_forget_all(struct resident_found *all, size_t count);
/* "" it is not told. */
const char *resident_found_text(const struct resident_found *found, const char *name);
void resident_print_found(FILE *out, const struct resident_found *found);

/* -1 and errno: ECONNREFUSED (its process is gone), EPERM (it is none of ours), ... */
int resident_connect(const char *path);
/* One message and a zero behind it; its length, 0 when the session went or does not answer in time.
 */
size_t resident_receive(int fd, char *text, size_t size, int milliseconds);

#endif
