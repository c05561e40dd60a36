// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Shell patterns over plain bytes: '*' any run (slashes too), '?' any byte, [abc], [a-z], [!a] or
 * [^a]; a backslash takes the next byte as it stands. Time is at most pattern times text.
 */
#ifndef GD_ENGINE_GLOB_H
#define GD_ENGINE_GLOB_H

#include <stdbool.h>

bool gd_glob_match(const char *pattern, const char *text, bool ignore_case);
/* Has any of * ? [ in it. */
bool gd_glob_is_pattern(const char *text);

#endif
