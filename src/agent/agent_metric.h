// SPDX-License-Identifier: MIT
/*
 * Metrics in the training process (base/metric.h). Their batches are given by the program
 * (gradb_metric_batch), or are the values of two nodes, copied when those have run. Numbers are
 * reported as scalars at the end of the step. All with the lock.
 *
 * A step's pair of values is counted when the step ends, or the nodes run again: a program reports
 * the epoch of a step only during the step, and the epoch's first batch must not be counted before
 * the metric was cleared.
 */
#ifndef GRADB_AGENT_METRIC_H
#define GRADB_AGENT_METRIC_H

#include "agent/agent_state.h"
#include "base/metric.h"

#define AGENT_METRIC "metric" /* the command of the debugger that carries requests */

struct agent_metric_side { /* outputs or labels of a metric on nodes */
    gradb_node node;       /* 0: the program gives the batches */
    uint32_t slot;
    struct agent_copy *copy;
    bool evaluation; /* the copy is of one */
    uint64_t at;     /* moment of the copy: grows */
};

struct agent_metric_sums { /* of training steps, or of an evaluation */
    struct gd_metric *metric;
    struct gd_metric *part;    /* over ranks: what was counted since it was sent; else NULL */
    uint64_t epoch;            /* how often they were cleared */
    char missing[160];         /* why some of it was not sent; "" all was */
    int64_t since, last;       /* steps of the first and last batch; 0: none */
    uint64_t refused;          /* batches that could not be counted */
    char why[GD_ERR_TEXT_MAX]; /* the last one */
    bool due;                  /* its numbers have not been reported */
    bool ended;                /* the evaluation is over: the next batch begins another one */
};

struct agent_metric {
    struct agent_metric *next;
    struct gd_metric_spec spec;
    char *definition; /* over ranks: its text; else NULL */
    struct agent_metric_sums train, eval;
    struct agent_metric_side outputs, labels;
    /* Which side ran first in the training: in an evaluation, too. 0: unknown */
    enum { FIRST_UNKNOWN, FIRST_OUTPUTS, FIRST_LABELS } first;
    bool told; /* an error was shown to the user */
};

struct agent_metrics {
    struct agent_metric *first;
    struct gd_metric_samples *samples; /* of the batch that the program gives */
    uint64_t moments;                  /* copies of values so far */
    int64_t epoch;                     /* of the last batch; INT64_MIN: unknown */
    bool told;                         /* the program says when epochs begin */
    double loss;                       /* of this step, counted at its end */
    bool has_loss;
};

/* Carries out a request: "add SPEC", "feed SPEC", "delete NAME", "delete", "clear", "epoch",
 * "list", and those of agent_metric_plan. Returns a code or -1; *reply is malloc'd. */
int agent_metric_request(struct agent *a, const char *request, char **reply, char text[160]);
/* Prepares the sums for a batch. */
void agent_metric_begin(struct agent *a, struct agent_metric *m, struct agent_metric_sums *sums);
/* Where the batch is counted. */
struct gd_metric *agent_metric_counting(const struct agent_metric_sums *sums);
/* Over ranks: sends what was counted since the last time, and adds it to the metric. */
void agent_metric_send(struct agent *a, struct agent_metric *m, struct agent_metric_sums *sums,
                       int64_t step);
/* A batch cannot be counted: reports the first one to the user. */
void agent_metric_refuse(struct agent *a, struct agent_metric *m, struct agent_metric_sums *sums,
                         const char *why);
/* Carries out, for batches that the program counts itself where their tensors are,
 * "plan train|eval FORM IGNORE|- OUTPUTS LABELS", both as DTYPE[,DIM...]: what to count for each
 * metric (gd_metric_plan), and "counts train|eval NAME COUNTS" (gd_metric_merge). A code or -1. */
int agent_metric_plan(struct agent *a, const char *request, struct gd_buf *out, char text[160]);
int agent_metric_counts(struct agent *a, const char *request, char text[160]);
/* The reply to "list". */
void agent_metric_list(const struct agent *a, struct gd_buf *out);
void agent_metric_clear(struct agent *a); /* forgets all metrics */
/* On the training thread: the node has run. */
void agent_metric_node(struct agent *a, gradb_node node);
/* The node is new. */
void agent_metric_added(struct agent *a, gradb_node node);
/* An evaluation begins, or ends, which reports its numbers. */
void agent_metric_evaluation(struct agent *a, bool begins);
void agent_metric_step_end(struct agent *a);
/* step: that it belongs to. */
void agent_metric_scalar(struct agent *a, const char *name, double value, int64_t step);

#endif
