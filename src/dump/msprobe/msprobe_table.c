// SPDX-License-Identifier: GPL-3.0-or-later
#include "dump/msprobe/msprobe_table.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "dump/msprobe/api_load.h"

#define BLANKS " \t\r\n"

int table_open(const char *path, struct table *ret, struct gd_err *err)
{
    bool more = false;
    int rc;

    *ret = (struct table){.columns = 0};
    rc = gd_disk_open(AT_FDCWD, path, false, &ret->disk, err);
    if (rc != GD_OK) {
        return rc;
    }
    gd_arena_init(&ret->arena, (size_t)16 << 20);
    ret->csv.disk = ret->disk;
    rc = table_next(ret, &more, err);
    for (size_t i = 0; rc == GD_OK && i < ret->fields; i++) {
        const char *name = ret->row[i];

        name += i == 0 && strncmp(name, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0;
        ret->column[i] = gd_arena_strdup(&ret->arena, name);
        if (!ret->column[i]) {
            rc = gd_fail_nomem(err);
        }
    }
    ret->columns = ret->fields;
    if (rc == GD_OK && !more) {
        rc = gd_fail(err, GD_EPROTO, "the table is empty");
    }
    if (rc != GD_OK) {
        table_close(ret);
    }
    return rc;
}

void table_close(struct table *table)
{
    gd_csv_deinit(&table->csv);
    gd_arena_deinit(&table->arena);
    gd_disk_unref(table->disk);
    *table = (struct table){.columns = 0};
}

int table_next(struct table *table, bool *more, struct gd_err *err)
{
    int rc = gd_csv_next(&table->csv, &table->row, &table->fields, err);

    *more = rc == GD_OK && table->fields > 0;
    return rc;
}

const char *table_at(const struct table *table, size_t index)
{
    return index < table->fields && index < table->columns ? table->row[index] : NULL;
}

const char *table_cell(const struct table *table, const char *column)
{
    for (size_t i = 0; i < table->columns; i++) {
        if (strcmp(table->column[i], column) == 0) {
            return table_at(table, i);
        }
    }
    return NULL;
}

uint64_t table_line(const struct table *table)
{
    return gd_csv_line(&table->csv);
}

bool table_number(const char *text, double *ret)
{
    char *end;

    if (!text || !text[strspn(text, BLANKS)]) {
        return false;
    }
    *ret = strtod(text, &end);
    return end != text && end[strspn(end, BLANKS)] == '\0';
}

void table_numbers(const struct table *table, const char *max, const char *min, const char *mean,
                   const char *norm, struct api_numbers *ret)
{
    ret->has_max = table_number(table_cell(table, max), &ret->max);
    ret->has_min = table_number(table_cell(table, min), &ret->min);
    ret->has_mean = table_number(table_cell(table, mean), &ret->mean);
    ret->has_norm = table_number(table_cell(table, norm), &ret->norm);
}

bool table_whole(const char *text, int64_t *ret)
{
    size_t digits;

    if (!text) {
        return false;
    }
    text += strspn(text, BLANKS);
    digits = strspn(text, "0123456789");
    if (digits == 0 || digits > 15 || text[digits + strspn(text + digits, BLANKS)]) {
        return false;
    }
    *ret = strtoll(text, NULL, 10);
    return true;
}

bool table_shape(const char *text, struct gd_shape *ret)
{
    int64_t total = 1;

    *ret = (struct gd_shape){.rank = 0};
    text = text ? strpbrk(text, "[(") : NULL;
    while (text && *text && strchr("[( ", *text)) {
        text++;
    }
    while (text && *text >= '0' && *text <= '9') {
        int64_t dim;
        char *end;

        dim = strtoll(text, &end, 10);
        if (end - text > 18 || ret->rank == GD_MAX_RANK ||
            __builtin_mul_overflow(total, dim ? dim : 1, &total)) {
            return false;
        }
        ret->dim[ret->rank++] = dim;
        text = end + strspn(end, ", ");
    }
    return text && (*text == ']' || *text == ')');
}
