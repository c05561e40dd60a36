// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The differences between MindSpore releases. Takes the text of Metadata.ms_version and returns a
 * set of switches; no other code compares version numbers.
 */
#ifndef GD_PROTO_MS_VERSION_H
#define GD_PROTO_MS_VERSION_H

#include <stdbool.h>
#include <stddef.h>

struct gd_ms_version {
    bool known; /* the text was a version; 1.0.x sends none */
    int major, minor, patch;

    bool has_levels;         /* 1.5: a ViewCMD can request the base or statistics */
    bool stops_at_next_step; /* 1.3 to 1.5, GPU: a `step` stops before the first kernel of the next
                              */
    bool stops_twice;        /* 1.1, 1.2: node stepping also stops at the end of the step */
    bool counts_after_wait;  /* 1.6: cur_step still counts the step that just ended as open */
    bool repeats_chunks;     /* 1.1, 1.2: SendMultiGraphs sends the end of a large graph twice */
    bool swaps_tolerances;   /* to 1.5: reads the first parameter of "not changed" as atol */
    bool average_wrong; /* 1.6: for more than 10,000 elements, avg is that of the first chunk */
    bool gpu_lacks_previous; /* 1.6.1, GPU: no previous values, so no change conditions */
};

/* Never fails: for any other text, known = false and the behaviour that is safe with all
 * releases. */
void gd_ms_version_parse(const char *text, struct gd_ms_version *ret);

enum gd_ms_match {
    GD_MS_MATCH,
    GD_MS_MATCH_WARN, /* continues; the text says what to expect */
    GD_MS_MISMATCH,   /* only with strict: the client receives version_matched = false */
};

/* strict applies the rule of the server shipped with MindSpore 2.0. text receives a sentence for
 * the user, unless the result is GD_MS_MATCH. */
enum gd_ms_match gd_ms_version_match(const struct gd_ms_version *version, const char *spelled,
                                     bool strict, char *text, size_t size);

#endif
