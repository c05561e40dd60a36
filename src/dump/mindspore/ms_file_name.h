// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * File names of MindSpore's synchronous dump. They are parsed from the right, because parameter
 * names may contain dots and operator names words like _input_.
 */
#ifndef GD_DUMP_MS_FILE_NAME_H
#define GD_DUMP_MS_FILE_NAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/tensor.h"
#include "dump/io/stored_type.h"

#define GD_MS_MAX_SLOT 4095u

struct gd_ms_name {   /* TYPE.NAME.TASK.STREAM.TIME.(input|output).SLOT.FORMAT[.DTYPE] */
    const char *type; /* points into the parsed text, like the others */
    size_t type_len;
    const char *name;
    size_t name_len;
    int64_t task, stream; /* INT64_MAX: out of range */
    bool is_input;
    uint32_t slot;
    uint64_t time; /* microseconds since the epoch; 0: out of range */
    const char *format;
    size_t format_len;
    enum gd_stored stored; /* GD_STORED_NONE: not in the name */
};
/* `text`: a file name, with or without ".npy". */
bool gd_ms_name_parse(const char *text, struct gd_ms_name *ret);

struct gd_ms_bin_name { /* NAME_(input|output)_I_shape_D0_D1_..._DTYPE_FORMAT.bin of 1.0 to 1.2 */
    const char *name;   /* scopes separated by "--" */
    size_t name_len;
    bool is_input;
    uint32_t slot;
    struct gd_shape shape; /* no dimensions are written as a single 0 */
    enum gd_stored stored; /* GD_STORED_NONE: "[Unknown Type Id]" and the like */
    const char *format;
    size_t format_len;
};
bool gd_ms_bin_name_parse(const char *text, struct gd_ms_bin_name *ret);

/* An operator's name as in file names since 2.3: / \ . and blanks become _. Cut at size. */
void gd_ms_escape(const char *name, char *out, size_t size);
/* As in file names before 2.3: what follows the last / or "--". */
const char *gd_ms_short_name(const char *name);
/* Parses a text that is a number; false: it is not, or is larger than max. */
bool gd_ms_number(const char *text, size_t len, uint64_t max, uint64_t *ret);

#endif
