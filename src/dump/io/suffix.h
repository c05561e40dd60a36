// SPDX-License-Identifier: GPL-3.0-or-later
/* Name endings, by which formats are recognised. */
#ifndef GD_DUMP_SUFFIX_H
#define GD_DUMP_SUFFIX_H

#include <stdbool.h>
#include <string.h>

/* Also true if the text is nothing but the ending. */
static inline bool gd_ends_with(const char *text, const char *end)
{
    size_t len = strlen(text), size = strlen(end);

    return len >= size && strcmp(text + len - size, end) == 0;
}

#endif
