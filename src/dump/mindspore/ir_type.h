// SPDX-License-Identifier: GPL-3.0-or-later
/* Parses parts of MindSpore's textual IR: brackets, lists, tensor types. */
#ifndef GD_DUMP_IR_TYPE_H
#define GD_DUMP_IR_TYPE_H

#include "engine/graph/graph.h"

#define GD_IR_MAX_OUTPUTS 64

/* Bytes up to and including the bracket that closes the one at `text`; 0: unclosed. */
size_t gd_ir_bracket(const char *text);
/* Bytes up to the comma or closing bracket that ends a list item. */
size_t gd_ir_item(const char *text);
/* Parses the tensors of "<Tensor[Float32], (2, 3)>, <...>" or "<Tensor[Float32]x[const vector][2,
 * 3]>"; returns their number, at most GD_IR_MAX_OUTPUTS. Other types count, without an element
 * type. */
uint32_t gd_ir_types(const char *text, size_t len, struct gd_output *ret);

#endif
