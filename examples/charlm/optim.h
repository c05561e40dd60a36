// SPDX-License-Identifier: MIT
/*
 * AdamW with decoupled weight decay, after clipping by the global norm, as operators of the model's
 * graph.
 */
#ifndef CHARLM_OPTIM_H
#define CHARLM_OPTIM_H

#include "model.h"

struct optim {
    struct model *model;
    float lr;       /* set before each step */
    float max_norm; /* for all gradients together */
    float decay;
    int64_t step;         /* of the current update */
    struct tensor *norm;  /* scalar: norm before clipping */
    struct tensor *scale; /* scalar: factor for the gradients */
};

/* Adds the optimizer's operators to the model's graph, which owns the result. */
struct optim *optim_create(struct model *model, float max_norm, float decay);
/* One update with learning rate lr; the first step is 1. */
void optim_step(struct optim *optim, int64_t step, float lr);

#endif
