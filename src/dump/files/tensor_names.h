// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * What the paths of tensor files tell: the rank, the step, and what is left as a name.
 *
 *     "rank_1/step_200/conv1.npy"   rank 1, step 200, "conv1"
 *     "ckpt/model-step=30.pt"       step 30, "ckpt/model"
 *     "checkpoint-500/model.safetensors"
 *     "lenet-2_1875.ckpt"           epoch 2, step 1875 of it, "lenet"
 */
#ifndef GD_DUMP_TENSOR_NAMES_H
#define GD_DUMP_TENSOR_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct gd_path_facts {
    bool has_rank, has_step, has_epoch;
    int rank;
    int64_t step;
    int64_t epoch; /* with a step of it, as MindSpore counts; has_step is set, too */
};

/* One directory of the path; nothing is added to name when it is a rank or a step. */
void gd_path_directory(const char *text, struct gd_path_facts *facts, struct gd_buf *name);
/* The file, without its extension, which is given. */
void gd_path_file(const char *base, size_t len, const char *extension, struct gd_path_facts *facts,
                  struct gd_buf *name);

/* A parameter's name as that of a node: its parts become scopes ("layer1.0.weight" is
 * "layer1/0/weight"). */
void gd_node_name_of(const char *name, struct gd_buf *out);

#endif
