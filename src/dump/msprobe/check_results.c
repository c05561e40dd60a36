// SPDX-License-Identifier: GPL-3.0-or-later
/* Results of other tools' comparisons and accuracy checks: rows that did not pass become events, of
 * the nodes of a dump next to the table. Workbooks and databases are only mentioned, not read. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "dump/io/file_name.h"
#include "dump/msprobe/api_walk.h"
#include "dump/msprobe/msprobe_table.h"

#define MAX_EVENTS 5000 /* per file */
#define MAX_TEXT   1500

static const struct kind {
    const char *begin, *end; /* of the file name */
    const char *event;       /* NULL: not read */
    const char *what;        /* or why not */
} kinds[] = {
    {"compare_result", ".csv", "compare", "a comparison of msprobe or ptdbg_ascend"},
    {"compare_result", ".xlsx", NULL,
     "a comparison as a workbook: save it as .csv so that it can be read"},
    {"accuracy_checking_result", ".csv", "accuracy",
     "an accuracy check of msprobe or ptdbg_ascend"},
    {"accuracy_checking_details", ".csv", NULL,
     "details of an accuracy check: the verdicts are in its accuracy_checking_result"},
    {"api_precision_compare_result", ".csv", "accuracy", "a comparison of accuracy checks"},
    {"api_precision_compare_details", ".csv", NULL, "details of a comparison of accuracy checks"},
    {"free_benchmark", ".csv", "benchmark", "results that changed when msprobe perturbed a call"},
    {"similarities", ".csv", NULL, "similarities of gradients from msprobe: a table for people"},
    {"advisor_", ".txt", NULL, "advice from msprobe or ptdbg_ascend: text for people"},
    {"", ".trend.db", NULL,
     "a trend database of msprobe: the dump it was made from is read instead"},
    {"", ".vis.db", NULL,
     "a graph that msprobe made for display: the dump it was made from is read instead"},
    {"", ".vis", NULL,
     "a graph that msprobe made for display: the dump it was made from is read instead"},
};

static const struct kind *kind_of(const char *name)
{
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (gd_starts_with(name, kinds[i].begin) && gd_ends_with(name, kinds[i].end)) {
            return &kinds[i];
        }
    }
    return NULL;
}

static int find_places(const struct gd_dump_format *format, const struct gd_listing *listing,
                       struct gd_findings *findings, struct gd_err *err)
{
    int rc = GD_OK;

    for (uint32_t i = 0; rc == GD_OK && i < listing->count; i++) {
        const struct kind *kind = kind_of(gd_base_name(listing->entry[i].name));
        struct gd_finding finding = {.format = format, .root = i, .files = 1};

        if (kind && !listing->entry[i].is_directory) {
            finding.rule = kind->what;
            rc = gd_findings_add(findings, &finding, err);
        }
    }
    return rc;
}

struct reading {
    struct gd_catalog *catalog;
    const struct kind *kind;
    struct table table;
    uint64_t rows, bad;
};

/* Words of all releases for passed or not judged. */
static bool is_fine(const char *word)
{
    static const char *const fine[] = {"pass", "Pass", "Yes", "SKIP", "skip", "N/A", "", "nan"};
    size_t len = strcspn(word, "\t ");

    for (size_t i = 0; i < sizeof(fine) / sizeof(fine[0]); i++) {
        if (strlen(fine[i]) == len && strncmp(word, fine[i], len) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_verdict(const char *column)
{
    static const char *const names[] = {"Result",
                                        "Accuracy Reached or Not",
                                        "Forward Test Success",
                                        "Backward Test Success",
                                        "Forward Status",
                                        "Backward Status"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(names[i], column) == 0) {
            return true;
        }
    }
    return false;
}

/* "Torch.add.0.forward.input.0" belongs to node Torch.add.0.forward. */
static gd_node_id node_of(const struct gd_graph *graph, const char *name)
{
    for (size_t len = strlen(name); len > 0; len--) {
        gd_node_id node = GD_NO_NODE;

        if (name[len] == '\0' || name[len] == '.' || name[len] == '_') {
            node = gd_graph_lookup_wire(graph, name, len);
            node = node == GD_NO_NODE ? gd_graph_lookup(graph, name, len) : node;
        }
        if (node != GD_NO_NODE) {
            return node;
        }
    }
    return GD_NO_NODE;
}

/* Writes the name, the verdicts, and every cell that says how far off it is. */
static void put_text(const struct reading *in, const char *name, struct gd_buf *out)
{
    gd_buf_printf(out, "%.300s:", name);
    for (size_t i = 0; i < in->table.columns && out->len < MAX_TEXT; i++) {
        const char *column = in->table.column[i], *cell = table_at(&in->table, i);
        bool bulky = strstr(column, "Stack") || strstr(column, "Name") || strstr(column, "name");

        if (cell && !bulky && !is_fine(cell) && strcmp(cell, "None") != 0) {
            gd_buf_printf(out, " %.60s %.*s,", column,
                          (int)(strcspn(cell, "\t\n") < 120 ? strcspn(cell, "\t\n") : 120), cell);
        }
    }
    if (out->len) {
        out->data[--out->len] = '\0'; /* remove the last comma or colon */
    }
}

static int take_row(struct reading *in, struct gd_err *err)
{
    static const char *const names[] = {"NPU Name", "API Name", "api_name"};
    struct gd_buf text = GD_BUF_INIT(8 * MAX_TEXT);
    bool judged = false, fine = true;
    const char *name = NULL;
    int64_t step = GD_EVERY_STEP;
    int rc = GD_OK;

    for (size_t i = 0; !name && i < sizeof(names) / sizeof(names[0]); i++) {
        name = table_cell(&in->table, names[i]);
    }
    for (size_t i = 0; i < in->table.columns; i++) {
        if (is_verdict(in->table.column[i])) {
            judged = true;
            fine = fine && is_fine(table_at(&in->table, i) ? table_at(&in->table, i) : "");
        }
    }
    in->rows++;
    if (!name || (judged && fine)) {
        return GD_OK;
    }
    if (in->bad++ < MAX_EVENTS) {
        table_whole(table_cell(&in->table, "step"), &step);
        put_text(in, name, &text);
        rc = gd_catalog_add_event(in->catalog, step, node_of(gd_catalog_graph(in->catalog), name),
                                  in->kind->event, gd_buf_text(&text), err);
    }
    gd_buf_deinit(&text);
    return rc;
}

static int take_file(struct reading *in, const char *path, struct gd_err *err)
{
    char fact[160];
    bool more = true;
    int rc = table_open(path, &in->table, err);

    if (rc != GD_OK) {
        return rc;
    }
    rc = table_next(&in->table, &more, err);
    while (rc == GD_OK && more) {
        rc = take_row(in, err);
        rc = rc != GD_OK ? rc : table_next(&in->table, &more, err);
    }
    table_close(&in->table);
    snprintf(fact, sizeof(fact), "%llu rows, of which %llu did not pass%s",
             (unsigned long long)in->rows, (unsigned long long)in->bad,
             in->bad > MAX_EVENTS ? ": the first 5000 are events" : "");
    gd_catalog_keep(in->catalog);
    return rc != GD_OK ? rc : gd_catalog_add_fact(in->catalog, gd_base_name(path), fact, err);
}

/* "_rank3" in the file name; otherwise the directory's rank. */
static int rank_of(const char *path)
{
    const char *at = strstr(gd_base_name(path), "_rank");
    struct api_where where;

    if (at && at[5] >= '0' && at[5] <= '9') {
        return (int)(strtol(at + 5, NULL, 10) & 0xffffff);
    }
    api_where_of(path, &where);
    return where.rank;
}

static int read_file(const struct gd_listing *listing, const struct gd_finding *finding,
                     struct gd_dump *dump, bool (*go_on)(void *ctx, uint64_t done), void *ctx,
                     struct gd_err *err)
{
    struct reading in = {.kind = kind_of(gd_base_name(listing->entry[finding->root].name))};
    char path[PATH_MAX];
    int rc = gd_listing_path(listing, finding->root, path, sizeof(path), err);

    if (rc == GD_OK && go_on && !go_on(ctx, 0)) {
        rc = gd_fail(err, GD_EINTR, "interrupted");
    }
    if (rc != GD_OK || !in.kind) {
        return rc;
    }
    if (!in.kind->event) {
        return gd_dump_left_out(dump, path, in.kind->what, err);
    }
    rc = gd_dump_catalog_beside(dump, rank_of(path), "results", &in.catalog, err);
    return rc != GD_OK ? rc : take_file(&in, path, err);
}

const struct gd_dump_format gd_results_format = {
    .name = "results",
    .what = "results of other tools' comparisons and accuracy checks (.csv)",
    .find = find_places,
    .read = read_file,
};
