// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * What the path of a tensor file says: its rank, its step, and the remaining name.
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
    int64_t epoch; /* MindSpore: has_step is set too, and the step counts within the epoch */
};

/* Takes one directory of the path; adds nothing to the name if it is a rank or step. */
void gd_path_directory(const char *text, struct gd_path_facts *facts, struct gd_buf *name);
/* Takes the file name; `extension` is stripped. */
void gd_path_file(const char *base, size_t len, const char *extension, struct gd_path_facts *facts,
                  struct gd_buf *name);

/* Turns a parameter's name into a node name: "layer1.0.weight" becomes "layer1/0/weight". */
void gd_node_name_of(const char *name, struct gd_buf *out);

#endif
