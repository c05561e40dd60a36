// SPDX-License-Identifier: MIT
/* Where values are in memory, and copies of them. */
#ifndef GRADB_AGENT_TENSOR_H
#define GRADB_AGENT_TENSOR_H

#include "agent/agent_state.h"

struct agent_value {
    struct gd_tensor tensor; /* a view of the program's memory; not reference counted */
    int64_t step;
};
/* Locates a value in memory. Returns a Gradb__V1__RequestError__Code, or -1 for success; text (160
 * bytes) says why it failed. */
int agent_locate(const struct agent *a, uint32_t node, uint32_t slot,
                 Gradb__V1__Iteration iteration, struct agent_value *ret, char text[160]);
/* Narrows the value to a slice. Returns as above. */
int agent_cut(struct agent_value *value, size_t count, Gradb__V1__SliceItem *const *items,
              char text[160]);
/* The value's type, shape and address as reported by the program; false: not reported. */
bool agent_as_told(const struct agent *a, uint32_t node, uint32_t slot, struct agent_value *ret);
/* Copies elements [first, first + count) in C order to out. */
void agent_gather(const struct gd_tensor *tensor, int64_t first, int64_t count, void *out);
/* The step that a slot's value most likely belongs to; -1: unknown. */
int64_t agent_guess_step(const struct agent *a, uint32_t node, bool previous);
/* Copies every located slot of a node into its `previous` copies. False: out of memory. */
bool agent_keep_node(const struct agent *a, uint32_t node);
/* Copies a value into *slot, allocating it if NULL. False: out of memory. */
bool agent_copy_take(struct agent_copy **slot, const struct agent_value *value);
void agent_copy_free(struct agent_copy *copy);
/* With the lock: recomputes from the nodes' flags whose previous values are kept. */
void agent_keep_collect(struct agent *a);
/* Whether a copy was left out for lack of memory; text (160 bytes) says so. */
bool agent_capture_left_out(const struct agent *a, uint32_t node, char text[160]);

#endif
