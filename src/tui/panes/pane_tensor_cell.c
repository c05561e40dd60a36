// SPDX-License-Identifier: GPL-3.0-or-later
/* Elements of the tensor pane: as text, as a number, and tested against a condition. */
#include "tui/panes/pane_tensor_view.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/format.h"

static double read_part(const struct tensor_cell *cell, const unsigned char *p, bool imaginary)
{
    bool single = cell->dtype == GD_COMPLEX64;
    enum gd_dtype dtype = !gd_dtype_is_complex(cell->dtype) ? cell->dtype
                          : single                          ? GD_FLOAT32
                                                            : GD_FLOAT64;
    return gd_dtype_load(dtype, p + (imaginary ? gd_dtype_size(dtype) : 0));
}

static double real_of(const struct tensor_cell *cell)
{
    double value = read_part(cell, cell->p, false);
    return cell->less ? value - read_part(cell, cell->less, false) : value;
}

static double imaginary_of(const struct tensor_cell *cell)
{
    double value = gd_dtype_is_complex(cell->dtype) ? read_part(cell, cell->p, true) : 0;
    return cell->less && gd_dtype_is_complex(cell->dtype)
               ? value - read_part(cell, cell->less, true)
               : value;
}

double tensor_cell_value(const struct tensor_cell *cell)
{
    if (!gd_dtype_is_complex(cell->dtype)) {
        return real_of(cell);
    }
    double real = real_of(cell), imaginary = imaginary_of(cell);
    return isnan(real) || isnan(imaginary) ? (double)NAN : hypot(real, imaginary);
}

bool tensor_cell_is_bad(const struct tensor_cell *cell)
{
    return !isfinite(real_of(cell)) || !isfinite(imaginary_of(cell));
}

/* The bits of an integer or bool, so that differences are exact (and wrap). */
static uint64_t bits_of(enum gd_dtype dtype, const unsigned char *p)
{
    int64_t wide = 0;

    if (dtype == GD_UINT64 || dtype == GD_INT64) {
        memcpy(&wide, p, sizeof(wide));
    } else {
        wide = (int64_t)gd_dtype_load(dtype, p);
    }
    return (uint64_t)wide;
}

static void integer_text(const struct tensor_cell *cell, char *out, size_t size)
{
    uint64_t bits = bits_of(cell->dtype, cell->p);

    if (cell->less) {
        bits -= bits_of(cell->dtype, cell->less);
    }
    if (cell->dtype == GD_BOOL && !cell->less) {
        snprintf(out, size, "%s", bits != 0 ? "True" : "False");
    } else if (cell->dtype == GD_UINT64 && !cell->less) {
        snprintf(out, size, "%llu", (unsigned long long)bits);
    } else {
        snprintf(out, size, "%lld", (long long)bits);
    }
}

static void number_text(double value, int digits, char *out, size_t size)
{
    if (isnan(value)) {
        snprintf(out, size, "nan");
    } else if (isinf(value)) {
        snprintf(out, size, value > 0 ? "inf" : "-inf");
    } else {
        snprintf(out, size, "%.*g", digits, value);
    }
}

void tensor_cell_text(const struct tensor_cell *cell, bool full, char *out, size_t size)
{
    bool is_float = gd_dtype_is_float(cell->dtype);
    int digits = cell->dtype == GD_FLOAT64 || cell->dtype == GD_COMPLEX128 ? 15 : 7;
    char imaginary[40];

    if (full && !cell->less) { /* as `print` shows it */
        struct gd_buf text = GD_BUF_INIT(256);
        gd_format_scalar(cell->dtype, cell->p, &text);
        snprintf(out, size, "%s", gd_buf_text(&text));
        gd_buf_deinit(&text);
    } else if (is_float) {
        number_text(real_of(cell), full ? digits : 4, out, size);
    } else if (gd_dtype_is_complex(cell->dtype)) {
        number_text(real_of(cell), full ? digits : 3, out, size);
        number_text(imaginary_of(cell), full ? digits : 3, imaginary, sizeof(imaginary));
        size_t used = strlen(out);
        snprintf(out + used, size - used, "%s%sj", imaginary[0] == '-' ? "" : "+", imaginary);
    } else {
        integer_text(cell, out, size);
    }
}

/* Rounds a typed number to the value's type, as numpy does: 0.1 becomes the nearest float32.
 * Numbers that the type cannot represent, and differences, are compared unrounded. */
static double as_held(const struct tensor_cell *cell, double number)
{
    double held = number;

    if (cell->less || !(fabs(number) <= FLT_MAX)) {
        return number;
    }
    if (cell->dtype == GD_FLOAT32) {
        held = (double)(float)number;
    } else if (cell->dtype == GD_FLOAT16) {
        held = (double)gd_half_to_float(gd_float_to_half((float)number));
    } else if (cell->dtype == GD_BFLOAT16) {
        held = (double)gd_bfloat16_to_float(gd_float_to_bfloat16((float)number));
    }
    return isfinite(held) ? held : number;
}

bool tensor_matches(const struct tensor_condition *condition, const struct tensor_cell *cell)
{
    double value = tensor_cell_value(cell);
    double wanted = as_held(cell, condition->value);

    value = condition->magnitude ? fabs(value) : value;
    switch (condition->test) {
    case TEST_NONFINITE: return tensor_cell_is_bad(cell);
    case TEST_NAN: return isnan(value);
    case TEST_INF: return isinf(value);
    case TEST_LESS: return value < wanted;
    case TEST_LESS_EQUAL: return value <= wanted;
    case TEST_GREATER: return value > wanted;
    case TEST_GREATER_EQUAL: return value >= wanted;
    case TEST_EQUAL: return value >= wanted && value <= wanted;
    case TEST_NOT_EQUAL: return !(value >= wanted && value <= wanted);
    case TEST_INSIDE: return value >= wanted && value <= as_held(cell, condition->high);
    }
    return false;
}
