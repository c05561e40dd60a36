// SPDX-License-Identifier: GPL-3.0-or-later
/* Each rule speaks where its numbers pass, and is silent just below. */

#include "../../unit.h"
#include "engine/timing/advice.h"
#include "engine/timing/facts.h"
#include "report_fixture.h"

static int set_up(void **state)
{
    struct gd_time_report *report = make_report();
    snprintf(report->facts.framework, sizeof(report->facts.framework), "PyTorch");
    snprintf(report->facts.device, sizeof(report->facts.device), "cpu");
    *state = report;
    return 0;
}

static void add_steps(struct gd_time_report *report, int count, double total, double data)
{
    for (int i = 0; i < count; i++) {
        add_step(report, report->count + 1, total, data);
    }
}

static void add_operator(struct gd_time_report *report, const char *type, enum gd_dtype dtype,
                         int64_t size, uint32_t calls, double seconds)
{
    struct gd_time_tensor square = {.dtype = dtype, .rank = 2, .dim = {size, size}};
    struct gd_time_record record = {.type = type,
                                    .place = "net.py:3",
                                    .in = {square, square},
                                    .in_count = 2,
                                    .out = square,
                                    .step = 2,
                                    .calls = calls,
                                    .seconds = seconds};
    record.out.dtype = strcmp(type, "to") == 0 ? GD_FLOAT16 : dtype;
    assert_int_equal(gd_time_add_operator(report, &record, NULL), GD_OK);
}

/* The advice by that rule must be the only one; NULL: there is none. Its text has the part. */
static void expect_advice(const struct gd_time_report *report, const char *rule, const char *part)
{
    static struct gd_advice advice[GD_MAX_ADVICE];
    int count = gd_time_advice(report, advice);
    if (count != (rule ? 1 : 0)) {
        fail_msg("%d advices: %s: %s", count, count ? advice[0].rule : "",
                 count ? advice[0].text : "");
    }
    if (rule) {
        assert_string_equal(advice[0].rule, rule);
        if (!strstr(advice[0].text, part)) {
            fail_msg("not in: %s", advice[0].text);
        }
    }
}

static void slow_loader(void **state)
{
    struct gd_time_report *report = *state;
    gd_time_read_facts(report,
                       "{\"processors\":4,\"loader\":{\"kind\":\"DataLoader\",\"workers\":0}}");
    add_step(report, 1, 9, 9);
    add_steps(report, 7, 1, 0.5);
    expect_advice(report, NULL, NULL); /* too few */
    add_steps(report, 1, 1, 0.5);
    expect_advice(report, "slow-loader", "takes 50 % of 8 steps");
    expect_advice(report, "slow-loader", "num_workers=0");
    add_steps(report, 100, 1, 0.05);
    expect_advice(report, NULL, NULL);
}

static void unknown_data_gives_no_advice(void **state)
{
    add_steps(*state, 50, 1, -1);
    expect_advice(*state, NULL, NULL);
}

static void advice_on_jitter(void **state)
{
    struct gd_time_report *report = *state;
    gd_time_read_facts(report, "{\"loader\":{\"kind\":\"DataLoader\",\"workers\":8,\"requests\":81,"
                               "\"empty\":10}}");
    for (int i = 1; i <= 81; i++) {
        add_step(report, i, i % 8 == 0 ? 1.7 : 1, i % 8 == 0 ? 0.7 : 0);
    }
    expect_advice(report, "jitter", "one in 8: it has as many workers");
    report->facts.loader.empty = 0;
    expect_advice(report, NULL, NULL);
}

static void slow_steps_of_another_cause_are_not_jitter(void **state)
{
    struct gd_time_report *report = *state;
    gd_time_read_facts(report, "{\"loader\":{\"kind\":\"DataLoader\",\"workers\":8}}");
    for (int i = 1; i <= 81; i++) {
        add_step(report, i, i % 8 == 0 ? 1.7 : 1, 0.01);
    }
    expect_advice(report, NULL, NULL);
}

static void advice_on_synchronization(void **state)
{
    struct gd_time_report *report = *state;
    add_steps(report, 20, 1, 0);
    gd_time_read_facts(report,
                       "{\"waits\":[{\"function\":\"item\",\"place\":\"t.py:7\",\"calls\":2,"
                       "\"seconds\":0.2,\"steps\":20}]}");
    expect_advice(report, NULL, NULL); /* once in ten steps */
    gd_time_read_facts(report,
                       "{\"waits\":[{\"function\":\"item\",\"place\":\"t.py:7\",\"calls\":40,"
                       "\"seconds\":0.2,\"steps\":20}]}");
    expect_advice(report, "synchronization",
                  "2 times per step the program reads a value with item(), 10 ms "
                  "per step (1.0 %)");
}

static void advice_on_shapes(void **state)
{
    struct gd_time_report *report = *state;
    add_steps(report, 20, 1, 0);
    add_operator(report, "matmul", GD_FLOAT32, 1001, 5, 0.2);
    add_operator(report, "matmul", GD_FLOAT32, 1024, 5, 0.8);
    expect_advice(report, NULL, NULL); /* 20 % on a CPU */
    snprintf(report->facts.device, sizeof(report->facts.device), "cuda:0");
    expect_advice(report, "shapes", "take 20 % of the operators' time");
    expect_advice(report, "shapes", "pad 1001, 1001, 1001 to 1008, 1008, 1008");
    snprintf(report->facts.device, sizeof(report->facts.device), "Ascend");
    expect_advice(report, "shapes", "multiples of 16");
}

/* A trace does not name its device: kernels show that there is one. */
static void advice_on_a_trace(void **state)
{
    struct gd_time_report *report = *state;
    struct gd_time_record kernel = {
        .type = "gemm", .lane = GD_LANE_DEVICE, .step = 2, .seconds = 0.1};
    report->facts.device[0] = '\0';
    add_operator(report, "matmul", GD_FLOAT32, 1001, 5, 0.8);
    expect_advice(report, "shapes", "this run is on a CPU");
    add_operator(report, "matmul", GD_FLOAT32, 1024, 5, 2.1);
    expect_advice(report, NULL, NULL);
    assert_int_equal(gd_time_add_operator(report, &kernel, NULL), GD_OK);
    expect_advice(report, "shapes", "accelerators compute in such tiles");
}

static void advice_on_dtypes(void **state)
{
    struct gd_time_report *report = *state;
    add_operator(report, "matmul", GD_FLOAT16, 64, 10, 0.14);
    add_operator(report, "matmul", GD_FLOAT32, 64, 10, 0.1);
    expect_advice(report, NULL, NULL); /* 1.4 times */
    add_operator(report, "matmul", GD_FLOAT16, 64, 1, 0.04);
    expect_advice(report, "dtype", "in float16 and 10 ms in float32");
}

static void advice_on_casts(void **state)
{
    struct gd_time_report *report = *state;
    add_operator(report, "relu", GD_FLOAT32, 64, 1, 0.8);
    add_operator(report, "to", GD_FLOAT32, 64, 9, 0.2);
    expect_advice(report, NULL, NULL);
    add_operator(report, "to", GD_FLOAT16, 64, 9, 0.1); /* it has that type */
    expect_advice(report, NULL, NULL);
    add_operator(report, "to", GD_FLOAT32, 64, 1, 0.02);
    expect_advice(report, "casts", "10 casts and 0 layout changes per step");
}

#define GRADIENTS "[[10000000,0.1],[10000000,0.2],[10000000,0.3],[10000000,0.4]]"

static void one_bucket(void **state)
{
    struct gd_time_report *report = *state;
    add_steps(report, 20, 1, 0);
    for (int i = 0; i < 3; i++) {
        struct gd_time_step step = gd_time_unknown_step(21 + i);
        step.part[GD_TIME_TOTAL] = 1;
        step.tail = 0.4;
        step.timed = true;
        gd_time_add_step(report, &step);
    }
    gd_time_read_facts(report,
                       "{\"device\":\"cuda:0\",\"reducer\":{\"kind\":\"DDP\",\"world_size\":2,"
                       "\"buckets\":[40000000],\"communication\":0.5,\"hidden\":0.1,"
                       "\"gradients\":" GRADIENTS "}}");
    expect_advice(report, "one-bucket", "400 ms of a step (40 %) pass in AllReduce");
    expect_advice(report, "one-bucket", "bucket_cap_mb=1) makes 4 buckets, predicted tail 100 ms");
    assert_true(report->facts.communication == 0.5 && report->facts.hidden == 0.1);
    gd_time_read_facts(report, "{\"device\":\"cpu\"}");
    expect_advice(report, "one-bucket",
                  "bucket_cap_mb=1) makes 4 buckets, how much that hides is not");
    snprintf(report->facts.reducer, sizeof(report->facts.reducer), "AllReduce");
    expect_advice(report, "one-bucket", "all_reduce_fusion_config=[1, 2, 3, 4]");
    gd_time_read_facts(report, "{\"reducer\":{\"buckets\":[10000000,10000000,10000000,10000000]}}");
    expect_advice(report, NULL, NULL);
    gd_time_read_facts(report, "{\"reducer\":{\"buckets\":[40000000],\"world_size\":1}}");
    expect_advice(report, NULL, NULL);
}

static void a_reducer_after_the_backward_pass(void **state)
{
    struct gd_time_report *report = *state;
    add_steps(report, 20, 1, 0);
    gd_time_read_facts(report,
                       "{\"reducer\":{\"kind\":\"DistributedGradReducer\",\"world_size\":2}}");
    for (int i = 0; i < 3; i++) {
        struct gd_time_step step = gd_time_unknown_step(21 + i);
        expect_advice(report, i < 2 ? NULL : "one-bucket",
                      "400 ms of a step (40 %) pass in DistributedGradReducer on 2 ranks");
        step.part[GD_TIME_TOTAL] = 1;
        step.tail = 0.4;
        step.timed = true;
        gd_time_add_step(report, &step);
    }
}

static void add_passes(struct gd_time_report *report, int count, double forward, double backward)
{
    for (int i = 0; i < count; i++) {
        struct gd_time_step step = gd_time_unknown_step(report->count + 1);
        step.part[GD_TIME_FORWARD] = forward;
        step.part[GD_TIME_BACKWARD] = backward;
        step.part[GD_TIME_TOTAL] = 0.1; /* most of it between the parts */
        gd_time_add_step(report, &step);
    }
}

/* In a measured step. */
static void add_small_operators(struct gd_time_report *report)
{
    struct gd_time_step timed = gd_time_unknown_step(21);
    timed.timed = true;
    gd_time_add_step(report, &timed);
    add_operator(report, "relu", GD_FLOAT32, 64, 100, 0.004);
}

static void graph_mode(void **state)
{
    struct gd_time_report *report = *state;
    add_passes(report, 20, 0.006, 0.004);
    add_small_operators(report);
    expect_advice(report, NULL, NULL); /* not MindSpore */
    gd_time_read_facts(report, "{\"mode\":\"pynative\"}");
    expect_advice(report, "graph-mode",
                  "the 100 operators of a step compute for 4 ms, 40 us each, of the 10 ms that its "
                  "forward and backward pass take");
    gd_time_read_facts(report, "{\"mode\":\"jit\"}");
    expect_advice(report, NULL, NULL);
    gd_time_read_facts(report, "{\"mode\":\"pynative\"}");
    add_operator(report, "relu", GD_FLOAT32, 64, 1, 0.002);
    expect_advice(report, NULL, NULL);
}

static void waiting_for_data_is_not_launching(void **state)
{
    struct gd_time_report *report = *state;
    add_steps(report, 20, 0.010, 0.005);
    add_small_operators(report);
    gd_time_read_facts(report, "{\"mode\":\"pynative\"}");
    expect_advice(report, "slow-loader", "waiting for data takes 50 %");
}

#define FACTS                                                                                      \
    "{\"device\":\"cuda\",\"collectives\":[{\"kind\":\"all_reduce\",\"place\":\"a.py:3\","         \
    "\"steps\":%d,\"elapsed\":20,\"calls\":%d,\"bytes\":%d,\"seconds\":4,"                         \
    "\"begun\":%d,\"device\":%s}]}"

static void collectives_of_the_program(void **state)
{
    struct gd_time_report *report = *state;
    static const struct {
        int steps, calls, bytes, begun;
        const char *device, *rule, *part;
    } cases[] = {
        {20, 960, 960 * 544, 0, "false", "small-collectives",
         "200 ms of a step (20 %) pass in 48 calls of all_reduce, of 544 B each on average: 4.17 "
         "ms"},
        {20, 20, 20 << 22, 0, "false", "blocking-collectives", "(1 call, 4 MiB)"},
        {20, 20, 20 << 22, 20, "false", NULL, NULL}, /* begun before the wait */
        {20, 20, 20 << 22, 0, "true", NULL, NULL},   /* only launched */
        {20, 20, 20 << 10, 0, "false", NULL, NULL},  /* waiting for the slowest rank */
        {7, 7, 7 << 22, 0, "false", NULL, NULL},     /* too few steps */
    };
    add_steps(report, 20, 1, 0);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char json[400];
        snprintf(json, sizeof(json), FACTS, cases[i].steps, cases[i].calls, cases[i].bytes,
                 cases[i].begun, cases[i].device);
        gd_time_read_facts(report, json);
        expect_advice(report, cases[i].rule, cases[i].part);
    }
}

static void sinking_and_compiling(void **state)
{
    struct gd_time_report *report = *state;
    add_steps(report, 20, 1, 0.09);
    for (int i = 0; i < 20; i++) {
        struct gd_time_step step = gd_time_unknown_step(21 + i);
        step.part[GD_TIME_TOTAL] = 1;
        step.part[GD_TIME_REST] = 0.2;
        step.part[GD_TIME_DATA] = 0.01;
        gd_time_add_step(report, &step);
    }
    gd_time_read_facts(report, "{\"sink\":\"off\",\"compiles\":4,\"compiles_late\":2}");
    expect_advice(report, NULL, NULL);
    gd_time_read_facts(report, "{\"compiles_late\":3,\"compile\":12,\"compiled\":\"step\"}");
    expect_advice(report, "compiles",
                  "step was compiled 4 times, 3 of them after step 2 (12 s in all)");
    gd_time_read_facts(report, "{\"compiled_seconds\":3,\"compile_cause\":\"a number changes\"}");
    expect_advice(report, "compiles", "(3 s in all): a number changes");
}

static void compilations_are_bounded(void **state)
{
    struct gd_time_report *report = *state;
    char json[8192] =
        "{\"compile_count\":50,\"compilations\":[{\"name\":\"no step\",\"seconds\":1}";
    for (int i = 1; i <= 50; i++) {
        size_t end = strlen(json);
        snprintf(json + end, sizeof(json) - end,
                 ",{\"name\":\"f\",\"step\":%d,\"seconds\":0.5,\"place\":\"a.py:1\"}", i);
    }
    size_t used = strlen(json);
    snprintf(json + used, sizeof(json) - used, "]}");
    gd_time_read_facts(report, json);
    assert_int_equal(report->facts.compilations, 50);
    assert_int_equal(report->facts.compilation_count, GD_TIME_COMPILES);
    assert_int_equal(report->facts.compilation[0].step, 1);
    gd_time_read_facts(report, "{\"compilations\":[]}");
    assert_int_equal(report->facts.compilation_count, 0);
}

static const struct CMUnitTest tests[] = {TEST(slow_loader),
                                          TEST(unknown_data_gives_no_advice),
                                          TEST(advice_on_jitter),
                                          TEST(slow_steps_of_another_cause_are_not_jitter),
                                          TEST(advice_on_synchronization),
                                          TEST(advice_on_shapes),
                                          TEST(advice_on_a_trace),
                                          TEST(advice_on_dtypes),
                                          TEST(advice_on_casts),
                                          TEST(one_bucket),
                                          TEST(a_reducer_after_the_backward_pass),
                                          TEST(graph_mode),
                                          TEST(waiting_for_data_is_not_launching),
                                          TEST(compilations_are_bounded),
                                          TEST(collectives_of_the_program),
                                          TEST(sinking_and_compiling)};
RUN_TESTS()
