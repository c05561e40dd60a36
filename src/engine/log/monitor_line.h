// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The lines that MindSpore's LossMonitor and TimeMonitor print, of 1.x and 2.x:
 *     epoch: 1 step: 12, loss is 2.3025
 *     epoch: 1 step 12, loss is 2.3025
 *     Train epoch time: 1234.567 ms, per step time: 12.345 ms
 *     epoch time: 1234.567 ms, per step time: 12.345 ms, avg loss: 2.3
 * Steps restart in each epoch; a gd_monitor counts them through, from the first line that it sees.
 */
#ifndef GD_ENGINE_MONITOR_LINE_H
#define GD_ENGINE_MONITOR_LINE_H

#include <stdbool.h>
#include <stdint.h>

struct gd_monitor_line {
    int64_t epoch, step;      /* of a loss; -1: none */
    double loss;              /* NaN and infinities count */
    double epoch_ms, step_ms; /* of a time line; -1: none */
};
/* False: neither of them. */
bool gd_monitor_parse(const char *line, struct gd_monitor_line *ret);

struct gd_monitor {
    int64_t epoch;     /* the current one */
    int64_t last;      /* the last step seen in it; 0: none yet */
    int64_t per_epoch; /* steps of an epoch, as the time line says or the longest seen; 0 unknown */
    int64_t before;    /* steps of the epochs before it */
};
/* The step since the start of the log of a line with a loss; of a time line, the last one. */
int64_t gd_monitor_step(struct gd_monitor *monitor, const struct gd_monitor_line *line);

#endif
