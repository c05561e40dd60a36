// SPDX-License-Identifier: GPL-3.0-or-later
/* Values that only the program can tell: where they lie, their statistics, those of the step
 * before, and what becomes of a program that tells nonsense. */
#include "eager.h"

#include "engine/history/history.h"
#include "engine/watch/watchpoint.h"

struct both {
    struct world w;
    struct eager e;
};

static int set_up(void **state)
{
    struct both *b = calloc(1, sizeof(*b));
    assert_non_null(b);
    world_open(&b->w, 0);
    b->e.ops = 4;
    b->e.batch = 2;
    *state = b;
    return 0;
}

static int tear_down(void **state)
{
    struct both *b = *state;
    eager_end(&b->e, &b->w);
    assert_int_equal(b->w.lost, 0);
    assert_int_equal(atomic_load(&b->e.located), 0); /* released in the end */
    world_close(&b->w);
    free(b);
    return 0;
}

static void expect_values(struct both *b, const char *node, enum gd_iter iter, int64_t want_step,
                          float first)
{
    struct gd_tensor *tensor = NULL;
    struct gd_err err = {0};
    int64_t step = -2;
    if (world_fetch(&b->w, node, iter, NULL, &tensor, &step, &err) != GD_OK) {
        fail_msg("%s: %s", node, err.text);
    }
    assert_int_equal(tensor->dtype, GD_FLOAT32);
    assert_int_equal(tensor->shape.rank, 1);
    assert_int_equal(tensor->shape.dim[0], EAGER_COUNT);
    for (int i = 0; i < EAGER_COUNT; i++) {
        float x;
        memcpy(&x, tensor->data + (size_t)i * sizeof(x), sizeof(x));
        assert_true(x == first + (float)i);
    }
    assert_int_equal(step, want_step);
    gd_tensor_unref(tensor);
}

static void values_are_asked_for(void **state)
{
    struct both *b = *state;
    b->e.parameter_first = true;
    eager_begin(&b->e, &b->w);
    expect_values(b, "net/w", GD_CURRENT, 0, eager_weight(0, 0));
    assert_int_equal(atomic_load(&b->e.locates), 1);
    world_run(&b->w, GD_RUN_STEP, 2, NULL);
    expect_values(b, "net/w", GD_CURRENT, 2, eager_weight(2, 0));
    expect_values(b, "net/op3", GD_CURRENT, 2, eager_value(2, 3, 0));
    world_run(&b->w, GD_RUN_TO_NODE, 0, "net/op1");
    expect_values(b, "net/op1", GD_CURRENT, 3, eager_value(3, 1, 0));
    expect_values(b, "net/op2", GD_CURRENT, 2, eager_value(2, 2, 0));
    struct gd_tensor *tensor = NULL;
    assert_ok(world_fetch(&b->w, "net/op1", GD_CURRENT, "[2:4]", &tensor, NULL, NULL));
    assert_int_equal(tensor->shape.dim[0], 2);
    gd_tensor_unref(tensor);
}

static bool is_released(struct world *w)
{
    const struct both *b = (const struct both *)(const void *)w;
    return atomic_load(&b->e.located) == 0;
}

static void what_is_read_is_released(void **state)
{
    struct both *b = *state;
    eager_begin(&b->e, &b->w);
    world_run(&b->w, GD_RUN_STEP, 1, NULL);
    expect_values(b, "net/op0", GD_CURRENT, 1, eager_value(1, 0, 0));
    world_until(&b->w, "the release", is_released); /* while it stands */
    assert_int_equal(atomic_load(&b->e.releases), 1);
    expect_values(b, "net/op1", GD_CURRENT, 1, eager_value(1, 1, 0));
    world_until(&b->w, "the release", is_released);
    assert_int_equal(atomic_load(&b->e.releases), 2);
}

static void statistics_of_the_source(void **state)
{
    struct both *b = *state;
    struct gd_stats stats;
    struct gd_err err = {0};
    int64_t step = -2;
    b->e.stats = true;
    eager_begin(&b->e, &b->w);
    world_run(&b->w, GD_RUN_STEP, 2, NULL);
    assert_ok(world_stats(&b->w, "net/op2", GD_CURRENT, &stats, &step, &err));
    assert_true(stats.min == -4711.0);
    assert_true(stats.max == (double)eager_value(2, 2, 5));
    assert_int_equal(stats.count, EAGER_COUNT);
    assert_int_equal(step, 2);
    assert_int_equal(atomic_load(&b->e.locates), 0);
    atomic_store(&b->e.odd, EAGER_BROKEN);
    assert_int_equal(world_stats(&b->w, "net/op2", GD_CURRENT, &stats, &step, &err), GD_EIO);
    assert_string_equal(err.text, "the training program has no such value");
    assert_int_equal(atomic_load(&b->e.stats_calls), 2);
}

static void statistics_that_we_compute(void **state)
{
    struct both *b = *state;
    struct gd_stats stats;
    eager_begin(&b->e, &b->w);
    world_run(&b->w, GD_RUN_STEP, 2, NULL);
    assert_ok(world_stats(&b->w, "net/op2", GD_CURRENT, &stats, NULL, NULL));
    assert_true(stats.min == (double)eager_value(2, 2, 0));
    assert_int_equal(atomic_load(&b->e.locates) > 0, 1);
    world_until(&b->w, "the release", is_released);
}

static void expect_error(struct both *b, enum eager_odd odd, int code, const char *text)
{
    struct gd_tensor *tensor = NULL;
    struct gd_stats stats;
    struct gd_err err = {0};
    atomic_store(&b->e.odd, (int)odd);
    assert_int_equal(world_fetch(&b->w, "net/op0", GD_CURRENT, NULL, &tensor, NULL, &err), code);
    assert_string_equal(err.text, text);
    assert_int_equal(world_stats(&b->w, "net/op0", GD_CURRENT, &stats, NULL, &err), code);
    atomic_store(&b->e.odd, EAGER_SANE);
}

static void reasons_reach_the_user(void **state)
{
    struct both *b = *state;
    eager_begin(&b->e, &b->w);
    world_run(&b->w, GD_RUN_STEP, 1, NULL);
    expect_error(b, EAGER_GONE, GD_ENODATA, "the program has let it go");
    expect_error(b, EAGER_SPARSE, GD_EUNSUPPORTED, "it is sparse");
    expect_error(b, EAGER_BROKEN, GD_EIO, "the training program has no such value");
    expect_error(b, EAGER_STRANGE_ANSWER, GD_EIO, "the training program has no such value");
    char longest[GRADB_WHY];
    memset(longest, 'x', sizeof(longest));
    longest[sizeof(longest) - 1] = '\0';
    expect_error(b, EAGER_LONG_WHY, GD_ENODATA, longest);
    expect_values(b, "net/op0", GD_CURRENT, 1, eager_value(1, 0, 0));
}

static void nonsense_is_refused(void **state)
{
    struct both *b = *state;
#define TOLD "the training program returned a value with "
    eager_begin(&b->e, &b->w);
    world_run(&b->w, GD_RUN_STEP, 1, NULL);
    expect_error(b, EAGER_NO_ADDRESS, GD_EIO, TOLD "no address");
    expect_error(b, EAGER_WRONG_TYPE, GD_EIO, TOLD "an unknown type");
    expect_error(b, EAGER_RANK_33, GD_EIO, TOLD "an impossible shape");
    expect_error(b, EAGER_NEGATIVE_SIZE, GD_EIO, TOLD "an impossible shape");
    expect_error(b, EAGER_HUGE_SHAPE, GD_EIO, TOLD "an impossible shape");
    expect_error(b, EAGER_FAR_STRIDES, GD_EIO, TOLD "strides outside the address range");
    expect_values(b, "net/op0", GD_CURRENT, 1, eager_value(1, 0, 0));
}

static void set_action(struct both *b, const char *condition, const char *where,
                       enum gd_watch_when when, enum gd_watch_action action)
{
    struct gd_watch_spec spec = {.where = where, .when = when, .action = action};
    struct gd_err err = {0};
    assert_ok(gd_condition_find(condition, &spec.condition, NULL));
    if (gd_watchpoint_add(b->w.debugger, &spec, NULL, &err) != GD_OK) {
        fail_msg("%s", err.text);
    }
}

static void set_watch(struct both *b, const char *condition, const char *where,
                      enum gd_watch_when when)
{
    set_action(b, condition, where, when, GD_WATCH_STOP);
}

static void keep_all(struct both *b)
{
    snprintf(b->w.debugger->settings.keep_previous, sizeof(b->w.debugger->settings.keep_previous),
             "all");
    assert_ok(gd_debugger_apply_keep_previous(b->w.debugger, NULL));
}

static void previous_values_are_kept_by_the_source(void **state)
{
    struct both *b = *state;
    b->e.keeps = true;
    eager_begin(&b->e, &b->w);
    keep_all(b);
    world_run(&b->w, GD_RUN_STEP, 2, NULL);
    assert_int_equal(atomic_load(&b->e.kept), 1 + b->e.ops);
    world_run(&b->w, GD_RUN_NEXT, 2, NULL);
    expect_values(b, "net/op0", GD_PREVIOUS, 2, eager_value(2, 0, 0));
    expect_values(b, "net/w", GD_PREVIOUS, 2, eager_weight(2, 0));
    b->w.debugger->settings.keep_previous[0] = '\0';
    assert_ok(gd_debugger_apply_keep_previous(b->w.debugger, NULL));
    world_run(&b->w, GD_RUN_STEP, 1, NULL);
    assert_int_equal(atomic_load(&b->e.kept), 0);
}

static void expect_hit(struct both *b, int64_t step, const char *node)
{
    const struct gd_session *session = world_session(&b->w);
    assert_string_equal(gd_stop_reason_name(session->stop.reason), "hit");
    assert_int_equal(session->stop.step, step);
    assert_true(session->hit_count > 0);
    assert_string_equal(session->hits[session->hit_count - 1].node_name, node);
}

static void exact_watchpoints_ask_at_that_moment(void **state)
{
    struct both *b = *state;
    b->e.stats = true;
    b->e.told = true;
    b->e.nan_op = 2;
    b->e.nan_step = 3;
    eager_begin(&b->e, &b->w);
    set_watch(b, "TO", "all", GD_WHEN_EXACT);
    world_run(&b->w, GD_RUN_CONTINUE, 0, NULL);
    expect_hit(b, 3, "net/op2");
    assert_string_equal(world_session(&b->w)->stop.node_name, "net/op2");
    /* Operators were looked at where they lie; statistics leave nothing to be released. */
    assert_int_equal(atomic_load(&b->e.stats_calls) >= 2 * b->e.ops + 3, 1);
    assert_int_equal(atomic_load(&b->e.locates), 0);
}

/* The history says of it that it has no value, which needs no question. */
static void what_did_not_run_is_not_asked_for(void **state)
{
    struct both *b = *state;
    b->e.stats = true;
    b->e.told = true;
    b->e.rests_from = 3;
    eager_begin(&b->e, &b->w);
    set_watch(b, "TO", "net/op*", GD_WHEN_EXACT);
    world_run(&b->w, GD_RUN_STEP, 3, NULL);
    int before = atomic_load(&b->e.stats_calls);
    world_run(&b->w, GD_RUN_STEP, 2, NULL);
    assert_int_equal(atomic_load(&b->e.stats_calls) - before, 2 * (b->e.ops - 1));
    assert_int_equal(atomic_load(&b->e.locates), 0);
}

/* At the end of the step nothing is missing of it; of what did run and is gone, that is told. */
static void what_did_not_run_is_not_missing(void **state)
{
    struct both *b = *state;
    char last[32];
    b->e.told = true;
    b->e.rests_from = 3;
    eager_begin(&b->e, &b->w);
    snprintf(last, sizeof(last), "net/op%d", b->e.ops - 1);
    world_run(&b->w, GD_RUN_STEP, 2, NULL);
    set_watch(b, "TO", last, GD_WHEN_STEP_END);
    set_watch(b, "TO", "net/op1", GD_WHEN_STEP_END);
    atomic_store(&b->e.odd, EAGER_GONE);
    world_run(&b->w, GD_RUN_STEP, 2, NULL);
    int at_end = 0;
    for (gradb_node node = 1; node < 1000; node++) {
        at_end += gradb_wants_at_end(b->e.agent, node);
    }
    assert_int_equal(at_end, 2);
    assert_false(gradb_wants_new(b->e.agent)); /* only these */
    atomic_store(&b->e.odd, EAGER_SANE);
    const struct gd_session *session = world_session(&b->w);
    assert_int_equal(session->hit_count, 1);
    assert_string_equal(session->hits[0].node_name, "net/op1");
    set_watch(b, "TO", "all", GD_WHEN_STEP_END);
    world_run(&b->w, GD_RUN_STEP, 1, NULL);
    assert_true(gradb_wants_new(b->e.agent));
}

static void without_statistics_values_are_located(void **state)
{
    struct both *b = *state;
    b->e.nan_op = 1;
    b->e.nan_step = 2;
    eager_begin(&b->e, &b->w);
    set_watch(b, "TO", "all", GD_WHEN_EXACT);
    world_run(&b->w, GD_RUN_CONTINUE, 0, NULL);
    expect_hit(b, 2, "net/op1");
    assert_int_equal(atomic_load(&b->e.located), 0); /* at the end of the pass */
    assert_int_equal(atomic_load(&b->e.locates) > 0, 1);
}

static bool is_holding(struct world *w)
{
    const struct both *b = (const struct both *)(const void *)w;
    return atomic_load(&b->e.holding) != 0;
}

static bool has_hit(struct world *w)
{
    return world_session(w)->hit_count > 0;
}

static void on_costs(void *ctx, const struct gd_watch_total *total)
{
    *(bool *)ctx = true;
}

static bool costs_told;
static bool are_costs_told(struct world *w)
{
    return costs_told;
}

/* The first plan's report is judged while the source is still asked for a value of the second. */
static void a_verdict_counts_before_it_is_waited_for(void **state)
{
    struct both *b = *state;
    b->e.stats = true;
    b->e.nan_op = 1;
    b->e.nan_step = 2;
    eager_begin(&b->e, &b->w);
    world_run(&b->w, GD_RUN_STEP, 1, NULL);
    set_watch(b, "TO", "net/op1", GD_WHEN_STEP_END);
    set_action(b, "TO", "net/w", GD_WHEN_STEP_END, GD_WATCH_TRACE);
    atomic_store(&b->e.hold_weight, 1);
    unsigned stops = b->w.stops;
    world_resume(&b->w, GD_RUN_CONTINUE, 0, NULL);
    world_until(&b->w, "the source to be asked", is_holding);
    world_until(&b->w, "the hit", has_hit);
    costs_told = false; /* what is answered after the verdict has come */
    assert_ok(gd_watch_costs(b->w.debugger, on_costs, &costs_told, NULL));
    world_until(&b->w, "the costs", are_costs_told);
    assert_true(is_holding(&b->w));
    sem_post(&b->e.let_go);
    world_until_stops(&b->w, stops + 1);
    expect_hit(b, 2, "net/op1");
}

/* Values that are gone at the end of the step were copied when their operator had run. */
static void end_of_step_watchpoints_see_what_is_gone(void **state)
{
    struct both *b = *state;
    b->e.told = true;
    b->e.nan_op = 1;
    b->e.nan_step = 2;
    eager_begin(&b->e, &b->w);
    set_watch(b, "TO", "all", GD_WHEN_STEP_END);
    world_run(&b->w, GD_RUN_CONTINUE, 0, NULL);
    expect_hit(b, 2, "net/op1");
    assert_true(world_session(&b->w)->stop.at_step_end);
    atomic_store(&b->e.odd, EAGER_GONE);
    struct gd_tensor *tensor = NULL;
    int64_t step = 0;
    assert_ok(world_fetch(&b->w, "net/op3", GD_CURRENT, NULL, &tensor, &step, NULL));
    assert_int_equal(step, 2);
    gd_tensor_unref(tensor);
    atomic_store(&b->e.odd, EAGER_SANE);
}

/* Exactly what the source is asked for then; it may free the values afterwards. */
static void what_is_looked_at_is_announced(void **state)
{
    struct both *b = *state;
    b->e.stats = true;
    b->e.looks = true;
    eager_begin(&b->e, &b->w);
    set_watch(b, "TO", "all", GD_WHEN_STEP_END);
    world_run(&b->w, GD_RUN_STEP, 3, NULL);
    assert_int_equal(atomic_load(&b->e.announced) > 0, 1);
    assert_int_equal(atomic_load(&b->e.announced), atomic_load(&b->e.stats_calls));
    world_until(&b->w, "the release", is_released);
}

static void expect_loss(struct both *b, int64_t step)
{
    const struct gd_scalar *scalar = gd_session_scalar(world_session(&b->w), "loss");
    assert_non_null(scalar);
    assert_int_equal(scalar->step, step);
    assert_true(scalar->value == (double)step);
}

static void numbers_may_come_late_but_before_a_stop(void **state)
{
    struct both *b = *state;
    b->e.stats = true;
    b->e.told = true;
    b->e.looks = true;
    eager_begin(&b->e, &b->w);
    world_run(&b->w, GD_RUN_STEP, 3, NULL);
    assert_int_equal(atomic_load(&b->e.put_off), 3);
    expect_loss(b, 3);
    world_run(&b->w, GD_RUN_TO_NODE, 0, "net/op1");
    world_run(&b->w, GD_RUN_STEP, 1, NULL);
    assert_int_equal(atomic_load(&b->e.put_off), 4);
    expect_loss(b, 4);
    set_watch(b, "TO", "all", GD_WHEN_EXACT); /* its condition could be about the loss */
    world_run(&b->w, GD_RUN_STEP, 2, NULL);
    assert_int_equal(atomic_load(&b->e.put_off), 4);
    expect_loss(b, 6);
}

/* What could not be had is told once, and the run does not stop for it. */
static void values_that_are_gone_do_not_stop_the_run(void **state)
{
    struct both *b = *state;
    b->e.stats = true;
    eager_begin(&b->e, &b->w);
    set_watch(b, "TO", "all", GD_WHEN_EXACT);
    atomic_store(&b->e.odd, EAGER_GONE);
    world_run(&b->w, GD_RUN_STEP, 3, NULL);
    assert_string_equal(gd_stop_reason_name(world_session(&b->w)->stop.reason), "step");
    atomic_store(&b->e.odd, EAGER_SANE);
}

static void differences_come_from_the_source(void **state)
{
    struct both *b = *state;
    b->e.stats = true;
    b->e.keeps = true;
    eager_begin(&b->e, &b->w);
    set_watch(b, "WCL", "all", GD_WHEN_STEP_END);
    world_run(&b->w, GD_RUN_STEP, 3, NULL);
    assert_int_equal(atomic_load(&b->e.kept) > 0, 1);
    struct gd_stats stats;
    assert_ok(world_stats(&b->w, "net/op0", GD_CURRENT, &stats, NULL, NULL));
    assert_true(stats.has_prev);
    assert_true(stats.mean_abs_delta == 1000.0);
}

/* Their range is that of the source's first answer. */
static void histograms_come_from_the_source(void **state)
{
    struct both *b = *state;
    struct gd_history_bins bins[4];
    uint32_t index;
    b->e.stats = true;
    b->e.keeps = true;
    eager_begin(&b->e, &b->w);
    set_watch(b, "HI", "all", GD_WHEN_STEP_END);
    world_run(&b->w, GD_RUN_STEP, 3, NULL);
    const struct gd_history *history = world_session(&b->w)->history;
    assert_non_null(history);
    assert_true(gd_history_find_bins(history, "net/w", 0, &index));
    assert_int_equal(gd_history_read_bins(history, index, bins, 4), 3);
    for (int step = 1; step <= 3; step++) {
        assert_int_equal(bins[step - 1].step, step);
        assert_true(bins[step - 1].lo == -4711.0);
        assert_true(bins[step - 1].hi == (double)eager_weight(step, EAGER_COUNT - 1));
        for (int i = 0; i < GD_WATCH_BINS; i++) {
            assert_int_equal(bins[step - 1].bin[i], i);
        }
    }
    assert_int_equal(world_session(&b->w)->hit_count, 0);
    assert_true(atomic_load(&b->e.stats_calls) >= 6);
}

static void library_frames_are_marked(void **state)
{
    struct both *b = *state;
    uint32_t count = 0;
    eager_begin(&b->e, &b->w);
    world_run(&b->w, GD_RUN_STEP, 1, NULL);
    const struct gd_frame *frame =
        gd_graph_stack(world_session(&b->w)->graph, world_node(&b->w, "net/op1"), &count);
    assert_int_equal(count, 2);
    assert_true(frame[0].library);
    assert_false(frame[1].library);
}

static const struct CMUnitTest tests[] = {
    TEST(values_are_asked_for),
    TEST(what_is_read_is_released),
    TEST(statistics_of_the_source),
    TEST(statistics_that_we_compute),
    TEST(reasons_reach_the_user),
    TEST(nonsense_is_refused),
    TEST(previous_values_are_kept_by_the_source),
    TEST(exact_watchpoints_ask_at_that_moment),
    TEST(what_did_not_run_is_not_asked_for),
    TEST(what_did_not_run_is_not_missing),
    TEST(without_statistics_values_are_located),
    TEST(a_verdict_counts_before_it_is_waited_for),
    TEST(end_of_step_watchpoints_see_what_is_gone),
    TEST(what_is_looked_at_is_announced),
    TEST(numbers_may_come_late_but_before_a_stop),
    TEST(values_that_are_gone_do_not_stop_the_run),
    TEST(histograms_come_from_the_source),
    TEST(differences_come_from_the_source),
    TEST(library_frames_are_marked),
};

RUN_TESTS()
