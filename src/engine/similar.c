// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/similar.h"

#include <ctype.h>
#include <stdint.h>
#include <string.h>

#define LONGEST 64

size_t gd_similar_distance(const char *a, const char *b)
{
    size_t a_len = strlen(a), b_len = strlen(b), row[LONGEST + 1];

    if (a_len >= LONGEST || b_len >= LONGEST)
        return SIZE_MAX;
    for (size_t j = 0; j <= b_len; j++)
        row[j] = j;
    for (size_t i = 1; i <= a_len; i++) {
        size_t corner = row[0]; /* of the row above, to the left */
        row[0] = i;
        for (size_t j = 1; j <= b_len; j++) {
            bool differ = tolower((unsigned char)a[i - 1]) != tolower((unsigned char)b[j - 1]);
            size_t best = corner + differ;
            corner = row[j];
            if (row[j] + 1 < best)
                best = row[j] + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            row[j] = best;
        }
    }
    return row[b_len];
}

bool gd_similar_slip(const char *typed, const char *name)
{
    size_t len = strlen(typed);

    return len >= 3 && gd_similar_distance(typed, name) <= (len < 8 ? 1 : len / 4);
}
