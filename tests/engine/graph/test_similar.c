// SPDX-License-Identifier: GPL-3.0-or-later
/* How alike names are, against the definition worked out by hand and by recursion. */
#include "../../unit.h"
#include "engine/graph/similar.h"

static void test_slips(void **state)
{
    assert_int_equal(gd_similar_distance("", ""), 0);
    assert_int_equal(gd_similar_distance("", "abc"), 3);
    assert_int_equal(gd_similar_distance("watch", "Watch"), 0);
    assert_int_equal(gd_similar_distance("wach", "watch"), 1);
    assert_int_equal(gd_similar_distance("wacth", "watch"), 1);
    assert_int_equal(gd_similar_distance("match", "watch"), 1);
    assert_int_equal(gd_similar_distance("kitten", "sitting"), 3);
    assert_true(gd_similar_slip("ab_mean", "abs_mean"));
    assert_true(gd_similar_slip("asb_mean", "abs_mean"));
    assert_false(gd_similar_slip("ma", "max"));
    assert_false(gd_similar_slip("loss", "norm"));
}

static size_t min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* The definition. */
static size_t by_recursion(const char *a, size_t n, const char *b, size_t m)
{
    if (n == 0 || m == 0) {
        return n + m;
    }
    size_t best = by_recursion(a, n - 1, b, m - 1) + (a[n - 1] != b[m - 1]);
    best = min_size(best, by_recursion(a, n - 1, b, m) + 1);
    best = min_size(best, by_recursion(a, n, b, m - 1) + 1);
    if (n > 1 && m > 1 && a[n - 1] == b[m - 2] && a[n - 2] == b[m - 1]) {
        best = min_size(best, by_recursion(a, n - 2, b, m - 2) + 1);
    }
    return best;
}

/* All words of up to four letters out of three, by number. */
static size_t make_word(unsigned number, char *ret)
{
    size_t len = 0;
    for (; number; number = (number - 1) / 3) {
        ret[len++] = (char)('a' + (number - 1) % 3);
    }
    ret[len] = '\0';
    return len;
}

static void test_all_short_words(void **state)
{
    char a[8], b[8];
    for (unsigned i = 0; i <= 120; i++) {
        for (unsigned j = 0; j <= 120; j++) {
            size_t n = make_word(i, a), m = make_word(j, b), want = by_recursion(a, n, b, m);
            assert_int_equal(gd_similar_distance(a, b), want);
            for (size_t limit = 0; limit < 5; limit++) {
                assert_int_equal(gd_similar_within(a, n, b, m, limit),
                                 want > limit ? limit + 1 : want);
            }
        }
    }
}

static void test_long_names(void **state)
{
    char a[GD_SIMILAR_LONGEST + 2], b[GD_SIMILAR_LONGEST + 2];
    memset(a, 'a', sizeof(a));
    memset(b, 'b', sizeof(b));
    a[GD_SIMILAR_LONGEST] = b[GD_SIMILAR_LONGEST] = '\0';
    assert_int_equal(gd_similar_distance(a, b), GD_SIMILAR_LONGEST);
    assert_int_equal(gd_similar_within(a, GD_SIMILAR_LONGEST, b, GD_SIMILAR_LONGEST, 7), 8);
    a[GD_SIMILAR_LONGEST] = 'a';
    a[GD_SIMILAR_LONGEST + 1] = '\0';
    assert_true(gd_similar_distance(a, b) == SIZE_MAX);
    assert_true(gd_similar_distance(b, a) == SIZE_MAX);
    assert_false(gd_similar_slip(a, b));
}

static size_t suggest_name(const char *typed, const char *name)
{
    return gd_similar_suggestion(typed, strlen(typed), name, strlen(name), 2);
}

static void test_beginnings(void **state)
{
    assert_int_equal(suggest_name("acc", "accuracy"), 0); /* rather than "auc" */
    assert_int_equal(suggest_name("acc", "auc"), 1);
    assert_int_equal(suggest_name("ACC", "accuracy"), 0);
    assert_int_equal(suggest_name("a", "accuracy"), 3);
    assert_int_equal(suggest_name("accuracies", "accuracy"), 3);
    assert_true(gd_similar_meant("epoch", "epoch-begin"));
    assert_false(gd_similar_slip("epoch", "epoch-begin"));
    assert_false(gd_similar_meant("", "epoch-begin"));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_slips),
    cmocka_unit_test(test_all_short_words),
    cmocka_unit_test(test_long_names),
    cmocka_unit_test(test_beginnings),
};

RUN_TESTS()
