// SPDX-License-Identifier: GPL-3.0-or-later
/* What `compare` shows, as text and as a record. */
#include "repl/commands/data/compare.h"
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

static const char *finite_cell(struct command_call *call, bool any, double value)
{
    return any ? inspect_double(call, value) : "-";
}

/* Begins a table with a name, both sides in their order, and the difference. */
static struct out_table *begin_table(struct command_call *call, const struct compare_sides *sides,
                                     const char *record, struct out_column name)
{
    struct out_column a = {"a", sides->a_title, true}, b = {"b", sides->b_title, true};
    struct out_column columns[] = {name,
                                   sides->a_first ? a : b,
                                   sides->a_first ? b : a,
                                   {"difference", "Difference", true, ":g6"}};

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
    struct out_table *table =
        begin_table(call, sides, NULL, (struct out_column){"name", "", false});
    bool any_a = a->count > a->nan + a->pos_inf + a->neg_inf;
    bool any_b = b->count > b->nan + b->pos_inf + b->neg_inf;
    bool any_d = d->count > d->nan + d->pos_inf + d->neg_inf;

    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        out_put(table, OUT_TEXT("name", values[i].name),
                OUT_TEXT("a", finite_cell(call, any_a, values[i].a)),
                OUT_TEXT("b", finite_cell(call, any_b, values[i].b)),
                OUT_TEXT("difference", finite_cell(call, any_d, values[i].d)));
    }
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        out_put(table, OUT_TEXT("name", counts[i].name),
                OUT_TEXT("a", inspect_number(call, counts[i].a)),
                OUT_TEXT("b", inspect_number(call, counts[i].b)),
                OUT_TEXT("difference", inspect_number(call, counts[i].d)));
    }
    out_table_end(table);
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

static cJSON *index_record(const struct gd_shape *shape, int64_t flat)
{
    cJSON *index = cJSON_CreateArray();

    for (int axis = shape->rank - 1; axis >= 0; axis--) {
        cJSON_InsertItemInArray(index, 0, cJSON_CreateNumber((double)(flat % shape->dim[axis])));
        flat /= shape->dim[axis];
    }
    return index;
}

static void show_worst(struct command_call *call, const struct compare_sides *sides,
                       const struct compare_differing *worst, size_t count)
{
    struct out_column index = {"index", "Element", false, "\\[{index}\\]"};
    struct out_table *table = begin_table(call, sides, "elements", index);
    enum gd_dtype dtype = sides->a->dtype;

    for (size_t i = 0; i < count; i++) {
        size_t at = (size_t)worst[i].at * gd_dtype_size(dtype);

        out_put(table, OUT_JSON("index", index_record(&sides->a->shape, worst[i].at)),
                OUT_JSON(sides->b_key, value_element_record(dtype, sides->b->data + at)),
                OUT_JSON(sides->a_key, value_element_record(dtype, sides->a->data + at)),
                OUT_REAL("difference", worst[i].difference));
        out_put_text(table, OUT_TEXT("a", element_text(call, sides->a, worst[i].at)),
                     OUT_TEXT("b", element_text(call, sides->b, worst[i].at)));
    }
    out_table_end(table);
}

void compare_show(struct command_call *call, const struct compare_sides *sides,
                  const struct compare_rule *rule, const struct compare_tally *tally,
                  const struct compare_differing *worst, size_t worst_count,
                  const struct gd_stats *a, const struct gd_stats *b)
{
    cJSON *record = out_record(call->out, "comparison");

    out_set(record, OUT_TEXT("dtype", gd_dtype_name(sides->a->dtype)),
            OUT_JSON("shape", inspect_shape_json(&sides->a->shape)),
            OUT_IF(rule->close, OUT_REAL("rtol", rule->rtol)),
            OUT_IF(rule->close, OUT_REAL("atol", rule->atol)),
            OUT_IF(rule->close, OUT_BOOL("equal_nan", rule->equal_nan)),
            OUT_IF(!rule->close, OUT_REAL("tolerance", rule->tolerance)),
            OUT_IF(!rule->close, OUT_REAL("bound", tally->bound)), OUT_INT("count", tally->count),
            OUT_INT("differ", tally->changed));
    add_side(record, sides->a_key, sides->a_label, sides->a_step, a);
    add_side(record, sides->b_key, sides->b_label, sides->b_step, b);
    add_tally(record, tally);
    out_say(call->out, record,
            "{a} against {b}, {dtype} {shape:shape}\n"
            "{differ:n} of {count:n} elements differ; {rule}\n",
            OUT_TEXT("a", step_text(call, sides->a_label, sides->a_step)),
            OUT_TEXT("b",
                     step_text(call, sides->a_first ? sides->b_label : "the value", sides->b_step)),
            OUT_TEXT("rule", rule_text(call, rule, tally)));
    if (!rule->close && out_is_text(call->out)) {
        print_figures(call, sides, a, b, tally);
    }
    if (worst_count > 0 && tally->changed > worst_count) {
        out_printf(call->out,
                   worst_count == 1 ? "Largest difference:\n" : "The %zu largest differences:\n",
                   worst_count);
    }
    show_worst(call, sides, worst, worst_count);
}