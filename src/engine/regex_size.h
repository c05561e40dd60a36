// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * How large a POSIX extended regular expression becomes inside regcomp(), which unrolls x+ and x{n}
 * by copying, nested ones into each other, without a limit: a short selector could take all memory.
 * Nested x* and x? can take it hours.
 */
#ifndef GD_ENGINE_REGEX_SIZE_H
#define GD_ENGINE_REGEX_SIZE_H

#include <stdbool.h>

/* Over 1024 bytes, over 1000 parts when unrolled, or over 12 repeats of what is repeated or in
 * parentheses. Errs on the side of too large. */
bool gd_regex_is_too_large(const char *text);

#endif
