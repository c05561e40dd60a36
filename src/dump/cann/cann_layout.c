// SPDX-License-Identifier: GPL-3.0-or-later
#include "dump/cann/cann_layout.h"

#include <stdio.h>
#include <string.h>

#include "dump/cann/cann_types.h"

#define N0 16 /* rows of a fractal block */

enum letter { N, C, H, W, D, LETTERS };
static const char letters[] = "NCHWD";

/* The framework's tensor, as far as known: the meaning and size of its dimensions. */
struct host {
    const char *order;   /* "NHWC"; with fewer dimensions "NC" */
    int64_t of[LETTERS]; /* 1 if absent */
};

/* The tensor on the device. Numbers out of range are INT64_MAX and equal nothing. */
struct device {
    int rank;
    int64_t dim[6];
    struct gd_cann_axis axis[LETTERS]; /* per letter */
};

/* ---- arithmetic on unchecked sizes ----------------------------------------------------------- */

static int64_t multiply_sizes(int64_t a, int64_t b)
{
    int64_t product;

    return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

static int64_t count_blocks(int64_t size, int64_t block)
{
    return size / block + (size % block != 0);
}

static int64_t common_multiple(int64_t a, int64_t b)
{
    int64_t x = a, y = b;

    while (y != 0) {
        int64_t rest = x % y;

        x = y;
        y = rest;
    }
    return multiply_sizes(a, b / x);
}

static int64_t multiply_dims(const int64_t *dim, int count)
{
    int64_t all = 1;

    for (int i = 0; i < count; i++) {
        all = multiply_sizes(all, dim[i]);
    }
    return all;
}

/* Bytes that this many elements take; INT64_MAX: too many. */
static int64_t bytes_of(int64_t count, unsigned bits)
{
    int64_t all = multiply_sizes(count, (int64_t)bits);

    return all == INT64_MAX ? all : count_blocks(all, 8);
}

/* ---- layouts of four and five dimensions ----------------------------------------------------- */

static struct gd_cann_axis plain_axis(int64_t size, int64_t stride)
{
    return (struct gd_cann_axis){.size = size, .inner = stride};
}

static struct gd_cann_axis block_axis(int64_t size, int64_t block, int64_t outer, int64_t inner)
{
    return (struct gd_cann_axis){.size = size, .block = block, .outer = outer, .inner = inner};
}

static void set_dims(struct device *device, int rank, const int64_t *dim)
{
    device->rank = rank;
    memcpy(device->dim, dim, (size_t)rank * sizeof(*dim));
}

static void set_nc1hwc0(const struct host *host, int64_t c0, struct device *ret)
{
    const int64_t *of = host->of;
    int64_t c1 = count_blocks(of[C], c0), plane = multiply_sizes(multiply_sizes(of[H], of[W]), c0);

    set_dims(ret, 5, (int64_t[]){of[N], c1, of[H], of[W], c0});
    ret->axis[N] = plain_axis(of[N], multiply_sizes(c1, plane));
    ret->axis[C] = block_axis(of[C], c0, plane, 1);
    ret->axis[H] = plain_axis(of[H], multiply_sizes(of[W], c0));
    ret->axis[W] = plain_axis(of[W], c0);
}

static void set_ndc1hwc0(const struct host *host, int64_t c0, struct device *ret)
{
    const int64_t *of = host->of;
    int64_t c1 = count_blocks(of[C], c0), plane = multiply_sizes(multiply_sizes(of[H], of[W]), c0);

    set_dims(ret, 6, (int64_t[]){of[N], of[D], c1, of[H], of[W], c0});
    ret->axis[N] = plain_axis(of[N], multiply_sizes(of[D], multiply_sizes(c1, plane)));
    ret->axis[D] = plain_axis(of[D], multiply_sizes(c1, plane));
    ret->axis[C] = block_axis(of[C], c0, plane, 1);
    ret->axis[H] = plain_axis(of[H], multiply_sizes(of[W], c0));
    ret->axis[W] = plain_axis(of[W], c0);
}

/* Same as FRACTAL_Z if D = 1. */
static void fractal_z(const struct host *host, int64_t c0, struct device *ret)
{
    const int64_t *of = host->of;
    int64_t c1 = count_blocks(of[C], c0), no = count_blocks(of[N], N0),
            tile = multiply_sizes(multiply_sizes(no, N0), c0);
    int64_t plane = multiply_sizes(multiply_sizes(of[H], of[W]), tile);

    set_dims(ret, 4,
             (int64_t[]){multiply_sizes(multiply_sizes(of[D], c1), multiply_sizes(of[H], of[W])),
                         no, N0, c0});
    ret->axis[N] = plain_axis(of[N], c0);
    ret->axis[D] = plain_axis(of[D], multiply_sizes(c1, plane));
    ret->axis[C] = block_axis(of[C], c0, plane, 1);
    ret->axis[H] = plain_axis(of[H], multiply_sizes(of[W], tile));
    ret->axis[W] = plain_axis(of[W], tile);
}

/* Only the diagonal of the two channel axes is used. */
static void set_c1hwncoc0(const struct host *host, int64_t c0, struct device *ret)
{
    const int64_t *of = host->of;
    int64_t c1 = count_blocks(of[C], c0), tile = multiply_sizes(c0, c0),
            row = multiply_sizes(of[N], tile);

    set_dims(ret, 6, (int64_t[]){c1, of[H], of[W], of[N], c0, c0});
    ret->axis[N] = plain_axis(of[N], tile);
    ret->axis[C] = block_axis(of[C], c0, multiply_sizes(multiply_sizes(of[H], of[W]), row), c0 + 1);
    ret->axis[H] = plain_axis(of[H], multiply_sizes(of[W], row));
    ret->axis[W] = plain_axis(of[W], row);
}

/* Height and width form one axis, with four channels side by side. It is stored as H; W, which is
 * adjacent in every order, has size 1. */
static void fractal_z_c04(const struct host *host, struct device *ret)
{
    const int64_t *of = host->of;
    int64_t place = multiply_sizes(of[H], of[W]), no = count_blocks(of[N], N0);

    set_dims(ret, 4, (int64_t[]){count_blocks(multiply_sizes(place, 4), 16), no, N0, 16});
    ret->axis[N] = plain_axis(of[N], 16);
    ret->axis[C] = plain_axis(of[C], 1);
    ret->axis[H] = block_axis(place, 4, multiply_sizes(no, N0 * 16), 4);
    if (of[C] > 4) {
        ret->rank = 0; /* equals nothing */
    }
}

static void place_group(const struct host *host, int64_t groups, int64_t c0, struct device *ret,
                        struct gd_cann_plan *plan)
{
    const int64_t *of = host->of;
    int64_t rows = of[N] / groups, by_c, by_n, e, cin, cout, plane;

    if (of[N] % groups != 0 || rows == 0) {
        ret->rank = 0;
        return;
    }
    by_c = common_multiple(of[C], c0) / of[C];
    by_n = common_multiple(rows, N0) / rows;
    e = common_multiple(by_c, by_n);
    e = e < groups ? e : groups;
    cin = multiply_sizes(count_blocks(multiply_sizes(e, of[C]), c0), c0);
    cout = multiply_sizes(count_blocks(multiply_sizes(e, rows), N0), N0);
    plane = multiply_sizes(multiply_sizes(of[H], of[W]), multiply_sizes(cout, c0));
    set_dims(ret, 4,
             (int64_t[]){multiply_sizes(multiply_sizes(count_blocks(groups, e), cin / c0),
                                        multiply_sizes(of[H], of[W])),
                         cout / N0, N0, c0});
    ret->axis[N] = plain_axis(rows, c0);
    ret->axis[C] = block_axis(of[C], c0, plane, 1);
    ret->axis[H] = plain_axis(of[H], multiply_sizes(of[W], multiply_sizes(cout, c0)));
    ret->axis[W] = plain_axis(of[W], multiply_sizes(cout, c0));
    plan->group.count = groups;
    plan->group.rows = rows;
    plan->group.channels = of[C];
    plan->group.together = e;
    plan->group.block = multiply_sizes(cin / c0, plane);
}

/* False: unknown layout. */
static bool set_layout(const struct gd_cann_tensor *tensor, const struct host *host, int64_t c0,
                       struct device *ret, struct gd_cann_plan *plan)
{
    *ret = (struct device){.rank = 0};
    for (int i = 0; i < LETTERS; i++) {
        ret->axis[i] = plain_axis(1, 0);
    }
    switch (tensor->format) {
    case GD_CANN_NC1HWC0:
    case GD_CANN_NC1HWC0_C04: set_nc1hwc0(host, c0, ret); return true;
    case GD_CANN_NDC1HWC0: set_ndc1hwc0(host, c0, ret); return true;
    case GD_CANN_FRACTAL_Z:
        if (tensor->group > 1) {
            place_group(host, tensor->group, c0, ret, plan);
            return true;
        }
        fractal_z(host, c0, ret);
        return true;
    case GD_CANN_FRACTAL_Z_3D: fractal_z(host, c0, ret); return true;
    case GD_CANN_FRACTAL_Z_C04: fractal_z_c04(host, ret); return true;
    case GD_CANN_C1HWNCOC0: set_c1hwncoc0(host, c0, ret); return true;
    default: return false;
    }
}

/* ---- meaning of the framework's dimensions --------------------------------------------------- */

/* "NHWC" for a plain format; NULL: not plain. */
static const char *order_of(int32_t format)
{
    switch (format) {
    case GD_CANN_NCHW:
    case GD_CANN_NHWC:
    case GD_CANN_CHWN:
    case GD_CANN_HWCN:
    case GD_CANN_NDHWC:
    case GD_CANN_NCDHW:
    case GD_CANN_DHWCN:
    case GD_CANN_DHWNC: return gd_cann_format_name(format);
    default: return NULL;
    }
}

/* Orders to try for that many dimensions, most likely first. */
static const char *const *orders_of(int rank)
{
    static const char *const one[] = {"C", NULL}, *const two[] = {"NC", "CN", NULL},
                             *const three[] = {"NCH", "CHW", "NHC", NULL},
                             *const four[] = {"NCHW", "NHWC", "HWCN", "CHWN", NULL},
                             *const five[] = {"NCDHW", "NDHWC", "DHWCN", "DHWNC", NULL},
                             *const none[] = {NULL};
    static const char *const *const all[] = {none, one, two, three, four, five};

    return all[rank >= 0 && rank <= 5 ? rank : 0];
}

static enum letter letter_of(char c)
{
    return (enum letter)(strchr(letters, c) - letters);
}

static void set_host(struct host *host, const char *order, const struct gd_shape *shape)
{
    host->order = order;
    for (int i = 0; i < LETTERS; i++) {
        host->of[i] = 1;
    }
    for (int i = 0; order[i] != '\0' && i < shape->rank; i++) {
        host->of[letter_of(order[i])] = shape->dim[i];
    }
}

static bool has_letters(const char *order, const char *wanted)
{
    return strlen(order) == strlen(wanted) && strspn(order, wanted) == strlen(order);
}

static bool has_zero(const struct gd_shape *shape)
{
    for (int i = 0; i < shape->rank; i++) {
        if (shape->dim[i] <= 0) {
            return true;
        }
    }
    return false;
}

/* ---- plans ----------------------------------------------------------------------------------- */

static unsigned bits_of(const struct gd_cann_tensor *tensor)
{
    return gd_stored_bits(gd_cann_stored(tensor->data_type));
}

/* The innermost dimension of the stored shape if that is given, otherwise the type's default. */
static int64_t c0_of(const struct gd_cann_tensor *tensor, int rank)
{
    enum gd_stored stored = gd_cann_stored(tensor->data_type);

    if (tensor->format == GD_CANN_NC1HWC0_C04) {
        return 4;
    }
    if (tensor->shape.rank == rank && tensor->shape.dim[rank - 1] > 0 &&
        !(tensor->has_original && gd_shape_equal(&tensor->shape, &tensor->original))) {
        return tensor->shape.dim[rank - 1];
    }
    return stored == GD_STORED_INT4                                ? 64
           : stored == GD_STORED_INT8 || stored == GD_STORED_UINT8 ? 32
                                                                   : 16;
}

static int rank_of(int32_t format)
{
    switch (format) {
    case GD_CANN_NC1HWC0:
    case GD_CANN_NC1HWC0_C04: return 5;
    case GD_CANN_NDC1HWC0:
    case GD_CANN_C1HWNCOC0: return 6;
    default: return 4;
    }
}

/* Whether the stored shape matches, or it is the framework's shape and the number of bytes
 * matches. */
static bool fits_stored(const struct gd_cann_tensor *tensor, const struct device *device)
{
    int64_t count = multiply_dims(device->dim, device->rank);

    if (device->rank == 0 || (uint64_t)bytes_of(count, bits_of(tensor)) != tensor->size) {
        return false;
    }
    if (tensor->shape.rank != device->rank) {
        return true;
    }
    return memcmp(tensor->shape.dim, device->dim, (size_t)device->rank * sizeof(int64_t)) == 0 ||
           (tensor->has_original && gd_shape_equal(&tensor->shape, &tensor->original));
}

/* Drops axes of size 1, except those that groups use. */
static void set_axes(struct gd_cann_plan *plan, const char *order, const struct device *device)
{
    bool groups = plan->group.count > 1;

    plan->axes = 0;
    for (int i = 0; order[i] != '\0'; i++) {
        enum letter letter = letter_of(order[i]);

        if (device->axis[letter].size == 1 && !(groups && (letter == N || letter == C))) {
            continue;
        }
        if (letter == N) {
            plan->group.n_axis = plan->axes;
        } else if (letter == C) {
            plan->group.c_axis = plan->axes;
        }
        plan->axis[plan->axes++] = device->axis[letter];
    }
}

/* Permutes the shape from the framework's order to another. */
static void set_shape(struct gd_shape *shape, const char *order, const struct host *host)
{
    shape->rank = (int)strlen(order);
    for (int i = 0; i < shape->rank; i++) {
        shape->dim[i] = host->of[letter_of(order[i])];
    }
}

static bool try_order(const struct gd_cann_tensor *tensor, const char *order, const char *to,
                      struct gd_cann_plan *plan)
{
    struct gd_cann_plan made = {.group = {.count = 1}};
    struct device device;
    struct host host;
    int64_t c0 = c0_of(tensor, rank_of(tensor->format));

    set_host(&host, order, &tensor->original);
    if (!set_layout(tensor, &host, c0, &device, &made) || !fits_stored(tensor, &device)) {
        return false;
    }
    if (!to) {
        made.shape = tensor->original;
        to = order;
    } else if (tensor->original.rank > (int)strlen(to) ||
               (tensor->original.rank > 3 && !has_letters(order, to))) {
        return false;
    } else {
        set_shape(&made.shape, to, &host);
    }
    if (made.group.count > 1 && (!strchr(to, 'N') || !strchr(to, 'C'))) {
        return false; /* groups need both of their axes */
    }
    made.converts = true;
    made.stored = multiply_dims(device.dim, device.rank);
    made.group.c0 = c0;
    set_axes(&made, to, &device);
    *plan = made;
    return true;
}

/* Uses the first order whose sizes match; a hint is tried first. */
static bool plan_fractal(const struct gd_cann_tensor *tensor, int32_t hint, const char *to,
                         struct gd_cann_plan *plan)
{
    const char *const *orders = orders_of(tensor->original.rank);
    const char *hinted = order_of(hint), *taken = NULL, *other = NULL;
    struct gd_cann_plan second;

    if (hinted && (int)strlen(hinted) == tensor->original.rank &&
        try_order(tensor, hinted, to, plan)) {
        return true;
    }
    for (int i = 0; orders[i]; i++) {
        if (!taken && try_order(tensor, orders[i], to, plan)) {
            taken = orders[i];
        } else if (taken && !other && try_order(tensor, orders[i], to, &second)) {
            other = orders[i];
        }
    }
    if (taken && other && tensor->original.rank > 3) {
        snprintf(plan->note, sizeof(plan->note),
                 "assumed to be %s; by its sizes %s is possible, too", taken, other);
    }
    return taken != NULL;
}

/* A matrix in blocks of H0 rows and W0 columns; leading dimensions are a batch. */
static bool plan_nz(const struct gd_cann_tensor *tensor, struct gd_cann_plan *plan)
{
    const struct gd_shape *shape = &tensor->original;
    int64_t w0 = c0_of(tensor, tensor->shape.rank >= 4 ? tensor->shape.rank : 4);
    int64_t rows = shape->rank > 1 ? shape->dim[shape->rank - 2] : 1;
    int64_t columns = shape->rank > 0 ? shape->dim[shape->rank - 1] : 1;
    int64_t w1 = count_blocks(columns, w0), h1 = count_blocks(rows, N0);
    int64_t batch = multiply_dims(shape->dim, shape->rank > 2 ? shape->rank - 2 : 0);
    int64_t tile = multiply_sizes(multiply_sizes(h1, N0), w0), matrix = multiply_sizes(w1, tile);
    int64_t all = multiply_sizes(batch, matrix);
    const struct gd_shape *stored = &tensor->shape;
    const int64_t *last = stored->rank >= 4 ? &stored->dim[stored->rank - 4] : NULL;

    if ((uint64_t)bytes_of(all, bits_of(tensor)) != tensor->size) {
        return false;
    }
    if (last && !gd_shape_equal(stored, shape) &&
        (last[0] != w1 || last[1] != h1 || last[2] != N0 || last[3] != w0)) {
        return false;
    }
    plan->converts = true;
    plan->shape = *shape;
    plan->stored = all;
    plan->axis[plan->axes++] = plain_axis(batch, matrix);
    plan->axis[plan->axes++] = plain_axis(rows, w0);
    plan->axis[plan->axes++] = block_axis(columns, w0, tile, 1);
    return true;
}

/* Permutes from one plain order to another. */
static bool plan_plain(const struct gd_cann_tensor *tensor, const char *order, const char *to,
                       struct gd_cann_plan *plan)
{
    const struct gd_shape *shape = &tensor->shape;
    struct device device = {.rank = 0};
    struct host host;
    int64_t stride = 1;

    if (shape->rank != (int)strlen(order) || !has_letters(order, to)) {
        return false;
    }
    set_host(&host, order, shape);
    for (int i = shape->rank; i-- > 0;) {
        device.axis[letter_of(order[i])] = plain_axis(shape->dim[i], stride);
        stride = multiply_sizes(stride, shape->dim[i]);
    }
    plan->converts = true;
    plan->stored = stride;
    set_shape(&plan->shape, to, &host);
    set_axes(plan, to, &device);
    return true;
}

/* The framework's order, if its shape is a permutation of the stored one. */
static const char *other_order(const struct gd_cann_tensor *tensor, const char *order)
{
    const char *const *orders = orders_of(tensor->original.rank);
    struct gd_shape shape;
    struct host host;

    if (!tensor->has_original || tensor->original.rank != tensor->shape.rank ||
        gd_shape_equal(&tensor->original, &tensor->shape)) {
        return NULL;
    }
    set_host(&host, order, &tensor->shape);
    for (int i = 0; orders[i]; i++) {
        if (has_letters(order, orders[i])) {
            set_shape(&shape, orders[i], &host);
            if (gd_shape_equal(&shape, &tensor->original)) {
                return orders[i];
            }
        }
    }
    return NULL;
}

/* One row with as many elements as there are bytes for. */
static void plan_raw(const struct gd_cann_tensor *tensor, const char *why,
                     struct gd_cann_plan *plan)
{
    uint64_t bits = tensor->size > UINT64_MAX / 8 ? UINT64_MAX : tensor->size * 8;
    uint64_t count = bits / bits_of(tensor);

    plan->shape.rank = 1;
    plan->shape.dim[0] = plan->stored = count > INT64_MAX ? INT64_MAX : (int64_t)count;
    if (why[0] != '\0') {
        snprintf(plan->note, sizeof(plan->note), "%s: shown as one row", why);
    }
}

static void note_stored(const struct gd_cann_tensor *tensor, struct gd_cann_plan *plan)
{
    const char *name = gd_cann_format_name(tensor->format);

    if (name) {
        snprintf(plan->note, sizeof(plan->note), "as stored by the device: %s", name);
    } else {
        snprintf(plan->note, sizeof(plan->note), "as stored by the device: format %d",
                 (int)tensor->format);
    }
}

static bool is_fractal(int32_t format)
{
    struct host host = {.order = "", .of = {1, 1, 1, 1, 1}};
    struct gd_cann_tensor tensor = {.format = format};
    struct gd_cann_plan plan = {.axes = 0};
    struct device device;

    return format == GD_CANN_FRACTAL_NZ || set_layout(&tensor, &host, 16, &device, &plan);
}

static bool plan_converted(const struct gd_cann_tensor *tensor, int32_t hint, int32_t to,
                           struct gd_cann_plan *plan)
{
    const char *order = order_of(tensor->format), *wanted = order_of(to);

    if (order) {
        wanted = wanted ? wanted : other_order(tensor, order);
        return wanted && strcmp(wanted, order) != 0 && !has_zero(&tensor->shape) &&
               plan_plain(tensor, order, wanted, plan);
    }
    if (!is_fractal(tensor->format) || !tensor->has_original || has_zero(&tensor->original)) {
        return false;
    }
    if (tensor->format == GD_CANN_FRACTAL_NZ) {
        return !wanted && plan_nz(tensor, plan);
    }
    return plan_fractal(tensor, hint, wanted, plan);
}

bool gd_cann_plan(const struct gd_cann_tensor *tensor, int32_t hint, int32_t to,
                  struct gd_cann_plan *plan)
{
    int64_t count = tensor->has_shape ? gd_shape_count(&tensor->shape) : -1;

    *plan = (struct gd_cann_plan){.group = {.count = 1}};
    if (tensor->bad_shape) {
        plan_raw(tensor, "its shape is invalid", plan);
        return false;
    }
    if (plan_converted(tensor, hint, to, plan)) {
        return true;
    }
    *plan = (struct gd_cann_plan){.group = {.count = 1}};
    if (count < 0) {
        plan_raw(tensor, "its shape is unknown", plan);
        return false;
    }
    if ((uint64_t)bytes_of(count, bits_of(tensor)) != tensor->size) {
        plan_raw(tensor, "its shape and size do not match", plan);
        return false;
    }
    plan->shape = tensor->shape;
    plan->stored = count;
    if (tensor->format != GD_CANN_ND && !order_of(tensor->format)) {
        note_stored(tensor, plan);
    }
    return true;
}

/* ---- conversion ------------------------------------------------------------------------------ */

/* One pass: the starting indices of the axes, in the stored and in the framework's tensor. */
struct pass {
    const struct gd_cann_plan *plan;
    struct gd_cann_axis axis[GD_CANN_AXES];
    int64_t phase[GD_CANN_AXES]; /* added to the index */
    int64_t step[GD_CANN_AXES];  /* in the result, in elements */
    int64_t base, out_base;
    size_t item;
    const unsigned char *in;
    unsigned char *out;
};

static int64_t offset_of(const struct pass *pass, int axis, int64_t index)
{
    const struct gd_cann_axis *at = &pass->axis[axis];

    index += pass->phase[axis];
    return at->block ? index / at->block * at->outer + index % at->block * at->inner
                     : index * at->inner;
}

/* Copies the last axis, in evenly spaced runs. */
static void copy_row(const struct pass *pass, int axis, int64_t base, int64_t out_base)
{
    const struct gd_cann_axis *at = &pass->axis[axis];
    int64_t item = (int64_t)pass->item;

    for (int64_t i = 0; i < at->size;) {
        int64_t left = at->size - i, run = left;

        if (at->block) {
            run = at->block - (i + pass->phase[axis]) % at->block;
            run = run < left ? run : left;
        }
        gd_copy_run(pass->out + (out_base + i) * item,
                    pass->in + (base + offset_of(pass, axis, i)) * item, run, at->inner * item,
                    pass->item);
        i += run;
    }
}

static void run_pass(const struct pass *pass)
{
    int last = pass->plan->axes - 1;
    int64_t index[GD_CANN_AXES] = {0};
    /* sums up to and including the axis */
    int64_t from[GD_CANN_AXES] = {0}, to[GD_CANN_AXES] = {0};
    int axis = 0;

    if (last < 0) {
        memcpy(pass->out + pass->out_base * (int64_t)pass->item,
               pass->in + pass->base * (int64_t)pass->item, pass->item);
        return;
    }
    while (axis >= 0) {
        int64_t above = axis ? from[axis - 1] : pass->base;
        int64_t out_above = axis ? to[axis - 1] : pass->out_base;

        if (axis == last) {
            copy_row(pass, axis, above, out_above);
            axis--;
        } else if (index[axis] < pass->axis[axis].size) {
            from[axis] = above + offset_of(pass, axis, index[axis]);
            to[axis] = out_above + index[axis] * pass->step[axis];
            index[axis]++;
            index[++axis] = 0;
        } else {
            axis--;
        }
    }
}

/* Checks that the largest offset of all passes lies within the stored elements. */
static bool stays_inside(const struct pass *pass)
{
    int64_t most = pass->base;

    for (int i = 0; i < pass->plan->axes; i++) {
        const struct gd_cann_axis *at = &pass->axis[i];
        int64_t end = at->size - 1 + pass->phase[i];
        int64_t far = at->block ? end / at->block * at->outer +
                                      (end < at->block ? end : at->block - 1) * at->inner
                                : end * at->inner;

        most += far;
    }
    return most < pass->plan->stored;
}

static bool set_group(struct pass *pass, int64_t group)
{
    const struct gd_cann_plan *plan = pass->plan;
    int n = plan->group.n_axis, c = plan->group.c_axis;
    int64_t within = group % plan->group.together;

    pass->phase[n] = within * plan->group.rows;
    pass->phase[c] = within * plan->group.channels;
    pass->base = group / plan->group.together * plan->group.block;
    pass->out_base = group * plan->group.rows * pass->step[n];
    return stays_inside(pass);
}

int gd_cann_convert(const struct gd_cann_plan *plan, size_t item, const void *in, void *out,
                    struct gd_err *err)
{
    struct pass pass = {.plan = plan, .item = item, .in = in, .out = out};
    int64_t step = 1;
    bool groups = plan->group.count > 1, inside = true;

    memcpy(pass.axis, plan->axis, sizeof(pass.axis));
    for (int i = plan->axes; i-- > 0;) {
        pass.step[i] = step;
        step *= plan->axis[i].size;
        if (groups && i == plan->group.n_axis) {
            step *= plan->group.count;
        }
    }
    if (step != gd_shape_count(&plan->shape)) {
        return gd_fail(err, GD_EPROTO, "the layout yields %lld elements instead of %lld",
                       (long long)step, (long long)gd_shape_count(&plan->shape));
    }
    for (int64_t group = 0; group < plan->group.count && inside; group++) {
        inside = groups ? set_group(&pass, group) : stays_inside(&pass);
        if (inside) {
            run_pass(&pass);
        }
    }
    return inside ? GD_OK
                  : gd_fail(err, GD_EPROTO, "the layout reaches beyond the stored elements");
}
