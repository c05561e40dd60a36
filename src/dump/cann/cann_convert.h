// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Dump files of CANN written as .npy, raw bytes or JSON under the names that the vendor's converter
 * gives them, so that scripts made for those names work. Directories keep their shape; nothing is
 * written outside of the target.
 */
#ifndef GD_DUMP_CANN_CONVERT_H
#define GD_DUMP_CANN_CONVERT_H

#include <stdbool.h>
#include <stdint.h>

#include "dump/io/folder.h"

enum gd_cann_as { GD_CANN_AS_NPY, GD_CANN_AS_BIN, GD_CANN_AS_MINDSPORE };

struct gd_cann_convert_options {
    enum gd_cann_as as;
    int32_t format; /* that tensors are laid out in; -1: as they are stored */
    bool (*go_on)(void *ctx, uint64_t done); /* files done; false: GD_EINTR */
    /* A file or a tensor that was not written, or not as it was wanted, and why. */
    void (*left_out)(void *ctx, const char *path, const char *why);
    void *ctx;
};

struct gd_cann_converted {
    uint64_t files, tensors, records, buffers, left_out;
};

/* `from` is a dump file or a directory of them. GD_EPROTO: nothing there is a dump file. What
 * cannot be converted is told to left_out and does not end it; ret counts also when it fails. */
int gd_cann_convert_tree(const char *from, struct gd_folder *to,
                         const struct gd_cann_convert_options *options,
                         struct gd_cann_converted *ret, struct gd_err *err);

#endif
