// SPDX-License-Identifier: MIT
/*
 * A training run: text, model, optimizer and the metrics of the loop.
 */
#ifndef CHARLM_TRAIN_H
#define CHARLM_TRAIN_H

#include "data.h"
#include "optim.h"

struct train_options {
    struct config config; /* vocabulary is set from the text */
    float lr;
    int threads;
    const char *data; /* NULL: the default text */
};

#define TRAIN_DEFAULTS                                                                             \
    {                                                                                              \
        .config = {.layers = 2, .heads = 4, .width = 64, .context = 64, .batch = 8, .seed = 1},    \
        .lr = 3e-3f, .threads = 1                                                                  \
    }

struct train {
    struct train_options options;
    struct data data;
    struct pool *pool;
    struct graph *graph;
    struct model *model;
    struct optim *optim;
    struct rng rng;            /* for the batches */
    int64_t step;              /* last step taken */
    float loss, lr, grad_norm; /* of that step */
};

/* Returns 0, or -1 with a message in why. */
int train_create(const struct train_options *options, struct train **ret, char *why,
                 size_t why_size);
void train_destroy(struct train *train);

/* The three parts of step `train->step + 1`; call them in this order. */
void train_forward(struct train *train); /* takes a batch, sets step and loss */
void train_backward(struct train *train);
void train_update(struct train *train); /* sets lr and grad_norm */

/* The learning rate of the next step; the warm-up continues from one that is set. */
double train_rate(const struct train *train);
void train_set_rate(struct train *train, double rate);

/* The epoch of a step, and its place in it, from 1. An epoch has as many batches as the text. */
int64_t train_epoch(const struct train *train, int64_t step);
int64_t train_batch(const struct train *train, int64_t step);

/* Writes DIR/charlm-STEP.bin atomically: "charlm 1\n", a line of sizes, then per parameter a line
 * "NAME COUNT\n" and its float32 values. Returns 0 with the path in why, or -1 with a message in
 * why. */
int train_save(const struct train *train, const char *dir, char *why, size_t why_size);

#endif
