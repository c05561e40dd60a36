// SPDX-License-Identifier: GPL-3.0-or-later
/* Commands: x */
#include <stdlib.h>
#include <string.h>

#include "repl/values/inspect.h"
#include "repl/values/value.h"

/* Splits "8f" into count and letter. */
static int parse_examine(const char *text, int64_t *count, char *letter, struct gd_err *err)
{
    size_t digits = strspn(text, "0123456789");
    if (digits > 0) {
        char number[24];
        if (digits >= sizeof(number)) {
            return gd_fail(err, GD_EUSAGE, "too many elements: %.40s", text);
        }
        memcpy(number, text, digits);
        number[digits] = '\0';
        int rc = arg_count(number, 1, 1000000, count, err);
        if (rc != GD_OK) {
            return rc;
        }
    }
    if (text[digits] != '\0') {
        if (!strchr("fexd", text[digits]) || text[digits + 1] != '\0') {
            return gd_fail(err, GD_EUSAGE,
                           "x/%.20s: expected a count and one of f, e, x, d after the slash", text);
        }
        *letter = text[digits];
    }
    return GD_OK;
}

/* Element number `flat` of a shape as indices. */
static void split_index(const struct gd_shape *shape, int64_t flat, int64_t index[GD_MAX_RANK])
{
    for (int i = shape->rank - 1; i >= 0; i--) {
        int64_t dim = shape->dim[i] > 0 ? shape->dim[i] : 1;
        index[i] = flat % dim;
        flat /= dim;
    }
}

/* The smallest box of the shape, as a slice, that contains elements first..last in C order: leading
 * axes with a single index are indexed, the next is a range, the rest is whole. *base is the flat
 * index of the box's first element. */
static void box_slice(const struct gd_shape *shape, int64_t first, int64_t last,
                      struct gd_slice *slice, int64_t *base)
{
    int64_t from[GD_MAX_RANK];
    int64_t to[GD_MAX_RANK];
    split_index(shape, first, from);
    split_index(shape, last, to);
    *slice = (struct gd_slice){0};
    *base = 0;
    bool same = true;
    for (int i = 0; i < shape->rank; i++) {
        struct gd_slice_item *item = &slice->item[slice->count];
        *base *= shape->dim[i];
        if (!same) {
            continue; /* trailing axes are whole */
        }
        slice->count++;
        item->step = 1;
        item->start = from[i];
        *base += from[i];
        if (from[i] == to[i]) {
            item->kind = GD_SLICE_INDEX;
        } else {
            same = false;
            item->kind = GD_SLICE_RANGE;
            item->has_start = item->has_stop = true;
            item->stop = to[i] + 1;
        }
    }
}

/* Plain indices name the element to start at; any other slice is walked from its beginning. */
static bool only_indices(const struct gd_slice *slice)
{
    for (int i = 0; i < slice->count; i++) {
        if (slice->item[i].kind != GD_SLICE_INDEX) {
            return false;
        }
    }
    return true;
}

/* The flat index that the indices name. */
static int start_of(const struct gd_slice *slice, const struct gd_shape *shape, int64_t *ret,
                    struct gd_err *err)
{
    int64_t stride[GD_MAX_RANK];
    struct gd_slice_view view;
    gd_shape_strides(shape, 1, stride);
    int rc = gd_slice_apply(slice, shape, stride, &view, err);
    if (rc == GD_OK) {
        *ret = view.offset;
    }
    return rc;
}

struct examine {
    struct gd_tensor *tensor; /* holds the elements; owned */
    struct gd_shape shape;    /* what the printed indices refer to */
    int64_t base;             /* flat number in shape of the tensor's first element */
    int64_t first, count;     /* flat numbers in shape */
    int64_t step;
    const char *name; /* the tensor without the indices */
};

/* Element `skip` after `start`, and how many are left from there. */
static void place_part(struct examine *job, int64_t start, int64_t skip)
{
    int64_t total = gd_shape_count(&job->shape);
    job->first = skip > total - start ? total : start + skip;
    if (job->count > total - job->first) {
        job->count = total - job->first;
    }
}

/* Fetches the whole tensor, whose own shape is authoritative. */
static int fetch_whole(struct command_call *call, const struct value *value, struct examine *job,
                       int64_t skip, struct gd_err *err)
{
    struct value whole = *value;
    int64_t start = 0;
    whole.arg.slice = (struct gd_slice){0};
    int rc = value_fetch(call, &whole, VALUE_ELEMENTS, err);
    if (rc != GD_OK) {
        return rc;
    }
    job->shape = whole.shape;
    job->base = 0;
    job->step = whole.step;
    rc = start_of(&value->arg.slice, &job->shape, &start, err);
    if (rc != GD_OK) {
        value_deinit(&whole);
        return rc;
    }
    place_part(job, start, skip);
    job->tensor = whole.tensor;
    return GD_OK;
}

/* Fetches only the box with the elements if the shape is known. The declared shape may be wrong:
 * the number of elements received is checked. */
static int fetch_box(struct command_call *call, const struct value *value, struct examine *job,
                     int64_t skip, struct gd_err *err)
{
    struct value box = *value;
    struct gd_slice_view view;
    int64_t stride[GD_MAX_RANK];
    int64_t wanted = job->count;
    int64_t start = 0;
    enum gd_dtype dtype;
    box.arg.slice = (struct gd_slice){0};
    if (value_declared(call, &box, &dtype, &job->shape, NULL) != GD_OK ||
        gd_shape_count(&job->shape) < 0) {
        return fetch_whole(call, value, job, skip, err);
    }
    int rc = start_of(&value->arg.slice, &job->shape, &start, err);
    if (rc != GD_OK) {
        return rc;
    }
    place_part(job, start, skip);
    if (job->count == 0) {
        return GD_OK; /* nothing to fetch: the caller reports it */
    }
    box_slice(&job->shape, job->first, job->first + job->count - 1, &box.arg.slice, &job->base);
    gd_shape_strides(&job->shape, 1, stride);
    rc = gd_slice_apply(&box.arg.slice, &job->shape, stride, &view, err);
    rc = rc != GD_OK ? rc : value_fetch(call, &box, VALUE_ELEMENTS, err);
    if (rc != GD_OK) {
        return rc;
    }
    if (gd_tensor_count(box.tensor) != gd_shape_count(&view.shape)) {
        value_deinit(&box);
        job->count = wanted;
        return fetch_whole(call, value, job, skip, err);
    }
    job->step = box.step;
    job->tensor = box.tensor;
    return GD_OK;
}

static int fetch_examined(struct command_call *call, struct value *value, struct examine *job,
                          int64_t skip, struct gd_err *err)
{
    if (!value->is_history && only_indices(&value->arg.slice)) {
        job->name = inspect_tensor_name(call, value->arg.ref.node, value->arg.ref.slot);
        return fetch_box(call, value, job, skip, err);
    }
    int rc = value_fetch(call, value, VALUE_ELEMENTS, err);
    if (rc != GD_OK) {
        return rc;
    }
    job->name = value->label;
    job->shape = value->shape;
    job->step = value->step;
    job->tensor = gd_tensor_ref(value->tensor);
    place_part(job, 0, skip);
    return GD_OK;
}

/* Element `flat` of the tensor as text, in the arena. */
static const char *element_text(struct command_call *call, const struct gd_tensor *tensor,
                                int64_t flat, const struct gd_format *format)
{
    struct gd_shape scalar = {.rank = 0};
    int64_t stride[GD_MAX_RANK] = {0};
    struct gd_tensor *one = NULL;
    struct gd_buf buf = GD_BUF_INIT(1024);
    const char *text = "?";
    if (gd_tensor_view(tensor, &scalar, stride, gd_tensor_offset(tensor, flat), &one, NULL) ==
            GD_OK &&
        gd_format_values(one, format, &buf, NULL) == GD_OK) {
        text = inspect_printf(call, "%s", gd_buf_text(&buf));
    }
    gd_tensor_unref(one);
    gd_buf_deinit(&buf);
    return text;
}

static void print_rows(struct command_call *call, const struct examine *job,
                       const struct gd_format *format)
{
    const char **text = gd_arena_alloc(call->arena, ((size_t)job->count + 1) * sizeof(*text));
    int widest = 1;
    for (int64_t i = 0; text && i < job->count; i++) {
        text[i] = element_text(call, job->tensor, job->first - job->base + i, format);
        int width = (int)strlen(text[i]);
        widest = width > widest ? width : widest;
    }
    /* width of the longest index, so that the next part lines up with this one */
    const char *last = inspect_index(call, &job->shape, gd_shape_count(&job->shape) - 1);
    int margin = (int)strlen(last) + 1;
    int fit = (out_width(call->out) - margin) / (widest + 2);
    int64_t row = fit >= 8 ? 8 : fit >= 4 ? 4 : fit >= 2 ? 2 : 1;
    for (int64_t i = 0; text && i < job->count; i++) {
        if (i % row == 0) {
            const char *index = inspect_index(call, &job->shape, job->first + i);
            out_printf(call->out, "%s%s:%*s", i > 0 ? "\n" : "", index,
                       margin - 1 - (int)strlen(index), "");
        }
        out_printf(call->out, "  %*s", widest, text[i]);
    }
    out_printf(call->out, "%s", job->count > 0 ? "\n" : "");
}

static void record_rows(struct command_call *call, const struct examine *job)
{
    cJSON *record = out_record(call->out, "examine");
    out_set(record, OUT_TEXT("name", job->name),
            OUT_TEXT("dtype", gd_dtype_name(job->tensor->dtype)),
            OUT_JSON("shape", inspect_shape_json(&job->shape)),
            OUT_IF(job->step >= 0, OUT_INT("step", job->step)), OUT_INT("first", job->first));
    cJSON *values = out_list(record, "values");
    for (int64_t i = 0; i < job->count; i++) {
        int64_t offset = gd_tensor_offset(job->tensor, job->first - job->base + i);
        cJSON_AddItemToArray(values,
                             value_element_record(job->tensor->dtype, job->tensor->data + offset));
    }
}

static int show_elements(struct command_call *call, const char *text, int64_t skip, int64_t count,
                         char letter, struct gd_err *err)
{
    char letters[2] = {letter, '\0'};
    struct gd_format format;
    struct value value;
    struct examine job = {.count = count};
    int rc = value_format(call, letters, &format, err);
    rc = rc != GD_OK ? rc : value_parse(call, text, &value, err);
    if (rc != GD_OK) {
        return rc;
    }
    rc = fetch_examined(call, &value, &job, skip, err);
    if (rc == GD_OK && job.count <= 0) {
        rc = gd_fail(err, GD_ENODATA, "%.300s has no more elements", out_safe(call, job.name));
    }
    if (rc == GD_OK && out_is_json(call->out)) {
        record_rows(call, &job);
    } else if (rc == GD_OK) {
        char age[VALUE_AGE] = "";
        if (!value.is_history) {
            value_age(call->session, job.step, age);
        }
        if (skip == 0 || age[0]) {
            out_printf(call->out, "%s%s%s\n", out_safe(call, job.name), age[0] ? ", " : "", age);
        }
        print_rows(call, &job, &format);
    }
    gd_tensor_unref(job.tensor);
    value_deinit(&value);
    return rc;
}

static int run_x(struct command_call *call, struct gd_err *err)
{
    struct inspect_state *state = inspect_state(call->repl);
    if (!state) {
        return gd_fail_nomem(err);
    }
    inspect_join_slices(call);
    if (call->argc > 1) {
        return gd_fail(err, GD_EUSAGE, "x: specify one tensor");
    }
    int64_t count = state->x_count > 0 ? state->x_count : 8;
    char letter = state->x_letter;
    if (call->argc == 1 || call->format[0]) {
        count = 8;
        letter = 0;
    }
    int rc = parse_examine(call->format, &count, &letter, err);
    if (rc != GD_OK) {
        return rc;
    }
    if (call->argc == 0 && !state->x_text) {
        return gd_fail(err, GD_EUSAGE, "x: specify a tensor");
    }
    if (call->argc == 1) {
        char *copy = strdup(call->argv[0]);
        if (!copy) {
            return gd_fail_nomem(err);
        }
        free(state->x_text);
        state->x_text = copy;
        state->x_next = 0;
    }
    state->x_count = count;
    state->x_letter = letter;
    rc = show_elements(call, state->x_text, state->x_next, count, letter, err);
    if (rc == GD_OK) {
        state->x_next += count;
    }
    return rc;
}

const struct command cmd_x = {
    .name = "x",
    .group = "data",
    .usage = "x[/[COUNT]f|e|x|d] [NODE[:SLOT][SLICE]|$N]",
    .summary = "Examine COUNT elements of a tensor, with their indices",
    .help = "Plain indices say where to start; elements follow in C order, across rows. Any other\n"
            "slice is shown from its beginning. An empty line shows the next elements.",
    .examples = "x/8f model/head/weight\n"
                "x/16x model/head/weight[3, 10]\n"
                "x/4 model/head/weight[:, 0]",
    .args = {ARG_TENSOR},
    .flags = CMD_REPEATS | CMD_REPEATS_BARE,
    .run = run_x,
};
