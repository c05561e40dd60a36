// SPDX-License-Identifier: GPL-3.0-or-later
/* The printed values $1, $2, ... The oldest are dropped first. */
#include "repl/core/repl_impl.h"

#include <stdlib.h>
#include <string.h>

static void forget_value(struct remembered *value)
{
    gd_tensor_unref(value->tensor);
    free(value->label);
    *value = (struct remembered){.tensor = NULL};
}

/* Large values are dropped before the ring is full: together they take at most the cache's size. */
static void keep_within_budget(struct repl *repl)
{
    uint64_t left = repl->debugger->settings.max_cache;

    for (int i = 0; i < REPL_MAX_VALUES && i < repl->value_count; i++) {
        struct remembered *value = &repl->values[(repl->value_count - i) % REPL_MAX_VALUES];
        uint64_t bytes = value->tensor ? gd_tensor_bytes(value->tensor) : 0;
        if (bytes > left) {
            forget_value(value);
            left = 0;
        } else {
            left -= bytes;
        }
    }
}

int repl_remember(struct repl *repl, struct gd_tensor *tensor, const char *label)
{
    if (!repl->values) {
        repl->values = calloc(REPL_MAX_VALUES, sizeof(*repl->values));
        if (!repl->values) {
            return repl->value_count;
        }
    }
    int number = ++repl->value_count;
    struct remembered *value = &repl->values[number % REPL_MAX_VALUES];
    struct gd_tensor *kept = gd_tensor_ref(tensor);
    char *copy = strdup(label); /* before forget: it may be the label of the dropped one */
    forget_value(value);
    value->tensor = kept;
    value->label = copy;
    keep_within_budget(repl);
    return number;
}

static struct remembered *find_value(struct repl *repl, int number)
{
    if (number == 0) {
        number = repl->value_count;
    }
    if (!repl->values || number < 1 || number > repl->value_count ||
        number <= repl->value_count - REPL_MAX_VALUES) {
        return NULL;
    }
    return &repl->values[number % REPL_MAX_VALUES];
}

struct gd_tensor *repl_remembered(struct repl *repl, int number)
{
    struct remembered *value = find_value(repl, number);
    return value ? value->tensor : NULL;
}

const char *repl_remembered_label(struct repl *repl, int number)
{
    struct remembered *value = find_value(repl, number);
    return value && value->label ? value->label : "";
}

void repl_values_free(struct repl *repl)
{
    for (int i = 0; repl->values && i < REPL_MAX_VALUES; i++) {
        forget_value(&repl->values[i]);
    }
    free(repl->values);
    repl->values = NULL;
}
