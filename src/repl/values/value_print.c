// SPDX-License-Identifier: GPL-3.0-or-later
/* How values are shown: titles, summaries, elements and records. */
#include "repl/core/command.h"
#include "repl/values/value.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "repl/core/repl_impl.h"
#include "repl/core/work.h"
#include "repl/values/inspect.h"

/* Upper limit for the text of a tensor. */
#define TEXT_MAX   ((size_t)1 << 30)
/* Upper limit for the elements of a record: each takes about a hundred bytes. */
#define RECORD_MAX 10000000

const char *value_slice_text(struct command_call *call, const struct gd_slice *slice)
{
    struct gd_buf buf = GD_BUF_INIT(4096);
    gd_slice_text(slice, &buf);
    return inspect_take(call, &buf);
}

/* ---- text ---------------------------------------------------------------------------------- */

int value_format(struct command_call *call, const char *letters, struct gd_format *ret,
                 struct gd_err *err)
{
    const struct gd_settings *settings = &call->debugger->settings;
    struct gd_format format = {
        .precision = settings->print_precision,
        .threshold = settings->print_threshold,
        .edge_items = settings->print_edge_items,
        .line_width = settings->print_width,
        .suppress = settings->print_suppress,
    };
    for (const char *p = letters; *p; p++) {
        if (*p == 'a') {
            format.all = true;
            continue;
        }
        if (!strchr("fexd", *p)) {
            return gd_fail(err, GD_EUSAGE,
                           "unknown format '%c': f (fixed), e (scientific), x (hexadecimal), d "
                           "(integer) or a (all values)",
                           *p);
        }
        if (format.letter) {
            return gd_fail(err, GD_EUSAGE, "expected one format letter, not \"%.20s\"", letters);
        }
        format.letter = *p;
    }
    *ret = format;
    return GD_OK;
}

const char *value_age(const struct gd_session *session, int64_t step, char out[VALUE_AGE])
{
    long long now = (long long)session->stop.step;

    out[0] = '\0';
    if (step >= 0 && step != session->stop.step) {
        snprintf(out, VALUE_AGE, "of step %lld (now at step %lld)", (long long)step, now);
    } else if (step < 0 && !session->stop.at_step_end && gd_session_is_live(session) &&
               !gd_session_is_record(session)) {
        snprintf(out, VALUE_AGE, "of step %lld or earlier", now);
    }
    return out;
}

const char *value_title(struct command_call *call, const struct value *value)
{
    const char *label = out_safe(call, value->label);
    if (value->is_history) {
        return label;
    }
    if (value->which == VALUE_DIFFERENCE) {
        if (value->step >= 0 && value->prev_step >= 0) {
            return inspect_printf(call, "%s, change from step %lld to step %lld", label,
                                  (long long)value->prev_step, (long long)value->step);
        }
        return inspect_printf(call, "%s, change from the previous value", label);
    }
    if (value->which == VALUE_PREVIOUS) {
        return value->step >= 0 ? inspect_printf(call, "%s, previous value (step %lld)", label,
                                                 (long long)value->step)
                                : inspect_printf(call, "%s, previous value", label);
    }
    char age[VALUE_AGE];
    value_age(call->session, value->step, age);
    return age[0] ? inspect_printf(call, "%s, %s", label, age) : label;
}

void value_print_change(struct command_call *call, const struct gd_stats *change, bool count)
{
    double ratio = change->mean_abs_delta / change->mean_abs_prev;
    const char *of_prev = "";
    if (change->mean_abs_prev > 0) {
        of_prev = inspect_printf(call, " (%.3g of mean |previous|)", ratio);
    }
    const char *elements = "";
    if (count) {
        elements =
            inspect_printf(call, "%s of %s elements, ", inspect_number(call, change->mismatch),
                           inspect_number(call, change->count));
    }
    out_printf(call->out, "changed: %smean |d|=%s%s, max |d|=%s\n", elements,
               inspect_double(call, change->mean_abs_delta), of_prev,
               inspect_double(call, change->max_abs_delta));
}

/* The statistics of a single element repeat it; the element itself follows. */
static const char *lone_element(struct command_call *call, const struct value *value)
{
    const struct gd_stats *stats = &value->stats;
    if (value->tensor || !value->has_stats || stats->count != 1) {
        return "";
    }
    if (stats->nan + stats->pos_inf + stats->neg_inf > 0) {
        return stats->nan ? " nan" : stats->pos_inf ? " inf" : " -inf";
    }
    return inspect_printf(call, " %.9g", stats->mean);
}

/* One line; on a narrow terminal the histogram gets a line of its own. */
static void print_summary_line(struct command_call *call, const char *text)
{
    const char *histogram = strstr(text, " |");
    bool wide = call->repl->options.interactive && repl_display_width(text) > out_width(call->out);
    if (histogram && wide) {
        out_printf(call->out, "%.*s\n%s\n", (int)(histogram - text), text, histogram + 1);
    } else {
        out_printf(call->out, "%s\n", text);
    }
}

void value_print_summary(struct command_call *call, const struct value *value)
{
    struct gd_buf buf = GD_BUF_INIT(4096);
    bool utf8 = out_utf8(call->out);
    if (value->has_stats && value->stats.count != 1) {
        gd_format_summary(value->dtype, &value->shape, &value->stats,
                          value->has_histogram ? value->histogram : NULL, VALUE_BINS, utf8, &buf);
        print_summary_line(call, gd_buf_text(&buf));
    } else {
        out_printf(call->out, "%s %s%s\n", gd_dtype_name(value->dtype),
                   inspect_shape(call, &value->shape), lone_element(call, value));
    }
    gd_buf_deinit(&buf);
    if (value->has_change) {
        value_print_change(call, &value->change, value->has_change_count);
    }
}

struct printing {
    struct repl_work work;
    uint64_t bytes;
};

static bool report_progress(void *ctx, double done)
{
    struct printing *printing = ctx;
    return repl_work_at(&printing->work, (uint64_t)(done * (double)printing->bytes));
}

int value_print_elements(struct command_call *call, const struct value *value,
                         const struct gd_format *format, struct gd_err *err)
{
    if (!value->tensor || !out_is_text(call->out)) {
        return GD_OK;
    }
    bool all = format->all || gd_tensor_count(value->tensor) <= format->threshold;
    struct printing printing = {.bytes = all ? gd_tensor_bytes(value->tensor) : 0};
    struct gd_format watched = *format;
    watched.look = report_progress;
    watched.look_ctx = &printing;
    struct gd_buf buf = GD_BUF_INIT(TEXT_MAX);
    repl_work_begin(&printing.work, call, inspect_printf(call, "printing %.100s", value->label),
                    printing.bytes);
    int rc = gd_format_values(value->tensor, &watched, &buf, err);
    rc = repl_work_end(&printing.work, rc, err);
    if (rc == GD_OK) {
        rc = gd_buf_putc(&buf, '\n');
    }
    if (rc == GD_OK) {
        out_write(call->out, gd_buf_text(&buf), buf.len);
    }
    gd_buf_deinit(&buf);
    return rc;
}

/* ---- records ------------------------------------------------------------------------------- */

static cJSON *real_record(enum gd_dtype dtype, const unsigned char *p)
{
    if (dtype == GD_BOOL) {
        return cJSON_CreateBool(*p != 0);
    }
    double value = gd_dtype_load(dtype, p);
    if (!isfinite(value)) {
        return cJSON_CreateString(isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
    }
    struct gd_buf buf = GD_BUF_INIT(128);
    gd_format_scalar(dtype, p, &buf);
    if (buf.len > 0 && buf.data[buf.len - 1] == '.') {
        gd_buf_putc(&buf, '0');
    }
    cJSON *item = cJSON_CreateRaw(gd_buf_text(&buf));
    gd_buf_deinit(&buf);
    return item;
}

cJSON *value_element_record(enum gd_dtype dtype, const unsigned char *p)
{
    if (!gd_dtype_is_complex(dtype)) {
        return real_record(dtype, p);
    }
    enum gd_dtype part = dtype == GD_COMPLEX64 ? GD_FLOAT32 : GD_FLOAT64;
    cJSON *pair = cJSON_CreateArray();
    cJSON_AddItemToArray(pair, real_record(part, p));
    cJSON_AddItemToArray(pair, real_record(part, p + gd_dtype_size(part)));
    return pair;
}

static cJSON *axis_record(const struct gd_tensor *tensor, int axis, const unsigned char *p)
{
    if (axis == tensor->shape.rank) {
        return value_element_record(tensor->dtype, p);
    }
    cJSON *list = cJSON_CreateArray();
    for (int64_t i = 0; i < tensor->shape.dim[axis]; i++) {
        cJSON_AddItemToArray(list, axis_record(tensor, axis + 1, p + i * tensor->stride[axis]));
    }
    return list;
}

/* null: missing in the dump, so that even their existence is unknown */
static void add_known(cJSON *object, const char *key, const struct gd_stats *stats, unsigned bit,
                      uint64_t count)
{
    bool bound = count > 0 && (bit & (GD_UNKNOWN_NAN | GD_UNKNOWN_INF));

    out_set(object, (stats->unknown & bit) && !bound ? OUT_TEXT(key, NULL) : OUT_INT(key, count));
}

static void add_finite(cJSON *object, const char *key, bool any, double value)
{
    out_set(object, any ? OUT_REAL(key, value) : OUT_TEXT(key, NULL));
}

cJSON *value_stats_record(const struct gd_stats *stats)
{
    cJSON *object = cJSON_CreateObject();
    bool any = (stats->unknown & GD_UNKNOWN_COUNT) ||
               stats->count > stats->nan + stats->pos_inf + stats->neg_inf;
    add_known(object, "count", stats, GD_UNKNOWN_COUNT, stats->count);
    add_known(object, "nan", stats, GD_UNKNOWN_NAN, stats->nan);
    add_known(object, "pos_inf", stats, GD_UNKNOWN_INF, stats->pos_inf);
    add_known(object, "neg_inf", stats, GD_UNKNOWN_INF, stats->neg_inf);
    out_set(object, OUT_IF(gd_format_is_bound(stats), OUT_BOOL("at_least", true)));
    add_known(object, "zero", stats, GD_UNKNOWN_ZERO, stats->zero);
    add_known(object, "neg_zero", stats, GD_UNKNOWN_REST, stats->neg_zero);
    add_known(object, "positive", stats, GD_UNKNOWN_SIGNS, stats->positive);
    add_known(object, "negative", stats, GD_UNKNOWN_SIGNS, stats->negative);
    add_known(object, "denormal", stats, GD_UNKNOWN_REST, stats->denormal);
    add_finite(object, "min", any && !(stats->unknown & GD_UNKNOWN_MIN), stats->min);
    add_finite(object, "max", any && !(stats->unknown & GD_UNKNOWN_MAX), stats->max);
    add_finite(object, "mean", any && !(stats->unknown & GD_UNKNOWN_MEAN), stats->mean);
    add_finite(object, "abs_mean", any && !(stats->unknown & GD_UNKNOWN_REST), stats->abs_mean);
    add_finite(object, "std", any && !(stats->unknown & GD_UNKNOWN_REST), stats->std);
    add_finite(object, "l2", any && !(stats->unknown & GD_UNKNOWN_SUM_SQ), sqrt(stats->sum_sq));
    return object;
}

static void add_change(cJSON *object, const struct gd_stats *change, bool count)
{
    cJSON *record = out_object(object, "change");
    out_set(record, OUT_IF(count, OUT_INT("changed", change->mismatch)),
            OUT_REAL("mean_abs_delta", change->mean_abs_delta),
            OUT_REAL("max_abs_delta", change->max_abs_delta),
            OUT_REAL("mean_abs_prev", change->mean_abs_prev),
            OUT_IF(change->mean_abs_prev > 0,
                   OUT_REAL("ratio", change->mean_abs_delta / change->mean_abs_prev)));
}

static void add_identity(struct command_call *call, const struct value *value, cJSON *object)
{
    static const char *const which[] = {"current", "previous", "difference"};
    out_set(object, OUT_TEXT("name", value->label));
    if (value->is_history) {
        return;
    }
    out_set(object, OUT_TEXT("node", gd_graph_name(call->session->graph, value->arg.ref.node)),
            OUT_INT("slot", value->arg.ref.slot),
            OUT_IF(value->arg.slice.count > 0,
                   OUT_TEXT("slice", value_slice_text(call, &value->arg.slice))),
            OUT_TEXT("which", which[value->which]),
            OUT_IF(value->step >= 0, OUT_INT("step", value->step)),
            OUT_IF(value->prev_step >= 0, OUT_INT("previous_step", value->prev_step)));
    char age[VALUE_AGE];
    out_set(object,
            OUT_IF(value->which == VALUE_CURRENT && value_age(call->session, value->step, age)[0],
                   OUT_TEXT("age", age)));
}

static void add_histogram(const struct value *value, cJSON *object)
{
    cJSON *histogram = out_object(object, "histogram");
    out_set(histogram, OUT_REAL("low", value->stats.min), OUT_REAL("high", value->stats.max));
    cJSON *counts = out_list(histogram, "counts");
    for (int i = 0; i < VALUE_BINS; i++) {
        out_push_int(counts, (int64_t)value->histogram[i]);
    }
}

void value_record(struct command_call *call, const struct value *value,
                  const struct gd_format *format, cJSON *object)
{
    add_identity(call, value, object);
    out_set(object, OUT_TEXT("dtype", gd_dtype_name(value->dtype)),
            OUT_JSON("shape", inspect_shape_json(&value->shape)));
    size_t bytes = 0;
    out_set(object,
            OUT_IF(gd_shape_bytes(&value->shape, value->dtype, &bytes, NULL) == GD_OK,
                   OUT_INT("bytes", bytes)),
            OUT_IF(value->has_stats, OUT_JSON("stats", value_stats_record(&value->stats))));
    if (value->has_histogram) {
        add_histogram(value, object);
    }
    if (value->has_change) {
        add_change(object, &value->change, value->has_change_count);
    }
    if (!format) {
        return;
    }
    bool fits = value->tensor &&
                (format->all || gd_tensor_count(value->tensor) <= format->threshold) &&
                gd_tensor_count(value->tensor) <= RECORD_MAX && gd_dtype_size(value->dtype) > 0;
    cJSON *values = !fits ? cJSON_CreateNull()
                    : gd_tensor_count(value->tensor) == 0 /* no memory to walk */
                        ? cJSON_CreateArray()
                        : axis_record(value->tensor, 0, value->tensor->data);
    out_set(object, OUT_JSON("values", values));
    if (!fits) {
        out_set(object, OUT_BOOL("truncated", true),
                OUT_IF(value->note, OUT_TEXT("note", value->note)));
    }
}
