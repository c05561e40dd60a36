// SPDX-License-Identifier: GPL-3.0-or-later
/* Reports: steps, operators, groups, costs, facts. */

#include "../../unit.h"
#include "engine/timing/cost.h"
#include "engine/timing/facts.h"
#include "report_fixture.h"

static int set_up(void **state)
{
    *state = make_report();
    return 0;
}

static struct gd_time_tensor make_tensor(enum gd_dtype dtype, int rank, int64_t a, int64_t b)
{
    return (struct gd_time_tensor){.dtype = dtype, .rank = rank, .dim = {a, b}};
}

static void add_linear(struct gd_time_report *report, const char *module, enum gd_dtype dtype,
                       int64_t step, double seconds)
{
    struct gd_time_record record = {
        .type = "linear",
        .name = module,
        .module = module,
        .place = "net.py:3",
        .phase = GD_TIME_IN_FORWARD,
        .in = {make_tensor(dtype, 2, 64, 32), make_tensor(dtype, 2, 16, 32)},
        .in_count = 2,
        .out = make_tensor(dtype, 2, 64, 16),
        .step = step,
        .calls = 1,
        .seconds = seconds};
    assert_int_equal(gd_time_add_operator(report, &record, NULL), GD_OK);
}

static void the_first_step_is_apart(void **state)
{
    struct gd_time_report *report = *state;
    add_step(report, 1, 100, 0);
    for (int i = 2; i <= 6; i++) {
        add_step(report, i, i, i == 4 ? -1 : 0.5);
    }
    struct gd_time_spread spread = gd_time_spread_of(report, GD_SERIES_PART, GD_TIME_TOTAL);
    assert_int_equal(spread.count, 5);
    assert_true(spread.median == 4 && spread.low == 3 && spread.high == 5 && spread.deviation == 1);
    assert_true(report->first.part[GD_TIME_TOTAL] == 100);
    assert_true(gd_time_mean(report, GD_TIME_TOTAL) == 20);
    assert_true(gd_time_mean(report, GD_TIME_DATA) == -1); /* unknown in step 4 */
    assert_true(gd_time_spread_of(report, GD_SERIES_PART, GD_TIME_DATA).median == -1);
    assert_int_equal(report->slowest_count, 5);
    assert_int_equal(report->slowest[0].step, 6);
}

static void the_batch_may_come_later(void **state)
{
    struct gd_time_report *report = *state;
    add_step(report, 1, 1, 0);
    add_step(report, 2, 3, 0);
    gd_time_note_place(report, 2, "batch", 7);
    gd_time_note_place(report, 2, "epoch", 2);
    gd_time_note_place(report, 2, "loss", 9);
    gd_time_note_place(report, 1, "batch", 9); /* too late */
    assert_int_equal(report->slowest[0].batch, 7);
    assert_int_equal(report->slowest[0].epoch, 2);
    assert_int_equal(report->first.batch, 0);
}

static void old_steps_leave_the_ring(void **state)
{
    struct gd_time_report *report = *state;
    struct gd_time_step last[3];
    for (int i = 1; i <= GD_TIME_STEPS + 10; i++) {
        add_step(report, i, i <= 10 ? 50 : 1, 0);
    }
    struct gd_time_spread spread = gd_time_spread_of(report, GD_SERIES_PART, GD_TIME_TOTAL);
    assert_int_equal(spread.count, GD_TIME_STEPS);
    assert_true(spread.median == 1 && spread.high == 1);
    assert_int_equal(gd_time_recent(report, last, 3), 3);
    assert_int_equal(last[0].step, GD_TIME_STEPS + 8);
    assert_int_equal(last[2].step, GD_TIME_STEPS + 10);
    assert_true(report->slowest[0].part[GD_TIME_TOTAL] == 50);
}

static void operators_add_up(void **state)
{
    struct gd_time_report *report = *state;
    struct gd_time_group *groups;
    uint32_t count;
    for (int step = 1; step <= 2; step++) {
        add_linear(report, "net/fc1", GD_FLOAT32, step, 0.25);
        add_linear(report, "net/fc1", GD_FLOAT32, step, 0.25);
        add_linear(report, "net/fc2", GD_FLOAT32, step, 2);
        add_linear(report, "net/fc2", GD_FLOAT16, step, 1);
    }
    assert_int_equal(report->op_count, 3);
    assert_int_equal(report->op[0].calls, 4);
    assert_int_equal(report->op[0].steps, 2);
    assert_true(gd_time_operator_seconds(report) == 7);
    assert_int_equal(gd_time_group_by(report, GD_BY_TYPE, &groups, &count, NULL), GD_OK);
    assert_int_equal(count, 1);
    assert_int_equal(groups[0].calls, 8);
    free(groups);
    assert_int_equal(gd_time_group_by(report, GD_BY_SHAPE, &groups, &count, NULL), GD_OK);
    assert_int_equal(count, 2);
    assert_true(groups[0].seconds == 5 && groups[1].seconds == 2);
    assert_int_equal(groups[0].operators, 2);
    free(groups);
    assert_int_equal(gd_time_group_by(report, GD_BY_MODULE, &groups, &count, NULL), GD_OK);
    assert_int_equal(count, 2);
    assert_string_equal(groups[0].key, "net/fc2");
    assert_true(groups[0].seconds == 6);
    free(groups);
}

/* A known operator still adds up when the report takes no others. */
static void a_full_report_counts_what_it_knows(void **state)
{
    struct gd_time_report *report = *state;
    char name[32];
    for (int i = 0; i <= GD_TIME_OPERATORS; i++) {
        snprintf(name, sizeof(name), "op%d", i);
        struct gd_time_record record = {
            .type = "relu", .name = name, .out.rank = -1, .calls = 1, .seconds = 1};
        assert_int_equal(gd_time_add_operator(report, &record, NULL), GD_OK);
    }
    assert_int_equal(report->op_count, GD_TIME_OPERATORS);
    assert_int_equal(report->op_dropped, 1);
    struct gd_time_record known = {
        .type = "relu", .name = "op0", .out.rank = -1, .calls = 2, .seconds = 3};
    assert_int_equal(gd_time_add_operator(report, &known, NULL), GD_OK);
    assert_int_equal(report->op_dropped, 1);
    assert_int_equal(report->op[0].calls, 3);
    assert_true(report->op[0].seconds == 4);
}

static void costs_follow_the_shapes(void **state)
{
    struct gd_time_report *report = *state;
    char text[128];
    add_linear(report, "fc", GD_FLOAT32, 1, 1e-3);
    const struct gd_time_operator *op = &report->op[0];
    assert_true(op->flops == 2.0 * 64 * 16 * 32);
    assert_true(op->bytes == 4.0 * (64 * 32 + 16 * 32 + 64 * 16));
    assert_string_equal(gd_time_shape_text(op, text, sizeof(text)), "float32 (64, 32) x (16, 32)");
    struct gd_time_record conv = {
        .type = "conv2d",
        .in_count = 2,
        .in = {{GD_FLOAT32, 4, {8, 3, 32, 32}}, {GD_FLOAT32, 4, {16, 3, 5, 5}}},
        .out = {GD_FLOAT32, 4, {8, 16, 28, 28}},
        .seconds = 1e-3};
    gd_time_add_operator(report, &conv, NULL);
    assert_true(report->op[1].flops == 2.0 * 8 * 16 * 28 * 28 * 3 * 5 * 5);
    struct gd_time_record backward = {
        .type = "AddmmBackward0",
        .phase = GD_TIME_IN_BACKWARD,
        .in_count = 2,
        .in = {make_tensor(GD_FLOAT32, 2, 64, 32), make_tensor(GD_FLOAT32, 2, 32, 16)},
        .out = make_tensor(GD_FLOAT32, 2, 64, 16),
        .seconds = 1e-3};
    gd_time_add_operator(report, &backward, NULL);
    assert_true(report->op[2].flops == 2 * op[0].flops);
    backward.type = "aten::convolution_backward";
    gd_time_add_operator(report, &backward, NULL);
    assert_true(report->op[3].flops < 0 && report->op[3].bytes < 0);
}

static void what_is_bound_by_memory(void **state)
{
    struct gd_time_report *report = *state;
    add_linear(report, "fc", GD_FLOAT32, 1, 1e-4);
    struct gd_time_balance balance = gd_time_balance_of(report);
    assert_int_equal(gd_time_bound_of(&balance, 100, 1), GD_BOUND_UNKNOWN); /* no elementwise one */
    struct gd_time_record relu = {.type = "relu",
                                  .in_count = 1,
                                  .in = {make_tensor(GD_FLOAT32, 1, 1000, 0)},
                                  .out = make_tensor(GD_FLOAT32, 1, 1000, 0),
                                  .seconds = 1e-4};
    gd_time_add_operator(report, &relu, NULL);
    balance = gd_time_balance_of(report);
    assert_true(balance.flops == 2.0 * 64 * 16 * 32 / 1e-4 && balance.bytes == 8000 / 1e-4);
    assert_int_equal(gd_time_bound_of(&balance, 8.1, 1), GD_BOUND_MEMORY); /* 8.192 FLOP per byte */
    assert_int_equal(gd_time_bound_of(&balance, 8.2, 1), GD_BOUND_COMPUTE);
}

static void kinds_of_any_framework(void **state)
{
    static const struct {
        const char *type;
        enum gd_time_kind kind;
    } known[] = {{"linear", GD_KIND_MATMUL},
                 {"aten::addmm", GD_KIND_MATMUL},
                 {"MatMul", GD_KIND_MATMUL},
                 {"BatchMatMul", GD_KIND_MATMUL},
                 {"AddmmBackward0", GD_KIND_MATMUL},
                 {"MmBackward0", GD_KIND_MATMUL},
                 {"conv2d", GD_KIND_CONV},
                 {"Conv2D", GD_KIND_CONV},
                 {"ConvolutionBackward0", GD_KIND_CONV},
                 {"to", GD_KIND_CAST},
                 {"ToCopyBackward0", GD_KIND_CAST},
                 {"aten::_to_copy", GD_KIND_CAST},
                 {"Cast", GD_KIND_CAST},
                 {"TransData", GD_KIND_LAYOUT},
                 {"contiguous", GD_KIND_LAYOUT},
                 {"relu", GD_KIND_ELEMENTWISE},
                 {"ReluBackward0", GD_KIND_ELEMENTWISE},
                 {"ReLU", GD_KIND_ELEMENTWISE},
                 {"softmax", GD_KIND_OTHER},
                 {"", GD_KIND_OTHER}};
    (void)state;
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (gd_time_kind_of(known[i].type) != known[i].kind) {
            fail_msg("%s is %d", known[i].type, gd_time_kind_of(known[i].type));
        }
    }
}

static void facts_are_read(void **state)
{
    struct gd_time_report *report = *state;
    add_step(report, 3, 1, 0);
    gd_time_read_facts(
        report, "{\"device\":\"cpu\",\"processors\":2,\"step\":3,\"tail\":0.25,\"cost\":0.5,"
                "\"loader\":{\"kind\":\"DataLoader\",\"workers\":4,\"pinned\":true,\"requests\":9,"
                "\"empty\":8},\"waits\":[{\"function\":\"item\",\"place\":\"a.py:1\",\"calls\":6,"
                "\"seconds\":0.5,\"steps\":3},{\"function\":\"x\",\"calls\":-1,\"steps\":1}],"
                "\"reducer\":{\"kind\":\"DDP\",\"world_size\":2,\"buckets\":[100,\"x\",200],"
                "\"gradients\":[[100,0.5],[200,1]]}}");
    const struct gd_time_facts *facts = &report->facts;
    assert_string_equal(facts->device, "cpu");
    assert_true(facts->loader.workers == 4 && facts->loader.pinned == 1);
    assert_true(facts->loader.knows_queue && facts->loader.empty == 8);
    assert_true(facts->loader.persistent == -1); /* not said */
    assert_int_equal(facts->wait_count, 1);
    assert_int_equal(facts->bucket_count, 2);
    assert_int_equal(facts->gradient_count, 2);
    assert_true(report->last.tail == 0.25 && report->last.cost == 0.5);
}

static void bad_facts_change_nothing(void **state)
{
    static const char *const bad[] = {
        "",
        "[",
        "[]",
        "7",
        "{\"loader\":7,\"waits\":{},\"reducer\":[]}",
        "{\"device\":7,\"processors\":-1,\"mean_cost\":\"x\"}",
        "{\"reducer\":{\"gradients\":[[1,2],[3,1]]}}", /* not in order */
        "{\"reducer\":{\"gradients\":[[1],[3,1]]}}",
        "{\"reducer\":{\"gradients\":[1e300,7]}}"};
    struct gd_time_report *report = *state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        gd_time_read_facts(report, bad[i]);
    }
    assert_string_equal(report->facts.device, "");
    assert_int_equal(report->facts.processors, 0);
    assert_int_equal(report->facts.gradient_count, 0);
    assert_int_equal(report->facts.wait_count, 0);
}

static const struct CMUnitTest tests[] = {TEST(the_first_step_is_apart),
                                          TEST(the_batch_may_come_later),
                                          TEST(old_steps_leave_the_ring),
                                          TEST(operators_add_up),
                                          TEST(a_full_report_counts_what_it_knows),
                                          TEST(costs_follow_the_shapes),
                                          TEST(what_is_bound_by_memory),
                                          TEST(kinds_of_any_framework),
                                          TEST(facts_are_read),
                                          TEST(bad_facts_change_nothing)};
RUN_TESTS()
