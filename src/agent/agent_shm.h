// SPDX-License-Identifier: MIT
/* Shared memory for values. Used by the I/O thread only. */
#ifndef GRADB_AGENT_SHM_H
#define GRADB_AGENT_SHM_H

#include "agent/agent_state.h"

struct agent_shm;
struct agent_shm *agent_shm_create(void); /* NULL: unavailable on this system */
/* Unlinks and unmaps everything; the debugger can still read what it has mapped. */
void agent_shm_destroy(struct agent_shm *shm);
bool agent_shm_probe(struct agent_shm *shm, Gradb__V1__ShmProbe *ret); /* strings belong to shm */
void agent_shm_probe_done(struct agent_shm *shm);
/* A free segment of at least `bytes`, described in *place; NULL: limit reached, or no space. */
void *agent_shm_take(struct agent_shm *shm, size_t bytes, Gradb__V1__ShmPlace *place);
void agent_shm_mapped(struct agent_shm *shm, uint32_t segment);
void agent_shm_release(struct agent_shm *shm, uint32_t segment);
/* Ids of the segments given up since the last call; at most `max`. */
size_t agent_shm_forgotten(struct agent_shm *shm, uint32_t *ret, size_t max);

#endif
