// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Runs charlm alone and with gradb attached, timed by the lines that it prints, one per step.
 * Start-up does not count; a single delayed step does not matter.
 */
#ifndef BENCH_BENCH_CHARLM_H
#define BENCH_BENCH_CHARLM_H

#include <stdint.h>

struct bench_charlm {
    const char *gradb, *charlm; /* the programs */
    const char *size[9];        /* arguments for the model's size, NULL-terminated */
    unsigned steps, warm_up;    /* number of steps, of which the first warm_up do not count */
};

/* Seconds of the median step without a debugger. */
double bench_charlm_alone(const struct bench_charlm *run);

struct bench_charlm_watch { /* from the last `info watchpoints` of the commands; 0: none */
    uint64_t tensors, report_bytes, compute_ns;
};
/* The same with gradb, which runs the commands (NULL-terminated) at the first stop. */
double bench_charlm_attached(const struct bench_charlm *run, const char *const commands[],
                             struct bench_charlm_watch *watch);

#endif
