// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Fetched tensors and statistics, by (node, slot, current | previous), within a byte limit: the
 * least recently used goes first. When a new step begins, values of the step that just ended become
 * the previous ones; all current values are dropped when the training moves.
 */
#ifndef GD_ENGINE_CACHE_H
#define GD_ENGINE_CACHE_H

#include "engine/target.h"

struct gd_cache;

int gd_cache_create(uint64_t max_bytes, struct gd_cache **ret, struct gd_err *err);
void gd_cache_destroy(struct gd_cache *cache);
void gd_cache_set_max(struct gd_cache *cache, uint64_t max_bytes);

/* Keeps a reference; replaces an older value. A tensor larger than the limit is not kept. `step` is
 * the step of the value. */
int gd_cache_put(struct gd_cache *cache, const struct gd_tensor_ref *ref, struct gd_tensor *tensor,
                 int64_t step);
int gd_cache_put_stats(struct gd_cache *cache, const struct gd_tensor_ref *ref, enum gd_dtype dtype,
                       const struct gd_shape *shape, const struct gd_stats *stats, int64_t step);
/* Borrowed until the next put, move or clear; NULL when absent. */
struct gd_tensor *gd_cache_get(struct gd_cache *cache, const struct gd_tensor_ref *ref,
                               int64_t *step);
bool gd_cache_get_stats(struct gd_cache *cache, const struct gd_tensor_ref *ref,
                        enum gd_dtype *dtype, struct gd_shape *shape, struct gd_stats *stats,
                        int64_t *step);

bool gd_cache_has_stats(struct gd_cache *cache, const struct gd_tensor_ref *ref);

/* The training moved: a current value of `last_step` becomes the previous one if new_step ==
 * last_step + 1; other current values are dropped. A move within the step drops current values. */
void gd_cache_move(struct gd_cache *cache, int64_t last_step, int64_t new_step);
uint64_t gd_cache_bytes(const struct gd_cache *cache);

#endif
