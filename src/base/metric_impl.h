// SPDX-License-Identifier: MIT
/* What the parts of a metric share. */
#ifndef GD_BASE_METRIC_IMPL_H
#define GD_BASE_METRIC_IMPL_H

#include "base/metric.h"

struct metric_program; /* metric_expression.c */

struct metric_column { /* of a regression: sums of the elements in one column */
    double shift;      /* the first label, which is subtracted from all */
    double sum, sum_sq, squares, absolutes; /* of labels; of differences */
    uint64_t count;
};

struct metric_scores { /* of auc, for one class: sorted */
    double *of[2];     /* of negative and of positive samples */
    size_t count[2], cap[2];
    uint64_t twice_above; /* pairs with the positive above the negative, and half of the ties */
};

struct gd_metric {
    struct gd_metric_spec spec;
    struct gd_metric_counts counts;
    int64_t classes, class_room;
    bool binary; /* the samples have one output each */
    uint64_t correct;
    uint64_t *right, *predicted, *actual; /* per class */
    uint64_t *matrix;                     /* class_room * class_room */
    double sum;                           /* of log likelihoods, of losses */
    struct metric_column *columns;
    int64_t column_count;
    uint64_t rows;
    struct metric_scores *scores;
    int64_t score_classes;
    struct metric_program *program;
};

/* A batch as classes. Samples are counted over all axes but the classes', in C order. */
struct metric_batch {
    const struct gd_tensor *outputs, *labels;
    int axis; /* of the classes; -1: one output per label */
    int64_t samples, classes;
    bool shares; /* labels are shares of classes, laid out like the outputs */
    bool ready;  /* outputs are numbers of classes */
    double threshold;
    bool has_ignore;
    int64_t ignore;
    double *scores; /* room for one sample; owned by the caller; NULL: not needed */
    struct gd_metric_samples *shared;
};

struct metric_sample {
    int32_t label;     /* LABEL_OK: from 0 on; else minus enum metric_label */
    int32_t predicted; /* ~CLASS: one of its scores is NaN */
};

enum metric_label { LABEL_OK, LABEL_IGNORED, LABEL_OUTSIDE };

/* ---- metric_batch.c: how outputs and labels belong together ---- */
int metric_batch_of(const struct gd_metric_spec *spec, const struct gd_metric_pair *pair,
                    const struct gd_tensor *outputs, const struct gd_tensor *labels,
                    struct metric_batch *ret, struct gd_err *err);
/* The scores of a sample into batch->scores; whether one is NaN. */
bool metric_scores_of(const struct metric_batch *batch, int64_t sample);
/* The class that a sample is predicted to be; *nan: one of its scores is NaN, as NumPy the first
 * of them is the greatest. */
int64_t metric_predicted(const struct metric_batch *batch, int64_t sample, bool *nan);
enum metric_label metric_label_of(const struct metric_batch *batch, int64_t sample, int64_t *ret);
/* "outputs have shape (4, 3), labels (5,)" */
int metric_unequal(const struct gd_tensor *outputs, const struct gd_tensor *labels,
                   struct gd_err *err);

/* ---- metric_samples.c ---- */
/* The class and prediction of each sample, in batch->shared or, where there is none, in *own, which
 * the caller frees. NULL: no memory. */
const struct metric_sample *metric_samples_of(const struct metric_batch *batch,
                                              struct metric_sample **own);

/* ---- metric_classes.c, metric_values.c, metric_auc.c, metric_expression.c ---- */
/* Whether the batch fits the metric, as the updates check it. */
int metric_check_classes(const struct gd_metric *metric, const struct metric_batch *batch,
                         struct gd_err *err);
int metric_check_values(const struct gd_metric *metric, const struct gd_tensor *outputs,
                        const struct gd_tensor *labels, int64_t *columns, struct gd_err *err);
int metric_update_classes(struct gd_metric *metric, const struct metric_batch *batch,
                          struct gd_err *err);
bool metric_needs_classes(const struct gd_metric *metric); /* counts of each class */
int metric_need_classes(struct gd_metric *metric, int64_t classes, struct gd_err *err);
double metric_class_value(const struct gd_metric *metric, int64_t index);
double metric_average_value(const struct gd_metric *metric);
int metric_update_values(struct gd_metric *metric, const struct gd_tensor *outputs,
                         const struct gd_tensor *labels, struct gd_err *err);
double metric_values_result(const struct gd_metric *metric);
int metric_update_auc(struct gd_metric *metric, const struct metric_batch *batch,
                      struct gd_err *err);
double metric_auc_class(const struct gd_metric *metric, int64_t index);
double metric_auc_result(const struct gd_metric *metric);
void metric_auc_free(struct gd_metric *metric);
/* The scores, after the counts in gd_metric_save; nothing for other metrics. Reading them: `add`
 * false checks them only. False: they do not fit this metric. */
void metric_auc_save(const struct gd_metric *metric, struct gd_buf *out);
bool metric_auc_merge(struct gd_metric *metric, const char **at, bool add);
int metric_program_create(const struct gd_metric_spec *spec, struct metric_program **ret,
                          struct gd_err *err);
void metric_program_destroy(struct metric_program *program);
void metric_program_clear(struct metric_program *program);
int metric_program_update(struct metric_program *program, const struct gd_tensor *outputs,
                          const struct gd_tensor *labels, struct gd_err *err);
double metric_program_result(const struct metric_program *program);
size_t metric_program_sums(struct metric_program *program, double **ret);

#endif
