// SPDX-License-Identifier: GPL-3.0-or-later
/* Gradients that become small on their way back: where `why` says that they fall, and by what. */
#include "../../unit.h"
#include "why_bench.h"

#define NONE   GD_NO_NODE
#define LAYERS 6

/* w and x are read by the product of each layer; its gradient goes through an activation. */
struct net {
    gd_node_id loss, w, product[LAYERS], active[LAYERS];
};

static struct net make_net(struct bench *b, const char *type)
{
    gd_node_id before;
    struct net n;
    char name[64];

    n.w = bench_leaf(b, "net/fc.weight", "Parameter");
    before = n.loss =
        bench_node(b, "Gradients/loss", "LossGrad", bench_leaf(b, "sens", "Const"), NONE, NONE);
    for (int i = 0; i < LAYERS; i++) {
        snprintf(name, sizeof(name), "Gradients/product%d", i);
        before = n.product[i] = bench_node(b, name, "MatMul", before, n.w, NONE);
        snprintf(name, sizeof(name), "Gradients/active%d", i);
        before = n.active[i] = bench_node(b, name, type, before, NONE, NONE);
    }
    return n;
}

static void put_range(struct bench *b, gd_node_id node, double size)
{
    bench_value(b, node, bench_finite(-size, size), 3);
}

/* What a product and what an activation leaves of a gradient. */
static void fill_net(struct bench *b, const struct net *n, double product, double active)
{
    double size = 0.5;

    bench_stop(b, 3, NONE);
    put_range(b, n->loss, size);
    for (int i = 0; i < LAYERS; i++) {
        put_range(b, n->product[i], size *= product);
        put_range(b, n->active[i], size *= active);
    }
}

static void ask_small(struct bench *b, const struct net *n)
{
    bench_ask(b, n->active[LAYERS - 1], GD_BAD_SMALL);
}

static void each_takes_a_part(void **state)
{
    struct bench *b = *state;
    struct net n = make_net(b, "SigmoidGrad");

    fill_net(b, &n, 1, 0.2);
    ask_small(b, &n);
    assert_string_equal(b->why.rule, "vanishing");
    assert_contains(b->why.text,
                    "On its way back from Gradients/loss, through 13 operators, the gradient "
                    "falls from a mean magnitude of 0.5 to 3.2e-05. 6 of them are "
                    "SigmoidGrad: each leaves 0.2 of it on average");
    assert_contains(b->why.text, "at most 0.25: a long row of them leaves almost nothing");
    assert_null(strstr(b->why.text, "saturated"));
    assert_null(strstr(b->why.text, "MatMul"));
    assert_int_equal(bench_verdict(b, n.active[LAYERS - 1]), GD_WHY_BAD);
    assert_int_equal(bench_verdict(b, n.loss), GD_WHY_GOOD);
}

/* As many digits are lost by one as by all the others: it is the origin. */
static void one_stands_out(void **state)
{
    struct bench *b = *state;
    struct net n = make_net(b, "TanhGrad");

    fill_net(b, &n, 1, 0.9);
    for (int i = 2; i < LAYERS; i++) {
        put_range(b, n.active[i], 1e-9);
        put_range(b, n.product[i], i == 2 ? 0.4 : 1e-9);
    }
    ask_small(b, &n);
    bench_expect(
        b, n.active[2], "vanishing",
        "At Gradients/active2 (TanhGrad), it falls from 0.4 to 1e-09. The slope of tanh is 1 "
        "at its center; here most results are near -1 or 1: it is saturated.");
    assert_int_equal(bench_verdict(b, n.active[3]), GD_WHY_BAD);
    assert_int_equal(bench_verdict(b, n.product[2]), GD_WHY_GOOD);
}

static void a_relu_that_is_dead(void **state)
{
    struct bench *b = *state;
    struct net n = make_net(b, "ReluGrad");

    fill_net(b, &n, 1, 1);
    for (int i = 4; i < LAYERS; i++) {
        bench_value(b, n.active[i], bench_with(0, 0, 10, 0, 0, 0), 3);
        bench_value(b, n.product[i], bench_with(0, 0, i == 4 ? 0 : 10, 0, 0, 0), 3)
            ->stats.abs_mean = i == 4 ? 0.5 : 0;
    }
    ask_small(b, &n);
    bench_expect(b, n.active[4], "vanishing", "it falls from 0.5 to 0. There, all 10 elements get");
    assert_contains(b->why.text, "It is dead");
}

static void weights_that_are_small(void **state)
{
    struct bench *b = *state;
    struct net n = make_net(b, "TanhGrad");
    struct bench_value *w;

    fill_net(b, &n, 0.01, 1);
    w = bench_value(b, n.w, bench_finite(-0.01, 0.01), 3);
    w->shape = (struct gd_shape){.rank = 2, .dim = {2, 5}};
    w->stats.count = 11; /* not that of its own gradient */
    ask_small(b, &n);
    assert_contains(b->why.text, "6 of them are MatMul: each leaves 0.01 of it");
    assert_contains(b->why.text, "The root mean square of its weight net/fc.weight is 0.00953.");
}

static void what_lies_between_is_not_known(void **state)
{
    struct bench *b = *state;
    struct net n = make_net(b, "TanhGrad");

    bench_stop(b, 3, NONE);
    put_range(b, n.active[LAYERS - 1], 1e-10);
    ask_small(b, &n);
    bench_expect(b, NONE, "", "The gradients on the way to it are unknown in this step");
    put_range(b, n.loss, 0.5);
    bench_again(b);
    ask_small(b, &n);
    bench_expect(
        b, n.active[LAYERS - 1], "vanishing",
        "It falls from 0.5 to 1e-10 before Gradients/active5:0, at an operator that is unknown");
}

static void it_does_not_fall(void **state)
{
    struct bench *b = *state;
    struct net n = make_net(b, "TanhGrad");

    fill_net(b, &n, 1, 0.9);
    ask_small(b, &n);
    bench_expect(
        b, NONE, "",
        "The gradient does not fall on its way to Gradients/active5: 12 operators back, at "
        "Gradients/loss, its mean magnitude is 0.5; here it is 0.266.");
}

/* Where two gradients are added, the larger one is most of it. */
static void the_larger_of_two_is_followed(void **state)
{
    struct bench *b = *state;
    gd_node_id loss =
        bench_node(b, "Gradients/loss", "LossGrad", bench_leaf(b, "s", "Const"), NONE, NONE);
    gd_node_id left = bench_node(b, "Gradients/left", "TanhGrad", loss, NONE, NONE);
    gd_node_id right = bench_node(b, "Gradients/right", "MulGrad", loss, NONE, NONE);
    gd_node_id sum = bench_node(b, "Gradients/sum", "Add", left, right, NONE);

    bench_stop(b, 3, NONE);
    put_range(b, loss, 1);
    put_range(b, left, 1e-20);
    put_range(b, right, 1e-12);
    put_range(b, sum, 1e-12);
    bench_ask(b, sum, GD_BAD_SMALL);
    bench_expect(b, right, "vanishing", "At Gradients/right (MulGrad), it falls from 1 to 1e-12.");
}

/* Of many operators of different types none has a fifth of the fall: the greatest is told all the
 * same. A learning rate of 0 explains no gradient. */
static void as_many_types_as_operators(void **state)
{
    struct bench *b = *state;
    gd_node_id node = bench_node(b, "Gradients/loss", "LossGrad", bench_leaf(b, "s", "Const"), NONE,
                                 NONE),
               all[8];
    char name[32], type[32];
    double size = 1;

    for (int i = 0; i < 8; i++) {
        snprintf(name, sizeof(name), "Gradients/n%d", i);
        snprintf(type, sizeof(type), "Op%d", i);
        all[i] = node = bench_node(b, name, type, node, NONE, NONE);
    }
    b->facts = (struct gd_why_facts){.of_parameter = true,
                                     .parameter = "s",
                                     .has_gradient = true,
                                     .optimizer = "SGD",
                                     .optimizers = 1,
                                     .has_rate = true};
    bench_stop(b, 3, NONE);
    put_range(b, gd_graph_lookup(b->session->graph, "Gradients/loss", 14), size);
    for (int i = 0; i < 8; i++) {
        put_range(b, all[i], size *= i == 3 ? 0.05 : 0.1);
    }
    bench_ask(b, node, GD_BAD_SMALL);
    bench_expect(b, all[3], "vanishing", "At Gradients/n3 (Op3), it falls from 0.001 to 5e-05.");
}

static void what_is_no_gradient_is_asked_for_zeros(void **state)
{
    struct bench *b = *state;
    gd_node_id x = bench_leaf(b, "x", "Data");

    bench_stop(b, 3, NONE);
    bench_value(b, x, bench_with(0, 0, 10, 0, 0, 0), 3);
    bench_ask(b, x, GD_BAD_SMALL);
    assert_int_equal(b->why.bad, GD_BAD_ZERO);
    bench_expect(b, x, "bad-batch", "all 10 zero");
}

/* An activation behind a layer that reads x; values are spread evenly between the two bounds. */
struct active {
    gd_node_id x, w, sum, made;
};

static struct bench_value *put_matrix(struct bench *b, gd_node_id node, double size)
{
    struct bench_value *value = bench_value(b, node, bench_finite(-size, size), 3);

    value->shape = (struct gd_shape){.rank = 2, .dim = {2, 5}};
    value->stats.sum_sq = (double)value->stats.count * size * size;
    return value;
}

static struct active make_active(struct bench *b, const char *type, double x, double sum,
                                 double made)
{
    struct active a = {.x = bench_leaf(b, "x", "Data"),
                       .w = bench_leaf(b, "net/fc.weight", "Parameter")};
    gd_node_id bias = bench_leaf(b, "net/fc.bias", "Parameter");
    gd_node_id product = bench_node(b, "net/fc", "MatMul", a.x, a.w, NONE);

    a.sum = bench_node(b, "net/add", "BiasAdd", product, bias, NONE);
    a.made = bench_node(b, "net/act", type, a.sum, NONE, NONE);
    bench_stop(b, 3, NONE);
    put_matrix(b, a.x, x);
    put_matrix(b, a.w, 2);
    bench_value(b, bias, bench_finite(0, 0), 3);
    put_matrix(b, product, sum);
    put_matrix(b, a.sum, sum);
    put_matrix(b, a.made, made);
    bench_ask(b, a.made, GD_BAD_LARGE);
    return a;
}

static void an_activation_by_its_weight(void **state)
{
    struct bench *b = *state;
    struct active a = make_active(b, "Tanh", 1, 60, 0.99);

    bench_expect(b, a.w, "saturated", "the mean slope of its");
    assert_contains(b->why.text, "is 0.0199 of that at the center");
    assert_contains(b->why.text, "net/fc multiplies what it reads by about 60: its weight "
                                 "net/fc.weight has a root mean square of 2");
}

static void an_activation_by_its_data(void **state)
{
    struct bench *b = *state;
    struct active a = make_active(b, "Tanh", 200, 60, 0.99);

    bench_expect(b, a.x, "saturated", "What net/fc reads, x, has a root mean square of 200");
}

static void an_activation_that_is_not(void **state)
{
    struct bench *b = *state;

    make_active(b, "Tanh", 1, 60, 0.9); /* its mean slope is 0.19 */
    assert_string_equal(b->why.rule, "");
}

static const struct CMUnitTest tests[] = {
    BENCH_TEST(an_activation_by_its_weight),
    BENCH_TEST(an_activation_by_its_data),
    BENCH_TEST(an_activation_that_is_not),
    BENCH_TEST(each_takes_a_part),
    BENCH_TEST(one_stands_out),
    BENCH_TEST(a_relu_that_is_dead),
    BENCH_TEST(weights_that_are_small),
    BENCH_TEST(what_lies_between_is_not_known),
    BENCH_TEST(it_does_not_fall),
    BENCH_TEST(the_larger_of_two_is_followed),
    BENCH_TEST(as_many_types_as_operators),
    BENCH_TEST(what_is_no_gradient_is_asked_for_zeros),
};

RUN_TESTS()
