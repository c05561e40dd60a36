// SPDX-License-Identifier: MIT
/*
 * Dead units: a unit is an index of the last axis (a neuron, a channel); it is dead when it was
 * zero throughout in each of the last looks at a tensor. Keeps a count for each unit from look to
 * look.
 */
#ifndef GD_BASE_UNITS_H
#define GD_BASE_UNITS_H

#include "base/tensor.h"

struct gd_units;

int gd_units_create(struct gd_units **ret, struct gd_err *err);
void gd_units_destroy(struct gd_units *units);
/* A look. Another length of the last axis, or another dtype, starts anew. NaN is not zero.
 * GD_EUNSUPPORTED: the dtype has no numbers. GD_ENOMEM. */
int gd_units_look(struct gd_units *units, const struct gd_tensor *tensor, struct gd_err *err);
/* Units, and how many were zero in each of the last `steps` looks (0 before there were as many). */
void gd_units_count(const struct gd_units *units, uint32_t steps, uint64_t *total, uint64_t *dead);

#endif
