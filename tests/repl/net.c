// SPDX-License-Identifier: GPL-3.0-or-later
#include <cjson/cJSON.h>
#include <math.h>

#include "../unit.h"
#include "repl/net.h"

static void add_nodes(struct net *net)
{
    struct fake *fake = &net->fake;
    static const struct gd_shape matrix = {.rank = 2, .dim = {2, 3}};
    static const struct gd_shape row = {.rank = 1, .dim = {3}};
    static const struct gd_shape big = {.rank = 2, .dim = {NET_BIG_ROWS, NET_BIG_COLS}};
    static const struct gd_shape empty = {.rank = 2, .dim = {0, 4}};
    static const struct gd_shape scalar = {.rank = 0};
    const char *source = GRADB_TEST_SOURCE ":4";
    net->weight =
        fake_node(fake, "net/fc1.weight", "Parameter", GD_FLOAT32, &matrix, NULL, 0, NULL);
    net->bias = fake_node(fake, "net/fc1.bias", "Parameter", GD_FLOAT32, &row, NULL, 0, NULL);
    net->big = fake_node(fake, "net/big", "Parameter", GD_FLOAT32, &big, NULL, 0, NULL);
    net->empty = fake_node(fake, "net/empty", "Parameter", GD_FLOAT32, &empty, NULL, 0, NULL);
    net->matmul = fake_node(fake, "net/fc1/MatMul-op1", "MatMul", GD_FLOAT32, &matrix,
                            (gd_node_id[]){net->weight, net->bias}, 2, source);
    net->loop_a = fake_node(fake, "net/loop/A", "Add", GD_FLOAT32, &matrix,
                            (gd_node_id[]){net->matmul}, 1, NULL);
    net->loop_b = fake_node(fake, "net/loop/B", "Add", GD_FLOAT32, &matrix,
                            (gd_node_id[]){net->loop_a}, 1, NULL);
    net->loss = fake_node(fake, "loss/Mean-op9", "Mean", GD_FLOAT64, &scalar,
                          (gd_node_id[]){net->loop_b, net->matmul}, 2, "/nowhere/loss.py:77");
    net->odd = fake_node(fake, "net/o\033[31mdd", "ReLU", GD_INT32, &matrix,
                         (gd_node_id[]){net->matmul}, 1, NULL);
    struct gd_edge cycle[] = {
        {.node = net->matmul}, {.node = net->loop_b}, {.node = net->big, .control = true}};
    assert_ok(gd_graph_connect(fake->graph, net->loop_a, cycle, 3, NULL));
    fake_graph_done(fake);
}

static void set_values(struct net *net)
{
    struct fake *fake = &net->fake;
    static const struct gd_shape matrix = {.rank = 2, .dim = {2, 3}};
    static const struct gd_shape big = {.rank = 2, .dim = {NET_BIG_ROWS, NET_BIG_COLS}};
    static const struct gd_shape empty = {.rank = 2, .dim = {0, 4}};
    static const struct gd_shape scalar = {.rank = 0};
    const float weight[] = {1, -2.5f, NAN, INFINITY, 0, 4};
    const float now[] = {1, 2, 3, 4, 5, 6};
    const float before[] = {1, 2, 3, 4, 5, 5.5f};
    const int32_t ints[] = {1, -2, 3, 4, 5, 255};
    const double loss = 2.25;
    float numbers[NET_BIG_ROWS * NET_BIG_COLS];
    for (int i = 0; i < NET_BIG_ROWS * NET_BIG_COLS; i++) {
        numbers[i] = (float)i;
    }
    fake_set(fake, net->weight, 0, GD_CURRENT, GD_FLOAT32, &matrix, weight);
    fake_set(fake, net->matmul, 0, GD_CURRENT, GD_FLOAT32, &matrix, now);
    fake_set(fake, net->matmul, 0, GD_PREVIOUS, GD_FLOAT32, &matrix, before);
    fake_set(fake, net->big, 0, GD_CURRENT, GD_FLOAT32, &big, numbers);
    fake_set(fake, net->empty, 0, GD_CURRENT, GD_FLOAT32, &empty, numbers);
    fake_set(fake, net->loss, 0, GD_CURRENT, GD_FLOAT64, &scalar, &loss);
    fake_set(fake, net->odd, 0, GD_CURRENT, GD_INT32, &matrix, ints);
}

void net_create(struct net *net, const struct repl_options *options)
{
    fake_create(&net->fake, options);
    add_nodes(net);
    set_values(net);
    fake_stop(&net->fake, 3, net->matmul);
}

void net_destroy(struct net *net)
{
    fake_destroy(&net->fake);
}

int net_setup(void **state, const struct repl_options *options)
{
    struct net *net = malloc(sizeof(*net));
    assert_non_null(net);
    net_create(net, options);
    *state = net;
    return 0;
}

int net_setup_text(void **state)
{
    return net_setup(state, &(struct repl_options){.batch = true});
}

int net_setup_json(void **state)
{
    return net_setup(state, &(struct repl_options){.batch = true, .json = true});
}

int net_teardown(void **state)
{
    net_destroy(*state);
    free(*state);
    return 0;
}

void net_expect(struct net *net, const char *line, const char *output)
{
    net_expect_rc(net, line, GD_OK, output);
}

void net_expect_rc(struct net *net, const char *line, int rc, const char *output)
{
    int result = 0;
    const char *got = fake_run(&net->fake, line, &result);
    assert_string_equal(got, output);
    assert_int_equal(result, rc);
}

void net_expect_part(struct net *net, const char *line, const char *part)
{
    const char *got = fake_run(&net->fake, line, NULL);
    if (!strstr(got, part)) {
        fail_msg("%s: \"%s\" is not in: %s", line, part, got);
    }
}

cJSON *net_record(struct net *net, const char *line)
{
    const char *got = fake_run(&net->fake, line, NULL);
    cJSON *record = cJSON_Parse(got);
    if (!record) {
        fail_msg("%s: no JSON: %s", line, got);
    }
    return record;
}
