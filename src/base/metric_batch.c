// SPDX-License-Identifier: MIT
/* How outputs and labels belong together: the axis of the classes, what a label says, and which
 * class a sample is predicted to be. */
#include <math.h>
#include <string.h>

#include "base/metric_impl.h"

#define LANES 16

/* ---- shapes and types ------------------------------------------------------------------------ */

static bool is_whole(enum gd_dtype dtype)
{
    return dtype == GD_BOOL || gd_dtype_is_int(dtype);
}

int metric_unequal(const struct gd_tensor *outputs, const struct gd_tensor *labels,
                   struct gd_err *err)
{
    char a[160], b[160];
    return gd_fail(
        err, GD_EINVAL,
        "outputs of shape %s do not belong to labels of shape %s: the numbers of samples "
        "differ",
        gd_shape_text(&outputs->shape, a, sizeof(a)), gd_shape_text(&labels->shape, b, sizeof(b)));
}

/* Whether the labels have the shape of the outputs without that axis. */
static bool fits_without(const struct gd_shape *outputs, int axis, const struct gd_shape *labels)
{
    if (labels->rank != outputs->rank - 1) {
        return false;
    }
    for (int i = 0, j = 0; i < outputs->rank; i++) {
        if (i != axis && outputs->dim[i] != labels->dim[j++]) {
            return false;
        }
    }
    return true;
}

/* The axis of the classes; -1: none fits. */
static int find_axis(const struct metric_batch *b, enum gd_metric_form form)
{
    const struct gd_shape *outputs = &b->outputs->shape, *labels = &b->labels->shape;
    int usual = outputs->rank > 1 ? 1 : 0;
    if (outputs->rank == 0) {
        return -1;
    }
    if (fits_without(outputs, usual, labels)) {
        return usual;
    }
    if (form == GD_FORM_UNKNOWN && fits_without(outputs, outputs->rank - 1, labels)) {
        return outputs->rank - 1;
    }
    int64_t count = gd_shape_count(labels);
    bool flat = outputs->rank == 2 ? count == outputs->dim[0] : outputs->rank == 1 && count == 1;
    return flat ? usual : -1;
}

static int wrong_labels(const struct metric_batch *b, struct gd_err *err)
{
    return gd_fail(
        err, GD_EINVAL,
        "the labels are %s: class labels are integers; write `one_hot` if they are shares "
        "of classes, or `threshold=T` if there is one output per label",
        gd_dtype_name(b->labels->dtype));
}

/* One score per label. */
static int pair_alone(struct metric_batch *b, const struct gd_metric_spec *spec, double threshold,
                      struct gd_err *err)
{
    b->axis = -1;
    b->classes = 2;
    b->threshold = spec->has_threshold ? spec->threshold : threshold;
    b->samples = gd_tensor_count(b->labels);
    return gd_tensor_count(b->outputs) == b->samples ? GD_OK
                                                     : metric_unequal(b->outputs, b->labels, err);
}

static int pair_classes(struct metric_batch *b, const struct gd_metric_spec *spec,
                        enum gd_metric_form form, struct gd_err *err)
{
    const struct gd_shape *shape = &b->outputs->shape;
    b->shares = spec->one_hot || (form == GD_FORM_CLASSES && !is_whole(b->labels->dtype));
    if (b->shares && !gd_shape_equal(shape, &b->labels->shape)) {
        return spec->one_hot ? metric_unequal(b->outputs, b->labels, err) : wrong_labels(b, err);
    }
    b->axis = b->shares ? (shape->rank > 1 ? 1 : shape->rank - 1) : find_axis(b, form);
    if (b->axis < 0) {
        return metric_unequal(b->outputs, b->labels, err);
    }
    if (!b->shares && !is_whole(b->labels->dtype)) {
        return wrong_labels(b, err);
    }
    b->classes = shape->dim[b->axis];
    b->samples = b->classes > 0 ? gd_tensor_count(b->outputs) / b->classes : 0;
    if (b->classes < 1 || b->classes > GD_METRIC_MAX_CLASSES) {
        return gd_fail(err, GD_ELIMIT, "outputs of %lld classes: at most %d are counted",
                       (long long)b->classes, GD_METRIC_MAX_CLASSES);
    }
    return GD_OK;
}

/* Outputs that are numbers of classes already. */
static int pair_ready(struct metric_batch *b, struct gd_err *err)
{
    b->ready = true;
    b->axis = -1;
    b->samples = gd_tensor_count(b->labels);
    if (gd_tensor_count(b->outputs) != b->samples) {
        return metric_unequal(b->outputs, b->labels, err);
    }
    if (!is_whole(b->labels->dtype)) {
        return wrong_labels(b, err);
    }
    for (int64_t i = 0; i < b->samples; i++) {
        double output = gd_tensor_get(b->outputs, i), label = gd_tensor_get(b->labels, i);
        double greatest = output > label ? output : label;
        b->classes = greatest + 1 > (double)b->classes && greatest < GD_METRIC_MAX_CLASSES
                         ? (int64_t)greatest + 1
                         : b->classes;
        if (output < 0 || output >= GD_METRIC_MAX_CLASSES) {
            return gd_fail(err, GD_EINVAL, "output %.0f is not the number of a class", output);
        }
    }
    b->classes = b->classes < 2 ? 2 : b->classes;
    return GD_OK;
}

int metric_batch_of(const struct gd_metric_spec *spec, const struct gd_metric_pair *pair,
                    const struct gd_tensor *outputs, const struct gd_tensor *labels,
                    struct metric_batch *ret, struct gd_err *err)
{
    bool alone = gd_tensor_count(outputs) == gd_tensor_count(labels) && !spec->one_hot;
    *ret = (struct metric_batch){.outputs = outputs,
                                 .labels = labels,
                                 .shared = pair->samples,
                                 .has_ignore = spec->has_ignore || pair->has_ignore,
                                 .ignore = spec->has_ignore ? spec->ignore : pair->ignore};
    if (gd_dtype_is_complex(outputs->dtype) || gd_dtype_is_complex(labels->dtype)) {
        return gd_fail(err, GD_EINVAL, "%s is for real numbers, not for complex ones",
                       gd_metric_kind_name(spec->kind));
    }
    switch (pair->form) {
    case GD_FORM_CLASSES: return pair_classes(ret, spec, pair->form, err);
    case GD_FORM_LOGITS: return pair_alone(ret, spec, 0, err);
    case GD_FORM_PROBABILITIES: return pair_alone(ret, spec, 0.5, err);
    case GD_FORM_VALUES:
        return spec->has_threshold
                   ? pair_alone(ret, spec, 0.5, err)
                   : gd_fail(
                         err, GD_EINVAL,
                         "%s needs classes, and this loss compares numbers: write `threshold=T`, "
                         "or name other nodes with `of OUTPUTS against LABELS`",
                         gd_metric_kind_name(spec->kind));
    default: break;
    }
    if (is_whole(outputs->dtype)) {
        return pair_ready(ret, err);
    }
    if (alone && !is_whole(labels->dtype) && !spec->has_threshold) {
        return wrong_labels(ret, err);
    }
    return alone && find_axis(ret, pair->form) < 0 ? pair_alone(ret, spec, 0.5, err)
           : alone && spec->has_threshold          ? pair_alone(ret, spec, 0.5, err)
                                                   : pair_classes(ret, spec, pair->form, err);
}

/* ---- one sample ------------------------------------------------------------------------------ */

/* Where the first score of a sample is. */
static const unsigned char *place_of(const struct gd_tensor *tensor, int axis, int64_t sample)
{
    int64_t offset = 0;
    if (tensor->shape.rank == 2 && axis >= 0) {
        return tensor->data + sample * tensor->stride[1 - axis];
    }
    for (int i = tensor->shape.rank - 1; i >= 0; i--) {
        if (i != axis && tensor->shape.dim[i] > 0) {
            offset += sample % tensor->shape.dim[i] * tensor->stride[i];
            sample /= tensor->shape.dim[i];
        }
    }
    return tensor->data + offset;
}

bool metric_scores_of(const struct metric_batch *b, int64_t sample)
{
    bool nan = false;
    if (b->axis < 0) {
        b->scores[0] = gd_tensor_get(b->outputs, sample);
        return isnan(b->scores[0]);
    }
    const unsigned char *at = place_of(b->outputs, b->axis, sample);
    int64_t stride = b->outputs->stride[b->axis];
    for (int64_t i = 0; i < b->classes; i++) {
        b->scores[i] = gd_dtype_load(b->outputs->dtype, at + i * stride);
        nan = nan || isnan(b->scores[i]);
    }
    return nan;
}

/* The index of the greatest of contiguous floats; the first NaN counts as that. */
static int64_t find_greatest_float(const float *x, int64_t count, bool *nan)
{
    float most[LANES];
    int64_t i = 0;
    int odd = 0;
    for (int j = 0; j < LANES; j++) {
        most[j] = -INFINITY;
    }
    for (; i + LANES <= count; i += LANES) {
        for (int j = 0; j < LANES; j++) {
            most[j] = x[i + j] > most[j] ? x[i + j] : most[j];
            odd |= x[i + j] != x[i + j];
        }
    }
    for (; i < count; i++) {
        most[0] = x[i] > most[0] ? x[i] : most[0];
        odd |= x[i] != x[i];
    }
    for (int j = 1; j < LANES; j++) {
        most[0] = most[j] > most[0] ? most[j] : most[0];
    }
    *nan = odd != 0;
    for (i = 0; i < count - 1; i++) {
        if (odd ? x[i] != x[i] : !(x[i] < most[0])) {
            break;
        }
    }
    return i;
}

static int64_t find_greatest(const struct gd_tensor *tensor, int axis, int64_t sample, bool *nan)
{
    const unsigned char *at = place_of(tensor, axis, sample);
    int64_t stride = tensor->stride[axis], count = tensor->shape.dim[axis], best = 0;
    double most = 0;
    if (tensor->dtype == GD_FLOAT32 && stride == (int64_t)sizeof(float) &&
        (uintptr_t)at % sizeof(float) == 0) {
        return find_greatest_float((const float *)(const void *)at, count, nan);
    }
    *nan = false;
    for (int64_t i = 0; i < count && !*nan; i++) {
        double x = gd_dtype_load(tensor->dtype, at + i * stride);
        *nan = isnan(x);
        best = i == 0 || x > most || *nan ? i : best;
        most = best == i ? x : most;
    }
    return best;
}

int64_t metric_predicted(const struct metric_batch *b, int64_t sample, bool *nan)
{
    if (b->axis >= 0) {
        return find_greatest(b->outputs, b->axis, sample, nan);
    }
    double x = gd_tensor_get(b->outputs, sample);
    *nan = isnan(x);
    return b->ready ? (int64_t)x : b->threshold > 0 ? x >= b->threshold : x > b->threshold;
}

enum metric_label metric_label_of(const struct metric_batch *b, int64_t sample, int64_t *ret)
{
    if (b->shares) {
        bool nan;
        *ret = find_greatest(b->labels, b->axis, sample, &nan);
        return nan ? LABEL_OUTSIDE : LABEL_OK;
    }
    const struct gd_tensor *labels = b->labels;
    double label = labels->shape.rank == 1
                       ? gd_dtype_load(labels->dtype, labels->data + sample * labels->stride[0])
                       : gd_tensor_get(labels, sample);
    if (b->has_ignore && label >= (double)b->ignore && label <= (double)b->ignore) {
        return LABEL_IGNORED;
    }
    if (b->axis < 0 && !b->ready && !is_whole(b->labels->dtype)) {
        *ret = label > 0.5;
        return isnan(label) ? LABEL_OUTSIDE : LABEL_OK;
    }
    if (!(label >= 0 && label < (double)b->classes)) {
        return LABEL_OUTSIDE;
    }
    *ret = (int64_t)label;
    return LABEL_OK;
}
