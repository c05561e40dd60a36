// SPDX-License-Identifier: GPL-3.0-or-later
#include "repl/core/repl_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_COLUMNS 32
#define MAX_CELL    ((size_t)1 << 20)

struct out_table {
    struct repl_out *out;
    struct out_column column[MAX_COLUMNS];
    int count;
    int width[MAX_COLUMNS];
    struct repl_lines cells; /* row by row */
    FILE *csv;               /* NULL: text or JSON */
    bool exact;              /* numbers with all digits, without forms */
    cJSON *rows;             /* in JSON mode; owned by the record */
    cJSON *row;              /* text, CSV: from out_row, not formatted yet; owned */
};

static struct out_table *create_table(struct repl_out *out, const struct out_column *columns,
                                      int count)
{
    struct out_table *table = calloc(1, sizeof(*table));
    if (!table) {
        return NULL;
    }
    table->out = out;
    table->count = count < MAX_COLUMNS ? count : MAX_COLUMNS;
    for (int i = 0; i < table->count; i++) {
        table->column[i] = columns[i];
        table->width[i] = repl_display_width(columns[i].title);
    }
    return table;
}

/* out NULL: the text is not escaped. */
static const char *render_cell(struct repl_out *out, const struct out_column *column,
                               const cJSON *row, struct gd_buf *text)
{
    const char *cell = column->cell ? column->cell : "";
    const cJSON *field = cJSON_GetObjectItemCaseSensitive(row, column->name);

    gd_buf_clear(text);
    if (cell[0] != '\0' && cell[0] != ':') {
        out_render(out, row, cell, NULL, text);
    } else if (field) {
        out_render_item(out, field, cell, text);
    }
    return gd_buf_text(text);
}

static void add_text_row(struct out_table *table, const cJSON *row)
{
    struct gd_buf text = GD_BUF_INIT(MAX_CELL);

    for (int i = 0; i < table->count; i++) {
        const char *cell = render_cell(table->out, &table->column[i], row, &text);
        int width = repl_display_width(cell);
        table->width[i] = width > table->width[i] ? width : table->width[i];
        repl_lines_add(&table->cells, cell);
    }
    gd_buf_deinit(&text);
}

/* ---- CSV ---- */

static void write_csv_cell(FILE *file, const char *cell)
{
    /* Quotes what a spreadsheet would take for a formula. */
    bool is_formula = cell[0] != '\0' && strchr("=+@\t\r", cell[0]);

    if (!is_formula && !strpbrk(cell, ",\"\r\n")) {
        fputs(cell, file);
        return;
    }
    fputs(is_formula ? "\"'" : "\"", file);
    for (; *cell != '\0'; cell++) {
        if (*cell == '"') {
            fputc('"', file);
        }
        fputc(*cell, file);
    }
    fputc('"', file);
}

/* row NULL: the titles. */
static void write_csv_line(struct out_table *table, const cJSON *row)
{
    struct gd_buf text = GD_BUF_INIT(MAX_CELL);

    for (int i = 0; i < table->count; i++) {
        const struct out_column *column = &table->column[i];
        if (table->exact && column->title[0] == '\0') {
            continue; /* a picture */
        }
        fputs(i > 0 ? "," : "", table->csv);
        const cJSON *field =
            table->exact && row ? cJSON_GetObjectItemCaseSensitive(row, column->name) : NULL;
        char *number =
            cJSON_IsNumber(field) || cJSON_IsRaw(field) ? cJSON_PrintUnformatted(field) : NULL;
        write_csv_cell(table->csv, number ? number
                                   : row  ? render_cell(NULL, column, row, &text)
                                          : column->title);
        cJSON_free(number);
    }
    fputc('\n', table->csv);
    gd_buf_deinit(&text);
}

/* Into the file to which the command is redirected. What is appended to has its titles. */
static void begin_csv(struct out_table *table)
{
    struct repl_out *out = table->out;

    table->csv = out->sink.file;
    table->exact = true;
    if (out->csv_written) {
        fputc('\n', table->csv);
    }
    if (out->csv_written || fseek(table->csv, 0, SEEK_END) != 0 || ftell(table->csv) <= 0) {
        write_csv_line(table, NULL);
    }
    out->csv_written = true;
}

struct out_table *out_table_begin(struct repl_out *out, const char *record_name,
                                  const struct out_column *columns, int count)
{
    struct out_table *table = create_table(out, columns, count);

    if (table && out->csv) {
        begin_csv(table);
    } else if (table && out_is_json(out)) {
        table->rows = out_list(out_record(out, record_name), record_name);
    }
    return table;
}

struct out_table *out_table_csv(struct repl_out *out, FILE *file, const struct out_column *columns,
                                int count)
{
    struct out_table *table = create_table(out, columns, count);
    if (table) {
        table->csv = file;
        write_csv_line(table, NULL);
    }
    return table;
}

/* ---- rows ---- */

static void end_row(struct out_table *table)
{
    if (table->row) {
        (table->csv ? write_csv_line : add_text_row)(table, table->row);
        cJSON_Delete(table->row);
        table->row = NULL;
    }
}

cJSON *out_row(struct out_table *table)
{
    if (!table) {
        return NULL;
    }
    if (table->rows) {
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

    if (!out->repl->options.interactive || out->sink.file || repl_display_width(text) <= width) {
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
