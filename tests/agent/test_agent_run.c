// SPDX-License-Identifier: GPL-3.0-or-later
/* A training run under the debugger: meeting, graph, stops of every kind, steps and nodes. */
#include "world.h"

struct both {
    struct world w;
    struct toy toy;
};

static bool is_running_free(struct world *w)
{
    return w->finished > 0 || w->lost > 0;
}

static void expect_stop(const struct both *b, enum gd_stop_reason reason, int64_t step, bool at_end,
                        const char *node)
{
    const struct gd_stop *stop = &world_session(&b->w)->stop;
    assert_string_equal(gd_stop_reason_name(stop->reason), gd_stop_reason_name(reason));
    assert_int_equal(stop->step, step);
    assert_int_equal(stop->at_step_end, at_end);
    assert_string_equal(stop->node_name, node);
}

static struct both *make_both(void)
{
    struct both *b = calloc(1, sizeof(*b));
    assert_non_null(b);
    world_open(&b->w, 0);
    b->toy.wait = 60;
    return b;
}

static int begin_training(struct both *b, void **state)
{
    toy_start(&b->toy, &b->w);
    world_until_stops(&b->w, 1);
    *state = b;
    return 0;
}

static int set_up(void **state)
{
    return begin_training(make_both(), state);
}

static int tear_down(void **state)
{
    struct both *b = *state;
    struct gd_session *session = world_session(&b->w);
    atomic_store(&b->toy.end, 1);
    if (gd_session_is_live(session)) {
        gd_target_set_breakpoints(session->target, NULL, 0, NULL);
        if (session->state == GD_STOPPED) {
            world_resume(&b->w, GD_RUN_CONTINUE, 0, NULL);
        }
        world_until(&b->w, "the end of the training", is_running_free);
    }
    toy_join(&b->toy);
    world_close(&b->w);
    free(b);
    return 0;
}

static void first_stop_tells_who_it_is(void **state)
{
    struct both *b = *state;
    const struct gd_session *session = world_session(&b->w);
    expect_stop(b, GD_STOP_CONNECTED, 0, true, "");
    assert_string_equal(session->peer.framework, "toy");
    assert_string_equal(session->peer.version, "1.5");
    assert_string_equal(session->peer.program, "toy --train");
    assert_int_equal(session->peer.rank, 2);
    assert_int_equal(session->peer.world_size, 4);
    assert_true(session->peer.pid > 0);
    assert_int_equal(atomic_load(&b->toy.waited), 0); /* gradb_wait stands */
    world_run(&b->w, GD_RUN_STEP, 1, NULL);
    assert_int_equal(atomic_load(&b->toy.waited), 2);
}

static void graph_is_what_was_added(void **state)
{
    struct both *b = *state;
    struct gd_session *session = world_session(&b->w);
    struct gd_graph_counts counts;
    gd_graph_counts(session->graph, &counts);
    assert_int_equal(counts.nodes, 7);
    assert_int_equal(counts.missing_inputs, 0);
    assert_int_equal(counts.by_kind[GD_NODE_WEIGHT], 1);
    assert_int_equal(counts.by_kind[GD_NODE_GRADIENT], 1);
    gd_node_id w = world_node(&b->w, "net/w"), adam = world_node(&b->w, "net/Adam-op3");
    struct gd_node_info info;
    assert_true(gd_graph_node(session->graph, w, &info));
    assert_int_equal(info.input_count, 1);
    assert_int_equal(info.inputs[0].node, adam);
    assert_true(gd_graph_node(session->graph, adam, &info));
    assert_int_equal(info.attr_count, 2);
    assert_string_equal(info.attrs[0].name, "toy");
    assert_string_equal(info.attrs[1].value, "optimizer");
    struct gd_output output;
    assert_true(gd_graph_output(session->graph, w, 0, &output));
    assert_int_equal(output.dtype, GD_FLOAT64);
    assert_int_equal(output.shape.rank, 2);
    assert_int_equal(output.shape.dim[1], TOY_COLS);
    uint32_t frames = 0;
    const struct gd_frame *frame = gd_graph_stack(session->graph, w, &frames);
    assert_int_equal(frames, 1);
    assert_string_equal(frame->file, "toy.c");
    assert_int_equal(frame->line, 10);
}

static void runs_steps(void **state)
{
    struct both *b = *state;
    world_run(&b->w, GD_RUN_STEP, 1, NULL);
    expect_stop(b, GD_STOP_STEP, 1, true, "");
    world_run(&b->w, GD_RUN_STEP, 3, NULL);
    expect_stop(b, GD_STOP_STEP, 4, true, "");
    /* From inside a step, the first step is the one that is under way. */
    world_run(&b->w, GD_RUN_NEXT, 2, NULL);
    expect_stop(b, GD_STOP_NODE, 5, false, "net/MatMul-op1");
    world_run(&b->w, GD_RUN_STEP, 1, NULL);
    expect_stop(b, GD_STOP_STEP, 5, true, "");
    assert_int_equal(world_session(&b->w)->scalar_count, 1);
    assert_string_equal(world_session(&b->w)->scalar[0].name, "loss");
    assert_true(world_session(&b->w)->scalar[0].value == 2.0);
    assert_int_equal(world_session(&b->w)->scalar[0].step, 5);
}

static void runs_to_nodes(void **state)
{
    struct both *b = *state;
    world_run(&b->w, GD_RUN_NEXT, 1, NULL);
    expect_stop(b, GD_STOP_NODE, 1, false, "net/x");
    assert_string_equal(world_session(&b->w)->stop.phase, "forward");
    world_run(&b->w, GD_RUN_NEXT, 1, NULL);
    expect_stop(b, GD_STOP_NODE, 1, false, "net/MatMul-op1");
    world_run(&b->w, GD_RUN_NEXT, 5, NULL); /* over the end of the step */
    expect_stop(b, GD_STOP_NODE, 2, false, "net/x");
    world_run(&b->w, GD_RUN_TO_NODE, 0, "Gradients/net/w");
    expect_stop(b, GD_STOP_NODE, 2, false, "Gradients/net/w");
    assert_string_equal(world_session(&b->w)->stop.phase, "backward");
    world_run(&b->w, GD_RUN_TO_NODE, 0, "net/x"); /* behind us: in the next step */
    expect_stop(b, GD_STOP_NODE, 3, false, "net/x");
}

static void runs_to_phases(void **state)
{
    struct both *b = *state;
    world_run(&b->w, GD_RUN_FINISH, 0, NULL); /* between steps: the first phase to come */
    expect_stop(b, GD_STOP_PHASE, 1, false, "net/ReLU-op2");
    assert_string_equal(world_session(&b->w)->stop.phase, "forward");
    world_run(&b->w, GD_RUN_NEXT, 1, NULL);
    expect_stop(b, GD_STOP_NODE, 1, false, "Gradients/net/w");
    world_run(&b->w, GD_RUN_FINISH, 0, NULL);
    expect_stop(b, GD_STOP_PHASE, 1, false, "Gradients/net/w");
    world_run(&b->w, GD_RUN_NEXT, 1, NULL);
    expect_stop(b, GD_STOP_NODE, 1, false, "net/Adam-op3");
    world_run(&b->w, GD_RUN_FINISH, 0, NULL); /* the last phase ends with the step */
    expect_stop(b, GD_STOP_PHASE, 1, true, "");
}

static void stops_at_breakpoints(void **state)
{
    struct both *b = *state;
    struct gd_breakpoint *point = NULL;
    assert_ok(gd_debugger_break(b->w.debugger, "net/ReLU-op2", false, &point, NULL));
    for (int64_t step = 1; step <= 3; step++) {
        world_run(&b->w, GD_RUN_CONTINUE, 0, NULL);
        expect_stop(b, GD_STOP_BREAKPOINT, step, false, "net/ReLU-op2");
    }
    assert_ok(gd_debugger_break(b->w.debugger, "Gradients/net/w", true, NULL, NULL));
    world_run(&b->w, GD_RUN_CONTINUE, 0, NULL);
    expect_stop(b, GD_STOP_BREAKPOINT, 3, false, "Gradients/net/w");
    assert_ok(gd_debugger_delete_breakpoint(b->w.debugger, point->number, NULL));
    world_run(&b->w, GD_RUN_STEP, 5, NULL);
    expect_stop(b, GD_STOP_STEP, 7, true, "");
}

static bool has_run_on(struct world *w)
{
    const struct gd_session *session = world_session(w);
    return session->scalar_count > 0 && session->scalar[0].step > 20;
}

static void stops_at_interrupts(void **state)
{
    struct both *b = *state;
    for (int i = 0; i < 3; i++) {
        unsigned stops = b->w.stops;
        world_resume(&b->w, GD_RUN_CONTINUE, 0, NULL);
        assert_int_equal(world_session(&b->w)->state, GD_RUNNING);
        if (i > 0) {
            world_until(&b->w, "steps without a debugger's doing", has_run_on);
        }
        assert_ok(gd_target_interrupt(world_session(&b->w)->target, NULL));
        world_until_stops(&b->w, stops + 1);
        assert_int_equal(world_session(&b->w)->stop.reason, GD_STOP_INTERRUPT);
    }
}

static void count_call(void *ctx)
{
    atomic_fetch_add((atomic_int *)ctx, 1);
}

static void program_hears_that_nodes_are_wanted(void **state)
{
    struct both *b = *state;
    atomic_int calls = 0;
    gradb_on_armed(b->toy.agent, count_call, &calls);
    world_run(&b->w, GD_RUN_STEP, 2, NULL); /* no node is wanted for that */
    assert_int_equal(atomic_load(&calls), 0);
    for (int i = 1; i < 3; i++) {
        unsigned stops = b->w.stops;
        world_resume(&b->w, GD_RUN_CONTINUE, 0, NULL);
        assert_ok(gd_target_interrupt(world_session(&b->w)->target, NULL));
        world_until_stops(&b->w, stops + 1);
        assert_int_equal(atomic_load(&calls), i);
    }
    gradb_on_armed(b->toy.agent, NULL, NULL);
    world_run(&b->w, GD_RUN_NEXT, 1, NULL);
    assert_int_equal(atomic_load(&calls), 2);
}

static void phase_is_entered_at_once_unless_it_may_stand(void **state)
{
    struct both *b = *state;
    assert_true(gradb_try_enter(NULL, GRADB_FORWARD));
    world_run(&b->w, GD_RUN_STEP, 2, NULL);
    assert_int_equal(atomic_load(&b->toy.entered[true]), 6);
    assert_int_equal(atomic_load(&b->toy.entered[false]), 0);
    world_run(&b->w, GD_RUN_FINISH, 0, NULL);
    assert_int_equal(atomic_load(&b->toy.entered[true]), 6);
    assert_int_equal(atomic_load(&b->toy.entered[false]), 2); /* forward, and behind it */
}

static int start_trying(void **state)
{
    struct both *b = make_both();
    b->toy.tries_steps = true;
    return begin_training(b, state);
}

static void expect_ended(struct both *b, int at_once, int standing)
{
    assert_int_equal(atomic_load(&b->toy.ended[true]), at_once);
    assert_int_equal(atomic_load(&b->toy.ended[false]), standing);
}

static void steps_follow_at_once_until_the_last(void **state)
{
    struct both *b = *state;
    assert_true(gradb_try_step(NULL, 1));
    world_run(&b->w, GD_RUN_STEP, 5, NULL);
    expect_stop(b, GD_STOP_STEP, 5, true, "");
    expect_ended(b, 4, 0);
    world_run(&b->w, GD_RUN_STEP, 1, NULL);
    expect_stop(b, GD_STOP_STEP, 6, true, "");
    expect_ended(b, 4, 1);
    world_run(&b->w, GD_RUN_TO_NODE, 0, "net/ReLU-op2");
    world_run(&b->w, GD_RUN_STEP, 1, NULL); /* the rest of that one */
    expect_stop(b, GD_STOP_STEP, 7, true, "");
    world_run(&b->w, GD_RUN_TO_NODE, 0, "net/ReLU-op2");
    world_run(&b->w, GD_RUN_STEP, 3, NULL);
    expect_stop(b, GD_STOP_STEP, 10, true, "");
    expect_ended(b, 6, 3);
}

static int start_evaluating(void **state)
{
    struct both *b = make_both();
    b->toy.evaluates = true;
    return begin_training(b, state);
}

static int start_evaluating_in_steps(void **state)
{
    struct both *b = make_both();
    b->toy.evaluates = b->toy.tries_steps = true;
    return begin_training(b, state);
}

static void expect_number(const struct both *b, const char *name, int64_t step, bool late)
{
    const struct gd_scalar *scalar = gd_session_scalar(world_session(&b->w), name);
    assert_non_null(scalar);
    assert_int_equal(scalar->step, step);
    assert_int_equal(scalar->late, late);
}

static void numbers_belong_to_the_step_that_has_ended(void **state)
{
    struct both *b = *state;
    world_run(&b->w, GD_RUN_STEP, 3, NULL);
    expect_stop(b, GD_STOP_STEP, 3, true, "");
    expect_number(b, "loss", 3, false);
    expect_number(b, "in", 2, true);
    expect_number(b, "dated", 2, true);
    bool begun = b->toy.tries_steps; /* step 3, right after step 2 */
    expect_number(b, "past", begun ? 3 : 2, !begun);
}

static void on_reply(void *ctx, const char *text, const struct gd_err *err)
{
    assert_string_equal(text, "{}");
    (*(unsigned *)ctx)++;
}

static unsigned replies;

static bool has_reply(struct world *w)
{
    return replies > 0;
}

/* Each step has a loss in it and another one after it, when the next one has begun. */
static void late_losses_count_for_their_step(void **state)
{
    struct both *b = *state;
    replies = 0;
    assert_ok(gd_target_command(world_session(&b->w)->target, "metric",
                                "add mean_loss = loss by step", GD_NO_NODE, on_reply, &replies,
                                NULL));
    world_until(&b->w, "the answer", has_reply);
    world_run(&b->w, GD_RUN_STEP, 5, NULL);
    expect_number(b, "mean_loss", 5, false);
    const struct gd_scalar *scalar = gd_session_scalar(world_session(&b->w), "mean_loss");
    assert_true(scalar->value == 2 && scalar->before == (10.0 / 4 + 4) / 2);
}

static void values_are_refused_while_it_runs(void **state)
{
    struct both *b = *state;
    struct gd_err err = {0};
    struct gd_tensor *tensor = NULL;
    world_resume(&b->w, GD_RUN_CONTINUE, 0, NULL);
    assert_int_equal(world_fetch(&b->w, "net/w", GD_CURRENT, NULL, &tensor, NULL, &err), GD_ESTATE);
}

static void checkpoint_reaches_the_program(void **state)
{
    struct both *b = *state;
    assert_ok(gd_target_checkpoint(world_session(&b->w)->target, NULL));
    world_run(&b->w, GD_RUN_STEP, 1, NULL);
    world_run(&b->w, GD_RUN_STEP, 1, NULL);
    assert_int_equal(atomic_load(&b->toy.checkpoints), 1);
}

static void program_ends_when_asked(void **state)
{
    struct both *b = *state;
    world_run(&b->w, GD_RUN_STEP, 2, NULL);
    assert_ok(gd_target_kill(world_session(&b->w)->target, NULL));
    world_until(&b->w, "the end", is_running_free);
    assert_int_equal(b->w.finished, 1);
    assert_int_equal(world_session(&b->w)->state, GD_FINISHED);
    assert_string_equal(b->w.last_log, "the toy is done");
    assert_int_equal(atomic_load(&b->toy.step), 2);
}

static int start_with_stop(void **state)
{
    struct both *b = make_both();
    b->toy.steps = 3;
    b->toy.program_stop = true;
    return begin_training(b, state);
}

static void program_may_stop_itself(void **state)
{
    struct both *b = *state;
    world_run(&b->w, GD_RUN_CONTINUE, 0, NULL);
    assert_int_equal(world_session(&b->w)->stop.reason, GD_STOP_PROGRAM);
    assert_string_equal(world_session(&b->w)->stop.text, "the toy has seen enough");
    assert_int_equal(world_session(&b->w)->stop.step, 2);
    assert_false(world_session(&b->w)->stop.at_step_end);
    assert_string_equal(world_session(&b->w)->stop.phase, "forward");
    world_resume(&b->w, GD_RUN_CONTINUE, 0, NULL);
    world_until(&b->w, "the end", is_running_free);
    assert_string_equal(world_session(&b->w)->end_text, "the training ended");
}

static const struct CMUnitTest tests[] = {
    TEST(first_stop_tells_who_it_is),
    TEST(graph_is_what_was_added),
    TEST(runs_steps),
    TEST(runs_to_nodes),
    TEST(runs_to_phases),
    TEST(stops_at_breakpoints),
    TEST(stops_at_interrupts),
    TEST(program_hears_that_nodes_are_wanted),
    TEST(phase_is_entered_at_once_unless_it_may_stand),
    cmocka_unit_test_setup_teardown(steps_follow_at_once_until_the_last, start_trying, tear_down),
    cmocka_unit_test_setup_teardown(numbers_belong_to_the_step_that_has_ended, start_evaluating,
                                    tear_down),
    cmocka_unit_test_setup_teardown(numbers_belong_to_the_step_that_has_ended,
                                    start_evaluating_in_steps, tear_down),
    cmocka_unit_test_setup_teardown(late_losses_count_for_their_step, start_evaluating_in_steps,
                                    tear_down),
    TEST(values_are_refused_while_it_runs),
    TEST(checkpoint_reaches_the_program),
    TEST(program_ends_when_asked),
    cmocka_unit_test_setup_teardown(program_may_stop_itself, start_with_stop, tear_down),
};

RUN_TESTS()
