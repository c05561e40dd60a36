// SPDX-License-Identifier: GPL-3.0-or-later
/* Breakpoints of a session, and what resumes beside them. */
#include "../unit.h"
#include "session_bench.h"

static void test_breakpoints(void **state)
{
    struct bench *bench = make(true);
    struct gd_debugger *debugger = bench->debugger;
    struct gd_breakpoint *one, *later;
    struct gd_node_desc desc = {.name = "net/late", .type = "X", .order = GD_NO_ORDER};
    struct gd_err err;

    assert_ok(gd_debugger_break(debugger, "net/b", false, &one, &err));
    assert_int_equal(one->number, 1);
    assert_int_equal(bench->fake->breakpoint_count, 1);
    assert_int_equal(bench->fake->breakpoints[0], 1);
    assert_ok(gd_debugger_break(debugger, "net/late", true, &later, &err));
    assert_int_equal(bench->fake->breakpoint_pushes, 1); /* nothing new for the target */
    expect_log(bench, "BB");
    assert_int_equal(gd_debugger_break(debugger, "a b", false, NULL, &err), GD_EINVAL);
    assert_ok(gd_graph_add(bench->session->graph, &desc, NULL, NULL));
    assert_ok(gd_graph_commit(bench->session->graph, NULL));
    gd_session_on_graph(bench->session);
    assert_int_equal(bench->fake->breakpoint_count, 2);
    assert_int_equal(bench->fake->breakpoints[1], 3);
    assert_ptr_equal(gd_debugger_breakpoint_at(debugger, bench->session, 3), later);
    assert_null(gd_debugger_breakpoint_at(debugger, bench->session, 0));
    /* The temporary one goes after its stop was announced. */
    bench->log[0] = '\0';
    stop_at(bench, GD_STOP_BREAKPOINT, 1, 3);
    expect_log(bench, "SB");
    assert_null(gd_debugger_breakpoint(debugger, 2));
    assert_int_equal(bench->fake->breakpoint_count, 1);
    /* A step that ends on a breakpoint is a breakpoint's stop. */
    stop_at(bench, GD_STOP_NODE, 1, 1);
    assert_int_equal(bench->session->stop.reason, GD_STOP_BREAKPOINT);
    assert_int_equal(one->hits, 1);
    assert_ok(gd_debugger_enable_breakpoint(debugger, 1, false, &err));
    assert_int_equal(bench->fake->breakpoint_count, 0);
    assert_null(gd_debugger_breakpoint_at(debugger, bench->session, 1));
    assert_int_equal(gd_debugger_enable_breakpoint(debugger, 7, false, &err), GD_ENOTFOUND);
    assert_ok(gd_debugger_delete_breakpoint(debugger, 1, &err));
    assert_int_equal(gd_debugger_delete_breakpoint(debugger, 1, &err), GD_ENOTFOUND);
    assert_null(debugger->breakpoints);
    finish(bench);
}

/* Whatever comes to a graph piece by piece, the breakpoints stand where they would if all of it had
 * been there. */
static void test_growth(void **state)
{
    static const char *const wheres[] = {"/_[0-9]+$/",
                                         "late",
                                         "x*y",
                                         "type:ReLU",
                                         "/^new/ except new/out",
                                         "deep/",
                                         "all except late",
                                         "type:ReLU except net/b"};
    static const char *const names[] = {"net/relu_1", "new/in",  "net/x1y",  "net/late",
                                        "new/out",    "x*y",     "deep/one", "other/late",
                                        "deep/two",   "net/none"};
    struct bench *bench = make(true);
    struct fake_target *fake = bench->fake;
    gd_node_id alone[16];

    for (size_t i = 0; i < sizeof(wheres) / sizeof(wheres[0]); i++) {
        assert_ok(gd_debugger_break(bench->debugger, wheres[i], false, NULL, NULL));
    }
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct gd_node_desc desc = {
            .name = names[i], .type = i % 3 ? "Add" : "ReLU", .order = GD_NO_ORDER};
        assert_ok(gd_graph_add(bench->session->graph, &desc, NULL, NULL));
        assert_ok(gd_graph_commit(bench->session->graph, NULL));
        gd_session_on_graph(bench->session);
        size_t count = fake->breakpoint_count;
        int pushes = fake->breakpoint_pushes;
        memcpy(alone, fake->breakpoints, sizeof(alone));
        assert_ok(gd_debugger_break(bench->debugger, "never", true, NULL, NULL));
        assert_int_equal(fake->breakpoint_pushes, pushes); /* of all of it: nothing else */
        assert_int_equal(fake->breakpoint_count, count);
        assert_memory_equal(alone, fake->breakpoints, count * sizeof(*alone));
    }
    assert_int_equal(fake->breakpoint_count, 7);
    finish(bench);
}

/* A name that means several nodes is no breakpoint; one that comes to mean them warns, once. */
static void test_ambiguous_names(void **state)
{
    static const char *const names[] = {"net/late", "other/late", "third/late"};
    static const char *const said[] = {"G", "WG", "G"};
    struct bench *bench = make(true);
    struct gd_debugger *debugger = bench->debugger;
    struct gd_breakpoint *at;
    struct gd_err err;

    assert_ok(gd_debugger_break(debugger, "late", false, &at, &err));
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct gd_node_desc desc = {.name = names[i], .type = "X", .order = GD_NO_ORDER};
        bench->log[0] = '\0';
        assert_ok(gd_graph_add(bench->session->graph, &desc, NULL, NULL));
        assert_ok(gd_graph_commit(bench->session->graph, NULL));
        gd_session_on_graph(bench->session);
        assert_int_equal(bench->fake->breakpoint_count, i == 0);
        expect_log(bench, said[i]);
    }
    assert_int_equal(gd_debugger_break(debugger, "late", false, NULL, &err), GD_EAMBIGUOUS);
    assert_contains(err.text, "'late' could be 'net/late' or 'other/late'");
    assert_ptr_equal(debugger->breakpoints, at);
    assert_null(at->next);
    finish(bench);
}

static int resolved; /* how often a selector was looked up in the whole graph */

int __wrap_gd_selector_resolve(const struct gd_selector *selector, struct gd_graph *graph,
                               gd_node_id **ret, size_t *count, struct gd_err *err);
int __real_gd_selector_resolve(const struct gd_selector *selector, struct gd_graph *graph,
                               gd_node_id **ret, size_t *count, struct gd_err *err);

int __wrap_gd_selector_resolve(const struct gd_selector *selector, struct gd_graph *graph,
                               gd_node_id **ret, size_t *count, struct gd_err *err)
{
    resolved++;
    return __real_gd_selector_resolve(selector, graph, ret, count, err);
}

static gd_node_id add_part(struct bench *bench, const char *name, const char *type, uint32_t line)
{
    struct gd_frame frame = {.file = "src/m.py", .line = line, .function = "f", .code = ""};
    struct gd_node_desc desc = {
        .name = name, .type = type, .order = GD_NO_ORDER, .frames = &frame, .frame_count = 1};
    gd_node_id node;

    assert_ok(gd_graph_add(bench->session->graph, &desc, &node, NULL));
    assert_ok(gd_graph_commit(bench->session->graph, NULL));
    gd_session_on_graph(bench->session);
    return node;
}

/* A part of a graph costs what it has, not what the graph has: lines, and names beside what is
 * excepted, are looked for among the new nodes alone. */
static void test_growth_by_new_nodes_alone(void **state)
{
    struct bench *bench = make(true);
    struct gd_debugger *debugger = bench->debugger;
    struct fake_target *fake = bench->fake;
    gd_node_id nodes[4];
    char name[32];

    assert_ok(gd_debugger_break(debugger, "at:m.py:7", false, NULL, NULL));
    assert_ok(gd_debugger_break(debugger, "type:ReLU except net/b", false, NULL, NULL));
    snprintf(debugger->settings.keep_previous, sizeof(debugger->settings.keep_previous),
             "type:ReLU except net/b");
    assert_ok(gd_debugger_apply_keep_previous(debugger, NULL));
    size_t stand = fake->breakpoint_count, kept = fake->kept_count;
    resolved = 0;
    for (int i = 0; i < 20; i++) {
        snprintf(name, sizeof(name), "part/n%d", i);
        add_part(bench, name, "Add", 3);
    }
    nodes[0] = add_part(bench, "part/line", "Add", 7);
    nodes[1] = add_part(bench, "part/relu", "ReLU", 3);
    assert_int_equal(resolved, 0);
    assert_int_equal(fake->breakpoint_count, stand + 2);
    assert_int_equal(fake->breakpoints[stand], nodes[0]);
    assert_int_equal(fake->breakpoints[stand + 1], nodes[1]);
    assert_int_equal(fake->kept_count, kept + 1);
    assert_int_equal(fake->kept[kept], nodes[1]);
    /* a node that may be meant by the name has it looked up */
    add_part(bench, "part/net/b", "ReLU", 3);
    assert_true(resolved > 0);
    assert_int_equal(fake->kept_count, kept + 2);
    /* what excepts a name that is not there (yet) stands nowhere, nor keeps anything */
    snprintf(debugger->settings.keep_previous, sizeof(debugger->settings.keep_previous),
             "type:ReLU except later");
    assert_ok(gd_debugger_apply_keep_previous(debugger, NULL));
    add_part(bench, "part/relu2", "ReLU", 3);
    assert_int_equal(fake->kept_count, 0);
    add_part(bench, "part/later", "ReLU", 3);
    assert_int_equal(fake->kept_count, kept + 3);
    finish(bench);
}

static void test_ignore(void **state)
{
    struct bench *bench = make(true);
    struct gd_breakpoint *one;

    assert_ok(gd_debugger_break(bench->debugger, "net/b", false, &one, NULL));
    one->ignore = 2;
    stop_at(bench, GD_STOP_CONNECTED, 0, GD_NO_NODE);
    bench->session->stop.at_step_end = true;
    assert_ok(resume(bench, GD_RUN_STEP, 5, NULL));
    expect_log(bench, "BSR");
    stop_at(bench, GD_STOP_BREAKPOINT, 1, 1); /* passed */
    assert_int_equal(bench->session->state, GD_RUNNING);
    assert_int_equal(bench->fake->resumes, 2);
    assert_int_equal(bench->fake->run.kind, GD_RUN_STEP);
    assert_int_equal(bench->fake->run.count, 5); /* no step has ended yet */
    stop_at(bench, GD_STOP_BREAKPOINT, 3, 1);
    assert_int_equal(bench->fake->run.count, 3);
    assert_int_equal(bench->session->stop.sequence, 1);
    expect_log(bench, "");
    stop_at(bench, GD_STOP_BREAKPOINT, 4, 1);
    expect_log(bench, "S");
    assert_int_equal(one->hits, 3);
    assert_int_equal(bench->session->stop.sequence, 2);
    assert_int_equal(bench->session->timing.last_run_steps, 3);
    /* Ten thousand passes that the target reports from inside resume need no stack. */
    one->ignore = 10000;
    bench->fake->stop_next = (struct gd_stop){.reason = GD_STOP_BREAKPOINT, .step = 4, .node = 1};
    bench->fake->stop_count = 10001;
    assert_ok(resume(bench, GD_RUN_CONTINUE, 0, NULL));
    assert_int_equal(one->hits, 3 + 10001);
    assert_int_equal(bench->session->state, GD_STOPPED);
    /* When the target will not go on it is a stop like any other. */
    one->ignore = 1;
    assert_ok(resume(bench, GD_RUN_CONTINUE, 0, NULL));
    bench->log[0] = '\0';
    bench->fake->resume_rc = GD_EIO;
    stop_at(bench, GD_STOP_BREAKPOINT, 5, 1);
    expect_log(bench, "S");
    assert_int_equal(bench->session->state, GD_STOPPED);
    finish(bench);
}

/* The trainer goes away just when an ignored breakpoint wants it to go on. */
static void test_lost_while_passing(void **state)
{
    struct gd_stop again = {.reason = GD_STOP_BREAKPOINT, .step = 2, .node = 1};

    for (int refused = 0; refused < 2; refused++) {
        struct bench *bench = make(true);
        struct gd_breakpoint *one;

        assert_ok(gd_debugger_break(bench->debugger, "net/b", false, &one, NULL));
        one->ignore = 5;
        stop_at(bench, GD_STOP_CONNECTED, 0, GD_NO_NODE);
        assert_ok(resume(bench, GD_RUN_CONTINUE, 0, NULL));
        bench->log[0] = '\0';
        bench->fake->lose_next = true;
        bench->fake->resume_rc = refused ? GD_ELOST : GD_OK;
        bench->fake->stop_next = again;
        bench->fake->stop_count = refused ? 0 : 1;
        stop_at(bench, GD_STOP_BREAKPOINT, 1, 1);
        assert_int_equal(bench->session->state, GD_LOST);
        assert_false(gd_session_is_live(bench->session));
        assert_null(strchr(bench->log, 'S'));
        finish(bench);
    }
}

/* Looking again where it stands is no pass: nothing is counted, and it goes nowhere. */
static void test_recheck_at_breakpoint(void **state)
{
    struct bench *bench = make(true);
    struct gd_breakpoint *one;

    assert_ok(gd_debugger_break(bench->debugger, "net/b", false, &one, NULL));
    stop_at(bench, GD_STOP_CONNECTED, 0, GD_NO_NODE);
    assert_ok(resume(bench, GD_RUN_CONTINUE, 0, NULL));
    stop_at(bench, GD_STOP_BREAKPOINT, 1, 1);
    assert_int_equal(one->hits, 1);
    one->ignore = 2;
    assert_ok(resume(bench, GD_RUN_RECHECK, 0, NULL));
    stop_at(bench, GD_STOP_BREAKPOINT, 1, 1);
    assert_int_equal(bench->session->state, GD_STOPPED);
    assert_int_equal(one->hits, 1);
    assert_int_equal(one->ignore, 2);
    assert_ok(resume(bench, GD_RUN_CONTINUE, 0, NULL));
    stop_at(bench, GD_STOP_BREAKPOINT, 2, 1);
    assert_int_equal(one->hits, 2);
    assert_int_equal(bench->session->state, GD_RUNNING);
    finish(bench);
}

/* Steps are what a peer says: the ends of 64 bits and counting backwards are no trouble. */
static void test_absurd_steps(void **state)
{
    struct bench *bench = make(true);
    struct gd_breakpoint *one;

    assert_ok(gd_debugger_break(bench->debugger, "net/b", false, &one, NULL));
    stop_at(bench, GD_STOP_STEP, INT64_MAX, GD_NO_NODE);
    stop_at(bench, GD_STOP_STEP, INT64_MAX, GD_NO_NODE);
    one->ignore = 1;
    assert_ok(resume(bench, GD_RUN_STEP, 3, NULL));
    stop_at(bench, GD_STOP_BREAKPOINT, 0, 1);
    assert_int_equal(bench->session->state, GD_RUNNING);
    assert_int_equal(bench->fake->run.count, 3);
    finish(bench);
}

static void test_keep_previous(void **state)
{
    struct bench *bench = make(true);
    struct gd_settings *settings = &bench->debugger->settings;
    struct gd_err err;

    assert_int_equal(bench->fake->keep_pushes, 0);
    snprintf(settings->keep_previous, sizeof(settings->keep_previous), "net/a, net/c");
    assert_ok(gd_debugger_apply_keep_previous(bench->debugger, &err));
    assert_int_equal(bench->fake->kept_count, 2);
    gd_session_on_graph(bench->session);
    assert_int_equal(bench->fake->keep_pushes, 1);
    snprintf(settings->keep_previous, sizeof(settings->keep_previous), "/(/");
    assert_int_equal(gd_debugger_apply_keep_previous(bench->debugger, &err), GD_EINVAL);
    settings->keep_previous[0] = '\0';
    assert_ok(gd_debugger_apply_keep_previous(bench->debugger, &err));
    assert_int_equal(bench->fake->kept_count, 0);
    finish(bench);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_breakpoints),
    cmocka_unit_test(test_growth),
    cmocka_unit_test(test_ambiguous_names),
    cmocka_unit_test(test_growth_by_new_nodes_alone),
    cmocka_unit_test(test_ignore),
    cmocka_unit_test(test_lost_while_passing),
    cmocka_unit_test(test_recheck_at_breakpoint),
    cmocka_unit_test(test_absurd_steps),
    cmocka_unit_test(test_keep_previous),
};

RUN_TESTS()
