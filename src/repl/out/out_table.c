// SPDX-License-Identifier: GPL-3.0-or-later
#include "repl/core/repl_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_COLUMNS   16
#define MAX_CELL      ((size_t)1 << 20)
#define MAX_CELL_NAME 64

struct out_table {
    struct repl_out *out;
    const char *record_name;
    struct out_column column[MAX_COLUMNS];
    int count;
    int width[MAX_COLUMNS];
    struct repl_lines cells; /* row by row */
    cJSON *rows;             /* in JSON mode; owned by the record */
    cJSON *row;              /* text mode: from out_row, not formatted yet; owned */
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
        table->rows = out_list(out_record(out, record_name), record_name);
    }
    return table;
}

static void add_text_cell(struct out_table *table, int column, const char *cell)
{
    int width = repl_display_width(cell);

    table->width[column] = width > table->width[column] ? width : table->width[column];
    repl_lines_add(&table->cells, cell);
}

void out_table_row(struct out_table *table, const char *const *cells)
{
    if (!table) {
        return;
    }
    if (out_is_json(table->out)) {
        cJSON *row = out_push(table->rows);
        for (int i = 0; i < table->count; i++) {
            const char *name = table->column[i].name;
            out_set(row, table->column[i].number && cells[i] ? OUT_NUMERAL(name, cells[i])
                                                             : OUT_TEXT(name, cells[i]));
        }
        return;
    }
    for (int i = 0; i < table->count; i++) {
        add_text_cell(table, i, cells[i] ? cells[i] : "");
    }
}

static void add_text_row(struct out_table *table, const cJSON *row)
{
    struct gd_buf text = GD_BUF_INIT(MAX_CELL);
    char usual[MAX_CELL_NAME];

    for (int i = 0; i < table->count; i++) {
        const struct out_column *column = &table->column[i];
        const cJSON *field = cJSON_GetObjectItemCaseSensitive(row, column->name);
        gd_buf_clear(&text);
        snprintf(usual, sizeof(usual), "{%s}", column->name);
        if (column->cell || field) {
            out_render(table->out, row, column->cell ? column->cell : usual, NULL, &text);
        }
        add_text_cell(table, i, gd_buf_text(&text));
    }
    gd_buf_deinit(&text);
}

static void end_row(struct out_table *table)
{
    if (table->row) {
        add_text_row(table, table->row);
        cJSON_Delete(table->row);
        table->row = NULL;
    }
}

cJSON *out_row(struct out_table *table)
{
    if (!table) {
        return NULL;
    }
    if (out_is_json(table->out)) {
        return out_push(table->rows);
    }
    end_row(table);
    table->row = cJSON_CreateObject();
    return table->row;
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
    int used = 0; /* columns before the cell */
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

/* Index of the last cell that is not empty: no trailing blanks. */
static int last_filled(const struct out_table *table, const char *const *cells)
{
    int last = table->count - 1;
    while (last > 0 && cells[last][0] == '\0') {
        last--;
    }
    return last;
}

void out_put_text_fields(struct out_table *table, const struct out_field *fields)
{
    if (table && table->row) {
        out_set_fields(table->row, fields);
    }
}

static void print_table(const struct out_table *table)
{
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

void out_table_end(struct out_table *table)
{
    if (!table) {
        return;
    }
    end_row(table);
    if (table->cells.count > 0) {
        print_table(table);
    }
    repl_lines_clear(&table->cells);
    free(table);
}

void out_table_of(struct repl_out *out, const cJSON *list, size_t most,
                  const struct out_column *columns, int count)
{
    struct out_table *table = out_is_json(out) ? NULL : out_table_begin(out, NULL, columns, count);
    const cJSON *row = list ? list->child : NULL;

    for (size_t i = 0; table && row && i < most; i++, row = row->next) {
        add_text_row(table, row);
    }
    out_table_end(table);
}
