// SPDX-License-Identifier: GPL-3.0-or-later
/* search, inputs, outputs, node, scope, info ..., list, backtrace on a small graph. */
#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "../../unit.h"
#include "repl/net.h"
#include "scratch.h"

/* ---- search -------------------------------------------------------------------------------- */

static void search_by_name_type_and_line(void **state)
{
    const char *matmul = "Order  Type    Kind   Output          Node\n"
                         "    4  MatMul  other  float32 (2, 3)  net/fc1/MatMul-op1  <= current\n";
    net_expect(*state, "search matmul", matmul);
    net_expect(*state, "search type:MatMul", matmul);
    net_expect(*state, "search /op1$/", matmul);
    net_expect(*state, "/op1$", matmul);
    net_expect(*state, "search at:sample.txt:4", matmul);
    net_expect(*state, "info line sample.txt:4", matmul);
    net_expect(*state, "search op in net/fc1", matmul);
    net_expect(*state, "search nothing", "Nothing matches nothing.\n");
    net_expect_part(*state, "search op in nowhere", "error: there is no scope nowhere");
    net_expect_part(*state, "search", "error: search: specify what to search for");
    net_expect_part(*state, "search /(/", "error: ");
}

static void search_json(void **state)
{
    cJSON *record = net_record(*state, "search matmul");
    const cJSON *node = cJSON_GetArrayItem(cJSON_GetObjectItem(record, "nodes"), 0);
    assert_string_equal(cJSON_GetObjectItem(node, "node")->valuestring, "net/fc1/MatMul-op1");
    assert_string_equal(cJSON_GetObjectItem(node, "node_type")->valuestring, "MatMul");
    assert_int_equal(cJSON_GetObjectItem(record, "count")->valueint, 1);
    cJSON_Delete(record);
    record = net_record(*state, "info nodes net/o*dd");
    node = cJSON_GetArrayItem(cJSON_GetObjectItem(record, "nodes"), 0);
    assert_string_equal(cJSON_GetObjectItem(node, "node")->valuestring, "net/o\033[31mdd");
    cJSON_Delete(record);
}

/* ---- trees --------------------------------------------------------------------------------- */

static void inputs_are_a_tree(void **state)
{
    net_expect(*state, "inputs loss/Mean-op9",
               "loss/Mean-op9 (Mean)\n"
               "|- net/loop/B (Add), has 1 input\n"
               "`- net/fc1/MatMul-op1 (MatMul), has 2 inputs\n");
    net_expect(*state, "inputs net/big", "net/big (Parameter)\nIt has no inputs.\n");
    net_expect(*state, "outputs net/fc1.bias -d 2",
               "net/fc1.bias (Parameter)\n"
               "`- net/fc1/MatMul-op1 (MatMul)\n"
               "   |- net/loop/A (Add), has 1 output\n"
               "   |- loss/Mean-op9 (Mean)\n"
               "   `- net/o\\x1b[31mdd (ReLU)\n");
}

static void a_cycle_ends(void **state)
{
    net_expect(*state, "inputs net/loop/B -r",
               "net/loop/B (Add)\n"
               "`- net/loop/A (Add)\n"
               "   |- net/fc1/MatMul-op1 (MatMul)\n"
               "   |  |- net/fc1.weight (Parameter)\n"
               "   |  `- net/fc1.bias (Parameter)\n"
               "   `- net/loop/B (Add), see above\n");
    net_expect_part(*state, "outputs net/loop/A -d 100", "net/loop/A (Add), see above\n");
    net_expect_part(*state, "inputs net/loop/B -d 101", "error: 101 is out of range");
}

static void control_edges_are_shown_when_asked_for(void **state)
{
    net_expect(*state, "inputs net/loop/A -c",
               "net/loop/A (Add)\n"
               "|- net/fc1/MatMul-op1 (MatMul), has 2 inputs\n"
               "|- net/loop/B (Add), has 1 input\n"
               "`- net/big (Parameter), control\n");
}

static void trees_in_json(void **state)
{
    cJSON *record = net_record(*state, "inputs net/loop/B -r");
    const cJSON *node = cJSON_GetArrayItem(cJSON_GetObjectItem(record, "tree"), 0);
    assert_string_equal(cJSON_GetObjectItem(node, "node")->valuestring, "net/loop/B");
    node = cJSON_GetArrayItem(cJSON_GetObjectItem(node, "inputs"), 0);
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(node, "inputs")), 2);
    node = cJSON_GetArrayItem(cJSON_GetObjectItem(node, "inputs"), 1);
    assert_true(cJSON_IsTrue(cJSON_GetObjectItem(node, "seen")));
    cJSON_Delete(record);
}

static void scopes_are_a_tree(void **state)
{
    net_expect(*state, "info scopes",
               "/  9 nodes\n"
               "|- net/  8 nodes, 5 directly\n"
               "|  |- fc1/  1 node\n"
               "|  `- loop/  2 nodes\n"
               "`- loss/  1 node\n");
    net_expect(*state, "info scopes net -d 0", "net/  8 nodes, 5 directly, 2 scopes below\n");
    net_expect(*state, "scope net/loop",
               "net/loop/  2 nodes\n"
               "  A  (Add) float32 (2, 3)\n"
               "  B  (Add) float32 (2, 3)\n");
    net_expect_part(*state, "scope", "net/fc1/  1 node\n");
    net_expect_part(*state, "scope nowhere", "error: there is no scope nowhere");
}

/* ---- nodes --------------------------------------------------------------------------------- */

static void node_selects(void **state)
{
    net_expect(*state, "node", "net/fc1/MatMul-op1 (MatMul), float32 (2, 3)\n");
    net_expect(*state, "node loss/Mean-op9", "loss/Mean-op9 (Mean), float64 ()\n");
    net_expect_part(*state, "print", "$1 = loss/Mean-op9:0\n");
    net_expect_part(*state, "node nothing", "error: there is no node 'nothing'");
}

static void info_node_tells_everything(void **state)
{
    net_expect(*state, "info node net/fc1/MatMul-op1",
               "net/fc1/MatMul-op1\n"
               "  type        MatMul, other, order 4, graph main\n"
               "  output :0   float32 (2, 3), 24 B\n"
               "  input       net/fc1.weight (Parameter)\n"
               "  input       net/fc1.bias (Parameter)\n"
               "  used by     net/loop/A (Add)\n"
               "  used by     loss/Mean-op9 (Mean)\n"
               "  used by     net/o\\x1b[31mdd (ReLU)\n"
               "  made at     " GRADB_TEST_SOURCE ":4\n");
    net_expect_part(*state, "ni net/loop/A", "  input       net/big (Parameter, control)\n");
}

static void info_graph_counts(void **state)
{
    net_expect_part(*state, "info graph", "9 nodes, 9 edges, 4 scopes in 2 levels");
    net_expect_part(*state, "info graph",
                    "Types:   Parameter 4, Add 2, MatMul 1, Mean 1, ReLU 1\n");
    net_expect(*state, "info params",
               "Kind       Type     Shape     Elements     Size  Parameter\n"
               "weight     float32  (2, 3)           6     24 B  net/fc1.weight\n"
               "weight     float32  (3,)             3     12 B  net/fc1.bias\n"
               "parameter  float32  (50, 30)     1,500  5.9 KiB  net/big\n"
               "parameter  float32  (0, 4)           0      0 B  net/empty\n"
               "2 weights: 9 elements, 36 B\n"
               "2 other parameters: 1,500 elements, 5.9 KiB\n");
    net_expect_part(*state, "info nodes net/fc1/MatMul-op1", "net/fc1/MatMul-op1  <= current\n");
}

static void info_needs_a_session_or_says_so(void **state)
{
    struct fake fake;
    fake_create(&fake, &(struct repl_options){.batch = true});
    int rc = 0;
    assert_non_null(strstr(fake_run(&fake, "info graph", &rc),
                           "the training process has not sent a graph yet"));
    assert_int_equal(rc, GD_ENODATA);
    assert_non_null(strstr(fake_run(&fake, "node", &rc), "no node is selected"));
    assert_non_null(strstr(fake_run(&fake, "print", &rc), "error: "));
    assert_non_null(strstr(fake_run(&fake, "info scopes", &rc), ""));
    assert_non_null(strstr(fake_run(&fake, "info ranks", &rc), " 4711 "));
    assert_int_equal(rc, GD_OK);
    fake_destroy(&fake);
}

static void info_of_the_session(void **state)
{
    struct net *net = *state;
    gd_session_on_scalar(net->fake.session, "loss", 0.5, 3);
    net_expect(net, "info scalars", "Name  Value  Step\nloss    0.5     3\n");
    net_expect_part(net, "info target", "  state              stopped (node)\n");
    net_expect_part(net, "info target", "  step               3, at net/fc1/MatMul-op1\n");
    net_expect_part(net, "info target", "  shared memory      no\n");
    net_expect_part(net, "info log", "The training program has written nothing.\n");
    fake_run(&net->fake, "step 2", NULL);
    net_expect_part(net, "info timing", "Last run: 500 ms, 3 steps\n");
}

static void a_slow_first_step_is_in_the_mean_alone(void **state)
{
    struct net *net = *state;
    static const double forward[] = {8, 1, 1, 2};
    for (int i = 0; i < 4; i++) {
        struct gd_step_times times = {.step = i + 1};
        for (int part = 0; part < GD_TIMES; part++) {
            times.part[part] = -1;
        }
        times.part[GD_TIME_FORWARD] = forward[i];
        times.part[GD_TIME_REST] = 1;
        times.part[GD_TIME_TOTAL] = forward[i] + 1;
        gd_session_on_step_times(net->fake.session, &times);
    }
    net_expect_part(net, "info timing",
                    "Per step               step 4             median    mean of 4 steps\n"
                    "  forward          2 s  66.7%         1 s  50.0%         3 s  75.0%\n"
                    "  rest             1 s  33.3%         1 s  50.0%         1 s  25.0%\n"
                    "  total            3 s 100.0%         2 s 100.0%         4 s 100.0%\n"
                    "First step (step 1): 9 s, 4.5 times the median\n"
                    "Spread: quartiles 2 s and 2.5 s, median absolute deviation 0 us (3 steps)\n"
                    "Slowest: step 4 3 s, step 2 2 s, step 3 2 s\n"
                    "Operators: not measured; type `set timing on`\n"
                    "No advice: 4 steps, 0 operators examined");
    struct gd_step_times slow = {.step = 5, .part = {[GD_TIME_TOTAL] = 1}};
    for (int i = 0; i < GD_TIME_STEPS; i++) {
        gd_session_on_step_times(net->fake.session, &slow);
    }
    net_expect_part(net, "info timing", "median of 1024  mean of 1,028 steps\n");
    net_expect_part(net, "info timing", "  total            1 s 100.0%         1 s 100.0%  ");
}

static void info_json(void **state)
{
    cJSON *record = net_record(*state, "info target");
    assert_int_equal(cJSON_GetObjectItem(record, "step")->valueint, 3);
    assert_string_equal(cJSON_GetObjectItem(record, "state")->valuestring, "stopped");
    assert_int_equal(cJSON_GetObjectItem(record, "pid")->valueint, 4711);
    cJSON_Delete(record);
    record = net_record(*state, "info params");
    const cJSON *param = cJSON_GetArrayItem(cJSON_GetObjectItem(record, "params"), 0);
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(param, "shape")), 2);
    assert_int_equal(
        cJSON_GetObjectItem(cJSON_GetObjectItem(record, "weights"), "elements")->valueint, 9);
    cJSON_Delete(record);
}

/* Every command in JSON mode writes one object with a type, whatever becomes of it. */
static void every_command_gives_one_record(void **state)
{
    static const char *const lines[] = {
        "info",          "info target", "info graph",   "info nodes",   "info node",
        "info scopes",   "info types",  "info params",  "info stack",   "info frame",
        "info source",   "info ranks",  "info display", "info scalars", "info timing",
        "info log",      "print",       "print prev",   "print diff",   "x",
        "whatis",        "stats",       "tensors",      "tensors -s",   "find nan",
        "search op",     "inputs",      "outputs -r",   "node",         "scope",
        "list",          "backtrace",   "frame",        "up",           "sources",
        "annotate none", "display",     "undisplay",    "info line x:1"};
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        cJSON *record = net_record(*state, lines[i]);
        assert_true(cJSON_IsString(cJSON_GetObjectItem(record, "type")));
        cJSON_Delete(record);
    }
}

/* ---- source -------------------------------------------------------------------------------- */

static void list_marks_the_line(void **state)
{
    net_expect(*state, "list",
               GRADB_TEST_SOURCE
               ":4, net/fc1/MatMul-op1\n"
               "       1  # A source file that a stack of the tests points into.\n"
               "       2  def network(x):\n"
               "       3          hidden = matmul(x, weight)  # a tab in front\n"
               "=>     4      return matmul(hidden, weight2)\n"
               "       5  \n"
               "       6  \n"
               "       7  def loss(x):\n"
               "       8      return mean(network(x))\n");
    net_expect_part(*state, "", "error: " GRADB_TEST_SOURCE " has no line 9\n");
    net_expect(*state, "list 2,3",
               "       2  def network(x):\n"
               "       3          hidden = matmul(x, weight)  # a tab in front\n");
    net_expect(*state, "list -",
               "       1  # A source file that a stack of the tests points into.\n");
    net_expect_part(*state, "list -", "error: the beginning of");
    net_expect_part(*state, "list 3,2", "error: lines 3,2 are not a range\n");
    net_expect_part(*state, "list " GRADB_TEST_SOURCE ":7", "=>     7  def loss(x):\n");
}

static void list_of_an_unreadable_file(void **state)
{
    net_expect_part(*state, "list loss/Mean-op9",
                    "error: cannot read /nowhere/loss.py: it is not on this host; copy it below "
                    "the current directory\n");
    net_expect_part(*state, "list net/loop/A",
                    "error: the training process sent no stack for net/loop/A\n");
    net_expect_part(*state, "list /tmp:1", "error: cannot read /tmp");
}

static void add_framed(struct net *net, const char *name, const char *file, const char *code)
{
    struct gd_frame frame = {.file = file, .line = 2, .function = "", .code = code};
    struct gd_node_desc desc = {
        .name = name, .type = "Mul", .frames = &frame, .frame_count = 1, .order = GD_NO_ORDER};
    gd_node_id node;

    assert_int_equal(gd_graph_add(net->fake.graph, &desc, &node, NULL), GD_OK);
    fake_graph_done(&net->fake);
}

/* A file that is not what ran: by the line that came with the stack, else by its time. */
static void list_warns_of_changed_files(void **state)
{
    static const char text[] = "def f(x):\n    y = x * 2\n    return y\n";
    char path[SCRATCH_PATH], line[256], expected[512];
    struct timespec later[2] = {{.tv_sec = time(NULL) + 3600}, {.tv_sec = time(NULL) + 3600}};
    int fd = scratch_file(path);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, sizeof(text) - 1), sizeof(text) - 1);
    add_framed(*state, "net/same", path, "    y = x * 2\n");
    add_framed(*state, "net/other", path, "y = x + 2");
    add_framed(*state, "net/unknown", path, "");
    snprintf(expected, sizeof(expected), "%s:2, net/unknown\n       1  def f(x):\n", path);
    net_expect_part(*state, "list net/unknown", expected);
    assert_int_equal(futimens(fd, later), 0);
    close(fd);
    snprintf(expected, sizeof(expected), "%s:2, net/same\n       1  def f(x):\n", path);
    net_expect_part(*state, "list net/same", expected);
    snprintf(line, sizeof(line), "list %s:3", path);
    snprintf(expected, sizeof(expected),
             "warning: %s is newer than this run: its lines may differ from those that ran\n"
             "       1  def f(x):\n",
             path);
    net_expect_part(*state, line, expected);
    net_expect(*state, "list 3,3", "=>     3      return y\n"); /* said once */
    snprintf(expected, sizeof(expected),
             "%s:2, net/other\nwarning: %s has changed: when it ran, line 2 was: y = x + 2\n", path,
             path);
    net_expect_part(*state, "list net/other", expected);
    unlink(path);
}

/* A gradient has the places of what makes it, a weight those of what uses it; each once. */
static void stack_of_a_value(void **state)
{
    struct net *net = *state;
    struct gd_node_desc desc = {
        .name = "late/w", .type = "Parameter", .kind = GD_NODE_WEIGHT, .order = GD_NO_ORDER};
    struct gd_edge edge[2] = {{.slot = 0}, {.slot = 0}};
    gd_node_id weight, gradient, between;

    assert_int_equal(gd_graph_add(net->fake.graph, &desc, &weight, NULL), GD_OK);
    desc = (struct gd_node_desc){.name = "late/w.grad", .type = "Gradient", .order = GD_NO_ORDER};
    desc.kind = GD_NODE_GRADIENT;
    assert_int_equal(gd_graph_add(net->fake.graph, &desc, &gradient, NULL), GD_OK);
    desc = (struct gd_node_desc){.name = "late/sum", .type = "Add", .order = GD_NO_ORDER};
    assert_int_equal(gd_graph_add(net->fake.graph, &desc, &between, NULL), GD_OK);
    net_expect_part(net, "bt late/w.grad",
                    "error: late/w has no gradient: no observed backward pass reached it "
                    "(`why late/w.grad` explains why)\n");
    net_expect_part(net, "list late/w.grad",
                    "error: late/w has no gradient: no observed backward pass");
    add_framed(net, "late/use", "/nowhere/m.py", "h = x * w");
    add_framed(net, "late/again", "/nowhere/m.py", "h = x * w");
    edge[0].node = weight;
    edge[1].node = gd_graph_lookup(net->fake.graph, "late/use", 8);
    assert_int_equal(gd_graph_connect(net->fake.graph, edge[1].node, edge, 1, NULL), GD_OK);
    assert_int_equal(gd_graph_connect(net->fake.graph, between, edge + 1, 1, NULL), GD_OK);
    edge[0].node = gd_graph_lookup(net->fake.graph, "late/again", 10);
    edge[1].node = between;
    assert_int_equal(gd_graph_connect(net->fake.graph, gradient, edge, 2, NULL), GD_OK);
    fake_graph_done(&net->fake);
    net_expect(net, "bt late/w.grad",
               "late/w.grad (Gradient) has no source location of its own. It is made by\n"
               "late/again (Mul)\n#0  /nowhere/m.py:2\n      h = x * w\n");
    net_expect(net, "bt late/w",
               "late/w (Parameter) has no source location of its own. It is used by\n"
               "late/use (Mul)\n#0  /nowhere/m.py:2\n      h = x * w\n");
    net_expect_part(net, "node late/w.grad", "late/w.grad (Gradient)");
    net_expect(
        net, "frame",
        "late/w.grad (Gradient) has no source location of its own. It is made by late/again (Mul)\n"
        "#0  /nowhere/m.py:2\n      h = x * w\n");
    net_expect_part(net, "up", "error: this is the outermost frame");
    net_expect_part(net, "list", "/nowhere/m.py:2, late/again\n");
    net_expect_part(net, "list late/w",
                    "It is used by late/use (Mul)\n/nowhere/m.py:2, late/use\n");
}

static void stack_and_frames(void **state)
{
    net_expect(*state, "backtrace",
               "net/fc1/MatMul-op1 (MatMul)\n#0  " GRADB_TEST_SOURCE
               ":4\n      return matmul(hidden, weight2)\n");
    net_expect_part(*state, "bt net/loop/A",
                    "error: the training process sent no stack for net/loop/A\n");
    net_expect_part(*state, "up", "error: this is the outermost frame");
    net_expect_part(*state, "down", "error: this is the innermost frame");
    net_expect_part(*state, "frame 1",
                    "error: there is no frame 1: net/fc1/MatMul-op1 has frames 0 to 0");
    /* Line by line: which file comes first depends on where this source tree lies. */
    net_expect_part(*state, "sources", "Nodes  First  Last  File\n");
    net_expect_part(*state, "sources", "    1     77    77  /nowhere/loss.py\n");
    net_expect_part(*state, "sources", "    1      4     4  " GRADB_TEST_SOURCE "\n");
    net_expect_part(*state, "annotate sample.txt",
                    "    1 |    4      return matmul(hidden, weight2)\n");
    net_expect_part(*state, "annotate other.py", "error: no node was created in other.py");
}

static void add_with_frames(struct net *net, const char *name, const struct gd_frame *frames,
                            uint32_t count)
{
    struct gd_node_desc desc = {.name = name,
                                .type = "MatMul",
                                .frames = frames,
                                .frame_count = count,
                                .order = GD_NO_ORDER};
    gd_node_id node;
    assert_int_equal(gd_graph_add(net->fake.graph, &desc, &node, NULL), GD_OK);
    fake_graph_done(&net->fake);
}

/* What the trainer says of a frame counts more than the name of its file. */
static void a_trainer_tells_what_is_shown(void **state)
{
    struct net *net = *state;
    static const struct gd_frame frames[] = {
        {.file = "/x/site-packages/torch.py", .line = 1, .library = true, .told = true},
        {.file = "/x/site-packages/bert.py", .line = 20, .function = "forward", .told = true},
        {.file = "/nowhere/train.py", .line = 30, .function = "main", .told = true},
    };
    add_with_frames(net, "net/told", frames, 3);
    net_expect(net, "bt net/told",
               "net/told (MatMul)\n"
               "#1  /x/site-packages/bert.py:20 in forward\n"
               "#2  /nowhere/train.py:30 in main\n"
               "(1 frame hidden: backtrace all)\n");
}

/* Four places, one of them in a package, and a title between them. */
static void frames_are_walked(void **state)
{
    struct net *net = *state;
    static const struct gd_frame frames[] = {
        {.file = "/nowhere/ops.py", .line = 10, .function = "matmul", .code = "return a @ b"},
        {.file = "/x/site-packages/nn.py", .line = 20, .function = "call", .code = "f(x)"},
        {.file = "", .function = "", .code = "Corresponding forward node:", .is_title = true},
        {.file = "/nowhere/model.py", .line = 30, .function = "forward", .code = "fc(x)"},
    };
    add_with_frames(net, "net/deep", frames, 4);
    net_expect(net, "bt net/deep",
               "net/deep (MatMul)\n"
               "#0  /nowhere/ops.py:10 in matmul\n"
               "      return a @ b\n"
               "    Corresponding forward node:\n"
               "#2  /nowhere/model.py:30 in forward\n"
               "      fc(x)\n"
               "(1 frame hidden: backtrace all)\n");
    net_expect_part(net, "bt net/deep all", "#1  /x/site-packages/nn.py:20 in call\n");
    net_expect_part(net, "bt net/deep 1", "(2 frames hidden: backtrace all)\n");
    fake_run(&net->fake, "node net/deep", NULL);
    net_expect_part(net, "frame", "#0  /nowhere/ops.py:10 in matmul\n");
    net_expect_part(net, "up 5", "#2  /nowhere/model.py:30 in forward\n");
    net_expect_part(net, "list",
                    "/nowhere/model.py:30, net/deep\n=>    30  fc(x)\nerror: cannot read");
    net_expect_part(net, "down", "#0  /nowhere/ops.py:10");
    net_expect_part(net, "info frame", "#0  /nowhere/ops.py:10");
    net_expect_part(net, "print net/deep", "error: ");
    fake_run(&net->fake, "step", NULL);
    fake_run(&net->fake, "node net/deep", NULL);
    net_expect_part(net, "frame", "#0  ");
}

/* Long lists stop somewhere and say how to go on. */
static void long_lists_are_limited(void **state)
{
    struct net *net = *state;
    static const struct gd_shape scalar = {.rank = 0};
    gd_node_id all[16];
    for (int i = 0; i < 300; i++) {
        char name[32];
        snprintf(name, sizeof(name), "many/s%03d/x", i);
        gd_node_id node = fake_node(&net->fake, name, "Tiny", GD_FLOAT32, &scalar, NULL, 0, NULL);
        all[i % 16] = node;
    }
    fake_node(&net->fake, "many/sum", "Sum", GD_FLOAT32, &scalar, all, 16, NULL);
    fake_graph_done(&net->fake);
    net_expect_part(net, "search tiny", "Nothing matches tiny.\n");
    net_expect_part(net, "search type:Tiny", "... 260 more (search type:Tiny -a)\n");
    net_expect_part(net, "info nodes many", "... 261 more (info nodes many -a)\n");
    net_expect_part(net, "tensors many", "... 261 more (tensors -a)\n");
    net_expect_part(net, "info scopes many", "... more than 200 lines: -a shows all");
    net_expect_part(net, "info scopes many -a", "s299/  1 node\n");
    net_expect_part(net, "info node many/sum", "... 4 more (inputs)\n");
    net_expect_part(net, "search type:Tiny -a", "many/s299/x\n");
}

/* At a narrow terminal names lose leading scopes, and what is left still finds the node. */
static void narrow_terminals_get_short_names(void **state)
{
    static const struct repl_options narrow = {.interactive = true, .width = 50};
    struct net net;
    net_create(&net, &narrow);
    net_expect(&net, "info nodes net/fc1/MatMul-op1",
               "Order  Type    Kind   Output          Node\n"
               "    4  MatMul  other  float32 (2, 3)  net/fc1/MatMul-op1  <= current\n");
    static const struct gd_shape matrix = {.rank = 2, .dim = {2, 3}};
    fake_node(&net.fake, "outer/inner/Sub-op77", "Sub", GD_FLOAT32, &matrix, NULL, 0, NULL);
    fake_graph_done(&net.fake);
    net_expect(&net, "search Sub-op77",
               "Order  Type  Kind   Output          Node\n"
               "    9  Sub   other  float32 (2, 3)  .../Sub-op77\n");
    net_expect(&net, "whatis .../Sub-op77", "type = float32 (2, 3), 6 elements, 24 B\n");
    net_destroy(&net);
}

/* A node with `count` outputs, and one for each that uses it. */
static void add_split(struct net *net, const char *name, uint32_t count)
{
    struct gd_output output[32];
    struct gd_node_desc split = {.name = name, .type = "Split", .outputs = output};
    gd_node_id node = GD_NO_NODE, user = GD_NO_NODE;

    assert_true(count <= 32);
    split.output_count = count;
    for (uint32_t i = 0; i < count; i++) {
        output[i] = (struct gd_output){.dtype = GD_FLOAT32, .shape = {.rank = 1, .dim = {2}}};
    }
    assert_ok(gd_graph_add(net->fake.graph, &split, &node, NULL));
    for (uint32_t i = 0; i < count; i++) {
        struct gd_edge edge = {.node = node, .slot = (uint16_t)i};
        char text[64];
        snprintf(text, sizeof(text), "%s/use%u", name, i);
        struct gd_node_desc use = {
            .name = text, .type = "Add", .outputs = output, .output_count = 1};
        assert_ok(gd_graph_add(net->fake.graph, &use, &user, NULL));
        assert_ok(gd_graph_connect(net->fake.graph, user, &edge, 1, NULL));
    }
}

/* The last line is of all slots that have none. */
static void a_picture_names_no_wrong_slot(void **state)
{
    struct net *net = *state;

    add_split(net, "some", 16);
    add_split(net, "many", 18);
    fake_graph_done(&net->fake);
    net_expect_part(net, "picture -tensors some", ":15|-> some/use15\n");
    net_expect_part(net, "picture -tensors many", ":14 |--> many/use14\n");
    net_expect_part(net, "picture -tensors many", ":...|-+> many/use15\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        NET_TEXT(search_by_name_type_and_line),
        NET_JSON(search_json),
        NET_TEXT(inputs_are_a_tree),
        NET_TEXT(a_cycle_ends),
        NET_TEXT(control_edges_are_shown_when_asked_for),
        NET_JSON(trees_in_json),
        NET_TEXT(scopes_are_a_tree),
        NET_TEXT(node_selects),
        NET_TEXT(info_node_tells_everything),
        NET_TEXT(info_graph_counts),
        cmocka_unit_test(info_needs_a_session_or_says_so),
        NET_TEXT(info_of_the_session),
        NET_TEXT(a_slow_first_step_is_in_the_mean_alone),
        NET_JSON(info_json),
        NET_JSON(every_command_gives_one_record),
        NET_TEXT(list_marks_the_line),
        NET_TEXT(list_of_an_unreadable_file),
        NET_TEXT(list_warns_of_changed_files),
        NET_TEXT(stack_of_a_value),
        NET_TEXT(stack_and_frames),
        NET_TEXT(a_trainer_tells_what_is_shown),
        NET_TEXT(frames_are_walked),
        cmocka_unit_test(narrow_terminals_get_short_names),
        NET_TEXT(long_lists_are_limited),
        NET_TEXT(a_picture_names_no_wrong_slot),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
