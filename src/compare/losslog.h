// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Losses as a training prints them, one a line: "step: 12, loss: 3.41, overflow:False, scale:1024".
 * A line counts when a number stands behind the tag (":", "=" and blanks between them do not
 * matter); nan and inf are numbers.
 */
#ifndef GD_COMPARE_LOSSLOG_H
#define GD_COMPARE_LOSSLOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct gd_loss {
    int64_t step, epoch; /* as printed; -1: none is */
    double value;
    bool has_overflow, overflow, has_scale;
    double scale;
};

struct gd_loss_log {
    struct gd_loss *loss;
    size_t count, room;
    bool has_steps;  /* in all lines, ascending */
    bool has_epochs; /* steps and epochs in all lines, ascending by epoch and then by step */
};
int gd_loss_log_read(const char *path, const char *tag, struct gd_loss_log *ret,
                     struct gd_err *err);
/* One line without its end; false: there is no loss in it. */
bool gd_loss_line(const char *line, const char *tag, struct gd_loss *ret);
void gd_loss_log_free(struct gd_loss_log *log);

struct gd_loss_figures {
    double max, min, mean;
    size_t nonfinite, first_nonfinite; /* index; count when none */
    size_t overflows, longest_run, last_hundred, last_counted;
    double least_scale; /* NaN: none is printed */
};
void gd_loss_figures(const struct gd_loss_log *log, struct gd_loss_figures *ret);

struct gd_loss_difference {
    size_t pairs;
    size_t nonfinite; /* of these: NaN or infinite on both sides, and the same */
    bool by_step;
    double max_abs, max_rel; /* |l - r|, |l - r| / |l| */
    bool differs;            /* |l - r| > tolerance max(|l|, |r|), or only one is finite */
    size_t first_a, first_b; /* where it does first */
};
void gd_loss_compare(const struct gd_loss_log *a, const struct gd_loss_log *b, double tolerance,
                     struct gd_loss_difference *ret);

#endif
