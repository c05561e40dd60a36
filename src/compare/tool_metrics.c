// SPDX-License-Identifier: GPL-3.0-or-later
#include "compare/tool_metrics.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compare/metrics_impl.h"
#include "compare/tensor_table.h"

#define NORM_OF_NOTHING 2.220446049250313e-16 /* norms up to this count as 0 */

static const char *const view_names[] = {"gradb", "allclose", "troubleshooter", "msprobe"};

int gd_tool_from_name(const char *name)
{
    for (int i = 0; i < 4; i++) {
        if (strcmp(name, view_names[i]) == 0) {
            return i;
        }
    }
    return -1;
}

struct gd_tool_options gd_tool_defaults(enum gd_tool view)
{
    if (view == GD_TOOL_TROUBLESHOOTER) {
        return (struct gd_tool_options){.rtol = 1e-4, .atol = 1e-4};
    }
    return (struct gd_tool_options){.rtol = 1e-5, .atol = 1e-8};
}

const char *const *gd_tool_columns(enum gd_tool view, int *count)
{
    static const char *const none[] = {NULL};
    static const char *const allclose[] = {"allclose", "close", "not close", "size", "max |a-b|"};
    static const char *const troubleshooter[] = {"result of allclose", "ratio of allclose",
                                                 "cosine similarity", "mean & max diffs"};
    static const char *const msprobe[] = {"Cosine",
                                          "EucDist",
                                          "MaxAbsErr",
                                          "MaxRelativeErr",
                                          "One Thousandth Err Ratio",
                                          "Five Thousandths Err Ratio"};

    switch (view) {
    case GD_TOOL_ALLCLOSE: *count = 5; return allclose;
    case GD_TOOL_TROUBLESHOOTER: *count = 4; return troubleshooter;
    case GD_TOOL_MSPROBE: *count = 6; return msprobe;
    default: *count = 0; return none;
    }
}

const char *gd_tool_number(double value, char *out, size_t size)
{
    char digits[40];
    int exp, precision = 0;

    if (!isfinite(value)) {
        snprintf(out, size, "%s", isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
        return out;
    }
    do {
        snprintf(digits, sizeof(digits), "%.*e", precision, value);
    } while (strtod(digits, NULL) != value && ++precision < 17);
    exp = (int)strtol(strchr(digits, 'e') + 1, NULL, 10);
    if (exp < -4 || exp >= 16) {
        snprintf(out, size, "%.*e", precision, value);
    } else {
        snprintf(out, size, "%.*f", precision > exp + 1 ? precision - exp : 1, value);
    }
    return out;
}

/* ---- arithmetic in the elements' own precision ----------------------------------------------- */

static double as_type(enum gd_dtype type, double x)
{
    switch (type) {
    case GD_FLOAT16: return (double)gd_half_to_float(gd_float_to_half((float)x));
    case GD_FLOAT32: return (double)(float)x;
    default: return x;
    }
}

/* The type that numpy would compute in. */
static enum gd_dtype float_of(enum gd_dtype dtype)
{
    switch (dtype) {
    case GD_FLOAT16: return GD_FLOAT16;
    case GD_BFLOAT16:
    case GD_FLOAT32: return GD_FLOAT32;
    default: return GD_FLOAT64;
    }
}

struct pair {
    struct gd_pair_job job;
    struct gd_pair_room room;
    enum gd_dtype type_a, type_b, type; /* of a, of b, of a - b */
    double rtol, atol;                  /* in b's type */
    const struct gd_tool_options *options;
};

static void pair_types(struct pair *pair)
{
    enum gd_dtype a = float_of(pair->job.info_a.dtype), b = float_of(pair->job.info_b.dtype);

    pair->type_a = a;
    pair->type_b = b;
    pair->type = a == GD_FLOAT64 || b == GD_FLOAT64   ? GD_FLOAT64
                 : a == GD_FLOAT32 || b == GD_FLOAT32 ? GD_FLOAT32
                                                      : GD_FLOAT16;
    pair->rtol = as_type(b, pair->options->rtol);
    pair->atol = as_type(b, pair->options->atol);
}

/* numpy.isclose of one element. */
static bool is_close(const struct pair *pair, double x, double y)
{
    double allowed;

    if (!isfinite(x) || !isfinite(y)) {
        return x == y || (pair->options->equal_nan && isnan(x) && isnan(y));
    }
    allowed = as_type(pair->type_b, pair->rtol * fabs(y));
    allowed = as_type(pair->type_b, pair->atol + allowed);
    return as_type(pair->type, fabs(x - y)) <= allowed;
}

/* Applies fn to all elements; to the real part of complex ones, as the other tools do, except for
 * numpy's allclose. */
typedef void (*element_fn)(struct pair *pair, void *ctx, double x, double y, double distance);

static int each_element(struct pair *pair, element_fn fn, void *ctx, struct gd_err *err)
{
    size_t a = gd_dtype_size(pair->job.info_a.dtype), b = gd_dtype_size(pair->job.info_b.dtype), n;
    int64_t blocks = (pair->job.count + GD_PAIR_BLOCK - 1) / GD_PAIR_BLOCK;

    for (int64_t block = 0; block < blocks; block++) {
        int rc = gd_pair_read(&pair->job, block, &pair->room, &n, err);

        if (rc != GD_OK) {
            return rc;
        }
        for (size_t i = 0; i < n; i++) {
            double x = gd_dtype_load(pair->job.info_a.dtype, pair->room.raw_a + i * a);
            double y = gd_dtype_load(pair->job.info_b.dtype, pair->room.raw_b + i * b);

            fn(pair, ctx, x, y, as_type(pair->type, fabs(x - y)));
        }
        if (pair->options->go_on && !pair->options->go_on(pair->options->go_on_ctx,
                                                          (uint64_t)(block + 1) * GD_PAIR_BLOCK)) {
            return gd_fail(err, GD_EINTR, "interrupted");
        }
    }
    return GD_OK;
}

struct norms {
    double dot, aa, bb;
};

static void norms_add(struct norms *norms, double x, double y)
{
    norms->dot += x * y;
    norms->aa += x * x;
    norms->bb += y * y;
}

/* NaN: one of them is all 0. */
static double cosine_of(const struct pair *pair, const struct norms *norms, bool *nothing)
{
    double a = as_type(pair->type_a, sqrt(as_type(pair->type_a, norms->aa)));
    double b = as_type(pair->type_b, sqrt(as_type(pair->type_b, norms->bb)));

    *nothing = false;
    if (a <= NORM_OF_NOTHING && b <= NORM_OF_NOTHING) {
        return 1;
    }
    if (a <= NORM_OF_NOTHING || b <= NORM_OF_NOTHING) {
        *nothing = true;
        return NAN;
    }
    return as_type(pair->type, as_type(pair->type, norms->dot) / as_type(pair->type, a * b));
}

/* ---- numpy.allclose -------------------------------------------------------------------------- */

struct allclose {
    uint64_t close;
    double max;
};

static void allclose_add(struct pair *pair, void *ctx, double x, double y, double distance)
{
    struct allclose *sum = ctx;

    sum->close += is_close(pair, x, y);
    sum->max = distance > sum->max ? distance : sum->max;
}

/* Uses true distances of complex numbers. */
static int allclose_complex(struct pair *pair, struct allclose *sum, struct gd_err *err)
{
    int64_t blocks = (pair->job.count + GD_PAIR_BLOCK - 1) / GD_PAIR_BLOCK;
    int rc = GD_OK;
    size_t n;

    for (int64_t block = 0; rc == GD_OK && block < blocks; block++) {
        rc = gd_pair_read(&pair->job, block, &pair->room, &n, err);
        for (size_t i = 0; rc == GD_OK && i < n; i++) {
            struct gd_pair_element e = gd_pair_at(&pair->job, &pair->room, i);
            bool nan = isnan(e.a) && isnan(e.b);

            sum->close += e.finite ? e.distance <= pair->options->atol + pair->options->rtol * e.b
                                   : (e.same && !isnan(e.a)) || (nan && pair->options->equal_nan);
            sum->max = e.finite && e.distance > sum->max ? e.distance : sum->max;
        }
    }
    return rc;
}

static int view_allclose(struct pair *pair, struct gd_tool_row *ret, struct gd_err *err)
{
    struct allclose sum = {0, 0};
    uint64_t count = (uint64_t)pair->job.count;
    int rc = pair->job.mode == GD_PAIR_COMPLEX ? allclose_complex(pair, &sum, err)
                                               : each_element(pair, allclose_add, &sum, err);

    ret->passed = sum.close == count;
    snprintf(ret->cell[0], sizeof(ret->cell[0]), "%s", ret->passed ? "True" : "False");
    snprintf(ret->cell[1], sizeof(ret->cell[1]), "%.4f%%",
             count ? 100 * (double)sum.close / (double)count : 100.0);
    snprintf(ret->cell[2], sizeof(ret->cell[2]), "%llu", (unsigned long long)(count - sum.close));
    snprintf(ret->cell[3], sizeof(ret->cell[3]), "%llu", (unsigned long long)count);
    gd_tool_number(sum.max, ret->cell[4], sizeof(ret->cell[4]));
    return rc;
}

/* ---- TroubleShooter -------------------------------------------------------------------------- */

struct trouble {
    struct norms norms;
    uint64_t close, differ;
    double sum, max;
};

static void trouble_add(struct pair *pair, void *ctx, double x, double y, double distance)
{
    struct trouble *t = ctx;

    norms_add(&t->norms, x, y);
    t->close += is_close(pair, x, y);
    if (x != y) {
        t->differ++;
        t->sum += distance;
        t->max = isnan(distance) || isnan(t->max) ? NAN : distance > t->max ? distance : t->max;
    }
}

/* Truncates, without rounding. */
static double truncate_to(double x, double factor)
{
    return fabs(x) < 0x1p52 ? trunc(x * factor) / factor : x; /* larger numbers have no fraction */
}

static void trouble_cells(struct gd_tool_row *ret, const char *result, double ratio, double cosine,
                          double mean, double max)
{
    snprintf(ret->cell[0], sizeof(ret->cell[0]), "%s", result);
    snprintf(ret->cell[1], sizeof(ret->cell[1]), "%.2f%%", 100 * truncate_to(ratio, 1e4));
    snprintf(ret->cell[2], sizeof(ret->cell[2]), isnan(cosine) ? "nan" : "%.5f",
             truncate_to(cosine, 1e5));
    if (isnan(mean) && isnan(max)) {
        snprintf(ret->cell[3], sizeof(ret->cell[3]), "nan, nan");
    } else {
        /* in full, as far as the cell allows: enough for two numbers of float32 */
        snprintf(ret->cell[3], sizeof(ret->cell[3]),
                 max <= (double)FLT_MAX ? "%.5f, %.5f" : "%.5e, %.5e", truncate_to(mean, 1e5),
                 truncate_to(max, 1e5));
    }
}

static int view_trouble(struct pair *pair, struct gd_tool_row *ret, struct gd_err *err)
{
    struct trouble t = {.max = 0};
    bool nothing;
    int rc = each_element(pair, trouble_add, &t, err);
    double cosine = cosine_of(pair, &t.norms, &nothing);

    if (t.differ == 0) {
        trouble_cells(ret, "True", 1, 1, 0, 0);
        ret->passed = true;
        return rc;
    }
    cosine = cosine > 1 ? 1 : cosine < -1 ? -1 : cosine;
    ret->passed = t.close == (uint64_t)pair->job.count;
    trouble_cells(ret, ret->passed ? "True" : "False", (double)t.close / (double)pair->job.count,
                  cosine, as_type(pair->type, t.sum / (double)t.differ), t.max);
    return rc;
}

/* ---- msprobe --------------------------------------------------------------------------------- */

struct probe {
    struct norms norms;
    enum gd_dtype type; /* of relative errors */
    bool scalar;        /* rank 0: computed in the elements' own type */
    double eps, distance, max, max_relative;
    uint64_t mismatch, r1k, r5k;
};

static void probe_positions(struct pair *pair, void *ctx, double x, double y, double distance)
{
    struct probe *p = ctx;

    (void)pair;
    (void)distance;
    p->mismatch += (isinf(x) != 0) != (isinf(y) != 0) || (isnan(x) != 0) != (isnan(y) != 0);
}

/* Non-finite elements in the same places count as 0, whatever their sign. Errors relative to b use
 * the type of both, at least float32; everything else uses double. */
static void probe_add(struct pair *pair, void *ctx, double x, double y, double distance)
{
    struct probe *p = ctx;
    double relative, base;

    if (!isfinite(x)) {
        x = y = distance = 0;
    }
    distance = p->scalar ? distance : fabs(x - y);
    base = y == 0 ? p->eps : y;
    relative = as_type(p->type, y == 0 ? as_type(p->type, x + p->eps) : x);
    relative = as_type(p->type, as_type(p->type, relative - base) / base);
    relative = fabs(relative);
    (void)pair;
    norms_add(&p->norms, x, y);
    p->distance += distance * distance;
    p->max = distance > p->max ? distance : p->max;
    p->max_relative = relative > p->max_relative ? relative : p->max_relative;
    p->r1k += relative < 0.001;
    p->r5k += relative < 0.005;
}

static double round_to_twelve(double value)
{
    char text[400];

    snprintf(text, sizeof(text), "%.12f", value);
    return isfinite(value) ? strtod(text, NULL) : value;
}

static void probe_number(char cell[GD_TOOL_CELL], double value)
{
    gd_tool_number(value, cell, GD_TOOL_CELL);
}

static void probe_fill(struct gd_tool_row *ret, const char *cell, const char *message)
{
    for (int i = 0; i < GD_TOOL_CELLS; i++) {
        snprintf(ret->cell[i], sizeof(ret->cell[i]), "%s", cell);
    }
    snprintf(ret->message, sizeof(ret->message), "%s", message);
}

static void probe_cosine(const struct pair *pair, const struct probe *p, struct gd_tool_row *ret)
{
    double a = sqrt(p->norms.aa), b = sqrt(p->norms.bb), cosine = p->norms.dot / (a * b);
    bool no_a = a <= NORM_OF_NOTHING, no_b = b <= NORM_OF_NOTHING;

    if (pair->job.count == 1) {
        snprintf(ret->cell[0], sizeof(ret->cell[0]), "unsupported");
    } else if (no_a && no_b) {
        probe_number(ret->cell[0], 1);
    } else if (no_a || no_b || isnan(cosine)) {
        snprintf(ret->cell[0], sizeof(ret->cell[0]), "Nan");
        snprintf(ret->message, sizeof(ret->message), "Cannot compare by Cosine Similarity, %s.",
                 no_a || no_b ? "one side is all zero" : "the dump data has NaN");
    } else {
        cosine = round_to_twelve(cosine);
        probe_number(ret->cell[0], cosine > 0.9999 ? round(cosine * 1e6) / 1e6 : cosine);
    }
}

static int view_probe(struct pair *pair, struct gd_tool_row *ret, struct gd_err *err)
{
    bool scalar = pair->job.count == 1; /* axes of size 1 were dropped */
    double count = (double)pair->job.count;
    bool wide = pair->type == GD_FLOAT64;
    struct probe p = {.type = wide ? GD_FLOAT64 : GD_FLOAT32,
                      .scalar = scalar,
                      .eps = wide ? DBL_EPSILON : (double)FLT_EPSILON};
    int rc = each_element(pair, probe_positions, &p, err);

    if (rc == GD_OK && p.mismatch) {
        probe_fill(ret, "N/A", "The position of inf or nan in NPU and bench Tensor do not match.");
        return rc;
    }
    rc = rc == GD_OK ? each_element(pair, probe_add, &p, err) : rc;
    probe_cosine(pair, &p, ret);
    probe_number(ret->cell[1], sqrt(p.distance));
    probe_number(ret->cell[2], round_to_twelve(p.max));
    probe_number(ret->cell[3], round_to_twelve(p.max_relative));
    probe_number(ret->cell[4], round_to_twelve((double)p.r1k / count));
    probe_number(ret->cell[5], round_to_twelve((double)p.r5k / count));
    if (scalar) {
        for (int i = 0; i < GD_TOOL_CELLS; i++) {
            if (i != 2 && i != 3) {
                snprintf(ret->cell[i], sizeof(ret->cell[i]), "unsupported");
            }
        }
        snprintf(ret->message, sizeof(ret->message),
                 "This is type of 0-d tensor: only the two largest errors are calculated.");
    } else if (pair->job.info_a.dtype != pair->job.info_b.dtype && ret->message[0] == '\0') {
        snprintf(ret->message, sizeof(ret->message), "Dtype of NPU and bench tensor do not match.");
    }
    ret->passed = ret->message[0] == '\0' || scalar;
    return rc;
}

/* ---- checks ---------------------------------------------------------------------------------- */

static void refuse_pair(enum gd_tool view, struct gd_tool_row *ret, const char *cell,
                        const char *why)
{
    if (view == GD_TOOL_TROUBLESHOOTER) {
        trouble_cells(ret, cell, 0, NAN, NAN, NAN);
    } else if (view == GD_TOOL_MSPROBE) {
        probe_fill(ret, cell, why);
    } else {
        snprintf(ret->cell[0], sizeof(ret->cell[0]), "%s", cell);
    }
    if (ret->message[0] == '\0') {
        snprintf(ret->message, sizeof(ret->message), "%s", why);
    }
}

/* msprobe drops dimensions of size 1 on the PyTorch side before it compares shapes. */
static bool same_shape(enum gd_tool view, const struct gd_shape *a, const struct gd_shape *b)
{
    return gd_shape_equal(a, b) || (view == GD_TOOL_MSPROBE && gd_shape_alike(a, b));
}

static int compare_open(enum gd_tool view, struct pair *pair, struct gd_tool_row *ret,
                        struct gd_err *err)
{
    int rc = gd_pair_room_init(&pair->job, &pair->room, err);

    if (rc != GD_OK) {
        return rc;
    }
    pair_types(pair);
    switch (view) {
    case GD_TOOL_ALLCLOSE: rc = view_allclose(pair, ret, err); break;
    case GD_TOOL_TROUBLESHOOTER: rc = view_trouble(pair, ret, err); break;
    default: rc = view_probe(pair, ret, err); break;
    }
    gd_pair_room_deinit(&pair->room);
    return rc;
}

int gd_tool_compare(enum gd_tool view, struct gd_source *a, struct gd_source *b,
                    const struct gd_tool_options *options, struct gd_tool_row *ret,
                    struct gd_err *err)
{
    struct pair pair = {.job = {.a = a, .b = b}, .options = options};
    const struct gd_source_info *x = &pair.job.info_a, *y = &pair.job.info_b;
    struct gd_err why = {.text = ""};
    int rc;

    memset(ret, 0, sizeof(*ret));
    if (!a || !b) {
        refuse_pair(view, ret, view == GD_TOOL_MSPROBE ? "unsupported" : "False",
                    "Bench api/module unmatched.");
        return GD_OK;
    }
    rc = gd_source_info(a, &pair.job.info_a, &why);
    rc = rc != GD_OK ? rc : gd_source_info(b, &pair.job.info_b, &why);
    if (rc == GD_OK && (!gd_stats_kind(x->dtype) || !gd_stats_kind(y->dtype))) {
        rc = gd_fail(&why, GD_EUNSUPPORTED, "not numeric");
    }
    if (rc == GD_OK && !same_shape(view, &x->shape, &y->shape)) {
        refuse_pair(view, ret,
                    view == GD_TOOL_TROUBLESHOOTER ? "Shape is inconsistent"
                    : view == GD_TOOL_MSPROBE      ? "shape unmatched"
                                                   : "False",
                    "Shape of NPU and bench tensor do not match. Skipped.");
        return GD_OK;
    }
    pair.job.count = rc == GD_OK ? gd_shape_count(&x->shape) : 0;
    if (rc == GD_OK && pair.job.count == 0 && view == GD_TOOL_MSPROBE) {
        refuse_pair(view, ret, "unsupported", "This is empty data, can not compare.");
        return GD_OK;
    }
    pair.job.mode = gd_dtype_is_complex(x->dtype) || gd_dtype_is_complex(y->dtype)
                        ? GD_PAIR_COMPLEX
                        : GD_PAIR_FLOAT64;
    rc = rc != GD_OK ? rc : compare_open(view, &pair, ret, &why);
    if (rc == GD_EINTR || rc == GD_ENOMEM) {
        return gd_fail(err, rc, "%s", why.text);
    }
    if (rc != GD_OK) {
        refuse_pair(view, ret, view == GD_TOOL_MSPROBE ? "unsupported" : "False", why.text);
    }
    return GD_OK;
}
