// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Names of the files of MindSpore's synchronous dump. They are read from the right, since the names
 * of parameters hold dots and those of operators words like _input_.
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
    const char *type; /* inside what was parsed, as the other texts */
    size_t type_len;
    const char *name;
    size_t name_len;
    int64_t task, stream; /* INT64_MAX: more than fits */
    bool is_input;
    uint32_t slot;
    uint64_t time; /* microseconds since the epoch; 0: more than fits */
    const char *format;
    size_t format_len;
    enum gd_stored stored; /* GD_STORED_NONE: the name does not tell */
};
/* `text`: the name of a file, with or without ".npy". */
bool gd_ms_name_parse(const char *text, struct gd_ms_name *ret);

struct gd_ms_bin_name { /* NAME_(input|output)_I_shape_D0_D1_..._DTYPE_FORMAT.bin of 1.0 to 1.2 */
    const char *name;   /* scopes separated by "--" */
    size_t name_len;
    bool is_input;
    uint32_t slot;
    struct gd_shape shape; /* no dimension is written as one of 0 */
    enum gd_stored stored; /* GD_STORED_NONE: "[Unknown Type Id]" and the like */
    const char *format;
    size_t format_len;
};
bool gd_ms_bin_name_parse(const char *text, struct gd_ms_bin_name *ret);

/* An operator's name as files have it since 2.3: / \ . and blanks are _. Cut at size. */
void gd_ms_escape(const char *name, char *out, size_t size);
/* As files have it before: what follows the last / or "--". */
const char *gd_ms_short_name(const char *name);
/* The number that a text consists of; false: it is none, or larger. */
bool gd_ms_number(const char *text, size_t len, uint64_t max, uint64_t *ret);

#endif
