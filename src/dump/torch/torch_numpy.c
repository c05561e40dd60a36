// SPDX-License-Identifier: GPL-3.0-or-later
/* numpy's arrays and scalars in pickles, whose bytes are in the pickle itself. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "dump/torch/torch_impl.h"
#include "engine/format.h"

static bool is_builtin(const struct gd_pickle_value *value, const char *name)
{
    return gd_pickle_is_call(value, "builtins", name) ||
           gd_pickle_is_call(value, "__builtin__", name);
}

/* Decodes UTF-8 to latin-1; false: it has other characters. */
static bool take_latin1(const struct gd_pickle_value *text, unsigned char *out, size_t *size)
{
    *size = 0;
    for (uint32_t i = 0; i < text->count; i++) {
        unsigned char c = (unsigned char)text->text[i];

        if (c >= 0x80) {
            if ((c != 0xc2 && c != 0xc3) || i + 1 == text->count) {
                return false;
            }
            c = (unsigned char)(c << 6 | ((unsigned char)text->text[++i] & 0x3f));
        }
        out[(*size)++] = c;
    }
    return true;
}

/* The bytes of a value: bytes, Python 2's str, or bytes that protocol 2 wrote as a string. To be
 * freed by the caller; NULL: none of these, or out of memory. */
static unsigned char *take_bytes(const struct gd_pickle_value *value, size_t *size)
{
    const struct gd_pickle_value *text = value;
    unsigned char *out;
    bool encoded = false;

    if (value && (gd_pickle_is_call(value, "_codecs", "encode") || is_builtin(value, "bytearray") ||
                  is_builtin(value, "bytes"))) {
        text = gd_pickle_item(value->object->args, 0);
        encoded = text && text->kind == GD_PICKLE_TEXT;
        if (!text) { /* bytes() */
            *size = 0;
            return malloc(1);
        }
    }
    if (!text || (text->kind != GD_PICKLE_BYTES && text->kind != GD_PICKLE_TEXT)) {
        return NULL;
    }
    out = malloc((size_t)text->count + 1);
    if (out && encoded && !take_latin1(text, out, size)) {
        free(out);
        return NULL;
    }
    if (out && !encoded) {
        *size = text->count;
        memcpy(out, text->text, text->count);
    }
    return out;
}

static enum gd_stored type_of_code(const struct gd_pickle_value *code)
{
    static const struct {
        const char *code;
        enum gd_stored stored;
    } types[] = {
        {"b1", GD_STORED_BOOL},      {"i1", GD_STORED_INT8},        {"i2", GD_STORED_INT16},
        {"i4", GD_STORED_INT32},     {"i8", GD_STORED_INT64},       {"u1", GD_STORED_UINT8},
        {"u2", GD_STORED_UINT16},    {"u4", GD_STORED_UINT32},      {"u8", GD_STORED_UINT64},
        {"f2", GD_STORED_FLOAT16},   {"f4", GD_STORED_FLOAT32},     {"f8", GD_STORED_FLOAT64},
        {"c8", GD_STORED_COMPLEX64}, {"c16", GD_STORED_COMPLEX128},
    };

    enum gd_stored stored;

    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        if (gd_pickle_is_text(code, types[i].code)) {
            return types[i].stored;
        }
    }
    if (code && code->kind == GD_PICKLE_GLOBAL &&
        (strcmp(code->global->module, "ml_dtypes") == 0 ||
         strcmp(code->global->module, "mindspore._c_expression.np_dtypes") == 0)) {
        stored = gd_stored_from_name(code->global->name);
        /* numpy has one per byte, not several */
        return gd_stored_bits(stored) < 8 ? GD_STORED_NONE : stored;
    }
    return GD_STORED_NONE;
}

/* Parses dtype('f4', False, True) with the state (3, '<', ...). */
static enum gd_stored type_of(const struct gd_pickle_value *dtype, bool *swap)
{
    const struct gd_pickle_value *order;
    bool big = false;

    if (!gd_pickle_is_call(dtype, "numpy", "dtype")) {
        return GD_STORED_NONE;
    }
    order = gd_pickle_item(dtype->object->state, 1);
    big = gd_pickle_is_text(order, ">");
    *swap =
        big != (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__) && (big || gd_pickle_is_text(order, "<"));
    return type_of_code(gd_pickle_item(dtype->object->args, 0));
}

struct array { /* the parts of an array, as in the pickle */
    const struct gd_pickle_value *shape, *dtype, *data;
    bool fortran;
};

static bool is_numpy_call(const struct gd_pickle_value *value, const char *module, const char *name)
{
    char core[64];

    if (!value || value->kind != GD_PICKLE_OBJECT ||
        value->object->callee->kind != GD_PICKLE_GLOBAL) {
        return false;
    }
    snprintf(core, sizeof(core), "numpy.core.%s", module);
    if (gd_pickle_is_call(value, core, name)) {
        return true;
    }
    snprintf(core, sizeof(core), "numpy._core.%s", module);
    return gd_pickle_is_call(value, core, name);
}

static bool take_apart(const struct gd_pickle_value *value, struct array *ret)
{
    const struct gd_pickle_value *state, *fortran;

    if (is_numpy_call(value, "multiarray", "_reconstruct")) {
        state = value->object->state;
        fortran = gd_pickle_item(state, 3);
        *ret =
            (struct array){.shape = gd_pickle_item(state, 1),
                           .dtype = gd_pickle_item(state, 2),
                           .data = gd_pickle_item(state, 4),
                           .fortran = fortran && fortran->kind == GD_PICKLE_BOOL && fortran->truth};
        return true;
    }
    if (is_numpy_call(value, "numeric", "_frombuffer")) {
        state = value->object->args;
        *ret = (struct array){.data = gd_pickle_item(state, 0),
                              .dtype = gd_pickle_item(state, 1),
                              .shape = gd_pickle_item(state, 2),
                              .fortran = gd_pickle_is_text(gd_pickle_item(state, 3), "F")};
        return true;
    }
    return false;
}

bool torch_is_array(const struct gd_pickle_value *value)
{
    struct array array;

    return take_apart(value, &array);
}

static bool set_shape(struct gd_source_desc *view, const struct array *array)
{
    int64_t stride = 1;

    if (!array->shape || array->shape->kind != GD_PICKLE_TUPLE ||
        array->shape->count > GD_MAX_RANK) {
        return false;
    }
    view->shape.rank = (int)array->shape->count;
    for (int i = 0; i < view->shape.rank; i++) {
        if (!gd_pickle_get_int(array->shape->item[i], &view->shape.dim[i]) ||
            view->shape.dim[i] < 0) {
            return false;
        }
        view->stride[i] = stride;
        if (__builtin_mul_overflow(stride, view->shape.dim[i] ? view->shape.dim[i] : 1, &stride)) {
            return false;
        }
    }
    view->has_stride = array->fortran;
    return true;
}

void torch_describe_array(const struct gd_pickle_value *value, struct torch_tensor *ret)
{
    struct gd_source_desc *view = &ret->view;
    struct array array = {.shape = NULL};
    unsigned char *bytes;
    struct gd_err err;
    size_t size;

    take_apart(value, &array);
    if (!set_shape(view, &array)) {
        snprintf(ret->problem, sizeof(ret->problem), "the numpy array's shape is invalid");
        return;
    }
    view->stored = type_of(array.dtype, &view->swap);
    if (!view->stored) {
        snprintf(ret->problem, sizeof(ret->problem),
                 "a numpy array of objects, strings or other non-numeric type");
        return;
    }
    bytes = take_bytes(array.data, &size);
    if (!bytes) {
        snprintf(ret->problem, sizeof(ret->problem), "the numpy array has no bytes");
    } else if (gd_bytes_of_memory(bytes, size, free, bytes, &view->bytes, &err) != GD_OK) {
        snprintf(ret->problem, sizeof(ret->problem), "%s", err.text);
    }
}

bool torch_print_scalar(const struct gd_pickle_value *value, struct gd_buf *out)
{
    _Alignas(16) unsigned char number[16];
    GD_CLEANUP(gd_cleanup_free) unsigned char *bytes = NULL;
    enum gd_stored stored;
    size_t size;
    bool swap = false;

    if (!is_numpy_call(value, "multiarray", "scalar")) {
        return false;
    }
    stored = type_of(gd_pickle_item(value->object->args, 0), &swap);
    bytes = stored ? take_bytes(gd_pickle_item(value->object->args, 1), &size) : NULL;
    if (!bytes || size != gd_stored_bits(stored) / 8 ||
        gd_dtype_size(gd_stored_dtype(stored)) > sizeof(number)) {
        return false;
    }
    gd_stored_widen(stored, swap, bytes, 0, 1, number);
    return gd_format_scalar(gd_stored_dtype(stored), number, out) == GD_OK;
}
