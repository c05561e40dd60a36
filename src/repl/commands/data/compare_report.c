// SPDX-License-Identifier: GPL-3.0-or-later
/* What `compare` shows, as text and as a record. */
#include "repl/commands/data/compare.h"
#include "repl/core/command.h"
#include "repl/values/inspect.h"
#include "repl/values/value.h"

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

static const char *rule_text(struct command_call *call, const struct compare_rule *rule,
                             const struct compare_tally *tally)
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

static void put_figure(const struct compare_sides *sides, struct out_table *table, const char *name,
                       const char *a, const char *b, const char *d)
{
    out_put(table, OUT_TEXT("figure", name), OUT_TEXT(sides->a_key, a), OUT_TEXT(sides->b_key, b),
            OUT_TEXT("difference", d));
}

static const char *finite_cell(struct command_call *call, bool any, double value)
{
    return any ? inspect_double(call, value) : "-";
}

/* Begins a table with a column for a name, for both sides in their order, and for the
 * difference. */
static struct out_table *begin_table(struct command_call *call, const struct compare_sides *sides,
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

/* The same statistics of both sides and of the difference. */
static void print_figures(struct command_call *call, const struct compare_sides *sides,
                          const struct gd_stats *a, const struct gd_stats *b,
                          const struct compare_tally *d)
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
        put_figure(sides, table, values[i].name, finite_cell(call, any_a, values[i].a),
                   finite_cell(call, any_b, values[i].b), finite_cell(call, any_d, values[i].d));
    }
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        put_figure(sides, table, counts[i].name, inspect_number(call, counts[i].a),
                   inspect_number(call, counts[i].b), inspect_number(call, counts[i].d));
    }
    out_table_end(table);
}

static void print_worst(struct command_call *call, const struct compare_sides *sides,
                        const struct compare_differing *worst, size_t count)
{
    struct out_table *table = begin_table(call, sides, "elements", "index", "Element");

    for (size_t i = 0; i < count; i++) {
        out_put(table, OUT_TEXT("index", inspect_index(call, &sides->a->shape, worst[i].at)),
                OUT_TEXT(sides->a_key, element_text(call, sides->a, worst[i].at)),
                OUT_TEXT(sides->b_key, element_text(call, sides->b, worst[i].at)),
                OUT_TEXT("difference", inspect_double(call, worst[i].difference)));
    }
    out_table_end(table);
}

void compare_print(struct command_call *call, const struct compare_sides *sides,
                   const struct compare_rule *rule, const struct compare_tally *tally,
                   const struct compare_differing *worst, size_t worst_count,
                   const struct gd_stats *a, const struct gd_stats *b)
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
                   worst_count == 1 ? "Largest difference:\n" : "The %zu largest differences:\n",
                   worst_count);
    }
    print_worst(call, sides, worst, worst_count);
}

static void add_tally(cJSON *record, const struct compare_tally *d)
{
    cJSON *object = out_object(record, "difference");
    bool any = d->count > d->nan + d->pos_inf + d->neg_inf;

    out_set(object, OUT_INT("count", d->count), OUT_INT("nan", d->nan),
            OUT_INT("pos_inf", d->pos_inf), OUT_INT("neg_inf", d->neg_inf),
            OUT_INT("zero", d->zero), OUT_INT("positive", d->positive),
            OUT_INT("negative", d->negative));
    if (any) {
        out_set(object, OUT_REAL("min", d->min), OUT_REAL("max", d->max),
                OUT_REAL("mean", d->mean));
    }
    out_set(object, OUT_REAL("max_abs", d->max_abs));
}

static void add_side(cJSON *record, const char *key, const char *label, int64_t step,
                     const struct gd_stats *stats)
{
    cJSON *object = out_object(record, key);

    out_set(object, OUT_TEXT("name", label), OUT_IF(step >= 0, OUT_INT("step", step)),
            OUT_JSON("stats", value_stats_record(stats)));
}

static void add_cells(cJSON *record, const struct compare_sides *sides,
                      const struct compare_differing *worst, size_t count)
{
    cJSON *list = out_list(record, "elements");
    const struct gd_shape *shape = &sides->a->shape;
    size_t item = gd_dtype_size(sides->a->dtype);

    for (size_t i = 0; i < count; i++) {
        cJSON *cell = out_push(list);
        cJSON *index = out_list(cell, "index");
        size_t at = (size_t)worst[i].at * item;
        int64_t flat = worst[i].at;

        for (int axis = shape->rank - 1; axis >= 0; axis--) {
            cJSON_InsertItemInArray(index, 0,
                                    cJSON_CreateNumber((double)(flat % shape->dim[axis])));
            flat /= shape->dim[axis];
        }
        out_set(cell,
                OUT_JSON(sides->b_key, value_element_record(sides->a->dtype, sides->b->data + at)),
                OUT_JSON(sides->a_key, value_element_record(sides->a->dtype, sides->a->data + at)),
                OUT_REAL("difference", worst[i].difference));
    }
}

void compare_record(struct command_call *call, const struct compare_sides *sides,
                    const struct compare_rule *rule, const struct compare_tally *tally,
                    const struct compare_differing *worst, size_t worst_count,
                    const struct gd_stats *a, const struct gd_stats *b)
{
    cJSON *record = out_record(call->out, "comparison");

    out_set(record, OUT_TEXT("dtype", gd_dtype_name(sides->a->dtype)),
            OUT_JSON("shape", inspect_shape_json(&sides->a->shape)));
    if (rule->close) {
        out_set(record, OUT_REAL("rtol", rule->rtol), OUT_REAL("atol", rule->atol),
                OUT_BOOL("equal_nan", rule->equal_nan));
    } else {
        out_set(record, OUT_REAL("tolerance", rule->tolerance), OUT_REAL("bound", tally->bound));
    }
    out_set(record, OUT_INT("count", tally->count), OUT_INT("differ", tally->changed));
    add_side(record, sides->a_key, sides->a_label, sides->a_step, a);
    add_side(record, sides->b_key, sides->b_label, sides->b_step, b);
    add_tally(record, tally);
    add_cells(record, sides, worst, worst_count);
}
