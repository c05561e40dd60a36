// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Losses printed by a training, one per line: "step: 12, loss: 3.41, overflow:False, scale:1024". A
 * line counts if a number follows the tag (with ":", "=" or blanks between); nan and inf are
 * numbers.
 */
#ifndef GD_COMPARE_LOSSLOG_H
#define GD_COMPARE_LOSSLOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct gd_loss {
    int64_t step, epoch; /* as printed; -1: none */
    double value;
    bool has_overflow, overflow, has_scale;
    double scale;
};

struct gd_loss_log {
    struct gd_loss *loss;
    size_t count, room;
    bool has_steps;  /* all lines have steps, ascending */
    bool has_epochs; /* all lines have epochs and steps, ascending by epoch, then step */
};
int gd_loss_log_read(const char *path, const char *tag, struct gd_loss_log *ret,
                     struct gd_err *err);
/* Parses a line without its end; false: it has no loss. */
bool gd_loss_line(const char *line, const char *tag, struct gd_loss *ret);
void gd_loss_log_free(struct gd_loss_log *log);

struct gd_loss_figures {
    double max, min, mean;
    size_t nonfinite, first_nonfinite; /* index; count if none */
    size_t overflows, longest_run, last_hundred, last_counted;
    double least_scale; /* NaN: none printed */
};
void gd_loss_figures(const struct gd_loss_log *log, struct gd_loss_figures *ret);

struct gd_loss_difference {
    size_t pairs;
    size_t nonfinite; /* of these, those with the same NaN or infinity on both sides */
    bool by_step;
    double max_abs, max_rel; /* |l - r|, |l - r| / |l| */
    /* |l - r| > tolerance max(|l|, |r|), or only one of them is finite */
    bool differs;
    size_t first_a, first_b; /* where it differs first */
};
void gd_loss_compare(const struct gd_loss_log *a, const struct gd_loss_log *b, double tolerance,
                     struct gd_loss_difference *ret);

#endif
