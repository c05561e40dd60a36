// SPDX-License-Identifier: GPL-3.0-or-later
#include <unistd.h>

#include "repl/net.h"
#include "scratch.h"
#include "unit.h"

static const struct repl_options mode = {.batch = true};
static struct net net;

static int set_up(void **state)
{
    net_create(&net, &mode);
    *state = &net;
    return 0;
}

static int tear_down(void **state)
{
    net_destroy(*state);
    return 0;
}

/* The completions of the whole line, blank-separated. */
static void completes_to(const char *line, size_t expected_start, const char *expected)
{
    struct gd_buf text = GD_BUF_INIT(1 << 20);
    size_t start = 0;
    char **words = repl_complete(net.fake.repl, line, strlen(line), &start);

    for (char **w = words; w && *w; w++) {
        gd_buf_printf(&text, "%s%s", w == words ? "" : " ", *w);
        free(*w);
    }
    free(words);
    assert_string_equal(gd_buf_text(&text), expected);
    if (expected[0] != '\0') {
        assert_int_equal(start, expected_start);
    }
    gd_buf_deinit(&text);
}

static void test_commands(void **state)
{
    completes_to("conti", 0, "continue");
    completes_to("  tbr", 2, "tbreak");
    completes_to("zzz", 0, "");
    completes_to("continue", 0, "continue");
    completes_to("help tbr", 5, "tbreak");
    completes_to("pipe info gr", 10, "gradients graph");
    completes_to("rank all tbr", 9, "tbreak");
}

static void test_subcommands(void **state)
{
    completes_to("info breakp", 5, "breakpoints");
    completes_to("i gra", 2, "gradients graph");
    completes_to("info nosuch x", 5, "");
}

/* What would move the cursor or reorder the line is not put into it. */
static void names_that_harm_a_terminal(void **state)
{
    struct gd_graph *graph = net.fake.debugger->current->graph;
    static const char *const names[] = {"evil/a\302\23331m", "evil/b\xe2\x80\xae", "evil/c\x1b[2J",
                                        "evil/d\xd8\x9c",    "evil/e\x9b",         "evil/good"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct gd_node_desc desc = {.name = names[i], .type = "T"};
        gd_node_id node;
        assert_ok(gd_graph_add(graph, &desc, &node, NULL));
    }
    gd_graph_commit(graph, NULL);
    completes_to("print evil/", 6, "evil/good");
}

static void nodes_come_scope_by_scope(void **state)
{
    completes_to("run-to n", 7, "net/");
    completes_to("run-to net/fc1/", 7, "net/fc1/MatMul-op1");
    completes_to("print net/fc", 6, "net/fc1.bias net/fc1.weight net/fc1/");
    completes_to("print/f net/lo", 8, "net/loop/");
    completes_to("break Mat", 6, "MatMul-op1"); /* a node's own name */
    completes_to("print net/fc1.weight[0, ", 0, "");
    completes_to("run-to net.fc1.", 7, "net.fc1.MatMul-op1"); /* as it was begun */
    completes_to("print net.fc1.w", 6, "net.fc1.weight");
    completes_to("print fc1/Mat", 6, "fc1/MatMul-op1"); /* the end of a name */
    completes_to("break nosuch.fc1.", 6, "");
}

static void test_selectors(void **state)
{
    completes_to("break wei", 6, "weights");
    completes_to("break type:Mat", 11, "MatMul");
    completes_to("break weights,grad", 14, "gradients");
}

static void parts_of_a_dprintf(void **state)
{
    completes_to("dprintf ", 8,
                 "activations activations: all at: eval frozen gradients lora loss/ model net/ "
                 "outside parameters "
                 "trainable type: weights");
    completes_to("dprintf wei", 8, "weights");
    completes_to("dprintf net/fc1/", 8, "net/fc1/MatMul-op1");
    completes_to("dprintf net/fc1/MatMul-op1,\"a, net/fc", 0, "");
    completes_to("dprintf a,net/fc1.w", 10, "net/fc1.weight");
    completes_to("dprintf a, \"x\\\", %s\", mean(net/fc1.b", 27, "net/fc1.bias");
    completes_to("dprintf a,loo", 10, "loop"); /* a module's own name */
    completes_to("dprintf a,\"%g\",mea", 15, "mean mean(");
    completes_to("dprintf a,mean if max > 3 && impr", 29, "improved(");
}

static void test_settings(void **state)
{
    completes_to("set print pr", 10, "precision");
    completes_to("show conf", 5, "confirm");
    completes_to("set confirm o", 12, "off on");
    completes_to("set color ", 10, "always auto never");
    completes_to("set theme ", 10, "dark light safe");
    completes_to("set recommend ", 14, "ask off on");
    completes_to("set on-hangup ", 14, "continue detach hold");
    completes_to("set altscreen o", 14, "off on");
    completes_to("set print precision ", 20, "");
}

static void words_of_the_usage(void **state)
{
    completes_to("layout ", 7, "graph next picture prev split src stack tensor watch");
    completes_to("layout s", 7, "split src stack");
    completes_to("tui ", 4, "disable enable");
    completes_to("recommend ", 10, "list no yes");
    completes_to("winheight ", 10, "usual");
    completes_to("help ke", 5, "keys");
    completes_to("help con", 5, "condition conditions connect continue convert");
    completes_to("help info gra", 10, "gradients graph");
    completes_to("tensor -", 7, "-axes -back -find -heat -plane -to");
    completes_to("print -", 6, "-a -s");
}

static void panes_and_keys(void **state)
{
    completes_to("focus h", 6, "history hits");
    completes_to("focus ne", 6, "next");
    completes_to("bind F1", 5, "F1 F10 F11 F12");
    completes_to("bind -p no", 8, "node");
    completes_to("bind -p node F1", 13, "F1 F10 F11 F12");
    completes_to("bind F5 conti", 8, "continue");
    completes_to("bind -p graph C-x t layout sp", 27, "split");
    completes_to("bind C-x F7 tensor-g", 12, "tensor-graph");
}

static void breakpoint_numbers(void **state)
{
    completes_to("delete ", 7, "");
    fake_run(&net.fake, "break MatMul-op1", NULL);
    fake_run(&net.fake, "break type:Add", NULL);
    completes_to("delete ", 7, "1 2");
    completes_to("disable 1 ", 10, "1 2");
}

static void test_watchpoints(void **state)
{
    completes_to("watch tensor_ov", 6, "tensor_overflow");
    completes_to("watch -exact tensor_ov", 13, "tensor_overflow");
    completes_to("trace abs_m", 6, "abs_mean abs_mean(cur-prev) abs_mean(prev)");
    completes_to("watch TR range_s", 9, "range_start_inclusive=");
    completes_to("watch -step TL max_gt=3 mea", 24, "mean_gt=");
    completes_to("twatch TL max_gt=3 o", 19, "on");
    completes_to("watch TO on wei", 12, "weights");
    completes_to("watch TO on weights exc", 20, "except");
    completes_to("watch TO on net/fc", 12, "net/fc1.bias net/fc1.weight net/fc1/");
    completes_to("watch TO on activations:", 24, "ReLU");
    completes_to("watch max > 3 on type:Mat", 22, "MatMul");
    completes_to("watch TO on all if ste", 19, "step");
    completes_to("watch TO if norm_r", 12, "norm_ratio");
    completes_to("edit ", 5, "");
    fake_run(&net.fake, "watch TL max_gt=3 on type:MatMul", NULL);
    fake_run(&net.fake, "watch max > 3 on type:MatMul", NULL);
    completes_to("edit ", 5, "1 2");
    completes_to("condition ", 10, "1 2");
    completes_to("info watchpoints ", 17, "1 2");
    completes_to("edit 1 abs", 7, "abs_mean_gt=");
    completes_to("edit 2 max_a", 7, "max_abs max_abs(cur-prev)");
    completes_to("edit 1 add wei", 11, "weights");
    completes_to("edit 1 on wei", 10, "weights");
    completes_to("edit 9 a", 7, "add");
    completes_to("hit n", 4, "next");
    completes_to("advice GV", 7, "GV");
    completes_to("exclude type:Mat", 13, "MatMul");
}

static void test_files(void **state)
{
    char dir[SCRATCH_PATH];
    char path[128], line[128], expected[128];

    assert_non_null(scratch_folder(dir));
    snprintf(path, sizeof(path), "%s/script.gdb", dir);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fclose(file);
    snprintf(line, sizeof(line), "source %s/scr", dir);
    snprintf(expected, sizeof(expected), "%s/script.gdb", dir);
    completes_to(line, 7, expected);
    snprintf(line, sizeof(line), "source %s", dir);
    snprintf(expected, sizeof(expected), "%s/", dir);
    completes_to(line, 7, expected);
    unlink(path);
    rmdir(dir);
}

static void own_commands_and_aliases(void **state)
{
    fake_run(&net.fake, "define zork", NULL);
    fake_run(&net.fake, "end", NULL);
    fake_run(&net.fake, "alias zap = print", NULL);
    completes_to("z", 0, "zap zero-grad zork");
    completes_to("zap net/fc1/", 4, "net/fc1/MatMul-op1");
}

static void odd_places_offer_nothing(void **state)
{
    completes_to("!ls /t", 0, "");
    completes_to("echo he", 0, "");
    completes_to("print/", 0, "");
    completes_to("\"", 0, "");
    completes_to("[[[", 0, "");
}

static const struct CMUnitTest tests[] = {
    TEST(test_commands),
    TEST(test_subcommands),
    TEST(names_that_harm_a_terminal),
    TEST(nodes_come_scope_by_scope),
    TEST(test_selectors),
    TEST(parts_of_a_dprintf),
    TEST(test_settings),
    TEST(words_of_the_usage),
    TEST(panes_and_keys),
    TEST(breakpoint_numbers),
    TEST(test_watchpoints),
    TEST(test_files),
    TEST(own_commands_and_aliases),
    TEST(odd_places_offer_nothing),
};

RUN_TESTS()
