// SPDX-License-Identifier: MIT
/*
 * Element types of tensors, and reading one element. Elements are in host byte order.
 */
#ifndef GD_BASE_DTYPE_H
#define GD_BASE_DTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The numbers are part of gradb.v1 and of gradb.h (GRADB_FLOAT32 ...): never renumber. */
enum gd_dtype {
    GD_DT_NONE = 0, /* unknown or not a tensor */
    GD_BOOL = 1,
    GD_INT8 = 2,
    GD_INT16 = 3,
    GD_INT32 = 4,
    GD_INT64 = 5,
    GD_UINT8 = 6,
    GD_UINT16 = 7,
    GD_UINT32 = 8,
    GD_UINT64 = 9,
    GD_FLOAT16 = 10, /* IEEE 754 binary16 */
    GD_FLOAT32 = 11,
    GD_FLOAT64 = 12,
    GD_STRING = 13,   /* recognised in order to be rejected clearly; has no element size */
    GD_BFLOAT16 = 14, /* the upper half of a binary32 */
    GD_COMPLEX64 = 15,
    GD_COMPLEX128 = 16,
    GD_DT_COUNT
};

/* Bytes per element; 0 for GD_DT_NONE, GD_STRING and unknown numbers. */
size_t gd_dtype_size(enum gd_dtype dtype);

/* numpy's name: "float32", "bool", ...; "bfloat16"; "unknown" for anything else. */
const char *gd_dtype_name(enum gd_dtype dtype);

/* The .npy descriptor ("<f4", "|b1", ...); "<u2" for bfloat16, which numpy lacks. NULL for types
 * without elements. */
const char *gd_dtype_descr(enum gd_dtype dtype);

/* Accepts "float32", "f4", "half", "bf16", ...; GD_DT_NONE for unknown names. */
enum gd_dtype gd_dtype_from_name(const char *name);

bool gd_dtype_is_float(enum gd_dtype dtype); /* float16, bfloat16, float32, float64 */
bool gd_dtype_is_int(enum gd_dtype dtype);   /* signed or unsigned; not bool */
bool gd_dtype_is_unsigned(enum gd_dtype dtype);
bool gd_dtype_is_complex(enum gd_dtype dtype);

/* The element at `p` (any alignment) as a double; the real part of a complex one. Integers beyond
 * 2^53 are rounded. NaN for types without elements. */
double gd_dtype_load(enum gd_dtype dtype, const void *p);

float gd_half_to_float(uint16_t bits);
uint16_t gd_float_to_half(float value); /* rounds to nearest even; overflow gives infinity */
float gd_bfloat16_to_float(uint16_t bits);
uint16_t gd_float_to_bfloat16(float value); /* rounds to nearest even; NaN stays NaN */

#endif
