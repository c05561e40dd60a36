// SPDX-License-Identifier: MIT
/*
 * Dead units. A unit is an index of the last axis (a neuron, a channel); it is dead if it was zero
 * throughout in each of the last tensors passed to gd_units_look. Keeps a count per unit.
 */
#ifndef GD_BASE_UNITS_H
#define GD_BASE_UNITS_H

#include "base/tensor.h"

struct gd_units;

int gd_units_create(struct gd_units **ret, struct gd_err *err);
void gd_units_destroy(struct gd_units *units);
/* Takes the next tensor into account. Another length of the last axis, or another dtype, resets the
 * counts. NaN is not zero. Returns GD_EUNSUPPORTED (not a numeric dtype) or GD_ENOMEM. */
int gd_units_look(struct gd_units *units, const struct gd_tensor *tensor, struct gd_err *err);
/* Number of units, and how many were zero in each of the last `steps` tensors (0 until there were
 * that many). */
void gd_units_count(const struct gd_units *units, uint32_t steps, uint64_t *total, uint64_t *dead);

#endif
