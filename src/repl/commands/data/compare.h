// SPDX-License-Identifier: GPL-3.0-or-later
/* Comparing two tensors element by element. */
#ifndef GD_REPL_COMPARE_H
#define GD_REPL_COMPARE_H

#include "repl/core/work.h"

/* a is compared with b, which is the previous value or the reference. */
struct compare_sides {
    struct gd_tensor *a, *b; /* contiguous */
    const char *a_label, *b_label;
    const char *a_title, *b_title; /* of columns */
    const char *a_key, *b_key;     /* the same in JSON */
    bool a_first; /* order of the columns; false: b, which came earlier, is first */
    int64_t a_step, b_step;
};

struct compare_rule {
    bool close;        /* equal by rtol and atol; false: by tolerance */
    double tolerance;  /* share of the largest change that counts as none */
    double rtol, atol; /* |a - b| <= atol + rtol * |b| is equal */
    bool equal_nan;
    int64_t rows; /* differing elements that are shown */
};

struct compare_differing {
    int64_t at; /* element, in C order */
    double difference;
    double rank; /* order of rows: non-finite differences, then the largest */
};

struct compare_tally { /* statistics of the differences, small ones counted as 0 */
    uint64_t count, nan, pos_inf, neg_inf, zero, positive, negative;
    double min, max, mean;
    uint64_t changed; /* elements that differ by the rule */
    double bound;     /* changes up to this count as none */
    double max_abs;   /* largest finite |difference| */
};

/* Two passes over the elements; ends early when the work is interrupted. */
void compare_elements(const struct compare_sides *sides, const struct compare_rule *rule,
                      struct repl_work *work, struct compare_tally *tally,
                      struct compare_differing *worst, size_t *worst_count);

void compare_show(struct command_call *call, const struct compare_sides *sides,
                  const struct compare_rule *rule, const struct compare_tally *tally,
                  const struct compare_differing *worst, size_t worst_count,
                  const struct gd_stats *a, const struct gd_stats *b);

#endif
