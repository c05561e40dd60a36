// SPDX-License-Identifier: GPL-3.0-or-later
#include <math.h>

#include "../unit.h"
#include "engine/cache.h"
#include "engine/watch/numbers.h"
#include "session_bench.h"

/* ---- states -------------------------------------------------------------------------------- */

/* What the target says after the end changes nothing. */
static void expect_end_is_final(struct bench *bench)
{
    struct gd_session *session = bench->session;

    gd_session_on_finished(session, "the training ended normally");
    gd_session_on_lost(session, "again");
    gd_session_on_running(session);
    stop_at(bench, GD_STOP_STEP, 9, GD_NO_NODE);
    gd_session_on_graph(session);
    expect_log(bench, "F");
    assert_int_equal(session->state, GD_FINISHED);
    assert_string_equal(session->end_text, "the training ended normally");
    assert_false(gd_session_is_live(session));
    assert_false(bench->destroyed);
    gd_debugger_reap(bench->debugger);
    assert_true(bench->destroyed);
}

static void test_states(void **state)
{
    struct bench *bench = make(true);
    struct gd_session *session = bench->session;
    struct gd_err err;

    assert_int_equal(session->state, GD_CONNECTED);
    assert_int_equal(session->graph_generation, 1);
    assert_int_equal(resume(bench, GD_RUN_CONTINUE, 0, &err), GD_ESTATE);
    assert_contains(err.text, "not stopped for the first time");
    bench->clock = 10;
    stop_at(bench, GD_STOP_CONNECTED, 0, GD_NO_NODE);
    expect_log(bench, "S");
    assert_int_equal(session->stop.sequence, 1);
    assert_int_equal(gd_target_interrupt(&bench->fake->target, &err), GD_ESTATE);
    assert_int_equal(resume(bench, GD_RUN_STEP, 0, &err), GD_EINVAL);
    assert_int_equal(resume(bench, GD_RUN_TO_NODE, 0, &err), GD_EINVAL);
    bench->clock = 15;
    assert_ok(resume(bench, GD_RUN_STEP, 3, &err));
    expect_log(bench, "R");
    assert_int_equal(session->state, GD_RUNNING);
    gd_session_on_running(session); /* said twice */
    expect_log(bench, "");
    assert_int_equal(resume(bench, GD_RUN_STEP, 1, &err), GD_ESTATE);
    assert_ok(gd_target_interrupt(&bench->fake->target, &err));
    assert_true(session->interrupt_asked);
    bench->clock = 18;
    stop_at(bench, GD_STOP_INTERRUPT, 2, 1);
    expect_log(bench, "S");
    assert_false(session->interrupt_asked);
    assert_string_equal(session->stop.node_name, "net/b");
    assert_int_equal(session->current, 1);
    assert_true(session->timing.stopped == 5 && session->timing.running == 3);
    assert_true(session->timing.last_run == 3);
    assert_int_equal(session->timing.steps_run, 1); /* the second one has not ended */
    assert_ok(resume(bench, GD_RUN_RECHECK, 0, &err));
    assert_int_equal(session->state, GD_STOPPED);
    bench->fake->resume_rc = GD_EIO;
    assert_int_equal(resume(bench, GD_RUN_CONTINUE, 0, &err), GD_EIO);
    assert_int_equal(session->state, GD_STOPPED);
    expect_end_is_final(bench);
    finish(bench);
}

static void test_node_names(void **state)
{
    struct bench *bench = make(true);
    struct gd_stop stop = {.reason = GD_STOP_NODE, .step = 1, .node = GD_NO_NODE};

    snprintf(stop.node_name, sizeof(stop.node_name), "net/c");
    gd_session_on_stopped(bench->session, &stop);
    assert_int_equal(bench->session->stop.node, 2);
    assert_int_equal(bench->session->current, 2);
    snprintf(stop.node_name, sizeof(stop.node_name), "not/in/the/graph");
    gd_session_on_stopped(bench->session, &stop);
    assert_int_equal(bench->session->stop.node, GD_NO_NODE);
    assert_string_equal(bench->session->stop.node_name, "not/in/the/graph");
    assert_int_equal(bench->session->current, 2);
    finish(bench);
}

static void test_unsupported(void **state)
{
    struct bench *bench = make(false);
    struct gd_target *target = &bench->fake->target;
    struct gd_tensor_ref ref = {.iter = GD_PREVIOUS};
    struct gd_err err;
    struct answer answer = {0};

    stop_at(bench, GD_STOP_CONNECTED, 0, GD_NO_NODE);
    assert_int_equal(gd_target_interrupt(target, &err), GD_EUNSUPPORTED);
    assert_string_equal(err.text, "a bare target cannot be interrupted");
    assert_int_equal(gd_target_set_breakpoints(target, NULL, 0, &err), GD_EUNSUPPORTED);
    assert_int_equal(gd_target_stats(target, &ref, got_stats, &answer, &err), GD_EUNSUPPORTED);
    assert_int_equal(gd_target_keep_previous(target, NULL, 0, &err), GD_EUNSUPPORTED);
    assert_int_equal(gd_target_watch(target, NULL, &err), GD_EUNSUPPORTED);
    assert_int_equal(gd_target_unwatch(target, 1, &err), GD_EUNSUPPORTED);
    assert_int_equal(gd_target_checkpoint(target, &err), GD_EUNSUPPORTED);
    assert_int_equal(gd_target_detach(target, &err), GD_EUNSUPPORTED);
    assert_int_equal(gd_target_kill(target, &err), GD_EUNSUPPORTED);
    assert_int_equal(gd_session_fetch(bench->session, &ref, NULL, got_tensor, &answer, &err),
                     GD_EUNSUPPORTED);
    assert_int_equal(answer.calls, 0);
    assert_ok(gd_debugger_break(bench->debugger, "net/a", false, NULL, &err));
    assert_string_equal(bench->text, "a bare target cannot stop at breakpoints");
    finish(bench);
}

/* ---- values -------------------------------------------------------------------------------- */

/* Of a session that has ended, with node 0 in the cache and no value of node 1. */
static void expect_cache_alone(struct bench *bench)
{
    struct gd_tensor_ref ref = {.node = 0};
    struct answer answer = {0};
    struct gd_err err;

    assert_int_equal(gd_session_fetch(bench->session, &ref, NULL, got_tensor, &answer, &err), 0);
    assert_int_equal(gd_session_stats(bench->session, &ref, got_stats, &answer, &err), 0);
    assert_int_equal(answer.calls, 2);
    ref.node = 1;
    assert_int_equal(gd_session_fetch(bench->session, &ref, NULL, got_tensor, &answer, &err),
                     GD_ENODATA);
    assert_int_equal(gd_session_stats(bench->session, &ref, got_stats, &answer, &err), GD_ENODATA);
    assert_int_equal(answer.calls, 2);
}

/* With node 0 in the cache: the target is not asked. */
static void expect_slice_of_cache(struct bench *bench, struct gd_slice *slice)
{
    struct gd_tensor_ref ref = {.node = 0};
    struct answer answer = {0};
    struct gd_err err;

    assert_int_equal(gd_session_fetch(bench->session, &ref, slice, got_tensor, &answer, &err), 0);
    assert_int_equal(answer.calls, 1);
    assert_int_equal(answer.count, 1);
    assert_true(answer.first == 12);
    slice->item[0].start = 4;
    assert_int_equal(gd_session_fetch(bench->session, &ref, slice, got_tensor, &answer, &err),
                     GD_EINVAL);
}

static void test_fetch_and_cache(void **state)
{
    struct bench *bench = make(true);
    struct gd_tensor_ref ref = {.node = 0};
    struct gd_slice slice = {.count = 1, .item = {{.kind = GD_SLICE_INDEX, .start = 2, .step = 1}}};
    struct gd_tensor *tensor = fake_tensor(4, 10);
    struct answer answer = {0};
    struct gd_err err;

    stop_at(bench, GD_STOP_STEP, 1, GD_NO_NODE);
    /* A slice first: goes to the target, is not kept as the whole. */
    assert_int_equal(gd_session_fetch(bench->session, &ref, &slice, got_tensor, &answer, &err), 0);
    fake_answer_tensor(bench->fake, tensor, 1);
    assert_int_equal(answer.calls, 1);
    assert_int_equal(gd_session_fetch(bench->session, &ref, NULL, got_tensor, &answer, &err), 0);
    assert_int_equal(answer.calls, 1);
    fake_answer_tensor(bench->fake, tensor, -1); /* at the step's end: that step's value */
    assert_int_equal(answer.calls, 2);
    assert_int_equal(answer.step, 1);
    expect_slice_of_cache(bench, &slice);
    assert_int_equal(bench->fake->fetches, 2);
    assert_int_equal(gd_session_stats(bench->session, &ref, got_stats, &answer, &err), 0);
    assert_int_equal(answer.calls, 3);
    assert_true(answer.stats.max == 13 && !answer.stats.has_prev);
    assert_int_equal(bench->fake->stats_asked, 0);
    /* A step on: it is the previous value, and statistics of the new one are against it. */
    assert_ok(resume(bench, GD_RUN_STEP, 1, &err));
    assert_int_equal(gd_session_fetch(bench->session, &ref, NULL, got_tensor, &answer, &err),
                     GD_ESTATE);
    stop_at(bench, GD_STOP_STEP, 2, GD_NO_NODE);
    ref.iter = GD_PREVIOUS;
    assert_int_equal(gd_session_fetch(bench->session, &ref, NULL, got_tensor, &answer, &err), 0);
    assert_int_equal(answer.calls, 4);
    assert_int_equal(answer.step, 1);
    gd_tensor_unref(tensor);
    tensor = fake_tensor(4, 11);
    ref.iter = GD_CURRENT;
    assert_int_equal(gd_session_fetch(bench->session, &ref, NULL, got_tensor, &answer, &err), 0);
    fake_answer_tensor(bench->fake, tensor, 2);
    assert_int_equal(gd_session_stats(bench->session, &ref, got_stats, &answer, &err), 0);
    assert_true(answer.stats.has_prev && answer.stats.mean_abs_delta == 1);
    gd_session_on_lost(bench->session, "killed");
    expect_cache_alone(bench);
    gd_tensor_unref(tensor);
    finish(bench);
}

static void test_stats_fall_back(void **state)
{
    struct bench *bench = make(true);
    struct gd_tensor_ref ref = {.node = 0};
    struct gd_tensor *tensor = fake_tensor(4, 1);
    struct gd_stats stats = {.count = 99};
    struct gd_shape shape = {.rank = 1, .dim = {99}};
    struct answer answer = {0};

    stop_at(bench, GD_STOP_STEP, 1, GD_NO_NODE);
    /* The target's own answer is kept... */
    assert_int_equal(gd_session_stats(bench->session, &ref, got_stats, &answer, NULL), 0);
    bench->fake->stats_fn(bench->fake->stats_ctx, GD_FLOAT32, &shape, &stats, 1, NULL);
    assert_int_equal(gd_session_stats(bench->session, &ref, got_stats, &answer, NULL), 0);
    assert_int_equal(answer.calls, 2);
    assert_int_equal(answer.stats.count, 99);
    assert_int_equal(bench->fake->stats_asked, 1);
    /* ... and where it has none the value is fetched. */
    ref.node = 1;
    assert_int_equal(gd_session_stats(bench->session, &ref, got_stats, &answer, NULL), 0);
    fake_answer_error(bench->fake, GD_EUNSUPPORTED);
    assert_int_equal(answer.calls, 2);
    fake_answer_tensor(bench->fake, tensor, 1);
    assert_int_equal(answer.calls, 3);
    assert_true(answer.stats.count == 4 && answer.stats.mean == 2.5);
    ref.node = 2;
    assert_int_equal(gd_session_stats(bench->session, &ref, got_stats, &answer, NULL), 0);
    fake_answer_error(bench->fake, GD_ENODATA);
    assert_int_equal(answer.calls, 4);
    assert_int_equal(answer.code, GD_ENODATA);
    gd_tensor_unref(tensor);
    finish(bench);
    /* A target without the operation, which answers from inside it. */
    bench = make(false);
    bench->fake->value = fake_tensor(3, 0);
    tensor = bench->fake->value;
    ref.node = 0;
    stop_at(bench, GD_STOP_STEP, 1, GD_NO_NODE);
    answer = (struct answer){0};
    assert_int_equal(gd_session_stats(bench->session, &ref, got_stats, &answer, NULL), 0);
    assert_int_equal(answer.calls, 1);
    assert_int_equal(answer.stats.count, 3);
    gd_tensor_unref(tensor);
    finish(bench);
}

static void test_late_answers(void **state)
{
    struct bench *bench = make(true);
    struct gd_tensor_ref ref = {.node = 0};
    struct gd_tensor *tensor = fake_tensor(4, 1);
    struct answer answer = {0}, second = {0};
    struct gd_err err;

    /* An answer that comes after the trainer moved is delivered, but is no value of the new stop.
     */
    stop_at(bench, GD_STOP_STEP, 1, GD_NO_NODE);
    assert_int_equal(gd_session_fetch(bench->session, &ref, NULL, got_tensor, &answer, &err), 0);
    assert_ok(resume(bench, GD_RUN_STEP, 1, &err));
    stop_at(bench, GD_STOP_STEP, 2, GD_NO_NODE);
    fake_answer_tensor(bench->fake, tensor, 1);
    assert_int_equal(answer.calls, 1);
    assert_int_equal(gd_session_fetch(bench->session, &ref, NULL, got_tensor, &answer, &err), 0);
    assert_int_equal(bench->fake->fetches, 2);
    assert_int_equal(gd_session_stats(bench->session, &ref, got_stats, &second, &err), 0);
    /* The end answers everything, once; what the target says later goes nowhere. */
    gd_session_on_lost(bench->session, "the connection broke");
    assert_int_equal(answer.calls, 2);
    assert_int_equal(answer.code, GD_ELOST);
    assert_int_equal(second.calls, 1);
    assert_int_equal(second.code, GD_ELOST);
    fake_answer_tensor(bench->fake, tensor, 2);
    assert_int_equal(answer.calls, 2);
    gd_debugger_reap(bench->debugger);
    assert_int_equal(second.calls, 1);
    gd_tensor_unref(tensor);
    finish(bench);
}

static void test_cache_limits(void **state)
{
    struct gd_cache *cache;
    struct gd_tensor *tensor = fake_tensor(1000, 0);
    struct gd_tensor_ref ref = {.node = 0};
    struct gd_stats stats = {.count = 1};
    struct gd_shape shape = {.rank = 0};
    enum gd_dtype dtype;
    int64_t step;

    assert_ok(gd_cache_create(20000, &cache, NULL));
    for (ref.node = 0; ref.node < 200; ref.node++) {
        assert_ok(gd_cache_put(cache, &ref, tensor, 5));
        assert_true(gd_cache_bytes(cache) <= 20000);
    }
    ref.node = 199;
    assert_ptr_equal(gd_cache_get(cache, &ref, &step), tensor);
    assert_int_equal(step, 5);
    ref.node = 0;
    assert_null(gd_cache_get(cache, &ref, &step));
    assert_ok(gd_cache_put_stats(cache, &ref, GD_FLOAT32, &shape, &stats, 5));
    /* Within a step current values go, the previous ones stay; two steps on everything goes. */
    gd_cache_move(cache, 5, 6);
    ref.iter = GD_PREVIOUS;
    assert_true(gd_cache_get_stats(cache, &ref, &dtype, &shape, &stats, &step));
    ref.node = 199;
    assert_non_null(gd_cache_get(cache, &ref, NULL));
    ref.iter = GD_CURRENT;
    assert_null(gd_cache_get(cache, &ref, NULL));
    assert_ok(gd_cache_put(cache, &ref, tensor, 6));
    gd_cache_move(cache, 6, 6);
    assert_null(gd_cache_get(cache, &ref, NULL));
    ref.iter = GD_PREVIOUS;
    assert_non_null(gd_cache_get(cache, &ref, NULL));
    gd_cache_move(cache, 6, 8);
    assert_null(gd_cache_get(cache, &ref, NULL));
    assert_int_equal(gd_cache_bytes(cache), 0);
    gd_cache_set_max(cache, 100); /* too small for anything */
    assert_ok(gd_cache_put(cache, &ref, tensor, 8));
    assert_null(gd_cache_get(cache, &ref, NULL));
    gd_cache_destroy(cache);
    gd_tensor_unref(tensor);
}

/* ---- hits, scalars, several sessions ------------------------------------------------------- */

static void test_hits(void **state)
{
    struct bench *bench = make(true);
    struct gd_session *session = bench->session;
    struct gd_hit hit = {.watchpoint = 1, .node = GD_NO_NODE, .param_count = 99};

    bench->debugger->settings.max_hits = 100;
    snprintf(hit.node_name, sizeof(hit.node_name), "net/b");
    for (int i = 0; i < 1000; i++) {
        hit.step = i;
        gd_session_on_hit(session, &hit);
        assert_true(session->hit_count <= 100);
        assert_int_equal(session->hits[session->hit_count - 1].step, i);
        bench->log[0] = '\0';
    }
    assert_int_equal(session->hit_count + session->hits_dropped, 1000);
    assert_int_equal(session->hits[0].node, 1);
    assert_int_equal(session->hits[0].param_count, 0);
    assert_int_equal(session->hits[0].stop_sequence, 1);
    bench->debugger->settings.max_hits = 0;
    gd_session_on_hit(session, &hit);
    assert_int_equal(session->hit_count, 0);
    finish(bench);
}

static void test_scalars(void **state)
{
    struct bench *bench = make(true);
    struct gd_session *session = bench->session;
    char name[200];

    gd_session_on_scalar(session, "loss", 2.5, 1);
    gd_session_on_scalar(session, "loss", 2.25, 2);
    assert_int_equal(session->scalar_count, 1);
    assert_true(session->scalar[0].value == 2.25);
    for (int i = 0; i < 2 * GD_MAX_SCALARS; i++) {
        snprintf(name, sizeof(name), "%d%0150d", i, i);
        gd_session_on_scalar(session, name, 1, 1);
        gd_session_on_scalar(session, name, 2, 1);
    }
    assert_int_equal(session->scalar_count, GD_MAX_SCALARS);
    assert_true(session->scalar[1].value == 2);
    bench->log[0] = '\0';
    gd_session_on_log(session, "a line");
    gd_session_on_warning(session, "a warning");
    expect_log(bench, "lW");
    finish(bench);
}

static double number_at(const struct gd_session *session, int64_t step, const char *name)
{
    struct gd_numbers numbers = {.session = session, .step = step};
    double value = NAN;

    return gd_numbers_get(&numbers, name, &value) ? value : NAN;
}

/* One that is reported after its step's end is new where the next one ends, and only there. */
static void test_late_scalars(void **state)
{
    struct bench *bench = make(true);
    struct gd_session *session = bench->session;

    for (int64_t step = 1; step <= 3; step++) {
        assert_true(step == 1 || number_at(session, step, "improved(acc)") == 1);
        assert_true(step < 3 || number_at(session, step, "prev(acc)") == (double)step - 2);
        gd_session_on_late_scalar(session, "acc", (double)step, step);
        assert_true(number_at(session, step, "improved(acc)") ==
                    1); /* at the end of the evaluation */
    }
    assert_true(number_at(session, 4, "improved(acc)") == 1);
    assert_true(number_at(session, 5, "improved(acc)") == 0);
    assert_true(number_at(session, 5, "prev(acc)") == 3);
    gd_session_on_late_scalar(session, "acc", 2, 5);
    assert_true(number_at(session, 6, "improved(acc)") == 0);
    gd_session_on_scalar(session, "acc", 9, 6);
    gd_session_on_late_scalar(session, "acc", 10, 6); /* was seen at the end of 6 */
    assert_true(number_at(session, 7, "improved(acc)") == 0);
    finish(bench);
}

static void test_events_are_kept(void **state)
{
    struct bench *bench = make(true);
    struct gd_session *session = bench->session;
    char kind[200], text[1000];

    memset(kind, 'k', sizeof(kind) - 1);
    memset(text, 't', sizeof(text) - 1);
    kind[sizeof(kind) - 1] = text[sizeof(text) - 1] = '\0';
    gd_session_on_event(session, kind, text, 1, GD_NO_NODE);
    const struct gd_logged_event *event = gd_event_log_at(&session->events, 0);
    assert_int_equal(strlen(event->kind), GD_EVENT_KIND_SIZE - 1);
    assert_int_equal(strlen(event->text), GD_EVENT_TEXT_SIZE - 1);
    for (int i = 2; i < GD_MAX_EVENTS + 5; i++) {
        gd_session_on_event(session, "skipped-step", "", i, 0);
    }
    assert_int_equal(session->events.count, GD_MAX_EVENTS);
    assert_int_equal(session->events.dropped, 4);
    assert_int_equal(gd_event_log_at(&session->events, 0)->step, 5);
    assert_int_equal(gd_event_log_at(&session->events, GD_MAX_EVENTS - 1)->step, GD_MAX_EVENTS + 4);
    gd_session_on_lost(session, "gone");
    gd_session_on_event(session, "late", "", 9, 0);
    assert_int_equal(session->events.dropped, 4);
    finish(bench);
}

static int refuse_stop(struct gd_target *target, const struct gd_expected *expected,
                       struct gd_err *err)
{
    return gd_fail(err, ((struct fake_target *)target)->watch_rc, "the line is full");
}

/* What is waited for cannot be told: that is said once, and once more when it had gone well. */
static void test_nobody_is_told_what_is_waited_for(void **state)
{
    struct bench *bench = make(true);
    struct gd_target_ops ops = *bench->fake->target.ops;

    ops.expect = refuse_stop;
    bench->fake->target.ops = &ops;
    bench->fake->watch_rc = GD_ELIMIT;
    gd_session_on_graph(bench->session);
    expect_log(bench, "WG");
    assert_contains(bench->text, "may miss their first run: the training process was not "
                                 "told about them: the line is full");
    gd_session_on_graph(bench->session);
    expect_log(bench, "G");
    bench->fake->watch_rc = GD_OK;
    gd_session_on_graph(bench->session);
    bench->fake->watch_rc = GD_ELIMIT;
    gd_session_on_graph(bench->session);
    expect_log(bench, "GWG");
    finish(bench);
}

static void test_several_sessions(void **state)
{
    struct bench *bench = make(true);
    struct gd_debugger *debugger = bench->debugger;
    struct gd_session *second, *third, *need;
    struct gd_session *none = NULL;
    bool gone[3] = {false};
    struct fake_target *refused;
    struct gd_err err;

    debugger->settings.max_sessions = 2;
    second = connect_fake(debugger, fake_create(true, &gone[0]));
    expect_log(bench, "C"); /* the first stays selected */
    assert_int_equal(second->number, 2);
    refused = fake_create(true, &gone[1]);
    assert_int_equal(gd_session_create(debugger, &refused->target, NULL, &none, &err), GD_ELIMIT);
    assert_null(none);
    gd_debugger_reap(debugger);
    assert_true(gone[1]);
    gd_session_on_finished(bench->session, "done");
    assert_ptr_equal(debugger->current, bench->session);
    gd_session_on_lost(second, "gone");
    bench->log[0] = '\0';
    gd_debugger_reap(debugger);
    third = connect_fake(debugger, fake_create(true, &gone[2]));
    expect_log(bench, "CX"); /* the selected one is over: the new one takes its place */
    assert_ptr_equal(debugger->current, third);
    assert_int_equal(third->number, 3);
    assert_null(gd_debugger_session(debugger, 2)); /* made room */
    assert_int_equal(gd_debugger_select(debugger, 2, &err), GD_ENOTFOUND);
    assert_ok(gd_debugger_select(debugger, 1, &err));
    expect_log(bench, "X");
    assert_ok(gd_debugger_need_session(debugger, &need, &err));
    assert_ptr_equal(need, bench->session);
    gd_debugger_unobserve(debugger, observe, bench);
    gd_debugger_select(debugger, 3, &err);
    expect_log(bench, "");
    finish(bench);
    assert_true(gone[2]);
}

/* A session that is over stays for as long as somebody holds it, and goes then. */
static void test_held_session(void **state)
{
    struct bench *bench = make(true);
    struct gd_debugger *debugger = bench->debugger;
    struct gd_session *held, *none = NULL;
    bool gone[3] = {false};
    struct gd_err err;

    gd_session_hold(NULL);
    gd_session_release(NULL);
    debugger->settings.max_sessions = 2;
    held = connect_fake(debugger, fake_create(true, &gone[0]));
    gd_session_hold(held);
    gd_session_hold(held);
    gd_session_on_lost(held, "gone");
    gd_debugger_reap(debugger);
    for (int i = 0; i < 2; i++) {
        struct fake_target *refused = fake_create(true, &gone[1]);
        assert_int_equal(gd_session_create(debugger, &refused->target, NULL, &none, &err),
                         GD_ELIMIT);
        gd_debugger_reap(debugger);
        assert_string_equal(held->end_text, "gone");
        assert_ptr_equal(gd_debugger_session(debugger, 2), held);
        gd_session_release(held);
    }
    connect_fake(debugger, fake_create(true, &gone[2]));
    assert_null(gd_debugger_session(debugger, 2));
    finish(bench);
}

static void test_nobody_there(void **state)
{
    struct gd_debugger *debugger;
    struct gd_session *need;
    struct gd_breakpoint *breakpoint;
    struct gd_err err;

    assert_ok(gd_debugger_create(&debugger, &err));
    assert_int_equal(gd_debugger_need_session(debugger, &need, &err), GD_ESTATE);
    assert_contains(err.text, "no training process is connected");
    assert_ok(gd_debugger_break(debugger, "x", false, &breakpoint, &err));
    gd_debugger_destroy(debugger);
    gd_debugger_destroy(NULL);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_states),
    cmocka_unit_test(test_node_names),
    cmocka_unit_test(test_unsupported),
    cmocka_unit_test(test_fetch_and_cache),
    cmocka_unit_test(test_stats_fall_back),
    cmocka_unit_test(test_late_answers),
    cmocka_unit_test(test_cache_limits),
    cmocka_unit_test(test_hits),
    cmocka_unit_test(test_scalars),
    cmocka_unit_test(test_late_scalars),
    cmocka_unit_test(test_events_are_kept),
    cmocka_unit_test(test_nobody_is_told_what_is_waited_for),
    cmocka_unit_test(test_several_sessions),
    cmocka_unit_test(test_held_session),
    cmocka_unit_test(test_nobody_there),
};

RUN_TESTS()
