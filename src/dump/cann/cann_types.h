// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * CANN's numbers of element types and layouts. Types have two numberings: that of dumps, used
 * everywhere here, and that of the runtime (nano dumps, graph attributes).
 */
#ifndef GD_DUMP_CANN_TYPES_H
#define GD_DUMP_CANN_TYPES_H

#include <stdint.h>

#include "dump/io/stored_type.h"

enum gd_cann_format { /* those with a meaning here; others only have a name */
                      GD_CANN_NCHW = 0,
                      GD_CANN_NHWC = 1,
                      GD_CANN_ND = 2,
                      GD_CANN_NC1HWC0 = 3,
                      GD_CANN_FRACTAL_Z = 4,
                      GD_CANN_NC1HWC0_C04 = 12,
                      GD_CANN_FRACTAL_Z_C04 = 13,
                      GD_CANN_CHWN = 14,
                      GD_CANN_HWCN = 16,
                      GD_CANN_C1HWNCOC0 = 25,
                      GD_CANN_NDHWC = 27,
                      GD_CANN_FRACTAL_NZ = 29,
                      GD_CANN_NCDHW = 30,
                      GD_CANN_DHWCN = 31,
                      GD_CANN_NDC1HWC0 = 32,
                      GD_CANN_FRACTAL_Z_3D = 33,
                      GD_CANN_DHWNC = 36,
};

/* The type for a dump's number; OPAQUE if gradb has no such type (strings, float6). */
enum gd_stored gd_cann_stored(int32_t data_type);
/* "FLOAT16", without DT_; NULL: unknown number. */
const char *gd_cann_type_name(int32_t data_type);
/* Parses "DT_FLOAT16" or "FLOAT16"; -1: unknown. */
int32_t gd_cann_type_from_name(const char *name);
/* Converts a runtime number to the dump's; 0 (undefined): none. */
int32_t gd_cann_type_of_runtime(int32_t data_type);
/* numpy's name for the vendor converter's output: "float32" for bfloat16. */
const char *gd_cann_numpy_name(int32_t data_type);

/* "FRACTAL_NZ"; NULL: unknown number. */
const char *gd_cann_format_name(int32_t format);
/* Parses "FRACTAL_NZ" or "FORMAT_FRACTAL_NZ", in any case; -1: unknown. */
int32_t gd_cann_format_from_name(const char *name);

#endif
