// SPDX-License-Identifier: GPL-3.0-or-later
/* A fixed text for tests that train: generated C, in a temporary file. */
#ifndef TESTS_TRAINER_TEXT_H
#define TESTS_TRAINER_TEXT_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "train.h"

static inline void text_write(FILE *file)
{
    static const char *const names[] = {"count", "node", "graph", "left", "right", "buffer"};
    static const char *const types[] = {"int", "size_t", "double", "char *"};
    struct rng rng = {7};
    for (int i = 0; i < 1500; i++) {
        const char *name = names[rng_next(&rng) % 6];
        const char *other = names[rng_next(&rng) % 6];
        fprintf(file, "static %s %s_%s(%s %s)\n{\n    return %s + %d;\n}\n\n",
                types[rng_next(&rng) % 4], name, other, types[rng_next(&rng) % 4], name, name,
                (int)(rng_next(&rng) % 100));
    }
}

/* A run on that text, destroyed by the caller. Ends the program on failure. */
static inline struct train *text_train(const struct train_options *wanted)
{
    char path[] = "/tmp/charlm-text-XXXXXX";
    int fd = mkstemp(path);
    FILE *file = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (!file) {
        perror("mkstemp");
        exit(1);
    }
    text_write(file);
    fclose(file);
    struct train_options options = *wanted;
    options.data = path;
    struct train *train;
    char why[1200];
    int rc = train_create(&options, &train, why, sizeof(why));
    unlink(path);
    if (rc != 0) {
        fprintf(stderr, "%s\n", why);
        exit(1);
    }
    return train;
}

static inline void text_step(struct train *train)
{
    train_forward(train);
    train_backward(train);
    train_update(train);
}

#endif
