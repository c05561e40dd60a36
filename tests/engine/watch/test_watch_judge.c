// SPDX-License-Identifier: GPL-3.0-or-later
/* What becomes of the values that a plan reports. */
#include <math.h>

#include "engine/watch/watch_report.h"
#include "watch_bench.h"

static bool report_value(struct watch_bench *bench, gd_node_id node, bool exact, int64_t step,
                         double value)
{
    struct gd_stats stats = bench_stats(4, value);
    char why[200];
    return bench_report(bench, bench_plan(bench, node, 0, exact, NULL), node, 0, step, &stats, 0,
                        why, sizeof(why));
}

static void test_hit(void **state)
{
    struct watch_bench *bench = *state;
    struct gd_stats stats = bench_stats(4, NAN);
    char why[200];
    int number = bench_must_watch(bench, "TO on all");
    bench_run(bench);
    assert_false(report_value(bench, N_LOG, true, 1, 2.5));
    assert_int_equal(bench->hit_count, 0);
    const struct fake_plan *plan = bench_plan(bench, N_LOG, 0, true, NULL);
    assert_true(bench_report(bench, plan, N_LOG, 1, 3, &stats, 0, why, sizeof(why)));
    assert_string_equal(why, "watchpoint 1 (TO) on net/Log-op3:1");
    assert_int_equal(bench->hit_count, 1);
    const struct gd_hit *hit = &bench->hits[0];
    assert_int_equal(hit->watchpoint, number);
    assert_string_equal(hit->kind->abbr, "TO");
    assert_int_equal(hit->condition, GD_WIRE_NOT_FINITE);
    assert_string_equal(hit->expression, "");
    assert_true(!hit->traced && !hit->is_scalar && !hit->error);
    assert_int_equal(hit->step, 3);
    assert_int_equal(hit->node, N_LOG);
    assert_string_equal(hit->node_name, "net/Log-op3");
    assert_int_equal(hit->slot, 1);
    assert_int_equal(hit->stop_sequence, bench->session->stop.sequence + 1);
    const struct gd_watchpoint *watch = gd_watchpoint_at(bench->debugger, number);
    assert_int_equal(watch->hits, 1);
    assert_int_equal(watch->checks, 2);
    /* Once a step, however often it is reported. */
    assert_false(bench_report(bench, plan, N_LOG, 1, 3, &stats, 0, why, sizeof(why)));
    assert_string_equal(why, "");
    assert_int_equal(bench->hit_count, 1);
    assert_true(bench_report(bench, plan, N_LOG, 1, 4, &stats, 0, why, sizeof(why)));
    assert_int_equal(watch->hits, 2);
}

static void test_params(void **state)
{
    struct watch_bench *bench = *state;
    bench_must_watch(bench, "TL max_gt=5 on ReLU-op2");
    bench_must_watch(bench, "'max > 4 || nan > 0' on ReLU-op2");
    assert_true(report_value(bench, N_RELU, false, 1, 5.5));
    assert_int_equal(bench->hit_count, 2);
    const struct gd_hit *hit = &bench->hits[0];
    assert_int_equal(hit->param_count, 4);
    assert_string_equal(hit->param[1].name, "max_gt");
    assert_true(hit->param[1].hit && !hit->param[1].disabled);
    assert_true(hit->param[1].set_value == 5 && hit->param[1].actual_value == 5.5);
    assert_true(hit->param[0].disabled);
    hit = &bench->hits[1];
    assert_null(hit->kind);
    assert_int_equal(hit->condition, GD_WIRE_OWN);
    assert_string_equal(hit->expression, "max > 4 || nan > 0");
    assert_int_equal(hit->param_count, 2);
    assert_true(hit->param[0].actual_value == 5.5);
    assert_true(report_value(bench, N_RELU, false, 2, 5)); /* above 4 alone */
    assert_int_equal(bench->hit_count, 3);
    assert_int_equal(bench->hits[2].watchpoint, 2);
}

/* Ranges of several watchpoints lie in one item: each is judged by its own. */
static void test_ranges(void **state)
{
    struct watch_bench *bench = *state;
    struct gd_stats stats = bench_stats(10, 1);
    char why[200];
    bench_must_watch(bench,
                     "TR range_start_inclusive=0 range_end_inclusive=1 range_percentage_lt=50 on "
                     "ReLU-op2");
    bench_must_watch(bench,
                     "TR range_start_inclusive=2 range_end_inclusive=3 range_percentage_lt=50 on "
                     "ReLU-op2");
    stats.range_count = 2;
    stats.in_range[0] = 9;
    stats.in_range[1] = 1;
    assert_true(bench_report(bench, bench_plan(bench, N_RELU, 0, false, NULL), N_RELU, 0, 1, &stats,
                             0, why, sizeof(why)));
    assert_int_equal(bench->hit_count, 1);
    assert_int_equal(bench->hits[0].watchpoint, 2);
    assert_true(bench->hits[0].param[2].actual_value == 10);
}

static void test_not_checked(void **state)
{
    struct watch_bench *bench = *state;
    int number = bench_must_watch(bench, "TL max_gt=5 on ReLU-op2");
    const struct gd_watchpoint *watch = gd_watchpoint_at(bench->debugger, number);
    for (int step = 1; step <= 3; step++) {
        assert_false(report_value(bench, N_RELU, false, step, NAN));
    }
    assert_int_equal(bench->hit_count, 1); /* told once */
    assert_int_equal(bench->hits[0].error, GD_HIT_NAN);
    assert_int_equal(watch->unclear, 3);
    assert_int_equal(watch->hits, 0);
    assert_false(report_value(bench, N_RELU, false, 4, INFINITY)); /* another reason */
    assert_int_equal(bench->hit_count, 2);
    assert_int_equal(bench->hits[1].error, GD_HIT_INF);
    assert_false(report_value(bench, N_RELU, false, 5, 1)); /* well again, then not */
    assert_false(report_value(bench, N_RELU, false, 6, INFINITY));
    assert_int_equal(bench->hit_count, 3);
    char why[8];
    assert_false(bench_report(bench, bench_plan(bench, N_RELU, 0, false, NULL), N_RELU, 0, 7, NULL,
                              GD_HIT_NOT_CAPTURED, why, sizeof(why)));
    assert_int_equal(bench->hits[3].error, GD_HIT_NOT_CAPTURED);
}

static void test_ignore(void **state)
{
    struct watch_bench *bench = *state;
    int number = bench_must_watch(bench, "TL max_gt=5 on ReLU-op2");
    assert_ok(gd_watchpoint_set_ignore(bench->debugger, number, 2, NULL));
    assert_false(report_value(bench, N_RELU, false, 1, 6));
    assert_false(report_value(bench, N_RELU, false, 2, 6));
    assert_true(report_value(bench, N_RELU, false, 3, 6));
    assert_int_equal(bench->hit_count, 1);
    assert_int_equal(gd_watchpoint_at(bench->debugger, number)->hits, 3);
    assert_int_equal(gd_watchpoint_at(bench->debugger, number)->ignore, 0);
}

static void test_guard(void **state)
{
    struct watch_bench *bench = *state;
    int number = bench_must_watch(bench, "TL max_gt=5 on ReLU-op2 if step > 10 && loss < 1");
    assert_false(report_value(bench, N_RELU, false, 1, 6));
    assert_int_equal(bench->hit_count, 0);
    assert_false(
        report_value(bench, N_RELU, false, 11, 4)); /* nothing that the guard could allow */
    assert_int_equal(bench->hit_count, 0);
    assert_false(report_value(bench, N_RELU, false, 11, 6)); /* no loss is known */
    assert_int_equal(gd_watchpoint_at(bench->debugger, number)->hits, 0);
    assert_int_equal(gd_watchpoint_at(bench->debugger, number)->unclear, 1);
    assert_int_equal(bench->hit_count, 1);
    assert_int_equal(bench->hits[0].error, GD_HIT_GUARD_UNKNOWN);
    gd_session_on_scalar(bench->session, "loss", 0.5, 11);
    assert_true(report_value(bench, N_RELU, false, 11, 6));
    gd_session_on_scalar(bench->session, "loss", 1.5, 12);
    assert_false(report_value(bench, N_RELU, false, 12, 6));
    assert_ok(gd_watchpoint_set_guard(bench->debugger, number, "", NULL));
    assert_true(report_value(bench, N_RELU, false, 13, 6));
    struct gd_err err;
    assert_int_equal(gd_watchpoint_set_guard(bench->debugger, number, "step >", &err), GD_EINVAL);
    assert_null(gd_watchpoint_at(bench->debugger, number)->guard);
}

/* Neither "yes" nor "no" is said of what was NaN in the step before; where that is normal the other
 * elements tell. */
static void test_previous_not_finite(void **state)
{
    struct watch_bench *bench = *state;
    struct gd_stats stats = bench_stats(4, 1);
    char why[100];
    bench_must_watch(bench, "WCS abs_mean_update_ratio_lt=0.5 on w1.weight");
    stats.has_prev = true;
    stats.mean_abs_prev = 1;
    stats.mean_abs_delta = 0.1;
    stats.unpaired = 1;
    for (int excluded = 0; excluded < 2; excluded++) {
        const struct fake_plan *plan = bench_plan(bench, N_WEIGHT, 0, false, NULL);
        assert_int_equal(
            bench_report(bench, plan, N_WEIGHT, 0, 5 + excluded, &stats, 0, why, sizeof(why)),
            excluded);
        assert_int_equal(bench->hit_count, excluded + 1);
        assert_int_equal(bench->hits[excluded].error, excluded ? 0 : GD_HIT_PREVIOUS_NOT_FINITE);
        assert_ok(gd_exclude_add(bench->debugger, "w1.weight", NULL));
    }
}

static void test_temporary(void **state)
{
    struct watch_bench *bench = *state;
    int number = bench_must_watch(bench, "twatch TL max_gt=5 on ReLU-op2, Conv-op1");
    bench_run(bench);
    uint32_t plan = bench_plan(bench, N_RELU, 0, false, NULL)->id;
    struct gd_stats stats = bench_stats(4, 6);
    struct gd_shape shape = {.rank = 1, .dim = {4}};
    struct gd_watch_value values[2] = {
        {.plan = plan, .node = N_RELU, .shape = &shape, .stats = &stats, .value_step = 1},
        {.plan = plan, .node = N_CONV, .shape = &shape, .stats = &stats, .value_step = 1}};
    struct gd_watch_moment moment = {.step = 1};
    char why[200];
    assert_true(gd_watch_on_values(bench->session, &moment, values, 2, why, sizeof(why)));
    assert_int_equal(bench->hit_count, 1); /* the first in execution order, and no more */
    assert_int_equal(bench->hits[0].node, N_CONV);
    assert_non_null(gd_watchpoint_at(bench->debugger, number));
    bench_stop(bench, GD_STOP_HIT, 1);
    assert_null(gd_watchpoint_at(bench->debugger, number));
    assert_int_equal(bench->fake->plan_count, 0);
    /* A second report that was on its way: nobody is left to judge it. */
    assert_false(gd_watch_on_values(bench->session, &moment, values, 2, why, sizeof(why)));
}

static void test_trace(void **state)
{
    struct watch_bench *bench = *state;
    bench_must_watch(bench, "trace TL max_gt=5 on ReLU-op2");
    assert_false(report_value(bench, N_RELU, false, 1, 6));
    assert_int_equal(bench->hit_count, 1);
    assert_true(bench->hits[0].traced);
    bench_must_watch(bench, "TL max_gt=4 on ReLU-op2");
    assert_true(report_value(bench, N_RELU, false, 2, 6));
    assert_int_equal(bench->hit_count, 3);
    bench->debugger->settings.stop_on_hit = false;
    gd_watchpoints_apply(bench->debugger);
    assert_false(report_value(bench, N_RELU, false, 3, 6));
    assert_int_equal(bench->hit_count, 5);
}

static void test_excluded(void **state)
{
    struct watch_bench *bench = *state;
    struct gd_stats stats = bench_stats(4, 2);
    char why[200];
    bench_must_watch(bench, "TO on Log-op3");
    bench_must_watch(bench, "TL max_gt=5 on Log-op3");
    assert_ok(gd_exclude_add(bench->debugger, "Log-op3", NULL));
    const struct fake_plan *plan = bench_plan(bench, N_LOG, 0, false, NULL);
    stats.nan = 1;
    assert_false(bench_report(bench, plan, N_LOG, 0, 1, &stats, 0, why, sizeof(why)));
    assert_false(report_value(bench, N_LOG, false, 2, NAN));
    assert_int_equal(bench->hit_count, 0);
    stats.max = 6;
    assert_true(bench_report(bench, plan, N_LOG, 0, 3, &stats, 0, why, sizeof(why)));
    assert_int_equal(bench->hit_count, 1);
    assert_int_equal(bench->hits[0].watchpoint, 2);
}

static gd_node_id add_operator(struct gd_session *session, const char *name, uint32_t order,
                               const char *fill, gd_node_id input)
{
    struct gd_output output = {.dtype = GD_FLOAT32};
    struct gd_attr attr = {"fill", fill};
    struct gd_node_desc desc = {.name = name,
                                .type = name,
                                .kind = GD_NODE_ACTIVATION,
                                .outputs = &output,
                                .output_count = 1,
                                .attrs = &attr,
                                .attr_count = fill ? 1 : 0,
                                .order = order};
    gd_node_id node;
    struct gd_edge edge = {.node = input};
    assert_ok(gd_graph_add(session->graph, &desc, &node, NULL));
    if (input != GD_NO_NODE) {
        assert_ok(gd_graph_connect(session->graph, node, &edge, 1, NULL));
    }
    return node;
}

/* A mask, what is made of it, and what is wrong with that. */
static void test_intended(void **state)
{
    struct watch_bench *bench = *state;
    struct gd_stats masked = bench_stats(4, 2), nan = masked, large = masked, loss = masked;
    gd_node_id mask = add_operator(bench->session, "masked_fill", 10, "-inf", GD_NO_NODE);
    gd_node_id sum = add_operator(bench->session, "sum", 11, NULL, mask);
    gd_node_id log = add_operator(bench->session, "log", 12, NULL, N_RELU);
    assert_ok(gd_graph_commit(bench->session->graph, NULL));
    gd_session_on_graph(bench->session);
    int number = bench_must_watch(bench, "TO on all");
    bench_run(bench);
    masked.neg_inf = nan.neg_inf = large.pos_inf = loss.neg_inf = 1;
    nan.nan = 1;
    loss.count = 1;
    const struct {
        gd_node_id node;
        const struct gd_stats *stats;
        bool fires, meant, record;
    } reports[] = {
        {log, &masked, true, false, false}, {mask, &masked, false, true, false},
        {sum, &masked, false, true, false}, {sum, &nan, true, false, false},
        {sum, &large, true, false, false},  {mask, &nan, true, false, false},
        {sum, &loss, true, false, false},   {mask, &masked, false, true, true},
        {mask, &nan, false, true, true},    {log, &masked, false, true, true},
    };
    for (size_t i = 0; i < sizeof(reports) / sizeof(*reports); i++) {
        char why[200];
        const struct fake_plan *plan = bench_plan(bench, reports[i].node, 0, true, NULL);
        bench->record = reports[i].record;
        assert_int_equal(bench_report(bench, plan, reports[i].node, 0, (int64_t)i + 1,
                                      reports[i].stats, 0, why, sizeof(why)),
                         reports[i].fires);
        assert_int_equal(bench->meant, reports[i].meant);
    }
    const struct gd_watchpoint *watch = gd_watchpoint_at(bench->debugger, number);
    assert_int_equal(watch->intended, 3); /* two that were reported, one of a record */
    assert_int_equal(watch->intended_tensors, 2);
    assert_int_equal(watch->hits, 5);
}

static void test_steps_in_a_row(void **state)
{
    static const struct {
        int64_t step;
        bool zero, fires;
    } reports[] = {{1, true, false}, {2, true, false}, {3, false, false}, {4, true, false},
                   {5, true, false}, {6, true, true},  {7, true, true},   {9, true, false}};
    struct watch_bench *bench = *state;
    struct gd_watch_spec spec = {.where = "net/ReLU-op2", .steps = 3};
    assert_ok(gd_condition_find("TZ", &spec.condition, NULL));
    assert_ok(gd_watchpoint_add(bench->debugger, &spec, NULL, NULL));
    bench_run(bench);
    for (size_t i = 0; i < sizeof(reports) / sizeof(*reports); i++) {
        char why[200];
        struct gd_stats stats = bench_stats(4, reports[i].zero ? 0 : 1);
        const struct fake_plan *plan = bench_plan(bench, N_RELU, 0, false, NULL);
        assert_int_equal(
            bench_report(bench, plan, N_RELU, 0, reports[i].step, &stats, 0, why, sizeof(why)),
            reports[i].fires);
    }
}

/* Of what came together, in the order of execution. */
static void test_order(void **state)
{
    struct watch_bench *bench = *state;
    bench_must_watch(bench, "-step TO on all");
    uint32_t plan = bench_plan(bench, N_RELU, 0, false, NULL)->id;
    static const gd_node_id nodes[] = {N_GRADIENT, N_RELU, N_BIAS, N_UNKNOWN, N_CONV, N_WEIGHT};
    static const gd_node_id want[] = {N_WEIGHT, N_BIAS, N_CONV, N_RELU, N_GRADIENT, N_UNKNOWN};
    struct gd_stats stats = bench_stats(4, NAN);
    struct gd_shape shape = {.rank = 1, .dim = {4}};
    struct gd_watch_value values[6];
    struct gd_watch_moment moment = {.step = 1};
    char why[200];
    for (int i = 0; i < 6; i++) {
        values[i] = (struct gd_watch_value){
            .plan = plan, .node = nodes[i], .shape = &shape, .stats = &stats, .value_step = 1};
    }
    assert_true(gd_watch_on_values(bench->session, &moment, values, 6, why, sizeof(why)));
    assert_string_equal(why, "watchpoint 1 (TO) on w1.weight:0");
    assert_int_equal(bench->hit_count, 6);
    for (int i = 0; i < 6; i++) {
        assert_int_equal(bench->hits[i].node, want[i]);
    }
}

static void test_record_only(void **state)
{
    struct watch_bench *bench = *state;
    bench_must_watch(bench, "TO on ReLU-op2");
    struct gd_stats stats = bench_stats(4, NAN);
    struct gd_shape shape = {.rank = 1, .dim = {4}};
    struct gd_watch_value value = {.plan = bench_plan(bench, N_RELU, 0, true, NULL)->id,
                                   .node = N_RELU,
                                   .shape = &shape,
                                   .stats = &stats};
    struct gd_watch_moment moment = {.step = 1, .record = true};
    assert_false(gd_watch_on_values(bench->session, &moment, &value, 1, NULL, 0));
    assert_int_equal(bench->hit_count, 0);
    value.plan = 999; /* nobody asked for that */
    moment.record = false;
    assert_false(gd_watch_on_values(bench->session, &moment, &value, 1, NULL, 0));
}

static void test_series(void **state)
{
    struct watch_bench *bench = *state;
    bench_must_watch(bench, "SC on ReLU-op2");
    for (int step = 1; step <= 15; step++) {
        assert_false(report_value(bench, N_RELU, false, step, step % 2 ? 1 : 1.1));
    }
    int told = bench->hit_count;
    for (int i = 0; i < told; i++) {
        assert_int_equal(bench->hits[i].error, GD_HIT_NO_HISTORY);
    }
    assert_int_equal(told, 1);
    bench_must_watch(bench, "TO on Conv-op1"); /* what was learned outlives a change of the list */
    gd_session_on_graph(bench->session);
    assert_true(report_value(bench, N_RELU, false, 16, 50));
    assert_int_equal(bench->hits[told].error, 0);
}

/* The norm of all gradients together, whatever parts it comes in. */
static void test_sum(void **state)
{
    struct watch_bench *bench = *state;
    bench_add(bench->session, "gradients/Log-op6", "LogGrad", 6, GD_FLOAT32, 1);
    assert_ok(gd_graph_commit(bench->session->graph, NULL));
    gd_session_on_graph(bench->session);
    bench_must_watch(bench, "GS");
    gd_node_id other = N_NODES;
    for (int step = 1; step <= 12; step++) {
        assert_false(report_value(bench, N_GRADIENT, false, step, 1));
        assert_false(report_value(bench, other, false, step, 2));
    }
    int before = bench->hit_count;
    assert_false(report_value(bench, N_GRADIENT, false, 13, 1)); /* half of it */
    assert_int_equal(bench->hit_count, before);
    assert_true(report_value(bench, other, false, 13, 200));
    const struct gd_hit *hit = &bench->hits[before];
    assert_int_equal(hit->error, 0);
    assert_int_equal(hit->node, GD_NO_NODE);
    assert_string_equal(hit->node_name, "gradients");
    double norm = sqrt(4 * 1 + 4 * 200.0 * 200), mean = sqrt(4 * 1 + 4 * 2 * 2.0);
    assert_true(fabs(hit->param[0].actual_value - norm / mean) < 1e-9);
    /* A part that is nothing but NaN, where that is normal, is no part. */
    assert_ok(gd_exclude_add(bench->debugger, "gradients/Log-op6", NULL));
    assert_false(report_value(bench, other, false, 14, NAN));
    assert_true(report_value(bench, N_GRADIENT, false, 14, 1000));
    assert_true(fabs(bench->hits[before + 1].param[0].actual_value) > 3);
}

/* Where NaN is normal the past is that of the finite elements. */
static void test_series_where_nan_is_normal(void **state)
{
    struct watch_bench *bench = *state;
    struct gd_stats stats = bench_stats(4, 1);
    char why[100];
    bench_must_watch(bench, "SC on ReLU-op2");
    assert_ok(gd_exclude_add(bench->debugger, "net/ReLU-op2", NULL));
    for (int step = 1; step <= 12; step++) {
        bool last = step == 12;
        stats = bench_stats(4, last ? 50 : 1 + 0.01 * (step % 3));
        stats.count = 5;
        stats.nan = 1;
        const struct fake_plan *plan = bench_plan(bench, N_RELU, 0, false, NULL);
        assert_int_equal(bench_report(bench, plan, N_RELU, 0, step, &stats, 0, why, sizeof(why)),
                         last);
    }
    assert_int_equal(bench->hits[0].error, GD_HIT_NO_HISTORY);
    assert_int_equal(bench->hits[1].error, 0);
    assert_int_equal(bench->hit_count, 2);
}

static void test_scalar_in_plan(void **state)
{
    struct watch_bench *bench = *state;
    bench_must_watch(bench, "LN");
    const struct fake_plan *plan = bench_scalar_plan(bench, "loss", NULL);
    struct gd_stats stats = bench_stats(1, NAN);
    struct gd_shape shape = {.rank = 0};
    struct gd_watch_value value = {.plan = plan->id,
                                   .node = GD_NO_NODE,
                                   .scalar = "loss",
                                   .dtype = GD_FLOAT64,
                                   .shape = &shape,
                                   .stats = &stats,
                                   .value_step = 2};
    struct gd_watch_moment moment = {.step = 2};
    char why[200];
    bench_run(bench);
    gd_session_on_scalar(bench->session, "loss", NAN, 2); /* the plan is what counts */
    assert_int_equal(bench->hit_count, 0);
    assert_true(gd_watch_on_values(bench->session, &moment, &value, 1, why, sizeof(why)));
    assert_string_equal(why, "watchpoint 1 (LN) on loss");
    assert_true(bench->hits[0].is_scalar);
    assert_string_equal(bench->hits[0].node_name, "loss");
}

/* The plan's report about a metric at the end of a step; value NAN: there is none. */
static bool report_metric(struct watch_bench *bench, const char *name, int64_t step, double number)
{
    struct gd_stats stats = bench_stats(1, number);
    struct gd_shape shape = {.rank = 0};
    struct gd_watch_value value = {.plan = bench_scalar_plan(bench, name, NULL)->id,
                                   .node = GD_NO_NODE,
                                   .scalar = name,
                                   .dtype = GD_FLOAT64,
                                   .shape = &shape,
                                   .stats = isnan(number) ? NULL : &stats,
                                   .error = isnan(number) ? GD_HIT_NO_VALUE : 0,
                                   .value_step = step};
    struct gd_watch_moment moment = {.step = step};
    char why[200];
    if (!isnan(number)) {
        gd_session_on_scalar(bench->session, name, number, step);
    }
    return gd_watch_on_values(bench->session, &moment, &value, 1, why, sizeof(why));
}

static void test_scalar_of_an_earlier_step(void **state)
{
    struct watch_bench *bench = *state;
    bench_must_watch(bench, "'accuracy > 0.5'");
    bench_run(bench);
    assert_false(report_metric(bench, "accuracy", 1, NAN));
    assert_int_equal(bench->hit_count, 1); /* not checked: it is unknown */
    assert_int_equal(bench->hits[0].error, GD_HIT_NO_VALUE);
    assert_true(report_metric(bench, "accuracy", 2, 0.9));
    assert_false(report_metric(bench, "accuracy", 3, NAN)); /* the value is that of step 2 */
    assert_int_equal(bench->hit_count, 2);
    assert_true(report_metric(bench, "accuracy", 4, 0.8));
    assert_int_equal(bench->hit_count, 3);
    gd_session_forget_scalar(bench->session, "accuracy"); /* deleted */
    assert_null(gd_session_scalar(bench->session, "accuracy"));
    assert_false(report_metric(bench, "accuracy", 5, NAN));
    assert_int_equal(bench->hit_count, 4);
    assert_int_equal(bench->hits[3].error, GD_HIT_NO_VALUE);
}

static void test_forgotten_scalar(void **state)
{
    struct watch_bench *bench = *state;
    const char *names[] = {"loss", "accuracy", "lr"};
    for (int i = 0; i < 3; i++) {
        gd_session_on_scalar(bench->session, names[i], i, 1);
    }
    gd_session_forget_scalar(bench->session, "nothing");
    gd_session_forget_scalar(bench->session, "accuracy");
    assert_int_equal(bench->session->scalar_count, 2);
    assert_true(gd_session_scalar(bench->session, "loss")->value == 0);
    assert_true(gd_session_scalar(bench->session, "lr")->value == 2);
    gd_session_on_scalar(bench->session, "accuracy", 0.5, 2);
    const struct gd_scalar *again = gd_session_scalar(bench->session, "accuracy");
    assert_true(again->first == 0.5 && !again->has_before && again->values.reports == 1);
}

static void test_scalar_event(void **state)
{
    struct watch_bench *bench = bench_make(BENCH_PLANS & ~(unsigned)GD_CAN_WATCH_SCALAR);
    bench_must_watch(bench, "LN");
    bench_must_watch(bench, "'lr > 0.1 && step >= 3' on lr");
    assert_int_equal(bench->fake->plan_count, 0);
    bench_run(bench);
    gd_session_on_scalar(bench->session, "loss", 2, 1);
    gd_session_on_scalar(bench->session, "lr", 0.2, 2);
    assert_int_equal(bench->hit_count, 0);
    assert_false(bench->session->interrupt_asked);
    gd_session_on_scalar(bench->session, "lr", 0.2, 3);
    assert_int_equal(bench->hit_count, 1);
    assert_true(bench->hits[0].is_scalar);
    assert_true(bench->session->interrupt_asked);
    gd_session_on_scalar(bench->session, "loss", INFINITY, 3);
    assert_int_equal(bench->hit_count, 2);
    assert_string_equal(bench->hits[1].node_name, "loss");
    bench_free(bench);
}

/* An observer that deletes the watchpoint while values are judged. */
static void delete_it(void *ctx, const struct gd_event *event)
{
    struct watch_bench *bench = ctx;
    if (event->type == GD_EV_HIT) {
        gd_watchpoint_delete(bench->debugger, event->hit->watchpoint, NULL);
    }
}

static void test_deleted_meanwhile(void **state)
{
    struct watch_bench *bench = *state;
    bench_must_watch(bench, "TL max_gt=5 on ReLU-op2");
    bench_must_watch(bench, "TL max_gt=4 on ReLU-op2");
    assert_ok(gd_debugger_observe(bench->debugger, delete_it, bench));
    assert_true(report_value(bench, N_RELU, false, 1, 6));
    assert_int_equal(bench->hit_count, 2);
    assert_null(bench->debugger->watchpoints);
    assert_int_equal(bench->fake->plan_count, 0);
}

/* ---- values on their way while plans change ------------------------------------------------- */

static void test_moved_meanwhile(void **state)
{
    struct watch_bench *bench = *state;
    struct gd_stats stats = bench_stats(4, NAN);
    char why[200];
    bench_must_watch(bench, "trace -exact TO on ReLU-op2");
    const struct fake_plan before = *bench_plan(bench, N_RELU, 0, true, NULL);
    bench_must_watch(bench, "watch -exact TO on ReLU-op2"); /* a plan that holds has it now */
    assert_int_not_equal(bench_plan(bench, N_RELU, 0, true, NULL)->id, before.id);
    assert_true(bench_report(bench, &before, N_RELU, 0, 1, &stats, 0, why, sizeof(why)));
    assert_int_equal(bench->hit_count, 2);
    assert_int_equal(bench->hits[0].watchpoint, 1);
    assert_true(report_value(bench, N_RELU, true, 2, NAN));
    assert_int_equal(bench->hit_count, 4);
    assert_ok(gd_watchpoint_delete(bench->debugger, 1, NULL));
    assert_ok(gd_watchpoint_delete(bench->debugger, 2, NULL));
    assert_false(bench_report(bench, &before, N_RELU, 0, 3, &stats, 0, why, sizeof(why)));
    assert_int_equal(bench->hit_count, 4);
}

/* A value of the end of a step is judged also by a watchpoint that is now evaluated when the node
 * has run; a value of that moment is not judged by one of the end of the step, where it comes
 * again. */
static void test_looked_at_otherwise(void **state)
{
    struct watch_bench *bench = *state;
    struct gd_stats stats = bench_stats(4, 5);
    char why[200];
    bench_must_watch(bench, "trace 'max > 4' on ReLU-op2");
    const struct fake_plan at_end = *bench_plan(bench, N_RELU, 0, false, NULL);
    bench_must_watch(bench, "trace -exact 'max > 4' on ReLU-op2");
    const struct fake_plan at_once = *bench_plan(bench, N_RELU, 0, true, NULL);
    assert_null(bench_plan(bench, N_RELU, 0, false, NULL));
    bench_report(bench, &at_end, N_RELU, 0, 1, &stats, 0, why, sizeof(why));
    assert_int_equal(bench->hit_count, 2);
    assert_ok(gd_watchpoint_delete(bench->debugger, 2, NULL));
    bench_report(bench, &at_once, N_RELU, 0, 2, &stats, 0, why, sizeof(why));
    assert_int_equal(bench->hit_count, 2);
    bench_report(bench, &at_end, N_RELU, 0, 2, &stats, 0, why, sizeof(why));
    assert_int_equal(bench->hit_count, 3);
}

/* Statistics that were not asked for decide nothing. */
static void test_asked_otherwise(void **state)
{
    struct watch_bench *bench = *state;
    struct gd_stats stats = bench_stats(4, 5);
    char why[200];
    bench_must_watch(bench, "trace 'max > 4' on ReLU-op2");
    const struct fake_plan before = *bench_plan(bench, N_RELU, 0, false, NULL);
    assert_ok(gd_watchpoint_delete(bench->debugger, 1, NULL));
    bench_must_watch(bench, "watch TR range_start_inclusive=0 range_end_inclusive=1 "
                            "range_percentage_lt=50 on ReLU-op2");
    assert_int_not_equal(bench_plan(bench, N_RELU, 0, false, NULL)->id, before.id);
    assert_false(bench_report(bench, &before, N_RELU, 0, 1, &stats, 0, why, sizeof(why)));
    assert_int_equal(bench->hit_count, 0);
}

/* ---- processes that evaluate by themselves ------------------------------------------------- */

static void remote_hit(struct watch_bench *bench, int number, unsigned error)
{
    struct gd_hit hit = {.watchpoint = number,
                         .condition = GD_WIRE_NOT_FINITE,
                         .step = 1,
                         .node = N_RELU,
                         .error = error};
    gd_session_on_hit(bench->session, &hit);
}

static void test_remote(void **state)
{
    struct watch_bench *bench = bench_make(BENCH_PLANS | GD_CAN_WATCH_REMOTE);
    int number = bench_must_watch(bench, "TO on net");
    assert_int_equal(bench->fake->watches, 1);
    assert_int_equal(bench->fake->last_watch, number);
    assert_int_equal(bench->fake->last_watch_nodes, 4); /* without the constant */
    assert_int_equal(bench->fake->plan_count, 0);
    gd_watchpoints_apply(bench->debugger);
    assert_int_equal(bench->fake->watches, 1);
    remote_hit(bench, number, 0);
    remote_hit(bench, number, GD_HIT_NAN);
    assert_int_equal(gd_watchpoint_at(bench->debugger, number)->hits, 1);
    assert_int_equal(gd_watchpoint_at(bench->debugger, number)->unclear, 1);
    /* What the process does not know is done here. */
    bench_must_watch(bench, "TO on ReLU-op2 if step > 3");
    bench_must_watch(bench, "'max > 3' on Conv-op1");
    bench_must_watch(bench, "trace TL max_gt=1 on w1.weight");
    assert_int_equal(bench->fake->watches, 1);
    assert_non_null(bench_plan(bench, N_RELU, 0, true, NULL));
    assert_non_null(bench_plan(bench, N_CONV, 0, false, NULL));
    assert_ok(gd_watchpoint_set_ignore(bench->debugger, number, 3, NULL));
    assert_int_equal(bench->fake->unwatches, 1);
    assert_non_null(bench_plan(bench, N_LOG, 0, true, NULL));
    assert_ok(gd_watchpoint_set_ignore(bench->debugger, number, 0, NULL));
    assert_null(bench_plan(bench, N_LOG, 0, true, NULL));
    assert_int_equal(bench->fake->watches, 2);
    bench_free(bench);
}

static void test_evaluate_setting(void **state)
{
    struct watch_bench *bench = bench_make(BENCH_PLANS | GD_CAN_WATCH_REMOTE);
    struct gd_err err;
    bench_must_watch(bench, "TO on ReLU-op2");
    bench->debugger->settings.evaluate = GD_EVALUATE_LOCAL;
    gd_watchpoints_apply(bench->debugger);
    assert_int_equal(bench->fake->unwatches, 1);
    assert_non_null(bench_plan(bench, N_RELU, 0, true, NULL));
    bench->debugger->settings.evaluate = GD_EVALUATE_REMOTE;
    gd_watchpoints_apply(bench->debugger);
    assert_int_equal(bench->fake->plan_count, 0);
    assert_int_equal(bench->fake->watches, 2);
    assert_int_equal(bench_watch(bench, "'max > 1' on all", &err), GD_EUNSUPPORTED);
    assert_int_equal(bench_watch(bench, "SC on all", &err), GD_EUNSUPPORTED);
    bench_free(bench);
}

static void test_unable(void **state)
{
    struct watch_bench *bench = bench_make(BENCH_PLANS | GD_CAN_WATCH_REMOTE);
    int number = bench_must_watch(bench, "WCL");
    assert_int_equal(bench->fake->watches, 1);
    gd_watch_on_unable(bench->session, number);
    gd_watch_on_unable(bench->session, number);
    assert_int_equal(bench->warnings, 1);
    assert_int_equal(bench->fake->unwatches, 1);
    assert_non_null(bench_plan(bench, N_WEIGHT, 0, false, NULL));
    gd_watch_on_unable(bench->session, 77);
    bench_free(bench);
}

static void test_remote_refusal(void **state)
{
    struct watch_bench *bench = bench_make(GD_CAN_STEP | GD_CAN_WATCH_REMOTE);
    struct gd_err err;
    assert_int_equal(bench_watch(bench, "TO on all if step > 3", &err), GD_EUNSUPPORTED);
    assert_contains(err.text, "\"if\"");
    assert_int_equal(bench_watch(bench, "SC on all", &err), GD_EUNSUPPORTED);
    bench->fake->watch_rc = GD_ELIMIT;
    assert_int_equal(bench_watch(bench, "TO on all", &err), GD_ELIMIT);
    assert_null(bench->debugger->watchpoints);
    bench->fake->watch_rc = GD_OK;
    int number = bench_must_watch(bench, "TO on all");
    struct gd_condition_value value = {"max_gt", GD_PARAM_FLOAT, 7};
    assert_int_equal(gd_watchpoint_set_values(bench->debugger, number, &value, 1, &err), GD_EINVAL);
    assert_int_equal(gd_watchpoint_set_guard(bench->debugger, number, "step > 1", &err),
                     GD_EUNSUPPORTED);
    assert_null(gd_watchpoint_at(bench->debugger, number)->guard);
    bench_free(bench);
}

static const struct CMUnitTest tests[] = {
    WATCH_TEST(test_hit),
    WATCH_TEST(test_params),
    WATCH_TEST(test_ranges),
    WATCH_TEST(test_not_checked),
    WATCH_TEST(test_ignore),
    WATCH_TEST(test_guard),
    WATCH_TEST(test_previous_not_finite),
    WATCH_TEST(test_temporary),
    WATCH_TEST(test_trace),
    WATCH_TEST(test_intended),
    WATCH_TEST(test_steps_in_a_row),
    WATCH_TEST(test_excluded),
    WATCH_TEST(test_order),
    WATCH_TEST(test_record_only),
    WATCH_TEST(test_series),
    WATCH_TEST(test_series_where_nan_is_normal),
    WATCH_TEST(test_sum),
    WATCH_TEST(test_scalar_in_plan),
    WATCH_TEST(test_scalar_of_an_earlier_step),
    WATCH_TEST(test_forgotten_scalar),
    cmocka_unit_test(test_scalar_event),
    WATCH_TEST(test_deleted_meanwhile),
    WATCH_TEST(test_moved_meanwhile),
    WATCH_TEST(test_looked_at_otherwise),
    WATCH_TEST(test_asked_otherwise),
    cmocka_unit_test(test_remote),
    cmocka_unit_test(test_evaluate_setting),
    cmocka_unit_test(test_unable),
    cmocka_unit_test(test_remote_refusal),
};

RUN_TESTS()
