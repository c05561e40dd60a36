// SPDX-License-Identifier: GPL-3.0-or-later
#include <sys/mman.h>

#include "../unit.h"
#include "proto/block_pool.h"

#define MIB ((size_t)1 << 20)

static int set_up(void **state)
{
    return gd_block_pool_create((struct gd_block_pool **)state, NULL);
}

static int tear_down(void **state)
{
    gd_block_pool_release(*state);
    return 0;
}

static void test_a_block_comes_back(void **state)
{
    struct gd_block_pool *pool = *state;
    bool fresh = false;
    char *first = gd_block_pool_take(pool, 4 * MIB, &fresh);

    assert_true(fresh);
    memset(first, 'a', 4 * MIB);
    gd_block_pool_give(pool, first, 4 * MIB);
    assert_int_equal(gd_block_pool_kept(pool), 4 * MIB);
    char *again = gd_block_pool_take(pool, 4 * MIB - 100, &fresh);
    assert_false(fresh);
    assert_ptr_equal(again, first);
    assert_int_equal(again[4 * MIB - 101], 'a'); /* the same pages */
    assert_int_equal(gd_block_pool_kept(pool), 0);
    gd_block_pool_give(pool, again, 4 * MIB - 100);
}

static void test_best_fit(void **state)
{
    struct gd_block_pool *pool = *state;
    char *large = gd_block_pool_take(pool, 8 * MIB, NULL);
    char *small = gd_block_pool_take(pool, 5 * MIB, NULL);

    gd_block_pool_give(pool, large, 8 * MIB);
    gd_block_pool_give(pool, small, 5 * MIB);
    assert_ptr_equal(gd_block_pool_take(pool, 4 * MIB, NULL), small);
    /* A block much larger than what is wanted is left alone. */
    char *tiny = gd_block_pool_take(pool, MIB, NULL);
    assert_ptr_not_equal(tiny, large);
    char *cut = gd_block_pool_take(pool, 6 * MIB, NULL);
    assert_ptr_equal(cut, large);
    cut[6 * MIB - 1] = 1;
    gd_block_pool_give(pool, cut, 6 * MIB);
    gd_block_pool_give(pool, tiny, MIB);
    gd_block_pool_give(pool, small, 4 * MIB);
    assert_int_equal(gd_block_pool_kept(pool), 11 * MIB);
}

static void test_what_is_kept_ends(void **state)
{
    struct gd_block_pool *pool = *state;

    gd_block_pool_give(pool, gd_block_pool_take(pool, 100, NULL), 100);
    assert_int_equal(gd_block_pool_kept(pool), 0); /* too small to keep */
    void *first = gd_block_pool_take(pool, MIB, NULL),
         *second = gd_block_pool_take(pool, 2 * MIB, NULL);
    gd_block_pool_give(pool, first, MIB);
    gd_block_pool_tick(pool);
    gd_block_pool_give(pool, second, 2 * MIB);
    for (int i = 1; i < GD_BLOCK_KEEP; i++) {
        assert_int_equal(gd_block_pool_kept(pool), 3 * MIB);
        gd_block_pool_tick(pool);
    }
    assert_int_equal(gd_block_pool_kept(pool), 2 * MIB);
    gd_block_pool_tick(pool);
    assert_int_equal(gd_block_pool_kept(pool), 0);
}

static void test_limits(void **state)
{
    struct gd_block_pool *pool = *state;
    void *blocks[20];

    for (size_t i = 0; i < 20; i++) {
        blocks[i] = gd_block_pool_take(pool, (i + 1) * MIB, NULL);
        assert_non_null(blocks[i]);
    }
    for (size_t i = 0; i < 20; i++) {
        gd_block_pool_give(pool, blocks[i], (i + 1) * MIB);
    }
    assert_true(gd_block_pool_kept(pool) > 100 * MIB);
    /* Untouched, so these gigabytes are only addresses. */
    void *a = gd_block_pool_take(pool, GD_BLOCK_KEEP_MAX / 2 + MIB, NULL);
    void *b = gd_block_pool_take(pool, GD_BLOCK_KEEP_MAX / 2 + MIB, NULL);
    assert_true(a && b);
    gd_block_pool_give(pool, a, GD_BLOCK_KEEP_MAX / 2 + MIB);
    gd_block_pool_give(pool, b, GD_BLOCK_KEEP_MAX / 2 + MIB);
    assert_true(gd_block_pool_kept(pool) <= GD_BLOCK_KEEP_MAX);
    assert_true(gd_block_pool_kept(pool) > GD_BLOCK_KEEP_MAX / 2);
    assert_null(gd_block_pool_take(pool, SIZE_MAX - 10, NULL));
    assert_null(gd_block_pool_take(pool, (size_t)1 << 60, NULL));
    assert_int_equal(gd_block_pool_kept(pool), 0); /* all was given up in the attempt */
}

static void test_a_block_outlives_the_owner(void **state)
{
    struct gd_block_pool *pool;

    assert_ok(gd_block_pool_create(&pool, NULL));
    char *first = gd_block_pool_take(pool, 2 * MIB, NULL),
         *second = gd_block_pool_take(pool, 2 * MIB, NULL);
    gd_block_pool_release(pool);
    first[0] = second[0] = 1;
    gd_block_pool_give(pool, first, 2 * MIB);
    assert_int_equal(gd_block_pool_kept(pool), 0);
    second = mremap(second, 2 * MIB, 3 * MIB, MREMAP_MAYMOVE);
    second[3 * MIB - 1] = 1;
    gd_block_pool_give(pool, second, 3 * MIB); /* frees the pool: the leak check would see it */
}

static const struct CMUnitTest tests[] = {
    TEST(test_a_block_comes_back),
    TEST(test_best_fit),
    TEST(test_what_is_kept_ends),
    TEST(test_limits),
    cmocka_unit_test(test_a_block_outlives_the_owner),
};

RUN_TESTS()
