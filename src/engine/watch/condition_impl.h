// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The table of conditions (condition_table.c), for condition.c.
 */
#ifndef GD_ENGINE_CONDITION_IMPL_H
#define GD_ENGINE_CONDITION_IMPL_H

#include "engine/watch/condition.h"

extern const struct gd_condition gd_condition_table[];
extern const size_t gd_condition_total;

#endif
