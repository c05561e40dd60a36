// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * MindSpore's source_address text. No frame may be larger than the text, and the memory that it
 * took must be in proportion to the text.
 */
#include "fuzz.h"

#include "engine/stack.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct gd_arena arena;
    struct gd_frame *frames = NULL;
    uint32_t count = 0;
    size_t text = 0;

    gd_arena_init(&arena, 0);
    FUZZ_CHECK(gd_stack_parse((const char *)data, size, &arena, &frames, &count) == GD_OK);
    FUZZ_CHECK(count <= size && (count == 0 || frames));
    for (uint32_t i = 0; i < count; i++) {
        FUZZ_CHECK(frames[i].file && frames[i].function && frames[i].code);
        FUZZ_CHECK(frames[i].file[0] || frames[i].line == 0);
        text += strlen(frames[i].file) + strlen(frames[i].code);
    }
    FUZZ_CHECK(text <= size);
    gd_arena_deinit(&arena);
    return 0;
}
