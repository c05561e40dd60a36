// SPDX-License-Identifier: GPL-3.0-or-later
/* compare on values in memory. */
#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>

#include "../../unit.h"
#include "repl/net.h"

static const struct gd_shape pair_shape = {.rank = 2, .dim = {2, 3}};

static gd_node_id set_pair(struct net *net, enum gd_dtype dtype, const void *cur, const void *prev)
{
    static int number;
    char name[32];
    gd_node_id node;

    snprintf(name, sizeof(name), "pair%d", number++);
    node = fake_node(&net->fake, name, "Parameter", dtype, &pair_shape, NULL, 0, NULL);
    fake_graph_done(&net->fake);
    fake_set(&net->fake, node, 0, GD_CURRENT, dtype, &pair_shape, cur);
    fake_set(&net->fake, node, 0, GD_PREVIOUS, dtype, &pair_shape, prev);
    net->fake.session->current = node;
    return node;
}

static double number_at(const cJSON *object, const char *key)
{
    const cJSON *item = cJSON_GetObjectItem(object, key);

    assert_true(cJSON_IsNumber(item));
    return item->valuedouble;
}

static cJSON *compare_records(struct net *net, const char *line)
{
    int rc;
    const char *text = fake_run(&net->fake, line, &rc);
    cJSON *record_of = cJSON_Parse(text);

    if (rc != GD_OK || !record_of) {
        fail_msg("%s: %s", line, text);
    }
    return record_of;
}

static void expect_differ(struct net *net, const char *line, double differ, double zero,
                          const char *elements)
{
    cJSON *found = compare_records(net, line);
    const cJSON *difference = cJSON_GetObjectItem(found, "difference");
    char *text = cJSON_PrintUnformatted(cJSON_GetObjectItem(found, "elements"));

    assert_true(number_at(found, "differ") == differ);
    assert_true(number_at(difference, "zero") == zero);
    if (elements) {
        assert_string_equal(text, elements);
    }
    cJSON_free(text);
    cJSON_Delete(found);
}

/* Changes 1, -4, 0, 2, 0, 0.5: the largest is 4, so that a tolerance of 0.25 is a change of 1. */
static void a_tolerance_is_a_share_of_the_largest_change(void **state)
{
    const float prev[] = {1, 2, 3, 4, 5, 6}, cur[] = {2, -2, 3, 6, 5, 6.5f};
    struct net *net = *state;

    set_pair(net, GD_FLOAT32, cur, prev);
    expect_differ(net, "compare .", 4, 2,
                  "[{\"index\":[0,1],\"previous\":2,\"current\":-2,\"difference\":-4},"
                  "{\"index\":[1,0],\"previous\":4,\"current\":6,\"difference\":2},"
                  "{\"index\":[0,0],\"previous\":1,\"current\":2,\"difference\":1},"
                  "{\"index\":[1,2],\"previous\":6,\"current\":6.5,\"difference\":0.5}]");
    expect_differ(net, "compare . 0", 4, 2, NULL);
    expect_differ(net, "compare . 0.2", 3, 3, NULL);
    expect_differ(net, "compare . 0.25", 2, 4, NULL); /* up to and with the bound */
    expect_differ(net, "compare . 0.5", 1, 5, NULL);
    expect_differ(net, "compare . 1 -n 0", 0, 6, "[]");
    expect_differ(net, "compare .[0] 0.25", 1, 2, NULL);
    expect_differ(net, "compare .[1] -n 1", 2, 1,
                  "[{\"index\":[0],\"previous\":4,\"current\":6,\"difference\":2}]");
}

static void what_is_not_finite_differs(void **state)
{
    const float prev[] = {1, INFINITY, NAN, INFINITY, -INFINITY, 1};
    const float cur[] = {NAN, INFINITY, NAN, -INFINITY, 0, 1.5f};
    struct net *net = *state;

    set_pair(net, GD_FLOAT32, cur, prev);
    /* the bound comes from the finite change alone, 0.5; the same NaN and Inf do not count */
    expect_differ(net, "compare . 1", 3, 1, NULL);
    expect_differ(net, "compare . 0", 4, 0, NULL);
    expect_differ(net, "compare . rtol=1", 4, 0, NULL);
    expect_differ(net, "compare . rtol=1 -equal-nan", 3, 0, NULL);
    expect_differ(net, "compare . rtol=1 -equal-nan -n 1", 3, 0,
                  "[{\"index\":[0,0],\"previous\":1,\"current\":\"nan\",\"difference\":\"nan\"}]");
    expect_differ(net, "compare . atol=0.4 -equal-nan", 4, 0, NULL);
}

/* |a - b| against atol + rtol * |b|, at the bound and just over it. */
static void close_is_as_numpy_says(void **state)
{
    const double prev[] = {100, 100, -100, 0, 0, 0};
    const double cur[] = {110, 110.0000001, -110, 0.5, 0.50001, -0.5};
    struct net *net = *state;

    set_pair(net, GD_FLOAT64, cur, prev);
    expect_differ(net, "compare . rtol=0.1", 4, 0, NULL); /* b is 0 in three of them */
    expect_differ(net, "compare . atol=0.5", 4, 0, NULL);
    expect_differ(net, "compare . rtol=0.1 atol=0.5", 1, 0, NULL);
    expect_differ(net, "compare . rtol=0.1 atol=0.50001", 0, 0, NULL);
    expect_differ(net, "compare . rtol=0 atol=0", 6, 0, NULL);
}

/* Integers that a double cannot tell apart. */
static void integers_are_exact(void **state)
{
    const int64_t prev[] = {INT64_MAX, INT64_MIN, 1, 9007199254740993, 0, -5};
    const int64_t cur[] = {INT64_MAX - 1, INT64_MIN, 1, 9007199254740992, 0, 5};
    const uint64_t uprev[] = {UINT64_MAX, 0, 1, 1, 0, 0}, ucur[] = {0, UINT64_MAX, 1, 1, 0, 0};
    struct net *net = *state;

    set_pair(net, GD_INT64, cur, prev);
    expect_differ(net, "compare . -n 1", 3, 3,
                  "[{\"index\":[1,2],\"previous\":-5,\"current\":5,\"difference\":10}]");
    expect_differ(net, "compare . atol=1 rtol=0", 1, 3, NULL);
    set_pair(net, GD_UINT64, ucur, uprev);
    expect_differ(net, "compare . atol=1 rtol=0", 2, 4, NULL);
}

static void half_and_bool_and_complex(void **state)
{
    const uint16_t hprev[] = {0x7bff, 0xfbff, 0, 0, 0, 0}; /* 65504, -65504 */
    const uint16_t hcur[] = {0xfbff, 0x7bff, 0x8000, 0, 0, 0};
    const unsigned char bprev[] = {0, 1, 0, 1, 0, 1}, bcur[] = {1, 1, 0, 0, 0, 1};
    const float cprev[12] = {0}, ccur[12] = {3, 4, 0, 1};
    struct net *net = *state;

    set_pair(net, GD_FLOAT16, hcur, hprev); /* the difference is not a float16; -0 is 0 */
    expect_differ(net, "compare . -n 1", 2, 4,
                  "[{\"index\":[0,0],\"previous\":65500,\"current\":-65500,"
                  "\"difference\":-131008}]");
    set_pair(net, GD_BOOL, bcur, bprev);
    expect_differ(net, "compare .", 2, 4, NULL);
    set_pair(net, GD_COMPLEX64, ccur, cprev);
    expect_differ(net, "compare . -n 1", 2, 4,
                  "[{\"index\":[0,0],\"previous\":[0,0],\"current\":[3,4],"
                  "\"difference\":5}]");
    expect_differ(net, "compare . atol=1", 1, 4, NULL);
}

static void two_tensors(void **state)
{
    struct net *net = *state;
    const float values[] = {1, 2, 3, 4, 5, 7};

    set_pair(net, GD_FLOAT32, values, values);
    net_expect(net, "compare .[:1] net/fc1/MatMul-op1[:1]",
               "pair0:0[:1] of step 3 against net/fc1/MatMul-op1:0[:1] of step 3, float32 (1, 3)\n"
               "0 of 3 elements differ; rtol=1e-05 atol=1e-08\n");
    net_expect_part(net, "compare net/fc1/MatMul-op1 . -n 5",
                    "1 of 6 elements differ; rtol=1e-05 atol=1e-08\n"
                    "Element  First  Second  Difference\n"
                    "[1, 2]     6.0     7.0          -1\n");
    net_expect_part(net, "compare . net/big", "types and shapes must match");
    net_expect_part(net, "compare net/empty net/empty",
                    "error: net/empty:0 has no elements: nothing to compare");
}

static void wrong_comparisons_are_told(void **state)
{
    static const char *const lines[][2] = {
        {"compare", "compare: specify a tensor"},
        {"compare net/big 2", "a fraction of the largest change, from 0 to 1, not 2"},
        {"compare net/big nan", "a fraction of the largest change"},
        {"compare net/big 0.1 rtol=1", "either a tolerance or"},
        {"compare net/big rtol=x", "a tolerance must be a number, 0 or more"},
        {"compare net/big atol=-1", "a tolerance must be a number, 0 or more"},
        {"compare net/big atol=inf", "a tolerance must be a number, 0 or more"},
        {"compare net/big net/big net/big", "two tensors, or one and a tolerance"},
        {"compare net/big -n 100000", "error: "},
        {"compare net/big -z", "error: "},
        {"compare nothing", "error: "},
        {"compare net/big[99999999]", "error: "},
    };

    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        net_expect_part(*state, lines[i][0], lines[i][1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        NET_TEXT(two_tensors),
        NET_JSON(a_tolerance_is_a_share_of_the_largest_change),
        NET_JSON(what_is_not_finite_differs),
        NET_JSON(close_is_as_numpy_says),
        NET_JSON(integers_are_exact),
        NET_JSON(half_and_bool_and_complex),
        NET_TEXT(wrong_comparisons_are_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
