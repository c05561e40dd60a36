// SPDX-License-Identifier: GPL-3.0-or-later
/* Breakpoints at lines: what names a line, and what a session does where it stops at one. */
#include "../unit.h"
#include "session_bench.h"

static void test_names(void **state)
{
    static const struct {
        const char *where, *file, *function;
        uint32_t line; /* of functions, too: only where they are allowed */
        bool functions;
    } cases[] = {
        {"nano.py:38", "nano.py", "", 38, false},
        {"/a/b c/nano.py:1", "/a/b c/nano.py", "", 1, false},
        {"./x.c:7", "./x.c", "", 7, false},
        {"nano.py:Net.forward", "nano.py", "Net.forward", 0, false},
        {"forward", "", "forward", 0, true},
        {"model.Net.forward", "", "model.Net.forward", 0, true},
    };
    static const char *const none[] = {"",           "nano.py:",   "nano.py:0",
                                       "nano.py:x-", "nano.py:3x", ":3",
                                       ".py:3",      "fc.bias:1",  "at:nano.py:3",
                                       "conv1:0",    "a.py/b:3",   "nano.py:99999999999999999999",
                                       "net/fc",     "type:ReLU",  "/re/",
                                       "a..b",       "a.",         "3"};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct gd_line *line = NULL;
        assert_ok(gd_line_parse(cases[i].where, cases[i].functions, &line, NULL));
        assert_non_null(line);
        assert_string_equal(line->file, cases[i].file);
        assert_string_equal(line->function, cases[i].function);
        assert_int_equal(line->line, cases[i].line);
        gd_line_destroy(line);
    }
    for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
        struct gd_line *line = NULL;
        assert_ok(gd_line_parse(none[i], true, &line, NULL));
        if (line) {
            fail_msg("\"%s\" names a line", none[i]);
        }
    }
}

static void stop_at_line(struct bench *bench, int64_t step, const uint32_t *numbers, size_t count)
{
    struct gd_frame frames[2] = {
        {.file = "/x/net.py", .function = "f", .code = "", .line = 3},
        {.file = "/x/net.py", .function = "<module>", .code = "", .line = 9}};
    struct gd_stop stop = {.reason = GD_STOP_BREAKPOINT, .step = step, .node = 1, .at_line = true};

    gd_session_on_line(bench->session, numbers, count, frames, 2);
    gd_session_on_stopped(bench->session, &stop);
}

static void test_stops(void **state)
{
    struct bench *bench = make(true);
    struct gd_debugger *debugger = bench->debugger;
    struct gd_breakpoint *line, *once, *node;
    struct gd_frame place = {.file = "/x/net.py", .function = "f", .code = "", .line = 3};
    uint32_t count = 7, numbers[] = {1, 2, 77};

    assert_ok(gd_debugger_break(debugger, "net.py:2", false, &line, NULL));
    assert_ok(gd_debugger_break(debugger, "net.py:3", true, &once, NULL));
    assert_ok(gd_debugger_break(debugger, "net/b", false, &node, NULL));
    assert_int_equal(bench->fake->line_count, 2);
    assert_int_equal(bench->fake->line_pushes, 2); /* the node's is not sent */
    assert_int_equal(line->line->state, GD_LINE_ASKED);
    gd_session_on_line_place(bench->session, 1, NULL, 0, "");
    assert_int_equal(line->line->state, GD_LINE_PENDING);
    assert_false(line->matched);
    gd_session_on_line_place(bench->session, 1, &place, 1, "");
    gd_session_on_line_place(bench->session, 2, NULL, 0, "no such line");
    gd_session_on_line_place(bench->session, 9, &place, 1, ""); /* deleted meanwhile */
    assert_true(line->matched);
    assert_int_equal(line->line->place[0].line, 3);
    assert_int_equal(once->line->state, GD_LINE_NOWHERE);
    /* It stops at the line, not once more at the node that ran before. */
    stop_at_line(bench, 4, numbers, 3);
    assert_int_equal(bench->session->state, GD_STOPPED);
    assert_int_equal(line->hits, 1);
    assert_int_equal(node->hits, 0);
    assert_true(line->caused);
    assert_null(gd_debugger_breakpoint(debugger, 2)); /* it was temporary */
    assert_string_equal(gd_session_line_stack(bench->session, &count)[1].function, "<module>");
    assert_int_equal(count, 2);
    bench->session->current = 0; /* a node is selected */
    assert_null(gd_session_line_stack(bench->session, &count));
    assert_int_equal(count, 0);
    finish(bench);
}

/* A line that is ignored, or whose condition is false, is passed. */
static void test_ignored(void **state)
{
    struct bench *bench = make(true);
    struct gd_breakpoint *line;
    uint32_t number = 1, nobody = 5;

    assert_ok(gd_debugger_break(bench->debugger, "net.py:3", false, &line, NULL));
    assert_ok(gd_expr_parse("step == 6", &line->guard, NULL));
    line->ignore = 1;
    stop_at(bench, GD_STOP_STEP, 4, GD_NO_NODE);
    assert_ok(resume(bench, GD_RUN_CONTINUE, 1, NULL));
    for (int64_t step = 5; step <= 6; step++) {
        gd_session_on_running(bench->session);
        int resumes = bench->fake->resumes;
        stop_at_line(bench, step, &number, 1);
        assert_int_equal(bench->fake->resumes, resumes + 1);
    }
    assert_int_equal(line->hits, 1); /* in step 6, and ignored */
    stop_at_line(bench, 5, &nobody, 1);
    assert_int_equal(line->hits, 1);
    stop_at_line(bench, 6, &number, 1);
    assert_true(line->caused);
    assert_int_equal(line->hits, 2);
    finish(bench);
}

/* Where a process cannot stop at lines, the nodes of the line are breakpoints. */
static void test_nodes(void **state)
{
    struct bench *bench = make(true);
    struct gd_frame frame = {.file = "/x/net.c", .function = "f", .code = "", .line = 3};
    struct gd_node_desc desc = {
        .name = "net/d", .type = "X", .order = 3, .frames = &frame, .frame_count = 1};
    struct gd_breakpoint *line;

    bench->fake->target.capabilities &= ~(unsigned)GD_CAN_LINES;
    assert_ok(gd_debugger_break(bench->debugger, "net.c:3", false, &line, NULL));
    assert_int_equal(bench->fake->line_pushes, 0);
    assert_int_equal(bench->fake->breakpoint_count, 0);
    assert_ok(gd_graph_add(bench->session->graph, &desc, NULL, NULL));
    assert_ok(gd_graph_commit(bench->session->graph, NULL));
    gd_session_on_graph(bench->session);
    assert_int_equal(bench->fake->breakpoint_count, 1);
    assert_true(line->matched);
    finish(bench);
}

static size_t waited_for;

static int note_expected(struct gd_target *target, const struct gd_expected *expected,
                         struct gd_err *err)
{
    (void)target;
    (void)err;
    waited_for = expected->count;
    return GD_OK;
}

/* While a node is waited for, the process reports operators, which costs time: a line waits for
 * none, nor does a function that was found. */
static void test_waits_for_no_node(void **state)
{
    struct bench *bench = make(true);
    struct gd_target_ops ops = *bench->fake->target.ops;
    struct gd_breakpoint *line;
    struct gd_frame place = {.file = "/x/net.py", .function = "f", .code = "", .line = 3};

    ops.expect = note_expected;
    bench->fake->target.ops = &ops;
    assert_ok(gd_debugger_break(bench->debugger, "net.py:3", false, &line, NULL));
    assert_int_equal(waited_for, 0);
    assert_ok(gd_debugger_break(bench->debugger, "f", false, &line, NULL));
    assert_int_equal(waited_for, 1);
    gd_session_on_line_place(bench->session, 2, &place, 1, "");
    assert_int_equal(waited_for, 0);
    finish(bench);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_waits_for_no_node),
    cmocka_unit_test(test_names),
    cmocka_unit_test(test_stops),
    cmocka_unit_test(test_ignored),
    cmocka_unit_test(test_nodes),
};

RUN_TESTS()
