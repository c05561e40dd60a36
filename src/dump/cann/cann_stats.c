// SPDX-License-Identifier: GPL-3.0-or-later
#include "dump/cann/cann_stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "dump/cann/cann_types.h"

#define MAX_BYTES   ((uint64_t)256 << 20)
#define MAX_COLUMNS 32
#define MAX_SLOT    65535

enum column {
    COL_IO,
    COL_INDEX,
    COL_TYPE,
    COL_SHAPE,
    COL_MAX,
    COL_MIN,
    COL_AVG,
    COL_COUNT,
    COL_NAN,
    COL_NEG_INF,
    COL_POS_INF,
    COL_NORM,
    COL_OTHER
};
static const char *const titles[] = {
    "Input/Output",       "Index",     "Data Type", "Shape",     "Max Value",
    "Min Value",          "Avg Value", "Count",     "Nan Count", "Negative Inf Count",
    "Positive Inf Count", "l2norm"};

struct table {
    const char *path;
    char *header;
    enum column column[MAX_COLUMNS];
    int count;
    unsigned line;
};

/* Returns the next field of a line, without its comma; NULL: none. */
static char *next_field(char **line)
{
    char *field = *line;

    if (field) {
        char *comma = strchr(field, ',');

        *line = comma ? comma + 1 : NULL;
        if (comma) {
            *comma = '\0';
        }
    }
    return field;
}

static int read_header(struct table *table, char *line, struct gd_err *err)
{
    bool has[COL_OTHER + 1] = {false};
    char *field;

    while ((field = next_field(&line)) && table->count < MAX_COLUMNS) {
        enum column column = 0;

        while (column < COL_OTHER && strcasecmp(field, titles[column]) != 0) {
            column++;
        }
        table->column[table->count++] = column;
        has[column] = true;
    }
    return has[COL_IO] && has[COL_INDEX]
               ? GD_OK
               : gd_fail(err, GD_EPROTO,
                         "%.300s:1: not a statistics header: columns \"%s\" and \"%s\" are missing",
                         table->path, titles[COL_IO], titles[COL_INDEX]);
}

/* Parses "2x3"; "-" is a scalar. */
static bool read_shape(const char *text, struct gd_shape *shape)
{
    shape->rank = 0;
    if (strcmp(text, "-") == 0) {
        return true;
    }
    for (const char *at = text;; at++) {
        char *end;
        long long size = strtoll(at, &end, 10);

        if (end == at || size < 0 || shape->rank == GD_MAX_RANK) {
            return false;
        }
        shape->dim[shape->rank++] = size;
        if (*end == '\0') {
            return gd_shape_count(shape) >= 0;
        }
        if (*end != 'x' && *end != 'X') {
            return false;
        }
        at = end;
    }
}

/* False: not a number ("NA"). */
static bool parse_number(const char *text, double *ret)
{
    char *end;

    *ret = strtod(text, &end);
    return end != text && *end == '\0';
}

static void set_figure(struct gd_stats *stats, enum column column, double value)
{
    uint64_t count = value >= 0 && value < 0x1p63 ? (uint64_t)value : 0;

    switch (column) {
    case COL_MAX: stats->max = value; break;
    case COL_MIN: stats->min = value; break;
    case COL_AVG: stats->mean = value; break;
    case COL_COUNT: stats->count = count; break;
    case COL_NAN: stats->nan = count; break;
    case COL_NEG_INF: stats->neg_inf = count; break;
    case COL_POS_INF: stats->pos_inf = count; break;
    case COL_NORM: stats->sum_sq = value * value; break;
    default: break;
    }
}

static unsigned figure_bit(enum column column)
{
    static const unsigned bits[] = {
        [COL_MAX] = GD_UNKNOWN_MAX,     [COL_MIN] = GD_UNKNOWN_MIN, [COL_AVG] = GD_UNKNOWN_MEAN,
        [COL_COUNT] = GD_UNKNOWN_COUNT, [COL_NAN] = GD_UNKNOWN_NAN, [COL_NORM] = GD_UNKNOWN_SUM_SQ};

    return (size_t)column < sizeof(bits) / sizeof(bits[0]) ? bits[column] : 0;
}

static bool take_field(enum column column, const char *field, struct gd_cann_stats_row *row)
{
    double value;
    int32_t type;

    switch (column) {
    case COL_IO:
        row->is_output = strcasecmp(field, "Output") == 0;
        return row->is_output || strcasecmp(field, "Input") == 0;
    case COL_INDEX:
        row->index = parse_number(field, &value) && value >= 0 && value <= MAX_SLOT
                         ? (uint32_t)value
                         : UINT32_MAX;
        return row->index != UINT32_MAX;
    case COL_TYPE:
        type = gd_cann_type_from_name(field);
        row->stored = type < 0 ? GD_STORED_NONE : gd_cann_stored(type);
        return true;
    case COL_SHAPE: row->has_shape = read_shape(field, &row->shape); return true;
    case COL_OTHER: return true;
    default:
        if (parse_number(field, &value)) {
            set_figure(&row->stats, column, value);
            row->stats.unknown &= ~figure_bit(column);
        }
        return true;
    }
}

/* Statistics that are not finite do not describe the finite elements: they only say that others
 * exist. */
static void note_nonfinite(struct gd_stats *stats)
{
    const unsigned bits[] = {GD_UNKNOWN_MAX, GD_UNKNOWN_MIN, GD_UNKNOWN_MEAN, GD_UNKNOWN_SUM_SQ};
    double *figure[] = {&stats->max, &stats->min, &stats->mean, &stats->sum_sq};
    double told[4];

    for (size_t i = 0; i < 4; i++) {
        told[i] = stats->unknown & bits[i] ? 0 : *figure[i];
        if (!isfinite(told[i])) {
            *figure[i] = 0;
            stats->unknown |= bits[i];
        }
    }
    gd_stats_prove(told[0], told[1], told[2], told[3], stats);
}

static int read_row(const struct table *table, char *line, struct gd_cann_stats_row *row,
                    struct gd_err *err)
{
    unsigned infinities = 0;
    double ignored;

    *row = (struct gd_cann_stats_row){.stats = {.unknown = GD_UNKNOWN_ALL}};
    for (int i = 0; i < table->count; i++) {
        char *field = next_field(&line);

        if (!field) {
            return gd_fail(err, GD_EPROTO, "%.300s:%u: %d of %d columns", table->path, table->line,
                           i, table->count);
        }
        if (!take_field(table->column[i], field, row)) {
            return gd_fail(err, GD_EPROTO, "%.300s:%u: \"%.40s\" is not a valid %s", table->path,
                           table->line, field, titles[table->column[i]]);
        }
        /* Both counts of infinities must be known, or neither counts. */
        if ((table->column[i] == COL_NEG_INF || table->column[i] == COL_POS_INF) &&
            parse_number(field, &ignored)) {
            infinities |= 1U << table->column[i];
        }
    }
    if (infinities == (1U << COL_NEG_INF | 1U << COL_POS_INF)) {
        row->stats.unknown &= ~(unsigned)GD_UNKNOWN_INF;
    }
    note_nonfinite(&row->stats);
    return GD_OK;
}

/* A file that was appended to has its header several times. */
static int read_lines(struct table *table, char *text,
                      int (*fn)(void *ctx, const struct gd_cann_stats_row *row), void *ctx,
                      struct gd_err *err)
{
    struct gd_cann_stats_row row;
    int rc = GD_OK;

    for (char *line = text, *end; line && rc == GD_OK; line = end) {
        end = strchr(line, '\n');
        if (end) {
            *end++ = '\0';
        }
        line[strcspn(line, "\r")] = '\0';
        table->line++;
        if (line[0] == '\0') {
            continue;
        }
        if (!table->header) {
            table->header = strdup(line);
            rc = table->header ? read_header(table, line, err) : gd_fail_nomem(err);
        } else if (strcmp(line, table->header) != 0) {
            rc = read_row(table, line, &row, err);
            rc = rc != GD_OK ? rc : fn(ctx, &row);
        }
    }
    if (rc == GD_OK && !table->header) {
        rc = gd_fail(err, GD_EPROTO, "%.300s is empty", table->path);
    }
    return rc;
}

int gd_cann_stats_read(struct gd_disk *disk,
                       int (*fn)(void *ctx, const struct gd_cann_stats_row *row), void *ctx,
                       struct gd_err *err)
{
    struct table table = {.path = gd_disk_path(disk)};
    struct gd_file_text text;
    int rc = gd_disk_read_text(disk, MAX_BYTES, &text, err);

    if (rc != GD_OK) {
        return rc;
    }
    rc = read_lines(&table, text.data, fn, ctx, err);
    free(table.header);
    free(text.data);
    return rc;
}
