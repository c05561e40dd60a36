// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The wanted axes are sorted by their step in the file, each with its step in the result. The file
 * is then read front to back, whatever the order of the axes, through a window that grows while
 * neighbours are wanted and shrinks to what is needed when they are far apart.
 */
#include "dump/io/strided_read.h"

#include <stdlib.h>
#include <string.h>

#define DIRECT  ((int64_t)32 << 10) /* bytes; longer runs are read straight to their destination */
#define WINDOW  ((uint64_t)512 << 10)
#define NEAR    ((uint64_t)16 << 10) /* bytes; runs closer than this are read together */
#define AT_ONCE 2048                 /* elements converted at a time */

struct axis {
    int64_t dim, from, to; /* steps in elements; from >= 0 */
};

struct window {
    unsigned char *data;
    uint64_t at, size; /* range held */
    uint64_t ahead;    /* bytes to read beyond the request */
    uint64_t end;      /* nothing after it is wanted */
};

struct gather {
    const struct gd_stored_elements *in;
    unsigned bits;
    size_t item; /* bytes of an element of the result */
    bool plain;  /* elements need no conversion */
    struct axis axis[GD_MAX_RANK];
    int rank;
    int64_t first; /* element of the file to start at */
    unsigned char *out;
    struct window window;
};

bool gd_layout_is_contiguous(const struct gd_layout *layout)
{
    int64_t step = 1;

    for (int i = layout->shape.rank - 1; i >= 0; i--) {
        if (layout->shape.dim[i] != 1 && layout->stride[i] != step) {
            return false;
        }
        step *= layout->shape.dim[i];
    }
    return true;
}

/* ---- the plan -------------------------------------------------------------------------------- */

static void add_axis(struct gather *g, struct axis axis)
{
    int at = g->rank++;

    /* Largest step first; an axis with step 0, which repeats its elements, goes innermost. */
    for (; at > 0 && g->axis[at - 1].from < axis.from; at--) {
        g->axis[at] = g->axis[at - 1];
    }
    g->axis[at] = axis;
}

/* Merges axes where the outer step is a whole row of the inner one, in file and result. */
static void join_axes(struct gather *g)
{
    int kept = 0;

    for (int i = 1; i < g->rank; i++) {
        struct axis *outer = &g->axis[kept], inner = g->axis[i];

        if (outer->from == inner.from * inner.dim && outer->to == inner.to * inner.dim) {
            inner.dim *= outer->dim;
            *outer = inner;
        } else {
            g->axis[++kept] = inner;
        }
    }
    g->rank = g->rank ? kept + 1 : 0;
}

static void plan_axes(struct gather *g, const struct gd_layout *layout)
{
    int64_t to = 1, last;

    g->first = layout->offset;
    for (int i = layout->shape.rank - 1; i >= 0; i--) {
        struct axis axis = {layout->shape.dim[i], layout->stride[i], to};

        to *= axis.dim;
        if (axis.dim == 1) {
            continue;
        }
        if (axis.from < 0) {
            g->first += axis.from * (axis.dim - 1);
            g->out += axis.to * (axis.dim - 1) * (int64_t)g->item;
            axis.from = -axis.from;
            axis.to = -axis.to;
        }
        add_axis(g, axis);
    }
    join_axes(g);
    last = g->first;
    for (int i = 0; i < g->rank; i++) {
        last += g->axis[i].from * (g->axis[i].dim - 1);
    }
    g->window.end = ((uint64_t)(last + 1) * g->bits + 7) / 8;
}

/* ---- the window ------------------------------------------------------------------------------ */

/* Makes bytes [at, at + size) readable at *ret; size is at most WINDOW. */
static int look_at(struct gather *g, uint64_t at, uint64_t size, const unsigned char **ret,
                   struct gd_err *err)
{
    struct window *w = &g->window;
    uint64_t end = w->at + w->size, want;
    int rc;

    if (w->size > 0 && at >= w->at && at + size <= end) {
        *ret = w->data + (at - w->at);
        return GD_OK;
    }
    if (w->size > 0 && at >= w->at && at <= end + NEAR) {
        w->ahead = w->ahead * 2 < WINDOW ? w->ahead * 2 : WINDOW;
        w->ahead = w->ahead < 4096 ? 4096 : w->ahead;
    } else {
        w->ahead = w->size == 0 ? 4096 : size;
    }
    want = size > w->ahead ? size : w->ahead;
    want = w->end > at && want > w->end - at ? w->end - at : want;
    want = want < size ? size : want;
    if (!w->data) {
        w->data = malloc(WINDOW);
        if (!w->data) {
            return gd_fail_nomem(err);
        }
    }
    w->size = 0;
    rc = gd_bytes_read(g->in->bytes, at, w->data, (size_t)want, err);
    if (rc != GD_OK) {
        return rc;
    }
    w->at = at;
    w->size = want;
    *ret = w->data;
    return GD_OK;
}

/* ---- elements -------------------------------------------------------------------------------- */

#define FLIP(type, expression)                                                                     \
    for (int64_t i = 0; i < count; i++) {                                                          \
        type v;                                                                                    \
                                                                                                   \
        memcpy(&v, p + i * (int64_t)sizeof(v), sizeof(v));                                         \
        v = (type)(expression);                                                                    \
        memcpy(p + i * (int64_t)sizeof(v), &v, sizeof(v));                                         \
    }                                                                                              \
    break;

static void negate_elements(enum gd_dtype dtype, unsigned char *p, int64_t count)
{
    switch (dtype) {
    case GD_FLOAT16:
    case GD_BFLOAT16: FLIP(uint16_t, v ^ 0x8000)
    case GD_COMPLEX64: count *= 2; /* fall through */
    case GD_FLOAT32: FLIP(float, -v)
    case GD_COMPLEX128: count *= 2; /* fall through */
    case GD_FLOAT64: FLIP(double, -v)
    case GD_INT8:
    case GD_UINT8: FLIP(uint8_t, 0U - v)
    case GD_INT16:
    case GD_UINT16: FLIP(uint16_t, 0U - v)
    case GD_INT32:
    case GD_UINT32: FLIP(uint32_t, 0U - v)
    case GD_INT64:
    case GD_UINT64: FLIP(uint64_t, 0U - v)
    default: break;
    }
}

static void conjugate_elements(enum gd_dtype dtype, unsigned char *p, int64_t count)
{
    if (dtype == GD_COMPLEX64) {
        for (int64_t i = 0; i < count; i++) {
            negate_elements(GD_FLOAT32, p + i * 8 + 4, 1);
        }
    } else if (dtype == GD_COMPLEX128) {
        for (int64_t i = 0; i < count; i++) {
            negate_elements(GD_FLOAT64, p + i * 16 + 8, 1);
        }
    }
}

/* Writes consecutive elements `step` elements apart. */
static void scatter_elements(unsigned char *out, const unsigned char *in, int64_t count,
                             int64_t step, size_t item)
{
    int64_t stride = step * (int64_t)item;

    switch (item) {
    case 1:
        for (int64_t i = 0; i < count; i++) {
            out[i * stride] = in[i];
        }
        break;
    case 2:
        for (int64_t i = 0; i < count; i++) {
            memcpy(out + i * stride, in + i * 2, 2);
        }
        break;
    case 4:
        for (int64_t i = 0; i < count; i++) {
            memcpy(out + i * stride, in + i * 4, 4);
        }
        break;
    case 8:
        for (int64_t i = 0; i < count; i++) {
            memcpy(out + i * stride, in + i * 8, 8);
        }
        break;
    default:
        for (int64_t i = 0; i < count; i++) {
            memcpy(out + i * stride, in + i * (int64_t)item, item);
        }
        break;
    }
}

/* Converts elements of p that are `step` apart, starting at number `at`, to the result's type. */
static void convert_elements(const struct gather *g, const unsigned char *p, int64_t at,
                             int64_t count, int64_t step, unsigned char *to)
{
    enum gd_dtype dtype = gd_stored_dtype(g->in->stored);
    unsigned char near[AT_ONCE * 16];

    if (g->bits < 8 && step != 1) {
        for (int64_t i = 0; i < count; i++) {
            gd_stored_widen(g->in->stored, false, p, at + i * step, 1, to + i * (int64_t)g->item);
        }
    } else if (step == 1) {
        gd_stored_widen(g->in->stored, g->in->swap, p, at, count, to);
    } else {
        int64_t size = g->bits / 8;

        gd_copy_run(near, p + at * size, count, step * size, (size_t)size);
        gd_stored_widen(g->in->stored, g->in->swap, near, 0, count, to);
    }
    if (g->in->conjugate) {
        conjugate_elements(dtype, to, count);
    }
    if (g->in->negate) {
        negate_elements(dtype, to, count);
    }
}

/* How many elements of a run fit into the window, with the gaps between them. */
static int64_t count_fitting(const struct gather *g, const struct axis *axis, int64_t left)
{
    uint64_t step = (uint64_t)axis->from * g->bits / 8;
    int64_t most = AT_ONCE;

    if (step > NEAR) {
        return 1;
    }
    if (step > 0 && (WINDOW - 64) / step < AT_ONCE) {
        most = (int64_t)((WINDOW - 64) / step);
    }
    return left < most ? left : most;
}

/* Reads the elements along the innermost axis, starting at element `from` of the file. */
static int take_run(struct gather *g, const struct axis *axis, int64_t from, unsigned char *out,
                    struct gd_err *err)
{
    unsigned char room[AT_ONCE * 16];
    const unsigned char *p = NULL;

    if (g->plain && axis->from == 1 && axis->to == 1 && axis->dim >= DIRECT / (int64_t)g->item) {
        return gd_bytes_read(g->in->bytes, (uint64_t)from * g->item, out,
                             (size_t)axis->dim * g->item, err);
    }
    for (int64_t done = 0, n; done < axis->dim; done += n) {
        int64_t first = from + done * axis->from;
        uint64_t low, high;
        int rc;

        n = count_fitting(g, axis, axis->dim - done);
        low = (uint64_t)first * g->bits / 8;
        high = ((uint64_t)(first + (n - 1) * axis->from + 1) * g->bits + 7) / 8;
        rc = look_at(g, low, high - low, &p, err);
        if (rc != GD_OK) {
            return rc;
        }
        first -= (int64_t)(low * 8 / g->bits);
        if (axis->to == 1) {
            convert_elements(g, p, first, n, axis->from, out + done * (int64_t)g->item);
        } else {
            convert_elements(g, p, first, n, axis->from, room);
            scatter_elements(out + done * axis->to * (int64_t)g->item, room, n, axis->to, g->item);
        }
    }
    return GD_OK;
}

static int take_all(struct gather *g, struct gd_err *err)
{
    static const struct axis single = {1, 1, 1};
    const struct axis *inner = g->rank ? &g->axis[g->rank - 1] : &single;
    int64_t index[GD_MAX_RANK] = {0}, from = g->first, to = 0;
    int outer = g->rank ? g->rank - 1 : 0, i;

    for (;;) {
        int rc = take_run(g, inner, from, g->out + to * (int64_t)g->item, err);

        if (rc != GD_OK) {
            return rc;
        }
        for (i = outer - 1; i >= 0; i--) {
            from += g->axis[i].from;
            to += g->axis[i].to;
            if (++index[i] < g->axis[i].dim) {
                break;
            }
            from -= g->axis[i].from * g->axis[i].dim;
            to -= g->axis[i].to * g->axis[i].dim;
            index[i] = 0;
        }
        if (i < 0) {
            return GD_OK;
        }
    }
}

int gd_strided_read(const struct gd_stored_elements *elements, const struct gd_layout *layout,
                    void *out, struct gd_err *err)
{
    struct gather g = {.in = elements, .bits = gd_stored_bits(elements->stored), .out = out};
    int rc;

    if (gd_shape_count(&layout->shape) <= 0) {
        return GD_OK;
    }
    g.item = gd_dtype_size(gd_stored_dtype(elements->stored));
    g.plain = g.bits == g.item * 8 && !elements->swap && !elements->conjugate && !elements->negate;
    plan_axes(&g, layout);
    rc = take_all(&g, err);
    free(g.window.data);
    return rc;
}

/* ---- runs ------------------------------------------------------------------------------------ */

/* The largest box of rows consecutive in C order that starts at `first` and has at most `count`
 * elements. */
static int64_t box_at(const struct gd_layout *whole, int64_t first, int64_t count,
                      struct gd_layout *ret)
{
    int64_t row = 1, at = first, index[GD_MAX_RANK], rows = 1;
    int axis = whole->shape.rank - 1, best = axis;
    int64_t best_row = 1;

    for (int i = axis; i >= 0; i--) {
        index[i] = at % whole->shape.dim[i];
        at /= whole->shape.dim[i];
    }
    for (int i = axis; i >= 0 && first % row == 0 && row <= count; i--) {
        best = i;
        best_row = row;
        row *= whole->shape.dim[i];
    }
    *ret = (struct gd_layout){.offset = whole->offset};
    for (int i = 0; i <= axis; i++) {
        ret->offset += index[i] * whole->stride[i];
    }
    if (axis < 0) {
        return 1;
    }
    rows = count / best_row;
    rows =
        rows < whole->shape.dim[best] - index[best] ? rows : whole->shape.dim[best] - index[best];
    for (int i = best; i <= axis; i++) {
        ret->shape.dim[i - best] = i == best ? rows : whole->shape.dim[i];
        ret->stride[i - best] = whole->stride[i];
    }
    ret->shape.rank = axis - best + 1;
    return rows * best_row;
}

int gd_strided_read_run(const struct gd_stored_elements *elements, const struct gd_layout *layout,
                        int64_t first, int64_t count, void *out, struct gd_err *err)
{
    size_t item = gd_dtype_size(gd_stored_dtype(elements->stored));
    unsigned char *to = out;

    while (count > 0) {
        struct gd_layout box;
        int64_t taken = box_at(layout, first, count, &box);
        int rc = gd_strided_read(elements, &box, to, err);

        if (rc != GD_OK) {
            return rc;
        }
        first += taken;
        count -= taken;
        to += (size_t)taken * item;
    }
    return GD_OK;
}
