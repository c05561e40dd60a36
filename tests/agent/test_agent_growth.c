// SPDX-License-Identifier: GPL-3.0-or-later
/* A graph that is empty when the debugger connects and grows while the first step runs: breakpoints
 * and watchpoints wait for their nodes, and no node's first run is missed. */
#include "eager.h"

#include "engine/watch/watchpoint.h"

struct both {
    struct world w;
    struct eager e;
};

static int set_up(void **state)
{
    struct both *b = calloc(1, sizeof(*b));
    assert_non_null(b);
    world_open(&b->w, 0);
    b->e.ops = 10;
    b->e.batch = 4;
    b->e.stats = true;
    *state = b;
    return 0;
}

static void begin_training(struct both *b)
{
    eager_begin(&b->e, &b->w);
    assert_string_equal(gd_stop_reason_name(world_session(&b->w)->stop.reason), "connected");
}

static int tear_down(void **state)
{
    struct both *b = *state;
    eager_end(&b->e, &b->w);
    world_close(&b->w);
    free(b);
    return 0;
}

static void set_watch(struct both *b, const char *condition, const char *where)
{
    struct gd_watch_spec spec = {.where = where, .when = GD_WHEN_EXACT};
    struct gd_err err = {0};
    assert_ok(gd_condition_find(condition, &spec.condition, NULL));
    if (gd_watchpoint_add(b->w.debugger, &spec, NULL, &err) != GD_OK) {
        fail_msg("%s", err.text);
    }
}

static size_t node_count(const struct both *b)
{
    struct gd_graph_counts counts;
    gd_graph_counts(world_session(&b->w)->graph, &counts);
    return counts.nodes;
}

static void expect_stop(struct both *b, const char *reason, int64_t step, const char *node)
{
    const struct gd_stop *stop = &world_session(&b->w)->stop;
    assert_string_equal(gd_stop_reason_name(stop->reason), reason);
    assert_int_equal(stop->step, step);
    assert_string_equal(stop->node_name, node);
}

static void a_watchpoint_waits_for_its_nodes(void **state)
{
    struct both *b = *state;
    b->e.nan_op = 6; /* in the middle of a batch */
    b->e.nan_step = 1;
    begin_training(b);
    assert_int_equal(node_count(b), 0);
    set_watch(b, "TO", "all");
    world_run(&b->w, GD_RUN_CONTINUE, 0, NULL);
    expect_stop(b, "hit", 1, "net/op6");
    assert_int_equal(world_session(&b->w)->hit_count, 1);
    assert_string_equal(world_session(&b->w)->hits[0].node_name, "net/op6");
    assert_int_equal(node_count(b), 1 + 8); /* two batches */
}

static void node_by_node(void **state)
{
    struct both *b = *state;
    b->e.batch = 1;
    b->e.nan_op = 3;
    b->e.nan_step = 1;
    begin_training(b);
    set_watch(b, "TO", "type:Op");
    world_run(&b->w, GD_RUN_NEXT, 2, NULL);
    expect_stop(b, "node", 1, "net/op1");
    assert_int_equal(node_count(b), 3);
    world_run(&b->w, GD_RUN_CONTINUE, 0, NULL);
    expect_stop(b, "hit", 1, "net/op3");
    world_run(&b->w, GD_RUN_STEP, 1, NULL);
    assert_int_equal(node_count(b), 1 + 10);
}

static void a_breakpoint_waits_for_its_node(void **state)
{
    struct both *b = *state;
    struct gd_breakpoint *point = NULL;
    begin_training(b);
    assert_ok(gd_debugger_break(b->w.debugger, "net/op5", false, &point, NULL));
    world_run(&b->w, GD_RUN_CONTINUE, 0, NULL);
    expect_stop(b, "breakpoint", 1, "net/op5");
    world_run(&b->w, GD_RUN_CONTINUE, 0, NULL);
    expect_stop(b, "breakpoint", 2, "net/op5");
    assert_ok(gd_debugger_delete_breakpoint(b->w.debugger, point->number, NULL));
}

/* A first debugger stop with some nodes; the watchpoint's own are still to come. */
static void a_watchpoint_grows_with_the_graph(void **state)
{
    struct both *b = *state;
    b->e.parameter_first = true;
    b->e.nan_op = 9;
    b->e.nan_step = 1;
    begin_training(b);
    assert_int_equal(node_count(b), 1);
    set_watch(b, "TO", "all");
    world_run(&b->w, GD_RUN_CONTINUE, 0, NULL);
    expect_stop(b, "hit", 1, "net/op9");
}

static void syncing_is_counted_and_needs_no_second_answer(void **state)
{
    struct both *b = *state;
    begin_training(b);
    world_run(&b->w, GD_RUN_STEP, 2, NULL);
    assert_int_equal(atomic_load(&b->e.synced), 3); /* 4, 4, 2 */
    assert_int_equal(atomic_load(&b->e.unsynced), 0);
    assert_int_equal(b->w.graphs, 3);
}

static bool is_done(struct world *w)
{
    const struct both *b = (const struct both *)(const void *)w;
    return atomic_load(&b->e.done) != 0;
}

static void without_a_debugger_nothing_waits(void **state)
{
    struct both *b = *state;
    begin_training(b);
    b->e.steps = 3;
    assert_ok(gd_target_detach(world_session(&b->w)->target, NULL));
    world_until(&b->w, "the end of the training", is_done);
    assert_int_equal(atomic_load(&b->e.synced), 0);
    assert_int_equal(atomic_load(&b->e.unsynced), 3);
}

/* The debugger goes when it has seen the second part of the graph, and does not answer: who waits
 * for that goes on. */
static struct world *leaving;

static void leave_loop(void *ctx, const struct gd_event *event)
{
    if (event->type == GD_EV_GRAPH && leaving->graphs == 2) {
        struct gd_target *target = event->session->target;
        assert_ok(gd_target_detach(target, NULL));
    }
}

static void a_debugger_that_leaves_meanwhile_is_not_waited_for(void **state)
{
    struct both *b = *state;
    begin_training(b);
    b->e.steps = 3;
    leaving = &b->w;
    assert_ok(gd_debugger_observe(b->w.debugger, leave_loop, NULL));
    world_resume(&b->w, GD_RUN_CONTINUE, 0, NULL);
    world_until(&b->w, "the end of the training", is_done);
    assert_int_equal(atomic_load(&b->e.synced), 1);
    assert_int_equal(atomic_load(&b->e.unsynced), 2);
    gd_debugger_unobserve(b->w.debugger, leave_loop, NULL);
}

static const struct CMUnitTest tests[] = {
    TEST(a_watchpoint_waits_for_its_nodes),
    TEST(node_by_node),
    TEST(a_breakpoint_waits_for_its_node),
    TEST(a_watchpoint_grows_with_the_graph),
    TEST(syncing_is_counted_and_needs_no_second_answer),
    TEST(without_a_debugger_nothing_waits),
    TEST(a_debugger_that_leaves_meanwhile_is_not_waited_for),
};

RUN_TESTS()
