// SPDX-License-Identifier: GPL-3.0-or-later
/* What `why` says of a loss by its past, and of gradients by what the program tells and by algebra.
 */
#include "../../unit.h"
#include "why_net.h"

static void tell_losses(struct bench *b, const double *losses, int count)
{
    for (int i = 0; i < count; i++) {
        gd_session_on_scalar(b->session, "loss", losses[i], i + 1);
    }
    b->facts = (struct gd_why_facts){.scalar = "loss"};
    bench_stop(b, count, NONE);
}

static void loss_that_grew(void **state)
{
    struct bench *b = *state;
    struct net n = make_net(b, "mul");

    tell_losses(b, (double[]){2, 1, 4, 40, 800, 30000}, 6);
    bench_value(b, n.loss, bench_finite(30000, 30000), 6);
    bench_ask(b, n.loss, GD_BAD_LARGE);
    bench_expect(b, NONE, "diverging",
                 "The loss diverges: from 1 at step 2 to 3e+04 at step 6, 3e+04 "
                 "times, and it rose in each of the last 4 steps.");
    assert_int_equal(bench_verdict(b, n.loss), GD_WHY_BAD);
}

static void loss_that_is_noisy(void **state)
{
    struct bench *b = *state;
    struct net n = make_net(b, "mul");

    tell_losses(b, (double[]){2, 0.5, 0.001, 0.8, 0.002, 1.5}, 6);
    bench_ask(b, n.loss, GD_BAD_LARGE);
    bench_expect(b, NONE, "",
                 "The loss was 2 at step 1, 0.001 at its lowest (step 3), and is 1.5 at "
                 "step 6.");
    assert_int_equal(bench_verdict(b, n.loss), GD_WHY_UNKNOWN);
}

static void gradients_that_are_gone(void **state)
{
    struct bench *b = *state;
    struct net n = make_net(b, "mul");

    tell_losses(b, (double[]){2, 2}, 2);
    snprintf(b->facts.lost, sizeof(b->facts.lost), "w");
    snprintf(b->facts.lost_of, sizeof(b->facts.lost_of), "SGD");
    bench_ask(b, n.loss, GD_BAD_LARGE);
    bench_expect(b, NONE, "cleared-before-step", "The gradients are gone when SGD steps");
}

static void result_that_leaves_the_graph(void **state)
{
    struct bench *b = *state;
    struct net n = make_net(b, "mul");

    assert_ok(gd_graph_connect(b->session->graph, n.out, &(struct gd_edge){.node = n.x}, 1, NULL));
    tell_losses(b, (double[]){2, 2}, 2);
    b->facts.none = (struct gd_why_gradients){.count = 1, .name = {"w"}, .named = 1};
    b->facts.held = 2;
    snprintf(b->facts.main, sizeof(b->facts.main), "SGD");
    b->facts.exits[0] = (struct gd_why_exit){.node = "cut", .by = "numpy", .line = "train.py:7"};
    b->facts.exit_count = 1;
    bench_ask(b, n.loss, GD_BAD_LARGE);
    bench_expect(b, n.cut, "cut-off",
                 "the values of cut (mul) leave the graph through numpy() at train.py:7");
    assert_contains(b->why.text, "Of the 2 parameters that SGD holds, 1 has no gradient: w.");
}

/* x, w, bias -> linear -> batch_norm -> out -> loss; what the normalisation is told. */
static void ask_of_bias(void **state, const char *training)
{
    struct bench *b = *state;
    struct gd_shape matrix = {.rank = 2, .dim = {6, 4}}, square = {.rank = 2, .dim = {4, 4}};
    gd_node_id first = bench_leaf(b, "first", "Const");
    gd_node_id w = add_op(
        b,
        &(struct about){.name = "w", .type = "Parameter", .kind = GD_NODE_WEIGHT, .shape = square});
    gd_node_id bias = add_op(b, &(struct about){.name = "bias",
                                                .type = "Parameter",
                                                .kind = GD_NODE_WEIGHT,
                                                .shape = {.rank = 1, .dim = {4}}});
    gd_node_id x = add_op(
        b,
        &(struct about){.name = "x", .type = "Input", .kind = GD_NODE_ACTIVATION, .shape = matrix});
    struct about linear = {.name = "linear",
                           .type = "linear",
                           .phase = "forward",
                           .kind = GD_NODE_ACTIVATION,
                           .shape = matrix,
                           .input = {x, w, bias}};
    struct about norm = {.name = "norm",
                         .type = "batch_norm",
                         .phase = "forward",
                         .kind = GD_NODE_ACTIVATION,
                         .key = "training",
                         .value = training,
                         .shape = matrix,
                         .input = {add_op(b, &linear)}};
    gd_node_id made = add_forward(b, "loss", "mean", add_op(b, &norm), 0);
    gd_node_id gradient;

    (void)first;
    add_backward(b, "backward/norm", "norm", add_backward(b, "backward/loss", "loss", 0));
    gradient = add_backward(b, "backward/linear", "linear",
                            gd_graph_lookup(b->session->graph, "backward/norm", 13));
    b->facts = (struct gd_why_facts){.of_parameter = true,
                                     .has_gradient = true,
                                     .parameter = "bias",
                                     .optimizer = "SGD",
                                     .optimizers = 1};
    bench_stop(b, 3, NONE);
    bench_value(b, gradient, bench_finite(-1e-9, 1e-9), 3);
    assert_int_not_equal(made, NONE);
    bench_ask(b, gradient, GD_BAD_SMALL);
}

static void bias_before_a_normalisation(void **state)
{
    ask_of_bias(state, "True");
    bench_expect(*state, NONE, "zero-by-algebra", "norm (batch_norm) removes any common shift");
}

static void bias_before_a_fixed_normalisation(void **state)
{
    ask_of_bias(state, "False");
    assert_string_not_equal(((struct bench *)*state)->why.rule, "zero-by-algebra");
}

static const struct CMUnitTest tests[] = {
    BENCH_TEST(loss_that_grew),
    BENCH_TEST(loss_that_is_noisy),
    BENCH_TEST(gradients_that_are_gone),
    BENCH_TEST(result_that_leaves_the_graph),
    BENCH_TEST(bias_before_a_normalisation),
    BENCH_TEST(bias_before_a_fixed_normalisation),
};

RUN_TESTS()
