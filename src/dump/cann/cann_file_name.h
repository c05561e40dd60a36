// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Names of CANN dump files: TYPE.NAME.TASK[.STREAM].TIME, plus four more fields for FFTS+ tasks;
 * names of overflow records and of exception data. Operator names may contain dots, so names are
 * parsed from the right where needed.
 */
#ifndef GD_DUMP_CANN_FILE_NAME_H
#define GD_DUMP_CANN_FILE_NAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum gd_cann_name_kind { GD_CANN_OPERATOR, GD_CANN_OVERFLOW, GD_CANN_EXCEPTION };

struct gd_cann_name {
    enum gd_cann_name_kind kind;
    const char *type; /* within the parsed text; "" for an exception */
    size_t type_len;
    const char *name;
    size_t name_len;
    int64_t task, stream; /* -1: unknown */
    uint64_t time;        /* microseconds since the epoch; UINT64_MAX: out of range */
    bool ffts;
    int64_t context, thread; /* FFTS+; otherwise -1 */
};

/* `exceptions`: the directory is for exception data, whose names would be ambiguous. */
bool gd_cann_name_parse(const char *text, bool exceptions, struct gd_cann_name *ret);

/* A graph name as it appears in file names: space . / \ become _. Cut at size. */
void gd_cann_name_escape(const char *name, char *out, size_t size);

#endif
