// SPDX-License-Identifier: GPL-3.0-or-later
/* Mistakes of a training as `why` finds them in its graph and in what its program tells. */
#include <math.h>

#include "../../unit.h"
#include "engine/history/history.h"
#include "why_net.h"

/* ---- what gets no update --------------------------------------------------------------------- */

static void where_the_way_to_the_loss_ends(void **state)
{
    struct bench *b = *state;
    struct net n = make_net(b, "detach");

    b->facts.has_gradient = false;
    bench_stop(b, 3, NONE);
    bench_ask(b, n.gradient, GD_BAD_ZERO);
    bench_expect(b, n.cut, "detached", "No gradient reaches w: cut (detach) cuts it off");
    assert_contains(b->why.text, "ends at out (linear), which reads it");
    assert_int_equal(gd_why_loss(b->session->graph, NULL), n.loss);
    bench_ask(b, n.w, GD_BAD_LARGE); /* whatever is asked of it, the operator is the origin */
    bench_expect(b, n.cut, "detached", "No gradient reaches w: cut (detach) cuts it off");
}

static void what_else_cuts(void **state)
{
    struct bench *b = *state;
    struct net n = make_net(b, "mul");

    b->facts.has_gradient = false;
    bench_stop(b, 3, NONE);
    bench_ask(b, n.gradient, GD_BAD_ZERO);
    bench_expect(b, n.cut, "cut-off", "cut (mul) carries no gradient; the graph does not show why");
}

/* The first operator that ran under no_grad() is named, not the last one that was cut off by it. */
static void gradients_switched_off(void **state)
{
    struct bench *b = *state;
    struct net n = make_net(b, "mul");
    struct about about = {.name = "table",
                          .type = "linear",
                          .phase = "forward",
                          .key = "grad",
                          .value = "off",
                          .kind = GD_NODE_ACTIVATION,
                          .input = {add_weight(b, "u")}};
    gd_node_id table = add_op(b, &about), silu = add_forward(b, "silu", "silu", table, 0);

    assert_ok(gd_graph_connect(b->session->graph, n.out,
                               (struct gd_edge[]){{.node = n.cut}, {.node = silu}}, 2, NULL));
    b->facts.has_gradient = false;
    snprintf(b->facts.parameter, sizeof(b->facts.parameter), "u");
    bench_stop(b, 3, NONE);
    bench_ask(b, n.gradient, GD_BAD_ZERO);
    bench_expect(b, table, "no-grad",
                 "No gradient reaches u: table (linear) ran with gradients disabled");
    assert_contains(b->why.text, "The backward pass ends at out (linear).");
}

/* Said of the loss besides: the weight is one of a model whose others are updated. */
static void weights_that_nothing_reaches(void **state)
{
    struct bench *b = *state;
    struct net n = make_net(b, "detach");
    gd_node_id v = gd_graph_lookup(b->session->graph, "v", 1);
    gd_node_id a = add_weight(b, "net/a"), c = add_weight(b, "net/c"),
               other = add_weight(b, "other/a");
    gd_node_id written = add_weight(b, "net/b");

    add_op(b, &(struct about){.name = "optimizer/SGD/net/b",
                              .type = "SGD",
                              .phase = "optimizer",
                              .kind = GD_NODE_OTHER,
                              .input = {written, v}});
    add_forward(b, "h", "mul", add_forward(b, "g", "mul", a, c), other);
    assert_ok(gd_graph_connect(b->session->graph, n.linear,
                               (struct gd_edge[]){{.node = a}, {.node = c}, {.node = other}}, 3,
                               NULL));
    b->facts = (struct gd_why_facts){0};
    bench_stop(b, 3, NONE);
    bench_value(b, n.loss, bench_finite(4, 4), 3);
    bench_ask(b, n.loss, GD_BAD_LARGE);
    bench_expect(b, NONE, "", "No gradient reaches net/a and 1 more weight: `why net/a.grad`");
    bench_ask(b, n.relu, GD_BAD_LARGE); /* another value is none of its business */
    assert_null(strstr(b->why.text, "No gradient reaches"));
}

static int looked; /* how often a node was looked at */

bool __wrap_gd_graph_node(const struct gd_graph *graph, gd_node_id node, struct gd_node_info *ret);
bool __real_gd_graph_node(const struct gd_graph *graph, gd_node_id node, struct gd_node_info *ret);

bool __wrap_gd_graph_node(const struct gd_graph *graph, gd_node_id node, struct gd_node_info *ret)
{
    looked++;
    return __real_gd_graph_node(graph, node, ret);
}

/* Not each of the weights that have no gradient has the whole graph looked at anew. */
static void many_weights_that_nothing_reaches(void **state)
{
    struct bench *b = *state;
    struct net n = make_net(b, "detach");
    gd_node_id v = gd_graph_lookup(b->session->graph, "v", 1), written = add_weight(b, "net/z");
    char name[32];
    enum { MANY = 150 };

    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof(name), "net/w%d", i);
        gd_node_id one = add_weight(b, name);
        snprintf(name, sizeof(name), "h%d", i);
        add_op(b, &(struct about){.name = name,
                                  .type = "linear",
                                  .phase = "forward",
                                  .key = "grad",
                                  .value = "off",
                                  .kind = GD_NODE_ACTIVATION,
                                  .input = {one}});
    }
    add_op(b, &(struct about){.name = "optimizer/SGD/net/z",
                              .type = "SGD",
                              .phase = "optimizer",
                              .kind = GD_NODE_OTHER,
                              .input = {written, v}});
    b->facts = (struct gd_why_facts){0};
    bench_stop(b, 3, NONE);
    bench_value(b, n.loss, bench_finite(4, 4), 3);
    looked = 0;
    bench_ask(b, n.loss, GD_BAD_LARGE);
    bench_expect(b, NONE, "", "No gradient reaches net/w0 and 149 more weights");
    assert_in_range(looked, 1, MANY * MANY / 2);
}

/* What the loss is given was made by `type`, over that axis; `loss` says which loss. */
static void ask_loss(void **state, const char *loss, const char *type, const char *axis)
{
    struct bench *b = *state;
    struct gd_shape scores = {.rank = 2, .dim = {16, 4}}, labels = {.rank = 1, .dim = {16}};
    struct about made = {.name = "made",
                         .type = type,
                         .phase = "forward",
                         .key = axis ? "dim" : NULL,
                         .value = axis,
                         .kind = GD_NODE_ACTIVATION,
                         .shape = scores};
    struct about end = {.name = "loss",
                        .type = loss,
                        .phase = "forward",
                        .kind = GD_NODE_ACTIVATION,
                        .shape = {.rank = 1, .dim = {1}}};
    gd_node_id view;

    bench_leaf(b, "first", "Const");
    made.input[0] = add_weight(b, "x");
    view = add_forward(b, "view", "view", add_op(b, &made), 0);
    end.input[0] =
        strcmp(loss, "nll_loss") == 0 && axis ? add_forward(b, "log", "log", view, 0) : view;
    end.input[1] = add_op(b, &(struct about){.name = "labels", .type = "Input", .shape = labels});
    add_backward(b, "backward/loss", "loss", add_op(b, &end));
    bench_stop(b, 3, NONE);
    bench_ask(b, gd_why_loss(b->session->graph, NULL), GD_BAD_LARGE);
}

static void expect_loss(void **state, const char *rule, const char *text)
{
    struct bench *b = *state;

    bench_expect(b, rule[0] ? gd_graph_lookup(b->session->graph, "made", 4) : NONE, rule, text);
}

static void softmax_over_the_batch(void **state)
{
    ask_loss(state, "nll_loss", "softmax", "0");
    expect_loss(state, "softmax-axis",
                "made (softmax) is computed over axis 0, which is the batch: the 16");
}

/* One of that shape and axis, which `in_between` hands to a loss of two axes. */
static void ask_long_loss(void **state, const char *axis, const char *in_between)
{
    struct bench *b = *state;
    struct about end = {.name = "loss",
                        .type = "nll_loss",
                        .phase = "forward",
                        .kind = GD_NODE_ACTIVATION,
                        .shape = {.rank = 1, .dim = {1}}};
    struct about made = {.name = "made",
                         .type = "log_softmax",
                         .phase = "forward",
                         .key = "dim",
                         .value = axis,
                         .kind = GD_NODE_ACTIVATION,
                         .shape = {.rank = 3, .dim = {8, 2, 4}}};
    struct about flat = {.name = "flat",
                         .type = in_between,
                         .phase = "forward",
                         .kind = GD_NODE_ACTIVATION,
                         .shape = {.rank = 2, .dim = {16, 4}}};

    bench_leaf(b, "first", "Const");
    made.input[0] = add_weight(b, "x");
    flat.input[0] = add_op(b, &made);
    end.input[0] = add_op(b, &flat);
    end.input[1] = bench_leaf(b, "labels", "Input");
    add_backward(b, "backward/loss", "loss", add_op(b, &end));
    bench_stop(b, 3, NONE);
    bench_ask(b, gd_why_loss(b->session->graph, NULL), GD_BAD_LARGE);
}

static void softmax_over_positions(void **state)
{
    ask_long_loss(state, "1", "view");
    expect_loss(
        state, "softmax-axis",
        "made (log_softmax) is computed over axis 1 of (8, 2, 4): the probabilities that a label "
        "picks from do not add up to 1. The 4 classes of loss (nll_loss) are along axis 2.");
}

static void softmax_over_the_last_axis(void **state)
{
    ask_long_loss(state, "-1", "view");
    expect_loss(state, "", "Nothing upstream");
}

static void softmax_that_is_turned(void **state) /* which axis is which is not known */
{
    ask_long_loss(state, "1", "permute");
    expect_loss(state, "", "Nothing upstream");
}

/* Weights of attention over that axis, `length` of them for each of 5 sums. They are the left or
 * the right factor. */
static void ask_attention(void **state, const char *axis, int64_t length, bool left)
{
    struct bench *b = *state;
    struct about made = {.name = "made",
                         .type = "softmax",
                         .phase = "forward",
                         .key = "dim",
                         .value = axis,
                         .kind = GD_NODE_ACTIVATION,
                         .shape = {.rank = 3, .dim = {2, 5, length}}};
    gd_node_id x, dropped;

    bench_leaf(b, "first", "Const");
    x = made.input[0] = add_weight(b, "x");
    dropped = add_forward(b, "dropout", "dropout", add_op(b, &made), 0);
    struct about end = {
        .name = "loss",
        .type = "sum",
        .phase = "forward",
        .kind = GD_NODE_ACTIVATION,
        .input = {add_forward(b, "product", "matmul", left ? dropped : x, left ? x : dropped)},
        .shape = {.rank = 1, .dim = {1}}};
    add_backward(b, "backward/loss", "loss", add_op(b, &end));
    bench_stop(b, 3, NONE);
    bench_ask(b, gd_why_loss(b->session->graph, NULL), GD_BAD_LARGE);
}

static void attention_over_columns(void **state)
{
    ask_attention(state, "-2", 5, true);
    expect_loss(
        state, "softmax-axis",
        "made (softmax) is computed over axis -2 of (2, 5, 5), but product (matmul), which takes "
        "its rows as weights, sums over the last axis");
}

static void attention_over_rows(void **state)
{
    ask_attention(state, "-1", 5, true);
    expect_loss(state, "", "Nothing upstream");
}

static void columns_of_no_square(void **state) /* elements that are shared out */
{
    ask_attention(state, "1", 7, true);
    expect_loss(state, "", "Nothing upstream");
}

static void columns_that_are_summed(void **state)
{
    ask_attention(state, "1", 5, false);
    expect_loss(state, "", "Nothing upstream");
}

static void softmax_over_the_classes(void **state)
{
    ask_loss(state, "nll_loss", "softmax", "1");
    expect_loss(state, "", "Nothing upstream");
}

static void softmax_before_cross_entropy(void **state)
{
    ask_loss(state, "cross_entropy", "softmax", "-1");
    expect_loss(state, "normalised-twice",
                "softmax is applied twice: loss (cross_entropy) applies it");
}

static void log_softmax_before_cross_entropy(void **state) /* does no harm */
{
    ask_loss(state, "cross_entropy", "log_softmax", "-1");
    expect_loss(state, "", "Nothing upstream");
}

static void sigmoid_before_its_loss(void **state)
{
    ask_loss(state, "binary_cross_entropy_with_logits", "sigmoid", NULL);
    expect_loss(state, "normalised-twice", "sigmoid is applied twice");
}

static void probabilities_without_logarithm(void **state)
{
    ask_loss(state, "nll_loss", "sigmoid", NULL);
    expect_loss(state, "no-logarithm", "loss (nll_loss) expects log-probabilities");
}

static void what_leads_nowhere(void **state)
{
    struct bench *b = *state;
    struct net n = make_net(b, "mul");
    gd_node_id unused = add_weight(b, "unused"), side = add_weight(b, "side");
    gd_node_id last = add_forward(b, "norm", "norm", add_forward(b, "square", "pow", side, 0), 0);

    b->facts.has_gradient = false;
    bench_stop(b, 3, NONE);
    bench_value(b, unused, bench_finite(-1, 1), 3);
    bench_value(b, side, bench_finite(-1, 1), 3);
    snprintf(b->facts.parameter, sizeof(b->facts.parameter), "unused");
    bench_ask(b, unused, GD_BAD_ZERO);
    bench_expect(b, unused, "unused", "No operator reads unused");
    snprintf(b->facts.parameter, sizeof(b->facts.parameter), "side");
    bench_ask(b, side, GD_BAD_ZERO);
    bench_expect(b, last, "no-path", "does not reach the loss");
    /* one that is reached has no gradient for another reason: nothing is said of a way */
    snprintf(b->facts.parameter, sizeof(b->facts.parameter), "v");
    bench_ask(b, n.gradient, GD_BAD_ZERO);
    assert_string_equal(b->why.rule, "");
}

static void frozen_forgotten_and_standing(void **state)
{
    struct bench *b = *state;
    struct net n = make_net(b, "mul");

    bench_stop(b, 3, NONE);
    bench_value(b, n.w, bench_finite(-1, 1), 3);
    b->facts.rate = 0;
    bench_ask(b, n.w, GD_BAD_ZERO);
    bench_expect(b, n.w, "learning-rate", "The learning rate of SGD for w is 0.");
    b->facts.optimizer[0] = '\0';
    bench_ask(b, n.w, GD_BAD_ZERO);
    bench_expect(b, n.w, "not-trained", "no optimizer holds it");
    b->facts.frozen = true;
    bench_ask(b, n.w, GD_BAD_ZERO);
    bench_expect(b, n.w, "frozen", "requires_grad is False");
    b->facts = (struct gd_why_facts){0};
    bench_ask(b, n.w, GD_BAD_ZERO);
    bench_expect(b, NONE, "", "w:0 is not all zero");
}

/* ---- what is too large ----------------------------------------------------------------------- */

static void gradients_that_nobody_sets_back(void **state)
{
    struct bench *b = *state;
    struct net n = make_net(b, "mul");
    gd_node_id step = add_op(b, &(struct about){.name = "optimizer/SGD/w",
                                                .type = "SGD",
                                                .phase = "optimizer",
                                                .kind = GD_NODE_OTHER,
                                                .input = {n.w, n.gradient}});

    b->facts.piled_up_since = 2;
    snprintf(b->facts.piled_up_in, sizeof(b->facts.piled_up_in), "w");
    bench_stop(b, 3, NONE);
    bench_value(b, n.gradient, bench_finite(-1, 1), 3);
    bench_ask(b, n.gradient, GD_BAD_LARGE);
    bench_expect(b, step, "not-set-back",
                 "The gradients are never zeroed: the backward pass of step 2");
    snprintf(b->facts.piled_up_by, sizeof(b->facts.piled_up_by), "Adam_1");
    bench_ask(b, n.gradient, GD_BAD_LARGE);
    bench_expect(b, step, "not-set-back",
                 "The gradients of Adam_1 are never zeroed: the backward pass");
}

static void ranks_that_part(void **state)
{
    struct bench *b = *state;
    struct net n = make_net(b, "mul");

    bench_stop(b, 3, NONE);
    bench_value(b, n.w, bench_finite(-1, 1), 3);
    b->facts.apart = true;
    b->facts.apart_rank = 2;
    b->facts.apart_gradient = GD_WHY_DIFFERS;
    bench_ask(b, n.w, GD_BAD_LARGE);
    bench_expect(b, n.w, "ranks-apart", "rank 2 is the first that differs, and neither is w.grad:");
    b->facts.apart_gradient = GD_WHY_SAME;
    bench_ask(b, n.w, GD_BAD_LARGE);
    bench_expect(b, n.w, "ranks-apart",
                 "though w.grad is: either it already differed before this step");
    b->facts.apart_gradient = GD_WHY_NOT_KNOWN;
    bench_ask(b, n.w, GD_BAD_LARGE);
    bench_expect(b, n.w, "ranks-apart", "Its gradient is no longer known.");
}

static void each_against_each(void **state)
{
    struct bench *b = *state;
    struct gd_shape row = {.rank = 1, .dim = {7}}, column = {.rank = 2, .dim = {7, 1}};
    struct gd_shape square = {.rank = 2, .dim = {7, 7}};
    struct about about = {
        .name = "a", .type = "linear", .phase = "forward", .kind = GD_NODE_ACTIVATION};
    gd_node_id a, t, sub;

    bench_leaf(b, "first", "Const");
    about.shape = row;
    a = add_op(b, &about);
    about.name = "t";
    about.shape = column;
    t = add_op(b, &about);
    sub = add_op(b, &(struct about){.name = "sub",
                                    .type = "sub",
                                    .phase = "forward",
                                    .kind = GD_NODE_ACTIVATION,
                                    .shape = square,
                                    .input = {a, t}});
    bench_stop(b, 1, NONE);
    bench_value(b, sub, bench_finite(-1, 1), 1);
    bench_ask(b, sub, GD_BAD_LARGE); /* of a mask, perhaps: no gradient went through it */
    assert_string_equal(b->why.rule, "");
    add_backward(b, "backward/sub", "sub", 0);
    bench_stop(b, 1, NONE);
    bench_ask(b, sub, GD_BAD_LARGE);
    bench_expect(b, sub, "broadcast", "its inputs are (7,) and (7, 1), which broadcast to 7 x 7");
}

/* The norm of a value of step 1, as a watchpoint recorded it. */
static void record_norm(struct bench *b, gd_node_id node, double norm)
{
    struct gd_stats stats = bench_finite(-1, 1);

    stats.sum_sq = norm * norm;
    bench_record(b, node, stats, 1);
}

#define TIMES 8

/* h = W h, eight times; the gradient is `factor` times as large from one to the one before. */
static gd_node_id make_chain(struct bench *b, double factor)
{
    gd_node_id made[TIMES], h, w, gradient = 0;
    char name[96], of[64];

    bench_open_history(b);
    bench_leaf(b, "first", "Const");
    h = bench_leaf(b, "h", "Input");
    w = add_op(b, &(struct about){.name = "cell/w",
                                  .type = "Parameter",
                                  .kind = GD_NODE_WEIGHT,
                                  .shape = {.rank = 2, .dim = {10, 10}}});
    for (int i = 0; i < TIMES; i++) {
        snprintf(name, sizeof(name), i ? "cell/linear_%d" : "cell/linear", i);
        h = made[i] = add_forward(b, name, "linear", h, w);
    }
    for (int i = TIMES; i-- > 0;) {
        snprintf(of, sizeof(of), i ? "cell/linear_%d" : "cell/linear", i);
        snprintf(name, sizeof(name), "backward/%s", of);
        gradient = add_backward(b, name, of, gradient);
    }
    bench_stop(b, 1, NONE);
    for (int i = 0; i < TIMES; i++) {
        snprintf(name, sizeof(name), i ? "backward/cell/linear_%d" : "backward/cell/linear", i);
        gradient = gd_graph_lookup(b->session->graph, name, strlen(name));
        record_norm(b, gradient, pow(factor, TIMES - i));
        bench_value(b, gradient, bench_finite(-1, 1), 1);
    }
    assert_int_not_equal(made[0], NONE);
    return gradient;
}

static void recurrent_weight_that_explodes(void **state)
{
    struct bench *b = *state;
    gd_node_id gradient = make_chain(b, 3);

    bench_ask(b, gradient, GD_BAD_LARGE);
    assert_string_equal(b->why.rule, "exploding");
    assert_contains(b->why.text, "over 8 runs by a factor of 3 each, from a norm of 3 (backward/"
                                 "cell/linear_7:0) to 6561 (backward/cell/linear:0)");
    assert_contains(b->why.text, "Each run multiplies by cell/w");
}

static void recurrent_weight_that_does_not(void **state)
{
    struct bench *b = *state;
    gd_node_id gradient = make_chain(b, 1.1);

    bench_ask(b, gradient, GD_BAD_LARGE);
    assert_string_equal(b->why.rule, "");
}

/* What an operator cannot take has come of the runs: how it grew is known of the step before, since
 * of the one that has not ended nothing is recorded yet. */
static void runs_before_what_cannot_be_taken(void **state)
{
    struct bench *b = *state;
    struct gd_stats negative = bench_finite(-5, 3);
    char name[64];
    gd_node_id run = NONE, root;

    make_chain(b, 1);
    for (int i = 0; i < TIMES; i++) {
        snprintf(name, sizeof(name), i ? "cell/linear_%d" : "cell/linear", i);
        run = gd_graph_lookup(b->session->graph, name, strlen(name));
        record_norm(b, run, pow(3, i));
    }
    root = add_forward(b, "log", "log", run, 0);
    bench_stop(b, 2, root);
    negative.negative = 4;
    bench_value(b, run, negative, 2);
    bench_value(b, root, bench_with(0, 1, 0, 4, 0, 0), 2);
    bench_ask(b, root, GD_BAD_NONFINITE);
    bench_expect(
        b, root, "log-of-negative",
        " Its input grows from one run of cell/linear to the next: over 8 runs in "
        "step 1 by a factor of 3 each, to a norm of 2187 (cell/linear_7). Each run multiplies by "
        "cell/w.");
    gd_history_close(b->session->history);
    b->session->history = NULL;
    bench_again(b);
    bench_ask(b, root, GD_BAD_NONFINITE);
    bench_expect(b, root, "log-of-negative", "to see whether the values grow from run to run");
}

/* ---- what failed ----------------------------------------------------------------------------- */

/* Nothing of it was recorded: it is said what would be. */
static void recurrence_that_nobody_watches(void **state)
{
    struct bench *b = *state;
    gd_node_id gradient = make_chain(b, 3);

    gd_history_close(b->session->history);
    b->session->history = NULL;
    bench_ask(b, gradient, GD_BAD_LARGE);
    assert_string_equal(b->why.rule, "");
    assert_contains(b->why.text, " cell/linear runs 8 times on its own output, each time with "
                                 "cell/w: to see whether the values grow from run to run, "
                                 "watch `gradients` or `activations`.");
}

static void label_out_of_range(void **state)
{
    struct bench *b = *state;
    struct net n = make_net(b, "mul");
    gd_node_id label = bench_leaf(b, "input/label", "Input");
    gd_node_id rows = add_forward(b, "getitem", "getitem", label, 0);
    gd_node_id loss = add_forward(b, "criterion", "cross_entropy", n.out, rows);

    snprintf(b->facts.raised, sizeof(b->facts.raised), "IndexError: Target 9 is out of bounds.");
    snprintf(b->facts.numbers, sizeof(b->facts.numbers), "getitem");
    snprintf(b->facts.place, sizeof(b->facts.place), "[3]");
    b->facts.number = 9;
    b->facts.choices = 4;
    bench_stop(b, 3, loss);
    bench_ask(b, loss, GD_BAD_RAISED);
    bench_expect(b, loss, "index-range",
                 "There are 4 classes, 0 to 3, but element [3] of getitem is 9. It was taken from "
                 "input/label (Input).");
    assert_int_equal(bench_verdict(b, loss), GD_WHY_BAD);
}

static void numbers_that_count_from_the_end(void **state)
{
    struct bench *b = *state;
    gd_node_id table = bench_leaf(b, "net/table", "Buffer");
    gd_node_id ids = bench_leaf(b, "input/ids", "Input");
    gd_node_id picked = add_forward(b, "getitem", "getitem", table, ids);
    gd_node_id taken = add_forward(b, "take", "take", table, ids);

    snprintf(b->facts.raised, sizeof(b->facts.raised), "IndexError: out of bounds");
    snprintf(b->facts.numbers, sizeof(b->facts.numbers), "input/ids");
    snprintf(b->facts.place, sizeof(b->facts.place), "[]");
    b->facts.number = -5;
    b->facts.choices = 4;
    b->facts.from_end = true;
    bench_stop(b, 3, picked);
    bench_ask(b, picked, GD_BAD_RAISED);
    bench_expect(
        b, picked, "index-range",
        "There are 4 rows, -4 to 3 (negative ones count from the end), but input/ids is -5.");
    bench_ask(b, taken, GD_BAD_RAISED);
    bench_expect(b, taken, "index-range", "There are 4 elements, -4 to 3 (");
    b->facts.numbers[0] = '\0';
    b->facts.listed = true;
    b->facts.from_end = false;
    b->facts.axis = 2;
    bench_ask(b, picked, GD_BAD_RAISED);
    bench_expect(b, picked, "index-range",
                 "There are 4 positions along axis 2, 0 to 3, but the index list is -5.");
}

static const struct CMUnitTest tests[] = {
    BENCH_TEST(recurrence_that_nobody_watches),
    BENCH_TEST(where_the_way_to_the_loss_ends),
    BENCH_TEST(what_else_cuts),
    BENCH_TEST(gradients_switched_off),
    BENCH_TEST(many_weights_that_nothing_reaches),
    BENCH_TEST(weights_that_nothing_reaches),
    BENCH_TEST(softmax_over_the_batch),
    BENCH_TEST(softmax_over_the_classes),
    BENCH_TEST(softmax_over_positions),
    BENCH_TEST(softmax_over_the_last_axis),
    BENCH_TEST(softmax_that_is_turned),
    BENCH_TEST(attention_over_columns),
    BENCH_TEST(attention_over_rows),
    BENCH_TEST(columns_of_no_square),
    BENCH_TEST(columns_that_are_summed),
    BENCH_TEST(softmax_before_cross_entropy),
    BENCH_TEST(log_softmax_before_cross_entropy),
    BENCH_TEST(sigmoid_before_its_loss),
    BENCH_TEST(probabilities_without_logarithm),
    BENCH_TEST(what_leads_nowhere),
    BENCH_TEST(frozen_forgotten_and_standing),
    BENCH_TEST(gradients_that_nobody_sets_back),
    BENCH_TEST(ranks_that_part),
    BENCH_TEST(each_against_each),
    BENCH_TEST(recurrent_weight_that_explodes),
    BENCH_TEST(recurrent_weight_that_does_not),
    BENCH_TEST(runs_before_what_cannot_be_taken),
    BENCH_TEST(label_out_of_range),
    BENCH_TEST(numbers_that_count_from_the_end),
};

RUN_TESTS()
