// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Which of the usual schemes the statistics of an initial weight agree with. Nothing is assumed
 * about the names of a framework: a weight of two or more axes has a fan_in and a fan_out, and the
 * schemes are compared with its measured deviation within the sampling error of that many elements.
 */
#ifndef GD_ENGINE_INIT_SCHEME_H
#define GD_ENGINE_INIT_SCHEME_H

#include "base/stats.h"

#define GD_INIT_MATCHES 8
#define GD_INIT_SIGMAS  4  /* sampling errors that a scheme may be off */
#define GD_INIT_FEWEST  30 /* elements; with fewer the schemes cannot be told apart */
#define GD_INIT_FACTOR  3  /* off the nearest scheme: exploding or vanishing */

enum gd_init_shape { /* of the distribution, by abs_mean / std and the largest value */
                     GD_INIT_UNKNOWN = 0,
                     GD_INIT_UNIFORM,
                     GD_INIT_NORMAL,
                     GD_INIT_TRUNCATED, /* a normal one without its tails */
                     GD_INIT_CONSTANT,
                     GD_INIT_ORTHOGONAL,
};
const char *gd_init_shape_name(enum gd_init_shape shape);

struct gd_init_match {
    const char *name; /* "He", "Xavier", "N(0, 0.02)" */
    const char *fan;  /* "fan_in", "fan_out", "": needs none */
    double std;       /* expected */
};

struct gd_init_verdict {
    int64_t fan_in, fan_out; /* 0: fewer than two axes */
    enum gd_init_shape shape;
    double error; /* of the measured deviation: its standard error */
    struct gd_init_match match[GD_INIT_MATCHES];
    int match_count;              /* those whose deviation agrees, nearest first */
    struct gd_init_match nearest; /* of all, also if none matches; name NULL: none applies */
    bool few;                     /* too few elements to tell */
    bool far;                     /* off every scheme by GD_INIT_FACTOR or more */
};

struct gd_init_hints {   /* what is known in addition to the statistics */
    bool recurrent;      /* of an RNN, LSTM or GRU: the first axis has 1, 4 or 3 gates */
    bool not_orthogonal; /* its values were checked */
};

/* The axes are those of PyTorch and MindSpore: (out, in, ...). By the statistics alone, rows of
 * length 1 look orthogonal, too. */
void gd_init_judge(const struct gd_shape *shape, const struct gd_stats *stats,
                   const struct gd_init_hints *hints, struct gd_init_verdict *ret);

#endif
