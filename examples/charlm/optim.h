// SPDX-License-Identifier: MIT
/*
 * AdamW with decoupled weight decay behind a clip of the gradients' global norm, as operators of
 * the model's graph.
 */
#ifndef CHARLM_OPTIM_H
#define CHARLM_OPTIM_H

#include "model.h"

struct optim {
    struct model *model;
    float lr;       /* before each step */
    float max_norm; /* of all gradients together */
    float decay;
    int64_t step;         /* of the update that runs */
    struct tensor *norm;  /* scalar: the norm before clipping */
    struct tensor *scale; /* scalar: what gradients are multiplied by */
};

/* States the optimizer's operators. Belongs to the model's graph. */
struct optim *optim_create(struct model *model, float max_norm, float decay);
/* One update with learning rate lr; steps count from 1. */
void optim_step(struct optim *optim, int64_t step, float lr);

#endif
