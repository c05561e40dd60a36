// SPDX-License-Identifier: GPL-3.0-or-later
#include "proto/ms/ms_version.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Up to four digits; false: none. */
static bool take_number(const char **at, int *ret)
{
    int digits = 0, value = 0;
    while (**at >= '0' && **at <= '9' && digits < 4) {
        value = value * 10 + (**at - '0');
        (*at)++;
        digits++;
    }
    *ret = value;
    return digits > 0;
}

static bool at_least(const struct gd_ms_version *version, int major, int minor, int patch)
{
    if (version->major != major) {
        return version->major > major;
    }
    if (version->minor != minor) {
        return version->minor > minor;
    }
    return version->patch >= patch;
}

void gd_ms_version_parse(const char *text, struct gd_ms_version *ret)
{
    memset(ret, 0, sizeof(*ret));
    const char *at = text;
    ret->known =
        take_number(&at, &ret->major) && *at == '.' && (at++, take_number(&at, &ret->minor));
    if (!ret->known) {
        ret->major = ret->minor = 0;
        /* An old client would ignore levels and answer with the value, so not using them works with
         * all. The newer parameter order and step count are more likely. */
        ret->counts_after_wait = true;
        ret->repeats_chunks = true;
        ret->average_wrong = true;
        return;
    }
    if (*at == '.') {
        at++;
        take_number(&at, &ret->patch); /* in "0a0", "0rc1" the leading number counts */
    }
    ret->has_levels = at_least(ret, 1, 5, 0);
    ret->stops_twice = !at_least(ret, 1, 3, 0);
    ret->stops_at_next_step = at_least(ret, 1, 3, 0) && !at_least(ret, 1, 6, 0);
    ret->counts_after_wait = at_least(ret, 1, 6, 0);
    ret->repeats_chunks = !at_least(ret, 1, 3, 0);
    ret->swaps_tolerances = !at_least(ret, 1, 6, 0);
    ret->average_wrong = at_least(ret, 1, 6, 0);
    ret->gpu_lacks_previous = at_least(ret, 1, 6, 1);
}

static enum gd_ms_match match_strict(const struct gd_ms_version *version, const char *spelled,
                                     char *text, size_t size)
{
    if (version->known && version->major == 2 && version->minor == 0) {
        return GD_MS_MATCH;
    }
    if (version->known && version->major == 2) {
        snprintf(text, size,
                 "MindSpore %s is newer than 2.0, which `ms-version-check strict` expects",
                 spelled);
        return GD_MS_MATCH_WARN;
    }
    snprintf(text, size,
             "MindSpore %s does not match 2.0, so it will send no graph (to accept it, set "
             "ms-version-check lenient before it connects)",
             version->known ? spelled : "of an unknown version");
    return GD_MS_MISMATCH;
}

enum gd_ms_match gd_ms_version_match(const struct gd_ms_version *version, const char *spelled,
                                     bool strict, char *text, size_t size)
{
    if (strict) {
        return match_strict(version, spelled, text, size);
    }
    if (!version->known) {
        if (*spelled) {
            snprintf(text, size, "\"%s\" is not a known MindSpore version; continuing as with 1.6",
                     spelled);
        } else {
            snprintf(
                text, size,
                "the training process reported no MindSpore version (1.0 does not); continuing");
        }
        return GD_MS_MATCH_WARN;
    }
    if (!at_least(version, 1, 1, 0) || at_least(version, 2, 4, 0)) {
        snprintf(text, size,
                 "MindSpore %s is outside the supported versions 1.1 to 2.3; continuing", spelled);
        return GD_MS_MATCH_WARN;
    }
    return GD_MS_MATCH;
}
