// SPDX-License-Identifier: GPL-3.0-or-later
/* The rows of a comparison as a table, as records and as a CSV file. */
#include <math.h>
#include <string.h>

#include "repl/compare/compare_probe.h"
#include "repl/compare/compare_rows.h"
#include "repl/core/command.h"
#include "repl/core/newfile.h"
#include "repl/values/inspect.h"

#define ROWS_FOR_A_PERSON 50
#define MAX_CELLS         32

static const char *format_number(struct command_call *call, double value)
{
    char text[40];

    return inspect_printf(call, "%s", gd_tool_number(value, text, sizeof(text)));
}

static const char *shape_cell(struct command_call *call, bool has, const struct gd_shape *shape)
{
    return has ? inspect_shape(call, shape) : "";
}

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

static const char *const own_titles[] = {
    "verdict",        "a",        "b",       "how",   "step",  "rank",    "type_a",
    "type_b",         "shape_a",  "shape_b", "count", "close", "max_abs", "max_abs_at",
    "mean_abs",       "rel_l2",   "max_rel", "r1k",   "r5k",   "cosine",  "ulp99",
    "same_nonfinite", "mismatch", "rtol",    "atol",  "note"};

#define OWN_CELLS 26

static const char *format_count(struct command_call *call, bool has, int64_t value)
{
    return has ? inspect_printf(call, "%lld", (long long)value) : "";
}

static void own_cells(struct command_call *call, const struct compare_row *row, const char **cell)
{
    bool has = row->has_metrics, far = has_distance(row);
    const char *cells[OWN_CELLS] = {
        gd_verdict_name(row->verdict),
        row->a ? row->a : "",
        row->b ? row->b : "",
        row->how == GD_HOW_NONE ? "" : gd_how_name(row->how),
        format_count(call, row->step >= 0, row->step),
        format_count(call, row->rank >= 0, row->rank),
        row->type_a == GD_STORED_NONE ? "" : gd_stored_name(row->type_a),
        row->type_b == GD_STORED_NONE ? "" : gd_stored_name(row->type_b),
        shape_cell(call, row->has_shape_a, &row->shape_a),
        shape_cell(call, row->has_shape_b, &row->shape_b),
        format_count(call, has, (int64_t)row->count),
        has ? format_number(call, row->close) : "",
        far ? format_number(call, row->max_abs) : "",
        format_count(call, has && row->max_abs_at >= 0, row->max_abs_at),
        far ? format_number(call, row->mean_abs) : "",
        far ? format_number(call, row->rel_l2) : "",
        far ? format_number(call, row->max_rel) : "",
        far ? format_number(call, row->r1k) : "",
        far ? format_number(call, row->r5k) : "",
        far ? format_number(call, row->cosine) : "",
        has && !isnan(row->ulp99) ? format_number(call, row->ulp99) : "",
        format_count(call, has, (int64_t)row->same_nonfinite),
        format_count(call, has, (int64_t)row->mismatch),
        has ? format_number(call, row->tolerance.rtol) : "",
        has ? format_number(call, row->tolerance.atol) : "",
        row->note,
    };

    memcpy(cell, cells, sizeof(cells));
}

static double relative_norm(const struct gd_stats *stats)
{
    return sqrt(stats->sum_sq);
}

const char *compare_list_shape(struct command_call *call, const struct gd_shape *shape)
{
    const char *text = "[";

    for (int i = 0; i < shape->rank; i++) {
        text = inspect_printf(call, "%s%s%lld", text, i ? ", " : "", (long long)shape->dim[i]);
    }
    return inspect_printf(call, "%s]", text);
}

struct columns {
    const char *title[MAX_CELLS];
    int count;
};

static void columns_of(const struct compare_rows *rows, const struct rows_shown *how,
                       struct columns *ret)
{
    const char *const *view;
    int more;

    ret->count = 0;
    if (how->view == GD_TOOL_OWN) {
        ret->count = OWN_CELLS;
        memcpy(ret->title, own_titles, sizeof(own_titles));
        return;
    }
    if (how->view == GD_TOOL_MSPROBE) {
        ret->count = compare_probe_titles(rows->probe_mode, ret->title);
        return;
    }
    view = gd_tool_columns(how->view, &more);
    ret->title[ret->count++] = "orig array name";
    ret->title[ret->count++] = "target array name";
    if (how->shapes) {
        ret->title[ret->count++] = "shape of orig";
        ret->title[ret->count++] = "shape of target";
    }
    for (int i = 0; i < more; i++) {
        ret->title[ret->count++] = view[i];
    }
}

static void cells_of(struct command_call *call, const struct compare_rows *rows,
                     const struct rows_shown *how, const struct compare_row *row, const char **cell)
{
    int count = 0, more;

    if (how->view == GD_TOOL_OWN) {
        own_cells(call, row, cell);
        return;
    }
    if (how->view == GD_TOOL_MSPROBE) {
        compare_probe_cells(rows->probe_mode, row->probe, cell);
        return;
    }
    gd_tool_columns(how->view, &more);
    cell[count++] = row->a ? row->a : "None";
    cell[count++] = row->b ? row->b : "None";
    if (how->shapes) {
        cell[count++] = row->has_shape_a ? inspect_shape(call, &row->shape_a) : "None";
        cell[count++] = row->has_shape_b ? inspect_shape(call, &row->shape_b) : "None";
    }
    for (int i = 0; i < more; i++) {
        cell[count++] = row->view->cell[i];
    }
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

static void show_own(struct command_call *call, const struct compare_rows *rows,
                     const struct rows_shown *how, bool only, size_t limit)
{
    static const struct out_column columns[] = {
        {"verdict", "Verdict", false}, {"pair", "Tensor", false},
        {"type", "Type", false},       {"shape", "Shape", false},
        {"close", "Close", true},      {"max_abs", "Max |a-b|", true},
        {"rel_l2", "Rel L2", true},    {"cosine", "Cosine", true},
        {"how", "By", false},          {"note", "", false}};
    struct out_table *table = out_table_begin(call->out, "pairs", columns, 10);

    for (size_t i = 0; i < rows->count && limit > 0; i++) {
        const struct compare_row *row = &rows->row[i];
        bool has = row->has_metrics, far = has_distance(row);

        if (only && !is_different(how, row)) {
            continue;
        }
        limit--;
        const char *cells[] = {gd_verdict_name(row->verdict),
                               pair_cell(call, row),
                               type_cell(call, row),
                               row->has_shape_b ? inspect_shape(call, &row->shape_b)
                                                : shape_cell(call, row->has_shape_a, &row->shape_a),
                               has && row->count > 0 ? close_cell(call, row) : "-",
                               far ? inspect_double(call, row->max_abs) : "-",
                               far ? inspect_double(call, row->rel_l2) : "-",
                               far ? inspect_double(call, row->cosine) : "-",
                               gd_how_name(row->how),
                               note_cell(call, row)};
        out_table_row(table, cells);
    }
    out_table_end(table);
}

static void show_view(struct command_call *call, const struct compare_rows *rows,
                      const struct rows_shown *how, bool only, size_t limit)
{
    struct columns columns;
    struct out_column column[16] = {{NULL, NULL, false}};
    struct out_table *table;

    columns_of(rows, how, &columns);
    for (int i = 0; i < columns.count && i < 16; i++) {
        column[i] = (struct out_column){columns.title[i], columns.title[i], false};
    }
    table = out_table_begin(call->out, "pairs", column, columns.count);
    for (size_t i = 0; i < rows->count && limit > 0; i++) {
        const char *cell[MAX_CELLS];

        if (only && !is_different(how, &rows->row[i])) {
            continue;
        }
        limit--;
        cells_of(call, rows, how, &rows->row[i], cell);
        for (int j = 0; j < columns.count; j++) {
            cell[j] = inspect_name(call, cell[j]);
        }
        out_table_row(table, cell);
    }
    out_table_end(table);
}

/* A table has at most 16 columns: msprobe's are printed one below the other. */
static void show_lists(struct command_call *call, const struct compare_rows *rows,
                       const struct rows_shown *how, bool only, size_t limit)
{
    struct columns columns;

    columns_of(rows, how, &columns);
    for (size_t i = 0; i < rows->count && limit > 0; i++) {
        const char *cell[MAX_CELLS];

        if (only && !is_different(how, &rows->row[i])) {
            continue;
        }
        limit--;
        cells_of(call, rows, how, &rows->row[i], cell);
        for (int j = 0; j < columns.count; j++) {
            out_printf(call->out, "%-27s %s\n", columns.title[j], inspect_name(call, cell[j]));
        }
        out_printf(call->out, "\n");
    }
}

static void add_stats_record(cJSON *record, const char *key, const struct gd_stats *stats)
{
    cJSON *object = out_object(record, key);

    out_set(object, OUT_REAL("min", stats->min), OUT_REAL("max", stats->max),
            OUT_REAL("mean", stats->mean), OUT_REAL("l2", relative_norm(stats)),
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

static void add_row_record(cJSON *list, const struct compare_row *row)
{
    cJSON *object = out_push(list);

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

static void add_view_record(struct command_call *call, cJSON *list, const struct compare_rows *rows,
                            const struct rows_shown *how, const struct compare_row *row)
{
    cJSON *object = out_push(list);
    const char *cell[MAX_CELLS];
    struct columns columns;

    columns_of(rows, how, &columns);
    cells_of(call, rows, how, row, cell);
    for (int i = 0; i < columns.count; i++) {
        out_set(object, OUT_TEXT(columns.title[i], cell[i]));
    }
}

static void add_records(struct command_call *call, const struct compare_rows *rows,
                        const struct rows_shown *how, size_t limit)
{
    cJSON *object = out_record(call->out, "compare"), *list, *summary;

    out_set(object, OUT_TEXT("a", how->label_a), OUT_TEXT("b", how->label_b),
            OUT_BOOL("differ", compare_rows_differ(rows)),
            OUT_INT("compared", compare_rows_compared(rows)),
            OUT_INT("not_compared", compare_rows_not_compared(rows)),
            OUT_INT("alone_by_nature", rows->not_counted), OUT_INT("not_held", rows->not_held),
            OUT_INT("of_other_steps", rows->old), OUT_INT("steps", how->steps),
            OUT_INT("steps_left_out", how->steps_left_out));
    summary = out_object(object, "summary");
    for (int i = 0; i < GD_V_COUNT; i++) {
        out_set(summary, OUT_IF(rows->verdicts[i],
                                OUT_INT(gd_verdict_name((enum gd_agreement)i), rows->verdicts[i])));
    }
    list = out_list(object, "pairs");
    for (size_t i = 0; i < rows->count && limit > 0; i++) {
        if (how->only_differing && !is_different(how, &rows->row[i])) {
            continue;
        }
        limit--;
        if (how->view == GD_TOOL_OWN) {
            add_row_record(list, &rows->row[i]);
        } else {
            add_view_record(call, list, rows, how, &rows->row[i]);
        }
    }
}

void compare_rows_show(struct command_call *call, const struct compare_rows *rows,
                       const struct rows_shown *how)
{
    bool only = how->only_differing;
    size_t limit = how->limit > 0 ? (size_t)how->limit : SIZE_MAX, all;

    if (out_is_json(call->out)) {
        add_records(call, rows, how, limit);
        return;
    }
    if (how->limit < 0) {
        limit = ROWS_FOR_A_PERSON;
        only = only || rows->count > limit;
    }
    all = shown_of(rows, how, only);
    if (all > 0) {
        (how->view == GD_TOOL_OWN       ? show_own
         : how->view == GD_TOOL_MSPROBE ? show_lists
                                        : show_view)(call, rows, how, only, limit);
    }
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

static void csv_cell(FILE *file, const char *cell)
{
    /* Quotes what a spreadsheet would take for a formula. */
    bool formula = cell[0] && strchr("=+@\t\r", cell[0]);
    bool quote = strpbrk(cell, ",\"\r\n") || formula;

    if (!quote) {
        fputs(cell, file);
        return;
    }
    fputc('"', file);
    if (formula) {
        fputc('\'', file);
    }
    for (; *cell; cell++) {
        if (*cell == '"') {
            fputc('"', file);
        }
        fputc(*cell, file);
    }
    fputc('"', file);
}

int compare_rows_csv(struct command_call *call, const struct compare_rows *rows,
                     const struct rows_shown *how, const char *path, struct gd_err *err)
{
    struct newfile file;
    struct columns columns;
    int rc = newfile_open(&file, path, err);

    if (rc != GD_OK) {
        return rc;
    }
    columns_of(rows, how, &columns);
    for (int i = 0; i < columns.count; i++) {
        fputs(i ? "," : "", file.file);
        csv_cell(file.file, columns.title[i]);
    }
    fputc('\n', file.file);
    for (size_t i = 0; i < rows->count; i++) {
        const char *cell[MAX_CELLS];

        if (how->only_differing && !is_different(how, &rows->row[i])) {
            continue;
        }
        cells_of(call, rows, how, &rows->row[i], cell);
        for (int j = 0; j < columns.count; j++) {
            fputs(j ? "," : "", file.file);
            csv_cell(file.file, cell[j]);
        }
        fputc('\n', file.file);
    }
    rc = newfile_close(&file, true, err);
    if (rc == GD_OK) {
        out_printf(call->out, "%s written to %s\n", inspect_plural(call, rows->count, "row"),
                   out_safe(call, path));
    }
    return rc;
}
