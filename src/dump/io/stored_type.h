// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Element types in files, and the engine types they are read as.
 *
 * Types that the engine lacks are widened exactly: the float8, float6 and float4 kinds, HiFloat8
 * and E8M0 to float32; int4, int2 to int8; uint4, uint2, uint1 to uint8; complex32 to complex64.
 * Quantised integers stay integers.
 */
#ifndef GD_DUMP_STORED_TYPE_H
#define GD_DUMP_STORED_TYPE_H

#include "base/dtype.h"

enum gd_stored {
    GD_STORED_NONE = 0,
    GD_STORED_BOOL,
    GD_STORED_INT8,
    GD_STORED_INT16,
    GD_STORED_INT32,
    GD_STORED_INT64,
    GD_STORED_UINT8,
    GD_STORED_UINT16,
    GD_STORED_UINT32,
    GD_STORED_UINT64,
    GD_STORED_FLOAT16,
    GD_STORED_BFLOAT16,
    GD_STORED_FLOAT32,
    GD_STORED_FLOAT64,
    GD_STORED_COMPLEX32,
    GD_STORED_COMPLEX64,
    GD_STORED_COMPLEX128,
    GD_STORED_FLOAT8_E4M3FN,
    GD_STORED_FLOAT8_E5M2,
    GD_STORED_FLOAT8_E4M3FNUZ,
    GD_STORED_FLOAT8_E5M2FNUZ,
    GD_STORED_FLOAT8_E4M3,
    GD_STORED_FLOAT8_E3M4,
    GD_STORED_FLOAT8_E4M3B11FNUZ,
    GD_STORED_FLOAT8_E8M0FNU,
    GD_STORED_HIFLOAT8,
    GD_STORED_FLOAT6_E2M3, /* one per byte, in the low six bits, as numpy has them */
    GD_STORED_FLOAT6_E3M2,
    GD_STORED_FLOAT4_E1M2, /* two per byte, low half first */
    GD_STORED_FLOAT4_E2M1,
    GD_STORED_INT4,
    GD_STORED_UINT4, /* two per byte, low half first */
    GD_STORED_INT2,
    GD_STORED_UINT2,  /* four per byte, low bits first */
    GD_STORED_UINT1,  /* eight per byte, high bit first */
    GD_STORED_OPAQUE, /* raw bytes: strings, unknown types */
    GD_STORED_COUNT
};

unsigned gd_stored_bits(enum gd_stored stored);    /* per element; 0 for NONE */
const char *gd_stored_name(enum gd_stored stored); /* "float8_e4m3fn" */
/* Accepts numpy's, torch's, MindSpore's and safetensors' names in any case; a name that numpy and
 * safetensors use differently ("u8", "f4") is numpy's. Returns NONE if unknown. */
enum gd_stored gd_stored_from_name(const char *name);
enum gd_dtype gd_stored_dtype(enum gd_stored stored); /* what it is read as */
enum gd_stored gd_stored_of_dtype(enum gd_dtype dtype);

/* Converts `count` elements, starting at element `first` of `in`, to `out` in host byte order;
 * swap: `in` has the other byte order. */
void gd_stored_widen(enum gd_stored stored, bool swap, const unsigned char *in, int64_t first,
                     int64_t count, void *out);

#endif
