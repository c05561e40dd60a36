// SPDX-License-Identifier: MIT
/*
 * Scope-exit cleanup: a variable declared with GD_CLEANUP(fn) is passed to `fn` (by address) when
 * its scope ends, however it ends. Initialise it in the declaration. To hand the resource to
 * somebody else, copy it and set the variable to NULL (-1 for a descriptor).
 *
 *     GD_CLEANUP(gd_cleanup_file) FILE *file = fopen(path, "r");
 *     GD_CLEANUP(gd_cleanup_free) char *line = NULL;
 *     GD_CLEANUP(gd_buf_deinit) struct gd_buf text = GD_BUF_INIT(SIZE_MAX);
 *
 * Not for files that were written: the result of fclose() says whether the data was written.
 */
#ifndef GD_BASE_CLEANUP_H
#define GD_BASE_CLEANUP_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define GD_CLEANUP(fn) __attribute__((cleanup(fn)))

/* `at`: the address of a pointer of any type that malloc() returned, or that is NULL. */
static inline void gd_cleanup_free(void *at)
{
    void *memory;

    memcpy(&memory, at, sizeof(memory));
    free(memory);
}

static inline void gd_cleanup_file(FILE **at)
{
    if (*at) {
        fclose(*at);
    }
}

static inline void gd_cleanup_fd(const int *at)
{
    if (*at >= 0) {
        close(*at);
    }
}

#endif
