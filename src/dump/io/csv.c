// SPDX-License-Identifier: GPL-3.0-or-later
#include "dump/io/csv.h"

#include <stdlib.h>
#include <string.h>

#define PIECE ((size_t)1 << 16)
#define OVER  (-1)

static int fill_buffer(struct gd_csv *csv, struct gd_err *err)
{
    uint64_t left = gd_disk_size(csv->disk) - csv->at;
    size_t wanted = left < PIECE ? (size_t)left : PIECE;
    int rc;

    if (!csv->buffer) {
        csv->buffer = malloc(PIECE);
        gd_buf_init(&csv->text, GD_CSV_MAX_ROW);
        csv->next_line = 1;
        if (!csv->buffer) {
            return gd_fail_nomem(err);
        }
    }
    csv->from = csv->have = 0;
    if (wanted == 0) {
        return GD_OK;
    }
    rc = gd_disk_read(csv->disk, csv->at, csv->buffer, wanted, err);
    if (rc != GD_OK) {
        return rc;
    }
    csv->at += wanted;
    csv->have = wanted;
    return GD_OK;
}

/* The next byte into *ret, OVER at the end. */
static int next_byte(struct gd_csv *csv, int *ret, struct gd_err *err)
{
    if (csv->from == csv->have) {
        int rc = fill_buffer(csv, err);

        if (rc != GD_OK) {
            return rc;
        }
    }
    *ret = csv->from < csv->have ? (unsigned char)csv->buffer[csv->from++] : OVER;
    if (*ret == '\n') {
        csv->next_line++;
    }
    return GD_OK;
}

static int fail_broken(const struct gd_csv *csv, const char *what, struct gd_err *err)
{
    return gd_fail(err, GD_EPROTO, "%.300s:%llu: %s", gd_disk_path(csv->disk),
                   (unsigned long long)csv->line, what);
}

struct row {
    size_t count;
    bool quoted; /* inside quotes */
    /* the previous byte was a quote inside quotes: the closing one, or the first of a doubled
     * one */
    bool was_quote;
    bool over;
};

static int end_field(struct gd_csv *csv, struct row *row, struct gd_err *err)
{
    gd_buf_putc(&csv->text, '\0');
    if (row->count == GD_CSV_MAX_FIELDS) {
        return fail_broken(csv, "the row has too many fields", err);
    }
    row->count++;
    if (row->count < GD_CSV_MAX_FIELDS) {
        csv->field_at[row->count] = csv->text.len;
    }
    return GD_OK;
}

static int take_byte(struct gd_csv *csv, struct row *row, int byte, struct gd_err *err)
{
    if (byte == '\0') {
        return fail_broken(csv, "a NUL byte: not a table", err);
    }
    if (row->quoted && byte == OVER && !row->was_quote) {
        return fail_broken(csv, "a quote is not closed", err);
    }
    if (row->quoted && row->was_quote && byte != '"') {
        row->quoted = row->was_quote = false;
    }
    if (row->quoted) {
        if (byte != '"' || row->was_quote) {
            gd_buf_putc(&csv->text, (char)byte);
            row->was_quote = false;
        } else {
            row->was_quote = true;
        }
        return GD_OK;
    }
    if (byte == '"' && csv->text.len == csv->field_at[row->count]) {
        row->quoted = true;
        return GD_OK;
    }
    if (byte == OVER || byte == '\n') {
        row->over = true;
        return end_field(csv, row, err);
    }
    if (byte == ',') {
        return end_field(csv, row, err);
    }
    if (byte != '\r') {
        gd_buf_putc(&csv->text, (char)byte);
    }
    return GD_OK;
}

static int read_row(struct gd_csv *csv, struct row *row, int *last, struct gd_err *err)
{
    gd_buf_clear(&csv->text);
    csv->field_at[0] = 0;
    *row = (struct row){.count = 0};
    while (!row->over) {
        int rc = next_byte(csv, last, err);

        rc = rc != GD_OK ? rc : take_byte(csv, row, *last, err);
        if (rc != GD_OK) {
            return rc;
        }
        if (csv->text.failed) {
            return fail_broken(csv, "the row is too long", err);
        }
    }
    return GD_OK;
}

int gd_csv_next(struct gd_csv *csv, const char *const **ret, size_t *count, struct gd_err *err)
{
    struct row row;
    int last = 0;

    if (!csv->buffer) {
        int rc = fill_buffer(csv, err);

        if (rc != GD_OK) {
            return rc;
        }
    }
    do {
        csv->line = csv->next_line;
        int rc = read_row(csv, &row, &last, err);

        if (rc != GD_OK) {
            return rc;
        }
    } while (last != OVER && row.count == 1 && csv->text.len == 1);
    for (size_t i = 0; i < row.count; i++) {
        csv->field[i] = gd_buf_text(&csv->text) + csv->field_at[i];
    }
    *ret = csv->field;
    *count = last == OVER && row.count == 1 && csv->text.len == 1 ? 0 : row.count;
    return GD_OK;
}

uint64_t gd_csv_line(const struct gd_csv *csv)
{
    return csv->line;
}

void gd_csv_deinit(struct gd_csv *csv)
{
    free(csv->buffer);
    gd_buf_deinit(&csv->text);
    csv->buffer = NULL;
}
