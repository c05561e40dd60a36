// SPDX-License-Identifier: MIT
/* How a program counts a batch that is not in host memory: what gd_metric_update would read from
 * types and shapes, as JSON. */
#include <inttypes.h>

#include "base/metric_impl.h"

static void put_classes(const struct metric_batch *b, const struct gd_metric *m, struct gd_buf *out)
{
    const struct gd_metric_spec *spec = &m->spec;
    gd_buf_printf(out,
                  "\"do\":\"counts\",\"axis\":%d,\"classes\":%" PRId64
                  ",\"shares\":%s,\"threshold\":%.17g,\"k\":%" PRId64 ",\"probabilities\":%s",
                  b->axis, b->classes, b->shares ? "true" : "false", b->threshold, spec->k,
                  spec->probabilities ? "true" : "false");
    if (b->has_ignore) {
        gd_buf_printf(out, ",\"ignore\":%" PRId64, b->ignore);
    }
}

static int plan_classes(const struct gd_metric *m, const struct gd_metric_pair *pair,
                        const struct gd_tensor *outputs, const struct gd_tensor *labels,
                        struct gd_buf *out, struct gd_err *err)
{
    struct metric_batch b;
    bool whole = outputs->dtype == GD_BOOL || gd_dtype_is_int(outputs->dtype);
    if (m->spec.kind == GD_METRIC_AUC || (whole && pair->form == GD_FORM_UNKNOWN)) {
        gd_buf_puts(out, "\"do\":\"copy\"");
        return GD_OK;
    }
    int rc = metric_batch_of(&m->spec, pair, outputs, labels, &b, err);
    rc = rc != GD_OK ? rc : metric_check_classes(m, &b, err);
    if (rc == GD_OK) {
        put_classes(&b, m, out);
    }
    return rc;
}

static int plan_values(const struct gd_metric *m, const struct gd_tensor *outputs,
                       const struct gd_tensor *labels, struct gd_buf *out, struct gd_err *err)
{
    int64_t columns;
    int rc = metric_check_values(m, outputs, labels, &columns, err);
    if (rc == GD_OK) {
        gd_buf_printf(out,
                      "\"do\":\"counts\",\"columns\":%" PRId64 ",\"rows\":%" PRId64
                      ",\"elements\":%" PRId64,
                      columns, labels->shape.rank > 0 ? labels->shape.dim[0] : (int64_t)1,
                      gd_tensor_count(labels));
    }
    return rc;
}

int gd_metric_plan(const struct gd_metric *m, const struct gd_metric_pair *pair,
                   const struct gd_tensor *outputs, const struct gd_tensor *labels,
                   struct gd_buf *out, struct gd_err *err)
{
    gd_buf_printf(out, "\"kind\":\"%s\",", gd_metric_kind_name(m->spec.kind));
    switch (m->spec.kind) {
    case GD_METRIC_MSE:
    case GD_METRIC_MAE:
    case GD_METRIC_R2: return plan_values(m, outputs, labels, out, err);
    case GD_METRIC_CUSTOM: /* its letters, digits and signs need no escape in JSON */
        gd_buf_printf(out, "\"do\":\"counts\",\"update\":\"%s\"", m->spec.update);
        return GD_OK;
    case GD_METRIC_LOSS: gd_buf_puts(out, "\"do\":\"counts\""); return GD_OK;
    case GD_METRIC_FILE: gd_buf_puts(out, "\"do\":\"nothing\""); return GD_OK;
    default: return plan_classes(m, pair, outputs, labels, out, err);
    }
}
