// SPDX-License-Identifier: MIT
/*
 * The network: token and position embeddings, blocks of layer norm, causal self-attention and an
 * MLP with residual connections, a final layer norm, an output matrix, cross-entropy. Forward and
 * backward are written by hand as operators of a graph.
 */
#ifndef CHARLM_MODEL_H
#define CHARLM_MODEL_H

#include "faults.h"
#include "graph.h"
#include "rng.h"

struct config {
    size_t layers, heads, width, context, batch, vocabulary;
    enum activation activation;
    enum fault fault;
    uint64_t seed;
};

struct param {
    const char *name; /* without the network's scope: "block0/attn/qkv.weight" */
    struct tensor *value;
    struct tensor *grad;
    bool decays; /* matrices decay, biases and norms do not */
};

struct linear {
    struct param *weight, *bias;
};
struct norm {
    struct param *weight, *bias;
};

struct block { /* parameters, and values that the backward pass needs */
    struct norm norm1, norm2;
    struct linear qkv, attn_out, fc, mlp_out;
    struct tensor *ln1, *q, *k, *v, *scores, *attn, *merged;
    struct tensor *ln2, *hidden, *active;
};

struct model {
    struct config config;
    struct graph *graph;
    struct param *params;
    size_t param_count;
    struct param *token, *position;
    struct block *blocks;
    struct norm final_norm;
    struct linear head;
    struct tensor *input, *target; /* ids (batch, context); set by the caller each step */
    struct tensor *embedded, *final, *logits, *sharpened, *probs, *picked, *logp;
    struct tensor *loss;        /* scalar */
    struct tensor *scaled_loss; /* loss * loss_scale; loss itself without scaling */
    struct tensor *scale;       /* loss_scale as a value of the graph; NULL without scaling */
    float attn_scale;           /* 1 / sqrt(head size) */
    float logit_scale;          /* 1 without a fault; both are set before each step */
    float loss_scale;
};

/* Adds the whole graph up to the gradients of all parameters, and initialises the parameters from
 * config->seed. `graph` stays the caller's and must outlive the model. */
struct model *model_create(const struct config *config, struct graph *graph);
void model_destroy(struct model *model);

/* Forward and backward of step 1, 2, ... on input and target. model_loss is the mean negative
 * log-likelihood of that forward pass. */
void model_forward(struct model *model, int64_t step);
void model_backward(struct model *model);
float model_loss(const struct model *model);
size_t model_parameters(const struct model *model); /* number of elements of all parameters */

#endif
