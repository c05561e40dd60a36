// SPDX-License-Identifier: GPL-3.0-or-later
/* Parts of file names, by which formats are recognised. */
#ifndef GD_DUMP_FILE_NAME_H
#define GD_DUMP_FILE_NAME_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Also true if the text is nothing but the ending. */
static inline bool gd_ends_with(const char *text, const char *end)
{
    size_t len = strlen(text), size = strlen(end);

    return len >= size && strcmp(text + len - size, end) == 0;
}

static inline bool gd_starts_with(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

/* The last component of a path. */
static inline const char *gd_base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

/* Writes the path without its last component: "." if there is nothing before it. */
static inline void gd_folder_of(const char *path, char *out, size_t size)
{
    const char *base = gd_base_name(path);
    int len = (int)(base - path) - 1;

    snprintf(out, size, "%.*s", len < 0 ? 1 : len, len < 0 ? "." : path);
}

#endif
