// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/graph/similar.h"

#include <ctype.h>
#include <stdint.h>
#include <string.h>

static bool same_letter(char a, char b)
{
    return tolower((unsigned char)a) == tolower((unsigned char)b);
}

static size_t least_of(size_t a, size_t b)
{
    return a < b ? a : b;
}

size_t gd_similar_within(const char *a, size_t a_len, const char *b, size_t b_len, size_t limit)
{
    size_t row[3][GD_SIMILAR_LONGEST + 1]; /* of the last three letters of a */

    if (a_len > GD_SIMILAR_LONGEST || b_len > GD_SIMILAR_LONGEST) {
        return SIZE_MAX;
    }
    for (size_t j = 0; j <= b_len; j++) {
        row[0][j] = j;
    }
    for (size_t i = 1; i <= a_len; i++) {
        size_t *now = row[i % 3], best = i;
        const size_t *before = row[(i + 2) % 3], *before2 = row[(i + 1) % 3];
        now[0] = i;
        for (size_t j = 1; j <= b_len; j++) {
            now[j] = before[j - 1] + !same_letter(a[i - 1], b[j - 1]);
            now[j] = least_of(now[j], least_of(before[j], now[j - 1]) + 1);
            if (i > 1 && j > 1 && same_letter(a[i - 1], b[j - 2]) &&
                same_letter(a[i - 2], b[j - 1])) {
                now[j] = least_of(now[j], before2[j - 2] + 1);
            }
            best = least_of(best, now[j]);
        }
        /* The previous row is at the limit or above, so a swap from there is, too. */
        if (best > limit) {
            return limit + 1;
        }
    }
    size_t distance = row[a_len % 3][b_len];
    return distance > limit ? limit + 1 : distance;
}

size_t gd_similar_suggestion(const char *a, size_t a_len, const char *b, size_t b_len, size_t limit)
{
    size_t same = 0;

    while (same < a_len && same < b_len && same_letter(a[same], b[same])) {
        same++;
    }
    return same == a_len && a_len >= 2 ? 0 : gd_similar_within(a, a_len, b, b_len, limit);
}

size_t gd_similar_distance(const char *a, const char *b)
{
    return gd_similar_within(a, strlen(a), b, strlen(b), SIZE_MAX - 1);
}

bool gd_similar_slip(const char *typed, const char *name)
{
    size_t len = strlen(typed);

    return len >= 3 && gd_similar_distance(typed, name) <= (len < 8 ? 1 : len / 4);
}

bool gd_similar_meant(const char *typed, const char *name)
{
    return gd_similar_suggestion(typed, strlen(typed), name, strlen(name), 0) == 0 ||
           gd_similar_slip(typed, name);
}
