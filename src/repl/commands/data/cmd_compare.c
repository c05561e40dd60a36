// SPDX-License-Identifier: GPL-3.0-or-later
/* compare: a tensor with its value of the step before, or with another one, element by element. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "repl/compare/compare_files.h"
#include "repl/core/commands.h"
#include "repl/core/work.h"
#include "repl/values/inspect.h"
#include "repl/values/value.h"

#define MAX_ROWS 1000
#define ROWS     10
#define PIECE    ((int64_t)1 << 16) /* elements between two looks at whether it is still wanted */

/* a against b: what b was before, or should be. */
struct sides {
    struct gd_tensor *a, *b; /* contiguous */
    const char *a_label, *b_label;
    const char *a_title, *b_title; /* of columns; and as JSON names */
    const char *a_key, *b_key;
    bool a_first; /* of the two columns; else what was before comes first */
    int64_t a_step, b_step;
};

struct rule {
    bool close;        /* rtol and atol say what is equal; else the tolerance does */
    double tolerance;  /* share of the largest change that counts as none */
    double rtol, atol; /* |a - b| <= atol + rtol * |b| is equal */
    bool equal_nan;
    int64_t rows; /* differing elements that are shown */
};

struct differing {
    int64_t at; /* element, in C order */
    double difference;
    double rank; /* what is shown first: not finite ones, then the largest */
};

struct tally { /* of the differences, small ones as 0 */
    uint64_t count, nan, pos_inf, neg_inf, zero, positive, negative;
    double min, max, mean;
    uint64_t changed; /* elements that differ by the rule */
    double bound;     /* changes up to this count as none */
    double max_abs;   /* largest finite |difference| */
};

/* ---- element by element ---------------------------------------------------------------------- */

/* Both infinite with one sign, or both NaN: there is no number between them. */
static bool same_bytes(const struct gd_tensor *a, const unsigned char *x, const unsigned char *y)
{
    return memcmp(x, y, gd_dtype_size(a->dtype)) == 0;
}

/* Wide integers that a double cannot tell apart. */
static double difference_of_wide(enum gd_dtype dtype, const unsigned char *x,
                                 const unsigned char *y)
{
    uint64_t a, b;
    bool more;

    memcpy(&a, x, 8);
    memcpy(&b, y, 8);
    more = dtype == GD_UINT64 ? a > b : (int64_t)a > (int64_t)b;
    return more ? (double)(a - b) : -(double)(b - a);
}

/* a - b; of complex numbers its magnitude. */
static double difference(const struct gd_tensor *a, const unsigned char *x, const unsigned char *y)
{
    enum gd_dtype dtype = a->dtype;

    if (dtype == GD_INT64 || dtype == GD_UINT64) {
        return difference_of_wide(dtype, x, y);
    }
    if (gd_dtype_is_complex(dtype)) {
        enum gd_dtype part = dtype == GD_COMPLEX64 ? GD_FLOAT32 : GD_FLOAT64;
        size_t half = gd_dtype_size(part);

        return hypot(gd_dtype_load(part, x) - gd_dtype_load(part, y),
                     gd_dtype_load(part, x + half) - gd_dtype_load(part, y + half));
    }
    return gd_dtype_load(dtype, x) - gd_dtype_load(dtype, y);
}

static double magnitude(const struct gd_tensor *a, const unsigned char *x)
{
    if (gd_dtype_is_complex(a->dtype)) {
        enum gd_dtype part = a->dtype == GD_COMPLEX64 ? GD_FLOAT32 : GD_FLOAT64;

        return hypot(gd_dtype_load(part, x), gd_dtype_load(part, x + gd_dtype_size(part)));
    }
    return fabs(gd_dtype_load(a->dtype, x));
}

static bool is_nan(const struct gd_tensor *a, const unsigned char *x)
{
    return isnan(magnitude(a, x));
}

static bool goes_on(struct repl_work *work, const struct sides *sides, int64_t elements)
{
    return (elements % PIECE != 0 && !work->stopped) ||
           repl_work_at(work, (uint64_t)elements * gd_dtype_size(sides->a->dtype));
}

/* The largest finite change decides what is small. */
static double largest(const struct sides *sides, struct repl_work *work)
{
    size_t item = gd_dtype_size(sides->a->dtype);
    int64_t count = gd_tensor_count(sides->a);
    double max = 0;

    for (int64_t i = 0; i < count && goes_on(work, sides, i); i++) {
        size_t at = (size_t)i * item;
        double d = fabs(difference(sides->a, sides->a->data + at, sides->b->data + at));

        if (isfinite(d) && d > max) {
            max = d;
        }
    }
    return max;
}

static bool differs(const struct sides *sides, const struct rule *rule, double bound, double d,
                    const unsigned char *x, const unsigned char *y)
{
    bool nan_x, nan_y;

    if (!rule->close) {
        return !(fabs(d) <= bound) && !same_bytes(sides->a, x, y);
    }
    nan_x = is_nan(sides->a, x);
    nan_y = is_nan(sides->a, y);
    if (nan_x || nan_y) {
        return !(rule->equal_nan && nan_x && nan_y);
    }
    if (isinf(magnitude(sides->a, x)) || isinf(magnitude(sides->a, y))) {
        return !same_bytes(sides->a, x, y);
    }
    return !(fabs(d) <= rule->atol + rule->rtol * magnitude(sides->a, y));
}

/* Keeps the `max` that rank first, best first; earlier elements before later ones. */
static void keep_worst(struct differing *worst, size_t *count, size_t max, struct differing one)
{
    size_t at = *count < max ? (*count)++ : max;

    if (at == max) {
        if (max == 0 || worst[max - 1].rank >= one.rank) {
            return;
        }
        at--;
    }
    while (at > 0 && worst[at - 1].rank < one.rank) {
        worst[at] = worst[at - 1];
        at--;
    }
    worst[at] = one;
}

static void count_difference(struct tally *tally, double d, uint64_t *finite)
{
    tally->count++;
    if (isnan(d)) {
        tally->nan++;
    } else if (isinf(d)) {
        *(d > 0 ? &tally->pos_inf : &tally->neg_inf) += 1;
    } else {
        *(d > 0 ? &tally->positive : d < 0 ? &tally->negative : &tally->zero) += 1;
        tally->min = fmin(tally->min, d);
        tally->max = fmax(tally->max, d);
        tally->mean += (d - tally->mean) / (double)++*finite;
    }
}

/* All elements twice, unless it is stopped. */
static void compare_elements(const struct sides *sides, const struct rule *rule,
                             struct repl_work *work, struct tally *tally, struct differing *worst,
                             size_t *worst_count)
{
    size_t item = gd_dtype_size(sides->a->dtype);
    int64_t count = gd_tensor_count(sides->a);
    uint64_t finite = 0;

    *tally = (struct tally){.min = INFINITY, .max = -INFINITY};
    *worst_count = 0;
    tally->max_abs = largest(sides, work);
    tally->bound = rule->close ? 0 : tally->max_abs * rule->tolerance;
    for (int64_t i = 0; i < count && goes_on(work, sides, count + i); i++) {
        const unsigned char *x = sides->a->data + (size_t)i * item;
        const unsigned char *y = sides->b->data + (size_t)i * item;
        double d = difference(sides->a, x, y);
        bool other = differs(sides, rule, tally->bound, d, x, y);

        if (other) {
            tally->changed++;
            keep_worst(worst, worst_count, (size_t)rule->rows,
                       (struct differing){i, d, isfinite(d) ? fabs(d) : INFINITY});
        }
        count_difference(tally, !rule->close && fabs(d) <= tally->bound ? 0 : d, &finite);
    }
}

/* ---- what is shown --------------------------------------------------------------------------- */

static const char *element_text(struct command_call *call, const struct gd_tensor *tensor,
                                int64_t flat)
{
    struct gd_buf buf = GD_BUF_INIT(256);
    const char *text = "?";

    if (gd_format_scalar(tensor->dtype, tensor->data + (size_t)flat * gd_dtype_size(tensor->dtype),
                         &buf) == GD_OK) {
        text = inspect_printf(call, "%s", gd_buf_text(&buf));
    }
    gd_buf_deinit(&buf);
    return text;
}

static const char *step_text(struct command_call *call, const char *label, int64_t step)
{
    return step < 0
               ? out_safe(call, label)
               : inspect_printf(call, "%s of step %lld", out_safe(call, label), (long long)step);
}

static const char *rule_text(struct command_call *call, const struct rule *rule,
                             const struct tally *tally)
{
    if (rule->close) {
        return inspect_printf(call, "rtol=%g atol=%g%s", rule->rtol, rule->atol,
                              rule->equal_nan ? ", NaN equals NaN" : "");
    }
    if (rule->tolerance == 0) {
        return "every change counts";
    }
    return inspect_printf(call, "changes up to %s (%g of the largest) count as none",
                          inspect_double(call, tally->bound), rule->tolerance);
}

static void figure_row(const struct sides *sides, struct out_table *table, const char *name,
                       const char *a, const char *b, const char *d)
{
    const char *cells[] = {name, sides->a_first ? a : b, sides->a_first ? b : a, d};

    out_table_row(table, cells);
}

static const char *finite_cell(struct command_call *call, bool any, double value)
{
    return any ? inspect_double(call, value) : "-";
}

/* The columns of a table: a name, both sides in their order, what lies between them. */
static struct out_table *begin_table(struct command_call *call, const struct sides *sides,
                                     const char *record, const char *key, const char *title)
{
    struct out_column a = {sides->a_key, sides->a_title, true};
    struct out_column b = {sides->b_key, sides->b_title, true};
    struct out_column columns[] = {{key, title, false},
                                   sides->a_first ? a : b,
                                   sides->a_first ? b : a,
                                   {"difference", "Difference", true}};

    return out_table_begin(call->out, record, columns, 4);
}

/* The same figures of both sides and of what lies between them. */
static void print_figures(struct command_call *call, const struct sides *sides,
                          const struct gd_stats *a, const struct gd_stats *b, const struct tally *d)
{
    const struct {
        const char *name;
        double a, b, d;
    } values[] = {{"max", a->max, b->max, d->max},
                  {"min", a->min, b->min, d->min},
                  {"mean", a->mean, b->mean, d->mean}};
    const struct {
        const char *name;
        uint64_t a, b, d;
    } counts[] = {{"count", a->count, b->count, d->count},
                  {"nan", a->nan, b->nan, d->nan},
                  {"+inf", a->pos_inf, b->pos_inf, d->pos_inf},
                  {"-inf", a->neg_inf, b->neg_inf, d->neg_inf},
                  {"zero", a->zero, b->zero, d->zero},
                  {"< 0", a->negative, b->negative, d->negative},
                  {"> 0", a->positive, b->positive, d->positive}};
    struct out_table *table = begin_table(call, sides, "comparison", "figure", "");
    bool any_a = a->count > a->nan + a->pos_inf + a->neg_inf;
    bool any_b = b->count > b->nan + b->pos_inf + b->neg_inf;
    bool any_d = d->count > d->nan + d->pos_inf + d->neg_inf;

    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        figure_row(sides, table, values[i].name, finite_cell(call, any_a, values[i].a),
                   finite_cell(call, any_b, values[i].b), finite_cell(call, any_d, values[i].d));
    }
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        figure_row(sides, table, counts[i].name, inspect_number(call, counts[i].a),
                   inspect_number(call, counts[i].b), inspect_number(call, counts[i].d));
    }
    out_table_end(table);
}

static void print_worst(struct command_call *call, const struct sides *sides,
                        const struct differing *worst, size_t count)
{
    struct out_table *table = begin_table(call, sides, "elements", "index", "Element");

    for (size_t i = 0; i < count; i++) {
        const char *cells[] = {
            inspect_index(call, &sides->a->shape, worst[i].at),
            element_text(call, sides->a_first ? sides->a : sides->b, worst[i].at),
            element_text(call, sides->a_first ? sides->b : sides->a, worst[i].at),
            inspect_double(call, worst[i].difference)};

        out_table_row(table, cells);
    }
    out_table_end(table);
}

static void print_text(struct command_call *call, const struct sides *sides,
                       const struct rule *rule, const struct tally *tally,
                       const struct differing *worst, size_t worst_count, const struct gd_stats *a,
                       const struct gd_stats *b)
{
    out_printf(call->out, "%s against %s, %s %s\n", step_text(call, sides->a_label, sides->a_step),
               step_text(call, sides->a_first ? sides->b_label : "the value", sides->b_step),
               gd_dtype_name(sides->a->dtype), inspect_shape(call, &sides->a->shape));
    out_printf(call->out, "%s of %s elements differ; %s\n", inspect_number(call, tally->changed),
               inspect_number(call, tally->count), rule_text(call, rule, tally));
    if (!rule->close) {
        print_figures(call, sides, a, b, tally);
    }
    if (worst_count == 0) {
        return;
    }
    if (tally->changed > worst_count) {
        out_printf(call->out,
                   worst_count == 1 ? "The one that differs most:\n"
                                    : "The %zu that differ most:\n",
                   worst_count);
    }
    print_worst(call, sides, worst, worst_count);
}

/* ---- the same as a record -------------------------------------------------------------------- */

static void add_tally(cJSON *record, const struct tally *d)
{
    cJSON *object = cJSON_AddObjectToObject(record, "difference");
    bool any = d->count > d->nan + d->pos_inf + d->neg_inf;

    inspect_add_count(object, "count", d->count);
    inspect_add_count(object, "nan", d->nan);
    inspect_add_count(object, "pos_inf", d->pos_inf);
    inspect_add_count(object, "neg_inf", d->neg_inf);
    inspect_add_count(object, "zero", d->zero);
    inspect_add_count(object, "positive", d->positive);
    inspect_add_count(object, "negative", d->negative);
    if (any) {
        inspect_add_double(object, "min", d->min);
        inspect_add_double(object, "max", d->max);
        inspect_add_double(object, "mean", d->mean);
    }
    inspect_add_double(object, "max_abs", d->max_abs);
}

static void add_side(struct command_call *call, cJSON *record, const char *key, const char *label,
                     int64_t step, const struct gd_stats *stats)
{
    cJSON *object = cJSON_AddObjectToObject(record, key);

    inspect_add_text(call, object, "name", label);
    if (step >= 0) {
        inspect_add_count(object, "step", (uint64_t)step);
    }
    cJSON_AddItemToObject(object, "stats", value_stats_record(stats));
}

static void add_cells(cJSON *record, const struct sides *sides, const struct differing *worst,
                      size_t count)
{
    cJSON *list = cJSON_AddArrayToObject(record, "elements");
    const struct gd_shape *shape = &sides->a->shape;
    size_t item = gd_dtype_size(sides->a->dtype);

    for (size_t i = 0; i < count; i++) {
        cJSON *cell = cJSON_CreateObject();
        cJSON *index = cJSON_AddArrayToObject(cell, "index");
        size_t at = (size_t)worst[i].at * item;
        int64_t flat = worst[i].at;

        for (int axis = shape->rank - 1; axis >= 0; axis--) {
            cJSON_InsertItemInArray(index, 0,
                                    cJSON_CreateNumber((double)(flat % shape->dim[axis])));
            flat /= shape->dim[axis];
        }
        cJSON_AddItemToObject(cell, sides->b_key,
                              value_element_record(sides->a->dtype, sides->b->data + at));
        cJSON_AddItemToObject(cell, sides->a_key,
                              value_element_record(sides->a->dtype, sides->a->data + at));
        inspect_add_double(cell, "difference", worst[i].difference);
        cJSON_AddItemToArray(list, cell);
    }
}

static void add_record(struct command_call *call, const struct sides *sides,
                       const struct rule *rule, const struct tally *tally,
                       const struct differing *worst, size_t worst_count, const struct gd_stats *a,
                       const struct gd_stats *b)
{
    cJSON *record = out_record(call->out, "comparison");

    cJSON_AddStringToObject(record, "dtype", gd_dtype_name(sides->a->dtype));
    inspect_add_shape(record, "shape", &sides->a->shape);
    if (rule->close) {
        inspect_add_double(record, "rtol", rule->rtol);
        inspect_add_double(record, "atol", rule->atol);
        cJSON_AddBoolToObject(record, "equal_nan", rule->equal_nan);
    } else {
        inspect_add_double(record, "tolerance", rule->tolerance);
        inspect_add_double(record, "bound", tally->bound);
    }
    inspect_add_count(record, "count", tally->count);
    inspect_add_count(record, "differ", tally->changed);
    add_side(call, record, sides->a_key, sides->a_label, sides->a_step, a);
    add_side(call, record, sides->b_key, sides->b_label, sides->b_step, b);
    add_tally(record, tally);
    add_cells(record, sides, worst, worst_count);
}

/* ---- the command ----------------------------------------------------------------------------- */

static int show(struct command_call *call, const struct sides *sides, const struct rule *rule,
                struct gd_err *err)
{
    struct differing *worst = malloc((size_t)rule->rows * sizeof(*worst) + 1);
    struct gd_stats a, b;
    struct repl_work work;
    struct tally tally;
    size_t count;
    int rc = worst ? repl_stats_compute(call, "statistics of the first", sides->a, NULL, &a, err)
                   : gd_fail(err, GD_ENOMEM, "out of memory for a comparison");

    if (rc == GD_OK) {
        rc = repl_stats_compute(call, "statistics of the second", sides->b, NULL, &b, err);
    }
    if (rc == GD_OK) {
        repl_work_begin(&work, call, inspect_printf(call, "comparing %.100s", sides->a_label),
                        2 * gd_tensor_bytes(sides->a));
        compare_elements(sides, rule, &work, &tally, worst, &count);
        rc = repl_work_end(&work, GD_OK, err);
    }
    if (rc == GD_OK) {
        if (out_is_json(call->out)) {
            add_record(call, sides, rule, &tally, worst, count, &a, &b);
        } else {
            print_text(call, sides, rule, &tally, worst, count, &a, &b);
        }
    }
    free(worst);
    return rc;
}

static int fetch_side(struct command_call *call, const char *text, enum value_which which,
                      struct value *value, struct gd_tensor **ret, struct gd_err *err)
{
    int rc = value_parse(call, text, value, err);

    if (rc == GD_OK) {
        value->which = which;
        rc = value_fetch(call, value, VALUE_ELEMENTS, err);
    }
    return rc == GD_OK ? gd_tensor_contiguous(value->tensor, ret, err) : rc;
}

static int check_sides(const struct sides *sides, struct gd_err *err)
{
    char a[256], b[256];

    if (sides->a->dtype == sides->b->dtype && gd_shape_equal(&sides->a->shape, &sides->b->shape)) {
        return gd_tensor_count(sides->a) > 0
                   ? GD_OK
                   : gd_fail(err, GD_ENODATA, "%.120s has no elements: nothing to compare",
                             sides->a_label);
    }
    return gd_fail(err, GD_EINVAL, "%.120s is %s %s, %.120s is %s %s: only like can be compared",
                   sides->a_label, gd_dtype_name(sides->a->dtype),
                   gd_shape_text(&sides->a->shape, a, sizeof(a)), sides->b_label,
                   gd_dtype_name(sides->b->dtype), gd_shape_text(&sides->b->shape, b, sizeof(b)));
}

/* second NULL: the value of the step before. */
static int compare(struct command_call *call, const char *first, const char *second,
                   const struct rule *rule, struct gd_err *err)
{
    struct value a = {.step = -1}, b = {.step = -1};
    struct sides sides = {
        .a_title = "Current", .b_title = "Previous", .a_key = "current", .b_key = "previous"};
    int rc;

    if (second) {
        sides.a_title = "First";
        sides.b_title = "Second";
        sides.a_key = "first";
        sides.b_key = "second";
        sides.a_first = true;
    }
    rc = fetch_side(call, second ? second : first, second ? VALUE_CURRENT : VALUE_PREVIOUS, &b,
                    &sides.b, err);
    if (rc == GD_OK) {
        rc = fetch_side(call, first, VALUE_CURRENT, &a, &sides.a, err);
    }
    if (rc == GD_OK) {
        sides.a_label = a.label;
        sides.b_label = b.label;
        sides.a_step = a.step;
        sides.b_step = b.step;
        rc = check_sides(&sides, err);
    }
    if (rc == GD_OK) {
        rc = show(call, &sides, rule, err);
    }
    gd_tensor_unref(sides.a);
    gd_tensor_unref(sides.b);
    value_deinit(&a);
    value_deinit(&b);
    return rc;
}

static bool parse_number(const char *text, double *ret)
{
    char *end = NULL;
    double value = strtod(text, &end);

    if (end == text || *end != '\0') {
        return false;
    }
    *ret = value;
    return true;
}

/* "rtol=1e-5": takes the words out of call->argv. */
static int take_rule(struct command_call *call, struct rule *rule, struct gd_err *err)
{
    int kept = 0;

    for (int i = 0; i < call->argc; i++) {
        const char *word = call->argv[i];
        double *to = strncmp(word, "rtol=", 5) == 0   ? &rule->rtol
                     : strncmp(word, "atol=", 5) == 0 ? &rule->atol
                                                      : NULL;

        if (!to) {
            call->argv[kept++] = call->argv[i];
            continue;
        }
        if (!rule->close) { /* the one that is not given is none */
            *to = 0;
        }
        rule->close = true;
        if (!parse_number(word + 5, to) || !(*to >= 0) || isinf(*to)) {
            return gd_fail(err, GD_EINVAL, "\"%.80s\": a tolerance is a number, 0 or more", word);
        }
    }
    call->argc = kept;
    return GD_OK;
}

/* The second word is a tolerance unless it names a tensor, which a number seldom does. */
static int run_compare(struct command_call *call, struct gd_err *err)
{
    struct rule rule = {.rows = ROWS};
    const char *second = NULL;

    if (call->argc > 1 && strcmp(call->argv[0], "loss") == 0) {
        return compare_loss(call, err);
    }
    if (compare_is_of_files(call)) {
        return compare_files(call, err);
    }
    int rc = inspect_take_count(call, "-n", 0, MAX_ROWS, &rule.rows, err);

    rule.equal_nan = inspect_take_flag(call, "-equal-nan");
    if (rc == GD_OK) {
        rc = take_rule(call, &rule, err);
    }
    if (rc == GD_OK) {
        rc = inspect_no_options(call, err);
    }
    inspect_join_slices(call);
    if (rc == GD_OK && call->argc > 2) {
        rc = gd_fail(err, GD_EUSAGE, "compare: two tensors, or one and a tolerance");
    }
    if (rc == GD_OK && call->argc < 1) {
        rc = gd_fail(err, GD_EUSAGE, "compare: which tensor?");
    }
    if (rc == GD_OK && call->argc == 2 && !parse_number(call->argv[1], &rule.tolerance)) {
        second = call->argv[1];
    }
    if (rc == GD_OK && !(rule.tolerance >= 0 && rule.tolerance <= 1)) {
        rc = gd_fail(err, GD_EINVAL,
                     "a tolerance is a share of the largest change, from 0 to 1, not %s",
                     call->argv[1]);
    }
    if (rc == GD_OK && rule.close && call->argc == 2 && !second) {
        rc = gd_fail(err, GD_EUSAGE, "compare: a tolerance, or rtol and atol, not both");
    }
    if (rc == GD_OK && second && !rule.close) {
        rule.close = true; /* numpy's */
        rule.rtol = 1e-5;
        rule.atol = 1e-8;
    }
    return rc == GD_OK ? compare(call, call->argv[0], second, &rule, err) : rc;
}

const struct command cmd_compare_table[] = {
    {
        .name = "compare",
        .group = "data",
        .usage = "compare TENSOR [TOLERANCE | OTHER] [rtol=X] [atol=X] [-equal-nan] [-n ROWS]\n"
                 "compare A B [--as VIEW] [--map FILE] [--profile cross|strict|numpy]",
        .summary = "How tensors, checkpoints, directories, dumps and runs differ",
        .help =
            "With one tensor: its value against that of the step before. Changes up to TOLERANCE\n"
            "(0 to 1) of the largest change count as none; without one every change counts.\n"
            "With two, or with rtol= or atol=: elements differ when |a - b| > atol + rtol * |b|;\n"
            "two tensors are compared with rtol=1e-5 and atol=1e-8 unless told otherwise. NaN\n"
            "differs from everything, with -equal-nan not from NaN. The elements that differ most\n"
            "are shown, 10 of them unless -n says so. Slices work, and values that were printed\n"
            "($1) can be compared, too.\n"
            "\n"
            "  compare head.bias\n"
            "  compare head.bias 0.1\n"
            "  compare head.bias[:4] rtol=1e-3\n"
            "  compare head.bias[:2] $1\n"
            "  compare $1 $2 rtol=0 atol=1e-6 -n 3\n"
            "\n"
            "A and B may be tensor files (.npy, .npz, .safetensors, .pt, .pth, .ckpt), one tensor "
            "of\n"
            "them (FILE:NAME), directories of such files, dumps, or sessions (@1, @2: a dump, a\n"
            "training that stands). B is the reference. What belongs together is found by the map\n"
            "that --map gives, by name, by the rules between PyTorch and MindSpore, by values, by\n"
            "order and shape; --match name|rules|values|order says where to stop. A verdict "
            "stands\n"
            "before each pair: SAME, PASS (all close), WARN (99.9 % are), FAIL, NONFINITE, SHAPE,\n"
            "MISSING-A, MISSING-B, UNREADABLE. What is close, the types say: --profile cross (the\n"
            "default: frameworks and devices may differ), strict or numpy; rtol= and atol= say\n"
            "otherwise, --tol PATTERN=RTOL,ATOL for names alike. --as troubleshooter, msprobe or\n"
            "allclose shows their columns, computed as they do. Further: --only-differing,\n"
            "--limit N, --sort worst|name|order, --on PATTERN, --step N, --steps OF-A,OF-B,\n"
            "--rank N, --csv FILE. `compare @1 prev` (or @1:prev) is a whole session, or a dump, "
            "with\n"
            "its step before; of a training that is what `set keep-previous` keeps.\n"
            "Of two tensors the elements that differ most are listed, too, unless there is "
            "--limit.\n"
            "When something differs, gradb --batch ends with status 6.\n"
            "\n"
            "`compare loss LOG [LOG]` compares what trainings printed: lines with a number behind\n"
            "\"loss\" (--tag says what else), by step, or epoch and step, where these are "
            "printed;\n"
            "overflows, too. The lines of MindSpore's LossMonitor are read as they are.\n"
            "\n"
            "  compare torch.pth mindspore.ckpt\n"
            "  compare @1 prev --csv step.csv\n"
            "  compare loss gpu.log npu.log rtol=1e-2\n"
            "  compare gpu_dump/ npu_dump/ --as msprobe --csv result.csv\n"
            "  compare @1 reference.safetensors --on fc1 --profile strict\n",
        .args = {ARG_SIDE},
        .flags = 0,
        .run = run_compare,
    },
    {.name = NULL},
};
