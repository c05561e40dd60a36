// SPDX-License-Identifier: GPL-3.0-or-later
/* The walk of `why`: where it goes, what it believes, and how it ends. */
#include "../../unit.h"
#include "engine/watch/watchpoint.h"
#include "why_bench.h"

#define NF   GD_BAD_NONFINITE
#define NONE GD_NO_NODE

/* A chain x -> Exp -> Log -> Sqrt -> Neg, NaN from Log on. */
struct chain {
    gd_node_id x, exp, log, sqrt, neg;
};

static struct chain make_chain(struct bench *b)
{
    struct chain c;

    c.x = bench_leaf(b, "x", "Data");
    c.exp = bench_node(b, "net/exp", "Exp", c.x, NONE, NONE);
    c.log = bench_node(b, "net/log", "Log", c.exp, NONE, NONE);
    c.sqrt = bench_node(b, "net/sqrt", "Sqrt", c.log, NONE, NONE);
    c.neg = bench_node(b, "net/neg", "Neg", c.sqrt, NONE, NONE);
    return c;
}

static void fill_chain(struct bench *b, const struct chain *c, int64_t step)
{
    bench_value(b, c->x, bench_finite(1, 2), step);
    bench_value(b, c->exp, bench_with(0, 2, 3, 0, 0, 0), step);
    bench_value(b, c->log, bench_with(-1, 1, 0, 0, 0, 3), step);
    bench_value(b, c->sqrt, bench_with(0, 1, 0, 3, 0, 0), step);
    bench_value(b, c->neg, bench_with(-1, 0, 0, 3, 0, 0), step);
}

/* ---- the way upstream ------------------------------------------------------------------------ */

static void origin_is_the_first_bad_one(void **state)
{
    struct bench *b = *state;
    struct chain c = make_chain(b);

    bench_stop(b, 4, NONE);
    fill_chain(b, &c, 4);
    bench_ask(b, c.neg, NF);
    bench_expect(b, c.log, "log-of-zero", "3 of 10 elements of net/exp are 0");
    assert_int_equal(bench_verdict(b, c.neg), GD_WHY_BAD);
    assert_int_equal(bench_verdict(b, c.sqrt), GD_WHY_BAD);
    assert_int_equal(bench_verdict(b, c.exp), GD_WHY_GOOD);
    /* what is good is not looked behind */
    assert_int_equal(b->why.count, 4);
    assert_int_equal(b->target->asked, 4);
    assert_int_equal(b->target->asked_twice, 0);
    assert_false(b->why.cut);
}

static void tree_is_in_order_of_printing(void **state)
{
    struct bench *b = *state;
    gd_node_id x = bench_leaf(b, "x", "Data");
    gd_node_id log = bench_node(b, "log", "Log", x, NONE, NONE);
    gd_node_id left = bench_node(b, "left", "Neg", log, NONE, NONE);
    gd_node_id sum = bench_node(b, "sum", "Add", left, log, NONE);

    bench_stop(b, 1, NONE);
    bench_value(b, x, bench_with(0, 1, 2, 0, 0, 0), 1);
    bench_value(b, log, bench_with(-1, 0, 0, 0, 0, 2), 1);
    bench_value(b, left, bench_with(0, 1, 0, 0, 2, 0), 1);
    bench_value(b, sum, bench_with(0, 1, 0, 2, 0, 0), 1);
    bench_ask(b, sum, NF);
    bench_expect(b, log, "log-of-zero", "becomes NaN later: sum (Add) adds infinities");
    /* sum, left, (log above), log, x: each opened once */
    const struct {
        gd_node_id node;
        int depth;
        bool above, origin;
    } want[] = {{sum, 0, false, false},
                {left, 1, false, false},
                {log, 2, true, false},
                {log, 1, false, true},
                {x, 2, false, false}};
    assert_int_equal(b->why.count, 5);
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(b->nodes[i].node, want[i].node);
        assert_int_equal(b->nodes[i].depth, want[i].depth);
        assert_int_equal(b->nodes[i].shown_above, want[i].above);
        assert_int_equal(b->nodes[i].origin, want[i].origin);
    }
    assert_int_equal(b->target->asked, 4);
    assert_string_equal(b->nodes[0].note, "2 NaN of 10; min 0, max 1");
}

static void first_of_two_origins(void **state)
{
    struct bench *b = *state;
    gd_node_id x = bench_leaf(b, "x", "Data");
    gd_node_id early = bench_node(b, "early", "Sqrt", x, NONE, NONE);
    gd_node_id late = bench_node(b, "late", "Sqrt", x, NONE, NONE);
    gd_node_id sum = bench_node(b, "sum", "Add", late, early, NONE);

    bench_stop(b, 1, NONE);
    bench_value(b, x, bench_finite(-1, 1), 1);
    bench_value(b, early, bench_with(0, 1, 0, 2, 0, 0), 1);
    bench_value(b, late, bench_with(0, 1, 0, 2, 0, 0), 1);
    bench_value(b, sum, bench_with(0, 1, 0, 2, 0, 0), 1);
    bench_ask(b, sum, NF);
    bench_expect(b, early, "sqrt-of-negative", "early (Sqrt)");
}

static void answers_may_come_late_and_in_any_order(void **state)
{
    for (int backwards = 0; backwards < 2; backwards++) {
        struct bench *b = *state;
        struct chain c = make_chain(b);

        b->target->late = true;
        bench_stop(b, 4, NONE);
        fill_chain(b, &c, 4);
        bench_ask(b, c.neg, NF);
        assert_int_equal(b->answers, 0);
        bench_answer(b, backwards);
        assert_int_equal(b->answers, 1);
        bench_expect(b, c.log, "log-of-zero", "net/log");
        bench_end(b);
        *state = bench_make();
    }
}

static void what_is_good_is_said_to_be(void **state)
{
    struct bench *b = *state;
    struct chain c = make_chain(b);

    bench_stop(b, 4, NONE);
    fill_chain(b, &c, 4);
    bench_ask(b, c.exp, NF);
    bench_expect(b, NONE, "", "net/exp:0 is not NaN or Inf: min 0, max 2, 3 zeros");
    assert_int_equal(bench_verdict(b, c.exp), GD_WHY_GOOD);
}

/* ---- what is not known ----------------------------------------------------------------------- */

static void not_computed_yet(void **state)
{
    struct bench *b = *state;
    struct chain c = make_chain(b);
    gd_node_id later = bench_node(b, "later", "Exp", c.x, NONE, NONE);
    gd_node_id sum;

    /* sum reads something that runs after the stop, as it may in a graph that says no more */
    sum = bench_node(b, "sum", "Add", later, c.log, NONE);
    bench_stop(b, 4, c.neg);
    fill_chain(b, &c, 4);
    bench_value(b, later, bench_with(0, 1, 0, 5, 0, 0), 3);
    bench_value(b, sum, bench_with(0, 1, 0, 5, 0, 0), 4);
    bench_ask(b, sum, NF);
    assert_int_equal(bench_verdict(b, later), GD_WHY_UNKNOWN);
    assert_string_equal(b->nodes[1].note, "not computed yet in this step");
    assert_false(b->nodes[1].has_stats);
    bench_expect(b, c.log, "log-of-zero", "net/log");
}

static void a_target_that_knows_no_steps(void **state)
{
    struct bench *b = *state;
    struct chain c = make_chain(b);

    /* the order tells: sqrt has run in this step, neg has not */
    bench_stop(b, 4, c.sqrt);
    fill_chain(b, &c, -1);
    bench_ask(b, c.sqrt, NF);
    bench_expect(b, c.log, "log-of-zero", "net/log");
    /* a value of the step before leads to values of the step before, and those are gone */
    bench_ask(b, c.neg, NF);
    assert_int_equal(bench_verdict(b, c.neg), GD_WHY_BAD);
    assert_int_equal(bench_verdict(b, c.sqrt), GD_WHY_UNKNOWN);
}

static void no_statistics(void **state)
{
    struct bench *b = *state;
    struct chain c = make_chain(b);

    bench_stop(b, 4, NONE);
    fill_chain(b, &c, 4);
    bench_value(b, c.exp, bench_finite(0, 0), 4)->error = GD_ENODATA;
    bench_ask(b, c.neg, NF);
    assert_int_equal(bench_verdict(b, c.exp), GD_WHY_UNKNOWN);
    bench_expect(b, c.log, "", "Its input net/exp is unknown (no value)");
    bench_again(b);
    bench_value(b, c.exp, bench_finite(0, 0), 4)->error = GD_EINVAL;
    bench_ask(b, c.neg, NF);
    assert_int_equal(bench_verdict(b, c.exp), GD_WHY_UNKNOWN);
}

static void nothing_at_all_is_known(void **state)
{
    struct bench *b = *state;
    struct chain c = make_chain(b);

    bench_stop(b, 4, NONE);
    bench_ask(b, c.neg, NF);
    bench_expect(b, NONE, "", "net/neg:0");
    assert_int_equal(bench_verdict(b, c.neg), GD_WHY_UNKNOWN);
}

/* ---- parameters ------------------------------------------------------------------------------ */

struct training { /* w -> MatMul(x, w) -> Log -> grad -> Adam(w) */
    gd_node_id x, w, matmul, log, grad, adam;
};

static struct training make_training(struct bench *b)
{
    struct training t;

    t.x = bench_leaf(b, "x", "Data");
    t.w = bench_leaf(b, "net/fc.weight", "Parameter");
    t.matmul = bench_node(b, "net/matmul", "MatMul", t.x, t.w, NONE);
    t.log = bench_node(b, "net/log", "Log", t.matmul, NONE, NONE);
    t.grad = bench_node(b, "Gradients/net/loggrad", "LogGrad", t.log, t.matmul, NONE);
    t.adam = bench_node(b, "optimizer/adam", "Adam", t.w, t.grad, NONE);
    return t;
}

static struct gd_stats bad_stats(void)
{
    return bench_with(-1, 1, 0, 4, 0, 0);
}

static void weight_back_to_the_gradient_of_the_step_before(void **state)
{
    struct bench *b = *state;
    struct training t = make_training(b);

    /* Step 8 has run as far as MatMul; everything behind it is still that of step 7. */
    bench_stop(b, 8, t.matmul);
    bench_value(b, t.x, bench_finite(1, 2), 8);
    bench_value(b, t.w, bad_stats(), 7);
    bench_value(b, t.matmul, bad_stats(), 8);
    bench_value(b, t.log, bench_finite(0, 1), 7);
    bench_value(b, t.grad, bench_with(-1, 1, 0, 0, 2, 0), 7);
    bench_value(b, t.adam, bad_stats(), 7);
    bench_ask(b, t.matmul, NF);
    bench_expect(b, t.grad, "", "This was in step 7.");
    assert_int_equal(bench_verdict(b, t.w), GD_WHY_BAD);
    assert_int_equal(bench_verdict(b, t.adam), GD_WHY_BAD);
    assert_int_equal(bench_verdict(b, t.log), GD_WHY_GOOD);
}

static void weight_updated_since(void **state)
{
    struct bench *b = *state;
    struct training t = make_training(b);

    /* At the end of step 8 the weight is what the optimizer made of it: bad because of the
     * gradient, and no input of MatMul. */
    bench_stop(b, 8, NONE);
    bench_value(b, t.x, bench_finite(1, 2), 8);
    bench_value(b, t.w, bad_stats(), 8);
    bench_value(b, t.matmul, bench_with(0, 1, 2, 0, 0, 0), 8);
    bench_value(b, t.log, bench_with(-1, 0, 0, 0, 0, 2), 8);
    bench_value(b, t.grad, bad_stats(), 8);
    bench_value(b, t.adam, bad_stats(), 8);
    bench_ask(b, t.w, NF);
    bench_expect(b, t.log, "log-of-zero", "net/log");
    bench_ask(b, t.log, NF);
    bench_expect(b, t.log, "log-of-zero", "net/log");

    /* MatMul bad: its weight of then is not known, and it is bad now */
    bench_again(b);
    bench_value(b, t.matmul, bad_stats(), 8);
    bench_ask(b, t.matmul, NF);
    assert_int_equal(bench_verdict(b, t.w), GD_WHY_UNKNOWN);
    bench_expect(b, t.w, "bad-weight", "net/fc.weight is NaN or Inf after the update");

    /* with the kept value it is known: it was good */
    bench_previous(b, t.w, bench_finite(-1, 1), 7);
    bench_ask(b, t.matmul, NF);
    assert_int_equal(bench_verdict(b, t.w), GD_WHY_GOOD);
    bench_expect(b, t.matmul, "", "net/matmul (MatMul) is the first");
}

static void kept_weight_was_bad(void **state)
{
    struct bench *b = *state;
    struct training t = make_training(b);

    bench_stop(b, 8, NONE);
    bench_value(b, t.x, bench_finite(1, 2), 8);
    bench_value(b, t.w, bad_stats(), 8);
    bench_value(b, t.matmul, bad_stats(), 8);
    bench_previous(b, t.w, bad_stats(), 7);
    bench_previous(b, t.adam, bad_stats(), 7);
    bench_value(b, t.adam, bad_stats(), 8);
    bench_value(b, t.grad, bad_stats(), 8); /* its value of step 7 is gone */
    bench_ask(b, t.matmul, NF);
    assert_int_equal(bench_verdict(b, t.w), GD_WHY_BAD);
    assert_int_equal(bench_verdict(b, t.adam), GD_WHY_BAD);
    assert_int_equal(bench_verdict(b, t.grad), GD_WHY_UNKNOWN);
    bench_expect(b, t.adam, "", "optimizer/adam (Adam)");
    assert_contains(b->why.text, "in step 7");
}

static void what_is_finite_after_an_update_was_before(void **state)
{
    struct bench *b = *state;
    struct training t = make_training(b);

    bench_stop(b, 8, NONE);
    bench_value(b, t.x, bench_finite(1, 2), 8);
    bench_value(b, t.w, bench_finite(-1, 1), 8);
    bench_value(b, t.matmul, bad_stats(), 8);
    bench_ask(b, t.matmul, NF);
    assert_int_equal(bench_verdict(b, t.w), GD_WHY_GOOD);
    assert_int_equal(b->why.origin, t.matmul);
    assert_int_equal(b->target->asked, 3); /* no previous value was asked for */
}

static void weight_that_was_made_so(void **state)
{
    struct bench *b = *state;
    struct training t = make_training(b);

    bench_stop(b, 1, t.matmul);
    bench_value(b, t.x, bench_finite(1, 2), 1);
    bench_value(b, t.w, bad_stats(), 0);
    bench_value(b, t.matmul, bad_stats(), 1);
    bench_ask(b, t.matmul, NF);
    bench_expect(b, t.w, "bad-weight", "Nothing has updated it yet");
}

static void optimizer_without_a_value(void **state)
{
    struct bench *b = *state;
    struct training t = make_training(b);

    bench_stop(b, 8, NONE);
    bench_value(b, t.w, bad_stats(), 8);
    bench_value(b, t.grad, bad_stats(), 8);
    bench_value(b, t.log, bench_finite(0, 1), 8);
    bench_value(b, t.matmul, bench_with(0, 1, 2, 0, 0, 0), 8);
    bench_ask(b, t.w, NF);
    assert_int_equal(bench_verdict(b, t.adam), GD_WHY_BAD); /* it wrote what is bad */
    bench_expect(b, t.grad, "division-by-zero", "as in net/log (Log)");
}

static void learning_rates_are_only_read(void **state)
{
    struct bench *b = *state;
    gd_node_id w = bench_leaf(b, "fc.weight", "Parameter");
    gd_node_id rate = bench_leaf(b, "learning_rate", "Parameter");
    gd_node_id grad = bench_node(b, "Gradients/g", "Exp", w, NONE, NONE);
    struct gd_output scalar = {.dtype = GD_FLOAT32, .shape = {.rank = 0}};
    gd_node_id momentum = bench_node(b, "opt", "ApplyMomentum", w, grad, rate);

    gd_graph_set_output(b->session->graph, rate, 0, &scalar);
    bench_stop(b, 3, NONE);
    bench_value(b, w, bad_stats(), 3);
    bench_value(b, momentum, bad_stats(), 3);
    bench_value(b, grad, bench_finite(0, 1), 3);
    bench_value(b, rate, bad_stats(), 3);
    bench_ask(b, w, NF);
    /* the rate has the value that was read; it is bad, and nothing wrote it */
    bench_expect(b, rate, "bad-weight", "learning_rate is NaN or Inf itself");
}

static void history_knows_since_when(void **state)
{
    struct bench *b = *state;
    struct training t = make_training(b);
    struct gd_stats good = bench_finite(-1, 1), bad = bad_stats();

    bench_open_history(b);
    bench_stop(b, 8, t.matmul);
    for (int64_t step = 1; step <= 7; step++) {
        bench_record(b, t.w, step < 5 ? good : bad, step);
    }
    bench_value(b, t.x, bench_finite(1, 2), 8);
    bench_value(b, t.w, bad, 7);
    bench_value(b, t.matmul, bad, 8);
    bench_value(b, t.adam, bad, 7);
    bench_value(b, t.grad, bench_finite(0, 1), 7);
    bench_ask(b, t.matmul, NF);
    assert_ok(b->code);
    assert_int_equal(b->why.since, 5);
}

/* ---- cycles, size ---------------------------------------------------------------------------- */

static void cycles_end(void **state)
{
    struct bench *b = *state;
    gd_node_id x = bench_leaf(b, "x", "Data");
    gd_node_id a = bench_node(b, "a", "Neg", x, NONE, NONE);
    gd_node_id c = bench_node(b, "c", "Neg", a, NONE, NONE);

    bench_connect(b, a, c, NONE);
    bench_stop(b, 1, NONE);
    bench_value(b, a, bad_stats(), 1);
    bench_value(b, c, bad_stats(), 1);
    bench_ask(b, c, NF);
    bench_expect(b, NONE, "", "Every bad value was computed from another bad one");
    assert_int_equal(b->why.count, 3);
    assert_true(b->nodes[2].shown_above);

    bench_again(b);
    bench_connect(b, a, a, NONE); /* one that reads itself */
    bench_ask(b, c, NF);
    assert_ok(b->code);
    for (enum gd_bad bad = GD_BAD_LARGE; bad <= GD_BAD_ZERO; bad++) {
        bench_ask(b, c, bad);
        assert_ok(b->code);
    }
}

static int answer_bad(struct gd_target *base, const struct gd_tensor_ref *ref, gd_stats_fn fn,
                      void *ctx, struct gd_err *err)
{
    struct gd_shape shape = {.rank = 1, .dim = {10}};
    struct gd_stats bad = bad_stats();

    ((struct bench_target *)base)->asked++;
    fn(ctx, GD_FLOAT32, &shape, &bad, 1, NULL);
    return GD_OK;
}

static void long_ways_are_cut(void **state)
{
    struct bench *b = *state;
    static struct gd_target_ops bad_ops;
    gd_node_id node = bench_leaf(b, "x", "Data");
    char name[32];

    for (int i = 0; i < 50000; i++) {
        snprintf(name, sizeof(name), "net/n%d", i);
        node = bench_node(b, name, "Neg", node, NONE, NONE);
    }
    bench_stop(b, 1, NONE);
    bad_ops = *b->target->target.ops;
    bad_ops.stats = answer_bad;
    b->target->target.ops = &bad_ops;
    bench_ask(b, node, NF);
    assert_ok(b->code);
    assert_true(b->why.cut);
    assert_int_equal(b->why.count, 20000);
    assert_int_equal(b->target->asked, 20000);
    assert_int_equal(b->nodes[1000].depth, 1000);
    bench_again(b);
    bench_ask(b, node, GD_BAD_LARGE);
    assert_true(b->why.cut);
    assert_in_range(b->target->asked, 1, 2001);
}

/* ---- masks ----------------------------------------------------------------------------------- */

static void masks_are_no_fault(void **state)
{
    struct bench *b = *state;
    gd_node_id x = bench_leaf(b, "x", "Data");
    gd_node_id mask = bench_node(b, "mask", "MaskedFill", x, NONE, NONE);
    gd_node_id sum = bench_node(b, "sum", "Add", x, mask, NONE);
    gd_node_id softmax = bench_node(b, "softmax", "Softmax", sum, NONE, NONE);

    bench_stop(b, 1, NONE);
    bench_value(b, x, bench_finite(-1, 1), 1);
    bench_value(b, mask, bench_with(-1, 1, 0, 0, 0, 5), 1);
    bench_value(b, sum, bench_with(-1, 1, 0, 0, 0, 5), 1);
    bench_value(b, softmax, bench_with(0, 1, 0, 5, 0, 0), 1);
    bench_ask(b, softmax, NF);
    bench_expect(b, softmax, "masked-row", "softmax (Softmax) has rows");
    assert_int_equal(bench_verdict(b, sum), GD_WHY_GOOD);
    assert_int_equal(bench_verdict(b, mask), GD_WHY_GOOD);
    bench_ask(b, mask, NF);
    assert_int_equal(b->why.origin, NONE);
    assert_contains(b->why.text, "a mask");

    /* NaN is never a mask */
    bench_again(b);
    bench_value(b, mask, bench_with(-1, 1, 0, 1, 0, 4), 1);
    bench_value(b, sum, bench_with(-1, 1, 0, 1, 0, 4), 1);
    bench_ask(b, softmax, NF);
    assert_int_equal(b->why.origin, mask);
}

static void excluded_nodes_are_no_fault(void **state)
{
    struct bench *b = *state;
    gd_node_id x = bench_leaf(b, "x", "Data");
    gd_node_id odd = bench_node(b, "odd", "Custom", x, NONE, NONE);
    gd_node_id soft = bench_node(b, "soft", "Softmax", odd, NONE, NONE);

    bench_stop(b, 1, NONE);
    bench_value(b, x, bench_finite(-1, 1), 1);
    bench_value(b, odd, bench_with(-1, 1, 0, 0, 2, 5), 1);
    bench_value(b, soft, bench_with(0, 1, 0, 5, 0, 0), 1);
    bench_ask(b, soft, NF);
    assert_int_equal(b->why.origin, odd);
    assert_ok(gd_exclude_add(b->debugger, "odd", NULL));
    bench_ask(b, soft, NF);
    bench_expect(b, soft, "softmax-of-inf", "soft (Softmax) received Inf");
}

/* Behind a value that is gone, -Inf may come from a mask that is gone as well; a logarithm makes
 * its own. */
static void infinities_behind_gone_values(void **state)
{
    struct bench *b = *state;
    gd_node_id x = (bench_leaf(b, "first", "Const"), bench_leaf(b, "x", "Input"));
    gd_node_id sum = bench_node(b, "sum", "Add", x, NONE, NONE);
    gd_node_id log = bench_node(b, "log", "Log", x, NONE, NONE);
    gd_node_id product = bench_node(b, "product", "Mul", sum, log, NONE);
    gd_node_id loss = bench_node(b, "loss", "ReduceMean", product, NONE, NONE);

    bench_stop(b, 1, NONE);
    bench_value(b, x, bench_with(0, 1, 5, 0, 0, 0), 1);
    bench_value(b, sum, bench_with(-1, 1, 0, 0, 0, 5), 1);
    bench_value(b, log, bench_with(0, 0, 2, 0, 0, 5), 1);
    bench_value(b, loss, bench_finite(-1, -1), 1);
    bench_ask(b, loss, GD_BAD_LARGE);
    assert_int_equal(bench_verdict(b, product), GD_WHY_UNKNOWN);
    assert_int_equal(bench_verdict(b, sum), GD_WHY_UNKNOWN);
    assert_int_equal(bench_verdict(b, log), GD_WHY_BAD);
    assert_null(strstr(b->why.text, "mask"));
}

/* ---- how it ends ----------------------------------------------------------------------------- */

static void trainer_lost_on_the_way(void **state)
{
    struct bench *b = *state;
    struct chain c = make_chain(b);

    b->target->late = true;
    bench_stop(b, 4, NONE);
    fill_chain(b, &c, 4);
    bench_ask(b, c.neg, NF);
    gd_session_on_lost(b->session, "the cable was cut");
    assert_int_equal(b->answers, 1);
    assert_int_equal(b->code, GD_ELOST);
    assert_contains(b->error, "the cable was cut");
    /* what has no values any more can still be asked about */
    bench_ask(b, c.neg, NF);
    assert_int_equal(b->answers, 1);
    assert_ok(b->code);
    assert_int_equal(b->why.origin, NONE);
}

static void debugger_ends_on_the_way(void **state)
{
    struct bench *b = *state;
    struct chain c = make_chain(b);

    b->target->late = true;
    bench_stop(b, 4, NONE);
    bench_ask(b, c.neg, NF);
    gd_debugger_destroy(b->debugger);
    assert_int_equal(b->answers, 1);
    assert_int_equal(b->code, GD_ELOST);
    free(b);
    *state = bench_make();
}

static void training_goes_on_on_the_way(void **state)
{
    struct bench *b = *state;
    struct chain c = make_chain(b);

    b->target->late = true;
    bench_stop(b, 4, NONE);
    fill_chain(b, &c, 4);
    bench_ask(b, c.neg, NF);
    gd_session_on_running(b->session);
    bench_answer(b, false);
    assert_int_equal(b->answers, 1);
    assert_int_equal(b->code, GD_ESTATE);
    assert_int_equal(b->target->asked, 1);
}

static void test_refused(void **state)
{
    struct bench *b = *state;
    struct chain c = make_chain(b);
    struct gd_err err;

    assert_int_equal(gd_why_ask(b->session, c.neg, 0, NF, NULL, NULL, NULL, &err), GD_ESTATE);
    bench_stop(b, 1, NONE);
    assert_int_equal(gd_why_ask(b->session, 999, 0, NF, NULL, NULL, NULL, &err), GD_ENOTFOUND);
    assert_int_equal(gd_why_ask(b->session, c.neg, 3, NF, NULL, NULL, NULL, &err), GD_ENOTFOUND);
    assert_contains(err.text, "net/neg has 1 output");
    gd_session_on_running(b->session);
    assert_int_equal(gd_why_ask(b->session, c.neg, 0, NF, NULL, NULL, NULL, &err), GD_ESTATE);
}

static void what_a_hit_looks_for(void **state)
{
    static const struct {
        const char *abbr;
        enum gd_bad bad;
    } table[] = {
        {"OO", GD_BAD_NONFINITE}, {"TO", GD_BAD_NONFINITE}, {"WO", GD_BAD_NONFINITE},
        {"GE", GD_BAD_NONFINITE}, {"TZ", GD_BAD_ZERO},      {"WI", GD_BAD_ZERO},
        {"GV", GD_BAD_SMALL},     {"TS", GD_BAD_ZERO},      {"WNC", GD_BAD_ZERO},
        {"TL", GD_BAD_LARGE},     {"GL", GD_BAD_LARGE},     {"WCL", GD_BAD_LARGE},
        {"WL", GD_BAD_LARGE},     {"TR", GD_BAD_LARGE},     {"AR", GD_BAD_LARGE},
    };
    static const struct {
        const char *expression;
        enum gd_bad bad;
    } expressions[] = {{"nan > 0", GD_BAD_NONFINITE},
                       {"inf > 3 || max > 1e4", GD_BAD_NONFINITE},
                       {"zero_percentage > 90", GD_BAD_ZERO},
                       {"abs_mean > 1e3", GD_BAD_LARGE}};
    struct gd_hit hit = {0};

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        if (gd_condition_find(table[i].abbr, &hit.kind, NULL) == GD_OK) {
            assert_int_equal(gd_why_of_hit(&hit), table[i].bad);
        }
    }
    hit.error = GD_HIT_INF; /* could not be checked for that */
    assert_int_equal(gd_why_of_hit(&hit), GD_BAD_NONFINITE);
    hit.error = 0;
    hit.kind = NULL;
    for (size_t i = 0; i < sizeof(expressions) / sizeof(expressions[0]); i++) {
        snprintf(hit.expression, sizeof(hit.expression), "%s", expressions[i].expression);
        assert_int_equal(gd_why_of_hit(&hit), expressions[i].bad);
    }
}

static const struct CMUnitTest tests[] = {
    BENCH_TEST(origin_is_the_first_bad_one),
    BENCH_TEST(tree_is_in_order_of_printing),
    BENCH_TEST(first_of_two_origins),
    BENCH_TEST(answers_may_come_late_and_in_any_order),
    BENCH_TEST(what_is_good_is_said_to_be),
    BENCH_TEST(not_computed_yet),
    BENCH_TEST(a_target_that_knows_no_steps),
    BENCH_TEST(no_statistics),
    BENCH_TEST(nothing_at_all_is_known),
    BENCH_TEST(weight_back_to_the_gradient_of_the_step_before),
    BENCH_TEST(weight_updated_since),
    BENCH_TEST(kept_weight_was_bad),
    BENCH_TEST(what_is_finite_after_an_update_was_before),
    BENCH_TEST(weight_that_was_made_so),
    BENCH_TEST(optimizer_without_a_value),
    BENCH_TEST(learning_rates_are_only_read),
    BENCH_TEST(history_knows_since_when),
    BENCH_TEST(cycles_end),
    BENCH_TEST(long_ways_are_cut),
    BENCH_TEST(masks_are_no_fault),
    BENCH_TEST(infinities_behind_gone_values),
    BENCH_TEST(excluded_nodes_are_no_fault),
    BENCH_TEST(trainer_lost_on_the_way),
    BENCH_TEST(debugger_ends_on_the_way),
    BENCH_TEST(training_goes_on_on_the_way),
    BENCH_TEST(test_refused),
    cmocka_unit_test(what_a_hit_looks_for),
};

RUN_TESTS()
