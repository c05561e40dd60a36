// SPDX-License-Identifier: GPL-3.0-or-later
/* Values of a stopped run: whole and cut, current and previous, through memory and socket. */
#include "world.h"

#include <math.h>

struct both {
    struct world w;
    struct toy toy;
};

static int start_with(void **state, bool shared_memory)
{
    struct both *b = calloc(1, sizeof(*b));
    assert_non_null(b);
    world_open(&b->w, 0);
    b->w.debugger->settings.shared_memory = shared_memory;
    b->toy.wait = 60;
    b->toy.nan_at_3 = true;
    toy_start(&b->toy, &b->w);
    world_until_stops(&b->w, 1);
    *state = b;
    return 0;
}

static int set_up(void **state)
{
    return start_with(state, true);
}

static int start_socket(void **state)
{
    return start_with(state, false);
}

static int tear_down(void **state)
{
    struct both *b = *state;
    atomic_store(&b->toy.end, 1);
    world_resume(&b->w, GD_RUN_CONTINUE, 0, NULL);
    world_until(&b->w, "the end of the training", world_has_ended);
    toy_join(&b->toy);
    world_close(&b->w);
    free(b);
    return 0;
}

/* The value of a node as it should be, and its step. */
static void check_value(struct both *b, const char *name, enum toy_node node, enum gd_iter iter,
                        int64_t step)
{
    struct gd_err err = {0};
    struct gd_tensor *tensor = NULL;
    int64_t got_step = 0;
    if (world_fetch(&b->w, name, iter, NULL, &tensor, &got_step, &err) != GD_OK) {
        fail_msg("%s: %s", name, err.text);
    }
    assert_int_equal(got_step, step);
    assert_int_equal(tensor->dtype, GD_FLOAT64);
    int64_t count = gd_tensor_count(tensor);
    assert_true(count > 0);
    for (int64_t i = 0; i < count; i++) {
        /* The MatMul lies column by column: element (r, c) is number c * ROWS + r. */
        int64_t at = node == TOY_MATMUL ? i % TOY_COLS * TOY_ROWS + i / TOY_COLS : i;
        assert_true(gd_tensor_get(tensor, i) == toy_value(step, node, at));
    }
    gd_tensor_unref(tensor);
}

static void expect_no_value(struct both *b, const char *name, enum gd_iter iter)
{
    struct gd_err err = {0};
    struct gd_tensor *tensor = NULL;
    assert_int_equal(world_fetch(&b->w, name, iter, NULL, &tensor, NULL, &err), GD_ENODATA);
    assert_null(tensor);
    assert_contains(err.text, "value");
}

static void before_the_first_step(void **state)
{
    struct both *b = *state;
    struct gd_tensor *tensor = NULL;
    int64_t step = -2;
    assert_ok(world_fetch(&b->w, "net/w", GD_CURRENT, NULL, &tensor, &step, NULL));
    assert_int_equal(step, 0);
    assert_true(gd_tensor_get(tensor, 3) == -4);
    gd_tensor_unref(tensor);
    expect_no_value(b, "net/MatMul-op1", GD_CURRENT);
    expect_no_value(b, "net/w", GD_PREVIOUS);
}

static void inside_a_step(void **state)
{
    struct both *b = *state;
    world_run(&b->w, GD_RUN_TO_NODE, 0, "net/MatMul-op1");
    check_value(b, "net/MatMul-op1", TOY_MATMUL, GD_CURRENT, 1);
    expect_no_value(b, "net/ReLU-op2", GD_CURRENT);
    expect_no_value(b, "Gradients/net/w", GD_CURRENT);
    world_run(&b->w, GD_RUN_STEP, 1, NULL);
    check_value(b, "Gradients/net/w", TOY_GRAD, GD_CURRENT, 1);
    check_value(b, "net/w", TOY_W, GD_CURRENT, 1);
    world_run(&b->w, GD_RUN_TO_NODE, 0, "net/MatMul-op1");
    check_value(b, "net/x", TOY_X, GD_CURRENT, 2);
    check_value(b, "net/MatMul-op1", TOY_MATMUL, GD_CURRENT, 2);
    check_value(b, "Gradients/net/w", TOY_GRAD, GD_CURRENT, 1); /* not yet in this step */
    check_value(b, "net/w", TOY_W, GD_CURRENT, 1);
}

static void previous_values(void **state)
{
    struct both *b = *state;
    gd_node_id keep[] = {world_node(&b->w, "net/w"), world_node(&b->w, "net/MatMul-op1")};
    assert_ok(gd_target_keep_previous(world_session(&b->w)->target, keep, 2, NULL));
    world_run(&b->w, GD_RUN_STEP, 1, NULL);
    expect_no_value(b, "net/MatMul-op1", GD_PREVIOUS);
    world_run(&b->w, GD_RUN_STEP, 1, NULL); /* stands after step 2: previous is step 1's */
    check_value(b, "net/MatMul-op1", TOY_MATMUL, GD_CURRENT, 2);
    check_value(b, "net/MatMul-op1", TOY_MATMUL, GD_PREVIOUS, 1);
    check_value(b, "net/w", TOY_W, GD_PREVIOUS, 1);
    expect_no_value(b, "net/ReLU-op2", GD_PREVIOUS);
    world_run(&b->w, GD_RUN_TO_NODE, 0, "net/MatMul-op1"); /* in step 3: previous is step 2's */
    check_value(b, "net/MatMul-op1", TOY_MATMUL, GD_CURRENT, 3);
    check_value(b, "net/MatMul-op1", TOY_MATMUL, GD_PREVIOUS, 2);
    world_run(&b->w, GD_RUN_STEP, 4, NULL); /* steps that nobody looked at are kept, too */
    check_value(b, "net/w", TOY_W, GD_CURRENT, 6);
    check_value(b, "net/w", TOY_W, GD_PREVIOUS, 5);
    assert_ok(gd_target_keep_previous(world_session(&b->w)->target, NULL, 0, NULL));
    expect_no_value(b, "net/w", GD_PREVIOUS);
}

static void expect_slice(struct both *b, const char *slice, int rank, const int64_t *dims,
                         const double *values)
{
    struct gd_err err = {0};
    struct gd_tensor *tensor = NULL;
    if (world_fetch(&b->w, "net/MatMul-op1", GD_CURRENT, slice, &tensor, NULL, &err) != GD_OK) {
        fail_msg("%s: %s", slice, err.text);
    }
    assert_int_equal(tensor->shape.rank, rank);
    for (int i = 0; i < rank; i++) {
        assert_int_equal(tensor->shape.dim[i], dims[i]);
    }
    for (int64_t i = 0; i < gd_tensor_count(tensor); i++) {
        assert_true(gd_tensor_get(tensor, i) == values[i]);
    }
    gd_tensor_unref(tensor);
}

static double value_at(int r, int c)
{
    return toy_value(1, TOY_MATMUL, c * TOY_ROWS + r);
}

static void sends_slices(void **state)
{
    struct both *b = *state;
    struct gd_err err = {0};
    struct gd_tensor *tensor = NULL;
    world_run(&b->w, GD_RUN_STEP, 1, NULL);
    const double row[] = {value_at(1, 0), value_at(1, 1), value_at(1, 2),
                          value_at(1, 3), value_at(1, 4), value_at(1, 5)};
    expect_slice(b, "[1]", 1, (int64_t[]){TOY_COLS}, row);
    const double corner[] = {value_at(3, 5), value_at(3, 3), value_at(2, 5), value_at(2, 3)};
    expect_slice(b, "[:1:-1, -1:2:-2]", 2, (int64_t[]){2, 2}, corner);
    expect_slice(b, "[2, 3]", 0, NULL, (double[]){value_at(2, 3)});
    const double column[] = {value_at(0, 2), value_at(1, 2), value_at(2, 2), value_at(3, 2)};
    expect_slice(b, "[..., None, 2]", 2, (int64_t[]){TOY_ROWS, 1}, column);
    expect_slice(b, "[4:]", 2, (int64_t[]){0, TOY_COLS}, NULL);
    assert_int_equal(world_fetch(&b->w, "net/MatMul-op1", GD_CURRENT, "[4]", &tensor, NULL, &err),
                     GD_EINVAL);
    assert_contains(err.text, "4");
}

static void expect_abridged(struct both *b, const char *slice)
{
    char abridged[32];
    struct gd_tensor *whole, *part;
    snprintf(abridged, sizeof(abridged), "~%s", slice ? slice : "");
    assert_ok(world_fetch(&b->w, "net/Big-op4", GD_CURRENT, slice, &whole, NULL, NULL));
    assert_ok(world_fetch(&b->w, "net/Big-op4", GD_CURRENT, abridged, &part, NULL, NULL));
    assert_false(whole->abridged);
    assert_true(part->abridged && gd_shape_equal(&part->whole, &whole->shape));
    assert_int_equal(gd_tensor_count(part), 2 * GD_EDGE);
    for (int64_t i = 0; i < 2 * GD_EDGE; i++) {
        int64_t at = i < GD_EDGE ? i : gd_tensor_count(whole) - 2 * GD_EDGE + i;
        assert_true(gd_tensor_get(part, i) == gd_tensor_get(whole, at));
    }
    gd_tensor_unref(whole);
    gd_tensor_unref(part);
}

/* Only the ends of long axes are sent, of the value or of a slice. */
static void abridged_values(void **state)
{
    struct both *b = *state;
    struct gd_tensor *tensor;
    world_run(&b->w, GD_RUN_STEP, 1, NULL);
    expect_abridged(b, NULL);
    expect_abridged(b, "[::-2]");
    assert_ok(world_fetch(&b->w, "net/MatMul-op1", GD_CURRENT, "~", &tensor, NULL, NULL));
    assert_false(tensor->abridged); /* short */
    assert_int_equal(gd_tensor_count(tensor), TOY_ROWS * TOY_COLS);
    gd_tensor_unref(tensor);
}

/* Sixteen times the whole of the large value, kept in between: the pool has to grow and to shrink.
 */
static void large_values(void **state)
{
    struct both *b = *state;
    struct gd_tensor *kept[4] = {0};
    for (int i = 1; i <= 16; i++) {
        world_run(&b->w, GD_RUN_STEP, 1, NULL);
        struct gd_tensor *tensor = NULL;
        int64_t step = 0;
        assert_ok(world_fetch(&b->w, "net/Big-op4", GD_CURRENT, NULL, &tensor, &step, NULL));
        assert_int_equal(step, i);
        gd_tensor_unref(kept[i % 4]);
        kept[i % 4] = tensor;
        for (int64_t j = i < 4 ? 1 : i - 3; j <= i; j++) { /* older ones did not change */
            assert_true(gd_tensor_get(kept[j % 4], 0) == toy_value(j, TOY_BIG_NODE, 0));
            assert_true(gd_tensor_get(kept[j % 4], TOY_BIG - 1) ==
                        toy_value(j, TOY_BIG_NODE, TOY_BIG - 1));
        }
    }
    struct gd_tensor *part = NULL;
    assert_ok(world_fetch(&b->w, "net/Big-op4", GD_CURRENT, "[::-2]", &part, NULL, NULL));
    assert_int_equal(part->shape.dim[0], TOY_BIG / 2);
    assert_true(gd_tensor_get(part, 0) == toy_value(16, TOY_BIG_NODE, TOY_BIG - 1));
    gd_tensor_unref(part);
    for (int i = 0; i < 4; i++) {
        gd_tensor_unref(kept[i]);
    }
}

struct fact {
    char tensors[160];
};

static void on_fact(void *ctx, const char *name, const char *value)
{
    struct fact *fact = ctx;
    if (strcmp(name, "tensors") == 0) {
        snprintf(fact->tensors, sizeof(fact->tensors), "%s", value);
    }
}

static void shared_memory_is_used(void **state)
{
    struct both *b = *state;
    struct gd_target *target = world_session(&b->w)->target;
    struct fact fact = {0};
    large_values(state);
    target->ops->describe(target, on_fact, &fact);
    assert_contains(fact.tensors, "through shared memory");
    assert_null(strstr(fact.tensors, "(0 segments"));
}

static void shared_memory_can_be_off(void **state)
{
    struct both *b = *state;
    struct gd_target *target = world_session(&b->w)->target;
    struct fact fact = {0};
    large_values(state);
    target->ops->describe(target, on_fact, &fact);
    assert_string_equal(fact.tensors, "through the socket");
}

static void tensors_outlive_the_trainer(void **state)
{
    struct both *b = *state;
    struct gd_tensor *tensor = NULL;
    world_run(&b->w, GD_RUN_STEP, 1, NULL);
    assert_ok(world_fetch(&b->w, "net/Big-op4", GD_CURRENT, NULL, &tensor, NULL, NULL));
    assert_ok(gd_target_kill(world_session(&b->w)->target, NULL));
    world_until(&b->w, "the end of the training", world_has_ended);
    gd_debugger_reap(b->w.debugger);
    assert_true(gd_tensor_get(tensor, 0) == toy_value(1, TOY_BIG_NODE, 0));
    gd_tensor_unref(tensor);
    toy_join(&b->toy);
    world_close(&b->w);
    free(b);
}

static void sends_statistics(void **state)
{
    struct both *b = *state;
    struct gd_err err = {0};
    struct gd_stats stats;
    int64_t step = 0;
    gd_node_id keep = world_node(&b->w, "net/ReLU-op2");
    assert_int_equal(world_stats(&b->w, "net/ReLU-op2", GD_CURRENT, &stats, &step, &err),
                     GD_ENODATA);
    assert_ok(gd_target_keep_previous(world_session(&b->w)->target, &keep, 1, &err));
    world_run(&b->w, GD_RUN_STEP, 2, NULL);
    assert_ok(world_stats(&b->w, "net/ReLU-op2", GD_CURRENT, &stats, &step, &err));
    assert_int_equal(step, 2);
    assert_int_equal(stats.count, TOY_ROWS * TOY_COLS);
    assert_int_equal(stats.nan, 0);
    assert_true(stats.min == toy_value(2, TOY_RELU, 0));
    assert_true(stats.max == toy_value(2, TOY_RELU, TOY_ROWS * TOY_COLS - 1));
    assert_true(fabs(stats.mean - (stats.min + stats.max) / 2) < 1e-9);
    assert_true(stats.has_prev);
    assert_true(fabs(stats.mean_abs_delta - 1000) < 1e-9);
    world_run(&b->w, GD_RUN_STEP, 1, NULL);
    assert_ok(world_stats(&b->w, "net/ReLU-op2", GD_CURRENT, &stats, &step, &err));
    assert_int_equal(stats.nan, 1);
    assert_ok(world_stats(&b->w, "net/ReLU-op2", GD_PREVIOUS, &stats, &step, &err));
    assert_int_equal(step, 2);
    assert_int_equal(stats.nan, 0);
    assert_false(stats.has_prev);
    assert_ok(world_stats(&b->w, "net/x", GD_CURRENT, &stats, &step, &err));
    assert_false(stats.has_prev); /* nobody keeps it */
}

static unsigned answers, refused;

static void count_answer(void *ctx, struct gd_tensor *tensor, int64_t step,
                         const struct gd_err *err)
{
    answers++;
    refused += tensor == NULL && err->code == GD_ESTATE;
}

static bool all_answered(struct world *w)
{
    return answers == 300;
}

/* Requests that are on their way when the run goes on are answered, one way or the other. */
static void going_on_answers_what_waits(void **state)
{
    struct both *b = *state;
    struct gd_tensor_ref ref = {.node = world_node(&b->w, "net/Big-op4")};
    world_run(&b->w, GD_RUN_STEP, 1, NULL);
    answers = refused = 0;
    for (int i = 0; i < 300; i++) {
        assert_ok(
            gd_target_fetch(world_session(&b->w)->target, &ref, NULL, count_answer, NULL, NULL));
    }
    world_run(&b->w, GD_RUN_STEP, 1, NULL);
    world_until(&b->w, "the answers", all_answered);
    check_value(b, "net/ReLU-op2", TOY_RELU, GD_CURRENT, 2);
}

#define SOCKET(f) cmocka_unit_test_setup_teardown(f, start_socket, tear_down)
static const struct CMUnitTest tests[] = {
    TEST(before_the_first_step),
    TEST(inside_a_step),
    TEST(previous_values),
    TEST(sends_slices),
    TEST(abridged_values),
    TEST(sends_statistics),
    TEST(shared_memory_is_used),
    SOCKET(shared_memory_can_be_off),
    SOCKET(sends_slices),
    TEST(going_on_answers_what_waits),
    SOCKET(going_on_answers_what_waits),
    cmocka_unit_test_setup(tensors_outlive_the_trainer, set_up),
};

RUN_TESTS()
