// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Element types and layouts as CANN numbers them. There are two numberings of types: that of
 * dumps, which is used everywhere here, and that of the runtime (nano dumps, attributes of graphs).
 */
#ifndef GD_DUMP_CANN_TYPES_H
#define GD_DUMP_CANN_TYPES_H

#include <stdint.h>

#include "dump/io/stored_type.h"

enum gd_cann_format { /* those that something is known of; the others have only a name */
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

/* What the number of a dump stands for; OPAQUE where gradb has no such type (strings, float6). */
enum gd_stored gd_cann_stored(int32_t data_type);
/* "FLOAT16", without DT_; NULL: a number that nobody knows. */
const char *gd_cann_type_name(int32_t data_type);
/* From "DT_FLOAT16" or "FLOAT16"; -1 none. */
int32_t gd_cann_type_from_name(const char *name);
/* The number of dumps for a number of the runtime; 0 (undefined) when it has none. */
int32_t gd_cann_type_of_runtime(int32_t data_type);
/* numpy's name of what the vendor's converter makes of it: "float32" for bfloat16. */
const char *gd_cann_numpy_name(int32_t data_type);

/* "FRACTAL_NZ"; NULL: a number that nobody knows. */
const char *gd_cann_format_name(int32_t format);
/* From "FRACTAL_NZ" or "FORMAT_FRACTAL_NZ", any case; -1 none. */
int32_t gd_cann_format_from_name(const char *name);

#endif
