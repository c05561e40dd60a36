// SPDX-License-Identifier: GPL-3.0-or-later
/* Which plans are made of watchpoints, and what of them is sent when something changes. */
#include "watch_bench.h"

#include "engine/watch/watch_impl.h"

static bool has_trigger(const struct gd_watch_item *item, enum gd_statistic statistic,
                        enum gd_comparison op, double value)
{
    for (size_t i = 0; i < item->trigger_count; i++) {
        if (item->triggers[i].test.statistic == statistic && item->triggers[i].test.op == op &&
            item->triggers[i].test.value == value) {
            return true;
        }
    }
    return false;
}

/* Whatever runs is watched as it runs; parameters, which do not, at the end of the step. */
static void test_exact_split(void **state)
{
    struct watch_bench *bench = *state;
    const struct gd_watch_item *item = NULL;
    bench_must_watch(bench, "TO on all");
    assert_int_equal(bench->fake->plan_count, 2);
    for (gd_node_id node = 0; node < N_NODES; node++) {
        bool runs = node == N_CONV || node == N_RELU || node == N_LOG || node == N_GRADIENT ||
                    node == N_UNKNOWN;
        bool leaf = node == N_WEIGHT || node == N_BIAS;
        assert_int_equal(bench_plan(bench, node, 0, true, &item) != NULL, runs);
        assert_int_equal(bench_plan(bench, node, 0, false, &item) != NULL, leaf);
        assert_int_equal(bench_items(bench, node, 0), runs || leaf);
    }
    assert_int_equal(bench_items(bench, N_LOG, 1), 1); /* every slot */
    const struct fake_plan *plan = bench_plan(bench, N_LOG, 0, true, &item);
    assert_true(plan->hold && !plan->record);
    assert_true(has_trigger(item, GD_STAT_NONFINITE, GD_CMP_GT, 0));
    assert_false(item->against_previous);
}

static void test_step_end_target(void **state)
{
    struct watch_bench *bench = bench_make(BENCH_PLANS & ~(unsigned)GD_CAN_WATCH_EXACT);
    bench_must_watch(bench, "TO on all");
    assert_int_equal(bench->fake->plan_count, 1);
    assert_false(bench->fake->plans[0].exact);
    assert_int_equal(bench->fake->plans[0].count, 8);
    bench_free(bench);
}

/* Several watchpoints on a tensor: one item, that serves them all. */
static void test_merged(void **state)
{
    struct watch_bench *bench = *state;
    const struct gd_watch_item *item = NULL;
    bench_must_watch(bench, "TL max_gt=5 on ReLU-op2");
    assert_non_null(bench_plan(bench, N_RELU, 0, false, &item));
    assert_true(has_trigger(item, GD_STAT_MAX, GD_CMP_GT, 5));
    assert_true(has_trigger(item, GD_STAT_NONFINITE, GD_CMP_GT, 0)); /* could not be checked */
    bench_must_watch(bench, "TZ on ReLU-op2");
    bench_must_watch(bench, "AR range_start_inclusive=0 range_end_inclusive=1 "
                            "range_percentage_lt=10 on activations");
    bench_must_watch(bench, "TR range_start_inclusive=-1 range_end_inclusive=0 "
                            "range_percentage_gt=99 on ReLU-op2");
    assert_int_equal(bench_items(bench, N_RELU, 0), 1);
    assert_non_null(bench_plan(bench, N_RELU, 0, false, &item));
    assert_int_equal(item->options->range_count, 2);
    assert_true(has_trigger(item, GD_STAT_RANGE_PERCENTAGE, GD_CMP_LT, 10));
    for (size_t i = 0; i < item->trigger_count; i++) {
        const struct gd_watch_trigger *trigger = &item->triggers[i];
        if (trigger->test.statistic == GD_STAT_RANGE_PERCENTAGE) {
            assert_true(item->options->range[trigger->range].lo ==
                        (trigger->test.op == GD_CMP_LT ? 0 : -1));
        }
    }
    /* One that looks for NaN takes the others along: the tensor is read once. */
    bench_must_watch(bench, "TO on ReLU-op2");
    assert_int_equal(bench_items(bench, N_RELU, 0), 1);
    assert_non_null(bench_plan(bench, N_RELU, 0, true, &item));
    assert_int_equal(item->options->range_count, 2);
    assert_true(has_trigger(item, GD_STAT_MAX, GD_CMP_GT, 5));
    /* But not those that compare with the step before. */
    bench_must_watch(bench, "'abs_mean(cur-prev) < 1e-9' on ReLU-op2");
    assert_int_equal(bench_items(bench, N_RELU, 0), 2);
    assert_non_null(bench_plan(bench, N_RELU, 0, false, &item));
    assert_true(item->against_previous);
    assert_int_equal(item->options->range_count, 0);
    assert_false(has_trigger(item, GD_STAT_MAX, GD_CMP_GT, 5));
}

static void test_when(void **state)
{
    struct watch_bench *bench = *state;
    struct gd_err err;
    bench_must_watch(bench, "-step TO on Conv-op1");
    assert_non_null(bench_plan(bench, N_CONV, 0, false, NULL));
    bench_must_watch(bench, "-exact TZ on ReLU-op2");
    assert_non_null(bench_plan(bench, N_RELU, 0, true, NULL));
    bench_must_watch(bench, "-exact TZ on w2.bias"); /* never runs */
    assert_non_null(bench_plan(bench, N_BIAS, 0, false, NULL));
    assert_int_equal(bench_watch(bench, "-exact WCL on weights", &err), GD_EINVAL);
    assert_contains(err.text, "end of a step");
    /* -step stays at the end of the step beside one that is exact. */
    bench_must_watch(bench, "TO on Conv-op1");
    assert_non_null(bench_plan(bench, N_CONV, 0, true, NULL));
    assert_non_null(bench_plan(bench, N_CONV, 0, false, NULL));
    /* What the user prefers. */
    bench_must_watch(bench, "TZ on Odd-op5");
    assert_null(bench_plan(bench, N_UNKNOWN, 0, true, NULL));
    bench->debugger->settings.watch_when = GD_WHEN_EXACT;
    gd_watchpoints_apply(bench->debugger);
    assert_non_null(bench_plan(bench, N_UNKNOWN, 0, true, NULL));
    bench->debugger->settings.watch_when = GD_WHEN_STEP_END;
    gd_watchpoints_apply(bench->debugger);
    assert_null(bench_plan(bench, N_UNKNOWN, 0, true, NULL));
    assert_non_null(bench_plan(bench, N_RELU, 0, true, NULL)); /* this one said so itself */
}

static void test_hold(void **state)
{
    struct watch_bench *bench = *state;
    bench_must_watch(bench, "trace TO on Conv-op1");
    assert_false(bench_plan(bench, N_CONV, 0, true, NULL)->hold);
    int number = bench_must_watch(bench, "TZ on Conv-op1, ReLU-op2");
    assert_true(bench_plan(bench, N_CONV, 0, true, NULL)->hold);
    assert_int_equal(bench_items(bench, N_CONV, 0), 1);
    bench->debugger->settings.stop_on_hit = false;
    gd_watchpoints_apply(bench->debugger);
    assert_false(bench_plan(bench, N_CONV, 0, true, NULL)->hold);
    assert_int_equal(bench_items(bench, N_CONV, 0), 1);
    bench->debugger->settings.stop_on_hit = true;
    gd_watchpoints_apply(bench->debugger);
    assert_ok(gd_watchpoint_delete(bench->debugger, number, NULL));
    assert_false(bench_plan(bench, N_CONV, 0, true, NULL)->hold);
    assert_null(bench_plan(bench, N_RELU, 0, true, NULL));
}

static void test_options_that_do_not_agree(void **state)
{
    struct watch_bench *bench = *state;
    char line[160];
    bench_must_watch(bench, "WNC rtol=0.1 on w1.weight");
    bench_must_watch(bench, "WNC rtol=0.2 on w1.weight");
    bench_must_watch(bench, "WCL on w1.weight"); /* has no tolerance: joins the first */
    assert_int_equal(bench_items(bench, N_WEIGHT, 0), 2);
    for (size_t i = 0; i < bench->fake->plan_count; i++) {
        assert_int_equal(bench->fake->plans[i].count, 1); /* a plan has a tensor once */
    }
    for (int i = 0; i < 18; i++) {
        snprintf(line, sizeof(line),
                 "TR range_start_inclusive=%d range_end_inclusive=100 range_percentage_lt=1 on "
                 "ReLU-op2",
                 i % 17);
        bench_must_watch(bench, line);
    }
    assert_int_equal(bench_items(bench, N_RELU, 0), 2);
    const struct gd_watch_item *item = NULL;
    bench_plan(bench, N_RELU, 0, false, &item);
    assert_int_equal(item->options->range_count, GD_MAX_RANGES);
}

/* What cannot be told by comparing is reported each time. */
static void test_always(void **state)
{
    struct watch_bench *bench = *state;
    const struct gd_watch_item *item = NULL;
    bench_must_watch(bench, "TO on ReLU-op2");
    bench_must_watch(bench, "'max > 1 && min < 0' on ReLU-op2");
    bench_plan(bench, N_RELU, 0, true, &item);
    assert_int_equal(item->trigger_count, 0);
    bench_must_watch(bench, "SC on Log-op3"); /* against the running mean */
    assert_non_null(bench_plan(bench, N_LOG, 0, false, &item));
    assert_int_equal(item->trigger_count, 0);
    bench_must_watch(bench, "'max > 1 || nan > 0' on Conv-op1");
    assert_non_null(bench_plan(bench, N_CONV, 0, false, &item));
    assert_true(has_trigger(item, GD_STAT_MAX, GD_CMP_GT, 1));
    assert_true(has_trigger(item, GD_STAT_NAN, GD_CMP_GT, 0));
    bench_must_watch(bench, "'nan > 0 || inf > 0' on Conv-op4"); /* nothing but NaN: exact */
    assert_non_null(bench_plan(bench, N_GRADIENT, 0, true, &item));
}

/* Only what changed is sent, and keeps its number. */
static void test_differences(void **state)
{
    struct watch_bench *bench = *state;
    bench_must_watch(bench, "TO on all");
    uint32_t exact = bench_plan(bench, N_CONV, 0, true, NULL)->id;
    uint32_t end = bench_plan(bench, N_WEIGHT, 0, false, NULL)->id;
    int calls = bench->fake->plan_calls;
    assert_int_equal(calls, 2);
    int number = bench_must_watch(bench, "WCL on weights");
    assert_int_equal(bench->fake->plan_calls, calls + 1);
    assert_int_equal(bench_plan(bench, N_WEIGHT, 0, false, NULL)->id, end);
    assert_int_equal(bench_plan(bench, N_CONV, 0, true, NULL)->id, exact);
    gd_watchpoints_apply(bench->debugger);
    gd_session_on_graph(bench->session); /* nothing new in it */
    assert_int_equal(bench->fake->plan_calls, calls + 1);
    assert_ok(gd_watchpoint_enable(bench->debugger, number, false, NULL));
    assert_int_equal(bench->fake->plan_calls, calls + 2);
    assert_ok(gd_watchpoint_delete(bench->debugger, 1, NULL));
    assert_int_equal(bench->fake->plan_removals, 2);
    assert_int_equal(bench->fake->plan_count, 0);
    assert_ok(gd_watchpoint_enable(bench->debugger, number, true, NULL));
    assert_int_equal(bench->fake->plan_count, 1);
}

/* Adds operators to the graph of a training that runs, as one part of it. */
static gd_node_id grow_graph(struct watch_bench *bench, uint32_t first, uint32_t count)
{
    gd_node_id node = GD_NO_NODE;
    for (uint32_t i = first; i < first + count; i++) {
        char name[32];
        snprintf(name, sizeof(name), "late/Op-op%u", i);
        node = bench_add(bench->session, name, "Op", i, GD_FLOAT32, 1);
    }
    assert_ok(gd_graph_commit(bench->session->graph, NULL));
    gd_session_on_graph(bench->session);
    return node;
}

/* While the training runs, new nodes make new plans, and a plan that is full enough stays as it is;
 * at the next stop the few that there are may be joined. */
static void test_growth_while_it_runs(void **state)
{
    struct watch_bench *bench = *state;
    bench_must_watch(bench, "TO on all");
    bench_run(bench);
    gd_node_id old = grow_graph(bench, 100, 100);
    const struct fake_plan *plan = bench_plan(bench, old, 0, true, NULL);
    uint32_t id = plan->id;
    size_t count = plan->count;
    assert_true(count >= 100);
    int calls = bench->fake->plan_calls;
    for (uint32_t part = 1; part <= 3; part++) {
        gd_node_id node = grow_graph(bench, 200 * part, 10);
        plan = bench_plan(bench, node, 0, true, NULL);
        assert_int_not_equal(plan->id, id);
        assert_int_equal(plan->count, 10 * part); /* it is small: it grows */
        assert_int_equal(bench->fake->plan_calls, calls + (int)part);
        plan = bench_plan(bench, old, 0, true, NULL);
        assert_int_equal(plan->id, id);
        assert_int_equal(plan->count, count);
    }
    bench_stop(bench, GD_STOP_STEP, 1);
    gd_node_id last = grow_graph(bench, 900, 1);
    assert_int_equal(bench_plan(bench, last, 0, true, NULL)->id, id);
    assert_int_equal(bench_plan(bench, old, 0, true, NULL)->count, count + 31);
}

/* However many parts it comes in, the number of plans stays small. */
static void test_growth_in_many_parts(void **state)
{
    struct watch_bench *bench = *state;
    bench_must_watch(bench, "TO on all");
    bench_run(bench);
    for (uint32_t part = 0; part < 200; part++) {
        gd_node_id node = grow_graph(bench, 100 * (part + 1), 70);
        assert_non_null(bench_plan(bench, node, 0, true, NULL));
        assert_true(bench->fake->plan_count <= WATCH_SEALED_PLANS + 2);
    }
}

/* What is watched, whichever plans it is in: of each node's slots, and in each of the covers. */
static void note_watched(const struct watch_bench *bench, uint32_t limit, char *text, size_t size)
{
    const struct gd_watching *w = bench->session->watching;
    size_t at = 0;
    text[0] = '\0';
    for (gd_node_id node = 0; node < limit && at < size; node++) {
        const uint32_t *sites = NULL;
        at += (size_t)snprintf(text + at, size - at, "%u:%d%d%d%d ", node,
                               bench_plan(bench, node, 0, true, NULL) != NULL,
                               bench_plan(bench, node, 0, false, NULL) != NULL,
                               bench_items(bench, node, 0), bench_items(bench, node, 1));
        for (uint32_t i = 0; i < watching_covers_of(w, node, &sites) && at < size; i++) {
            at += (size_t)snprintf(text + at, size - at, "+%u", sites[i]);
        }
    }
    for (size_t i = 0; i < w->cover_count && at < size; i++) {
        at += (size_t)snprintf(text + at, size - at, " %zu %zu", w->covers[i].node_count,
                               w->covers[i].sum.expected);
    }
    for (size_t i = 0; i < w->tensor_count && at < size; i++) {
        at += (size_t)snprintf(text + at, size - at, " %u.%u", w->tensors[i].node,
                               w->tensors[i].slot);
    }
    assert_true(at < size);
}

/* Each item speaks of its tensor, and is found. */
static void check_items(const struct gd_watching *w)
{
    for (size_t i = 0; i < w->plan_count; i++) {
        for (size_t k = 0; k < w->plans[i].count; k++) {
            const struct watch_item *item = &w->plans[i].items[k];
            const struct watch_tensor *tensor = &w->tensors[item->tensor];
            assert_int_equal(watching_item(&w->plans[i], item->node, item->slot, item->scalar), k);
            assert_int_equal(watching_tensor(w, item->node, item->slot, item->scalar),
                             item->tensor);
            assert_true(tensor->node == item->node && tensor->slot == item->slot);
            assert_true(tensor->memory + tensor->set->cover_count <= w->memory_count);
        }
    }
}

/* A part of a graph that grows is added to what was built, and comes to the same as building all
 * anew; only what changes the nodes before it has all built anew. */
static void test_growth_adds(void **state)
{
    static char grown[1 << 18], built[1 << 18];
    struct watch_bench *bench = *state;
    bench_must_watch(bench, "-exact 'max > 3' on activations");
    bench_must_watch(bench, "TO on all except *op7*, /op[23]1/");
    bench_must_watch(bench, "-step 'mean > 3' on net, type:Op");
    bench_must_watch(bench, "'norm_ratio > 9' on *op1*");
    bench_must_watch(bench, "LN");
    assert_ok(gd_exclude_add(bench->debugger, "*op5", NULL));
    bench_run(bench);
    grow_graph(bench, 100, 100);
    for (uint32_t part = 1; part <= 60; part++) {
        struct watch_set **sets = bench->session->watching->sets;
        gd_node_id last = grow_graph(bench, 200 + 10 * part, part % 7 + 1);
        assert_ptr_equal(bench->session->watching->sets, sets); /* nothing was made anew */
        assert_non_null(bench_scalar_plan(bench, "loss", NULL));
        check_items(bench->session->watching);
        if (part % 20 == 0) {
            note_watched(bench, last + 1, grown, sizeof(grown));
            gd_watchpoints_apply(bench->debugger);
            assert_ptr_not_equal(bench->session->watching->sets, sets);
            note_watched(bench, last + 1, built, sizeof(built));
            assert_string_equal(grown, built);
        }
    }
    struct watch_set **sets = bench->session->watching->sets;
    gd_graph_set_output(bench->session->graph, N_TEXT, 0, &(struct gd_output){GD_FLOAT32, {0}});
    grow_graph(bench, 5000, 1);
    assert_ptr_not_equal(bench->session->watching->sets, sets);
    assert_non_null(bench_plan(bench, N_TEXT, 0, false, NULL));
}

static void test_edits(void **state)
{
    struct watch_bench *bench = *state;
    const struct gd_watch_item *item = NULL;
    struct gd_err err;
    int number = bench_must_watch(bench, "TL max_gt=5 on net");
    struct gd_condition_value value = {"max_gt", GD_PARAM_FLOAT, 7};
    assert_ok(gd_watchpoint_set_values(bench->debugger, number, &value, 1, NULL));
    bench_plan(bench, N_RELU, 0, false, &item);
    assert_true(has_trigger(item, GD_STAT_MAX, GD_CMP_GT, 7));
    assert_false(has_trigger(item, GD_STAT_MAX, GD_CMP_GT, 5));
    assert_ok(gd_watchpoint_set_where(bench->debugger, number, '-', "ReLU-op2", NULL));
    assert_null(bench_plan(bench, N_RELU, 0, false, NULL));
    assert_ok(gd_watchpoint_set_where(bench->debugger, number, '-', "Log-op3", NULL));
    assert_ok(gd_watchpoint_set_where(bench->debugger, number, '+', "ReLU-op2", NULL));
    assert_string_equal(gd_watchpoint_at(bench->debugger, number)->where,
                        "net except ReLU-op2, Log-op3 with ReLU-op2");
    assert_non_null(bench_plan(bench, N_RELU, 0, false, NULL));
    assert_null(bench_plan(bench, N_LOG, 0, false, NULL));
    assert_int_equal(gd_watchpoint_set_where(bench->debugger, number, '+', "all except net", &err),
                     GD_EINVAL);
    assert_int_equal(gd_watchpoint_set_where(bench->debugger, number, '=', "nowhere", &err),
                     GD_ENOTFOUND);
    assert_non_null(bench_plan(bench, N_RELU, 0, false, NULL)); /* as it was */
    assert_string_equal(gd_watchpoint_at(bench->debugger, number)->where,
                        "net except ReLU-op2, Log-op3 with ReLU-op2");
    assert_ok(gd_watchpoint_set_where(bench->debugger, number, '=', "weights", NULL));
    assert_null(bench_plan(bench, N_RELU, 0, false, NULL));
    assert_non_null(bench_plan(bench, N_WEIGHT, 0, false, NULL));
    assert_int_equal(gd_watchpoint_set_expression(bench->debugger, number, "max > 1", &err),
                     GD_EINVAL);
    number = bench_must_watch(bench, "'max > 1' on ReLU-op2");
    assert_int_equal(gd_watchpoint_set_expression(bench->debugger, number, "max >", &err),
                     GD_EINVAL);
    assert_ok(gd_watchpoint_set_expression(bench->debugger, number, "min < 2", &err));
    bench_plan(bench, N_RELU, 0, false, &item);
    assert_true(has_trigger(item, GD_STAT_MIN, GD_CMP_LT, 2));
}

static void test_growth(void **state)
{
    struct watch_bench *bench = *state;
    bench_must_watch(bench, "TO on all");
    struct fake_target *fake;
    struct gd_session *other = bench_connect(bench, BENCH_PLANS, &fake);
    assert_int_equal(fake->plan_count, 0);
    bench_graph(other); /* a process that comes later gets everything */
    assert_int_equal(fake->plan_count, 2);
    gd_node_id node = bench_add(bench->session, "net/Exp-op9", "Exp", 9, GD_FLOAT32, 1);
    assert_ok(gd_graph_commit(bench->session->graph, NULL));
    assert_null(bench_plan(bench, node, 0, true, NULL));
    gd_session_on_graph(bench->session);
    assert_non_null(bench_plan(bench, node, 0, true, NULL));
}

/* Nodes that are missing are told once, and only when the graph is there. */
static void test_pending(void **state)
{
    struct watch_bench *bench = *state;
    struct gd_err err;
    assert_int_equal(bench_watch(bench, "TO on later", &err), GD_ENOTFOUND);
    assert_null(bench->debugger->watchpoints);
    assert_int_equal(bench_watch(bench, "TO on type:Nothing", &err), GD_ENOTFOUND);
    assert_contains(err.text, "selects no node");
    bench_must_watch(bench, "TO on net/Log-op3");
    struct fake_target *fake;
    struct gd_session *other = bench_connect(bench, BENCH_PLANS, &fake);
    for (int part = 0; part < 3; part++) {
        char name[32];
        snprintf(name, sizeof(name), "part/op%d", part);
        bench_add(other, name, "X", (uint32_t)part, GD_FLOAT32, 1);
        gd_graph_commit(other->graph, NULL);
        gd_session_on_graph(other);
    }
    assert_int_equal(bench->warnings, 0);
    struct gd_stop stop = {.reason = GD_STOP_CONNECTED, .node = GD_NO_NODE};
    gd_session_on_stopped(other, &stop);
    gd_session_on_stopped(other, &stop);
    assert_int_equal(bench->warnings, 1);
    assert_contains(bench->warning, "watchpoint 1 is not set in this process");
}

static void test_scalar(void **state)
{
    struct watch_bench *bench = *state;
    const struct gd_watch_item *item = NULL;
    bench_must_watch(bench, "LN");
    const struct fake_plan *plan = bench_scalar_plan(bench, "loss", &item);
    assert_non_null(plan);
    assert_true(plan->hold && !plan->exact);
    assert_int_equal(item->node, GD_NO_NODE);
    bench_must_watch(bench, "LN on lr");
    assert_non_null(bench_scalar_plan(bench, "lr", NULL));
    bench_must_watch(bench, "'accuracy < 0.5 && step > 100'");
    assert_non_null(bench_scalar_plan(bench, "accuracy", NULL));
    bench_must_watch(bench, "LN on Log-op3"); /* a node that is the loss */
    assert_int_equal(bench_items(bench, N_LOG, 0), 1);
}

static void test_guard_needs(void **state)
{
    struct watch_bench *bench = *state;
    const struct gd_watch_item *item = NULL;
    bench_must_watch(bench, "TO on Conv-op1 if abs_mean(prev) > 3");
    assert_non_null(bench_plan(bench, N_CONV, 0, false, &item));
    assert_true(item->against_previous);
    bench_must_watch(bench, "TO on ReLU-op2 if step > 3");
    assert_non_null(bench_plan(bench, N_RELU, 0, true, NULL));
}

static void test_excluded(void **state)
{
    struct watch_bench *bench = *state;
    const struct gd_watch_item *item = NULL;
    struct gd_err err;
    bench_must_watch(bench, "TO on net");
    bench_must_watch(bench, "TL max_gt=5 on net");
    assert_int_equal(gd_exclude_add(bench->debugger, "nowhere", &err), GD_ENOTFOUND);
    assert_ok(gd_exclude_add(bench->debugger, "Log-op3", &err));
    assert_string_equal(gd_exclude_at(bench->debugger, 0), "Log-op3");
    assert_null(gd_exclude_at(bench->debugger, 1));
    assert_non_null(bench_plan(bench, N_LOG, 0, false, &item)); /* nothing exact wants it now */
    assert_null(bench_plan(bench, N_LOG, 0, true, NULL));
    assert_false(has_trigger(item, GD_STAT_NONFINITE, GD_CMP_GT, 0));
    assert_int_equal(gd_exclude_delete(bench->debugger, "x", &err), GD_ENOTFOUND);
    assert_ok(gd_exclude_delete(bench->debugger, "Log-op3", &err));
    assert_non_null(bench_plan(bench, N_LOG, 0, true, NULL));
}

static void test_record_and_failure(void **state)
{
    struct watch_bench *bench = *state;
    bench->fake->plan_rc = GD_ELIMIT;
    bench_must_watch(bench, "TO on ReLU-op2");
    assert_int_equal(bench->warnings, 1);
    assert_int_equal(bench->fake->plan_count, 0);
    bench->fake->plan_rc = GD_OK;
    bench->debugger->settings.history_bytes = 1 << 20;
    gd_watchpoints_apply(bench->debugger);
    assert_true(bench_plan(bench, N_RELU, 0, true, NULL)->record);
    assert_ok(gd_watchpoint_delete(bench->debugger, 1, NULL));
    assert_int_equal(bench->fake->plan_count, 0);
    assert_int_equal(bench->warnings, 1);
    bench->debugger->settings.history_bytes = 0;
}

/* What moves from one plan to another is in one of them throughout: they change together, also when
 * the last of them is refused. */
static void test_change_together(void **state)
{
    struct watch_bench *bench = *state;
    bench_must_watch(bench, "trace -exact TO on ReLU-op2, Log-op3");
    uint32_t id = bench_plan(bench, N_RELU, 0, true, NULL)->id;
    int calls = bench->fake->plan_calls;
    bench_must_watch(bench, "-exact TO on Log-op3");
    assert_int_not_equal(bench_plan(bench, N_LOG, 0, true, NULL)->id, id);
    assert_int_equal(bench_plan(bench, N_RELU, 0, true, NULL)->id, id);
    assert_int_equal(bench->fake->plan_calls, calls + 2);
    assert_false(bench->fake->plans_open);
    assert_ok(gd_watchpoint_enable(bench->debugger, 2, false, NULL));
    assert_int_equal(bench_plan(bench, N_LOG, 0, true, NULL)->id, id);
    bench->fake->plan_rc = GD_ELIMIT;
    bench->fake->plan_fails = bench->session->watching->next_plan + 1;
    assert_ok(gd_watchpoint_enable(bench->debugger, 2, true, NULL));
    assert_null(bench_plan(bench, N_LOG, 0, true, NULL));
    assert_false(bench->fake->plans_open);
    assert_int_equal(bench->warnings, 1);
}

static void test_no_capability(void **state)
{
    struct watch_bench *bench = bench_make(GD_CAN_STEP | GD_CAN_FETCH);
    struct gd_err err;
    assert_int_equal(bench_watch(bench, "TO on all", &err), GD_EUNSUPPORTED);
    assert_int_equal(bench->debugger->next_breakpoint, 1);
    bench_free(bench);
    bench = bench_make(BENCH_PLANS);
    assert_int_equal(bench_watch(bench, "OO on all", &err), GD_EUNSUPPORTED);
    snprintf(bench->session->peer.device, sizeof(bench->session->peer.device), "Ascend910");
    assert_int_equal(bench_watch(bench, "OO on all", &err), GD_EUNSUPPORTED); /* needs a flag */
    bench->debugger->settings.evaluate = GD_EVALUATE_REMOTE;
    assert_int_equal(bench_watch(bench, "TO on all", &err), GD_EUNSUPPORTED);
    bench_free(bench);
}

/* ---- a big graph --------------------------------------------------------------------------- */

static void test_big(void **state)
{
    struct watch_bench *bench = *state;
    char name[64];
    for (uint32_t i = 0; i < 100000; i++) {
        snprintf(name, sizeof(name), "big/block%u/%s-op%u", i / 100, i % 10 ? "Add" : "Mul", i);
        bench_add(bench->session, name, i % 10 ? "Add" : "Mul", 10 + i, GD_FLOAT32, 1);
    }
    assert_ok(gd_graph_commit(bench->session->graph, NULL));
    gd_session_on_graph(bench->session);
    bench_must_watch(bench, "TO on *Mul*");
    assert_int_equal(bench->fake->plan_count, 1);
    assert_int_equal(bench->fake->plans[0].count, 10000);
    int calls = bench->fake->plan_calls;
    bench_must_watch(bench, "TL max_gt=1 on all");
    size_t items = 0;
    for (size_t i = 0; i < bench->fake->plan_count; i++) {
        assert_true(bench->fake->plans[i].count <= 20000);
        items += bench->fake->plans[i].count;
    }
    assert_int_equal(items, 100000 + 8);
    assert_true(bench->fake->plan_calls > calls);
    assert_int_equal(bench_items(bench, N_NODES + 99990, 0), 1);
}

static const struct CMUnitTest tests[] = {
    WATCH_TEST(test_exact_split),
    cmocka_unit_test(test_step_end_target),
    WATCH_TEST(test_merged),
    WATCH_TEST(test_when),
    WATCH_TEST(test_hold),
    WATCH_TEST(test_options_that_do_not_agree),
    WATCH_TEST(test_always),
    WATCH_TEST(test_differences),
    WATCH_TEST(test_growth_while_it_runs),
    WATCH_TEST(test_growth_in_many_parts),
    WATCH_TEST(test_growth_adds),
    WATCH_TEST(test_edits),
    WATCH_TEST(test_growth),
    WATCH_TEST(test_pending),
    WATCH_TEST(test_scalar),
    WATCH_TEST(test_guard_needs),
    WATCH_TEST(test_excluded),
    WATCH_TEST(test_record_and_failure),
    WATCH_TEST(test_change_together),
    cmocka_unit_test(test_no_capability),
    WATCH_TEST(test_big),
};

RUN_TESTS()
