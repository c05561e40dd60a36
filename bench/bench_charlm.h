// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The bundled trainer by itself and with gradb attached, timed from outside by the lines that it
 * prints: one a step. Start-up does not count, and neither does a single step that was held up.
 */
#ifndef BENCH_BENCH_CHARLM_H
#define BENCH_BENCH_CHARLM_H

#include <stdint.h>

struct bench_charlm {
    const char *gradb, *charlm; /* the programs */
    const char *size[9];        /* arguments of the model's size, NULL ends them */
    unsigned steps, warm_up;    /* steps altogether, and those at the start that do not count */
};

/* Seconds of the median step with nobody listening. */
double bench_charlm_alone(const struct bench_charlm *run);

struct bench_charlm_watch { /* of the last `info watchpoints` among the commands; 0: none */
    uint64_t tensors, report_bytes, compute_ns;
};
/* The same with gradb, which runs the commands (NULL ends them) at the first stop. */
double bench_charlm_attached(const struct bench_charlm *run, const char *const commands[],
                             struct bench_charlm_watch *watch);

#endif
