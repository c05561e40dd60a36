// SPDX-License-Identifier: GPL-3.0-or-later
/* What `why` says happened: every rule of the table, just where it begins to hold; batches, weights
 * and learning rates that are out of the ordinary. */
#include "../../unit.h"
#include "engine/watch/watchpoint.h"
#include "why_bench.h"

#define NONE GD_NO_NODE

/* ---- operators ------------------------------------------------------------------------------- */

struct value {
    bool given;
    double min, max;
    uint64_t zero, nan, pos_inf, neg_inf;
};

struct rule_case {
    const char *type;
    enum gd_bad bad;
    struct value in0, in1, out;
    enum gd_dtype dtype; /* of the output; none: float32 */
    const char *rule;    /* "": none may hold */
    const char *text;
};

#define NF   GD_BAD_NONFINITE
#define ZERO GD_BAD_ZERO

#define TEN(min, max, ...)                                                                         \
    {                                                                                              \
        true, min, max, __VA_ARGS__                                                                \
    }
#define SPAN(min, max)     TEN(min, max, 0, 0, 0, 0)
#define ZEROS(n, min, max) TEN(min, max, n, 0, 0, 0)
#define INF3               TEN(0, 1, 0, 0, 3, 0)
#define NEG3               TEN(0, 1, 0, 0, 0, 3)
#define NEG10              TEN(0, 0, 0, 0, 0, 10)
#define NAN3               TEN(0, 1, 0, 3, 0, 0)
#define ALL0               TEN(0, 0, 10, 0, 0, 0)
#define NO_INPUT                                                                                   \
    {                                                                                              \
        0                                                                                          \
    }

static const struct rule_case cases[] = {
    {"Log", NF, ZEROS(3, 0, 1), NO_INPUT, NEG3, 0, "log-of-zero", "3 of 10 elements of in0 are 0"},
    {"Log", NF, ALL0, NO_INPUT, NEG10, 0, "log-of-zero", "all 10 elements of in0"},
    {"Log", NF, ZEROS(3, -2, 1), NO_INPUT, NAN3, 0, "log-of-negative", "(minimum -2)"},
    {"Log", NF, SPAN(1e-30, 1), NO_INPUT, NEG3, 0, "", "none of its inputs is"},
    {"log2", NF, ZEROS(3, 0, 1), NO_INPUT, NEG3, 0, "log-of-zero", "is -Inf"},
    {"Log1p", NF, ZEROS(3, -1, 1), NO_INPUT, NEG3, 0, "log-of-zero", "minimum of in0 is -1"},
    {"Log1p", NF, ZEROS(3, -0.99, 1), NO_INPUT, NEG3, 0, "", ""},
    {"LogGrad", NF, SPAN(-1, 1), ZEROS(2, 0, 1), INF3, 0, "division-by-zero",
     "2 of 10 elements of in1"},
    {"RealDiv", NF, ZEROS(4, 0, 1), ZEROS(2, 0, 1), NAN3, 0, "zero-over-zero", "4 of 10 of in0"},
    {"Div", NF, SPAN(1, 2), ZEROS(2, 0, 1), INF3, 0, "division-by-zero",
     "2 of 10 elements of the divisor"},
    {"Div", NF, SPAN(1, 2), SPAN(1, 2), INF3, 0, "", ""},
    {"div", NF, ZEROS(3, 0, 1), NO_INPUT, INF3, 0, "division-by-zero", "of the divisor in0 are 0"},
    {"div", NF, ZEROS(2, 0, 1), NO_INPUT, INF3, 0, "", ""},
    {"SqrtBackward0", NF, SPAN(0, 1), NO_INPUT, INF3, 0, "slope-at-zero", "infinite at 0"},
    {"DivBackward0", NF, ZEROS(2, 0, 1), NO_INPUT, NAN3, 0, "slope-at-zero",
     "divides by the input of the"},
    {"AcosBackward0", NF, ZEROS(2, 0, 1), NO_INPUT, NEG3, 0, "slope-at-one", "at 1 and -1"},
    {"PowBackward0", NF, ZEROS(2, 0, 1), NO_INPUT, INF3, 0, "slope-at-zero", "a power below 1"},
    {"cross_entropy", NF, SPAN(-9, 9), SPAN(-100, -100), NAN3, 0, "no-labels",
     "all of in1 are -100"},
    {"cross_entropy", NF, SPAN(-9, 9), ZEROS(4, 0, 3), NAN3, 0, "", ""},
    {"Reciprocal", NF, ZEROS(2, 0, 1), NO_INPUT, INF3, 0, "division-by-zero", "divides by 0"},
    {"Rsqrt", NF, ZEROS(2, 0, 1), NO_INPUT, INF3, 0, "division-by-zero", "divides by 0"},
    {"Rsqrt", NF, SPAN(-1, 1), NO_INPUT, NAN3, 0, "sqrt-of-negative", "square root of negative"},
    {"Sqrt", NF, SPAN(-3, 1), NO_INPUT, NAN3, 0, "sqrt-of-negative", "(minimum -3)"},
    {"SqrtGrad", NF, ZEROS(2, 0, 1), SPAN(1, 1), INF3, 0, "division-by-zero", "slope is infinite"},
    {"Pow", NF, SPAN(-3, 1), SPAN(0.5, 0.5), NAN3, 0, "power-of-negative", "fractional"},
    {"Pow", NF, ZEROS(2, 0, 1), SPAN(-1, -1), INF3, 0, "division-by-zero", "0 to a negative power"},
    {"Exp", NF, SPAN(0, 88.73), NO_INPUT, INF3, 0, "exp-overflow", "from 88.7"},
    {"Exp", NF, SPAN(0, 88.72), NO_INPUT, INF3, 0, "", ""},
    {"Exp", NF, SPAN(0, 11.1), NO_INPUT, INF3, GD_FLOAT16, "exp-overflow",
     "infinite in float16 from 11.09"},
    {"Exp", NF, SPAN(0, 709.7), NO_INPUT, INF3, GD_FLOAT64, "", ""},
    {"Exp", NF, SPAN(0, 709.8), NO_INPUT, INF3, GD_FLOAT64, "exp-overflow", "float64"},
    {"Softmax", NF, SPAN(0, 100), NO_INPUT, NAN3, 0, "exp-overflow", "apparently the largest"},
    {"Softmax", NF, SPAN(0, 50), NO_INPUT, NAN3, 0, "", ""},
    {"LayerNorm", NF, SPAN(4, 4), NO_INPUT, NAN3, 0, "no-variance",
     "all elements of in0 are equal (4)"},
    {"Mul", NF, SPAN(0, 300), SPAN(1, 300), INF3, 0, "fp16-range", "can reach 90000"},
    {"Mul", NF, SPAN(0, 300), SPAN(1, 200), INF3, 0, "", ""}, /* within half's range as well */
    {"Mul", NF, SPAN(0, 1e20), SPAN(1, 1e20), INF3, 0, "float-range",
     "exceeds the range of float32"},
    {"Mul", NF, SPAN(0, 300), SPAN(1, 300), INF3, GD_FLOAT16, "fp16-range", "its maximum is 65504"},
    {"Mul", NF, SPAN(0, 1e20), SPAN(1, 1e20), INF3, GD_FLOAT64, "", ""},
    {"Add", NF, SPAN(0, 40000), SPAN(0, 40000), INF3, 0, "fp16-range", "half precision"},
    {"Add", NF, SPAN(0, 3e38), SPAN(0, 3e38), INF3, 0, "float-range", "(in0)"},
    {"Cast", NF, SPAN(-70000, 3), NO_INPUT, NEG3, GD_FLOAT16, "fp16-range",
     "with values up to 70000 (in0)"},
    {"MatMul", NF, SPAN(0, 100), SPAN(0, 100), INF3, 0, "fp16-range", "can reach 100000"},
    {"MatMul", NF, SPAN(0, 1e19), SPAN(0, 1e19), INF3, 0, "float-range", "can reach 1e+39"},
    {"Conv2D", NF, SPAN(0, 100), SPAN(0, 100), INF3, 0, "fp16-range", "can reach 100000"},
    {"ReduceSum", NF, SPAN(0, 30000), NO_INPUT, INF3, 0, "fp16-range", "can reach 300000"},
    {"ReduceMean", NF, SPAN(0, 1e38), NO_INPUT, INF3, 0, "float-range", "the sum can reach 1e+39"},
    {"Square", NF, SPAN(0, 300), NO_INPUT, INF3, 0, "fp16-range", "can reach 90000"},
    {"Custom", NF, SPAN(0, 60000), NO_INPUT, INF3, 0, "fp16-range", "probably"},
    {"Custom", NF, SPAN(0, 1e16), NO_INPUT, INF3, 0, "float-range",
     "whose largest magnitude is 1e+16"},
    {"Custom", NF, SPAN(0, 10), NO_INPUT, INF3, 0, "", "Custom"},
    {"ReLU", ZERO, SPAN(-5, -1), NO_INPUT, ALL0, 0, "dead-relu", "(maximum -1)"},
    {"ReLU", ZERO, SPAN(-5, 1), NO_INPUT, ALL0, 0, "", ""},
    {"ReluGrad", ZERO, SPAN(-1, 1), SPAN(-5, -1), ALL0, 0, "dead-relu", "no gradient through"},
    {"TanhGrad", ZERO, SPAN(-1, 1), SPAN(1, 1), ALL0, 0, "saturated", "activation is saturated"},
    {"Mul", ZERO, SPAN(1e-30, 1e-30), SPAN(1e-30, 1e-30), ALL0, 0, "underflow", "rounds to 0"},
    {"Mul", ZERO, SPAN(1e-5, 1e-5), SPAN(1e-5, 1e-5), ALL0, GD_FLOAT16, "underflow", "float16"},
    {"Mul", ZERO, SPAN(1e-5, 1e-5), SPAN(1e-5, 1e-5), ALL0, 0, "", "all zero"},
};

static struct gd_stats stats_of(const struct value *v)
{
    return bench_with(v->min, v->max, v->zero, v->nan, v->pos_inf, v->neg_inf);
}

static void one_rule(const struct rule_case *c)
{
    struct bench *b = bench_make();
    gd_node_id in0 = bench_leaf(b, "in0", "Data");
    gd_node_id in1 = c->in1.given ? bench_leaf(b, "in1", "Data") : NONE;
    gd_node_id op = bench_node(b, "op", c->type, in0, in1, NONE);

    bench_stop(b, 1, NONE);
    bench_value(b, in0, stats_of(&c->in0), 1);
    if (c->in1.given) {
        bench_value(b, in1, stats_of(&c->in1), 1);
    }
    bench_value(b, op, stats_of(&c->out), 1)->dtype = c->dtype ? c->dtype : GD_FLOAT32;
    bench_ask(b, op, c->bad);
    bench_expect(b, op, c->rule, c->text);
    assert_int_equal(b->target->asked_twice, 0);
    bench_end(b);
}

static void every_rule(void **state)
{
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        one_rule(&cases[i]);
    }
}

/* Infinities that are meant (excluded, or from outside) and what is computed with them. */
static void infinities_that_are_no_fault_themselves(void **state)
{
    static const struct rule_case meant[] = {
        {"Sub", NF, INF3, INF3, NAN3, 0, "inf-minus-inf", "Inf - Inf is NaN"},
        {"Add", NF, INF3, NEG3, NAN3, 0, "inf-minus-inf", "opposite signs"},
        {"Mul", NF, INF3, ZEROS(4, 0, 1), NAN3, 0, "zero-times-inf", "in1 can be 0 (4 of 10"},
        {"Div", NF, INF3, INF3, NAN3, 0, "inf-over-inf", "divides Inf by Inf"},
        {"Softmax", NF, INF3, NO_INPUT, NAN3, 0, "softmax-of-inf", "received Inf"},
        {"Softmax", NF, NEG3, NO_INPUT, NAN3, 0, "masked-row", "a whole row of in0 is masked"},
        {"Custom", NF, INF3, NO_INPUT, NAN3, 0, "inf-arithmetic", "computes with Inf from in0"},
    };

    for (size_t i = 0; i < sizeof(meant) / sizeof(meant[0]); i++) {
        const struct rule_case *c = &meant[i];
        struct bench *b = bench_make();
        gd_node_id in0 = bench_leaf(b, "in0", "Const");
        gd_node_id in1 = bench_leaf(b, "in1", "Const");
        gd_node_id op = bench_node(b, "op", c->type, in0, c->in1.given ? in1 : NONE, NONE);

        assert_ok(gd_exclude_add(b->debugger, "in*", NULL));
        bench_stop(b, 1, NONE);
        bench_value(b, in0, stats_of(&c->in0), 1);
        bench_value(b, in1, stats_of(&c->in1), 1);
        bench_value(b, op, stats_of(&c->out), 1);
        bench_ask(b, op, NF);
        bench_expect(b, op, c->rule, c->text);
        bench_end(b);
    }
}

/* ---- the batch ------------------------------------------------------------------------------- */

/* ids -> Gather(table of 50 rows) -> loss */
struct model {
    gd_node_id ids, table, gather, loss;
};

static struct model make_model(struct bench *b)
{
    struct gd_output ids = {.dtype = GD_INT32, .shape = {.rank = 1, .dim = {10}}};
    struct gd_output table = {.dtype = GD_FLOAT32, .shape = {.rank = 2, .dim = {50, 4}}};
    struct model m;

    m.ids = bench_leaf(b, "data/ids", "Data");
    m.table = bench_leaf(b, "net/token.weight", "Parameter");
    m.gather = bench_node(b, "net/gather", "Gather", m.table, m.ids, NONE);
    m.loss = bench_node(b, "net/loss", "NLLLoss", m.gather, NONE, NONE);
    gd_graph_set_output(b->session->graph, m.ids, 0, &ids);
    gd_graph_set_output(b->session->graph, m.table, 0, &table);
    return m;
}

static void ask_batch(struct bench *b, struct gd_stats ids, const char *rule, const char *text)
{
    struct model m = make_model(b);

    bench_stop(b, 3, NONE);
    bench_value(b, m.ids, ids, 3)->dtype = GD_INT32;
    bench_value(b, m.table, bench_finite(-1, 1), 3);
    bench_value(b, m.gather, bench_finite(-1, 1), 3);
    bench_value(b, m.loss, bench_finite(4, 4), 3);
    bench_ask(b, m.loss, GD_BAD_LARGE);
    bench_expect(b, rule[0] ? m.ids : NONE, rule, text);
}

static void batch_of_clamped_ids(void **state)
{
    struct gd_stats ids = bench_with(49, 49, 0, 0, 0, 0);

    ask_batch(*state, ids, "bad-batch", "all 10 of its ids are 49, the last of 50");
}

static void batch_of_clamped_ids_and_zeros(void **state)
{
    struct gd_stats ids = bench_with(0, 49, 4, 0, 0, 0);

    ids.mean = ids.abs_mean = 49.0 * 6 / 10;
    ids.negative = 0;
    ask_batch(*state, ids, "bad-batch",
              "6 of 10 of its ids are 49, the last of 50, "
              "and the others are 0");
}

static void batch_that_holds_the_last_id(void **state)
{
    struct gd_stats ids = bench_with(0, 49, 1, 0, 0, 0);

    ids.mean = ids.abs_mean = 20;
    ask_batch(*state, ids, "", "Nothing upstream stands out");
}

static void batch_out_of_range(void **state)
{
    ask_batch(*state, bench_with(0, 50, 1, 0, 0, 0), "bad-batch", "the table has 50 rows");
}

static void batch_of_one_value(void **state)
{
    ask_batch(*state, bench_with(7, 7, 0, 0, 0, 0), "", "3 of 3 values were examined");
}

static void mean_of_nothing(void **state)
{
    struct bench *b = *state;
    gd_node_id x = bench_leaf(b, "x", "Data");
    gd_node_id rows = bench_node(b, "rows", "getitem", x, GD_NO_NODE, GD_NO_NODE);
    gd_node_id loss = bench_node(b, "loss", "cross_entropy", rows, GD_NO_NODE, GD_NO_NODE);

    bench_stop(b, 3, GD_NO_NODE);
    bench_value(b, rows, bench_finite(0, 0), 3)->shape =
        (struct gd_shape){.rank = 2, .dim = {0, 5}};
    bench_value(b, loss, bench_with(0, 0, 0, 1, 0, 0), 3);
    bench_ask(b, loss, GD_BAD_NONFINITE);
    bench_expect(b, loss, "empty-input", "rows has no elements, and the mean of nothing is NaN");
}

static void batch_with_nan(void **state)
{
    struct bench *b = *state;
    struct model m = make_model(b);

    bench_stop(b, 3, NONE);
    bench_value(b, m.ids, bench_with(0, 1, 0, 2, 0, 0), 3);
    bench_value(b, m.table, bench_finite(-1, 1), 3);
    bench_value(b, m.gather, bench_with(0, 1, 0, 2, 0, 0), 3);
    bench_value(b, m.loss, bench_with(0, 1, 0, 2, 0, 0), 3);
    bench_ask(b, m.loss, NF);
    bench_expect(b, m.ids, "bad-batch", "data/ids enters the graph from outside");
}

static void batch_unlike_the_one_before(void **state)
{
    struct bench *b = *state;
    gd_node_id x = bench_leaf(b, "data/image", "Data");
    gd_node_id loss = bench_node(b, "net/loss", "MSELoss", x, NONE, NONE);
    struct gd_stats image = bench_finite(0, 255);

    image.has_prev = true;
    image.mean_abs_prev = 0.5;
    image.mean_delta = image.mean - 0.5;
    bench_stop(b, 3, NONE);
    bench_value(b, x, image, 3);
    bench_value(b, loss, bench_finite(4, 4), 3);
    bench_ask(b, loss, GD_BAD_LARGE);
    bench_expect(b, x, "bad-batch", "is 127.5; in previous steps it was 0.5");
    bench_again(b);
    image.mean_abs_prev = 100; /* as large as usual */
    bench_value(b, x, image, 3);
    bench_ask(b, loss, GD_BAD_LARGE);
    bench_expect(b, NONE, "", "Nothing upstream");
    assert_int_equal(bench_verdict(b, x), GD_WHY_GOOD);
}

/* ---- weights and learning rates -------------------------------------------------------------- */

/* x, w -> MatMul -> loss; grad -> optimizer(w, grad) */
struct training {
    gd_node_id x, w, matmul, loss, grad, opt;
};

static struct training make_training(struct bench *b, const char *optimizer)
{
    struct gd_output matrix = {.dtype = GD_FLOAT32, .shape = {.rank = 2, .dim = {2, 5}}};
    struct training t;

    t.x = bench_leaf(b, "data/x", "Data");
    t.w = bench_leaf(b, "net/fc.weight", "Parameter");
    gd_graph_set_output(b->session->graph, t.w, 0, &matrix);
    t.matmul = bench_node(b, "net/matmul", "MatMul", t.x, t.w, NONE);
    t.loss = bench_node(b, "net/loss", "MSELoss", t.matmul, NONE, NONE);
    t.grad = bench_node(b, "Gradients/net/grad", "MatMul", t.x, t.loss, NONE);
    t.opt = bench_node(b, "optimizer/opt", optimizer, t.w, t.grad, NONE);
    return t;
}

static struct bench_value *set_weight(struct bench *b, const struct training *t, double size,
                                      double update)
{
    struct gd_stats w = bench_finite(-size, size);
    struct bench_value *value;

    if (update >= 0) {
        w.has_prev = true;
        w.mean_abs_prev = size;
        w.mean_abs_delta = update * size;
    }
    value = bench_value(b, t->w, w, 9);
    value->shape = (struct gd_shape){.rank = 2, .dim = {2, 5}};
    return value;
}

static void fill_training(struct bench *b, const struct training *t)
{
    bench_value(b, t->x, bench_finite(-1, 1), 9);
    bench_value(b, t->matmul, bench_finite(-1, 1), 9);
    bench_value(b, t->loss, bench_finite(4, 4), 9);
    bench_value(b, t->grad, bench_finite(-1, 1), 9);
    bench_value(b, t->opt, bench_finite(-1, 1), 9);
}

static void report_rates(struct bench *b, double first, double before, double now)
{
    gd_session_on_scalar(b->session, "lr", first, 1);
    gd_session_on_scalar(b->session, "lr", before, 8);
    gd_session_on_scalar(b->session, "lr", now, 9);
}

static void rate_by_a_measured_update(void **state)
{
    struct bench *b = *state;
    struct training t = make_training(b, "SGD");

    report_rates(b, 0.01, 0.4, 0.5);
    bench_stop(b, 9, NONE);
    fill_training(b, &t);
    set_weight(b, &t, 1, 0.11);
    bench_ask(b, t.w, GD_BAD_LARGE);
    bench_expect(
        b, t.opt, "learning-rate",
        "The learning rate is 0.5, 50 times its value at step 1 (0.01), and still growing: "
        "1.25 times in the last step. The last update changed net/fc.weight by 11 % of its "
        "size.");
    bench_again(b);
    set_weight(b, &t, 1, 0.09);
    bench_ask(b, t.w, GD_BAD_LARGE);
    assert_string_equal(b->why.rule, "");
}

/* A bias that started at 0 changes by much of its size in any training: no rate is to blame. */
static void vector_that_is_small(void **state)
{
    struct bench *b = *state;
    struct training t = make_training(b, "Adam");
    struct gd_output vector = {.dtype = GD_FLOAT32, .shape = {.rank = 1, .dim = {10}}};
    struct bench_value *value;

    gd_graph_set_output(b->session->graph, t.w, 0, &vector);
    report_rates(b, 1e-5, 1e-5, 2e-5);
    bench_stop(b, 9, NONE);
    fill_training(b, &t);
    value = set_weight(b, &t, 3e-5, 1.9);
    value->shape = vector.shape;
    bench_ask(b, t.w, GD_BAD_LARGE);
    bench_expect(b, t.w, "small-weight", "net/fc.weight is small, so any update is large");
    assert_null(strstr(b->why.text, "No matrix changes"));
    bench_again(b);
    value = set_weight(b, &t, 3, 1.9);
    value->shape = vector.shape;
    bench_ask(b, t.w, GD_BAD_LARGE);
    bench_expect(b, t.opt, "learning-rate", "The last update changed net/fc.weight by 190 %");
}

static void rate_by_an_estimate(void **state)
{
    struct bench *b = *state;
    struct training t = make_training(b, "AdamWeightDecay");

    report_rates(b, 0.01, 0.5, 0.5);
    bench_stop(b, 9, NONE);
    fill_training(b, &t);
    set_weight(b, &t, 1.9, -1); /* 0.5 is more than a quarter of 1.9 */
    bench_ask(b, t.loss, GD_BAD_LARGE);
    bench_expect(
        b, t.w, "learning-rate",
        "Each update of AdamWeightDecay moves every element by about that much, 26.3 % of the "
        "mean magnitude of net/fc.weight.");
    assert_null(strstr(b->why.text, "still growing"));
    bench_again(b);
    set_weight(b, &t, 2.1, -1);
    bench_ask(b, t.loss, GD_BAD_LARGE);
    bench_expect(b, NONE, "", "Nothing upstream stands out");
}

/* Nothing can be said of an update by SGD that was not measured. */
static void no_estimate_without_an_adaptive_optimizer(void **state)
{
    struct bench *b = *state;
    struct training t = make_training(b, "Momentum");

    report_rates(b, 0.01, 0.5, 0.5);
    bench_stop(b, 9, NONE);
    fill_training(b, &t);
    set_weight(b, &t, 1, -1);
    bench_ask(b, t.loss, GD_BAD_LARGE);
    assert_string_equal(b->why.rule, "");
}

static void rate_behind_values_out_of_range(void **state)
{
    struct bench *b = *state;
    struct training t = make_training(b, "Adam");

    report_rates(b, 0.01, 900, 1000);
    bench_stop(b, 9, NONE);
    fill_training(b, &t);
    set_weight(b, &t, 1e30, -1);
    bench_value(b, t.x, bench_finite(-1e15, 1e15), 9);
    bench_value(b, t.matmul, bench_with(0, 1, 0, 0, 3, 0), 9);
    bench_ask(b, t.matmul, NF);
    bench_expect(b, t.matmul, "learning-rate", "exceeds the range of float32");
    assert_contains(b->why.text, "1e+05 times its value at step 1");
    gd_session_on_scalar(b->session, "lr", 0.01, 10); /* as ever: not to blame */
    bench_again(b);
    bench_ask(b, t.matmul, NF);
    bench_expect(b, t.matmul, "float-range", "exceeds the range of float32");
}

static void jump_of_an_activation(void **state)
{
    struct bench *b = *state;
    struct training t = make_training(b, "SGD");
    struct gd_stats big = bench_finite(-30, 30);

    big.has_prev = true;
    big.mean_abs_prev = 9;
    bench_stop(b, 9, NONE);
    fill_training(b, &t);
    set_weight(b, &t, 1, 0.01);
    bench_value(b, t.matmul, big, 9);
    bench_value(b, t.loss, big, 9);
    bench_ask(b, t.loss, GD_BAD_LARGE);
    bench_expect(b, t.matmul, "jump", "its mean magnitude is 30; before, it was 9");
}

static void jump_by_what_was_recorded(void **state)
{
    struct bench *b = *state;
    struct training t = make_training(b, "SGD");

    bench_open_history(b);
    bench_stop(b, 9, NONE);
    for (int64_t step = 1; step <= 9; step++) { /* one odd step among them does not count */
        double size = step == 8 ? 1000 : step == 9 ? 60 : 10;

        bench_record(b, t.matmul, bench_finite(0, size), step);
    }
    fill_training(b, &t);
    set_weight(b, &t, 1, 0.01);
    bench_value(b, t.matmul, bench_finite(0, 60), 9);
    bench_ask(b, t.loss, GD_BAD_LARGE);
    bench_expect(b, t.matmul, "jump", "its mean magnitude is 30; before, it was 5");
}

/* A way to the zero: weights that start there. */
static void test_zeros(void **state)
{
    struct bench *b = *state;
    struct training t = make_training(b, "SGD");

    bench_stop(b, 1, t.matmul);
    bench_value(b, t.x, bench_finite(-1, 1), 1);
    bench_value(b, t.w, bench_with(0, 0, 10, 0, 0, 0), 0);
    bench_value(b, t.matmul, bench_with(0, 0, 10, 0, 0, 0), 1);
    bench_ask(b, t.matmul, GD_BAD_ZERO);
    bench_expect(b, t.w, "bad-weight", "net/fc.weight is all zero itself");
    assert_contains(b->why.text, "it was created like this");
}

static void weight_that_no_optimizer_takes(void **state)
{
    struct bench *b = *state;
    struct training t = make_training(b, "SGD");
    gd_node_id frozen = bench_leaf(b, "net/frozen.weight", "Parameter");

    bench_stop(b, 9, NONE);
    fill_training(b, &t);
    set_weight(b, &t, 1, 0);
    bench_value(b, frozen, bench_finite(-1, 1), 9);
    bench_ask(b, frozen, GD_BAD_ZERO);
    bench_expect(b, frozen, "not-trained", "SGD updates other weights but not this one");
    bench_ask(b, t.w, GD_BAD_ZERO);
    bench_expect(b, NONE, "", "net/fc.weight:0 is not all zero");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_rule),
    cmocka_unit_test(infinities_that_are_no_fault_themselves),
    BENCH_TEST(batch_of_clamped_ids),
    BENCH_TEST(batch_of_clamped_ids_and_zeros),
    BENCH_TEST(batch_that_holds_the_last_id),
    BENCH_TEST(batch_out_of_range),
    BENCH_TEST(batch_of_one_value),
    BENCH_TEST(batch_with_nan),
    BENCH_TEST(mean_of_nothing),
    BENCH_TEST(batch_unlike_the_one_before),
    BENCH_TEST(rate_by_a_measured_update),
    BENCH_TEST(vector_that_is_small),
    BENCH_TEST(rate_by_an_estimate),
    BENCH_TEST(no_estimate_without_an_adaptive_optimizer),
    BENCH_TEST(rate_behind_values_out_of_range),
    BENCH_TEST(jump_of_an_activation),
    BENCH_TEST(jump_by_what_was_recorded),
    BENCH_TEST(test_zeros),
    BENCH_TEST(weight_that_no_optimizer_takes),
};

RUN_TESTS()
