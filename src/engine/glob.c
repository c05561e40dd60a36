// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/glob.h"

#include <string.h>

static unsigned char fold_case(char c, bool ignore_case)
{
    unsigned char u = (unsigned char)c;

    return ignore_case && u >= 'A' && u <= 'Z' ? (unsigned char)(u + ('a' - 'A')) : u;
}

/* Matches one byte against the set that starts after '['. *end gets the byte after ']'; NULL if the
 * set is not closed: then '[' is a plain byte. */
static bool match_set(const char *set, char c, bool ignore_case, const char **end)
{
    bool negate = *set == '!' || *set == '^';
    unsigned char want = fold_case(c, ignore_case);
    bool found = false;
    const char *at = set + negate;

    *end = NULL;
    do {
        unsigned char low = fold_case(*at, ignore_case);
        unsigned char high = low;

        if (!*at) {
            return false;
        }
        if (at[1] == '-' && at[2] && at[2] != ']') {
            high = fold_case(at[2], ignore_case);
            at += 2;
        }
        found = found || (want >= low && want <= high);
        at++;
    } while (*at != ']');
    *end = at + 1;
    return found != negate;
}

/* One step without a star: the pattern after the part that matched the byte, or NULL. */
static const char *match_one(const char *pattern, char c, bool ignore_case)
{
    const char *end;
    bool in_set;

    switch (*pattern) {
    case '\0': return NULL;
    case '?': return pattern + 1;
    case '[':
        in_set = match_set(pattern + 1, c, ignore_case, &end);
        if (end) {
            return in_set ? end : NULL;
        }
        break;
    case '\\':
        if (pattern[1]) {
            pattern++;
        }
        break;
    default: break;
    }
    return fold_case(*pattern, ignore_case) == fold_case(c, ignore_case) ? pattern + 1 : NULL;
}

bool gd_glob_match(const char *pattern, const char *text, bool ignore_case)
{
    const char *star = NULL;  /* after the last '*' seen, */
    const char *retry = NULL; /* and where in the text to try next from it */

    while (*text) {
        if (*pattern == '*') {
            star = ++pattern;
            retry = text;
            continue;
        }
        const char *next = match_one(pattern, *text, ignore_case);
        if (next) {
            pattern = next;
            text++;
        } else if (star) {
            pattern = star;
            text = ++retry;
        } else {
            return false;
        }
    }
    while (*pattern == '*') {
        pattern++;
    }
    return *pattern == '\0';
}

bool gd_glob_is_pattern(const char *text)
{
    return strpbrk(text, "*?[") != NULL;
}
