// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Finds the dump formats in a directory (or a single file) and reads everything found into one
 * dump.
 */
#ifndef GD_DUMP_DETECT_H
#define GD_DUMP_DETECT_H

#include "dump/format.h"
#include "engine/debugger.h"

struct gd_detect_options {
    const char *format;                      /* only this format; NULL: all */
    const struct gd_open_options *open;      /* for the readers: gd_dump_options */
    uint64_t max_graph;                      /* bytes per graph; 0: no limit */
    bool (*go_on)(void *ctx, uint64_t done); /* called now and then; returns false: GD_EINTR */
    void *ctx;
};

/* Searches the path and reads everything found; the dump is finished. GD_ENOTFOUND, GD_EIO;
 * GD_EINVAL: no such format; GD_EPROTO: no dump there, or none of it is readable (the message says
 * why). */
int gd_detect(const char *path, const struct gd_detect_options *options, struct gd_dump **ret,
              struct gd_err *err);
/* By its ending, as files are chosen in a directory: "model.safetensors". */
bool gd_is_tensor_file_name(const char *name);

#endif
