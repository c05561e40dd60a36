// SPDX-License-Identifier: MIT
/*
 * The training text: a file, or all C sources in a directory, as ids of its distinct bytes.
 */
#ifndef CHARLM_DATA_H
#define CHARLM_DATA_H

#include <stddef.h>
#include <stdint.h>

#include "rng.h"

struct data {
    uint8_t *ids; /* one per byte of text */
    size_t count;
    uint8_t vocabulary[256]; /* byte of each id */
    size_t vocabulary_size;
};

/* Returns 0, or -1 with a message in why. path NULL: the sources of this program. */
int data_load(const char *path, struct data *ret, char *why, size_t why_size);
/* The folder of this program's sources where it was installed with gradb; NULL: there is none.
 * Static memory. */
const char *data_installed_sources(void);
void data_deinit(struct data *data);

/* `rows` windows of `cols` ids at random positions, and the id that follows each. */
void data_batch(const struct data *data, struct rng *rng, int32_t *input, int32_t *target,
                size_t rows, size_t cols);

#endif
