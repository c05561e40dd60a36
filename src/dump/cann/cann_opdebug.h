// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The record that the device writes when an operator overflows: the task, the unit, and the kind of
 * overflow. Two layouts of the same 2048 bytes.
 */
#ifndef GD_DUMP_CANN_OPDEBUG_H
#define GD_DUMP_CANN_OPDEBUG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

#define GD_CANN_OPDEBUG_BYTES 2048
#define GD_CANN_MAX_FIELDS    14

struct gd_cann_field { /* named as by the vendor's converter */
    const char *name;
    uint64_t value[4];
    int count; /* number of values: 4 for a status in the second version */
    bool hex;
};
struct gd_cann_unit {            /* a unit that may have overflowed */
    const char *name;            /* "AI Core", "DHA Atomic Add", "AIV", ... */
    bool hit;                    /* its status is not 0 */
    int64_t model, stream, task; /* -1: unknown */
    int64_t context, thread;     /* FFTS+; -1: unknown */
    struct gd_cann_field field[GD_CANN_MAX_FIELDS];
    int field_count;
};
struct gd_cann_opdebug {
    bool is_new;
    uint32_t magic, version, valid, acc_type, reserved, data_len; /* new layout only */
    struct gd_cann_unit unit[3];
    int unit_count;
};

/* False: too few bytes, or a new record of an unknown unit. */
bool gd_cann_opdebug_read(const unsigned char *bytes, size_t size, struct gd_cann_opdebug *ret);
/* The first unit that overflowed; NULL: none. */
const struct gd_cann_unit *gd_cann_opdebug_hit(const struct gd_cann_opdebug *record);
/* "AI Core: floating-point overflow (status 0x20)", for all units with an overflow. */
void gd_cann_opdebug_text(const struct gd_cann_opdebug *record, struct gd_buf *out);
/* In the vendor converter's format. */
void gd_cann_opdebug_json(const struct gd_cann_opdebug *record, struct gd_buf *out);

#endif
