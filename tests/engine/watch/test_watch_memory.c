// SPDX-License-Identifier: GPL-3.0-or-later
/* Every allocation fails once: nothing crashes or leaks, and afterwards everything works. */
#include <math.h>

#include "engine/watch/watch_report.h"
#include "watch_bench.h"

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);

static long countdown = -1; /* < 0: nothing fails */
static bool failed;

static bool must_fail(void)
{
    if (countdown < 0) {
        return false;
    }
    if (countdown-- > 0) {
        return false;
    }
    failed = true;
    return true;
}

void *__wrap_malloc(size_t size)
{
    return must_fail() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return must_fail() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *old, size_t size)
{
    return must_fail() ? NULL : __real_realloc(old, size);
}

static const struct gd_condition_value above = {"max_gt", GD_PARAM_FLOAT, 5};

static struct gd_watch_spec spec_of(const char *condition, const char *where)
{
    struct gd_watch_spec spec = {.where = where};
    assert_ok(gd_condition_find(condition, &spec.condition, NULL));
    if (strcmp(condition, "TL") == 0) {
        spec.values = &above;
        spec.value_count = 1;
    }
    return spec;
}

static void use_watchpoint(struct watch_bench *bench)
{
    struct gd_watch_spec spec = spec_of("TO", "all");
    gd_watchpoint_add(bench->debugger, &spec, NULL, NULL);
    spec = spec_of("TL", "net except Log-op3");
    spec.guard = "step > 0";
    gd_watchpoint_add(bench->debugger, &spec, NULL, NULL);
    spec = spec_of("GS", NULL);
    gd_watchpoint_add(bench->debugger, &spec, NULL, NULL);
    spec = spec_of("LN", NULL);
    gd_watchpoint_add(bench->debugger, &spec, NULL, NULL);
    spec =
        (struct gd_watch_spec){.expression = "max > 5 || abs_mean(cur-prev) > 1", .where = "*e*"};
    gd_watchpoint_add(bench->debugger, &spec, NULL, NULL);
    gd_exclude_add(bench->debugger, "Log-op3", NULL);
    gd_watchpoint_set_where(bench->debugger, 2, '+', "Log-op3", NULL);
    gd_watchpoint_set_guard(bench->debugger, 2, "step > 1", NULL);
    gd_watchpoint_enable(bench->debugger, 1, false, NULL);
    gd_watchpoint_enable(bench->debugger, 1, true, NULL);
    gd_watch_scope_state(bench->session, 0);
    struct gd_recommendation it;
    gd_recommendation_at(bench->session, 2, &it);
}

static void report_all(struct watch_bench *bench)
{
    struct gd_stats stats = bench_stats(4, NAN);
    struct gd_shape shape = {.rank = 1, .dim = {4}};
    struct gd_watch_value values[32];
    struct gd_watch_moment moment = {.step = 2};
    for (size_t i = 0; i < bench->fake->plan_count; i++) {
        const struct fake_plan *plan = &bench->fake->plans[i];
        size_t count = plan->count < 32 ? plan->count : 32;
        for (size_t k = 0; k < count; k++) {
            values[k] = (struct gd_watch_value){.plan = plan->id,
                                                .node = plan->items[k].node,
                                                .slot = plan->items[k].slot,
                                                .scalar = plan->items[k].scalar,
                                                .dtype = GD_FLOAT32,
                                                .shape = &shape,
                                                .stats = &stats};
        }
        gd_watch_on_values(bench->session, &moment, values, count, NULL, 0);
    }
}

static void take_recheck(void *ctx, size_t hits, const struct gd_err *err)
{
    (*(int *)ctx)++;
}

static void take_total(void *ctx, const struct gd_watch_total *total)
{
    (*(int *)ctx)++;
}

static void answer_stats(struct fake_target *fake, const struct gd_tensor_ref *ref, gd_stats_fn fn,
                         void *ctx)
{
    struct gd_stats stats = bench_stats(4, 1);
    struct gd_shape shape = {.rank = 1, .dim = {4}};
    fn(ctx, GD_FLOAT32, &shape, &stats, 1, NULL);
}

static void check_works(struct watch_bench *bench)
{
    while (bench->debugger->watchpoints) {
        gd_watchpoint_delete(bench->debugger, bench->debugger->watchpoints->number, NULL);
    }
    assert_int_equal(bench->fake->plan_count, 0);
    while (gd_exclude_at(bench->debugger, 0)) {
        gd_exclude_delete(bench->debugger, gd_exclude_at(bench->debugger, 0), NULL);
    }
    bench->hit_count = 0;
    struct gd_watch_spec spec = spec_of("TO", "all");
    assert_ok(gd_watchpoint_add(bench->debugger, &spec, NULL, NULL));
    assert_int_equal(bench->fake->plan_count, 2);
    report_all(bench);
    assert_int_equal(bench->hit_count, 8);
}

static void test_each_allocation(void **state)
{
    long runs = 0;
    do {
        struct watch_bench *bench = bench_make(BENCH_PLANS);
        int answers = 0, wanted = 0;
        bench->fake->value = fake_tensor(4, 1);
        bench->fake->on_stats = answer_stats;
        bench_stop(bench, GD_STOP_STEP, 1);
        failed = false;
        countdown = runs;
        use_watchpoint(bench);
        wanted += gd_watch_recheck(bench->session, take_recheck, &answers, NULL) == GD_OK;
        report_all(bench);
        wanted += gd_watch_costs(bench->debugger, take_total, &answers, NULL) == GD_OK;
        if (bench->fake->costs_fn) {
            bench->fake->costs_fn(bench->fake->costs_ctx, NULL, 0, NULL);
        }
        countdown = -1;
        assert_int_equal(answers, wanted);
        check_works(bench);
        gd_tensor_unref(bench->fake->value);
        bench_free(bench);
        runs++;
    } while (failed);
    assert_true(runs > 100);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_each_allocation),
};

RUN_TESTS()
