// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * MindSpore's ValueProto and TypeProto: attribute values as text, output types as slots.
 */
#ifndef GD_MSGRAPH_MS_VALUE_H
#define GD_MSGRAPH_MS_VALUE_H

#include "base/buf.h"
#include "engine/graph/graph.h"
#include "mindspore/pbread.h"

/* The element type of a wire number; GD_DT_NONE: unknown, or without elements. */
enum gd_dtype gd_ms_dtype(int64_t wire);

/* Appends the value in Python's notation: True, 3, 0.5, [1, 2], (1, 2), {k: v}. Lists nested deeper
 * than eight levels become `...`, tensor contents are left out. If the buffer overflows,
 * out->failed is set. False: not a ValueProto. */
bool gd_ms_value_text(const uint8_t *data, size_t len, struct gd_buf *out);

/* The slots of a TypeProto, tuples flattened; stores at most `max`, *ret counts them all. A type
 * other than tensor and tuple is one slot of shape (). False: not a TypeProto. */
bool gd_ms_type_outputs(const uint8_t *data, size_t len, struct gd_output *outputs, uint32_t max,
                        uint32_t *ret);

/* The slot of a constant (dtype and shape), and its value if it is an integer. */
bool gd_ms_value_output(const uint8_t *data, size_t len, struct gd_output *ret, bool *is_int,
                        int64_t *integer);

#endif
