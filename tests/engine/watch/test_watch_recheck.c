// SPDX-License-Identifier: GPL-3.0-or-later
/* Judging at a stop: on demand, and once before the first step. */
#include <math.h>

#include "watch_bench.h"

struct outcome {
    int calls;
    size_t hits;
    int code;
};

static void take_recheck(void *ctx, size_t hits, const struct gd_err *err)
{
    struct outcome *outcome = ctx;
    outcome->calls++;
    outcome->hits = hits;
    outcome->code = err ? err->code : GD_OK;
}

/* The weight is all zero, Log is NaN, Odd has no value, the others are 2. */
static void answer_stats(struct fake_target *fake, const struct gd_tensor_ref *ref, gd_stats_fn fn,
                         void *ctx)
{
    struct gd_stats stats = bench_stats(4, ref->node == N_WEIGHT ? 0
                                           : ref->node == N_LOG  ? NAN
                                                                 : 2);
    struct gd_shape shape = {.rank = 1, .dim = {4}};
    struct gd_err err;
    gd_fail(&err, GD_ENODATA, "not computed in this step");
    if (ref->node == N_UNKNOWN) {
        fn(ctx, GD_DT_NONE, NULL, NULL, -1, &err);
    } else {
        fn(ctx, GD_FLOAT32, &shape, &stats, 1, NULL);
    }
}

/* 10, 11, 12, 13, and 10, 11, 12, 13.1 in the step before. */
static void answer_fetch(struct fake_target *fake, const struct gd_tensor_ref *ref, gd_tensor_fn fn,
                         void *ctx)
{
    struct gd_tensor *tensor = fake_tensor(4, 10);
    if (ref->iter == GD_PREVIOUS) {
        ((float *)(void *)gd_tensor_bytes_mut(tensor))[3] = 13.1F;
    }
    fn(ctx, tensor, ref->iter == GD_PREVIOUS ? 4 : 5, NULL);
    gd_tensor_unref(tensor);
}

static struct watch_bench *stopped_bench(unsigned capabilities)
{
    struct watch_bench *bench = bench_make(capabilities);
    bench->fake->on_stats = answer_stats;
    bench->fake->on_fetch = answer_fetch;
    bench_stop(bench, GD_STOP_CONNECTED, 0);
    return bench;
}

static void test_statistics(void **state)
{
    struct watch_bench *bench = stopped_bench(BENCH_PLANS);
    struct outcome outcome = {0};
    bench_must_watch(bench, "TO on all");
    bench_must_watch(bench, "TZ on all");
    bench_run(bench);
    bench_stop(bench, GD_STOP_STEP, 5);
    assert_ok(gd_watch_recheck(bench->session, take_recheck, &outcome, NULL));
    assert_int_equal(outcome.calls, 1);
    assert_ok(outcome.code);
    assert_int_equal(outcome.hits, 3); /* TZ on the weight, TO on both slots of Log */
    /* and TZ could not be checked on those; what has no value is left out */
    assert_int_equal(bench->hit_count, 5);
    assert_int_equal(bench->hits[0].node, N_WEIGHT);
    assert_string_equal(bench->hits[0].kind->abbr, "TZ");
    assert_int_equal(bench->hits[0].step, 5);
    assert_int_equal(bench->hits[0].stop_sequence, bench->session->stop.sequence);
    assert_int_equal(bench->fake->stats_asked, 8);
    assert_int_equal(bench->fake->fetches, 0);
    /* Again: said again. */
    assert_ok(gd_watch_recheck(bench->session, take_recheck, &outcome, NULL));
    assert_int_equal(outcome.hits, 3);
    assert_int_equal(bench->hit_count, 10);
    bench_free(bench);
}

/* Ranges and tolerances: computed here from the values. */
static void test_values(void **state)
{
    struct watch_bench *bench = stopped_bench(BENCH_PLANS);
    struct outcome outcome = {0};
    bench_run(bench);
    bench_stop(bench, GD_STOP_STEP, 5);
    bench_must_watch(bench, "WNC rtol=0.1 on w1.weight");
    bench_must_watch(bench, "WNC rtol=0.0001 on w1.weight");
    bench_must_watch(bench, "TR range_start_inclusive=11 range_end_inclusive=12 "
                            "range_percentage_gt=49 on ReLU-op2");
    assert_ok(gd_watch_recheck(bench->session, take_recheck, &outcome, NULL));
    assert_int_equal(outcome.calls, 1);
    assert_int_equal(outcome.hits, 2);
    assert_int_equal(bench->hits[0].watchpoint, 1);
    assert_int_equal(bench->hits[1].watchpoint, 3);
    assert_true(bench->hits[1].param[3].actual_value == 50);
    bench_free(bench);
}

static void test_states(void **state)
{
    struct watch_bench *bench = *state;
    struct outcome outcome = {0};
    struct gd_err err;
    assert_int_equal(gd_watch_recheck(bench->session, take_recheck, &outcome, &err), GD_ESTATE);
    bench_stop(bench, GD_STOP_CONNECTED, 0);
    assert_int_equal(gd_watch_recheck(bench->session, take_recheck, &outcome, &err), GD_ESTATE);
    bench_must_watch(bench, "TO on ReLU-op2");
    bench_run(bench);
    assert_int_equal(gd_watch_recheck(bench->session, take_recheck, &outcome, &err), GD_ESTATE);
    bench_stop(bench, GD_STOP_STEP, 1);
    assert_ok(gd_watch_recheck(bench->session, take_recheck, &outcome, &err));
    assert_int_equal(gd_watch_recheck(bench->session, take_recheck, &outcome, &err), GD_ESTATE);
    assert_int_equal(outcome.calls, 0);
    gd_session_on_lost(bench->session, "it broke");
    assert_int_equal(outcome.calls, 1);
    assert_true(outcome.code != GD_OK);
}

static void test_deleted_while_asking(void **state)
{
    struct watch_bench *bench = *state;
    struct outcome outcome = {0};
    bench_stop(bench, GD_STOP_STEP, 1);
    int number = bench_must_watch(bench, "TO on ReLU-op2");
    assert_ok(gd_watch_recheck(bench->session, take_recheck, &outcome, NULL));
    assert_ok(gd_watchpoint_delete(bench->debugger, number, NULL));
    fake_answer_error(bench->fake, GD_ENODATA);
    assert_int_equal(outcome.calls, 1);
    assert_int_equal(outcome.hits, 0);
}

static void test_sum(void **state)
{
    struct watch_bench *bench = stopped_bench(BENCH_PLANS);
    struct outcome outcome = {0};
    bench_must_watch(bench, "GS");
    bench_stop(bench, GD_STOP_STEP, 1);
    assert_ok(gd_watch_recheck(bench->session, take_recheck, &outcome, NULL));
    assert_int_equal(outcome.calls, 1);
    assert_int_equal(outcome.hits, 0);
    assert_int_equal(bench->hits[0].error, GD_HIT_NO_HISTORY);
    bench_free(bench);
}

/* The process does its part: asked to, and waited for. */
static void test_process(void **state)
{
    struct watch_bench *bench = stopped_bench(BENCH_PLANS | GD_CAN_WATCH_REMOTE);
    struct outcome outcome = {0};
    bench_stop(bench, GD_STOP_STEP, 3);
    int number = bench_must_watch(bench, "TO on ReLU-op2");
    bench_must_watch(bench, "trace TZ on w1.weight");
    assert_ok(gd_watch_recheck(bench->session, take_recheck, &outcome, NULL));
    assert_int_equal(outcome.calls, 0);
    assert_int_equal(bench->fake->run.kind, GD_RUN_RECHECK);
    struct gd_hit hit = {.watchpoint = number, .condition = 13, .step = 3, .node = N_RELU};
    gd_session_on_hit(bench->session, &hit);
    bench_stop(bench, GD_STOP_HIT, 3);
    assert_int_equal(outcome.calls, 1);
    assert_int_equal(outcome.hits, 2);
    bench_free(bench);
}

static void test_process_lost(void **state)
{
    struct watch_bench *bench = stopped_bench(GD_CAN_STEP | GD_CAN_WATCH_REMOTE);
    struct outcome outcome = {0};
    bench_must_watch(bench, "TO on ReLU-op2");
    assert_ok(gd_watch_recheck(bench->session, take_recheck, &outcome, NULL));
    gd_session_on_lost(bench->session, "it broke");
    assert_int_equal(outcome.calls, 1);
    assert_int_equal(outcome.code, GD_ELOST);
    assert_int_equal(gd_watch_recheck(bench->session, take_recheck, &outcome, NULL), GD_ESTATE);
    bench_free(bench);
}

static void test_debugger_ends(void **state)
{
    struct watch_bench *bench = stopped_bench(GD_CAN_STEP | GD_CAN_WATCH_REMOTE);
    struct outcome outcome = {0};
    bench_must_watch(bench, "TO on ReLU-op2");
    assert_ok(gd_watch_recheck(bench->session, take_recheck, &outcome, NULL));
    bench_free(bench);
    assert_int_equal(outcome.calls, 1);
}

static void test_initial(void **state)
{
    struct watch_bench *bench = stopped_bench(BENCH_PLANS);
    struct gd_err err;
    int number = bench_must_watch(bench, "WI");
    assert_int_equal(bench->hit_count, 1);
    assert_int_equal(bench->hits[0].node, N_WEIGHT);
    assert_true(bench->hits[0].param[0].actual_value == 100);
    assert_int_equal(bench->fake->plan_count, 0);
    gd_session_on_graph(bench->session);
    assert_int_equal(bench->hit_count, 1);
    bench_must_watch(bench, "WI max_gt=1 on w2.bias"); /* a second one */
    assert_int_equal(bench->hit_count, 2);
    bench_run(bench);
    bench_stop(bench, GD_STOP_STEP, 1);
    assert_int_equal(bench->hit_count, 2);
    assert_int_equal(bench_watch(bench, "WI", &err), GD_ESTATE);
    gd_session_on_graph(bench->session); /* the old one stays, silently */
    assert_int_equal(bench->warnings, 0);
    assert_non_null(gd_watchpoint_at(bench->debugger, number));
    bench_free(bench);
}

/* Set before anything is connected. */
static void test_initial_ahead(void **state)
{
    struct watch_bench *bench = *state;
    bench->fake->on_stats = answer_stats;
    bench_must_watch(bench, "WI");
    assert_int_equal(bench->hit_count, 0);
    bench_stop(bench, GD_STOP_CONNECTED, 0);
    assert_int_equal(bench->hit_count, 1);
    bench_stop(bench, GD_STOP_CONNECTED, 0);
    assert_int_equal(bench->hit_count, 1);
}

/* Attached to a training that was further along. */
static void test_initial_missed(void **state)
{
    struct watch_bench *bench = *state;
    bench_must_watch(bench, "WI");
    bench_stop(bench, GD_STOP_CONNECTED, 500);
    bench_stop(bench, GD_STOP_STEP, 501);
    assert_int_equal(bench->hit_count, 0);
    assert_int_equal(bench->fake->stats_asked, 0);
    assert_int_equal(bench->warnings, 1);
    assert_contains(bench->warning, "first step is already over");
}

struct held { /* questions that the fake has not answered yet */
    gd_stats_fn fn[8];
    void *ctx[8];
    int count;
};
static struct held held;

static void hold_stats(struct fake_target *fake, const struct gd_tensor_ref *ref, gd_stats_fn fn,
                       void *ctx)
{
    assert_true(held.count < 8);
    held.fn[held.count] = fn;
    held.ctx[held.count++] = ctx;
}

/* The training is told to go on before the answers are there. */
static void test_initial_late(void **state)
{
    struct watch_bench *bench = *state;
    struct gd_stats stats = bench_stats(4, 0);
    struct gd_shape shape = {.rank = 1, .dim = {4}};
    memset(&held, 0, sizeof(held));
    bench->fake->on_stats = hold_stats;
    bench_stop(bench, GD_STOP_CONNECTED, 0);
    bench_must_watch(bench, "WI");
    assert_int_equal(held.count, 2);
    bench_run(bench);
    for (int i = 0; i < 2; i++) {
        held.fn[i](held.ctx[i], GD_FLOAT32, &shape, &stats, 0, NULL);
    }
    assert_int_equal(bench->hit_count, 2);
    assert_int_equal(bench->hits[0].stop_sequence, 1);
    assert_int_equal(bench->hits[0].step, 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_statistics),
    cmocka_unit_test(test_values),
    WATCH_TEST(test_states),
    WATCH_TEST(test_deleted_while_asking),
    cmocka_unit_test(test_sum),
    cmocka_unit_test(test_process),
    cmocka_unit_test(test_process_lost),
    cmocka_unit_test(test_debugger_ends),
    cmocka_unit_test(test_initial),
    WATCH_TEST(test_initial_ahead),
    WATCH_TEST(test_initial_late),
    WATCH_TEST(test_initial_missed),
};

RUN_TESTS()
