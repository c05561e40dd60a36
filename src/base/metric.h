// SPDX-License-Identifier: MIT
/*
 * Metrics over pairs of outputs and labels: accuracy, F1, AUC and so on, from counts and sums.
 *
 * A metric is defined by words (gd_metric_parse), takes one batch at a time (gd_metric_update) and
 * gives its numbers at any moment (gd_metric_numbers). Results are those of scikit-learn; docs/
 * metrics.md says where mindspore.train differs and which option gives its result. A batch that
 * cannot be used changes nothing: the error says why. No element is read outside a tensor, and the
 * memory of a metric is bounded (GD_METRIC_MAX_...). One thread at a time.
 */
#ifndef GD_BASE_METRIC_H
#define GD_BASE_METRIC_H

#include "base/buf.h"
#include "base/tensor.h"

#define GD_METRIC_NAME        48
#define GD_METRIC_TEXT        1024  /* bytes of an expression or a node's name */
#define GD_METRIC_MAX_CLASSES 65536 /* of a confusion matrix GD_METRIC_MAX_MATRIX */
#define GD_METRIC_MAX_MATRIX  2048
#define GD_METRIC_MAX_SCORES  ((size_t)64 << 20) /* bytes of scores that auc keeps */
#define GD_METRIC_SHOWN       32                 /* classes that have a number of their own */

enum gd_metric_kind {
    GD_METRIC_ACCURACY,
    GD_METRIC_TOPK,
    GD_METRIC_LOSS,
    GD_METRIC_PRECISION,
    GD_METRIC_RECALL,
    GD_METRIC_F1,
    GD_METRIC_CONFUSION,
    GD_METRIC_MSE,
    GD_METRIC_MAE,
    GD_METRIC_R2,
    GD_METRIC_AUC,
    GD_METRIC_PERPLEXITY,
    GD_METRIC_CUSTOM, /* update and result as expressions */
    GD_METRIC_FILE,   /* a class in a Python file; only Python can run it */
    GD_METRIC_KINDS
};

enum gd_metric_average {
    GD_AVERAGE_DEFAULT, /* of two classes (one output per sample) the positive one, else macro */
    GD_AVERAGE_MACRO,   /* over the classes that occur among labels or predictions */
    GD_AVERAGE_ALL,     /* over all classes of the outputs */
    GD_AVERAGE_MICRO,
    GD_AVERAGE_WEIGHTED, /* by the number of labels */
    GD_AVERAGE_NONE,     /* a number for each class */
};

/* What the outputs and labels of a pair are. */
enum gd_metric_form {
    GD_FORM_UNKNOWN,       /* decided by types and shapes */
    GD_FORM_CLASSES,       /* a score for each class; labels are numbers or shares of classes */
    GD_FORM_LOGITS,        /* one score per label: positive above 0 */
    GD_FORM_PROBABILITIES, /* one score per label: positive from 0.5 on */
    GD_FORM_VALUES,        /* numbers, of a regression */
};

struct gd_metric_spec {
    enum gd_metric_kind kind;
    enum gd_metric_average average;
    char name[GD_METRIC_NAME];
    int64_t k;        /* of topk */
    int64_t of_class; /* -1: all */
    int64_t ignore;   /* label that does not count */
    double threshold;
    bool has_ignore, has_threshold;
    bool by_step;       /* cleared at each step rather than at each epoch */
    bool ranks;         /* also over all ranks */
    bool one_hot;       /* the labels are shares of classes */
    bool probabilities; /* the outputs are probabilities, not logits: perplexity, auc */
    bool per_sample;    /* mse and mae: divided by the number of samples, not of elements */
    /* node names with an optional ":SLOT"; "": found at the loss. file: of GD_METRIC_FILE */
    char outputs[GD_METRIC_TEXT], labels[GD_METRIC_TEXT], file[GD_METRIC_TEXT];
    char update[GD_METRIC_TEXT], result[GD_METRIC_TEXT]; /* of GD_METRIC_CUSTOM */
};

struct gd_metric_samples; /* metric_samples.c */

/* What is known of a pair except its tensors. */
struct gd_metric_pair {
    enum gd_metric_form form;
    bool has_ignore;
    int64_t ignore;                    /* of the loss; the definition's own comes first */
    struct gd_metric_samples *samples; /* what metrics of the same batch share; NULL: nothing */
};

struct gd_metric_number {
    char name[GD_METRIC_NAME + 24]; /* the metric's name, or NAME_CLASS */
    double value;                   /* NaN: undefined */
};

/* What could not be counted. */
struct gd_metric_counts {
    uint64_t samples;      /* counted; of regressions elements */
    uint64_t batches;      /* with at least one sample or none, all that were accepted */
    uint64_t nan;          /* samples with a NaN among their outputs: counted as NumPy does */
    uint64_t ignored;      /* labels equal to ignore_index */
    uint64_t out_of_range; /* labels that are not classes of the outputs */
    uint64_t not_kept;     /* samples beyond the memory of auc */
};

struct gd_metric;

const char *gd_metric_kind_name(enum gd_metric_kind kind);
const char *gd_metric_average_name(enum gd_metric_average average);
/* "NAME [KIND] ..." after the command's word: see docs/metrics.md. GD_EINVAL, GD_ENOTFOUND. */
int gd_metric_parse(const char *text, struct gd_metric_spec *ret, struct gd_err *err);
/* The definition as gd_metric_parse reads it. */
void gd_metric_text(const struct gd_metric_spec *spec, struct gd_buf *out);

int gd_metric_create(const struct gd_metric_spec *spec, struct gd_metric **ret, struct gd_err *err);
void gd_metric_destroy(struct gd_metric *metric); /* NULL is fine */
const struct gd_metric_spec *gd_metric_spec(const struct gd_metric *metric);
void gd_metric_clear(struct gd_metric *metric);
/* Adds a batch. GD_EINVAL (lengths, types), GD_ELIMIT, GD_ENOMEM: nothing was added. */
int gd_metric_update(struct gd_metric *metric, const struct gd_metric_pair *pair,
                     const struct gd_tensor *outputs, const struct gd_tensor *labels,
                     struct gd_err *err);
/* Classes of the samples, found once for all metrics that are given the same batch: call
 * gd_metric_samples_clear between two batches. NULL: no memory; fine in a pair. */
struct gd_metric_samples *gd_metric_samples_create(void);
void gd_metric_samples_clear(struct gd_metric_samples *samples);   /* NULL is fine */
void gd_metric_samples_destroy(struct gd_metric_samples *samples); /* NULL is fine */
/* How to count a batch where its tensors are, whose data is not read here: the JSON members
 * "do":"counts" and what a program needs for counts that gd_metric_merge takes (python/gradb/
 * counting.py), "do":"copy" if only gd_metric_update can count it, or "do":"nothing". Errors as of
 * gd_metric_update. */
int gd_metric_plan(const struct gd_metric *metric, const struct gd_metric_pair *pair,
                   const struct gd_tensor *outputs, const struct gd_tensor *labels,
                   struct gd_buf *out, struct gd_err *err);
/* Adds a number, to GD_METRIC_LOSS. */
void gd_metric_add(struct gd_metric *metric, double value);
const struct gd_metric_counts *gd_metric_counts(const struct gd_metric *metric);
/* Fills in up to `most` numbers and returns how many there are; 0: no samples yet, or a matrix. */
size_t gd_metric_numbers(const struct gd_metric *metric, struct gd_metric_number *ret, size_t most);
/* Classes seen so far; the count of samples with label `row` predicted as `column`. */
int64_t gd_metric_classes(const struct gd_metric *metric);
uint64_t gd_metric_cell(const struct gd_metric *metric, int64_t row, int64_t column);

/* The counts and sums as numbers in text (of auc all scores), and adding those of another process:
 * the result is that of all samples together. GD_EUNSUPPORTED for a metric from a file; GD_EPROTO:
 * nothing was added; GD_ENOMEM: clear it. */
int gd_metric_save(const struct gd_metric *metric, struct gd_buf *out, struct gd_err *err);
int gd_metric_merge(struct gd_metric *metric, const char *saved, struct gd_err *err);

#endif
