// SPDX-License-Identifier: GPL-3.0-or-later
#include "repl/values/value.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "repl/core/command.h"
#include "repl/core/work.h"
#include "repl/values/inspect.h"

/* Above this size `print` shows only statistics by default. */
#define SHOW_MAX (256u << 20)

#define SUBTRACT_PIECE ((int64_t)1 << 18) /* elements */

void value_deinit(struct value *value)
{
    gd_tensor_unref(value->tensor);
    value->tensor = NULL;
}

/* ---- parsing ------------------------------------------------------------------------------- */

/* Cuts the slice out of a history value. */
static int take_history(struct value *value, struct gd_err *err)
{
    value->is_history = true;
    int rc = GD_OK;
    if (value->arg.slice.count > 0) {
        rc = gd_tensor_slice(value->arg.value, &value->arg.slice, &value->tensor, err);
    } else {
        value->tensor = gd_tensor_ref(value->arg.value);
    }
    if (rc == GD_OK) {
        value->dtype = value->tensor->dtype;
        value->shape = value->tensor->shape;
    }
    return rc;
}

int value_parse(struct command_call *call, const char *text, struct value *ret, struct gd_err *err)
{
    struct value value = {.step = -1, .prev_step = -1};
    bool history = text && text[0] == '$' && text[1] != '_';
    int rc = history ? GD_OK : repl_need_session(call, err);
    if (rc != GD_OK) {
        return rc;
    }
    if (text && strcmp(text, ".") != 0) {
        rc = arg_tensor(call, text, &value.arg, err);
    } else {
        rc = inspect_node(call, NULL, &value.arg.ref.node, err);
    }
    if (rc == GD_OK && value.arg.value) {
        rc = take_history(&value, err);
    }
    if (rc != GD_OK) {
        return rc;
    }
    value.label = value.arg.label;
    if (value.is_history) {
        value.label =
            inspect_printf(call, "%s%s", value.label, value_slice_text(call, &value.arg.slice));
    } else if (!value.label) {
        value.label =
            inspect_printf(call, "%s:%s%s", gd_graph_name(call->session->graph, value.arg.ref.node),
                           inspect_slot(call, value.arg.ref.node, value.arg.ref.slot),
                           value_slice_text(call, &value.arg.slice));
    }
    *ret = value;
    return GD_OK;
}

/* ---- arithmetic ---------------------------------------------------------------------------- */

static int64_t load_int(enum gd_dtype dtype, const unsigned char *p)
{
    union {
        int8_t i8;
        int16_t i16;
        int32_t i32;
        int64_t i64;
        uint8_t u8;
        uint16_t u16;
        uint32_t u32;
        uint64_t u64;
    } v = {.i64 = 0};
    memcpy(&v, p, gd_dtype_size(dtype));
    switch (dtype) {
    case GD_INT8: return v.i8;
    case GD_INT16: return v.i16;
    case GD_INT32: return v.i32;
    case GD_UINT8: return v.u8;
    case GD_BOOL: return v.u8 != 0;
    case GD_UINT16: return v.u16;
    case GD_UINT32: return v.u32;
    default: return (int64_t)v.u64;
    }
}

static void subtract_element(enum gd_dtype dtype, const unsigned char *a, const unsigned char *b,
                             unsigned char *out)
{
    double d = gd_dtype_load(dtype, a) - gd_dtype_load(dtype, b);
    if (dtype == GD_FLOAT64 || dtype == GD_COMPLEX128) {
        memcpy(out, &d, sizeof(d));
    } else if (dtype == GD_FLOAT32 || dtype == GD_COMPLEX64) {
        float f = (float)d;
        memcpy(out, &f, sizeof(f));
    } else if (dtype == GD_FLOAT16 || dtype == GD_BFLOAT16) {
        uint16_t bits =
            dtype == GD_FLOAT16 ? gd_float_to_half((float)d) : gd_float_to_bfloat16((float)d);
        memcpy(out, &bits, sizeof(bits));
    } else {
        /* unsigned arithmetic, so that uint64 wraps around */
        uint64_t i = (uint64_t)load_int(dtype, a) - (uint64_t)load_int(dtype, b);
        memcpy(out, &i, sizeof(i));
    }
}

static void subtract_elements(enum gd_dtype dtype, int64_t count, const unsigned char *a,
                              const unsigned char *b, unsigned char *out, size_t out_size)
{
    size_t size = gd_dtype_size(dtype);
    if (gd_dtype_is_complex(dtype)) { /* as pairs of reals */
        dtype = dtype == GD_COMPLEX64 ? GD_FLOAT32 : GD_FLOAT64;
        size /= 2;
        out_size = size;
        count *= 2;
    }
    for (int64_t i = 0; i < count; i++) {
        subtract_element(dtype, a, b, out);
        a += size;
        b += size;
        out += out_size;
    }
}

static int subtract_all(struct command_call *call, const struct gd_tensor *x,
                        const struct gd_tensor *y, struct gd_tensor *diff, struct gd_err *err)
{
    size_t size = gd_dtype_size(x->dtype), out_size = gd_dtype_size(diff->dtype);
    int64_t count = gd_tensor_count(x);
    unsigned char *out = gd_tensor_bytes_mut(diff);
    struct repl_work work;

    repl_work_begin(&work, call, "subtracting", gd_tensor_bytes(x));
    for (int64_t at = 0; at < count && repl_work_at(&work, (uint64_t)at * size);
         at += SUBTRACT_PIECE) {
        int64_t now = count - at < SUBTRACT_PIECE ? count - at : SUBTRACT_PIECE;
        subtract_elements(x->dtype, now, x->data + (size_t)at * size, y->data + (size_t)at * size,
                          out + (size_t)at * out_size, out_size);
    }
    return repl_work_end(&work, GD_OK, err);
}

/* cur - prev, element by element: floats in their own type, integers and bool as int64; without
 * statistics. GD_EINVAL: shapes or types differ. GD_EINTR: Ctrl-C. */
static int subtract_tensors(struct command_call *call, const struct gd_tensor *cur,
                            const struct gd_tensor *prev, struct gd_tensor **ret,
                            struct gd_err *err)
{
    if (!gd_tensor_is_alike(cur, prev)) {
        char a[256];
        char b[256];
        return gd_fail(err, GD_EINVAL, "the previous value is %s %s, the current one %s %s",
                       gd_dtype_name(prev->dtype), gd_shape_text(&prev->shape, a, sizeof(a)),
                       gd_dtype_name(cur->dtype), gd_shape_text(&cur->shape, b, sizeof(b)));
    }
    bool whole = cur->dtype == GD_BOOL || gd_dtype_is_int(cur->dtype);
    struct gd_tensor *x = NULL;
    struct gd_tensor *y = NULL;
    struct gd_tensor *diff = NULL;
    int rc = gd_tensor_contiguous((struct gd_tensor *)(uintptr_t)cur, &x, err);
    if (rc == GD_OK) {
        rc = gd_tensor_contiguous((struct gd_tensor *)(uintptr_t)prev, &y, err);
    }
    if (rc == GD_OK) {
        rc = gd_tensor_create(whole ? GD_INT64 : cur->dtype, &cur->shape, 0, &diff, err);
    }
    if (rc == GD_OK && gd_tensor_count(diff) > 0) {
        rc = subtract_all(call, x, y, diff, err);
    }
    gd_tensor_unref(x);
    gd_tensor_unref(y);
    if (rc == GD_OK) {
        *ret = diff;
    } else {
        gd_tensor_unref(diff);
    }
    return rc;
}

/* ---- fetching ------------------------------------------------------------------------------ */

int value_declared(struct command_call *call, const struct value *value, enum gd_dtype *dtype,
                   struct gd_shape *shape, struct gd_err *err)
{
    if (value->is_history) {
        *dtype = value->dtype;
        *shape = value->shape;
        return GD_OK;
    }
    struct gd_output output;
    const struct gd_tensor_ref *ref = &value->arg.ref;
    if (gd_graph_is_compiled(call->session->graph, ref->node, err)) {
        return GD_ENODATA;
    }
    if (!gd_graph_output(call->session->graph, ref->node, ref->slot, &output)) {
        return gd_fail(err, GD_ENODATA, "%.300s has no output %u",
                       gd_graph_name(call->session->graph, ref->node), ref->slot);
    }
    *dtype = output.dtype;
    *shape = output.shape;
    if (value->arg.slice.count == 0) {
        return GD_OK;
    }
    for (int i = 0; i < output.shape.rank; i++) {
        if (output.shape.dim[i] < 0) {
            return gd_fail(err, GD_ENODATA, "the shape of %.300s is unknown",
                           gd_graph_name(call->session->graph, ref->node));
        }
    }
    int64_t stride[GD_MAX_RANK];
    struct gd_slice_view view;
    gd_shape_strides(&output.shape, gd_dtype_size(output.dtype), stride);
    int rc = gd_slice_apply(&value->arg.slice, &output.shape, stride, &view, err);
    if (rc == GD_OK) {
        *shape = view.shape;
    }
    return rc;
}

/* Leaves out statistics if the dtype has none; GD_EINTR is the only error. */
static int add_statistics(struct command_call *call, struct value *value, struct gd_err *err)
{
    const struct gd_stats *stats = &value->stats;
    char what[160];
    if (!value->tensor) {
        return GD_OK;
    }
    snprintf(what, sizeof(what), "statistics of %.100s", value->label);
    int rc = repl_stats_compute(call, what, value->tensor, NULL, &value->stats, err);
    value->has_stats = rc == GD_OK;
    if (rc == GD_OK && stats->count > 1 && stats->max > stats->min &&
        !gd_dtype_is_complex(value->dtype)) {
        snprintf(what, sizeof(what), "histogram of %.100s", value->label);
        rc = repl_stats_histogram(call, what, value->tensor, stats->min, stats->max, VALUE_BINS,
                                  value->histogram, err);
        value->has_histogram = rc == GD_OK;
    }
    return rc == GD_EINTR ? rc : GD_OK;
}

/* Takes a fetched tensor and computes its statistics. Drops the tensor if that is interrupted. */
static int take_value(struct command_call *call, struct value *value, struct gd_err *err)
{
    value->dtype = value->tensor->dtype;
    value->shape = value->tensor->shape;
    int rc = add_statistics(call, value, err);
    if (rc != GD_OK) {
        gd_tensor_unref(value->tensor);
        value->tensor = NULL;
    }
    return rc;
}

/* Asks the training process to keep the previous value from now on, and rewords the error. */
static int keep_previous(struct command_call *call, const struct value *value, struct gd_err *err)
{
    struct gd_session *session = call->session;
    const char *name = gd_graph_name(session->graph, value->arg.ref.node);
    int rc = GD_EUNSUPPORTED;
    if (gd_session_is_live(session)) {
        rc = inspect_keep_previous(call, value->arg.ref.node, NULL);
        if (rc != GD_OK) {
            /* the current value becomes the previous one in the next step */
            struct gd_tensor_ref ref = value->arg.ref;
            struct gd_tensor *tensor = NULL;
            int64_t step;
            ref.iter = GD_CURRENT;
            rc = repl_fetch(call, &ref, NULL, &tensor, &step, NULL);
            gd_tensor_unref(tensor);
        }
    }
    if (rc != GD_OK) {
        return gd_fail(err, GD_ENODATA, "the previous value of %.300s was not kept",
                       out_safe(call, name));
    }
    return gd_fail(
        err, GD_ENODATA,
        "the previous value of %.300s was not kept; it is kept from now on: `step`, then "
        "ask again",
        name);
}

static int fetch_one(struct command_call *call, const struct value *value, enum gd_iter iter,
                     struct gd_tensor **ret, int64_t *step, struct gd_err *err)
{
    struct gd_tensor_ref ref = value->arg.ref;
    ref.iter = iter;
    int rc =
        repl_fetch(call, &ref, value->arg.slice.count ? &value->arg.slice : NULL, ret, step, err);
    if (iter == GD_PREVIOUS && !gd_session_is_record(call->session) &&
        (rc == GD_ENODATA || rc == GD_EUNSUPPORTED)) {
        return keep_previous(call, value, err);
    }
    return rc;
}

static int fetch_stats(struct command_call *call, struct value *value, struct gd_err *err)
{
    struct gd_tensor_ref ref = value->arg.ref;
    ref.iter = value->which == VALUE_PREVIOUS ? GD_PREVIOUS : GD_CURRENT;
    int rc = repl_stats(call, &ref, &value->dtype, &value->shape, &value->stats, &value->step, err);
    value->has_stats = rc == GD_OK;
    return rc;
}

static int fetch_difference(struct command_call *call, struct value *value, struct gd_err *err)
{
    struct gd_tensor *prev = NULL;
    struct gd_tensor *cur = NULL;
    struct gd_tensor *diff = NULL;
    int64_t prev_step = -1;
    int64_t step = -1;
    int rc = fetch_one(call, value, GD_PREVIOUS, &prev, &prev_step, err);
    if (rc == GD_OK) {
        rc = fetch_one(call, value, GD_CURRENT, &cur, &step, err);
    }
    if (rc == GD_OK) {
        rc = subtract_tensors(call, cur, prev, &diff, err);
    }
    if (rc == GD_OK) {
        rc = repl_stats_compute(call, "statistics of the difference", cur, prev, &value->change,
                                err);
        value->has_change = value->has_change_count = rc == GD_OK;
        value->tensor = diff;
        value->step = step;
        value->prev_step = prev_step;
        if (rc == GD_EINTR) {
            gd_tensor_unref(diff);
            value->tensor = NULL;
        } else {
            rc = take_value(call, value, err);
        }
    }
    gd_tensor_unref(prev);
    gd_tensor_unref(cur);
    return rc;
}

/* Too large to be fetched for display. */
static bool is_large(struct command_call *call, const struct value *value)
{
    enum gd_dtype dtype;
    struct gd_shape shape;
    size_t bytes = 0;
    if (value_declared(call, value, &dtype, &shape, NULL) != GD_OK ||
        gd_shape_bytes(&shape, dtype, &bytes, NULL) != GD_OK) {
        return false;
    }
    return bytes > SHOW_MAX;
}

static int fetch_for_show(struct command_call *call, struct value *value, struct gd_err *err)
{
    bool whole = value->arg.slice.count == 0;
    if (whole && is_large(call, value)) {
        value->note = "too many values to show: print a slice, or use `print -a`";
        return fetch_stats(call, value, err);
    }
    enum gd_iter iter = value->which == VALUE_PREVIOUS ? GD_PREVIOUS : GD_CURRENT;
    struct gd_tensor *tensor = NULL;
    int64_t step = -1;
    int rc = fetch_one(call, value, iter, &tensor, &step, err);
    if (rc == GD_OK) {
        value->tensor = tensor;
        value->step = step;
        return take_value(call, value, err);
    }
    bool may_have_stats = rc == GD_ELIMIT || !gd_session_is_live(call->session) ||
                          gd_session_is_record(call->session);
    if (whole && may_have_stats && fetch_stats(call, value, NULL) == GD_OK) {
        value->note = err ? inspect_printf(call, "no values: %s", err->text) : "no values";
        return GD_OK;
    }
    return rc;
}

int value_fetch(struct command_call *call, struct value *value, enum value_need need,
                struct gd_err *err)
{
    if (value->is_history) {
        if (value->which != VALUE_CURRENT) {
            return gd_fail(err, GD_EINVAL, "%s is a history value: it has no previous one",
                           value->label);
        }
        return add_statistics(call, value, err);
    }
    struct value fetched = *value;
    int rc;
    if (value->which == VALUE_DIFFERENCE) {
        rc = fetch_difference(call, &fetched, err);
    } else if (need == VALUE_STATS && value->arg.slice.count == 0) {
        rc = fetch_stats(call, &fetched, err);
    } else if (need == VALUE_ELEMENTS) {
        enum gd_iter iter = value->which == VALUE_PREVIOUS ? GD_PREVIOUS : GD_CURRENT;
        rc = fetch_one(call, &fetched, iter, &fetched.tensor, &fetched.step, err);
        rc = rc == GD_OK ? take_value(call, &fetched, err) : rc;
    } else {
        rc = fetch_for_show(call, &fetched, err);
    }
    if (rc == GD_OK) {
        *value = fetched;
    }
    return rc;
}

/* Compares with a previous value that gradb holds itself. */
static bool change_from_cache(struct command_call *call, struct value *value)
{
    struct gd_tensor_ref ref = value->arg.ref;
    struct gd_tensor *part = NULL;
    bool known = false;
    ref.iter = GD_PREVIOUS;
    struct gd_tensor *prev = gd_session_held(call->session, &ref, &value->prev_step);
    if (prev && value->tensor && gd_tensor_slice(prev, &value->arg.slice, &part, NULL) == GD_OK) {
        known = repl_stats_compute(call, "statistics of the change", value->tensor, part,
                                   &value->change, NULL) == GD_OK;
        value->has_change_count = known;
    }
    gd_tensor_unref(part);
    gd_tensor_unref(prev);
    return known;
}

void value_know_change(struct command_call *call, struct value *value)
{
    enum gd_dtype dtype;
    struct gd_shape shape;
    int64_t step;
    if (value->which != VALUE_CURRENT || value->is_history || value->has_change) {
        return;
    }
    value->has_change = change_from_cache(call, value);
    if (value->has_change || value->arg.slice.count > 0) {
        return;
    }
    const struct gd_target *target = call->session->target;
    bool kept = target && (target->capabilities & GD_CAN_PREVIOUS) &&
                (call->debugger->settings.keep_previous[0] || gd_session_is_record(call->session));
    struct gd_tensor_ref ref = value->arg.ref;
    ref.iter = GD_CURRENT;
    if (kept && repl_stats(call, &ref, &dtype, &shape, &value->change, &step, NULL) == GD_OK) {
        value->has_change = value->change.has_prev;
    }
}

enum value_which value_take_which(struct command_call *call)
{
    const char *last = call->argc > 0 ? call->argv[call->argc - 1] : "";
    enum value_which which = strcmp(last, "prev") == 0 || strcmp(last, "previous") == 0
                                 ? VALUE_PREVIOUS
                             : strcmp(last, "diff") == 0 ? VALUE_DIFFERENCE
                                                         : VALUE_CURRENT;
    call->argc -= which != VALUE_CURRENT;
    return which;
}

const char *value_which_name(enum value_which which)
{
    static const char *const names[] = {"", "prev", "diff"};
    return names[which];
}

uint32_t value_slots(struct command_call *call, const struct value *value)
{
    struct gd_node_info info;
    bool bare = !value->is_history && !value->arg.has_slot && value->arg.slice.count == 0;
    if (!bare || !gd_graph_node(call->session->graph, value->arg.ref.node, &info)) {
        return 1;
    }
    return info.output_count > 1 ? info.output_count : 1;
}
