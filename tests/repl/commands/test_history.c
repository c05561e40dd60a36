// SPDX-License-Identifier: GPL-3.0-or-later
/* Lines of bars, info history on recorded values, compare on values in memory. */
#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../unit.h"
#include "engine/history/history.h"
#include "engine/watch/watch_report.h"
#include "repl/net.h"
#include "repl/values/spark.h"
#include "scratch.h"

static char folder[SCRATCH_PATH];

static int make_folder(void **state)
{
    (void)state;
    return scratch_folder(folder) ? 0 : -1;
}

static int drop_folder(void **state)
{
    char path[300];

    (void)state;
    snprintf(path, sizeof(path), "%s/file", folder);
    unlink(path);
    return rmdir(folder);
}

static int set_up(void **state, bool json)
{
    net_setup(state, &(struct repl_options){.batch = true, .json = json, .utf8 = !json});
    struct gd_settings *settings = &((struct net *)*state)->fake.debugger->settings;
    snprintf(settings->history_file, sizeof(settings->history_file), "%s/file", folder);
    settings->history_bytes = 64 << 10;
    return 0;
}

static int setup_text(void **state)
{
    return set_up(state, false);
}

static int setup_json(void **state)
{
    return set_up(state, true);
}

/* ---- bars ------------------------------------------------------------------------------------ */

#define V(x)                                                                                       \
    {                                                                                              \
        SPARK_VALUE, x                                                                             \
    }
#define MISSING                                                                                    \
    {                                                                                              \
        SPARK_MISSING, 0                                                                           \
    }
#define BAD                                                                                        \
    {                                                                                              \
        SPARK_BAD, 0                                                                               \
    }

static void expect_drawing(const struct spark_point *points, size_t count, size_t width, bool ascii,
                           const char *want)
{
    struct gd_buf buf = GD_BUF_INIT(4096);

    spark_draw(points, count, width, ascii, &buf);
    assert_string_equal(gd_buf_text(&buf), want);
    gd_buf_deinit(&buf);
}

static void bars_go_from_lowest_to_highest(void **state)
{
    const struct spark_point rising[] = {V(0), V(1), V(2), V(3), V(4), V(5), V(6), V(7)};
    const struct spark_point odd[] = {V(-5), BAD, MISSING, V(5)};
    const struct spark_point same[] = {V(3), V(3)};
    const struct spark_point extreme[] = {V(-1e308), V(0), V(1e308)};
    const struct spark_point tiny[] = {V(0), V(5e-324)};
    const struct spark_point none[] = {BAD, MISSING, BAD};

    (void)state;
    expect_drawing(rising, 8, 8, false, "▁▂▃▄▅▆▇█");
    expect_drawing(rising, 8, 100, true, "_.:-=+*#");
    expect_drawing(odd, 4, 10, false, "▁× █");
    expect_drawing(odd, 4, 10, true, "_! #");
    expect_drawing(same, 2, 10, false, "▄▄");
    expect_drawing(extreme, 3, 10, false, "▁▅█");
    expect_drawing(tiny, 2, 10, true, "--"); /* too near to tell apart */
    expect_drawing(none, 3, 10, true, "! !");
    expect_drawing(rising, 0, 10, false, "");
    expect_drawing(rising, 8, 0, false, "");
}

/* What is far from the rest is seen however narrow the line is. */
static void bars_share_columns(void **state)
{
    struct spark_point points[1000];

    (void)state;
    for (size_t i = 0; i < 1000; i++) {
        points[i] = (struct spark_point)V(i == 777 ? 100 : 1);
    }
    expect_drawing(points, 1000, 10, true, "_______#__");
    points[3].mark = SPARK_BAD;
    expect_drawing(points, 1000, 10, true, "!______#__");
    expect_drawing(points, 1000, 1, true, "!");
    expect_drawing(points + 4, 996, 7, true, "_____#_");
}

/* ---- info history ---------------------------------------------------------------------------- */

/* The value of a node at a step: min -x, max x, and so many NaN. */
static void record_value(struct net *net, const char *name, int64_t step, double x, uint64_t nan)
{
    const struct gd_shape shape = {.rank = 1, .dim = {4}};
    struct gd_stats stats = {.count = 4,
                             .nan = nan,
                             .zero = 1,
                             .positive = 2,
                             .negative = 1 - (nan > 0),
                             .min = -x,
                             .max = x,
                             .mean = x / 4,
                             .abs_mean = x / 2,
                             .sum_sq = 4 * x * x};
    struct gd_watch_value value = {.dtype = GD_FLOAT32, .shape = &shape, .stats = &stats};

    assert_int_equal(gd_graph_find(net->fake.graph, name, &value.node, NULL), GD_OK);
    gd_session_history_add(net->fake.session, &value, step);
}

static void nothing_recorded_is_told(void **state)
{
    struct net *net = *state;

    net_expect_rc(net, "info history", GD_ENODATA,
                  "error: the history is empty: it records what a watchpoint or `trace` covers\n");
    net->fake.debugger->settings.history_bytes = 0;
    net_expect_rc(net, "info history net/big", GD_ENODATA,
                  "error: no history is recorded: set a size with `set history-bytes`\n");
}

static void a_tensor_by_step(void **state)
{
    struct net *net = *state;

    for (int64_t step = 1; step <= 9; step++) {
        record_value(net, "net/fc1.weight", step, (double)step, 0);
    }
    net_expect(net, "info history fc1.weight max norm -n 2",
               "net/fc1.weight:0: 9 steps recorded, the last 2\n"
               "Step  max  norm\n"
               "   8    8    16\n"
               "   9    9    18\n"
               "max   ▁▂▃▄▅▆▇██  1 to 9\n"
               "norm  ▁▂▃▄▅▆▇██  2 to 18\n");
    net_expect_part(net, "info history fc1.weight",
                    "Step  abs_mean  max  min  nonfinite  zero_percentage\n"
                    "   1       0.5    1   -1          0               25\n");
    net_expect_part(net, "info history", "fc1.weight:0\n");
    net_expect_part(net, "info history", "1 tensor of 15, steps 1 to 9; room for 244 steps each");
    net_expect_part(net, "info history fc1.weight 'abs_mean(cur-prev)'", "  -\n");
}

static void the_first_step_with_nan(void **state)
{
    struct net *net = *state;

    record_value(net, "net/fc1.weight", 1, 1, 0);
    record_value(net, "net/fc1.weight", 2, 2, 0);
    record_value(net, "net/fc1.weight", 3, 3, 1);
    net_expect(net, "info history fc1.weight max nan",
               "net/fc1.weight:0: 3 steps recorded\n"
               "Step  max  nan\n"
               "   1    1    0\n"
               "   2    2    0\n"
               "   3  nan    1\n"
               "max  ▁█×  1 to 2\n"
               "nan  ▁▁█  0 to 1\n"
               "Not finite since step 3 (1 step of 3).\n");
    record_value(net, "net/fc1.weight", 4, 1, 0);
    net_expect_part(net, "info history fc1.weight max",
                    "Not finite first at step 3 (1 step of 4).");
}

static void numbers_of_the_training(void **state)
{
    struct net *net = *state;

    record_value(net, "net/fc1.weight", 1, 1, 0);
    gd_session_on_scalar(net->fake.session, "loss/train", 2.5, 1);
    gd_session_on_scalar(net->fake.session, "loss/train", INFINITY, 2);
    net_expect(net, "info history loss/train",
               "loss/train: 2 steps recorded\n"
               "Step  value\n"
               "   1    2.5\n"
               "   2    inf\n"
               "value  ▄×  2.5\n"
               "Not finite since step 2 (1 step of 2).\n");
}

static void wrong_questions_are_told(void **state)
{
    struct net *net = *state;

    record_value(net, "net/fc1.weight", 1, 1, 0);
    net_expect_part(net, "info history nothing", "error: ");
    net_expect_part(net, "info history net/big", "error: net/big:0 is not in the history");
    net_expect_part(net, "info history fc1.weight[0]", "slices and $N");
    net_expect_part(net, "info history fc1.weight luck",
                    "\"luck\" is not a statistic of the history");
    net_expect_part(net, "info history fc1.weight -n 0", "error: ");
    net_expect_part(net, "info history -q", "error: ");
    net_expect_rc(net, "open", GD_EUSAGE,
                  "error: open: specify a file or directory (usage: open PATH... [--format NAME] "
                  "[--key NAME] [--dtype NAME] [--partial])\n");
    net_expect_rc(net, "open x", GD_EUNSUPPORTED, "error: this gradb cannot open files\n");
}

static void history_as_json(void **state)
{
    struct net *net = *state;

    record_value(net, "net/fc1.weight", 1, 1.1, 0);
    record_value(net, "net/fc1.weight", 2, 3, 2);
    net_expect_part(net, "info history fc1.weight max",
                    "\"kept\":2,\"seen\":2,\"first_nonfinite_step\":2,\"history\":[{\"step\":1,"
                    "\"max\":1.1");
    net_expect_part(net, "info history fc1.weight max", "{\"step\":2,\"max\":\"nan\"}]");
    net_expect_part(net, "info history fc1.weight update_ratio", "\"update_ratio\":null");
    net_expect_part(net, "info history", "\"tensors\":1,\"capacity\":15,\"left_out\":0");
}

/* ---- compare --------------------------------------------------------------------------------- */

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
    /* the bound comes from the finite change alone, 0.5; the same NaN and Inf are no change */
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

    set_pair(net, GD_FLOAT16, hcur, hprev); /* the difference is no half, -0 is 0 */
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

#define TEXT(name) cmocka_unit_test_setup_teardown(name, setup_text, net_teardown)
#define JSON(name) cmocka_unit_test_setup_teardown(name, setup_json, net_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bars_go_from_lowest_to_highest),
        cmocka_unit_test(bars_share_columns),
        TEXT(nothing_recorded_is_told),
        TEXT(a_tensor_by_step),
        TEXT(the_first_step_with_nan),
        TEXT(numbers_of_the_training),
        TEXT(wrong_questions_are_told),
        JSON(history_as_json),
        TEXT(two_tensors),
        JSON(a_tolerance_is_a_share_of_the_largest_change),
        JSON(what_is_not_finite_differs),
        JSON(close_is_as_numpy_says),
        JSON(integers_are_exact),
        JSON(half_and_bool_and_complex),
        TEXT(wrong_comparisons_are_told),
    };

    return cmocka_run_group_tests(tests, make_folder, drop_folder);
}
