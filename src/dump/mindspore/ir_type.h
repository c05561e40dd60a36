// SPDX-License-Identifier: GPL-3.0-or-later
/* Pieces of MindSpore's IR text: brackets, lists, types of tensors. */
#ifndef GD_DUMP_IR_TYPE_H
#define GD_DUMP_IR_TYPE_H

#include "engine/graph/graph.h"

#define GD_IR_MAX_OUTPUTS 64

/* Bytes up to and with the bracket that closes the one at `text`; 0: none does. */
size_t gd_ir_bracket(const char *text);
/* Bytes up to the comma or the closing bracket that ends an item of a list. */
size_t gd_ir_item(const char *text);
/* The tensors of "<Tensor[Float32], (2, 3)>, <...>" or "<Tensor[Float32]x[const vector][2, 3]>", at
 * most GD_IR_MAX_OUTPUTS; how many. What is no tensor has no type and counts. */
uint32_t gd_ir_types(const char *text, size_t len, struct gd_output *ret);

#endif
