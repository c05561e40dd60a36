// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The rows of a comparison, one for each pair, and how they are shown: as a table, a CSV file or
 * records; with gradb's columns or those of another tool.
 */
#ifndef GD_REPL_COMPARE_ROWS_H
#define GD_REPL_COMPARE_ROWS_H

#include "compare/match.h"
#include "compare/pairs.h"
#include "repl/core/command.h"

/* msprobe's: see compare_probe.h. */
enum probe_mode { PROBE_ELEMENTS, PROBE_STATISTICS, PROBE_DIGESTS };
struct probe_side {
    const char *name, *dtype, *shape, *grad; /* "N/A": none */
    const char *figure[4];                   /* max, min, mean, norm */
    const char *digest;
};
struct probe_row {
    bool skip;         /* only B has it */
    bool has_elements; /* on both sides */
    uint32_t group;    /* number of its call in its table */
    int place;         /* input, parameter, output */
    int position;      /* number among those */
    size_t number;     /* of the table */
    struct probe_side a, b;
    const char *metric[GD_TOOL_CELLS];
    const char *difference[8];
    const char *same_grad, *result, *message;
};

struct compare_row {
    const char *a, *b; /* names; NULL: there is none */
    int rank;          /* -1: none */
    int64_t step;      /* -1: none */
    enum gd_how how;
    enum gd_stored type_a, type_b;
    bool has_shape_a, has_shape_b;
    struct gd_shape shape_a, shape_b;
    enum gd_agreement verdict;
    bool has_metrics;
    uint64_t count, same_nonfinite, mismatch;
    double close, max_abs, mean_abs, rel_l2, max_rel, r1k, r5k, cosine, ulp99;
    int64_t max_abs_at;
    struct gd_tolerance tolerance;
    struct gd_stats stats_a, stats_b;      /* has metrics, or is of a dump of statistics */
    const char *note;                      /* "" */
    const struct gd_tool_row *view;        /* columns of another tool; NULL: none */
    struct probe_row *probe;               /* msprobe's part; NULL: none */
    const struct gd_item *item_a, *item_b; /* valid as long as their tables; NULL: none */
    uint32_t unit_a, unit_b;
};

struct compare_rows {
    struct compare_row *row;
    size_t count, room;
    size_t verdicts[GD_V_COUNT];
    size_t not_counted; /* without an expected counterpart */
    size_t empty;       /* pairs without elements, which are not compared */
    size_t not_held;    /* without a value of the previous step */
    size_t old;         /* with a value older than the stop */
    enum probe_mode probe_mode;
    struct gd_metrics last; /* of the row added last; NULL: none */
};

int compare_rows_add(struct compare_rows *rows, const struct compare_row *row, struct gd_err *err);
/* Adds a row that is shown but not counted. */
int compare_rows_add_extra(struct compare_rows *rows, const struct compare_row *row,
                           struct gd_err *err);
void compare_rows_free(struct compare_rows *rows);
/* "[3, 8]", as Python prints a list. */
const char *compare_list_shape(struct command_call *call, const struct gd_shape *shape);
/* Some pairs are bad, or missing on a side. */
bool compare_rows_differ(const struct compare_rows *rows);
/* Pairs with a verdict on their values; pairs on one side only or unreadable. */
size_t compare_rows_compared(const struct compare_rows *rows);
size_t compare_rows_not_compared(const struct compare_rows *rows);

enum rows_sort { ROWS_IN_ORDER, ROWS_BY_NAME, ROWS_WORST_FIRST };
struct rows_shown {
    enum gd_tool view;
    enum rows_sort sort;
    bool only_differing;
    bool shapes;   /* TroubleShooter's columns of shapes */
    int64_t limit; /* rows; 0: all; -1: as many as suit a person */
    const char *label_a, *label_b;
    size_t steps, steps_left_out; /* steps of one rank each: compared; on one side only */
};
void compare_rows_sort(struct compare_rows *rows, enum rows_sort sort);
/* The distance of two tensors; false: no element is finite on both sides. */
void compare_difference_show(struct command_call *call, const struct gd_difference *d);
void compare_difference_add(cJSON *object, const struct gd_difference *d);
void compare_rows_show(struct command_call *call, const struct compare_rows *rows,
                       const struct rows_shown *how);
int compare_rows_csv(struct command_call *call, const struct compare_rows *rows,
                     const struct rows_shown *how, const char *path, struct gd_err *err);
/* For two tensors: the elements that differ most, and a histogram of differences in units of the
 * last place. In compare_pair.c. */
void compare_pair_show(struct command_call *call, const struct compare_rows *rows);
/* "12 SAME, 1 FAIL, 2 only in A" */
const char *compare_rows_summary(struct command_call *call, const struct compare_rows *rows);

/* Only one side has it; the name on the side that has it. */
bool compare_row_is_missing(enum gd_agreement verdict);
const char *compare_row_name(const struct compare_row *row);

#endif
