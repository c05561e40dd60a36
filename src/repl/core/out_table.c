// SPDX-License-Identifier: GPL-3.0-or-later
#include "repl/core/repl_impl.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAX_COLUMNS 16

struct out_table {
    struct repl_out *out;
    const char *record_name;
    struct out_column column[MAX_COLUMNS];
    int count;
    int width[MAX_COLUMNS];
    struct repl_lines cells; /* row by row */
    cJSON *rows;             /* in JSON mode; owned by the record */
};

struct out_table *out_table_begin(struct repl_out *out, const char *record_name,
                                  const struct out_column *columns, int count)
{
    struct out_table *table = calloc(1, sizeof(*table));
    if (!table) {
        return NULL;
    }
    table->out = out;
    table->record_name = record_name;
    table->count = count < MAX_COLUMNS ? count : MAX_COLUMNS;
    for (int i = 0; i < table->count; i++) {
        table->column[i] = columns[i];
        table->width[i] = repl_display_width(columns[i].title);
    }
    if (out_is_json(out)) {
        table->rows = cJSON_CreateArray();
        if (!cJSON_AddItemToObject(out_record(out, record_name), record_name, table->rows)) {
            cJSON_Delete(table->rows);
            table->rows = NULL;
        }
    }
    return table;
}

static void add_json_cell(cJSON *row, const struct out_column *column, const char *cell)
{
    if (!cell) {
        cJSON_AddNullToObject(row, column->name);
        return;
    }
    if (column->number) {
        char *end = NULL;
        double value = strtod(cell, &end);
        if (end != cell && *end == '\0' && isfinite(value)) {
            cJSON_AddNumberToObject(row, column->name, value);
            return;
        }
    }
    cJSON_AddStringToObject(row, column->name, cell);
}

void out_table_row(struct out_table *table, const char *const *cells)
{
    if (!table) {
        return;
    }
    if (out_is_json(table->out)) {
        cJSON *row = cJSON_CreateObject();
        for (int i = 0; i < table->count; i++) {
            add_json_cell(row, &table->column[i], cells[i]);
        }
        if (!table->rows || !cJSON_AddItemToArray(table->rows, row)) {
            cJSON_Delete(row);
        }
        return;
    }
    for (int i = 0; i < table->count; i++) {
        const char *cell = cells[i] ? cells[i] : "";
        int width = repl_display_width(cell);
        table->width[i] = width > table->width[i] ? width : table->width[i];
        repl_lines_add(&table->cells, cell);
    }
}

const char *repl_fit_name(const struct repl_out *out, const char *text, int used, char *room,
                          size_t size)
{
    int width = out_width(out) - used;

    if (!out->repl->options.interactive || out->sink || repl_display_width(text) <= width) {
        return text;
    }
    for (const char *p = strchr(text, '/'); p; p = strchr(p + 1, '/')) {
        if (p > text && repl_display_width(p) + 3 <= width) {
            int len = snprintf(room, size, "...%s", p);
            return len > 0 && (size_t)len < size ? room : text;
        }
    }
    return text;
}

static void print_row(const struct out_table *table, const char *const *cells, int last)
{
    int used = 0; /* columns in front of the cell */
    char room[512];

    for (int i = 0; i <= last; i++) {
        int pad = table->width[i] - repl_display_width(cells[i]);
        pad = pad > 0 ? pad : 0;
        if (table->column[i].number) {
            out_printf(table->out, "%*s%s", pad, "", cells[i]);
        } else if (i == last) {
            out_printf(table->out, "%s",
                       repl_fit_name(table->out, cells[i], used, room, sizeof(room)));
        } else {
            out_printf(table->out, "%s%*s", cells[i], pad, "");
        }
        if (i < last) {
            out_printf(table->out, "  ");
        }
        used += table->width[i] + 2;
    }
    out_printf(table->out, "\n");
}

/* Trailing empty cells leave no blanks behind. */
static int last_filled(const struct out_table *table, const char *const *cells)
{
    int last = table->count - 1;
    while (last > 0 && cells[last][0] == '\0') {
        last--;
    }
    return last;
}

void out_table_end(struct out_table *table)
{
    if (!table) {
        return;
    }
    if (!out_is_json(table->out) && table->cells.count > 0) {
        const char *titles[MAX_COLUMNS];
        for (int i = 0; i < table->count; i++) {
            titles[i] = table->column[i].title;
        }
        print_row(table, titles, last_filled(table, titles));
        for (size_t at = 0; at + (size_t)table->count <= table->cells.count;
             at += (size_t)table->count) {
            const char *const *cells = (const char *const *)&table->cells.line[at];
            print_row(table, cells, last_filled(table, cells));
        }
    }
    repl_lines_clear(&table->cells);
    free(table);
}
