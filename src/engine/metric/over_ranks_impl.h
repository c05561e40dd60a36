// SPDX-License-Identifier: GPL-3.0-or-later
/* Shared by over_ranks*.c only. */
#ifndef GD_ENGINE_OVER_RANKS_IMPL_H
#define GD_ENGINE_OVER_RANKS_IMPL_H

#include "engine/metric/over_ranks.h"
#include "engine/ranks_impl.h"

/* When something was counted. Ranks count epochs, and trainings of the same program, alike. */
struct over_key {
    int64_t training;     /* grows when steps begin again */
    int64_t major, minor; /* epoch and step; of an evaluation its step, and which one after it */
    int64_t step;
    int64_t after; /* of an evaluation: the last step that the rank had counted then */
};

struct over_part {
    struct over_part *next;
    struct over_key key;
    size_t size;
    bool late; /* gd_metric_part */
    char *missing;
    char counts[];
};

struct over_rank {
    struct over_rank *next;
    int session, rank; /* numbers */
    bool ended, failed;
    bool too_far; /* it is so far ahead that its counts were dropped */
    bool absent;  /* it does not evaluate, or does not report a loss */
    bool counted; /* samples of it are in the sum */
    bool any;     /* `newest` is set */
    struct over_key newest;
    struct over_part *first, *last; /* that wait for other ranks */
};

struct over_series { /* the training, or the evaluations, of a metric */
    struct over_rank *ranks;
    struct gd_metric *sum;
    struct over_key key; /* the last one that was added */
    bool any;            /* there is one */
    bool fresh;          /* samples were added at `key` */
    bool late;           /* some of them came when its step had ended */
    int64_t shown;       /* the newest step of this training for which there are samples */
    char why[300];       /* why the sum is not over all samples; "" it is */
    char told[300];      /* the last reason that was shown */
    int told_ranks;      /* the last number of ranks that was shown; 0: all */
};

struct over_metric {
    struct over_metric *next;
    struct gd_metric_spec spec;
    char *definition;
    size_t bytes;             /* of parts that wait */
    struct over_series of[2]; /* of the training, of evaluations */
};

struct over_ranks {
    struct over_metric *first;
    bool busy, again;
};

struct over_metric *over_ranks_find(const struct gd_ranks *ranks, const char *name);
struct over_rank *over_ranks_rank(const struct over_series *series, int session);
/* < 0, 0, > 0 */
int over_ranks_compare(const struct over_key *a, const struct over_key *b);
/* Keeps a part until it can be added. */
void over_ranks_keep(struct over_metric *metric, struct over_rank *rank, const struct over_key *key,
                     const struct gd_metric_part *part);
/* Adds what all ranks have passed, and reports the numbers to the sessions. */
void over_ranks_add_up(struct gd_ranks *ranks, struct over_metric *metric, bool evaluation);
/* Forgets the parts that wait. */
void over_ranks_drop_parts(struct over_metric *metric, struct over_rank *rank);

#endif
