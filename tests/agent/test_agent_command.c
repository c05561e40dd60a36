// SPDX-License-Identifier: GPL-3.0-or-later
/* Commands that the program carries out while it stands; stops at the end of a step to come; times,
 * events, and what the process says of its job. */
#include "eager.h"

#include "proto/v1/v1_impl.h"

struct both {
    struct world w;
    struct eager e;
    struct gd_note note; /* the last one, its words in the two below */
    char kind[64], text[512];
    unsigned notes;
};

static void note_event(void *ctx, const struct gd_event *event)
{
    struct both *b = ctx;
    if (event->type == GD_EV_EVENT) {
        b->notes++;
        b->note = *event->note;
        snprintf(b->kind, sizeof(b->kind), "%s", event->note->kind);
        snprintf(b->text, sizeof(b->text), "%s", event->note->text);
    }
}

static int set_up(void **state)
{
    struct both *b = calloc(1, sizeof(*b));
    assert_non_null(b);
    world_open(&b->w, 0);
    assert_ok(gd_debugger_observe(b->w.debugger, note_event, b));
    b->e.ops = 3;
    b->e.batch = 3;
    *state = b;
    return 0;
}

static int tear_down(void **state)
{
    struct both *b = *state;
    eager_end(&b->e, &b->w);
    world_close(&b->w);
    free(b);
    return 0;
}

/* ---- commands -------------------------------------------------------------------------------- */

static struct {
    unsigned count;
    char *text; /* NULL: an error */
    struct gd_err err;
} reply;

static void on_reply(void *ctx, const char *text, const struct gd_err *err)
{
    reply.count++;
    free(reply.text);
    reply.text = text ? strdup(text) : NULL;
    if (err) {
        reply.err = *err;
    }
}

static bool has_reply(struct world *w)
{
    return reply.count > 0;
}

static int ask_command(struct both *b, const char *name, const char *args, gd_node_id node,
                       struct gd_err *err)
{
    reply.count = 0;
    free(reply.text);
    reply.text = NULL;
    return gd_target_command(world_session(&b->w)->target, name, args, node, on_reply, b, err);
}

static const char *run_command(struct both *b, const char *name, const char *args, gd_node_id node)
{
    struct gd_err err;
    if (ask_command(b, name, args, node, &err) < 0) {
        fail_msg("%s", err.text);
    }
    world_until(&b->w, "the answer", has_reply);
    assert_int_equal(reply.count, 1);
    return reply.text;
}

static void a_command_is_answered(void **state)
{
    struct both *b = *state;
    eager_begin(&b->e, &b->w);
    assert_true(world_session(&b->w)->target->capabilities & GD_CAN_COMMAND);
    assert_string_equal(run_command(b, "overflow", "3 4", GD_NO_NODE), "overflow(3 4) on 0");
    world_run(&b->w, GD_RUN_STEP, 1, NULL);
    assert_string_equal(run_command(b, "rerun", "", world_node(&b->w, "net/op0")), "rerun() on 2");
    assert_string_equal(run_command(b, "nothing", NULL, GD_NO_NODE), "");
    assert_null(run_command(b, "fail", "overflow", GD_NO_NODE));
    assert_int_equal(reply.err.code, GD_ENODATA);
    assert_string_equal(reply.err.text, "no overflow today");
}

static void answers_have_a_limit(void **state)
{
    struct both *b = *state;
    eager_begin(&b->e, &b->w);
    assert_int_equal(strlen(run_command(b, "flood", "1048576", GD_NO_NODE)), 1 << 20);
    assert_null(run_command(b, "flood", "1048577", GD_NO_NODE));
    assert_int_equal(reply.err.code, GD_ELIMIT);
}

static void commands_want_a_stop(void **state)
{
    struct both *b = *state;
    struct gd_err err;
    eager_begin(&b->e, &b->w);
    world_resume(&b->w, GD_RUN_CONTINUE, 0, NULL);
    assert_int_equal(ask_command(b, "overflow", "", GD_NO_NODE, &err), GD_ESTATE);
}

static bool is_holding(struct world *w)
{
    const struct both *b = (const struct both *)(const void *)w;
    return atomic_load(&b->e.holding) != 0;
}

static void begin_hold(struct both *b)
{
    assert_ok(ask_command(b, "hold", "", GD_NO_NODE, NULL));
    world_until(&b->w, "the command to begin", is_holding);
}

static struct {
    double last;
    unsigned count;
} heard;

static bool has_heard_five(struct world *w)
{
    double last = w->service->conns->last_heard;
    heard.count += last > heard.last;
    heard.last = last;
    return heard.count > 5;
}

static void heartbeats_go_on_during_a_command(void **state)
{
    struct both *b = *state;
    b->w.debugger->settings.keepalive = 0.1;
    eager_begin(&b->e, &b->w);
    begin_hold(b);
    heard.count = 0;
    world_until(&b->w, "heartbeats", has_heard_five);
    assert_int_equal(reply.count, 0);
    assert_int_equal(b->w.lost, 0);
    b->w.debugger->settings.keepalive = 0;
    sem_post(&b->e.let_go);
    world_until(&b->w, "the answer", has_reply);
    assert_string_equal(reply.text, "hold() on 0");
}

/* The training goes on when the program is done; the command is told off at once. */
static void a_run_ends_a_command(void **state)
{
    struct both *b = *state;
    eager_begin(&b->e, &b->w);
    begin_hold(b);
    unsigned stops = b->w.stops;
    world_resume(&b->w, GD_RUN_STEP, 1, NULL);
    world_until(&b->w, "the answer", has_reply);
    assert_int_equal(reply.err.code, GD_ESTATE);
    assert_int_equal(atomic_load(&b->e.step), 0);
    sem_post(&b->e.let_go);
    world_until_stops(&b->w, stops + 1);
    assert_int_equal(reply.count, 1);
    assert_string_equal(run_command(b, "overflow", "", GD_NO_NODE), "overflow() on 0");
}

/* The debugger goes away, another comes while the program is still at it. */
static bool has_come_again(struct world *w)
{
    return w->connected >= 2 && w->stops >= 2;
}

static void a_debugger_that_is_lost_does_not_wait(void **state)
{
    struct both *b = *state;
    b->w.debugger->settings.on_loss = GD_ON_LOSS_HOLD;
    eager_begin(&b->e, &b->w);
    begin_hold(b);
    v1_conn_finish(b->w.service->conns, GD_GRPC_UNAVAILABLE, "away");
    world_until(&b->w, "the answer", has_reply);
    assert_int_equal(reply.err.code, GD_ELOST);
    sem_post(&b->e.let_go);
    world_until(&b->w, "the trainer to come again", has_come_again);
    assert_int_equal(reply.count, 1);
    assert_string_equal(run_command(b, "overflow", "", GD_NO_NODE), "overflow() on 0");
    b->w.lost = 0;
}

static bool has_logged(struct world *w)
{
    return w->logs >= 2;
}

static void a_command_may_call_libgradb(void **state)
{
    struct both *b = *state;
    eager_begin(&b->e, &b->w);
    assert_string_equal(run_command(b, "call-back", "", GD_NO_NODE), "call-back() on 0");
    world_until(&b->w, "what it said", has_logged);
    assert_int_equal(world_session(&b->w)->scalar_count, 1);
    assert_string_equal(world_session(&b->w)->scalar[0].name, "inside");
    world_run(&b->w, GD_RUN_STEP, 1, NULL);
    assert_int_equal(world_session(&b->w)->stop.step, 1);
    assert_int_equal(b->w.stops, 2);
    assert_int_equal(world_node(&b->w, "net/late") != GD_NO_NODE, 1);
}

/* Another thread says something all the time, with the lock that the source needs in its hands. */
static void *log_endlessly(void *arg)
{
    struct eager *e = arg;
    while (!atomic_load(&e->end)) {
        pthread_mutex_lock(&e->big_lock);
        if (e->agent && !atomic_load(&e->done)) {
            gradb_scalar(e->agent, "talk", 1);
            gradb_log(e->agent, "talk");
        }
        pthread_mutex_unlock(&e->big_lock);
        sched_yield();
    }
    return NULL;
}

static void a_thread_that_talks_does_not_lock_up(void **state)
{
    struct both *b = *state;
    pthread_t talker;
    b->e.stats = true;
    eager_begin(&b->e, &b->w);
    assert_int_equal(pthread_create(&talker, NULL, log_endlessly, &b->e), 0);
    for (int i = 0; i < 20; i++) {
        struct gd_tensor *tensor = NULL;
        world_run(&b->w, GD_RUN_STEP, 1, NULL);
        assert_ok(world_fetch(&b->w, "net/op1", GD_CURRENT, NULL, &tensor, NULL, NULL));
        gd_tensor_unref(tensor);
        run_command(b, "overflow", "", GD_NO_NODE);
    }
    atomic_store(&b->e.end, 1);
    pthread_join(talker, NULL);
}

static void a_command_may_fork(void **state)
{
    struct both *b = *state;
    eager_begin(&b->e, &b->w);
    assert_string_equal(run_command(b, "fork", "", GD_NO_NODE), "fork() on 0");
    world_run(&b->w, GD_RUN_STEP, 1, NULL);
    assert_int_equal(world_session(&b->w)->stop.step, 1);
}

/* ---- stops at the end of a step -------------------------------------------------------------- */

static bool told;

static void on_costs(void *ctx, const struct gd_plan_cost *costs, size_t count,
                     const struct gd_err *err)
{
    told = true;
}

static bool is_told(struct world *w)
{
    return told;
}

/* The trainer has heard all that was said to it, and may pass the gate. */
static void open_gate(struct both *b)
{
    told = false;
    assert_ok(gd_target_watch_costs(world_session(&b->w)->target, on_costs, NULL, NULL));
    world_until(&b->w, "the trainer to have heard", is_told);
    atomic_store(&b->e.gate, 0);
}

static void interrupted_at(void **state)
{
    struct both *b = *state;
    struct gd_err err;
    eager_begin(&b->e, &b->w);
    const struct gd_session *session = world_session(&b->w);
    assert_true(session->target->capabilities & GD_CAN_INTERRUPT_AT);
    atomic_store(&b->e.gate, 5);
    world_resume(&b->w, GD_RUN_STEP, 50, NULL);
    assert_int_equal(gd_target_interrupt_at(session->target, -1, &err), GD_EINVAL);
    assert_ok(gd_target_interrupt_at(session->target, 20, &err));
    open_gate(b);
    world_until_stops(&b->w, 2);
    assert_string_equal(gd_stop_reason_name(session->stop.reason), "interrupt");
    assert_true(session->stop.at_step_end);
    assert_int_equal(session->stop.step, 20);
    world_run(&b->w, GD_RUN_STEP, 3, NULL); /* nothing of it is left */
    assert_string_equal(gd_stop_reason_name(session->stop.reason), "step");
    world_resume(&b->w, GD_RUN_CONTINUE, 0, NULL);
    assert_ok(gd_target_interrupt_at(session->target, 7, &err)); /* over already */
    world_until_stops(&b->w, 4);
    assert_string_equal(gd_stop_reason_name(session->stop.reason), "interrupt");
    assert_true(session->stop.at_step_end);
    assert_true(session->stop.step >= 23); /* where it stood is such an end, too */
}

/* A breakpoint that is passed over on the way does not make it forgotten. The gate: step 5 is not
 * over before it was asked for. */
static void interrupted_behind_ignored_breakpoints(void **state)
{
    struct both *b = *state;
    struct gd_breakpoint *point = NULL;
    eager_begin(&b->e, &b->w);
    const struct gd_session *session = world_session(&b->w);
    assert_ok(gd_debugger_break(b->w.debugger, "net/op1", false, &point, NULL));
    point->ignore = 1000000;
    atomic_store(&b->e.gate, 5);
    world_resume(&b->w, GD_RUN_CONTINUE, 0, NULL);
    assert_ok(gd_target_interrupt_at(session->target, 9, NULL));
    open_gate(b);
    world_until_stops(&b->w, 2);
    assert_string_equal(gd_stop_reason_name(session->stop.reason), "interrupt");
    assert_true(session->stop.at_step_end);
    assert_int_equal(session->stop.step, 9);
    assert_true(point->hits >= 8);
}

/* Asked while it stands it is of the next run, whatever that is, and of no other. */
static void interrupted_at_of_the_next_run(void **state)
{
    struct both *b = *state;
    eager_begin(&b->e, &b->w);
    const struct gd_session *session = world_session(&b->w);
    assert_ok(gd_target_interrupt_at(session->target, 3, NULL));
    world_run(&b->w, GD_RUN_NEXT, 100000, NULL);
    assert_string_equal(gd_stop_reason_name(session->stop.reason), "interrupt");
    assert_true(session->stop.at_step_end);
    assert_int_equal(session->stop.step, 3);
    assert_ok(gd_target_interrupt_at(session->target, 4, NULL));
    world_run(&b->w, GD_RUN_NEXT, 1, NULL);
    assert_string_equal(gd_stop_reason_name(session->stop.reason), "node");
    world_run(&b->w, GD_RUN_STEP, 3, NULL);
    assert_string_equal(gd_stop_reason_name(session->stop.reason), "step");
    assert_int_equal(session->stop.step, 6);
}

/* A stop that is shown ends it, and so does taking it back. */
static void interrupts_taken_back(void **state)
{
    struct both *b = *state;
    eager_begin(&b->e, &b->w);
    const struct gd_session *session = world_session(&b->w);
    atomic_store(&b->e.gate, 2);
    world_resume(&b->w, GD_RUN_STEP, 4, NULL);
    assert_ok(gd_target_interrupt_at(session->target, 6, NULL));
    open_gate(b);
    world_until_stops(&b->w, 2);
    assert_int_equal(session->stop.step, 4);
    world_run(&b->w, GD_RUN_STEP, 4, NULL);
    assert_int_equal(session->stop.step, 8);
    atomic_store(&b->e.gate, 9);
    world_resume(&b->w, GD_RUN_STEP, 4, NULL);
    assert_ok(gd_target_interrupt_at(session->target, 10, NULL));
    assert_ok(gd_target_interrupt_at(session->target, 0, NULL));
    open_gate(b);
    world_until_stops(&b->w, 4);
    assert_string_equal(gd_stop_reason_name(session->stop.reason), "step");
    assert_int_equal(session->stop.step, 12);
}

/* ---- words ----------------------------------------------------------------------------------- */

static void times_of_a_step(void **state)
{
    struct both *b = *state;
    b->e.times = true;
    eager_begin(&b->e, &b->w);
    const struct gd_session *session = world_session(&b->w);
    assert_int_equal(session->step_times.step, 0);
    world_run(&b->w, GD_RUN_STEP, 3, NULL);
    const struct gd_step_times *t = &session->step_times;
    const struct gd_time_report *past = session->times;
    assert_int_equal(t->step, 3);
    assert_true(t->part[GD_TIME_COMPILED] == 0.125 && past->first.part[GD_TIME_COMPILED] == -1.0);
    assert_true(t->part[GD_TIME_TOTAL] == 2.0 && t->part[GD_TIME_FORWARD] == 1.0);
    assert_true(t->part[GD_TIME_REST] == 0.25 && t->part[GD_TIME_DATA] == -1.0);
    assert_true(t->part[GD_TIME_BACKWARD] == -1.0);
    assert_int_equal(t->op_count, 2); /* one was no number */
    assert_int_equal(t->op[0].node, world_node(&b->w, "net/op0"));
    assert_true(t->op[0].seconds == 0.5);
    assert_int_equal(t->op[1].calls, 2);
    assert_int_equal(past->count, 3);
    assert_true(past->sum[GD_TIME_TOTAL] == 6.0 && past->sum[GD_TIME_OPTIMIZER] == 1.5);
    assert_true(past->sum[GD_TIME_DATA] == -1.0);
}

static void events_reach_observers(void **state)
{
    struct both *b = *state;
    b->e.times = true;
    eager_begin(&b->e, &b->w);
    world_run(&b->w, GD_RUN_STEP, 2, NULL);
    assert_int_equal(b->notes, 2);
    assert_string_equal(b->kind, "skipped-step");
    assert_string_equal(b->text, "the gradients were not finite");
    assert_int_equal(b->note.step, 2);
    assert_int_equal(b->note.node, world_node(&b->w, "net/op0"));
    assert_string_equal(b->w.last_log, "skipped-step at step 2: the gradients were not finite");
}

static void expect_job(const char *job)
{
    struct both *b = NULL;
    void *state = NULL;
    set_up(&state);
    b = state;
    eager_begin(&b->e, &b->w);
    assert_string_equal(world_session(&b->w)->peer.job, job);
    tear_down(&state);
}

static void jobs_are_named(void **state)
{
    static const char *const names[] = {"TORCHELASTIC_RUN_ID", "SLURM_JOB_ID", "MASTER_ADDR",
                                        "MASTER_PORT", "GRADB_JOB"};
    for (size_t i = 0; i < 5; i++) {
        unsetenv(names[i]);
    }
    expect_job("");
    setenv("GRADB_JOB", "run-7", 1); /* is for several processes, and this is one */
    setenv("MASTER_ADDR", "node7", 1);
    expect_job("");
    setenv("MASTER_PORT", "29500", 1);
    expect_job("node7:29500");
    setenv("TORCHELASTIC_RUN_ID", "none", 1);
    expect_job("node7:29500");
    setenv("SLURM_JOB_ID", "4711", 1);
    expect_job("4711");
    setenv("TORCHELASTIC_RUN_ID", "run-1", 1);
    expect_job("run-1");
    for (size_t i = 0; i < 5; i++) {
        unsetenv(names[i]);
    }
}

static const struct CMUnitTest tests[] = {
    TEST(a_command_is_answered),
    TEST(answers_have_a_limit),
    TEST(commands_want_a_stop),
    TEST(heartbeats_go_on_during_a_command),
    TEST(a_run_ends_a_command),
    TEST(a_debugger_that_is_lost_does_not_wait),
    TEST(a_command_may_call_libgradb),
    TEST(a_thread_that_talks_does_not_lock_up),
    TEST(a_command_may_fork),
    TEST(interrupted_at),
    TEST(interrupted_behind_ignored_breakpoints),
    TEST(interrupts_taken_back),
    TEST(interrupted_at_of_the_next_run),
    TEST(times_of_a_step),
    TEST(events_reach_observers),
    cmocka_unit_test(jobs_are_named),
};

RUN_TESTS()
