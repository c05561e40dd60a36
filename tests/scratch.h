// SPDX-License-Identifier: GPL-3.0-or-later
/* Files and folders of a test, in TMPDIR: hermetic.py removes them when the test does not come to
 * it. */
#ifndef GRADB_TESTS_SCRATCH_H
#define GRADB_TESTS_SCRATCH_H

#include <stdio.h>
#include <stdlib.h>

#define SCRATCH_PATH 96 /* bytes of a path made here */

static inline char *scratch_name(char ret[SCRATCH_PATH])
{
    const char *folder = getenv("TMPDIR");
    int len = snprintf(ret, SCRATCH_PATH, "%s/gradb-XXXXXX", folder && *folder ? folder : "/tmp");

    if (len >= SCRATCH_PATH) {
        fprintf(stderr, "TMPDIR is too long for the tests: %s\n", folder);
        abort();
    }
    return ret;
}

/* An empty file: its descriptor, or -1 and errno. */
static inline int scratch_file(char ret[SCRATCH_PATH])
{
    return mkstemp(scratch_name(ret));
}

/* An empty folder: ret, or NULL and errno. */
static inline char *scratch_folder(char ret[SCRATCH_PATH])
{
    return mkdtemp(scratch_name(ret));
}

#endif
