// SPDX-License-Identifier: GPL-3.0-or-later
#include "dump/trace/profile_tables.h"

#include <ctype.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/grow.h"
#include "dump/io/csv.h"
#include "dump/io/file_name.h"

/* ---- rows ------------------------------------------------------------------------------------ */

struct profile_row {
    char *const *column; /* names */
    const char *const *cell;
    size_t columns, cells;
};

const char *profile_cell(const struct profile_row *row, const char *column)
{
    for (size_t i = 0; i < row->columns && i < row->cells; i++) {
        if (strcasecmp(row->column[i], column) == 0) {
            return row->cell[i] + strspn(row->cell[i], " \t");
        }
    }
    return "";
}

const char *profile_cell_at(const struct profile_row *row, size_t column)
{
    return column < row->cells ? row->cell[column] + strspn(row->cell[column], " \t") : "";
}

const char *profile_column(const struct profile_row *row, size_t column)
{
    return column < row->columns ? row->column[column] : "";
}

double profile_seconds(const struct profile_row *row, const char *column)
{
    const char *text = profile_cell(row, column);
    char *end;
    double value = strtod(text, &end) / 1e6;

    return end == text || !(value >= 0 && value < 1e12) ? -1 : value;
}

static int read_rows(struct profile *profile, struct gd_csv *csv, profile_row_fn fn, void *ctx,
                     struct gd_err *err)
{
    char *names[GD_CSV_MAX_FIELDS] = {NULL};
    struct profile_row row = {.column = names};
    int rc = gd_csv_next(csv, &row.cell, &row.columns, err);

    for (size_t i = 0; rc == GD_OK && i < row.columns; i++) {
        const char *name = row.cell[i];
        name += strncmp(name, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
        names[i] = strdup(name + strspn(name, " \t"));
        rc = names[i] ? GD_OK : gd_fail_nomem(err);
    }
    while (rc == GD_OK && (rc = gd_csv_next(csv, &row.cell, &row.cells, err)) == GD_OK &&
           row.cells > 0) {
        rc = fn(profile, &row, ctx, err);
    }
    for (size_t i = 0; i < row.columns; i++) {
        free(names[i]);
    }
    return rc;
}

int profile_each_row(struct profile *profile, uint32_t directory, const char *name,
                     profile_row_fn fn, void *ctx, struct gd_err *err)
{
    GD_CLEANUP(gd_cleanup_disk) struct gd_disk *disk = NULL;
    struct gd_csv csv = {.disk = NULL};
    uint32_t entry = directory == GD_NO_ENTRY ? GD_NO_ENTRY
                                              : gd_listing_child(profile->listing, directory, name);
    char path[PATH_MAX];
    int rc;

    if (entry == GD_NO_ENTRY) {
        return GD_OK;
    }
    rc = gd_listing_path(profile->listing, entry, path, sizeof(path), err);
    rc = rc != GD_OK ? rc : gd_disk_open(AT_FDCWD, path, false, &disk, err);
    if (rc != GD_OK) {
        return rc;
    }
    csv.disk = disk;
    rc = read_rows(profile, &csv, fn, ctx, err);
    gd_csv_deinit(&csv);
    return rc;
}

int64_t profile_number_in(const char *name, const char *before, const char *after)
{
    char *end;
    long number;

    if (!gd_starts_with(name, before) || !isdigit((unsigned char)name[strlen(before)])) {
        return -1;
    }
    number = strtol(name + strlen(before), &end, 10);
    return strcmp(end, after) == 0 && number >= 0 && number < 1000000 ? number : -1;
}

int64_t profile_number_of(const struct gd_listing *listing, uint32_t directory, const char *before,
                          const char *after)
{
    int64_t number = -1;

    if (directory == GD_NO_ENTRY) {
        return -1;
    }
    for (uint32_t i = listing->entry[directory].first_child; number < 0 && i != GD_NO_ENTRY;
         i = listing->entry[i].next) {
        number = profile_number_in(listing->entry[i].name, before, after);
    }
    return number;
}

static void rank_name(const struct profile *profile, const char *before, const char *after,
                      char *out, size_t size)
{
    snprintf(out, size, "%s%lld%s", before, (long long)profile->rank, after);
}

uint32_t profile_rank_file(const struct profile *profile, const char *before, const char *after)
{
    char name[128];

    rank_name(profile, before, after, name, sizeof(name));
    return gd_listing_child(profile->listing, profile->entry, name);
}

int profile_each_rank_row(struct profile *profile, const char *before, const char *after,
                          profile_row_fn fn, void *ctx, struct gd_err *err)
{
    char name[128];

    rank_name(profile, before, after, name, sizeof(name));
    return profile_each_row(profile, profile->entry, name, fn, ctx, err);
}

/* ---- kernels --------------------------------------------------------------------------------- */

/* "1,512;4096" or with quotes inside, as "[[1,512],[4096]]"; of types "FLOAT16;INT32" in the same
 * way. */
static void put_list(struct gd_buf *out, const char *text, bool types)
{
    const char *open = types ? "\"" : "[", *close = types ? "\"" : "]";

    if (!*text || strcmp(text, "N/A") == 0) {
        return;
    }
    gd_buf_printf(out, "[%s", open);
    for (; *text && out->len < TRACE_MAX_ARGS; text++) {
        if (*text == ';') {
            gd_buf_printf(out, "%s,%s", close, open);
        } else if (*text != '"' && *text != '\x1f' && *text != ' ') {
            gd_buf_putc(out, *text);
        }
    }
    gd_buf_printf(out, "%s]", close);
}

static int put_args(struct trace_spans *spans, const struct profile_row *row, uint32_t *ret,
                    struct gd_err *err)
{
    struct gd_buf *out = &spans->scratch;

    out->max = SIZE_MAX;
    gd_buf_clear(out);
    put_list(out, profile_cell(row, "Input Shapes"), false);
    gd_buf_putc(out, '\x1f');
    put_list(out, profile_cell(row, "Input Data Types"), true);
    gd_buf_puts(out, "\x1f\x1f\x1f");
    gd_buf_printf(out, "%.256s", profile_cell(row, "Type"));
    return out->failed ? gd_fail_nomem(err)
                       : trace_text(spans, gd_buf_text(out), out->len, ret, err);
}

/* The step of a kernel, which lasts from the first to the last of its kernels. */
static int note_step(struct trace_run *run, const char *number, int64_t start, int64_t end,
                     struct gd_err *err)
{
    uint64_t value;
    struct trace_step *step;

    if (!gd_json_unsigned(number, &value) || value >= (UINT64_C(1) << 62)) {
        return GD_OK;
    }
    for (size_t i = run->steps; i-- > 0 && run->steps - i <= 16;) {
        step = &run->step[i];
        if (step->number == (int64_t)value) {
            step->start = start < step->start ? start : step->start;
            step->end = end > step->end ? end : step->end;
            return GD_OK;
        }
    }
    if (!gd_grow_list(&run->step, run->steps, &run->step_cap, sizeof(*run->step))) {
        return gd_fail_nomem(err);
    }
    run->step[run->steps++] = (struct trace_step){(int64_t)value, start, end};
    return GD_OK;
}

static int take_kernel(struct profile *profile, const struct profile_row *row, void *ctx,
                       struct gd_err *err)
{
    struct trace_spans *spans = &profile->run.spans;
    const char *name = profile_cell(row, "Name"), *type = profile_cell(row, "Type");
    bool collective = gd_starts_with(type, "hcom_") || gd_starts_with(name, "hcom_");
    struct trace_span span = {.op = TRACE_NONE,
                              .kind = collective ? TRACE_COMMUNICATION : TRACE_KERNEL};
    int rc;

    (void)ctx;
    if (!*name || !trace_time_parse(profile_cell(row, "Start Time(us)"), &span.start) ||
        !trace_time_parse(profile_cell(row, "Duration(us)"), &span.duration) ||
        !trace_is_possible(span.start, span.duration)) {
        spans->bad_times++;
        return GD_OK;
    }
    spans->has_parts = true;
    profile->has_kernels = true;
    profile->has_collectives |= collective;
    rc =
        trace_lane_of(spans, "kernel_details.csv", profile_cell(row, "Stream ID"), &span.lane, err);
    rc = rc != GD_OK ? rc : trace_text(spans, name, strnlen(name, TRACE_MAX_NAME), &span.name, err);
    rc = rc != GD_OK ? rc : put_args(spans, row, &span.args, err);
    rc = rc != GD_OK ? rc : trace_add_span(spans, &span, err);
    return rc != GD_OK ? rc
                       : note_step(&profile->run, profile_cell(row, "Step Id"), span.start,
                                   span.start + span.duration, err);
}

static void leave_out_kind(struct trace_spans *spans, size_t count, enum trace_kind kind)
{
    for (size_t i = 0; i < count; i++) {
        if (spans->span[i].kind == kind) {
            spans->span[i].kind = TRACE_LEFT_OUT;
        }
    }
}

static int order_steps(const void *a, const void *b)
{
    const struct trace_step *x = a, *y = b;

    return x->start < y->start ? -1 : x->start > y->start;
}

int profile_read_kernels(struct profile *profile, struct gd_err *err)
{
    struct trace_run *run = &profile->run;
    size_t before = run->spans.count;
    int rc =
        profile_each_row(profile, profile->entry, "kernel_details.csv", take_kernel, NULL, err);

    if (profile->has_kernels) {
        leave_out_kind(&run->spans, before, TRACE_KERNEL);
    }
    if (profile->has_collectives) {
        leave_out_kind(&run->spans, before, TRACE_COMMUNICATION);
    }
    for (size_t i = 0; i < before; i++) { /* the trace has steps of its own */
        run->steps = run->spans.span[i].kind == TRACE_STEP ? 0 : run->steps;
    }
    if (run->steps > 0) {
        qsort(run->step, run->steps, sizeof(*run->step), order_steps);
        run->steps_by = TRACE_BY_TABLE;
    }
    for (size_t i = 0; i + 1 < run->steps; i++) {
        int64_t next = run->step[i + 1].start;
        run->step[i].end = run->step[i].end > next ? next : run->step[i].end;
    }
    return rc;
}

/* ---- steps ----------------------------------------------------------------------------------- */

struct told_sums {
    double computing, free, stage, exposed;
    size_t rows;
};

static int take_step(struct profile *profile, const struct profile_row *row, void *ctx,
                     struct gd_err *err)
{
    struct trace_run *run = &profile->run;
    struct told_sums *sums = ctx;
    struct gd_time_step *step;
    uint64_t number = 0;
    double computing = profile_seconds(row, "Computing"), free_time = profile_seconds(row, "Free");

    if (!gd_json_unsigned(profile_cell(row, "Step"), &number) || number >= (UINT64_C(1) << 62)) {
        number = run->tolds + 1; /* without a schedule there is one row, without a number */
    }
    if (!gd_grow_list(&run->told, run->tolds, &run->told_cap, sizeof(*run->told))) {
        return gd_fail_nomem(err);
    }
    step = &run->told[run->tolds++];
    *step = gd_time_unknown_step((int64_t)number);
    step->part[GD_TIME_TOTAL] = profile_seconds(row, "Stage");
    step->communication = profile_seconds(row, "Communication");
    step->exposed = profile_seconds(row, "Communication(Not Overlapped)");
    step->timed = true;
    sums->computing += computing > 0 ? computing : 0;
    sums->free += free_time > 0 ? free_time : 0;
    sums->exposed += step->exposed > 0 ? step->exposed : 0;
    sums->stage += step->part[GD_TIME_TOTAL] > 0 ? step->part[GD_TIME_TOTAL] : 0;
    sums->rows++;
    return GD_OK;
}

int profile_read_steps(struct profile *profile, struct gd_err *err)
{
    struct told_sums sums = {.rows = 0};
    char text[200];
    int rc =
        profile_each_row(profile, profile->entry, "step_trace_time.csv", take_step, &sums, err);

    if (rc != GD_OK || sums.rows == 0 || sums.stage <= 0) {
        return rc;
    }
    snprintf(text, sizeof(text),
             "computing %.1f %%, communication not hidden %.1f %%, idle %.1f %% of %.6g s "
             "(step_trace_time.csv)",
             100 * sums.computing / sums.stage, 100 * sums.exposed / sums.stage,
             100 * sums.free / sums.stage, sums.stage);
    return gd_catalog_add_fact(profile->catalog, "device", text, err);
}

/* ---- shapes on a CPU ------------------------------------------------------------------------- */

/* "Conv2D;Conv2D-op0;916401559;input_1:[16, 1, 8, 8];input_2:NoShape;": the inputs with a shape. */
static void put_shapes(struct gd_buf *out, const char *text)
{
    gd_buf_clear(out);
    gd_buf_putc(out, '[');
    for (const char *at = strstr(text, ":["); at; at = strstr(at, ":[")) {
        gd_buf_puts(out, out->len > 1 ? "," : "");
        for (at++; *at && *at != ';' && out->len < TRACE_MAX_ARGS; at++) {
            if (*at != ' ' && *at != '\x1f') {
                gd_buf_putc(out, *at);
            }
        }
    }
    gd_buf_putc(out, ']');
}

struct shape { /* of an operator by the last part of its name */
    char name[128];
    uint32_t args;
    bool ambiguous;
};

struct shapes {
    struct shape *shape;
    size_t count, cap;
};

static int order_shapes(const void *a, const void *b)
{
    return strcmp(((const struct shape *)a)->name, ((const struct shape *)b)->name);
}

static int take_shape(struct profile *profile, char *line, struct shapes *shapes,
                      struct gd_err *err)
{
    struct trace_spans *spans = &profile->run.spans;
    struct shape shape = {.ambiguous = false};
    char *name = strchr(line, ';'), *end = name ? strchr(name + 1, ';') : NULL;
    int rc;

    if (!end || end == name + 1 || end - name > (int)sizeof(shape.name)) {
        return GD_OK;
    }
    snprintf(shape.name, sizeof(shape.name), "%.*s", (int)(end - name) - 1, name + 1);
    spans->scratch.max = SIZE_MAX;
    put_shapes(&spans->scratch, end);
    rc = trace_text(spans, gd_buf_text(&spans->scratch), spans->scratch.len, &shape.args, err);
    if (rc == GD_OK &&
        !gd_grow_list(&shapes->shape, shapes->count, &shapes->cap, sizeof(*shapes->shape))) {
        return gd_fail_nomem(err);
    }
    if (rc == GD_OK) {
        shapes->shape[shapes->count++] = shape;
    }
    return rc;
}

/* Operators of one name in several scopes have one shape only if all agree. */
static void join_shapes(struct shapes *shapes)
{
    size_t kept = 0;

    if (shapes->count > 0) {
        qsort(shapes->shape, shapes->count, sizeof(*shapes->shape), order_shapes);
    }
    for (size_t i = 0; i < shapes->count; i++) {
        struct shape *last = kept ? &shapes->shape[kept - 1] : NULL;

        if (last && strcmp(last->name, shapes->shape[i].name) == 0) {
            last->ambiguous |= last->args != shapes->shape[i].args;
        } else {
            shapes->shape[kept++] = shapes->shape[i];
        }
    }
    shapes->count = kept;
}

static void give_shapes(struct trace_spans *spans, const struct shapes *shapes)
{
    for (size_t i = 0; shapes->count > 0 && i < spans->count; i++) {
        struct trace_span *span = &spans->span[i];
        struct shape key;
        const struct shape *found;

        snprintf(key.name, sizeof(key.name), "%.127s", gd_base_name(spans->text[span->name]));
        found = bsearch(&key, shapes->shape, shapes->count, sizeof(key), order_shapes);
        if (found && !found->ambiguous) {
            span->args = found->args;
        }
    }
}

int profile_read_shapes(struct profile *profile, struct gd_err *err)
{
    struct shapes shapes = {.count = 0};
    struct gd_file_text text;
    char path[PATH_MAX], name[64], *save = NULL;
    uint32_t folder = profile->above == GD_NO_ENTRY
                          ? GD_NO_ENTRY
                          : gd_listing_child(profile->listing, profile->above, "FRAMEWORK");
    int64_t rank = profile_number_of(profile->listing, folder, "cpu_framework_", ".txt");
    int rc;

    if (rank < 0) {
        return GD_OK;
    }
    snprintf(name, sizeof(name), "cpu_framework_%lld.txt", (long long)rank);
    rc = gd_listing_path(profile->listing, gd_listing_child(profile->listing, folder, name), path,
                         sizeof(path), err);
    rc = rc != GD_OK ? rc : gd_file_text_read(path, (uint64_t)64 << 20, &text, err);
    if (rc != GD_OK) {
        return rc;
    }
    for (char *line = strtok_r(text.data, "\n", &save); rc == GD_OK && line;
         line = strtok_r(NULL, "\n", &save)) {
        rc = take_shape(profile, line, &shapes, err);
    }
    join_shapes(&shapes);
    give_shapes(&profile->run.spans, &shapes);
    free(shapes.shape);
    free(text.data);
    return rc;
}

/* ---- totals ---------------------------------------------------------------------------------- */

struct total_table {
    const char *file, *name, *type, *count, *seconds;
    enum gd_time_lane lane;
};

static int take_total(struct profile *profile, const struct profile_row *row, void *ctx,
                      struct gd_err *err)
{
    const struct total_table *table = ctx;
    struct gd_time_report *report;
    const char *name = profile_cell(row, table->name);
    const char *count = table->count ? profile_cell(row, table->count) : "1";
    uint64_t calls;
    int rc = gd_catalog_times(profile->catalog, &report, err);

    if (rc != GD_OK || !*name || !gd_json_unsigned(count, &calls) || calls > UINT32_MAX) {
        return rc;
    }
    gd_catalog_keep(profile->catalog);
    return gd_time_add_operator(
        report,
        &(struct gd_time_record){.type = profile_cell(row, table->type),
                                 .name = name,
                                 .lane = table->lane,
                                 .out.rank = -1,
                                 .calls = (uint32_t)calls,
                                 .seconds = profile_seconds(row, table->seconds)},
        err);
}

int profile_add_totals(struct profile *profile, struct gd_err *err)
{
    static const struct total_table tables[] = {
        {"op_statistic.csv", "OP Type", "OP Type", "Count", "Total Time(us)", GD_LANE_DEVICE},
        {"operator_details.csv", "Name", "Name", NULL, "Host Self Duration(us)", GD_LANE_HOST},
        {"api_statistic.csv", "API Name", "API Name", "Count", "Time(us)", GD_LANE_HOST},
    };
    const bool known[] = {profile->has_kernels, profile->has_operators, profile->has_runtime};
    int rc = GD_OK;

    for (size_t i = 0; rc == GD_OK && i < sizeof(tables) / sizeof(tables[0]); i++) {
        if (!known[i]) {
            struct total_table table = tables[i];
            rc = profile_each_row(profile, profile->entry, table.file, take_total, &table, err);
        }
    }
    return rc;
}
