// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * What a FromTrainer would cost unpacked, and what it costs: the estimate is never far below. The
 * input is the message.
 */
#include "fuzz.h"

#include "proto/v1/v1_impl.h"

#define MOST ((size_t)1 << 30)

static void *count_alloc(void *taken, size_t size)
{
    *(size_t *)taken += size;
    return malloc(size ? size : 1);
}

static void just_free(void *taken, void *block)
{
    free(block);
}

static bool is_enough(size_t elements, size_t bytes, const uint8_t *data, size_t size)
{
    struct v1_budget budget = {.elements = elements, .bytes = bytes};
    return v1_budget_suffices(budget, &gradb__v1__from_trainer__descriptor, data, size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t low = 0, high = MOST, taken = 0;
    ProtobufCAllocator allocator = {count_alloc, just_free, &taken};

    FUZZ_CHECK(!is_enough(0, MOST, data, size));
    if (!is_enough(MOST, MOST, data, size)) { /* nested too deep */
        return 0;
    }
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (is_enough(MOST, middle, data, size)) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    v1_from *message = gradb__v1__from_trainer__unpack(&allocator, size, data);
    if (message) {
        FUZZ_CHECK(taken <= 2 * low + 1024);
        FUZZ_CHECK(is_enough(size + 1, low, data, size));
        gradb__v1__from_trainer__free_unpacked(message, &allocator);
    }
    return 0;
}
