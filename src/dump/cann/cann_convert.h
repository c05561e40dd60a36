// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Converts CANN dump files to .npy, raw bytes or JSON under the names that the vendor's converter
 * uses, so that existing scripts work. The directory structure is kept; nothing is written outside
 * the target.
 */
#ifndef GD_DUMP_CANN_CONVERT_H
#define GD_DUMP_CANN_CONVERT_H

#include <stdbool.h>
#include <stdint.h>

#include "dump/io/folder.h"

enum gd_cann_as { GD_CANN_AS_NPY, GD_CANN_AS_BIN, GD_CANN_AS_MINDSPORE };

struct gd_cann_convert_options {
    enum gd_cann_as as;
    int32_t format; /* target layout of the tensors; -1: as stored */
    /* called with the number of files done; false: GD_EINTR */
    bool (*go_on)(void *ctx, uint64_t done);
    /* Called for a file or tensor that was not written, or not as requested, with the reason. */
    void (*left_out)(void *ctx, const char *path, const char *why);
    void *ctx;
};

struct gd_cann_converted {
    uint64_t files, tensors, records, buffers, left_out;
};

/* `from`: a dump file or a directory of them. GD_EPROTO: no dump files there. Files that cannot be
 * converted are reported to left_out and do not end the conversion; ret is filled in also on
 * failure. */
int gd_cann_convert_tree(const char *from, struct gd_folder *to,
                         const struct gd_cann_convert_options *options,
                         struct gd_cann_converted *ret, struct gd_err *err);

#endif
