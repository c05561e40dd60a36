// SPDX-License-Identifier: GPL-3.0-or-later
/* The bytes of the input as a file. */
#ifndef TESTS_FUZZ_FUZZ_DISK_H
#define TESTS_FUZZ_FUZZ_DISK_H

#include <sys/mman.h>
#include <unistd.h>

#include "dump/io/disk.h"
#include "fuzz.h"

#define FUZZ_PATH 64

/* Writes the path of the file, which exists until the caller closes the descriptor returned. */
static inline int fuzz_file(const void *data, size_t size, char path[FUZZ_PATH])
{
    int fd = memfd_create("fuzz", MFD_CLOEXEC);

    FUZZ_CHECK(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    snprintf(path, FUZZ_PATH, "/proc/self/fd/%d", fd);
    return fd;
}

static inline struct gd_disk *fuzz_disk(const void *data, size_t size)
{
    char path[FUZZ_PATH];
    int fd = fuzz_file(data, size, path);
    struct gd_disk *disk = NULL;

    FUZZ_CHECK(gd_disk_open(-1, path, true, &disk, NULL) == GD_OK);
    close(fd);
    return disk;
}

#endif
