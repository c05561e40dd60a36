// SPDX-License-Identifier: MIT
/* Comparisons for qsort() and bsearch(): several keys are joined with ?:, the first one decides. */
#ifndef GD_BASE_ORDER_H
#define GD_BASE_ORDER_H

/* -1, 0 or 1. Evaluates its arguments twice. */
#define GD_ORDER(a, b) (((a) > (b)) - ((a) < (b)))

#endif
