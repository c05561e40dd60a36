// SPDX-License-Identifier: GPL-3.0-or-later
/* A directory of its own, for what is recognised by its name. The target removes its files. */
#ifndef TESTS_FUZZ_FUZZ_HOME_H
#define TESTS_FUZZ_FUZZ_HOME_H

#include <sys/stat.h>
#include <unistd.h>

#include "../scratch.h"
#include "fuzz.h"

static char home[SCRATCH_PATH];

static inline void path_of(const char *name, char *out, size_t size)
{
    snprintf(out, size, "%s/%s", home, name);
}

static inline void write_file(const char *name, const void *data, size_t size)
{
    char path[256];
    FILE *file;

    path_of(name, path, sizeof(path));
    file = fopen(path, "wb");
    FUZZ_CHECK(file && fwrite(data, 1, size, file) == size && fclose(file) == 0);
}

static inline void remove_file(const char *name)
{
    char path[256];

    path_of(name, path, sizeof(path));
    unlink(path);
}

#endif
