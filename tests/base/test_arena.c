// SPDX-License-Identifier: GPL-3.0-or-later
#include <stdalign.h>

#include "../unit.h"
#include "base/arena.h"

static void pieces_stay_where_they_are(void **state)
{
    struct gd_arena arena;
    unsigned char *piece[2000];

    gd_arena_init(&arena, 0);
    for (size_t i = 0; i < 2000; i++) {
        piece[i] = gd_arena_alloc(&arena, i % 97);
        assert_non_null(piece[i]);
        assert_int_equal((uintptr_t)piece[i] % alignof(max_align_t), 0);
        memset(piece[i], (int)(i % 251), i % 97);
    }
    for (size_t i = 0; i < 2000; i++) {
        for (size_t k = 0; k < i % 97; k++) {
            assert_int_equal(piece[i][k], i % 251);
        }
    }
    assert_true(arena.used <= arena.total);
    gd_arena_deinit(&arena);
    assert_int_equal(arena.total, 0);
}

static void big_pieces_do_not_waste_the_block(void **state)
{
    struct gd_arena arena;
    char *first, *second;

    gd_arena_init(&arena, 0);
    first = gd_arena_alloc(&arena, 32);
    memset(gd_arena_alloc(&arena, 1 << 20), 1, 1 << 20);
    second = gd_arena_alloc(&arena, 32);
    assert_ptr_equal(second, first + 32);
    gd_arena_deinit(&arena);
}

static void total_never_passes_the_maximum(void **state)
{
    struct gd_arena arena;
    size_t got = 0;

    gd_arena_init(&arena, 100000);
    assert_null(gd_arena_alloc(&arena, 100000));
    assert_null(gd_arena_alloc(&arena, SIZE_MAX));
    assert_null(gd_arena_alloc(&arena, SIZE_MAX - 8));
    while (gd_arena_alloc(&arena, 100)) {
        got += 100;
    }
    assert_true(arena.total <= 100000);
    assert_true(got > 80000);
    gd_arena_deinit(&arena);
    assert_int_equal(arena.max, 100000);
    assert_non_null(gd_arena_alloc(&arena, 10));
    gd_arena_deinit(&arena);
}

static void strings_are_copied_and_ended(void **state)
{
    struct gd_arena arena;
    const char *a, *b, *c;
    const unsigned char *zero;

    gd_arena_init(&arena, 0);
    a = gd_arena_strndup(&arena, "hello world", 5);
    b = gd_arena_strdup(&arena, "");
    c = gd_arena_strndup(&arena, NULL, 0);
    zero = gd_arena_zalloc(&arena, 100);
    assert_string_equal(a, "hello");
    assert_string_equal(b, "");
    assert_string_equal(c, "");
    for (int i = 0; i < 100; i++) {
        assert_int_equal(zero[i], 0);
    }
    assert_null(gd_arena_strndup(&arena, "", SIZE_MAX));
    gd_arena_deinit(&arena);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(pieces_stay_where_they_are),
    cmocka_unit_test(big_pieces_do_not_waste_the_block),
    cmocka_unit_test(total_never_passes_the_maximum),
    cmocka_unit_test(strings_are_copied_and_ended),
};

RUN_TESTS()
