// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The pages that torch.cuda._memory_viz writes (trace_plot, segment_plot, profile_plot): the pickle
 * of the snapshot, in base64, with a few NULs after it. It is decoded into a file without a name.
 */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "dump/memory/snapshot.h"

#define KEY   "\"base64\": \""
#define PIECE 65536 /* bytes of base64: a multiple of 4 */

uint64_t gd_snapshot_in_page(const unsigned char *start, size_t size)
{
    const unsigned char *key = memmem(start, size, KEY, strlen(KEY));

    return memmem(start, size, "<html", 5) && memmem(start, size, "MemoryViz", 9) && key
               ? (uint64_t)(key - start) + strlen(KEY)
               : 0;
}

static int value_of(unsigned char byte)
{
    return byte >= 'A' && byte <= 'Z'   ? byte - 'A'
           : byte >= 'a' && byte <= 'z' ? byte - 'a' + 26
           : byte >= '0' && byte <= '9' ? byte - '0' + 52
           : byte == '+'                ? 62
           : byte == '/'                ? 63
                                        : -1;
}

struct decoding {
    struct gd_disk *page;
    uint64_t at;
    int fd;
    unsigned char out[PIECE];
    size_t have; /* bytes of out, all but NULs at the end of the pickle */
    uint32_t bits, digits;
    bool ended;
};

static int write_out(struct decoding *in, struct gd_err *err)
{
    for (size_t done = 0; done < in->have;) {
        ssize_t wrote = write(in->fd, in->out + done, in->have - done);

        if (wrote <= 0) {
            return gd_fail(err, GD_EIO,
                           "%.300s: the snapshot in this page cannot be unpacked: no room for a "
                           "temporary file in TMPDIR",
                           gd_disk_path(in->page));
        }
        done += (size_t)wrote;
    }
    in->have = 0;
    return GD_OK;
}

static int take_byte(struct decoding *in, unsigned char byte, struct gd_err *err)
{
    int value = value_of(byte);

    if (byte == '"' || byte == '=') {
        in->ended = true;
        return GD_OK;
    }
    if (value < 0) {
        return gd_fail(err, GD_EPROTO, "%.300s: not base64 at byte %llu", gd_disk_path(in->page),
                       (unsigned long long)in->at);
    }
    in->bits = in->bits << 6 | (uint32_t)value;
    in->digits++;
    if (in->digits % 4 != 1) {
        unsigned shift = in->digits % 4 == 2 ? 4 : in->digits % 4 == 3 ? 2 : 0;
        in->out[in->have++] = (unsigned char)(in->bits >> shift);
    }
    return in->have == PIECE ? write_out(in, err) : GD_OK;
}

static int decode_page(struct decoding *in, bool (*go_on)(void *ctx, uint64_t done), void *ctx,
                       struct gd_err *err)
{
    unsigned char piece[PIECE];
    int rc = GD_OK;

    while (rc == GD_OK && !in->ended) {
        uint64_t left = gd_disk_size(in->page) - in->at;
        size_t size = left < PIECE ? (size_t)left : PIECE;

        if (size == 0) {
            return gd_fail(err, GD_EPROTO, "%.300s is truncated at byte %llu",
                           gd_disk_path(in->page), (unsigned long long)in->at);
        }
        if (go_on && !go_on(ctx, in->at)) {
            return gd_fail(err, GD_EINTR, "interrupted");
        }
        rc = gd_disk_read(in->page, in->at, piece, size, err);
        for (size_t i = 0; rc == GD_OK && !in->ended && i < size; i++, in->at++) {
            rc = take_byte(in, piece[i], err);
        }
    }
    return rc != GD_OK ? rc : write_out(in, err);
}

/* An open file that no path leads to; -1: there is no room for one. */
static int open_nameless(void)
{
    const char *folder = getenv("TMPDIR");
    int fd = open(folder && *folder ? folder : "/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

    return fd >= 0 ? fd : memfd_create("snapshot", MFD_CLOEXEC);
}

int gd_snapshot_unpack_page(struct gd_disk *page, uint64_t at,
                            bool (*go_on)(void *ctx, uint64_t done), void *ctx,
                            struct gd_disk **ret, struct gd_err *err)
{
    struct decoding *in = calloc(1, sizeof(*in));
    struct gd_disk *inside = NULL;
    char path[PATH_MAX + 32];
    int rc;

    if (!in) {
        return gd_fail_nomem(err);
    }
    in->page = page;
    in->at = at;
    in->fd = open_nameless();
    rc = in->fd >= 0 ? decode_page(in, go_on, ctx, err)
                     : gd_fail(err, GD_EIO,
                               "%.300s: no temporary file can be created in TMPDIR for the "
                               "snapshot in it",
                               gd_disk_path(page));
    snprintf(path, sizeof(path), "/proc/self/fd/%d", in->fd);
    rc = rc != GD_OK ? rc : gd_disk_open(AT_FDCWD, path, true, &inside, err);
    if (in->fd >= 0) {
        close(in->fd);
    }
    free(in);
    snprintf(path, sizeof(path), "%s (the snapshot in it)", gd_disk_path(page));
    rc = rc != GD_OK ? rc : gd_disk_set_path(inside, path, err);
    if (rc != GD_OK) {
        gd_disk_unref(inside);
        return rc;
    }
    *ret = inside;
    return GD_OK;
}
