// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Names of CANN's dump files: TYPE.NAME.TASK[.STREAM].TIME, with four more fields behind for tasks
 * of FFTS+, and the names of overflow records and of what an exception left. Names of operators may
 * hold dots, so a name is read from the right when it must be.
 */
#ifndef GD_DUMP_CANN_FILE_NAME_H
#define GD_DUMP_CANN_FILE_NAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum gd_cann_name_kind { GD_CANN_OPERATOR, GD_CANN_OVERFLOW, GD_CANN_EXCEPTION };

struct gd_cann_name {
    enum gd_cann_name_kind kind;
    const char *type; /* within the text that was parsed; "" of an exception */
    size_t type_len;
    const char *name;
    size_t name_len;
    int64_t task, stream; /* -1: not told */
    uint64_t time;        /* microseconds since the epoch; UINT64_MAX: more than fits */
    bool ffts;
    int64_t context, thread; /* of FFTS+; else -1 */
};

/* `exceptions`: the directory is one for what exceptions leave, whose names look like others. */
bool gd_cann_name_parse(const char *text, bool exceptions, struct gd_cann_name *ret);

/* What a name of the graph becomes in the name of a file: space . / \ are _. Cut at size. */
void gd_cann_name_escape(const char *name, char *out, size_t size);

#endif
