// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Shell patterns over plain bytes: '*' any run (slashes too), '?' any byte, [abc], [a-z], [!a] or
 * [^a]; a backslash quotes the next byte. Not fnmatch(3), which depends on the locale and, in some
 * versions, takes exponential time: node names come from outside and may be any bytes. Time is at
 * most pattern times text.
 */
#ifndef GD_ENGINE_GLOB_H
#define GD_ENGINE_GLOB_H

#include <stdbool.h>

bool gd_glob_match(const char *pattern, const char *text, bool ignore_case);
/* Whether it contains any of * ? [. */
bool gd_glob_is_pattern(const char *text);

#endif
