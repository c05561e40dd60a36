// SPDX-License-Identifier: MIT
/*
 * The rows of a tensor are ORed, as bits, into one row: a unit that was zero throughout is left
 * with nothing but the sign bits of negative zeros. This loop is independent of the dtype and runs
 * at memory speed.
 */
#include "base/units.h"

#include <stdlib.h>
#include <string.h>

#include "base/dtype_impl.h"

struct gd_units {
    enum gd_dtype dtype;
    size_t total;
    uint32_t *streak; /* per unit: consecutive tensors in which it was zero throughout */
};

int gd_units_create(struct gd_units **ret, struct gd_err *err)
{
    struct gd_units *units = calloc(1, sizeof(*units));

    if (!units) {
        return gd_fail_nomem(err);
    }
    *ret = units;
    return GD_OK;
}

void gd_units_destroy(struct gd_units *units)
{
    if (!units) {
        return;
    }
    free(units->streak);
    free(units);
}

static int reset_units(struct gd_units *units, enum gd_dtype dtype, size_t total,
                       struct gd_err *err)
{
    uint32_t *streak = calloc(total ? total : 1, sizeof(*streak));

    if (!streak) {
        return gd_fail(err, GD_ENOMEM, "out of memory for the %zu units of a tensor", total);
    }
    free(units->streak);
    units->streak = streak;
    units->dtype = dtype;
    units->total = total;
    return GD_OK;
}

static void or_bytes(unsigned char *into, const unsigned char *from, size_t bytes)
{
    size_t i = 0;

    for (; i + 32 <= bytes; i += 32) {
        uint64_t a[4], b[4];

        memcpy(a, into + i, sizeof(a));
        memcpy(b, from + i, sizeof(b));
        a[0] |= b[0];
        a[1] |= b[1];
        a[2] |= b[2];
        a[3] |= b[3];
        memcpy(into + i, a, sizeof(a));
    }
    for (; i < bytes; i++) {
        into[i] |= from[i];
    }
}

static void or_elements(unsigned char *into, const unsigned char *from, size_t n, int64_t stride,
                        size_t item)
{
    if (stride == (int64_t)item) {
        or_bytes(into, from, n * item);
        return;
    }
    for (size_t i = 0; i < n; i++, into += item, from += stride) {
        for (size_t b = 0; b < item; b++) {
            into[b] |= from[b];
        }
    }
}

/* ORs all rows into `row`; false when there are none. */
static bool or_rows(const struct gd_tensor *tensor, size_t total, unsigned char *row)
{
    size_t item = gd_dtype_size(tensor->dtype), unit = 0;
    struct gd_walk walk;

    if (!gd_walk_init(&walk, &tensor->shape, tensor->stride, item)) {
        return false;
    }
    do { /* a run may end within a row, or span several */
        const unsigned char *p = tensor->data + walk.offset;
        size_t left = (size_t)walk.run;

        while (left > 0) {
            size_t take = left < total - unit ? left : total - unit;

            or_elements(row + unit * item, p, take, walk.run_stride, item);
            p += (int64_t)take * walk.run_stride;
            left -= take;
            unit = unit + take == total ? 0 : unit + take;
        }
    } while (gd_walk_next(&walk));
    return true;
}

/* Whether these bits of an element, or of one part of a complex one, are those of zero. */
static bool is_zero(uint64_t bits, enum gd_dtype dtype, size_t part)
{
    bool has_sign = gd_dtype_is_float(dtype) || gd_dtype_is_complex(dtype);

    return (has_sign ? bits & ~(UINT64_C(1) << (part * 8 - 1)) : bits) == 0;
}

static void count_look(struct gd_units *units, const unsigned char *row)
{
    size_t item = gd_dtype_size(units->dtype);
    size_t part = gd_dtype_is_complex(units->dtype) ? item / 2 : item;

    for (size_t i = 0; i < units->total; i++) {
        const unsigned char *p = row + i * item;
        bool zero = is_zero(gd_load_bits(p, part), units->dtype, part) &&
                    is_zero(gd_load_bits(p + item - part, part), units->dtype, part);
        uint32_t streak = units->streak[i];

        units->streak[i] = !zero ? 0 : streak < UINT32_MAX ? streak + 1 : streak;
    }
}

int gd_units_look(struct gd_units *units, const struct gd_tensor *tensor, struct gd_err *err)
{
    const struct gd_shape *shape = &tensor->shape;
    size_t item = gd_dtype_size(tensor->dtype);
    size_t total = shape->rank ? (size_t)shape->dim[shape->rank - 1] : 1;
    int rc = GD_OK;

    if (item == 0) {
        return gd_fail(err, GD_EUNSUPPORTED, "cannot compute statistics of a %s tensor",
                       gd_dtype_name(tensor->dtype));
    }
    if (gd_shape_count(shape) <= 0) { /* no rows */
        total = 0;
    }
    if (tensor->dtype != units->dtype || total != units->total) {
        rc = reset_units(units, tensor->dtype, total, err);
    }
    if (rc != GD_OK || total == 0) {
        return rc;
    }
    unsigned char *row = calloc(total, item);
    if (!row) {
        return gd_fail(err, GD_ENOMEM, "out of memory for the %zu units of a tensor", total);
    }
    if (or_rows(tensor, total, row)) {
        count_look(units, row);
    }
    free(row);
    return GD_OK;
}

void gd_units_count(const struct gd_units *units, uint32_t steps, uint64_t *total, uint64_t *dead)
{
    uint32_t needed = steps ? steps : 1;

    *total = units->total;
    *dead = 0;
    for (size_t i = 0; i < units->total; i++) {
        *dead += units->streak[i] >= needed;
    }
}
