// SPDX-License-Identifier: GPL-3.0-or-later
#include "dump/mindspore/ms_statistic.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "dump/io/csv.h"
#include "dump/mindspore/ms_file_name.h"

enum column {
    OP_TYPE,
    OP_NAME,
    TIMESTAMP,
    IO,
    SLOT,
    DATA_TYPE,
    SHAPE,
    MAX_VALUE,
    MIN_VALUE,
    AVG_VALUE,
    COUNT,
    NEGATIVE,
    POSITIVE,
    NAN_COUNT,
    NEG_INF,
    POS_INF,
    ZERO,
    NORM,
    MD5,
    SHA1,
    COLUMNS
};

/* MindSpore's column names, and those that msprobe writes for whole graphs on Ascend. */
static const char *const titles[COLUMNS][2] = {
    [OP_TYPE] = {"Op Type"},
    [OP_NAME] = {"Op Name"},
    [TIMESTAMP] = {"Timestamp"},
    [IO] = {"IO", "Input/Output"},
    [SLOT] = {"Slot"},
    [DATA_TYPE] = {"Data Type"},
    [SHAPE] = {"Shape"},
    [MAX_VALUE] = {"Max Value"},
    [MIN_VALUE] = {"Min Value"},
    [AVG_VALUE] = {"Avg Value"},
    [COUNT] = {"Count"},
    [NEGATIVE] = {"Negative Zero Count"}, /* really elements below 0 */
    [POSITIVE] = {"Positive Zero Count"},
    [NAN_COUNT] = {"NaN Count"},
    [NEG_INF] = {"Negative Inf Count"},
    [POS_INF] = {"Positive Inf Count"},
    [ZERO] = {"Zero Count"},
    [NORM] = {"L2Norm Value"},
    [MD5] = {"MD5", "MD5 Value"},
    [SHA1] = {"SHA1", "SHA1 Value"},
};

struct table {
    int at[COLUMNS]; /* field numbers; -1: no such column */
    const char *const *field;
    size_t count;
};

static bool is_title(const char *text, int column)
{
    return strcmp(text, titles[column][0]) == 0 ||
           (titles[column][1] && strcmp(text, titles[column][1]) == 0);
}

static bool read_header(struct table *table)
{
    for (int i = 0; i < COLUMNS; i++) {
        table->at[i] = -1;
        for (size_t k = 0; k < table->count; k++) {
            if (is_title(table->field[k], i)) {
                table->at[i] = (int)k;
            }
        }
    }
    return table->at[OP_TYPE] >= 0 && table->at[OP_NAME] >= 0 && table->at[IO] >= 0 &&
           table->at[SLOT] >= 0;
}

/* "" if there is no such column or field. */
static const char *text_of(const struct table *table, enum column column)
{
    int at = table->at[column];

    return at >= 0 && (size_t)at < table->count ? table->field[at] : "";
}

static bool number_of(const struct table *table, enum column column, double *ret)
{
    const char *text = text_of(table, column);
    char *end;

    *ret = strtod(text, &end);
    return *text && *end == '\0';
}

static bool count_of(const struct table *table, enum column column, uint64_t *ret)
{
    const char *text = text_of(table, column);

    return gd_ms_number(text, strlen(text), UINT64_MAX, ret);
}

/* "(2,3)", "()"; for whole graphs "2x3" */
static bool shape_of(const char *text, struct gd_shape *ret)
{
    bool brackets = *text == '(';

    *ret = (struct gd_shape){.rank = 0};
    text += brackets;
    while (*text && *text != ')') {
        size_t len = strspn(text, "0123456789");
        uint64_t dim;

        if (ret->rank == GD_MAX_RANK || !gd_ms_number(text, len, INT64_MAX, &dim)) {
            return false;
        }
        ret->dim[ret->rank++] = (int64_t)dim;
        text += len;
        text += strspn(text, brackets ? ", " : "x");
    }
    return brackets ? strcmp(text, ")") == 0 : ret->rank > 0 && *text == '\0';
}

/* ---- statistics ------------------------------------------------------------------------------ */

static void take_counts(const struct table *table, struct ms_statistic *row)
{
    struct gd_stats *stats = &row->stats;

    stats->unknown |= GD_UNKNOWN_REST | GD_UNKNOWN_UNITS;
    if (!count_of(table, COUNT, &stats->count)) {
        int64_t count = row->has_shape ? gd_shape_count(&row->shape) : -1;

        stats->count = count < 0 ? 0 : (uint64_t)count;
        stats->unknown |= count < 0 ? GD_UNKNOWN_COUNT : 0;
    }
    stats->unknown |= count_of(table, NAN_COUNT, &stats->nan) ? 0 : GD_UNKNOWN_NAN;
    if (!count_of(table, NEG_INF, &stats->neg_inf) || !count_of(table, POS_INF, &stats->pos_inf)) {
        stats->unknown |= GD_UNKNOWN_INF;
    }
    stats->unknown |= count_of(table, ZERO, &stats->zero) ? 0 : GD_UNKNOWN_ZERO;
    if (!count_of(table, NEGATIVE, &stats->negative) ||
        !count_of(table, POSITIVE, &stats->positive)) {
        stats->unknown |= GD_UNKNOWN_SIGNS;
    }
}

/* Without counts, statistics that are not finite prove that such elements exist, but not how many.
 * So do extremes that still have their initial values. True: there are some. */
static bool guess_counts(struct gd_stats *stats, const double *figure, bool none_finite)
{
    bool is_inf = isinf(figure[0]) || isinf(figure[1]);

    if ((stats->unknown & GD_UNKNOWN_NAN) && none_finite && !is_inf && stats->count > 0) {
        stats->nan = stats->nan ? stats->nan : 1;
    }
    return gd_stats_prove(figure[0], figure[1], figure[2], figure[3], stats) || stats->nan ||
           stats->pos_inf || stats->neg_inf;
}

static bool finite_of(const struct table *table, enum column column, double *ret)
{
    return number_of(table, column, ret) && isfinite(*ret);
}

/* Without finite elements, max and min have their initial values, or are "null". */
static void take_values(const struct table *table, struct ms_statistic *row)
{
    struct gd_stats *stats = &row->stats;
    double figure[4] = {0, 0, 0, 0}; /* max, min, mean, norm */
    unsigned counts = GD_UNKNOWN_COUNT | GD_UNKNOWN_NAN | GD_UNKNOWN_INF;
    bool has_max = number_of(table, MAX_VALUE, &figure[0]);
    bool has_min = number_of(table, MIN_VALUE, &figure[1]);
    bool none = has_max && has_min && figure[0] < figure[1], told;

    number_of(table, AVG_VALUE, &figure[2]);
    number_of(table, NORM, &figure[3]);
    stats->max = figure[0];
    stats->min = figure[1];
    told =
        (stats->unknown & (GD_UNKNOWN_NAN | GD_UNKNOWN_INF)) && guess_counts(stats, figure, none);
    row->note =
        told ? "the dump says that there are NaN or infinite elements, but not how many" : NULL;
    if (!told && !(stats->unknown & counts) &&
        stats->nan + stats->pos_inf + stats->neg_inf >= stats->count) {
        stats->max = -INFINITY;
        stats->min = INFINITY;
        stats->mean = 0;
    } else {
        stats->unknown |= none || !finite_of(table, MAX_VALUE, &stats->max) ? GD_UNKNOWN_MAX : 0;
        stats->unknown |= none || !finite_of(table, MIN_VALUE, &stats->min) ? GD_UNKNOWN_MIN : 0;
        stats->unknown |= none || !finite_of(table, AVG_VALUE, &stats->mean) ? GD_UNKNOWN_MEAN : 0;
    }
    if (finite_of(table, NORM, &figure[3])) {
        stats->sum_sq = figure[3] * figure[3];
    } else {
        stats->unknown |= GD_UNKNOWN_SUM_SQ;
    }
}

/* Returns why the row is invalid; NULL: it is valid. */
static const char *read_row(const struct table *table, struct ms_statistic *ret)
{
    const char *io = text_of(table, IO);
    uint64_t slot;

    *ret = (struct ms_statistic){.type = text_of(table, OP_TYPE), .name = text_of(table, OP_NAME)};
    ret->is_input = strcasecmp(io, "input") == 0;
    if (!ret->is_input && strcasecmp(io, "output") != 0) {
        return "IO is not input or output";
    }
    if (!count_of(table, SLOT, &slot) || slot > GD_MS_MAX_SLOT) {
        return "Slot is not a slot number";
    }
    if (!ret->type[0] && !ret->name[0]) {
        return "it has no operator name";
    }
    ret->slot = (uint32_t)slot;
    if (!count_of(table, TIMESTAMP, &ret->time)) {
        ret->time = 0;
    }
    ret->stored = gd_stored_from_name(text_of(table, DATA_TYPE));
    ret->has_shape = shape_of(text_of(table, SHAPE), &ret->shape);
    take_counts(table, ret);
    take_values(table, ret);
    return NULL;
}

static const char *digest_of(const struct table *table, char *out, size_t size)
{
    bool md5 = text_of(table, MD5)[0] != '\0';
    const char *text = text_of(table, md5 ? MD5 : SHA1);

    snprintf(out, size, "%s%.100s", md5 ? "md5:" : "sha1:", text);
    return text[0] ? out : NULL;
}

int ms_statistic_read(struct gd_disk *disk,
                      int (*fn)(void *ctx, const struct ms_statistic *row, struct gd_err *err),
                      void (*bad)(void *ctx, const char *why), void *ctx, struct gd_err *err)
{
    struct gd_csv csv = {.disk = disk};
    struct table table = {.count = 0};
    struct ms_statistic row;
    char digest[128], why[160];
    int rc = gd_csv_next(&csv, &table.field, &table.count, err);

    if (rc == GD_OK && (table.count == 0 || !read_header(&table))) {
        rc = gd_fail(err, GD_EPROTO, "%.300s does not begin like MindSpore's statistics",
                     gd_disk_path(disk));
    }
    while (rc == GD_OK) {
        const char *problem;

        rc = gd_csv_next(&csv, &table.field, &table.count, err);
        if (rc != GD_OK || table.count == 0) {
            break;
        }
        if (is_title(text_of(&table, IO), IO)) {
            continue; /* a repeated header: it was written in several parts */
        }
        problem = read_row(&table, &row);
        if (problem) {
            snprintf(why, sizeof(why), "row %llu: %s", (unsigned long long)gd_csv_line(&csv),
                     problem);
            if (bad) {
                bad(ctx, why);
            }
            continue;
        }
        row.digest = digest_of(&table, digest, sizeof(digest));
        rc = fn(ctx, &row, err);
    }
    gd_csv_deinit(&csv);
    return rc;
}
