// SPDX-License-Identifier: GPL-3.0-or-later
/* The commands about watchpoints, on a fake training process. */
#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../unit.h"
#include "engine/watch/watchpoint.h"
#include "repl/fake_watch.h"
#include "repl/net.h"
#include "scratch.h"

static int set_up_typed(void **state)
{
    return net_setup(state, &(struct repl_options){.utf8 = true, .width = 80});
}

static int set_up_batch(void **state)
{
    return net_setup(state, &(struct repl_options){.batch = true, .utf8 = true, .width = 80});
}

static int set_up_json(void **state)
{
    return net_setup(state, &(struct repl_options){.json = true, .utf8 = true});
}

static int set_up_person(void **state)
{
    return net_setup(state, &(struct repl_options){.interactive = true, .utf8 = true, .width = 80});
}

/* ---- making and changing ------------------------------------------------------------------- */

static void watch_trace_twatch(void **state)
{
    struct net *n = *state;
    net_expect(n, "watch TO on net/fc1.weight", "Watchpoint 1: TO on net/fc1.weight: 1 node\n");
    net_expect(n, "trace TL max_gt=5 on type:MatMul if step > 3",
               "Trace 2: TL max_gt=5 on type:MatMul if step > 3: 1 node\n");
    net_expect(n, "twatch max > 5 on net/fc1",
               "Temporary watchpoint 3: 'max > 5' on net/fc1: 1 node\n");
    net_expect(n, "watch loss > 3", "Watchpoint 4: 'loss > 3' on loss\n");
    net_expect(n, "info breakpoints",
               "Num  Type        Disp  Enb  Where\n"
               "1    watchpoint  keep  y    TO on net/fc1.weight\n"
               "2    trace       keep  y    TL max_gt=5 on type:MatMul if step > 3\n"
               "3    watchpoint  del   y    'max > 5' on net/fc1\n"
               "4    watchpoint  keep  y    'loss > 3' on loss\n");
    net_expect_rc(n, "watch TO on nothing/here", GD_ENOTFOUND,
                  "error: there is no node 'nothing/here'\n");
    net_expect_rc(
        n, "watch", GD_EUSAGE,
        "error: watch: specify a condition (\"info conditions\" lists them) (usage: watch "
        "[-exact | -step] [-for N] CONDITION [PARAM=VALUE]... [on SELECTOR] [if EXPR])\n");
    net_expect_part(n, "  watch TL abs_mean_gt=x", "is not a number (column 12)");
    net_expect(n, "unwatch 1 2", "");
    net_expect_rc(n, "unwatch 1", GD_ENOTFOUND,
                  "error: there is no watchpoint 1: see \"info watchpoints\"\n");
}

static void steps_in_a_row(void **state)
{
    struct net *n = *state;
    net_expect(n, "watch -for 3 TO on net/fc1 if step > 1",
               "Watchpoint 1: TO on net/fc1 if step > 1, 3 steps in a row: 1 node\n");
    net_expect_rc(n, "watch -for 0 TO on net/fc1", GD_EINVAL,
                  "error: -for takes a number of steps, 1 to 1000000 (column 12)\n");
    net_expect_rc(
        n, "watch -for 3 -exact TO on net/fc1", GD_EINVAL,
        "error: tensor_overflow can be checked only at the end of a step, not with -exact\n");
}

static void test_guards(void **state)
{
    struct net *n = *state;
    net_expect(n, "watch TO on net/fc1", "Watchpoint 1: TO on net/fc1: 1 node\n");
    net_expect(n, "condition 1 step > 3 && max > 1",
               "Watchpoint 1: TO on net/fc1 if step > 3 && max > 1: 1 node\n");
    net_expect(n, "cond 1 'nan > 3'", "Watchpoint 1: TO on net/fc1 if nan > 3: 1 node\n");
    net_expect(n, "cond 1", "Watchpoint 1: guard removed.\n");
    net_expect_part(n, "condition 1 max >", "missing at the end");
    net_expect_rc(n, "condition 2 max > 1", GD_ENOTFOUND,
                  "error: there is no watchpoint 2: see \"info watchpoints\"\n");
    net_expect_part(n, "break type:MatMul", "Breakpoint 2");
    net_expect_rc(n, "condition 2 max > 1", GD_EUNSUPPORTED,
                  "error: 2 is a breakpoint: use \"break NODE if EXPR\" for a conditional one\n");
    net_expect_rc(n, "condition x", GD_EINVAL, "error: \"x\" is not a watchpoint's number\n");
}

static void breakpoints_with_a_condition(void **state)
{
    struct net *n = *state;
    net_expect(n, "break net/fc1 if max > 5", "Watchpoint 1: 'max > 5' on net/fc1: 1 node\n");
    net_expect(n, "tbreak type:Add if 'max > 5 && step > 3'",
               "Temporary watchpoint 2: 'max > 5 && step > 3' on type:Add: 2 nodes\n");
    net_expect(n, "break net/fc1 if step > 3",
               "Watchpoint 3: 'count >= 0' on net/fc1 if step > 3: 1 node\n");
    net_expect(n, "break if max > 5",
               "Watchpoint 4: 'max > 5' on net/fc1/MatMul-op1: 1 node\n"); /* the current one */
    net_expect_part(n, "break net/fc1 if", "an expression is missing after \"if\"");
    net_expect_part(n, "break net/fc1 if max >", "missing at the end");
    net_expect_part(n, "break net/fc1 if norm(cur-prev) > 1", "only at the end of a step");
    net_expect_part(n, "break nothing/here if max > 5", "there is no node 'nothing/here'");
    net_expect_part(n, "break 'nothing if here'", "nothing if here");
    net_expect_part(n, "info breakpoints",
                    "3    watchpoint  keep  y    'count >= 0' on net/fc1 if");
}

static void test_edits(void **state)
{
    struct net *n = *state;
    net_expect(n, "watch TR range_start_inclusive=-1 range_end_inclusive=1 range_percentage_lt=50",
               "Watchpoint 1: TR range_start_inclusive=-1 range_end_inclusive=1 "
               "range_percentage_lt=50 on all: 9 nodes\n");
    net_expect(n, "edit 1 range_end_inclusive=2",
               "Watchpoint 1: TR range_start_inclusive=-1 range_end_inclusive=2 "
               "range_percentage_lt=50 on all: 9 nodes\n");
    net_expect_part(n, "edit 1 range_percentage_lt=off range_percentage_gt=3 on net/fc1",
                    "range_end_inclusive=2 range_percentage_gt=3 on net/fc1: 1 node\n");
    net_expect(n, "edit 1 range_percentage_gt=off max_min_gt=5",
               "Watchpoint 1: TR max_min_gt=5 on net/fc1: 1 node\n");
    net_expect(n, "edit 1 add type:Add",
               "Watchpoint 1: TR max_min_gt=5 on net/fc1, type:Add: 3 nodes\n");
    net_expect(n, "edit 1 remove net/loop/A",
               "Watchpoint 1: TR max_min_gt=5 on net/fc1, type:Add except net/loop/A: 2 nodes\n");
    net_expect(n, "edit 1 if step > 1",
               "Watchpoint 1: TR max_min_gt=5 on net/fc1, type:Add except net/loop/A if step > 1: "
               "2 nodes\n");
    net_expect_part(n, "edit 1 max_min_gt=-1", "error: ");
    net_expect_part(n, "edit 1 foo=3", "has no parameter \"foo\"");
    net_expect(n, "watch max > 3 on net/fc1", "Watchpoint 2: 'max > 3' on net/fc1: 1 node\n");
    net_expect(n, "edit 2 'min < 3' on type:Add", "Watchpoint 2: 'min < 3' on type:Add: 2 nodes\n");
    net_expect_part(n, "edit 2 foo", "expected an expression");
    net_expect_part(
        n, "edit 2",
        "nothing to change: give parameters, \"on\", \"if\", \"add\" or \"remove\" (column 7)");
    net_expect_part(n, "edit 9 on all", "there is no watchpoint 9");
}

static void excluded_places(void **state)
{
    struct net *n = *state;
    net_expect(n, "exclude", "No nodes are excluded: non-finite values count everywhere.\n");
    net_expect(n, "exclude net/fc1.weight",
               "Non-finite values are expected on:\n  net/fc1.weight: 1 node\n");
    net_expect(n, "watch TO on all", "Watchpoint 1: TO on all: 9 nodes\n");
    net_expect_part(n, "step", "Stopped at the end of step 4.\n");
    net_expect(n, "exclude -d net/fc1.weight",
               "No nodes are excluded: non-finite values count everywhere.\n");
    net_expect(n, "step",
               "Watchpoint 1: tensor_overflow (TO), step 5\n"
               "  net/fc1.weight:0\n"
               "Watchpoint 1, at the end of step 5.\n");
    net_expect_part(n, "exclude -d net/fc1.weight", "is not excluded");
    net_expect_part(n, "exclude -d", "exclude -d: specify a selector");
}

/* ---- what comes of them -------------------------------------------------------------------- */

static void a_hit_is_told_and_can_be_gone_to(void **state)
{
    struct net *n = *state;
    net_expect_part(n, "info hits", "No watchpoint has fired: ");
    net_expect_rc(n, "hit", GD_ENOTFOUND, "error: no watchpoint has fired yet\n");
    net_expect_part(n, "watch TL max_gt=5 on net/fc1, net/big", "2 nodes");
    net_expect_part(n, "trace TO on net/fc1.weight", "Trace 2");
    net_expect(n, "step 3",
               "Trace 2: tensor_overflow (TO), step 4\n"
               "  net/fc1.weight:0\n"
               "Watchpoint 1: tensor_too_large (TL), step 4\n"
               "  net/big:0 max_gt=5 (1499)\n"
               "  net/fc1/MatMul-op1:0 max_gt=5 (6)\n"
               "Watchpoint 1, at the end of step 4.\n");
    net_expect(n, "info hits",
               "#1   step 4  trace 2 (TO)  net/fc1.weight:0\n"
               "#2   step 4  watchpoint 1 (TL)  net/big:0\n"
               "        max_gt: set 5, actual 1499\n"
               "#3   step 4  watchpoint 1 (TL)  net/fc1/MatMul-op1:0\n"
               "        max_gt: set 5, actual 6\n");
    net_expect_part(n, "hit",
                    "Hit 2 of 3, step 4: watchpoint 1, tensor_too_large (TL)\n"
                    "  net/big:0\n"
                    "    max_gt: set 5, actual 1499\n"
                    "float32 (50, 30)");
    assert_int_equal(n->fake.session->current, n->big);
    net_expect_part(n, "nh", "Hit 3 of 3");
    assert_int_equal(n->fake.session->current, n->matmul);
    net_expect_rc(n, "hit next", GD_ENODATA, "error: this is already the last hit\n");
    net_expect_part(n, "ph", "Hit 2 of 3");
    net_expect_part(n, "hit prev", "Hit 1 of 3");
    net_expect_rc(n, "ph", GD_ENODATA, "error: this is already the first hit\n");
    net_expect_part(n, "hit 2", "Usual causes");
    net_expect_part(n, "hit 4", "there is no hit 4");
    net_expect_part(n, "info hits 2", "#1   step 4  trace 2 (TO)  net/fc1.weight:0\n");
    net_expect(n, "info hits 7", "Watchpoint 7 has not fired: it is not set.\n");
    net_expect_part(n, "advice hit", "tensor_too_large (TL) fires when:\n");
    net_expect_part(n, "advice 2", "tensor_overflow (TO) fires when:\n");
    net_expect_part(n, "advice gv", "gradient_vanishing (GV)");
    net_expect_part(n, "advice XX", "there is no condition \"XX\"");
}

static void what_could_not_be_checked_is_one_line(void **state)
{
    struct net *n = *state;
    net_expect_part(n, "trace WCL on net/fc1.weight, net/big, net/fc1.bias, net/empty", "4 nodes");
    net_expect(n, "step",
               "Trace 1: weight_change_too_large (WCL), step 4\n"
               "  net/fc1.weight:0 could not be checked: NaN, Inf, no value of the previous step\n"
               "  net/fc1.bias:0 could not be checked: no value\n"
               "  net/big:0 could not be checked: no value of the previous step\n"
               "  net/empty:0 could not be checked: no value of the previous step, no element\n"
               "Stopped at the end of step 4.\n");
}

/* However they alternate as they come. */
static void what_several_could_not_check_stands_together(void **state)
{
    struct net *n = *state;
    net_expect_part(n, "trace WCL on net/big, net/empty", "2 nodes");
    net_expect_part(n, "trace WCS on net/big, net/empty", "2 nodes");
    net_expect_part(n, "watch TL max_gt=5 on net/big", "1 node");
    net_expect_part(
        n, "step",
        "Watchpoint 3: tensor_too_large (TL), step 4\n"
        "  net/big:0 max_gt=5 (1499)\n"
        "Trace 1: weight_change_too_large (WCL), step 4\n"
        "  net/empty:0 could not be checked: no value of the previous step, no element\n"
        "  net/big:0 could not be checked: no value of the previous step\n"
        "Trace 2: weight_change_too_small (WCS), step 4\n"
        "  net/empty:0 could not be checked: no value of the previous step, no element\n"
        "  net/big:0 could not be checked: no value of the previous step\n");
}

static void many_hits_are_counted(void **state)
{
    static const struct gd_shape shape = {.rank = 1, .dim = {1}};
    const float value = 7;
    struct net *n = *state;
    for (int i = 0; i < 50; i++) {
        char name[32];
        snprintf(name, sizeof(name), "many/n%02d", i);
        gd_node_id node = fake_node(&n->fake, name, "Add", GD_FLOAT32, &shape, NULL, 0, NULL);
        fake_set(&n->fake, node, 0, GD_CURRENT, GD_FLOAT32, &shape, &value);
    }
    fake_graph_done(&n->fake);
    net_expect_part(n, "watch max > 5 on many", "50 nodes");
    net_expect_part(n, "trace WCL on net/big", "1 node");
    const char *out = fake_run(&n->fake, "step", NULL);
    assert_non_null(strstr(out, "  many/n19:0 max=7\n"
                                "Trace 2: weight_change_too_large (WCL), step 4\n"
                                "  net/big:0 could not be checked: no value of the previous step\n"
                                "  ... 30 more (info hits)\n"
                                "Watchpoint 1, "));
    net_expect_part(n, "info hits", "11 earlier (info hits -a)\n");
    net_expect_part(n, "watch TL max_gt=6.5 on many/n49", "Watchpoint 3");
    out = fake_run(&n->fake, "step", NULL); /* what may stop it is told beyond the limit */
    assert_non_null(strstr(out, "Watchpoint 3: tensor_too_large (TL), step 5\n  many/n49:0 max"));
    net_expect_part(n, "unwatch 3", "");
    net_expect_part(n, "info hits 1 -a", "#2   step 4  watchpoint 1 (max > 5)  many/n00:0\n");
}

static void counts_and_ends(void **state)
{
    struct net *n = *state;
    net_expect_part(n, "watch TO on net/fc1.weight", "Watchpoint 1");
    net_expect(n, "ignore 1 2", "Watchpoint 1 will be passed 2 more times.\n");
    net_expect_part(n, "info watchpoints", "ignore next 2 hits\n");
    net_expect_part(n, "continue", "Watchpoint 1, at the end of step 6.\n");
    net_expect(n, "ignore 1 0", "Watchpoint 1 stops the next time.\n");
    net_expect(n, "enable once 1", "");
    net_expect_part(n, "continue", "Watchpoint 1, at the end of step 7.\n");
    assert_false(gd_watchpoint_at(n->fake.debugger, 1)->enabled);
    net_expect_part(n, "step 2", "Stopped at the end of step 9.\n");
    net_expect(n, "enable count 2 1", "");
    net_expect_part(n, "continue", "step 10.\n");
    assert_true(gd_watchpoint_at(n->fake.debugger, 1)->enabled);
    net_expect_part(n, "continue", "step 11.\n");
    assert_false(gd_watchpoint_at(n->fake.debugger, 1)->enabled);
    net_expect(n, "enable delete 1", "");
    net_expect_part(n, "continue", "step 12.\n");
    assert_null(gd_watchpoint_at(n->fake.debugger, 1));
    net_expect_part(n, "ignore 1 1", "there is no breakpoint or watchpoint 1");
}

static void bodies_run_and_are_silent(void **state)
{
    struct net *n = *state;
    net_expect_part(n, "watch TO on net/fc1.weight", "Watchpoint 1");
    net_expect_part(n, "trace TL max_gt=5 on net/big", "Trace 2");
    fake_run(&n->fake, "commands 1", NULL);
    fake_run(&n->fake, "silent", NULL);
    fake_run(&n->fake, "echo in the body\\n", NULL);
    fake_run(&n->fake, "end", NULL);
    net_expect(n, "continue",
               "Continuing.\n"
               "Trace 2: tensor_too_large (TL), step 4\n"
               "  net/big:0 max_gt=5 (1499)\n"
               "in the body\n");
    fake_run(&n->fake, "commands 1", NULL); /* without silent; it goes on */
    fake_run(&n->fake, "echo again\\n", NULL);
    fake_run(&n->fake, "delete 1", NULL);
    fake_run(&n->fake, "continue", NULL);
    fake_run(&n->fake, "end", NULL);
    net_expect_part(n, "continue", "again\n");
    assert_null(gd_watchpoint_at(n->fake.debugger, 1));
}

static void several_stop_at_once(void **state)
{
    struct net *n = *state;
    net_expect_part(n, "watch TO on net/fc1.weight", "Watchpoint 1");
    net_expect_part(n, "watch TL max_gt=5 on net/big", "Watchpoint 2");
    net_expect_part(n, "twatch TL max_gt=5 on net/fc1", "Temporary watchpoint 3");
    net_expect_part(n, "step", "Watchpoints 1, 2 and 3, at the end of step 4.\n");
    assert_null(gd_watchpoint_at(n->fake.debugger, 3));
    net_expect_part(n, "step", "Watchpoints 1 and 2, at the end of step 5.\n");
}

/* ---- info watchpoints ---------------------------------------------------------------------- */

static void the_table_adds_up(void **state)
{
    struct net *n = *state;
    net_expect(n, "info watchpoints", "No watchpoints.\n");
    net_expect_part(n, "trace TO on net/fc1.weight, net/big", "Trace 1");
    net_expect_part(n, "trace TL max_gt=5 on net/big", "Trace 2");
    net_expect_part(n, "step 4", "step 7.\n");
    net_expect(n, "info watchpoints",
               "Num  Kind    Enb  When      Nodes    Hits     Checks      Cost  Share    Reports\n"
               "1    trace   y    step          2       4          8      6 us  75.0%     341 B\n"
               "       TO on net/fc1.weight, net/big\n"
               "2    trace   y    step          1       4          4      2 us  25.0%     171 B\n"
               "       TL max_gt=5 on net/big\n"
               "total                                   8         12      8 us 100.0%     512 B\n"
               "2 tensors watched now\n"
               "Watching takes 2 us per step, 0.0024% of the time; waited 4 us for 4 reports\n");
    net_expect_part(n, "info watchpoints 1", "       net/fc1.weight\n       net/big\n");
    net_expect_part(n, "info watchpoints 9", "there is no watchpoint 9");
    n->fake.never_answer = true; /* Ctrl-C */
    net_expect_part(n, "info watchpoints",
                    "The costs are unknown: interrupted while waiting for the training process.\n");
    n->fake.never_answer = false;
    net_expect_part(n, "info watchpoints", "8 us 100.0%");
}

static void marks_of_nodes_and_scopes(void **state)
{
    struct net *n = *state;
    net_expect_part(n, "watch TO on net/fc1", "Watchpoint 1");
    net_expect_part(n, "watch TL max_gt=3 on type:MatMul, net/loop", "Watchpoint 2");
    net_expect_part(n, "info node net/fc1/MatMul-op1", "  watched by  1, 2\n");
    net_expect_part(n, "scope net", "  fc1/  1 node, watched\n");
    net_expect_part(n, "scope net", "  fc1.weight  (Parameter) float32 (2, 3)\n");
    net_expect_part(n, "scope net/fc1", "  MatMul-op1  (MatMul) float32 (2, 3), watched by 1, 2\n");
    net_expect_part(n, "info scopes -d 1",
                    "net/  8 nodes, 5 directly, 2 scopes below, partly watched\n");
}

/* ---- saving -------------------------------------------------------------------------------- */

static void what_was_saved_comes_back(void **state)
{
    struct net *n = *state;
    char path[SCRATCH_PATH], line[128];
    int fd = scratch_file(path);
    assert_true(fd >= 0);
    close(fd);
    net_expect_part(n, "exclude type:Add", "type:Add");
    net_expect_part(n, "watch -exact TO on net/fc1 if step > 3", "Watchpoint 1");
    net_expect_part(n, "ignore 1 4", "4 more");
    net_expect_part(n, "trace 'max > 1 && min < 3' on net/fc1, net/big", "Trace 2");
    net_expect_part(n, "disable 2", "");
    net_expect_part(n, "twatch TL max_gt=5 on net/big", "Temporary watchpoint 3");
    fake_run(&n->fake, "commands", NULL);
    fake_run(&n->fake, "echo a  b\\n", NULL);
    fake_run(&n->fake, "end", NULL);
    net_expect_part(n, "enable count 3 3", "");
    net_expect_part(n, "break \"net/fc1/MatMul-op1\"", "Breakpoint 4");
    snprintf(line, sizeof(line), "save -f breakpoints %s", path);
    net_expect_part(n, line, "Saved 4 breakpoints and watchpoints to ");
    net_expect(n, "delete", "");
    net_expect_part(n, "exclude -d type:Add", "No nodes");
    snprintf(line, sizeof(line), "source %s", path);
    net_expect_part(n, line, "Watchpoint 5: TO on net/fc1 if step > 3: 1 node\n");
    net_expect_part(n, "info watchpoints", "5    watch   y    step");
    net_expect(n, "info breakpoints",
               "Num  Type        Disp  Enb  Where\n"
               "5    watchpoint  keep  y    TO on net/fc1 if step > 3\n"
               "6    trace       keep  n    'max > 1 && min < 3' on net/fc1, net/big\n"
               "7    watchpoint  del   y    TL max_gt=5 on net/big\n"
               "        echo a  b\\n\n"
               "8    breakpoint  keep  y    net/fc1/MatMul-op1 (MatMul)\n");
    assert_int_equal(gd_watchpoint_at(n->fake.debugger, 5)->ignore, 4);
    assert_int_equal(gd_watchpoint_at(n->fake.debugger, 5)->when, GD_WHEN_EXACT);
    assert_string_equal(gd_exclude_at(n->fake.debugger, 0), "type:Add");
    snprintf(line, sizeof(line), "save -f watchpoints %s", path);
    net_expect_part(n, line, "Saved 3 watchpoints to ");
    unlink(path);
}

/* ---- recommended --------------------------------------------------------------------------- */

static void the_recommended_ones(void **state)
{
    struct net *n = *state;
    net_expect_part(n, "recommend", "  TO on all: 9 nodes\n");
    net_expect_part(n, "recommend", "\"recommend yes\" sets them.\n");
    net_expect_part(n, "recommend yes", ": TO on all: 9 nodes\n");
    net_expect_part(n, "recommend list", "  TO on all: 9 nodes, set as watchpoint ");
    net_expect(n, "recommend yes", "All recommended watchpoints are already set.\n");
    net_expect(n, "recommend no", "");
    net_expect_rc(
        n, "recommend maybe", GD_EUSAGE,
        "error: recommend: expected list, yes or no (usage: recommend [list | yes | no])\n");
}

/* A person whose trainer connects by itself is told once, at its first stop, where they are. */
static void a_person_hears_of_them_once(void **state)
{
    struct net *n = *state;
    struct gd_stop stop = {
        .reason = GD_STOP_CONNECTED, .step = 0, .at_step_end = true, .node = GD_NO_NODE};
    for (int i = 0; i < 2; i++) {
        gd_session_on_running(n->fake.session);
        gd_session_on_stopped(n->fake.session, &stop);
        const char *out = fake_run(&n->fake, "echo here\\n", NULL);
        if (i == 0) {
            assert_non_null(strstr(out, "here\n\"recommend\" shows "));
            assert_non_null(strstr(out, " recommended watchpoints.\n"));
        } else {
            assert_string_equal(out, "here\n");
        }
    }
}

static void who_wants_them_at_once_is_not_asked(void **state)
{
    struct net *n = *state;
    struct gd_stop stop = {
        .reason = GD_STOP_CONNECTED, .step = 0, .at_step_end = true, .node = GD_NO_NODE};
    net_expect(n, "set recommend on", "");
    gd_session_on_running(n->fake.session);
    gd_session_on_stopped(n->fake.session, &stop);
    const char *out = fake_run(&n->fake, "echo here\\n", NULL);
    assert_non_null(strstr(out, ": TO on all: 9 nodes\n"));
    net_expect(n, "recommend yes", "All recommended watchpoints are already set.\n");
}

static void who_does_not_want_them_hears_nothing(void **state)
{
    struct net *n = *state;
    struct gd_stop stop = {
        .reason = GD_STOP_CONNECTED, .step = 0, .at_step_end = true, .node = GD_NO_NODE};
    net_expect(n, "set recommend off", "");
    gd_session_on_running(n->fake.session);
    gd_session_on_stopped(n->fake.session, &stop);
    net_expect(n, "echo here\\n", "here\n");
}

/* ---- status -------------------------------------------------------------------------------- */

static void status_4_is_of_what_stops(void **state)
{
    struct net *n = *state;
    net_expect_part(n, "trace TO on net/fc1.weight", "Trace 1");
    net_expect_part(n, "step", "step 4.\n");
    assert_int_equal(repl_exit_status(n->fake.repl), 0);
    net_expect_part(n, "watch TO on net/fc1.weight", "Watchpoint 2");
    net_expect_part(n, "step", "Watchpoint 2, ");
    assert_int_equal(repl_exit_status(n->fake.repl), 4);
    net_expect_part(n, "nonsense", "error: ");
    assert_int_equal(repl_exit_status(n->fake.repl), 1);
}

/* ---- JSON ---------------------------------------------------------------------------------- */

static const char *text_of(const cJSON *object, const char *name)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);
    return cJSON_IsString(item) ? item->valuestring : "(none)";
}

static double number_of(const cJSON *object, const char *name)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);
    return cJSON_IsNumber(item) ? item->valuedouble : NAN;
}

static void records_say_what_the_texts_say(void **state)
{
    struct net *n = *state;
    cJSON *record = net_record(n, "trace -step TL max_gt=5 on net/big if step > 3");
    assert_string_equal(text_of(record, "type"), "watchpoint");
    assert_string_equal(text_of(record, "kind"), "trace");
    assert_string_equal(text_of(record, "condition"), "tensor_too_large");
    assert_string_equal(text_of(record, "abbreviation"), "TL");
    assert_string_equal(text_of(record, "if"), "step > 3");
    assert_true(number_of(cJSON_GetObjectItem(record, "params"), "max_gt") == 5);
    cJSON_Delete(record);
    net_expect_part(n, "step",
                    "{\"v\":1,\"type\":\"hit\",\"session\":1,\"rank\":0,\"watchpoint\":1,"
                    "\"condition\":15,\"condition_id\":\"tensor_too_large\",\"abbreviation\":"
                    "\"TL\",\"step\":4,\"node\":\"net/big\",\"slot\":0,\"trace\":true,");
    record = net_record(n, "info watchpoints");
    const cJSON *row = cJSON_GetArrayItem(cJSON_GetObjectItem(record, "watchpoints"), 0);
    assert_string_equal(text_of(row, "when"), "step");
    assert_true(number_of(row, "cost_ns") == FAKE_ITEM_NS);
    assert_true(number_of(cJSON_GetObjectItem(record, "total"), "compute_ns") == FAKE_ITEM_NS);
    cJSON_Delete(record);
    record = net_record(n, "info hits");
    row = cJSON_GetArrayItem(cJSON_GetObjectItem(record, "hits"), 0);
    assert_true(number_of(row, "number") == 1);
    cJSON_Delete(record);
    record = net_record(n, "hit");
    assert_string_equal(text_of(record, "type"), "hit");
    assert_string_equal(text_of(record, "command"), "hit");
    assert_true(number_of(cJSON_GetObjectItem(record, "stats"), "max") == 1499);
    cJSON_Delete(record);
    record = net_record(n, "info node net/big");
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(record, "watchpoints")), 1);
    cJSON_Delete(record);
}

int main(void)
{
#define TYPED(fn)  cmocka_unit_test_setup_teardown(fn, set_up_typed, net_teardown)
#define BATCH(fn)  cmocka_unit_test_setup_teardown(fn, set_up_batch, net_teardown)
#define JSON(fn)   cmocka_unit_test_setup_teardown(fn, set_up_json, net_teardown)
#define PERSON(fn) cmocka_unit_test_setup_teardown(fn, set_up_person, net_teardown)
    const struct CMUnitTest tests[] = {
        TYPED(watch_trace_twatch),
        TYPED(steps_in_a_row),
        TYPED(test_guards),
        TYPED(breakpoints_with_a_condition),
        TYPED(test_edits),
        TYPED(excluded_places),
        TYPED(a_hit_is_told_and_can_be_gone_to),
        TYPED(what_could_not_be_checked_is_one_line),
        TYPED(what_several_could_not_check_stands_together),
        TYPED(many_hits_are_counted),
        TYPED(counts_and_ends),
        TYPED(bodies_run_and_are_silent),
        TYPED(several_stop_at_once),
        TYPED(the_table_adds_up),
        TYPED(marks_of_nodes_and_scopes),
        TYPED(what_was_saved_comes_back),
        TYPED(the_recommended_ones),
        PERSON(a_person_hears_of_them_once),
        PERSON(who_wants_them_at_once_is_not_asked),
        PERSON(who_does_not_want_them_hears_nothing),
        BATCH(status_4_is_of_what_stops),
        JSON(records_say_what_the_texts_say),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
