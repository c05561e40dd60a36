// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The frames of the Debug Adapter Protocol: however the bytes are cut into pieces, the same
 * messages come out, and each lies within what was given.
 */
#include "fuzz.h"

#include "drive/frame.h"

/* Hashes the messages and their lengths. */
static uint64_t read_all(const uint8_t *data, size_t size, size_t piece)
{
    struct frames frames;
    uint64_t hash = 14695981039346656037ULL;

    frames_init(&frames);
    for (size_t at = 0; at < size; at += piece) {
        const char *text = NULL;
        size_t len = 0;
        size_t now = size - at < piece ? size - at : piece;
        FUZZ_CHECK(frames_add(&frames, data + at, now) == GD_OK);
        while (frames_next(&frames, &text, &len, NULL) == GD_OK && text) {
            FUZZ_CHECK(len <= size);
            hash = (hash ^ len) * 1099511628211ULL;
            for (size_t i = 0; i < len; i++) {
                hash = (hash ^ (uint8_t)text[i]) * 1099511628211ULL;
            }
        }
    }
    frames_deinit(&frames);
    return hash;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint64_t whole = read_all(data, size, size > 0 ? size : 1);

    FUZZ_CHECK(read_all(data, size, 1) == whole);
    FUZZ_CHECK(read_all(data, size, 7) == whole);
    return 0;
}
