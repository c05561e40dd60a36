// SPDX-License-Identifier: GPL-3.0-or-later
/* The rows of a comparison as a table, as records and as a CSV file. */
#include <math.h>
#include <string.h>

#include "repl/compare/compare_probe.h"
#include "repl/compare/compare_rows.h"
#include "repl/core/command.h"
#include "repl/out/newfile.h"
#include "repl/values/inspect.h"

#define ROWS_FOR_A_PERSON 50
#define MAX_CELLS         32
#define LENGTH(array)     ((int)(sizeof(array) / sizeof((array)[0])))

static const char *type_cell(struct command_call *call, const struct compare_row *row)
{
    if (row->type_a == row->type_b || row->type_a == GD_STORED_NONE ||
        row->type_b == GD_STORED_NONE) {
        enum gd_stored type = row->type_b != GD_STORED_NONE ? row->type_b : row->type_a;

        return type == GD_STORED_NONE ? "" : gd_stored_name(type);
    }
    return inspect_printf(call, "%s, %s", gd_stored_name(row->type_a), gd_stored_name(row->type_b));
}

static const char *pair_cell(struct command_call *call, const struct compare_row *row)
{
    const char *name;

    if (!row->a || !row->b || strcmp(row->a, row->b) == 0) {
        name = inspect_name(call, compare_row_name(row));
    } else {
        name =
            inspect_printf(call, "%s = %s", inspect_name(call, row->a), inspect_name(call, row->b));
    }
    return row->step < 0 ? name : inspect_printf(call, "%s, step %lld", name, (long long)row->step);
}

/* Whether any element is finite on both sides; otherwise there is no distance. */
static bool has_distance(const struct compare_row *row)
{
    return row->has_metrics && row->count > row->same_nonfinite + row->mismatch;
}

static bool differs_finitely(const struct gd_difference *d)
{
    return d->has_metrics && d->metrics.count > d->metrics.same_nonfinite + d->metrics.mismatch;
}

void compare_difference_show(struct command_call *call, const struct gd_difference *d)
{
    if (d->has_metrics) {
        out_printf(call->out, ", %.2f%% close (rtol=%g atol=%g)",
                   100 * gd_metrics_close(&d->metrics), d->tolerance.rtol, d->tolerance.atol);
    }
    if (differs_finitely(d)) {
        out_printf(call->out, ", max |a-b| %s, relative l2 %s",
                   inspect_double(call, d->metrics.max_abs),
                   inspect_double(call, d->metrics.rel_l2));
    }
    out_printf(call->out, "%s%s\n", d->note[0] ? "; " : "", out_safe(call, d->note));
}

void compare_difference_add(cJSON *object, const struct gd_difference *d)
{
    out_set(object, OUT_IF(d->has_metrics, OUT_REAL("close", gd_metrics_close(&d->metrics))));
    if (differs_finitely(d)) {
        out_set(object, OUT_REAL("max_abs", d->metrics.max_abs),
                OUT_REAL("rel_l2", d->metrics.rel_l2));
    }
}

static const char *close_cell(struct command_call *call, const struct compare_row *row)
{
    /* only all elements are 100 % */
    double percent = 100 * row->close;

    return percent < 100 && percent > 99.99 ? "99.99+%" : inspect_printf(call, "%.2f%%", percent);
}

/* The columns of a CSV file. */
static const struct out_column csv_columns[] = {
    {"verdict", "verdict"},
    {"a", "a"},
    {"b", "b"},
    {"how", "how"},
    {"step", "step"},
    {"rank", "rank"},
    {"stored_a", "type_a"},
    {"stored_b", "type_b"},
    {"shape_a", "shape_a", false, ":shape"},
    {"shape_b", "shape_b", false, ":shape"},
    {"count", "count"},
    {"close", "close", false, ":repr"},
    {"max_abs", "max_abs", false, ":repr"},
    {"max_abs_at", "max_abs_at"},
    {"mean_abs", "mean_abs", false, ":repr"},
    {"rel_l2", "rel_l2", false, ":repr"},
    {"max_rel", "max_rel", false, ":repr"},
    {"r1k", "r1k", false, ":repr"},
    {"r5k", "r5k", false, ":repr"},
    {"cosine", "cosine", false, ":repr"},
    {"ulp99", "ulp99", false, ":repr"},
    {"same_nonfinite", "same_nonfinite"},
    {"mismatch", "mismatch"},
    {"rtol", "rtol", false, ":repr"},
    {"atol", "atol", false, ":repr"},
    {"note", "note"},
};

/* For a person. */
static const struct out_column text_columns[] = {
    {"verdict", "Verdict"},
    {"pair", "Tensor"},
    {"types", "Type"},
    {"shape", "Shape"},
    {"percent", "Close", true},
    {"max_abs", "Max |a-b|", true, ":g6"},
    {"rel_l2", "Rel L2", true, ":g6"},
    {"cosine", "Cosine", true, ":g6"},
    {"by", "By"},
    {"remark", ""},
};

const char *compare_list_shape(struct command_call *call, const struct gd_shape *shape)
{
    const char *text = "[";

    for (int i = 0; i < shape->rank; i++) {
        text = inspect_printf(call, "%s%s%lld", text, i ? ", " : "", (long long)shape->dim[i]);
    }
    return inspect_printf(call, "%s]", text);
}

/* In a view of another tool: the titles, and a row's cells unless it is NULL. Returns their
 * number. */
static int columns_of(struct command_call *call, const struct compare_rows *rows,
                      const struct rows_shown *how, const struct compare_row *row,
                      const char **title, const char **cell)
{
    int count = 0, more;

    if (how->view == GD_TOOL_MSPROBE) {
        return compare_probe_columns(rows->probe_mode, row ? row->probe : NULL, title, cell);
    }
    const char *const *view = gd_tool_columns(how->view, &more);
    title[count] = "orig array name";
    cell[count++] = row && row->a ? row->a : "None";
    title[count] = "target array name";
    cell[count++] = row && row->b ? row->b : "None";
    if (how->shapes) {
        title[count] = "shape of orig";
        cell[count++] = row && row->has_shape_a ? inspect_shape(call, &row->shape_a) : "None";
        title[count] = "shape of target";
        cell[count++] = row && row->has_shape_b ? inspect_shape(call, &row->shape_b) : "None";
    }
    for (int i = 0; i < more; i++) {
        title[count] = view[i];
        cell[count++] = row ? row->view->cell[i] : "";
    }
    return count;
}

static bool is_different(const struct rows_shown *how, const struct compare_row *row)
{
    if (how->view == GD_TOOL_MSPROBE) {
        return !compare_probe_passed(row->probe);
    }
    if (how->view != GD_TOOL_OWN) {
        return !row->view->passed;
    }
    return gd_verdict_is_bad(row->verdict) || compare_row_is_missing(row->verdict) ||
           row->verdict == GD_V_WARN;
}

static size_t shown_of(const struct compare_rows *rows, const struct rows_shown *how, bool only)
{
    size_t count = 0;

    for (size_t i = 0; i < rows->count; i++) {
        count += !only || is_different(how, &rows->row[i]);
    }
    return count;
}

static const char *note_cell(struct command_call *call, const struct compare_row *row)
{
    const char *note = row->note[0] ? inspect_name(call, row->note) : "";

    if (row->has_shape_a && row->has_shape_b && row->verdict == GD_V_SHAPE) {
        note =
            inspect_printf(call, "%s%s%s against %s", note, note[0] ? "; " : "",
                           inspect_shape(call, &row->shape_a), inspect_shape(call, &row->shape_b));
    }
    if (row->mismatch) {
        note = inspect_printf(call, "%s%s%s not finite on one side", note, note[0] ? "; " : "",
                              inspect_plural(call, row->mismatch, "element"));
    } else if (row->same_nonfinite) {
        note = inspect_printf(call, "%s%snf: %s alike", note, note[0] ? "; " : "",
                              inspect_number(call, row->same_nonfinite));
    }
    return note;
}

static void add_stats_record(cJSON *record, const char *key, const struct gd_stats *stats)
{
    cJSON *object = out_object(record, key);

    out_set(object, OUT_REAL("min", stats->min), OUT_REAL("max", stats->max),
            OUT_REAL("mean", stats->mean), OUT_REAL("l2", sqrt(stats->sum_sq)),
            OUT_INT("nan", stats->nan), OUT_INT("pos_inf", stats->pos_inf),
            OUT_INT("neg_inf", stats->neg_inf), OUT_INT("zero", stats->zero));
}

static void add_distance_record(cJSON *object, const struct compare_row *row)
{
    out_set(object, OUT_REAL("max_abs", row->max_abs),
            OUT_IF(row->max_abs_at >= 0, OUT_INT("max_abs_at", row->max_abs_at)),
            OUT_REAL("mean_abs", row->mean_abs), OUT_REAL("rel_l2", row->rel_l2),
            OUT_REAL("max_rel", row->max_rel), OUT_REAL("r1k", row->r1k), OUT_REAL("r5k", row->r5k),
            OUT_REAL("cosine", row->cosine));
}

static void add_metrics_record(cJSON *object, const struct compare_row *row)
{
    out_set(object, OUT_INT("count", row->count), OUT_REAL("close", row->close));
    if (has_distance(row)) {
        add_distance_record(object, row);
    }
    out_set(object, OUT_IF(!isnan(row->ulp99), OUT_REAL("ulp99", row->ulp99)),
            OUT_INT("same_nonfinite", row->same_nonfinite), OUT_INT("mismatch", row->mismatch),
            OUT_REAL("rtol", row->tolerance.rtol), OUT_REAL("atol", row->tolerance.atol));
    add_stats_record(object, "stats_a", &row->stats_a);
    add_stats_record(object, "stats_b", &row->stats_b);
}

static void add_row_record(cJSON *object, const struct compare_row *row)
{
    out_set(object, OUT_TEXT("verdict", gd_verdict_name(row->verdict)),
            OUT_IF(row->a, OUT_TEXT("a", row->a)), OUT_IF(row->b, OUT_TEXT("b", row->b)));
    if (row->how != GD_HOW_NONE) {
        out_set(object, OUT_TEXT("how", gd_how_name(row->how)),
                OUT_REAL("confidence", gd_how_confidence(row->how)));
    }
    out_set(object, OUT_IF(row->step >= 0, OUT_INT("step", row->step)),
            OUT_IF(row->rank >= 0, OUT_INT("rank", row->rank)));
    if (row->has_shape_a) {
        out_set(object, OUT_TEXT("type_a", gd_stored_name(row->type_a)),
                OUT_JSON("shape_a", inspect_shape_json(&row->shape_a)));
    }
    if (row->has_shape_b) {
        out_set(object, OUT_TEXT("type_b", gd_stored_name(row->type_b)),
                OUT_JSON("shape_b", inspect_shape_json(&row->shape_b)));
    }
    if (row->has_metrics) {
        add_metrics_record(object, row);
    }
    out_set(object, OUT_SOME("note", row->note));
}

static void put_text(struct command_call *call, struct out_table *table,
                     const struct compare_row *row)
{
    bool has = row->has_metrics && row->count > 0, near = !has_distance(row);
    const struct gd_shape *shape = row->has_shape_b   ? &row->shape_b
                                   : row->has_shape_a ? &row->shape_a
                                                      : NULL;

    out_put_text(table, OUT_TEXT("pair", pair_cell(call, row)),
                 OUT_TEXT("types", type_cell(call, row)),
                 OUT_IF(shape, OUT_TEXT("shape", inspect_shape(call, shape))),
                 OUT_TEXT("percent", has ? close_cell(call, row) : "-"),
                 OUT_IF(near, OUT_TEXT("max_abs", "-")), OUT_IF(near, OUT_TEXT("rel_l2", "-")),
                 OUT_IF(near, OUT_TEXT("cosine", "-")), OUT_TEXT("by", gd_how_name(row->how)),
                 OUT_TEXT("remark", note_cell(call, row)));
}

/* Without a table, a view of another tool is printed as a list. */
static void put_view(struct command_call *call, const struct compare_rows *rows,
                     const struct rows_shown *how, const struct compare_row *row,
                     struct out_table *table)
{
    const char *title[MAX_CELLS], *cell[MAX_CELLS];
    int count = columns_of(call, rows, how, row, title, cell);
    cJSON *object = out_row(table);

    for (int i = 0; i < count && table; i++) {
        out_set(object, OUT_TEXT(title[i], cell[i]));
    }
    for (int i = 0; i < count && !table; i++) {
        out_say(call->out, NULL, "{title:-27} {cell}\n", OUT_TEXT("title", title[i]),
                OUT_TEXT("cell", cell[i]));
    }
    out_printf(call->out, table ? "" : "\n");
}

enum form { FORM_TEXT, FORM_JSON, FORM_CSV };

static void put_rows(struct command_call *call, const struct compare_rows *rows,
                     const struct rows_shown *how, struct out_table *table, enum form form,
                     bool only, size_t limit)
{
    for (size_t i = 0; i < rows->count && limit > 0; i++) {
        const struct compare_row *row = &rows->row[i];

        if (only && !is_different(how, row)) {
            continue;
        }
        limit--;
        if (how->view != GD_TOOL_OWN) {
            put_view(call, rows, how, row, table);
            continue;
        }
        add_row_record(out_row(table), row);
        if (form == FORM_TEXT) {
            put_text(call, table, row);
        } else if (form == FORM_CSV) {
            out_put_text(table,
                         OUT_IF(row->type_a, OUT_TEXT("stored_a", gd_stored_name(row->type_a))),
                         OUT_IF(row->type_b, OUT_TEXT("stored_b", gd_stored_name(row->type_b))));
        }
    }
    out_table_end(table);
}

static struct out_table *begin_table(struct command_call *call, const struct compare_rows *rows,
                                     const struct rows_shown *how, FILE *csv)
{
    struct out_column columns[MAX_CELLS] = {{NULL}};
    const char *title[MAX_CELLS], *cell[MAX_CELLS];

    if (how->view == GD_TOOL_OWN) {
        return csv ? out_table_csv(call->out, csv, csv_columns, LENGTH(csv_columns))
                   : out_table_begin(call->out, "pairs", text_columns, LENGTH(text_columns));
    }
    int count = columns_of(call, rows, how, NULL, title, cell);
    for (int i = 0; i < count; i++) {
        columns[i] = (struct out_column){title[i], title[i]};
    }
    return csv ? out_table_csv(call->out, csv, columns, count)
               : out_table_begin(call->out, "pairs", columns, count);
}

static void add_record(struct command_call *call, const struct compare_rows *rows,
                       const struct rows_shown *how)
{
    cJSON *record = out_record(call->out, "compare"), *summary;

    out_set(record, OUT_TEXT("a", how->label_a), OUT_TEXT("b", how->label_b),
            OUT_BOOL("differ", compare_rows_differ(rows)),
            OUT_INT("compared", compare_rows_compared(rows)),
            OUT_INT("not_compared", compare_rows_not_compared(rows)),
            OUT_INT("alone_by_nature", rows->not_counted), OUT_INT("not_held", rows->not_held),
            OUT_INT("of_other_steps", rows->old), OUT_INT("steps", how->steps),
            OUT_INT("steps_left_out", how->steps_left_out));
    summary = out_object(record, "summary");
    for (int i = 0; i < GD_V_COUNT; i++) {
        out_set(summary, OUT_IF(rows->verdicts[i],
                                OUT_INT(gd_verdict_name((enum gd_agreement)i), rows->verdicts[i])));
    }
}

void compare_rows_show(struct command_call *call, const struct compare_rows *rows,
                       const struct rows_shown *how)
{
    bool only = how->only_differing;
    size_t limit = how->limit > 0 ? (size_t)how->limit : SIZE_MAX, all;

    if (out_is_json(call->out)) {
        add_record(call, rows, how);
        put_rows(call, rows, how, begin_table(call, rows, how, NULL), FORM_JSON, only, limit);
        return;
    }
    if (how->limit < 0) {
        limit = ROWS_FOR_A_PERSON;
        only = only || rows->count > limit;
    }
    all = shown_of(rows, how, only);
    /* msprobe's columns are too many for a line */
    put_rows(call, rows, how,
             how->view == GD_TOOL_MSPROBE ? NULL : begin_table(call, rows, how, NULL), FORM_TEXT,
             only, limit);
    if (all > limit) {
        out_printf(call->out, "and %zu more: --limit 0 shows all, --csv FILE writes them\n",
                   all - limit);
    }
    if (only && all < rows->count) {
        out_printf(call->out, "%zu equal pairs not shown\n", rows->count - all);
    }
    out_printf(call->out, "%s: %s", inspect_plural(call, rows->count, "pair"),
               compare_rows_summary(call, rows));
    if (compare_rows_not_compared(rows) > 0) {
        out_printf(call->out, "; %zu compared, %zu not", compare_rows_compared(rows),
                   compare_rows_not_compared(rows));
    }
    if (how->steps_left_out > 0) {
        out_printf(call->out, "; %s compared, %zu on one side only",
                   inspect_plural(call, how->steps, "step"), how->steps_left_out);
    }
    out_printf(call->out, "\n");
}

int compare_rows_csv(struct command_call *call, const struct compare_rows *rows,
                     const struct rows_shown *how, const char *path, struct gd_err *err)
{
    struct newfile file;
    int rc = newfile_open(&file, path, false, err);

    if (rc != GD_OK) {
        return rc;
    }
    struct out_table *table = begin_table(call, rows, how, file.file);
    if (!table) {
        newfile_close(&file, false, NULL);
        return gd_fail_nomem(err);
    }
    put_rows(call, rows, how, table, FORM_CSV, how->only_differing, SIZE_MAX);
    rc = newfile_close(&file, true, err);
    if (rc == GD_OK) {
        out_printf(call->out, "%s written to %s\n", inspect_plural(call, rows->count, "row"),
                   out_safe(call, path));
    }
    return rc;
}
