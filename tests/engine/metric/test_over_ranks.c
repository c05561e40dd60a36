// SPDX-License-Identifier: GPL-3.0-or-later
/* Metrics over two ranks, whose counts the test gives: when there is a number, of which samples,
 * and what waits for it. */
#include <stdio.h>

#include "../../unit.h"
#include "engine/metric/over_ranks.h"
#include "fake_target.h"

#define RANKS 2

struct bench {
    struct gd_debugger *debugger;
    struct gd_session *session[RANKS];
    double clock;
    int verdicts, stops; /* that were given later */
    char event[300];     /* the last one */
};

static struct bench *the_bench;
static struct gd_target_ops ops;

static double read_clock(void *ctx)
{
    return *(double *)ctx;
}

static void take_verdict(struct gd_target *target, bool stop)
{
    assert_ptr_equal(target->session, the_bench->session[0]);
    the_bench->verdicts++;
    the_bench->stops += stop;
}

static int set_events(struct gd_target *target, const struct gd_event_wish *wishes, size_t count,
                      struct gd_err *err)
{
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(wishes[i].test_count, 0); /* no process can judge them */
    }
    return GD_OK;
}

static void observe_event(void *ctx, const struct gd_event *event)
{
    struct bench *bench = ctx;

    if (event->type == GD_EV_EVENT) {
        snprintf(bench->event, sizeof(bench->event), "%s", event->note->text);
    }
}

static void start_rank(struct bench *bench, int rank)
{
    struct gd_peer peer = {.rank = rank, .world_size = RANKS, .job = "job"};
    struct fake_target *fake = fake_create(true, NULL);
    struct gd_stop stop = {.reason = GD_STOP_CONNECTED, .at_step_end = true, .node = GD_NO_NODE};

    ops = *fake->target.ops;
    ops.event_verdict = take_verdict;
    ops.set_events = set_events;
    fake->target.ops = &ops;
    fake->target.capabilities |= GD_CAN_EVENTS;
    assert_ok(
        gd_session_create(bench->debugger, &fake->target, &peer, &bench->session[rank], NULL));
    gd_session_on_stopped(bench->session[rank], &stop);
}

/* Both ranks run, with the metric. */
static struct bench *start_bench(const char *metric)
{
    struct bench *bench = calloc(1, sizeof(*bench));
    struct gd_metric_spec spec;

    the_bench = bench;
    assert_ok(gd_debugger_create(&bench->debugger, NULL));
    bench->debugger->now = read_clock;
    bench->debugger->now_ctx = &bench->clock;
    assert_ok(gd_debugger_observe(bench->debugger, observe_event, bench));
    for (int i = 0; i < RANKS; i++) {
        start_rank(bench, i);
    }
    assert_ok(gd_metric_parse(metric, &spec, NULL));
    assert_ok(gd_over_ranks_define(gd_ranks_of(bench->session[0]), &spec, NULL));
    for (int i = 0; i < RANKS; i++) {
        gd_session_on_running(bench->session[i]);
    }
    return bench;
}

static void destroy_bench(struct bench *bench)
{
    gd_debugger_destroy(bench->debugger);
    free(bench);
}

struct counted {
    const char *definition;
    int64_t step;
    uint64_t epoch;
    bool evaluation;
    int samples, right; /* 0 samples: none */
    const char *missing;
    bool late;
};

static void give_counts(struct bench *bench, int rank, struct counted c)
{
    char text[100] = "";
    struct gd_metric_part part = {.definition = c.definition,
                                  .evaluation = c.evaluation,
                                  .step = c.step,
                                  .late = c.late,
                                  .epoch = c.epoch,
                                  .counts = text,
                                  .missing = c.missing ? c.missing : ""};

    if (c.samples > 0) {
        snprintf(text, sizeof(text), "3 0 0 0 0 %d 1 0*4 %d 0x0p+0", c.samples, c.right);
    }
    gd_session_on_metric_part(bench->session[rank], &part);
}

#define COUNT(rank, ...) give_counts(bench, rank, (struct counted){"accuracy ranks", __VA_ARGS__})

/* The number of the step, in both sessions that live. */
static void expect_number(const struct bench *bench, const char *name, int64_t step, double value)
{
    for (int i = 0; i < RANKS; i++) {
        if (gd_session_is_live(bench->session[i])) {
            const struct gd_scalar *scalar = gd_session_scalar(bench->session[i], name);
            assert_non_null(scalar);
            assert_int_equal(scalar->step, step);
            assert_true(scalar->value > value - 1e-9 && scalar->value < value + 1e-9);
        }
    }
}

static void expect_result(const struct bench *bench, int ranks, const char *why)
{
    struct gd_over_result result;

    assert_true(gd_over_ranks_result(gd_ranks_of(bench->session[0]), "accuracy", false, &result));
    assert_int_equal(result.ranks, ranks);
    assert_int_equal(result.world, RANKS);
    assert_string_equal(result.why, why);
}

static enum gd_event_verdict raise_event(struct bench *bench, enum gd_happening kind, int64_t step)
{
    struct gd_happened what = {.kind = kind, .step = step};
    return gd_session_on_happening(bench->session[0], &what, true);
}

static void catch_when(struct bench *bench, enum gd_happening kind, const char *guard)
{
    struct gd_catch_spec spec = {.kind = kind, .guard = guard, .every = 1};
    struct gd_breakpoint *at;
    assert_ok(gd_debugger_catch(bench->debugger, &spec, &at, NULL));
}

/* ---- the number ------------------------------------------------------------------------------ */

static void test_all_ranks(void **state)
{
    struct bench *bench = start_bench("accuracy ranks");

    COUNT(0, 1, .samples = 10, .right = 6);
    assert_null(gd_session_scalar(bench->session[0], "accuracy"));
    COUNT(0, 2, .samples = 10, .right = 4); /* a step ahead */
    COUNT(1, 1, .samples = 30, .right = 3);
    expect_number(bench, "accuracy", 1, 9.0 / 40);
    COUNT(1, 2, .samples = 30, .right = 30);
    expect_number(bench, "accuracy", 2, 43.0 / 80);
    expect_result(bench, 2, "");
    COUNT(1, 3, .epoch = 1, .samples = 5, .right = 5); /* another epoch */
    COUNT(0, 3, .epoch = 1, .samples = 5, .right = 0);
    expect_number(bench, "accuracy", 3, 0.5);
    assert_true(gd_over_ranks_has(bench->session[0], "eval_accuracy"));
    assert_false(gd_over_ranks_has(bench->session[0], "accuracy_5")); /* the script's own */
    destroy_bench(bench);
}

static void test_by_step(void **state)
{
    struct bench *bench = start_bench("accuracy by step ranks");

    for (int64_t step = 1; step < 4; step++) {
        for (int rank = 0; rank < RANKS; rank++) {
            give_counts(bench, rank,
                        (struct counted){"accuracy by step ranks", step,
                                         (uint64_t)(step * 3 + rank), .samples = 10,
                                         .right = (int)step + rank});
        }
        expect_number(bench, "accuracy", step, (double)(2 * step + 1) / 20);
    }
    destroy_bench(bench);
}

/* Rank 1 has fewer batches: its third step is of the second epoch. */
static void test_epochs_of_different_length(void **state)
{
    struct bench *bench = start_bench("accuracy ranks");

    for (int rank = 0; rank < RANKS; rank++) {
        COUNT(rank, 1, .samples = 10, .right = 5);
        COUNT(rank, 2, .samples = 10, .right = 5);
    }
    COUNT(1, 3, .epoch = 1, .samples = 7, .right = 7);
    COUNT(0, 3, .samples = 10, .right = 10);
    expect_number(bench, "accuracy", 3, 30.0 / 50); /* all of the first epoch */
    COUNT(1, 4, .epoch = 1, .samples = 3, .right = 3);
    COUNT(0, 4, .epoch = 1, .samples = 10, .right = 0);
    expect_number(bench, "accuracy", 4, 10.0 / 20); /* all of the second one */
    destroy_bench(bench);
}

static void test_steps_that_begin_again(void **state)
{
    struct bench *bench = start_bench("accuracy ranks");

    for (int rank = 0; rank < RANKS; rank++) {
        COUNT(rank, 5, .samples = 10, .right = 5);
    }
    COUNT(1, 1, .epoch = 1, .samples = 10, .right = 8);
    expect_number(bench, "accuracy", 5, 0.5);
    COUNT(0, 1, .epoch = 1, .samples = 10, .right = 0);
    expect_number(bench, "accuracy", 1, 0.4);
    destroy_bench(bench);
}

/* What comes after the end of its step is new at the next one; what comes before is not. */
static void test_late_numbers(void **state)
{
    struct bench *bench = start_bench("accuracy ranks");

    for (int rank = 0; rank < RANKS; rank++) {
        COUNT(rank, 1, .samples = 10, .right = 5, .evaluation = true);
        COUNT(rank, 1, .samples = 10, .right = 5);
    }
    assert_false(gd_session_scalar(bench->session[0], "accuracy")->late);
    assert_false(gd_session_scalar(bench->session[0], "eval_accuracy")->late);
    for (int rank = 0; rank < RANKS; rank++) {
        COUNT(rank, 2, .samples = 10, .right = 5, .late = true);
        COUNT(rank, 2, .samples = 10, .right = 5, .evaluation = true, .late = true);
    }
    assert_true(gd_session_scalar(bench->session[0], "accuracy")->late);
    assert_true(gd_session_scalar(bench->session[0], "eval_accuracy")->late);
    destroy_bench(bench);
}

/* Rank 0 is a step ahead: what it counted before is not counted again. */
static void test_cleared_between_the_ranks(void **state)
{
    struct bench *bench = start_bench("accuracy ranks");

    COUNT(0, 1, .samples = 10, .right = 10);
    gd_over_ranks_clear(gd_ranks_of(bench->session[0]));
    COUNT(1, 1, .epoch = 1, .samples = 10, .right = 5);
    COUNT(0, 2, .epoch = 1, .samples = 10, .right = 5);
    expect_number(bench, "accuracy", 1, 0.5);
    COUNT(1, 2, .epoch = 1, .samples = 10, .right = 5);
    expect_number(bench, "accuracy", 2, 0.5);
    destroy_bench(bench);
}

/* ---- a rank is missing ----------------------------------------------------------------------- */

static void test_a_rank_has_ended(void **state)
{
    struct bench *bench = start_bench("accuracy ranks");

    for (int rank = 0; rank < RANKS; rank++) {
        COUNT(rank, 1, .samples = 10, .right = 5);
    }
    gd_session_on_finished(bench->session[1], "the training ended");
    COUNT(0, 2, .samples = 10, .right = 8);
    expect_number(bench, "accuracy", 2, 18.0 / 30);
    COUNT(0, 3, .epoch = 1, .samples = 10, .right = 8);
    expect_number(bench, "accuracy", 3, 0.8);
    expect_result(bench, 1, "");
    assert_string_equal(bench->event, "metric accuracy is over 1 of 2 ranks from step 3 on: the "
                                      "others have no more samples");
    destroy_bench(bench);
}

static void test_a_rank_is_lost(void **state)
{
    struct bench *bench = start_bench("accuracy ranks");

    for (int rank = 0; rank < RANKS; rank++) {
        COUNT(rank, 1, .samples = 10, .right = 5);
    }
    catch_when(bench, GD_HAPPENED_STEP_END, "accuracy < 2");
    COUNT(0, 2, .samples = 10, .right = 8);
    assert_int_equal(raise_event(bench, GD_HAPPENED_STEP_END, 2), GD_VERDICT_LATER);
    gd_session_on_lost(bench->session[1], "gone");
    assert_int_equal(bench->verdicts, 1);
    assert_int_equal(bench->stops, 0); /* unknown */
    expect_number(bench, "accuracy", 1, 0.5);
    expect_result(bench, 2, "rank 1 is gone");
    assert_true(gd_over_ranks_unknown(bench->session[0], "accuracy"));
    assert_string_equal(
        bench->event,
        "metric accuracy has no number over all ranks from step 2 on: rank 1 is gone");
    destroy_bench(bench);
}

/* The message of step 1 was lost: the next one says so. */
static void test_counts_are_missing(void **state)
{
    struct bench *bench = start_bench("accuracy ranks");

    COUNT(1, 1, .samples = 10, .right = 5);
    COUNT(0, 2, .samples = 10, .right = 5, .missing = "step 1: the debugger is too slow");
    assert_null(gd_session_scalar(bench->session[0], "accuracy"));
    expect_result(bench, 1, "rank 0: step 1: the debugger is too slow");
    destroy_bench(bench);
}

static void give_loss(struct bench *bench, int rank, int64_t step, double loss)
{
    struct gd_buf definition = GD_BUF_INIT(1 << 14), counts = GD_BUF_INIT(1 << 14);
    struct gd_metric_spec spec;
    struct gd_metric *metric = NULL;

    assert_ok(gd_metric_parse("loss ranks", &spec, NULL));
    assert_ok(gd_metric_create(&spec, &metric, NULL));
    gd_metric_add(metric, loss);
    gd_metric_text(&spec, &definition);
    assert_ok(gd_metric_save(metric, &counts, NULL));
    const struct gd_metric_part part = {.definition = gd_buf_text(&definition),
                                        .step = step,
                                        .counts = gd_buf_text(&counts),
                                        .missing = ""};
    gd_session_on_metric_part(bench->session[rank], &part);
    gd_metric_destroy(metric);
    gd_buf_deinit(&definition);
    gd_buf_deinit(&counts);
}

/* It is waited for once. */
static void test_a_rank_reports_no_loss(void **state)
{
    struct bench *bench = start_bench("loss ranks");

    catch_when(bench, GD_HAPPENED_STEP_END, "mean_loss > 2");
    give_loss(bench, 0, 1, 3);
    assert_int_equal(raise_event(bench, GD_HAPPENED_STEP_END, 1), GD_VERDICT_LATER);
    bench->clock = 5;
    gd_ranks_tick(bench->debugger);
    assert_int_equal(bench->verdicts, 0);
    bench->clock = 21;
    gd_ranks_tick(bench->debugger);
    assert_int_equal(bench->stops, 1);
    expect_number(bench, "mean_loss", 1, 3);
    give_loss(bench, 0, 2, 1);
    assert_int_equal(raise_event(bench, GD_HAPPENED_STEP_END, 2), GD_VERDICT_GO);
    expect_number(bench, "mean_loss", 2, 2);
    give_loss(bench, 1, 3, 5); /* after all */
    expect_number(bench, "mean_loss", 2, 2);
    give_loss(bench, 0, 3, 3);
    expect_number(bench, "mean_loss", 3, 3);
    destroy_bench(bench);
}

static void test_counts_that_cannot_be_used(void **state)
{
    struct bench *bench = start_bench("accuracy ranks");
    struct gd_metric_part bad = {
        .definition = "accuracy ranks", .step = 2, .counts = "1 2 x", .missing = ""};

    COUNT(0, 1, .samples = 10, .right = 5, .missing = "step 1: too large");
    COUNT(1, 1, .samples = 10, .right = 5);
    assert_null(gd_session_scalar(bench->session[0], "accuracy"));
    expect_result(bench, 2, "rank 0: step 1: too large");
    gd_session_on_metric_part(bench->session[1], &bad);
    COUNT(0, 3, .epoch = 1, .samples = 10, .right = 5);
    COUNT(1, 3, .epoch = 1, .samples = 10, .right = 6);
    expect_number(bench, "accuracy", 3, 11.0 / 20); /* the next epoch is complete */
    bad.definition = "f1 ranks";
    gd_session_on_metric_part(bench->session[1], &bad); /* unknown: ignored */
    bad.definition = "accuracy ranks";
    bad.step = -1;
    gd_session_on_metric_part(bench->session[1], &bad);
    expect_result(bench, 2, "");
    destroy_bench(bench);
}

/* ---- what waits ------------------------------------------------------------------------------ */

static void test_a_condition_waits(void **state)
{
    struct bench *bench = start_bench("accuracy ranks");

    catch_when(bench, GD_HAPPENED_STEP_END, "accuracy < 0.3");
    COUNT(1, 1, .samples = 10, .right = 9);
    COUNT(0, 1, .samples = 10, .right = 1);
    assert_int_equal(raise_event(bench, GD_HAPPENED_STEP_END, 1), GD_VERDICT_GO);
    COUNT(0, 2, .samples = 10, .right = 0);
    assert_int_equal(raise_event(bench, GD_HAPPENED_STEP_END, 2), GD_VERDICT_LATER);
    assert_int_equal(bench->verdicts, 0);
    COUNT(1, 2, .samples = 10, .right = 0);
    assert_int_equal(bench->verdicts, 1);
    assert_int_equal(bench->stops, 1);
    destroy_bench(bench);
}

static void test_a_rank_that_does_not_come(void **state)
{
    struct bench *bench = start_bench("accuracy ranks");

    catch_when(bench, GD_HAPPENED_STEP_END, "accuracy < 2");
    COUNT(0, 1, .samples = 10, .right = 0);
    assert_int_equal(raise_event(bench, GD_HAPPENED_STEP_END, 1), GD_VERDICT_LATER);
    bench->clock = 19;
    gd_ranks_tick(bench->debugger);
    assert_int_equal(bench->verdicts, 0);
    bench->clock = 21;
    gd_ranks_tick(bench->debugger);
    assert_int_equal(bench->verdicts, 1);
    assert_int_equal(bench->stops, 0);
    assert_string_equal(bench->event, "metrics over ranks are unknown at step 1: not all ranks "
                                      "have ended it");
    COUNT(1, 1, .samples = 10, .right = 10); /* late: a number, but no stop */
    expect_number(bench, "accuracy", 1, 0.5);
    assert_int_equal(bench->verdicts, 1);
    COUNT(0, 2, .samples = 10, .right = 0);
    assert_int_equal(raise_event(bench, GD_HAPPENED_STEP_END, 2), GD_VERDICT_LATER);
    assert_ok(gd_target_interrupt(bench->session[0]->target, NULL)); /* the user waits no longer */
    assert_int_equal(bench->verdicts, 2);
    destroy_bench(bench);
}

static void test_one_rank_evaluates(void **state)
{
    struct bench *bench = start_bench("accuracy ranks");

    catch_when(bench, GD_HAPPENED_EVAL_END, "eval_accuracy > 0.5");
    for (int64_t step = 1; step < 3; step++) {
        COUNT(0, step, .samples = 10, .right = 5);
        COUNT(1, step, .samples = 10, .right = 5);
        COUNT(0, step, .evaluation = true, .samples = 10, .right = 7);
        bench->clock += 10;
        enum gd_event_verdict verdict = raise_event(bench, GD_HAPPENED_EVAL_END, step);
        if (step == 1) { /* whether rank 1 evaluates is unknown */
            assert_int_equal(verdict, GD_VERDICT_LATER);
            bench->clock += 1.1;
            gd_ranks_tick(bench->debugger);
            assert_int_equal(bench->stops, 1);
        } else {
            assert_int_equal(verdict, GD_VERDICT_STOP);
        }
        expect_number(bench, "eval_accuracy", step, 0.7);
    }
    COUNT(1, 2, .evaluation = true, .samples = 10, .right = 1); /* late */
    expect_number(bench, "eval_accuracy", 2, 0.4);
    destroy_bench(bench);
}

static void test_an_evaluation_is_over_with_the_next_step(void **state)
{
    struct bench *bench = start_bench("accuracy ranks");

    for (int rank = 0; rank < RANKS; rank++) {
        COUNT(rank, 1, .samples = 10, .right = 5);
    }
    COUNT(1, 1, .evaluation = true, .samples = 10, .right = 7);
    assert_null(gd_session_scalar(bench->session[0], "eval_accuracy"));
    COUNT(0, 2, .samples = 10, .right = 5);
    expect_number(bench, "eval_accuracy", 1, 0.7);
    destroy_bench(bench);
}

/* ---- names, deletion ------------------------------------------------------------------------- */

static void test_names(void **state)
{
    struct bench *bench = start_bench("f1 average=none ranks");
    const struct gd_session *session = bench->session[1];

    assert_true(gd_over_ranks_has(session, "f1"));
    assert_true(gd_over_ranks_has(session, "f1_12"));
    assert_true(gd_over_ranks_has(session, "eval_f1_0"));
    assert_false(gd_over_ranks_has(session, "f1_"));
    assert_false(gd_over_ranks_has(session, "f1_x"));
    assert_false(gd_over_ranks_has(session, "f"));
    assert_false(gd_over_ranks_has(session, "eval_"));
    assert_true(gd_over_ranks_speaks(bench->session[0]));
    assert_false(gd_over_ranks_speaks(session));
    gd_over_ranks_delete(gd_ranks_of(session), "other");
    assert_true(gd_over_ranks_any(gd_ranks_of(session)));
    gd_over_ranks_delete(gd_ranks_of(session), "f1");
    assert_false(gd_over_ranks_any(gd_ranks_of(session)));
    assert_false(gd_over_ranks_has(session, "f1"));
    destroy_bench(bench);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_all_ranks),
    cmocka_unit_test(test_by_step),
    cmocka_unit_test(test_epochs_of_different_length),
    cmocka_unit_test(test_steps_that_begin_again),
    cmocka_unit_test(test_late_numbers),
    cmocka_unit_test(test_cleared_between_the_ranks),
    cmocka_unit_test(test_a_rank_has_ended),
    cmocka_unit_test(test_a_rank_is_lost),
    cmocka_unit_test(test_counts_are_missing),
    cmocka_unit_test(test_a_rank_reports_no_loss),
    cmocka_unit_test(test_counts_that_cannot_be_used),
    cmocka_unit_test(test_a_condition_waits),
    cmocka_unit_test(test_a_rank_that_does_not_come),
    cmocka_unit_test(test_one_rank_evaluates),
    cmocka_unit_test(test_an_evaluation_is_over_with_the_next_step),
    cmocka_unit_test(test_names),
};

RUN_TESTS()
