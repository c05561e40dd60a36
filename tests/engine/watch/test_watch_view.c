// SPDX-License-Identifier: GPL-3.0-or-later
/* What is told of watchpoints: states of nodes and scopes, costs, texts, recommendations. */
#include "base/buf.h"
#include "watch_bench.h"

static enum gd_watch_state scope_state(struct watch_bench *bench, const char *path)
{
    gd_scope_id scope = gd_graph_find_scope(bench->session->graph, path, strlen(path));
    assert_int_not_equal(scope, GD_NO_SCOPE);
    return gd_watch_scope_state(bench->session, scope);
}

static void test_states(void **state)
{
    struct watch_bench *bench = *state;
    int numbers[4];
    assert_int_equal(gd_watch_node_state(bench->session, N_CONV), GD_WATCHED_NONE);
    assert_int_equal(scope_state(bench, "net"), GD_WATCHED_NONE);
    int first = bench_must_watch(bench, "TO on ReLU-op2");
    assert_int_equal(gd_watch_node_state(bench->session, N_RELU), GD_WATCHED_ALL);
    assert_int_equal(gd_watch_node_state(bench->session, N_CONV), GD_WATCHED_NONE);
    assert_int_equal(gd_watch_node_state(bench->session, N_CONST), GD_WATCHED_CANNOT);
    assert_int_equal(gd_watch_node_state(bench->session, N_TEXT), GD_WATCHED_CANNOT);
    assert_int_equal(gd_watch_node_state(bench->session, 12345), GD_WATCHED_CANNOT);
    assert_int_equal(scope_state(bench, "net"), GD_WATCHED_PART);
    assert_int_equal(scope_state(bench, "deep"), GD_WATCHED_NONE);
    assert_int_equal(gd_watch_scope_state(bench->session, 0), GD_WATCHED_PART);
    int second = bench_must_watch(bench, "TZ on net");
    assert_int_equal(scope_state(bench, "net"), GD_WATCHED_ALL);
    assert_int_equal(gd_watch_of_node(bench->session, N_RELU, numbers, 4), 2);
    assert_int_equal(numbers[0], first);
    assert_int_equal(numbers[1], second);
    assert_int_equal(gd_watch_of_node(bench->session, N_RELU, numbers, 1), 2);
    assert_int_equal(gd_watch_of_node(bench->session, N_BIAS, numbers, 4), 0);
    bench_add(bench->session, "only/text", "Text", GD_NO_ORDER, GD_STRING, 1);
    bench_add(bench->session, "deep/net/New-op7", "New", 7, GD_FLOAT32, 1);
    assert_ok(gd_graph_commit(bench->session->graph, NULL));
    gd_session_on_graph(bench->session);
    assert_int_equal(scope_state(bench, "only"), GD_WATCHED_CANNOT);
    bench_must_watch(bench, "TZ on New-op7");
    assert_int_equal(scope_state(bench, "deep"), GD_WATCHED_PART); /* seen from above, too */
    assert_int_equal(scope_state(bench, "deep/net"), GD_WATCHED_PART);
    assert_ok(gd_watchpoint_enable(bench->debugger, second, false, NULL));
    assert_int_equal(scope_state(bench, "net"), GD_WATCHED_PART);
}

static void take_total(void *ctx, const struct gd_watch_total *total)
{
    *(struct gd_watch_total *)ctx = *total;
}

static void test_costs(void **state)
{
    struct watch_bench *bench = *state;
    struct gd_watch_total total = {0};
    uint64_t ns[16], runs[16], cost_ns = 0, cost_bytes = 0, compute = 0;
    struct gd_plan_cost costs[4];
    bench_must_watch(bench, "TO on all");
    bench_must_watch(bench, "TZ on net");
    bench_must_watch(bench, "'max > 3' on ReLU-op2");
    for (size_t i = 0; i < 16; i++) {
        ns[i] = 1000003 + 7 * i;
        runs[i] = 1;
    }
    for (size_t i = 0; i < bench->fake->plan_count; i++) {
        costs[i] = (struct gd_plan_cost){.plan = bench->fake->plans[i].id,
                                         .item_ns = ns,
                                         .item_runs = runs,
                                         .item_count = bench->fake->plans[i].count,
                                         .wait_ns = 5,
                                         .reports = 2,
                                         .report_bytes = 1001};
        for (size_t k = 0; k < costs[i].item_count; k++) {
            compute += ns[k];
        }
    }
    assert_ok(gd_watch_costs(bench->debugger, take_total, &total, NULL));
    assert_int_equal(total.tensors, 0); /* not answered yet */
    bench->fake->costs_fn(bench->fake->costs_ctx, costs, bench->fake->plan_count, NULL);
    assert_int_equal(total.tensors, 8);
    assert_int_equal(total.compute_ns, compute);
    assert_int_equal(total.wait_ns, 5 * bench->fake->plan_count);
    assert_int_equal(total.reports, 2 * bench->fake->plan_count);
    assert_int_equal(total.report_bytes, 1001 * bench->fake->plan_count);
    for (const struct gd_watchpoint *w = bench->debugger->watchpoints; w; w = w->next) {
        assert_true(w->cost_ns > 0 && w->cost_bytes > 0);
        cost_ns += w->cost_ns;
        cost_bytes += w->cost_bytes;
    }
    assert_int_equal(cost_ns, total.compute_ns);
    assert_int_equal(cost_bytes, total.report_bytes);
    assert_true(bench->debugger->watchpoints->cost_ns >
                bench->debugger->watchpoints->next->next->cost_ns);
    assert_int_equal(bench->debugger->watchpoints->looks, 8);
    assert_int_equal(bench->debugger->watchpoints->next->next->looks, 1);
}

/* An answer that nobody waits for any more, and the one to the question asked after it. */
static void test_costs_asked_twice(void **state)
{
    struct watch_bench *bench = *state;
    struct gd_watch_total late = {0}, total = {0};
    uint64_t ns[1] = {100}, runs[1] = {3};
    bench_must_watch(bench, "TO on ReLU-op2");
    const struct gd_plan_cost cost = {.plan = bench->fake->plans[0].id,
                                      .item_ns = ns,
                                      .item_runs = runs,
                                      .item_count = 1,
                                      .report_bytes = 50};
    assert_ok(gd_watch_costs(bench->debugger, take_total, &late, NULL));
    gd_watch_costs_fn late_fn = bench->fake->costs_fn;
    void *late_ctx = bench->fake->costs_ctx;
    assert_ok(gd_watch_costs(bench->debugger, take_total, &total, NULL));
    late_fn(late_ctx, &cost, 1, NULL);
    bench->fake->costs_fn(bench->fake->costs_ctx, &cost, 1, NULL);
    const struct gd_watchpoint *watch = bench->debugger->watchpoints;
    assert_int_equal(total.compute_ns, 100);
    assert_int_equal(watch->cost_ns, total.compute_ns);
    assert_int_equal(watch->cost_bytes, total.report_bytes);
    assert_int_equal(watch->looks, 3);
}

static void test_costs_fail(void **state)
{
    struct watch_bench *bench = *state;
    struct gd_watch_total total = {.tensors = 77};
    struct gd_err err;
    uint64_t ns[2] = {1, 2};
    assert_ok(gd_watch_costs(bench->debugger, take_total, &total, NULL));
    assert_int_equal(total.tensors, 0); /* nobody to ask */
    bench_must_watch(bench, "TO on ReLU-op2");
    total.tensors = 77;
    assert_ok(gd_watch_costs(bench->debugger, take_total, &total, NULL));
    gd_fail(&err, GD_ELOST, "gone");
    bench->fake->costs_fn(bench->fake->costs_ctx, NULL, 0, &err);
    assert_int_equal(total.tensors, 1);
    assert_int_equal(total.compute_ns, 0);
    /* Figures of a plan that looked otherwise when they were taken. */
    struct gd_plan_cost cost = {.plan = bench->fake->plans[0].id,
                                .item_ns = ns,
                                .item_runs = ns,
                                .item_count = 2,
                                .report_bytes = 9};
    assert_ok(gd_watch_costs(bench->debugger, take_total, &total, NULL));
    bench->fake->costs_fn(bench->fake->costs_ctx, &cost, 1, NULL);
    assert_int_equal(total.compute_ns, 0);
    assert_int_equal(total.report_bytes, 0);
}

static void test_commands(void **state)
{
    static const char *const lines[][2] = {
        {"TO", "watch TO on all"},
        {"watch TL max_gt=1e3 on weights", "watch TL max_gt=1000 on weights"},
        {"trace -step TL abs_mean_gt=0.1 on net if step > 10",
         "trace -step TL abs_mean_gt=0.1 on net if step > 10"},
        {"twatch -exact TZ on type:relu, weights except *.bias",
         "twatch -exact TZ zero_percentage_ge=100 on type:relu, weights except *.bias"},
        {"'max > 1e4 || nan > 0' on gradients", "watch 'max > 1e4 || nan > 0' on gradients"},
        {"LN", "watch LN on loss"},
        {"AR range_start_inclusive=-0.9999999545590812 range_end_inclusive=0.9999999545590812 "
         "range_percentage_lt=0.1",
         "watch AR range_start_inclusive=-0.9999999545590812 "
         "range_end_inclusive=0.9999999545590812 range_percentage_lt=0.1 on activations"},
        {"'loss > 5 && step > 3'", "watch 'loss > 5 && step > 3' on loss"},
    };
    struct watch_bench *bench = *state;
    for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
        struct gd_buf first = GD_BUF_INIT(4096), second = GD_BUF_INIT(4096);
        int number = bench_must_watch(bench, lines[i][0]);
        gd_watchpoint_command(gd_watchpoint_at(bench->debugger, number), &first);
        assert_string_equal(gd_buf_text(&first), lines[i][1]);
        number = bench_must_watch(bench, gd_buf_text(&first)); /* what it says makes it again */
        gd_watchpoint_command(gd_watchpoint_at(bench->debugger, number), &second);
        assert_string_equal(gd_buf_text(&second), lines[i][1]);
        gd_buf_deinit(&first);
        gd_buf_deinit(&second);
    }
    struct gd_buf text = GD_BUF_INIT(4096);
    gd_watchpoint_text(bench->debugger->watchpoints->next->next, &text);
    assert_string_equal(gd_buf_text(&text), "TL max_gt=1000 on weights");
    gd_buf_deinit(&text);
}

static void test_refused(void **state)
{
    static const struct {
        const char *line;
        int code;
    } cases[] = {
        {"TL on weights", GD_EINVAL},      {"TL max_lt=1 on weights", GD_EINVAL},
        {"TO on all except", GD_EINVAL},   {"'max >' on all", GD_EINVAL},
        {"'max > 1' on a b", GD_EINVAL},   {"TO on all if max >", GD_EINVAL},
        {"TO on type:none", GD_ENOTFOUND}, {"TO on net/const", GD_ENOTFOUND},
    };
    struct watch_bench *bench = *state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct gd_err err = {0};
        assert_int_equal(bench_watch(bench, cases[i].line, &err), cases[i].code);
        assert_true(err.text[0] != '\0');
        assert_null(bench->debugger->watchpoints);
    }
    assert_int_equal(bench_must_watch(bench, "TO on all"), 1); /* no number was used */
    struct gd_err err;
    assert_int_equal(gd_watchpoint_delete(bench->debugger, 9, &err), GD_ENOTFOUND);
    assert_int_equal(gd_watchpoint_enable(bench->debugger, 9, true, &err), GD_ENOTFOUND);
    assert_int_equal(gd_watchpoint_set_ignore(bench->debugger, 9, 1, &err), GD_ENOTFOUND);
    assert_int_equal(gd_watchpoint_add(bench->debugger, &(struct gd_watch_spec){0}, NULL, &err),
                     GD_EINVAL);
}

static void test_recommended(void **state)
{
    static const struct {
        const char *name, *abbr, *where;
        double value;
        size_t nodes;
    } want[] = {
        {"recommend_weight_initialization_watchpoint", "WI", "weights except *bias*, *beta", 100,
         1},
        {"recommend_weight_change_too_large_watchpoint", "WCL", "weights except *bias*, *beta", 1,
         1},
        {"recommend_gradient_vanishing_watchpoint", "GV", "gradients", 1e-9, 1},
        {"recommend_operator_overflow_watchpoint", "OO", "all", 0, 10},
        {"recommend_tensor_overflow_watchpoint", "TO", "all", 0, 10},
        {"recommend_tensor_all_zero_watchpoint", "TZ", "all", 100, 10},
        {"recommend_tanh_activation_range_watchpoint", "AR", "type:tanh", 0.1, 1},
        {"recommend_sigmoid_activation_range_watchpoint", "AR", "type:sigmoid", 0.1, 1},
        {"recommend_relu_activation_range_watchpoint", "AR", "type:relu, type:reluv2", 99.9, 1},
    };
    struct watch_bench *bench = bench_make(BENCH_PLANS | GD_CAN_WATCH_REMOTE);
    struct gd_recommendation it;
    snprintf(bench->session->peer.device, sizeof(bench->session->peer.device), "Ascend");
    bench_add(bench->session, "net/Tanh-op8", "Tanh", 8, GD_FLOAT32, 1);
    bench_add(bench->session, "net/Sigmoid-op9", "sigmoid", 9, GD_FLOAT32, 1);
    assert_ok(gd_graph_commit(bench->session->graph, NULL));
    gd_session_on_graph(bench->session);
    size_t count = sizeof(want) / sizeof(*want);
    for (size_t i = 0; i < count; i++) {
        assert_true(gd_recommendation_at(bench->session, i, &it));
        assert_string_equal(it.name, want[i].name);
        assert_string_equal(it.condition->abbr, want[i].abbr);
        assert_string_equal(it.where, want[i].where);
        assert_int_equal(it.nodes, want[i].nodes);
        assert_true(!it.value_count || it.values[0].value == want[i].value);
        struct gd_watch_spec spec = {.condition = it.condition,
                                     .values = it.values,
                                     .value_count = it.value_count,
                                     .where = it.where,
                                     .label = "recommended"};
        assert_ok(gd_watchpoint_add(bench->debugger, &spec, NULL, NULL));
    }
    assert_false(gd_recommendation_at(bench->session, count, &it));
    bench_free(bench);
}

static void test_recommended_less(void **state)
{
    struct watch_bench *bench = bench_make(BENCH_PLANS | GD_CAN_WATCH_REMOTE);
    struct gd_recommendation it;
    const char *want[] = {"WCL", "GV", "TO", "TZ", "AR"}; /* the first step is over, no Ascend */
    bench_stop(bench, GD_STOP_STEP, 4);
    for (size_t i = 0; i < 5; i++) {
        assert_true(gd_recommendation_at(bench->session, i, &it));
        assert_string_equal(it.condition->abbr, want[i]);
    }
    assert_string_equal(it.where, "type:relu, type:reluv2");
    assert_false(gd_recommendation_at(bench->session, 5, &it));
    gd_session_on_lost(bench->session, "gone");
    assert_false(gd_recommendation_at(bench->session, 0, &it));
    bench_free(bench);
}

/* Where gradb judges, nothing that one step alone would have fire. */
static void test_recommended_own(void **state)
{
    static const struct {
        const char *abbr, *guard;
        uint32_t steps;
    } want[] = {{"TO", NULL, 0},         {"WCL", NULL, 5},        {"TZ", "loss != 0", 10},
                {"GV", "loss != 0", 10}, {"TZ", "loss != 0", 10}, {"LS", NULL, 0}};
    struct watch_bench *bench = *state;
    struct gd_recommendation it;
    size_t count = sizeof(want) / sizeof(*want);
    for (size_t i = 0; i < count; i++) {
        assert_true(gd_recommendation_at(bench->session, i, &it));
        assert_string_equal(it.condition->abbr, want[i].abbr);
        assert_int_equal(it.steps, want[i].steps);
        assert_string_equal(it.guard ? it.guard : "", want[i].guard ? want[i].guard : "");
    }
    assert_false(gd_recommendation_at(bench->session, count, &it));
}

/* A session that is over keeps what is known of it; the list can still change. */
static void test_lost(void **state)
{
    struct watch_bench *bench = *state;
    int number = bench_must_watch(bench, "TO on ReLU-op2");
    gd_session_on_lost(bench->session, "gone");
    gd_debugger_reap(bench->debugger);
    assert_int_equal(gd_watch_node_state(bench->session, N_RELU), GD_WATCHED_ALL);
    bench_must_watch(bench, "TZ on net");
    assert_ok(gd_watchpoint_delete(bench->debugger, number, NULL));
    assert_int_equal(gd_watch_node_state(bench->session, N_RELU), GD_WATCHED_NONE);
    struct fake_target *fake;
    struct gd_session *again = bench_connect(bench, BENCH_PLANS, &fake);
    bench_graph(again);
    assert_int_equal(fake->plan_count, 1);
}

static const struct CMUnitTest tests[] = {
    WATCH_TEST(test_states),
    WATCH_TEST(test_costs),
    WATCH_TEST(test_costs_fail),
    WATCH_TEST(test_costs_asked_twice),
    WATCH_TEST(test_commands),
    WATCH_TEST(test_refused),
    cmocka_unit_test(test_recommended),
    cmocka_unit_test(test_recommended_less),
    WATCH_TEST(test_recommended_own),
    WATCH_TEST(test_lost),
};

RUN_TESTS()
