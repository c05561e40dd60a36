// SPDX-License-Identifier: GPL-3.0-or-later
/* Finds the running sessions, for `gradb sessions` and `gradb attach`. */
#ifndef GD_RESIDENT_LIST_H
#define GD_RESIDENT_LIST_H

#include <cjson/cJSON.h>
#include <stdio.h>
#include <sys/un.h>

#include "base/error.h"

#define RESIDENT_PATIENCE_MS 5000 /* time that a session has to answer */

struct resident_found {
    char path[sizeof(((struct sockaddr_un *)NULL)->sun_path)];
    cJSON *facts;
};

/* All sessions that answer; free *ret with resident_forget_all. Removes sockets of dead sessions
 * and says so in one line on stderr. Returns GD_EIO (the directory cannot be trusted) or
 * GD_ENOMEM. */
int resident_find_all(struct resident_found **ret, size_t *count, struct gd_err *err);
void resident_forget_all(struct resident_found *all, size_t count);
/* "": unknown. */
const char *resident_found_text(const struct resident_found *found, const char *name);
void resident_print_found(FILE *out, const struct resident_found *found);

/* Returns -1 with errno: ECONNREFUSED (its process is gone), EPERM (of another user), ... */
int resident_connect(const char *path);
/* Receives one message, NUL-terminated. Returns its length; 0: closed, or no answer in time. */
size_t resident_receive(int fd, char *text, size_t size, int milliseconds);

#endif
