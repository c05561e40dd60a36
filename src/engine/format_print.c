// SPDX-License-Identifier: GPL-3.0-or-later
/* Tensors as MindSpore's Print operator writes them. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/format.h"

#define CELL_MAX 64

struct printer {
    const struct gd_tensor *tensor;
    const struct gd_shape *shape; /* the tensor's, or what it abridges */
    struct gd_shape left;         /* what is printed of that */
    bool commas;
    int width; /* of integers: that of the widest that is printed */
    struct gd_buf *out;
};

static bool has_digits(enum gd_dtype dtype) /* printed in scientific notation, in wide cells */
{
    return dtype == GD_FLOAT16 || dtype == GD_FLOAT32 || dtype == GD_FLOAT64;
}

static const char *type_name(enum gd_dtype dtype)
{
    static const char *const names[GD_DT_COUNT] = {
        [GD_BOOL] = "Bool",         [GD_INT8] = "Int8",           [GD_INT16] = "Int16",
        [GD_INT32] = "Int32",       [GD_INT64] = "Int64",         [GD_UINT8] = "UInt8",
        [GD_UINT16] = "UInt16",     [GD_UINT32] = "UInt32",       [GD_UINT64] = "UInt64",
        [GD_FLOAT16] = "Float16",   [GD_FLOAT32] = "Float32",     [GD_FLOAT64] = "Float64",
        [GD_BFLOAT16] = "BFloat16", [GD_COMPLEX64] = "Complex64", [GD_COMPLEX128] = "Complex128"};

    return (unsigned)dtype < GD_DT_COUNT ? names[dtype] : NULL;
}

static void complex_text(enum gd_dtype dtype, const unsigned char *p, char *out)
{
    double re, im;

    if (dtype == GD_COMPLEX64) {
        re = gd_dtype_load(GD_FLOAT32, p);
        im = gd_dtype_load(GD_FLOAT32, p + sizeof(float));
    } else {
        re = gd_dtype_load(GD_FLOAT64, p);
        im = gd_dtype_load(GD_FLOAT64, p + sizeof(double));
    }
    snprintf(out, CELL_MAX, "%g%+gj", re, im);
}

static void int_text(enum gd_dtype dtype, const unsigned char *p, char *out)
{
    uint64_t wide;

    if (dtype == GD_UINT64) {
        memcpy(&wide, p, sizeof(wide));
        snprintf(out, CELL_MAX, "%llu", (unsigned long long)wide);
    } else if (dtype == GD_INT64) {
        memcpy(&wide, p, sizeof(wide));
        snprintf(out, CELL_MAX, "%lld", (long long)wide);
    } else {
        snprintf(out, CELL_MAX, "%.0f", gd_dtype_load(dtype, p));
    }
}

/* One element without padding. */
static void element_text(enum gd_dtype dtype, const unsigned char *p, bool alone, char *out)
{
    if (dtype == GD_BOOL) {
        snprintf(out, CELL_MAX, "%s", *p ? "True" : "False");
    } else if (gd_dtype_is_complex(dtype)) {
        complex_text(dtype, p, out);
    } else if (gd_dtype_is_int(dtype)) {
        int_text(dtype, p, out);
    } else if (alone || dtype == GD_BFLOAT16) {
        snprintf(out, CELL_MAX, "%g", gd_dtype_load(dtype, p));
    } else {
        snprintf(out, CELL_MAX, "%.*e", dtype == GD_FLOAT16 ? 4 : 8, gd_dtype_load(dtype, p));
    }
}

static int cell_width(const struct printer *printer)
{
    enum gd_dtype dtype = printer->tensor->dtype;

    if (has_digits(dtype)) {
        return dtype == GD_FLOAT16 ? 11 : 15;
    }
    return dtype == GD_BOOL ? 5 : gd_dtype_is_complex(dtype) ? 0 : printer->width;
}

/* Elements [first, end) of the last axis. A tensor with a single axis has many: a line break
 * follows every `line` of them, counted from the axis's start, even after the last. */
static void print_cells(struct printer *printer, const unsigned char *row, int64_t first,
                        int64_t end)
{
    const struct gd_tensor *tensor = printer->tensor;
    int axis = tensor->shape.rank - 1, width = cell_width(printer);
    int64_t line = has_digits(tensor->dtype) || tensor->dtype == GD_BOOL ? 12 : 24;
    char cell[CELL_MAX];

    for (int64_t i = first; i < end; i++) {
        element_text(tensor->dtype, row + i * tensor->stride[axis], false, cell);
        gd_buf_printf(printer->out, "%*s", width, cell);
        if (i != end - 1) {
            gd_buf_puts(printer->out, printer->commas ? ", " : " ");
        }
        if (axis == 0 && end - first > GD_EDGE && (i + 1) % line == 0) {
            gd_buf_puts(printer->out, "\n ");
        }
    }
}

static bool is_shortened(const struct printer *printer, int axis)
{
    return printer->left.dim[axis] < printer->shape->dim[axis];
}

static void print_row(struct printer *printer, const unsigned char *row)
{
    int axis = printer->tensor->shape.rank - 1;
    int64_t count = printer->tensor->shape.dim[axis];

    gd_buf_putc(printer->out, '[');
    if (is_shortened(printer, axis)) {
        print_cells(printer, row, 0, GD_EDGE);
        gd_buf_puts(printer->out, " ... ");
        print_cells(printer, row, count - GD_EDGE, count);
    } else {
        print_cells(printer, row, 0, count);
    }
    gd_buf_putc(printer->out, ']');
}

static void break_line(struct printer *printer, int axis, bool comma)
{
    gd_buf_printf(printer->out, "%s\n%*s", comma && printer->commas ? "," : "", axis + 1, "");
}

/* Recursion ends after at most GD_MAX_RANK levels. */
static void print_axis(struct printer *printer, int axis, const unsigned char *at)
{
    const struct gd_tensor *tensor = printer->tensor;
    int64_t count = tensor->shape.dim[axis];

    if (axis == tensor->shape.rank - 1) {
        print_row(printer, at);
        return;
    }
    gd_buf_putc(printer->out, '[');
    for (int64_t i = 0; i < count; i++) {
        bool gap = is_shortened(printer, axis) && i == GD_EDGE;
        if (gap) {
            break_line(printer, axis, true);
            gd_buf_puts(printer->out, "...");
            i = count - GD_EDGE;
        }
        if (i > 0) {
            break_line(printer, axis, !gap);
        }
        print_axis(printer, axis + 1, at + i * tensor->stride[axis]);
    }
    gd_buf_putc(printer->out, ']');
}

/* The widest element that is printed. */
static int find_width(const struct printer *printer, int axis, const unsigned char *at)
{
    const struct gd_tensor *tensor = printer->tensor;
    int64_t count = tensor->shape.dim[axis];
    char cell[CELL_MAX];
    int most = 0;

    for (int64_t i = 0; i < count; i++) {
        int width;
        if (is_shortened(printer, axis) && i == GD_EDGE) {
            i = count - GD_EDGE;
        }
        if (axis < tensor->shape.rank - 1) {
            width = find_width(printer, axis + 1, at + i * tensor->stride[axis]);
        } else {
            element_text(tensor->dtype, at + i * tensor->stride[axis], false, cell);
            width = (int)strlen(cell);
        }
        most = width > most ? width : most;
    }
    return most;
}

static void print_head(struct printer *printer)
{
    const struct gd_shape *shape = printer->shape;

    gd_buf_puts(printer->out, "Tensor(shape=[");
    for (int i = 0; i < shape->rank; i++) {
        gd_buf_printf(printer->out, "%s%lld", i > 0 ? ", " : "", (long long)shape->dim[i]);
    }
    gd_buf_printf(printer->out, "], dtype=%s, value=%s", type_name(printer->tensor->dtype),
                  shape->rank > 1   ? "\n"
                  : printer->commas ? " "
                                    : "");
}

/* The operator writes a number without its type, and a bool as 0 or 1; a complex one as (re,im). */
static void print_alone(enum gd_dtype dtype, const unsigned char *p, struct gd_buf *out)
{
    char text[CELL_MAX];
    double im = 0;

    if (dtype == GD_BOOL) {
        gd_buf_printf(out, "%d", *p != 0);
    } else if (gd_dtype_is_complex(dtype)) {
        enum gd_dtype part = dtype == GD_COMPLEX64 ? GD_FLOAT32 : GD_FLOAT64;
        im = gd_dtype_load(part, p + gd_dtype_size(part));
        gd_buf_printf(out, "(%g,%g)", gd_dtype_load(part, p), im);
    } else {
        element_text(dtype, p, true, text);
        gd_buf_puts(out, text);
    }
}

int gd_format_print(const struct gd_tensor *tensor, bool commas, struct gd_buf *out,
                    struct gd_err *err)
{
    struct printer printer = {.tensor = tensor,
                              .shape = tensor->abridged ? &tensor->whole : &tensor->shape,
                              .commas = commas,
                              .out = out};
    bool alone = tensor->shape.rank == 0;
    char text[CELL_MAX];

    if (!type_name(tensor->dtype)) {
        return gd_fail(err, GD_EUNSUPPORTED, "values of type %s cannot be printed",
                       gd_dtype_name(tensor->dtype));
    }
    if (alone && !commas) {
        print_alone(tensor->dtype, tensor->data, out);
        return out->failed ? gd_fail_nomem(err) : GD_OK;
    }
    gd_shape_abridge(printer.shape, &printer.left);
    print_head(&printer);
    if (alone) {
        element_text(tensor->dtype, tensor->data, true, text);
        gd_buf_puts(out, text);
    } else if (gd_tensor_count(tensor) > 0) {
        printer.width = find_width(&printer, 0, tensor->data);
        print_axis(&printer, 0, tensor->data);
    }
    gd_buf_putc(out, ')');
    return out->failed ? gd_fail_nomem(err) : GD_OK;
}
