// SPDX-License-Identifier: GPL-3.0-or-later
/* Graphs that are taken in a little at each turn of the loop, and what Ctrl-C does to them. */
#include <ev.h>

#include "../../unit.h"
#include "engine/progress.h"
#include "pb_write.h"
#include "proto/ms/ms_ingest.h"

#define MANY 200000 /* nodes: more than any machine takes in in one turn */

static struct world {
    struct ev_loop *loop;
    struct gd_debugger *debugger;
    struct gd_ms_target *target;
    struct gd_session *session;
    struct ms_ingest *ingest;
    char warning[512];
    int graphs, idle;
} world;

static void on_reply(void *held, const void *data, size_t len)
{
    fail_msg("nobody waits");
}

static void on_gone(void *owner, bool detached, int32_t last_id)
{
    ms_ingest_destroy(world.ingest);
    world.ingest = NULL;
}

static const struct gd_ms_io io = {.reply = on_reply, .gone = on_gone};

static void on_event(void *ctx, const struct gd_event *event)
{
    if (event->type == GD_EV_WARNING) {
        snprintf(world.warning, sizeof(world.warning), "%s", event->text);
    }
    world.graphs += event->type == GD_EV_GRAPH;
}

static void on_idle(void *ctx)
{
    world.idle++;
}

static int set_up(void **state)
{
    struct gd_ms_metadata metadata = {.device_name = "0:1", .backend = "GPU", .graph_num = 1};
    memset(&world, 0, sizeof(world));
    world.loop = ev_loop_new(EVFLAG_AUTO);
    if (!world.loop || gd_debugger_create(&world.debugger, NULL) != GD_OK ||
        gd_debugger_observe(world.debugger, on_event, NULL) != GD_OK ||
        gd_ms_target_create(world.debugger, &io, &world, "peer:1", &metadata, &world.target,
                            NULL) != GD_OK) {
        return -1;
    }
    world.session = gd_ms_target_session(world.target);
    world.ingest = ms_ingest_create(world.loop, world.debugger, world.target, on_idle, NULL);
    return world.ingest ? 0 : -1;
}

static int tear_down(void **state)
{
    gd_debugger_destroy(world.debugger);
    ms_ingest_destroy(world.ingest);
    ev_loop_destroy(world.loop);
    return 0;
}

static void add_graph(const char *name, unsigned nodes, bool unwanted)
{
    struct gd_buf bytes = GD_BUF_INIT(1u << 28);
    for (unsigned i = 1; i <= nodes; i++) {
        char id[16], before[16], full[64];
        snprintf(id, sizeof(id), "%u", i);
        snprintf(before, sizeof(before), "%u", i - 1);
        snprintf(full, sizeof(full), "%s/layer%u/ReLU-op%u", name, i / 100, i);
        struct gd_buf one =
            pb_node(id, "ReLU", name, full, (const char *[]){i > 1 ? before : NULL, NULL});
        pb_message(&bytes, 1, &one);
    }
    pb_text(&bytes, 2, name);
    assert_false(bytes.failed);
    assert_ok(ms_ingest_add(world.ingest, &bytes, unwanted, NULL));
    gd_buf_deinit(&bytes);
}

static struct gd_graph_counts count_graph(void)
{
    struct gd_graph_counts counts;
    gd_graph_counts(world.session->graph, &counts);
    return counts;
}

static void until_idle(void)
{
    while (ms_ingest_is_busy(world.ingest)) {
        ev_run(world.loop, EVRUN_ONCE);
    }
}

/* Until some nodes are in, and not all. */
static struct gd_progress_info until_half(void)
{
    struct gd_progress_info info = {.done = 0};
    while (info.done == 0) {
        ev_run(world.loop, EVRUN_ONCE);
        assert_true(gd_progress_current(world.debugger, &info));
    }
    assert_true(info.done < info.total);
    return info;
}

static void test_a_small_one_is_in_at_once(void **state)
{
    add_graph("small", 3, false);
    until_idle();
    assert_int_equal(world.graphs, 1);
    assert_int_equal(count_graph().nodes, 3);
    assert_int_equal(count_graph().edges, 2);
    assert_int_equal(ms_ingest_again(world.ingest, NULL), GD_ENODATA);
}

static void test_a_large_one_takes_turns(void **state)
{
    struct gd_progress_info info;
    add_graph("large", MANY, false);
    add_graph("small", 3, false);
    info = until_half();
    assert_string_equal(info.what, "loading graph large");
    assert_string_equal(info.unit, "nodes");
    assert_int_equal(info.total, MANY);
    assert_int_equal(world.graphs, 0);
    assert_int_equal(world.idle, 0);
    until_idle();
    assert_int_equal(world.graphs, 2);
    assert_int_equal(world.idle, 1);
    assert_int_equal(count_graph().nodes, MANY + 3);
    assert_int_equal(count_graph().edges, MANY - 1 + 2);
    assert_false(gd_progress_current(world.debugger, &info));
    assert_string_equal(world.warning, "");
}

static void test_ctrl_c_keeps_it_out(void **state)
{
    add_graph("large", MANY, false);
    until_half();
    gd_progress_stop_all(world.debugger);
    until_idle();
    assert_int_equal(world.idle, 1);
    assert_contains(world.warning, "graph large was not loaded: interrupted after ");
    assert_contains(world.warning, " of 200000 nodes; `refresh graph` loads it");
    assert_int_equal(count_graph().nodes, 0);
    assert_int_equal(count_graph().edges, 0);
    add_graph("small", 3, false);
    assert_ok(ms_ingest_again(world.ingest, NULL));
    until_idle();
    assert_int_equal(count_graph().nodes, MANY + 3);
    assert_int_equal(count_graph().edges, MANY - 1 + 2);
    assert_int_equal(ms_ingest_again(world.ingest, NULL), GD_ENODATA);
}

static void test_a_later_one_of_its_name_replaces_it(void **state)
{
    add_graph("main", 5, true);
    until_idle();
    assert_contains(world.warning, "graph main was not loaded: interrupted while it arrived");
    assert_int_equal(count_graph().nodes, 0);
    add_graph("main", 3, false);
    until_idle();
    assert_int_equal(ms_ingest_again(world.ingest, NULL), GD_ENODATA);
    assert_int_equal(count_graph().nodes, 3);
}

static void test_the_session_ends_meanwhile(void **state)
{
    add_graph("large", MANY, false);
    until_half();
    assert_ok(gd_target_detach(world.session->target, NULL));
    assert_null(world.ingest);
    assert_int_equal(world.session->state, GD_FINISHED);
    gd_debugger_reap(world.debugger);
}

static void test_it_is_finished_on_request(void **state)
{
    add_graph("large", MANY, false);
    until_half();
    ms_ingest_finish(world.ingest);
    assert_int_equal(world.idle, 1);
    assert_int_equal(count_graph().nodes, MANY);
}

static const struct CMUnitTest tests[] = {
    TEST(test_a_small_one_is_in_at_once),
    TEST(test_a_large_one_takes_turns),
    TEST(test_ctrl_c_keeps_it_out),
    cmocka_unit_test_setup_teardown(test_a_later_one_of_its_name_replaces_it, set_up, tear_down),
    TEST(test_the_session_ends_meanwhile),
    TEST(test_it_is_finished_on_request),
};

RUN_TESTS()
