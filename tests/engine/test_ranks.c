// SPDX-License-Identifier: GPL-3.0-or-later
/* Ranks of a job, with trainers that are made up: each step has a collective, so that no rank ends
 * a step in which another one does not take part. */
#include "../unit.h"
#include "engine/ranks.h"
#include "engine/watch/watchpoint.h"
#include "fake_target.h"

#define MAX_RANKS 4

struct rank { /* a trainer */
    struct fake_target *fake;
    struct gd_session *session;
    int64_t step;         /* ended so far */
    int64_t interrupt_at; /* 0 none */
    int64_t left;         /* steps to go; 0: until told */
    bool runs, inside;    /* stands inside step + 1 */
    bool gone;
    const char *digests;
};

struct bench {
    struct gd_debugger *debugger;
    struct rank rank[MAX_RANKS];
    int count;
    double clock;
    uint32_t random;
    int told, together, settled, resumes;
    const char *framework;
};

static struct bench *the_bench; /* the operations find their rank by the target */
static struct gd_target_ops ops;

static struct rank *rank_of(const struct gd_target *target)
{
    for (int i = 0; i < the_bench->count; i++) {
        if (&the_bench->rank[i].fake->target == target && !the_bench->rank[i].gone) {
            return &the_bench->rank[i];
        }
    }
    fail_msg("a target that is gone was asked");
    return NULL;
}

static int rank_resume(struct gd_target *target, const struct gd_run *run, struct gd_err *err)
{
    struct rank *rank = rank_of(target);

    assert_false(rank->runs);
    rank->runs = true;
    rank->left = run->kind == GD_RUN_STEP ? run->count : 0;
    rank->fake->run = *run;
    the_bench->resumes++;
    return GD_OK;
}

static int interrupt_at(struct gd_target *target, int64_t step, struct gd_err *err)
{
    rank_of(target)->interrupt_at = step;
    return GD_OK;
}

static int rank_command(struct gd_target *target, const char *name, const char *args,
                        gd_node_id node, gd_command_fn fn, void *ctx, struct gd_err *err)
{
    assert_string_equal(name, "digest");
    assert_non_null(args);
    fn(ctx, rank_of(target)->digests, NULL);
    return GD_OK;
}

static void observe_event(void *ctx, const struct gd_event *event)
{
    struct bench *bench = ctx;

    if (event->type == GD_EV_STOPPED) {
        bench->told++;
        bench->together += event->session->stop.together;
    }
    bench->settled += event->type == GD_EV_RANKS;
}

static double read_clock(void *ctx)
{
    return *(double *)ctx;
}

static void stop_rank(struct rank *rank, enum gd_stop_reason reason, bool at_end)
{
    struct gd_stop at = {.reason = reason,
                         .step = at_end ? rank->step : rank->step + 1,
                         .at_step_end = at_end,
                         .node = GD_NO_NODE};

    rank->runs = false;
    rank->inside = !at_end;
    rank->left = 0;
    gd_session_on_stopped(rank->session, &at);
}

static void join_rank(struct bench *bench, int number)
{
    struct rank *rank = &bench->rank[number];
    struct gd_peer peer = {.rank = number, .world_size = bench->count, .job = "job"};

    snprintf(peer.framework, sizeof(peer.framework), "%s", bench->framework);
    snprintf(peer.device, sizeof(peer.device), "cpu");
    rank->fake = fake_create(true, NULL);
    ops = *rank->fake->target.ops;
    ops.resume = rank_resume;
    ops.interrupt_at = interrupt_at;
    ops.command = rank_command;
    rank->fake->target.ops = &ops;
    rank->digests = "0000000000000001 w\n0000000000000002 b\n";
    rank->gone = false;
    assert_ok(gd_session_create(bench->debugger, &rank->fake->target, &peer, &rank->session, NULL));
    gd_session_on_graph(rank->session);
}

static struct bench *make_bench_of(const char *framework, int count)
{
    struct bench *bench = calloc(1, sizeof(*bench));

    the_bench = bench;
    bench->framework = framework;
    bench->count = count;
    bench->random = 12345;
    assert_ok(gd_debugger_create(&bench->debugger, NULL));
    bench->debugger->now = read_clock;
    bench->debugger->now_ctx = &bench->clock;
    assert_ok(gd_debugger_observe(bench->debugger, observe_event, bench));
    return bench;
}

static struct bench *make_bench(int count)
{
    return make_bench_of("pytorch", count);
}

/* All stand before the first step. */
static struct bench *start_bench_of(const char *framework, int count)
{
    struct bench *bench = make_bench_of(framework, count);

    for (int i = count; i-- > 0;) { /* not in their order */
        join_rank(bench, i);
        assert_int_equal(bench->settled, 0);
        stop_rank(&bench->rank[i], GD_STOP_CONNECTED, true);
    }
    assert_int_equal(bench->settled, 1);
    bench->told = bench->together = bench->settled = bench->resumes = 0;
    return bench;
}

static struct bench *start_bench(int count)
{
    return start_bench_of("pytorch", count);
}

static void destroy_bench(struct bench *bench)
{
    gd_debugger_destroy(bench->debugger);
    free(bench);
}

/* Whether a rank may end the step it is in: all others take part, or have it behind them. */
static bool may_end(const struct bench *bench, const struct rank *rank)
{
    for (int i = 0; i < bench->count; i++) {
        const struct rank *other = &bench->rank[i];
        if (other->gone || other->step < rank->step ||
            (!other->runs && other->step == rank->step)) {
            return other == rank;
        }
    }
    return true;
}

static void end_step(struct rank *rank)
{
    rank->step++;
    if (rank->left > 0 && --rank->left == 0) {
        stop_rank(rank, GD_STOP_STEP, true);
    } else if (rank->interrupt_at && rank->step >= rank->interrupt_at) {
        rank->interrupt_at = 0;
        stop_rank(rank, GD_STOP_INTERRUPT, true);
    }
}

/* A rank that can, by chance, ends its step. False: none can. */
static bool turn_ranks(struct bench *bench)
{
    bench->random = bench->random * 1103515245u + 12345u;
    for (int i = 0; i < bench->count; i++) {
        struct rank *rank =
            &bench->rank[(bench->random / 65536u + (uint32_t)i) % (uint32_t)bench->count];
        if (rank->runs && !rank->gone && may_end(bench, rank)) {
            end_step(rank);
            return true;
        }
    }
    return false;
}

/* Until all ranks have ended that step. */
static void run_to(struct bench *bench, int64_t step)
{
    for (int i = 0; i < bench->count; i++) {
        while (bench->rank[i].step < step) {
            assert_true(turn_ranks(bench));
        }
    }
}

/* Until it is settled; time passes when nothing else does. */
static void settle_ranks(struct bench *bench)
{
    int before = bench->settled;

    for (int i = 0; i < 100000 && bench->settled == before; i++) {
        if (!turn_ranks(bench)) {
            bench->clock += 0.1;
            gd_ranks_tick(bench->debugger);
        }
    }
    assert_int_equal(bench->settled, before + 1);
}

static void resume_all(struct bench *bench, enum gd_run_kind kind, int64_t count)
{
    struct gd_run run = {.kind = kind, .count = count, .node = GD_NO_NODE};
    struct gd_err err = {0};

    if (gd_ranks_resume(bench->debugger->current, &run, &err) != GD_OK) {
        fail_msg("%s", err.text);
    }
}

static void expect_text(struct bench *bench, const char *want)
{
    struct gd_buf text = GD_BUF_INIT(4096);

    gd_ranks_text(gd_ranks_of(bench->rank[0].session), &text);
    assert_string_equal(gd_buf_text(&text), want);
    gd_buf_deinit(&text);
}

static void watch_something(struct bench *bench)
{
    struct gd_watch_spec spec = {.expression = "x > 1", .action = GD_WATCH_STOP};

    assert_ok(gd_watchpoint_add(bench->debugger, &spec, NULL, NULL));
}

static void test_connect(void **state)
{
    struct bench *bench = start_bench(3);

    assert_ptr_equal(bench->debugger->current, bench->rank[0].session);
    assert_false(bench->rank[0].session->stop.together);
    assert_true(bench->rank[2].session->stop.together);
    expect_text(bench, "All 3 ranks are stopped before the first step.\n");
    destroy_bench(bench);
}

static void test_one_does_not_connect(void **state)
{
    struct bench *bench = make_bench(4);

    for (int i = 0; i < 3; i += 2) {
        join_rank(bench, i);
        stop_rank(&bench->rank[i], GD_STOP_CONNECTED, true);
    }
    bench->clock += bench->debugger->settings.start_timeout - 1;
    gd_ranks_tick(bench->debugger);
    assert_int_equal(bench->settled, 0);
    bench->clock += 2;
    gd_ranks_tick(bench->debugger);
    assert_int_equal(bench->settled, 1);
    expect_text(bench, "Ranks 0, 2 are stopped before the first step.\n"
                       "Not connected, of 4: rank 1, 3.\n");
    destroy_bench(bench);
}

/* The other had been waiting for long when it came: it stops before its first step, too. */
static void test_one_connects_late(void **state)
{
    struct bench *bench = make_bench(2);

    join_rank(bench, 1);
    stop_rank(&bench->rank[1], GD_STOP_CONNECTED, true);
    bench->clock += 10;
    gd_ranks_tick(bench->debugger);
    join_rank(bench, 0);
    bench->clock += 1;
    gd_ranks_tick(bench->debugger);
    stop_rank(&bench->rank[0], GD_STOP_CONNECTED, true);
    assert_int_equal(bench->settled, 1);
    expect_text(bench, "All 2 ranks are stopped before the first step.\n");
    destroy_bench(bench);
}

/* They were attached to in mid-run: one waits in step 8 for one that stands before it. */
static void test_connect_in_mid_run(void **state)
{
    struct bench *bench = make_bench(2);

    join_rank(bench, 0);
    join_rank(bench, 1);
    bench->rank[0].step = 7;
    bench->rank[1].step = 7;
    stop_rank(&bench->rank[0], GD_STOP_CONNECTED, true);
    bench->rank[1].runs = true;
    bench->rank[1].left = 1;
    settle_ranks(bench);
    expect_text(bench, "All 2 ranks are stopped at the end of step 8.\n");
    destroy_bench(bench);
}

static void test_step(void **state)
{
    struct bench *bench = start_bench(3);

    resume_all(bench, GD_RUN_STEP, 5);
    settle_ranks(bench);
    expect_text(bench, "All 3 ranks are stopped at the end of step 5.\n");
    assert_int_equal(bench->resumes, 3); /* nothing can stop one of them: no need to go by steps */
    assert_int_equal(bench->told, 3);
    assert_int_equal(bench->together, 2);
    assert_int_equal(bench->rank[1].session->timing.steps_run, 5);
    watch_something(bench);
    resume_all(bench, GD_RUN_STEP, 5);
    settle_ranks(bench);
    expect_text(bench, "All 3 ranks are stopped at the end of step 10.\n");
    assert_int_equal(bench->resumes, 3 + 15);
    assert_int_equal(bench->told, 6); /* nobody heard of the boundaries between */
    assert_int_equal(bench->rank[1].session->timing.last_run_steps, 5);
    destroy_bench(bench);
}

/* Rank 1 stands at the end of step 3 by itself already when it is asked to, because of rank 0. */
static void test_asked_what_it_did(void **state)
{
    struct bench *bench = start_bench(2);

    resume_all(bench, GD_RUN_STEP, 5);
    run_to(bench, 3);
    bench->rank[1].runs = false; /* word of it is under way */
    stop_rank(&bench->rank[0], GD_STOP_PROGRAM, true);
    assert_int_equal(bench->rank[1].interrupt_at, 3);
    stop_rank(&bench->rank[1], GD_STOP_PROGRAM, true);
    expect_text(bench, "All 2 ranks are stopped at the end of step 3.\n");
    resume_all(bench, GD_RUN_STEP, 2);
    settle_ranks(bench);
    expect_text(bench, "All 2 ranks are stopped at the end of step 5.\n");
    destroy_bench(bench);
}

/* Rank 1 stops inside step 4; the other one waits there, and all come to its end afterwards. */
static void test_inside_a_step(void **state)
{
    struct bench *bench = start_bench(2);

    watch_something(bench);
    resume_all(bench, GD_RUN_CONTINUE, 0);
    run_to(bench, 3);
    stop_rank(&bench->rank[1], GD_STOP_HIT, false);
    settle_ranks(bench);
    assert_ptr_equal(bench->debugger->current, bench->rank[1].session);
    assert_int_equal(bench->told, 1);
    assert_int_equal(bench->rank[0].session->state, GD_RUNNING);
    expect_text(bench,
                "Rank 0 is running: it may be waiting in a collective for those that are stopped.\n"
                "Rank 1 is stopped in step 4.\n");
    resume_all(bench, GD_RUN_STEP, 1);
    settle_ranks(bench);
    expect_text(bench, "All 2 ranks are stopped at the end of step 4.\n");
    destroy_bench(bench);
}

/* At the end of a step: the other one has not begun the next. */
static void test_between_steps(void **state)
{
    struct bench *bench = start_bench(2);

    watch_something(bench);
    resume_all(bench, GD_RUN_CONTINUE, 0);
    run_to(bench, 3);
    bench->rank[1].step = 4;
    bench->rank[0].step = 3;
    stop_rank(&bench->rank[1], GD_STOP_HIT, true);
    bench->rank[0].step = 4;
    stop_rank(&bench->rank[0], GD_STOP_STEP, true);
    assert_int_equal(bench->settled, 1);
    assert_ptr_equal(bench->debugger->current, bench->rank[1].session);
    assert_int_equal(bench->rank[1].session->stop.reason, GD_STOP_HIT);
    expect_text(bench, "All 2 ranks are stopped at the end of step 4.\n");
    destroy_bench(bench);
}

/* They run free; wherever they are when they are to stand, they come to the same boundary. */
static void test_pause(void **state)
{
    for (uint32_t seed = 1; seed <= 50; seed++) {
        struct bench *bench = start_bench(4);

        bench->random = seed * 7919u;
        resume_all(bench, GD_RUN_CONTINUE, 0);
        for (uint32_t i = 0; i < 10 + seed; i++) {
            assert_true(turn_ranks(bench));
        }
        assert_int_equal(bench->resumes, 4);
        assert_true(gd_ranks_is_running(bench->debugger->current));
        assert_ok(gd_ranks_interrupt(bench->debugger->current, NULL));
        settle_ranks(bench);
        for (int i = 0; i < 4; i++) {
            const struct gd_stop *at = &bench->rank[i].session->stop;
            assert_int_equal(bench->rank[i].session->state, GD_STOPPED);
            assert_int_equal(at->step, bench->rank[0].session->stop.step);
            assert_true(at->at_step_end);
        }
        assert_int_equal(bench->debugger->current->stop.reason, GD_STOP_INTERRUPT);
        assert_false(gd_ranks_is_running(bench->debugger->current));
        resume_all(bench, GD_RUN_STEP, 2); /* and from there on */
        settle_ranks(bench);
        assert_int_equal(bench->rank[3].step, bench->rank[0].step);
        destroy_bench(bench);
    }
}

static void test_alone(void **state)
{
    struct bench *bench = start_bench(2);

    resume_all(bench, GD_RUN_NEXT, 1);
    assert_false(bench->rank[1].runs);
    stop_rank(&bench->rank[0], GD_STOP_NODE, false);
    assert_int_equal(bench->told, 1);
    assert_int_equal(bench->settled, 0);
    resume_all(bench, GD_RUN_STEP, 1);
    settle_ranks(bench);
    expect_text(bench, "All 2 ranks are stopped at the end of step 1.\n");
    bench->debugger->settings.rank_locking = GD_LOCKING_ON;
    resume_all(bench, GD_RUN_STEP, 1);
    assert_true(bench->rank[0].runs);
    assert_false(bench->rank[1].runs);
    bench->debugger->settings.rank_locking = GD_LOCKING_OFF;
    assert_ok(gd_debugger_select(bench->debugger, bench->rank[1].session->number, NULL));
    resume_all(bench, GD_RUN_STEP, 1); /* the one that went alone waited for this one */
    settle_ranks(bench);
    expect_text(bench, "All 2 ranks are stopped at the end of step 2.\n");
    destroy_bench(bench);
}

/* MindSpore would end a job in which rank 0 waits for rank 1, which is stopped in the step. */
static void test_collective_limit(void **state)
{
    struct bench *bench = start_bench_of("mindspore", 2);

    resume_all(bench, GD_RUN_NEXT, 1);
    assert_true(bench->rank[1].runs);
    stop_rank(&bench->rank[1], GD_STOP_HIT, false);
    settle_ranks(bench);
    expect_text(bench,
                "Rank 0 is running: it may be waiting in a collective for those that are stopped.\n"
                "MindSpore ends a job in which a rank waits for 30 s: before that, gradb lets all "
                "ranks finish the step.\n"
                "Rank 1 is stopped in step 1.\n");
    gd_ranks_tick(bench->debugger);
    bench->clock += 19;
    gd_ranks_tick(bench->debugger);
    assert_false(bench->rank[1].runs);
    bench->clock += 2;
    bench->debugger->settings.rank_locking = GD_LOCKING_ON;
    gd_ranks_tick(bench->debugger);
    assert_false(bench->rank[1].runs);
    bench->debugger->settings.rank_locking = GD_LOCKING_STEP;
    gd_ranks_tick(bench->debugger);
    assert_true(bench->rank[1].runs);
    settle_ranks(bench);
    expect_text(bench, "All 2 ranks are stopped at the end of step 1.\n");
    destroy_bench(bench);
}

/* One that is ahead waits for the others to come after. */
static void test_ahead(void **state)
{
    struct bench *bench = start_bench(2);

    bench->debugger->settings.rank_locking = GD_LOCKING_ON;
    resume_all(bench, GD_RUN_STEP, 2);
    bench->rank[0].step = 2; /* no collective in these */
    stop_rank(&bench->rank[0], GD_STOP_STEP, true);
    bench->debugger->settings.rank_locking = GD_LOCKING_STEP;
    watch_something(bench);
    bench->rank[1].step = 0;
    resume_all(bench, GD_RUN_STEP, 1);
    assert_false(bench->rank[0].runs);
    for (int64_t step = 1; step <= 2; step++) {
        bench->rank[1].step = step;
        stop_rank(&bench->rank[1], GD_STOP_STEP, true);
    }
    settle_ranks(bench);
    expect_text(bench, "All 2 ranks are stopped at the end of step 3.\n");
    destroy_bench(bench);
}

static void test_lost(void **state)
{
    struct bench *bench = start_bench(3);

    resume_all(bench, GD_RUN_CONTINUE, 0);
    for (int i = 0; i < 20; i++) {
        assert_true(turn_ranks(bench));
    }
    bench->rank[2].gone = true;
    gd_session_on_lost(bench->rank[2].session, "it was killed");
    settle_ranks(bench); /* although the others never come out of their collective */
    assert_int_equal(gd_ranks_live(gd_ranks_of(bench->rank[0].session)), 2);
    assert_ptr_equal(gd_ranks_member(gd_ranks_of(bench->rank[0].session), 2),
                     bench->rank[2].session);
    gd_session_on_lost(bench->rank[0].session, "so was it");
    gd_session_on_lost(bench->rank[1].session, "so was it");
    gd_debugger_reap(bench->debugger);
    bench->rank[0].step = bench->rank[1].step = bench->rank[2].step = 0;
    bench->settled = 0;
    for (int i = 0; i < 3; i++) { /* the launcher starts them anew */
        bench->rank[i].runs = false;
        join_rank(bench, i);
        stop_rank(&bench->rank[i], GD_STOP_CONNECTED, true);
    }
    assert_int_equal(bench->settled, 1);
    assert_ptr_equal(gd_ranks_member(gd_ranks_of(bench->rank[0].session), 2),
                     bench->rank[2].session);
    expect_text(bench, "All 3 ranks are stopped before the first step.\n");
    destroy_bench(bench);
}

struct seen {
    int calls;
    size_t tensors, differing, compared, alone, left_out;
    int rank;
    char name[64], error[200];
};

static void on_digests(void *ctx, const struct gd_ranks_digests *digests, const struct gd_err *err)
{
    struct seen *seen = ctx;

    seen->calls++;
    snprintf(seen->error, sizeof(seen->error), "%.150s", err ? err->text : "");
    seen->compared = digests ? digests->compared : 0;
    seen->alone = digests ? digests->alone : 0;
    seen->left_out = digests ? digests->left_out : 0;
    for (size_t i = 0; digests && i < digests->tensor_count; i++) {
        seen->tensors++;
        if (digests->tensor[i].differs >= 0) {
            seen->differing++;
            seen->rank = digests->tensor[i].differs;
            snprintf(seen->name, sizeof(seen->name), "%s", digests->tensor[i].name);
        }
    }
}

static void test_digests(void **state)
{
    struct bench *bench = start_bench(3);
    struct gd_ranks *ranks = gd_ranks_of(bench->rank[0].session);
    struct gd_err err = {0};
    struct seen seen = {0};

    assert_ok(gd_ranks_digest(ranks, "", on_digests, &seen, NULL));
    assert_int_equal(seen.calls, 1);
    assert_int_equal(seen.tensors, 2);
    assert_int_equal(seen.differing, 0);
    /* another order, one that the others lack, a part, and one that is not the same */
    bench->rank[1].digests = "0000000000000002 b\n0000000000000009 own\n- part\n0000000000000001 w";
    bench->rank[2].digests = "0000000000000001 w\nffffffffffffffff b\n";
    seen = (struct seen){0};
    assert_ok(gd_ranks_digest(ranks, "", on_digests, &seen, NULL));
    assert_int_equal(seen.tensors, 3);
    assert_int_equal(seen.compared, 2);
    assert_int_equal(seen.alone, 1);
    assert_int_equal(seen.left_out, 1);
    assert_int_equal(seen.differing, 1);
    assert_int_equal(seen.rank, 2);
    assert_string_equal(seen.name, "b");
    resume_all(bench, GD_RUN_STEP, 1);
    assert_int_equal(gd_ranks_digest(ranks, "", on_digests, &seen, &err), GD_ESTATE);
    assert_contains(err.text, "rank 0 is not stopped");
    destroy_bench(bench);
}

static void test_divergence(void **state)
{
    struct bench *bench = start_bench(2);
    struct gd_watch_spec spec = {
        .expression = "divergent > 0", .action = GD_WATCH_STOP, .event = GD_DIVERGENCE};

    assert_ok(gd_watchpoint_add(bench->debugger, &spec, NULL, NULL));
    resume_all(bench, GD_RUN_STEP, 3);
    settle_ranks(bench);
    assert_int_equal(bench->rank[0].session->stop.reason, GD_STOP_STEP);
    resume_all(bench, GD_RUN_CONTINUE, 0);
    run_to(bench, 6);
    bench->rank[1].digests = "0000000000000001 w\n0000000000000003 b\n";
    settle_ranks(bench);
    assert_ptr_equal(bench->debugger->current, bench->rank[1].session);
    assert_int_equal(bench->rank[1].session->stop.reason, GD_STOP_HIT);
    assert_int_equal(bench->rank[1].session->hit_count, 1);
    assert_string_equal(bench->rank[1].session->hits[0].node_name, "b");
    assert_int_equal(bench->debugger->watchpoints->hits, 1);
    expect_text(bench, "All 2 ranks are stopped at the end of step 7.\n");
    destroy_bench(bench);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_connect),
    cmocka_unit_test(test_one_does_not_connect),
    cmocka_unit_test(test_one_connects_late),
    cmocka_unit_test(test_connect_in_mid_run),
    cmocka_unit_test(test_step),
    cmocka_unit_test(test_asked_what_it_did),
    cmocka_unit_test(test_inside_a_step),
    cmocka_unit_test(test_between_steps),
    cmocka_unit_test(test_pause),
    cmocka_unit_test(test_alone),
    cmocka_unit_test(test_collective_limit),
    cmocka_unit_test(test_ahead),
    cmocka_unit_test(test_lost),
    cmocka_unit_test(test_digests),
    cmocka_unit_test(test_divergence),
};

RUN_TESTS()
