// SPDX-License-Identifier: GPL-3.0-or-later
#include "dump/cann/cann_types.h"

#include <string.h>
#include <strings.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const struct {
    const char *name;
    enum gd_stored stored;
} types[] = {
    {"UNDEFINED", GD_STORED_OPAQUE},
    {"FLOAT", GD_STORED_FLOAT32},
    {"FLOAT16", GD_STORED_FLOAT16},
    {"INT8", GD_STORED_INT8},
    {"UINT8", GD_STORED_UINT8},
    {"INT16", GD_STORED_INT16},
    {"UINT16", GD_STORED_UINT16},
    {"INT32", GD_STORED_INT32},
    {"INT64", GD_STORED_INT64},
    {"UINT32", GD_STORED_UINT32},
    {"UINT64", GD_STORED_UINT64},
    {"BOOL", GD_STORED_BOOL},
    {"DOUBLE", GD_STORED_FLOAT64},
    {"STRING", GD_STORED_OPAQUE},
    {"DUAL_SUB_INT8", GD_STORED_INT8},
    {"DUAL_SUB_UINT8", GD_STORED_UINT8},
    {"COMPLEX64", GD_STORED_COMPLEX64},
    {"COMPLEX128", GD_STORED_COMPLEX128},
    {"QINT8", GD_STORED_INT8},
    {"QINT16", GD_STORED_INT16},
    {"QINT32", GD_STORED_INT32},
    {"QUINT8", GD_STORED_UINT8},
    {"QUINT16", GD_STORED_UINT16},
    {"RESOURCE", GD_STORED_OPAQUE},
    {"STRING_REF", GD_STORED_OPAQUE},
    {"DUAL", GD_STORED_OPAQUE},
    {"VARIANT", GD_STORED_OPAQUE},
    {"BF16", GD_STORED_BFLOAT16},
    {"INT4", GD_STORED_INT4},
    {"UINT1", GD_STORED_UINT1},
    {"INT2", GD_STORED_INT2},
    {"UINT2", GD_STORED_UINT2},
    {"COMPLEX32", GD_STORED_COMPLEX32},
    {"HIFLOAT8", GD_STORED_HIFLOAT8},
    {"FLOAT8_E5M2", GD_STORED_FLOAT8_E5M2},
    {"FLOAT8_E4M3FN", GD_STORED_FLOAT8_E4M3FN},
    {"FLOAT8_E8M0", GD_STORED_FLOAT8_E8M0FNU},
    {"FLOAT6_E3M2", GD_STORED_OPAQUE},
    {"FLOAT6_E2M3", GD_STORED_OPAQUE},
    {"FLOAT4_E2M1", GD_STORED_FLOAT4_E2M1},
    {"FLOAT4_E1M2", GD_STORED_FLOAT4_E1M2},
    {"HIFLOAT4", GD_STORED_OPAQUE},
    {"HIFLOAT4_SCALE", GD_STORED_OPAQUE},
};

/* Indexed by the runtime's number; 5 was never assigned. */
static const int8_t of_runtime[] = {1,  2,  3,  7,  4,  0,  5,  6,  9,  8,  10,
                                    12, 11, 13, 14, 15, 16, 17, 18, 19, 20, 21,
                                    22, 23, 24, 25, 26, 27, 0,  28, 29, 30, 31};

static const char *const formats[] = {
    "NCHW",
    "NHWC",
    "ND",
    "NC1HWC0",
    "FRACTAL_Z",
    "NC1C0HWPAD",
    "NHWC1C0",
    "FSR_NCHW",
    "FRACTAL_DECONV",
    "C1HWNC0",
    "FRACTAL_DECONV_TRANSPOSE",
    "FRACTAL_DECONV_SP_STRIDE_TRANS",
    "NC1HWC0_C04",
    "FRACTAL_Z_C04",
    "CHWN",
    "FRACTAL_DECONV_SP_STRIDE8_TRANS",
    "HWCN",
    "NC1KHKWHWC0",
    "BN_WEIGHT",
    "FILTER_HWCK",
    "HASHTABLE_LOOKUP_LOOKUPS",
    "HASHTABLE_LOOKUP_KEYS",
    "HASHTABLE_LOOKUP_VALUE",
    "HASHTABLE_LOOKUP_OUTPUT",
    "HASHTABLE_LOOKUP_HITS",
    "C1HWNCoC0",
    "MD",
    "NDHWC",
    "FRACTAL_ZZ",
    "FRACTAL_NZ",
    "NCDHW",
    "DHWCN",
    "NDC1HWC0",
    "FRACTAL_Z_3D",
    "CN",
    "NC",
    "DHWNC",
    "FRACTAL_Z_3D_TRANSPOSE",
    "FRACTAL_ZN_LSTM",
    "FRACTAL_Z_G",
    "RESERVED",
    "ALL",
    "NULL",
    "ND_RNN_BIAS",
    "FRACTAL_ZN_RNN",
    "YUV",
    "YUV_A",
    "NCL",
    "FRACTAL_Z_WINO",
    "C1HWC0",
};

enum gd_stored gd_cann_stored(int32_t data_type)
{
    return data_type >= 0 && (size_t)data_type < COUNT(types) ? types[data_type].stored
                                                              : GD_STORED_OPAQUE;
}

const char *gd_cann_type_name(int32_t data_type)
{
    return data_type >= 0 && (size_t)data_type < COUNT(types) ? types[data_type].name : NULL;
}

int32_t gd_cann_type_from_name(const char *name)
{
    if (strncmp(name, "DT_", 3) == 0) {
        name += 3;
    }
    for (size_t i = 0; i < COUNT(types); i++) {
        if (strcmp(name, types[i].name) == 0) {
            return (int32_t)i;
        }
    }
    return -1;
}

int32_t gd_cann_type_of_runtime(int32_t data_type)
{
    return data_type >= 0 && (size_t)data_type < COUNT(of_runtime) ? of_runtime[data_type] : 0;
}

const char *gd_cann_numpy_name(int32_t data_type)
{
    enum gd_stored stored = gd_cann_stored(data_type);

    return stored == GD_STORED_OPAQUE     ? "uint8"
           : stored == GD_STORED_BFLOAT16 ? "float32"
                                          : gd_dtype_name(gd_stored_dtype(stored));
}

const char *gd_cann_format_name(int32_t format)
{
    return format >= 0 && (size_t)format < COUNT(formats) ? formats[format] : NULL;
}

int32_t gd_cann_format_from_name(const char *name)
{
    if (strncasecmp(name, "FORMAT_", 7) == 0) {
        name += 7;
    }
    for (size_t i = 0; i < COUNT(formats); i++) {
        if (strcasecmp(name, formats[i]) == 0) {
            return (int32_t)i;
        }
    }
    return -1;
}
