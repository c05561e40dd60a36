// SPDX-License-Identifier: GPL-3.0-or-later
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "repl/compare/compare_rows.h"
#include "repl/core/command.h"
#include "repl/values/inspect.h"

int compare_rows_add_extra(struct compare_rows *rows, const struct compare_row *row,
                           struct gd_err *err)
{
    struct compare_row *more = gd_grow(rows->row, rows->count, &rows->room, sizeof(*more));

    if (!more) {
        return gd_fail(err, GD_ENOMEM, "out of memory for the rows of a comparison");
    }
    rows->row = more;
    rows->row[rows->count++] = *row;
    return GD_OK;
}

int compare_rows_add(struct compare_rows *rows, const struct compare_row *row, struct gd_err *err)
{
    int rc = compare_rows_add_extra(rows, row, err);

    rows->verdicts[row->verdict] += rc == GD_OK;
    rows->empty += rc == GD_OK && row->has_metrics && row->count == 0;
    return rc;
}

void compare_rows_free(struct compare_rows *rows)
{
    free(rows->row);
    *rows = (struct compare_rows){.row = NULL};
}

bool compare_row_is_missing(enum gd_agreement verdict)
{
    return verdict == GD_V_MISSING_A || verdict == GD_V_MISSING_B;
}

bool compare_rows_differ(const struct compare_rows *rows)
{
    for (int i = 0; i < GD_V_COUNT; i++) {
        if (rows->verdicts[i] > 0 && (gd_verdict_is_bad((enum gd_agreement)i) ||
                                      compare_row_is_missing((enum gd_agreement)i))) {
            return true;
        }
    }
    return false;
}

size_t compare_rows_not_compared(const struct compare_rows *rows)
{
    return rows->verdicts[GD_V_MISSING_A] + rows->verdicts[GD_V_MISSING_B] +
           rows->verdicts[GD_V_UNREADABLE] + rows->empty;
}

size_t compare_rows_compared(const struct compare_rows *rows)
{
    size_t all = 0;

    for (int i = 0; i < GD_V_COUNT; i++) {
        all += rows->verdicts[i];
    }
    return all - compare_rows_not_compared(rows);
}

const char *compare_rows_summary(struct command_call *call, const struct compare_rows *rows)
{
    const char *text = "";

    for (int i = 0; i < GD_V_COUNT; i++) {
        const char *name = i == GD_V_MISSING_A   ? "only in B"
                           : i == GD_V_MISSING_B ? "only in A"
                                                 : gd_verdict_name((enum gd_agreement)i);

        if (rows->verdicts[i] > 0) {
            text = inspect_printf(call, "%s%s%zu %s", text, text[0] ? ", " : "", rows->verdicts[i],
                                  name);
        }
    }
    return text[0] ? text : "nothing to compare";
}

/* ---- order ----------------------------------------------------------------------------------- */

const char *compare_row_name(const struct compare_row *row)
{
    return row->b ? row->b : row->a ? row->a : "";
}

static int by_name(const void *a, const void *b)
{
    return strcmp(compare_row_name(a), compare_row_name(b));
}

static double rank_of_row(const struct compare_row *row)
{
    static const double of[GD_V_COUNT] = {
        [GD_V_NONFINITE] = 9, [GD_V_SHAPE] = 8,     [GD_V_UNREADABLE] = 7, [GD_V_FAIL] = 6,
        [GD_V_DIFF] = 5,      [GD_V_MISSING_A] = 4, [GD_V_MISSING_B] = 4,  [GD_V_WARN] = 3,
        [GD_V_PASS] = 2,      [GD_V_STAT_OK] = 1,
    };

    return of[row->verdict];
}

static int by_badness(const void *a, const void *b)
{
    const struct compare_row *x = a, *y = b;

    if (rank_of_row(x) != rank_of_row(y)) {
        return rank_of_row(x) > rank_of_row(y) ? -1 : 1;
    }
    if (x->has_metrics && y->has_metrics && x->rel_l2 != y->rel_l2) {
        return x->rel_l2 > y->rel_l2 ? -1 : 1;
    }
    return strcmp(compare_row_name(x), compare_row_name(y));
}

void compare_rows_sort(struct compare_rows *rows, enum rows_sort sort)
{
    if (sort != ROWS_IN_ORDER && rows->count > 1) {
        qsort(rows->row, rows->count, sizeof(*rows->row),
              sort == ROWS_BY_NAME ? by_name : by_badness);
    }
}
