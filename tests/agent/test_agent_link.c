// SPDX-License-Identifier: GPL-3.0-or-later
/* The connection: tokens, a debugger that goes and one that comes, detaching, forks. */
#include "world.h"

#include "proto/v1/v1_impl.h"

#include <dirent.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

struct both {
    struct world w;
    struct toy toy;
};

static int set_up(void **state)
{
    struct both *b = calloc(1, sizeof(*b));
    assert_non_null(b);
    world_open(&b->w, 0);
    *state = b;
    return 0;
}

static int tear_down(void **state)
{
    struct both *b = *state;
    world_close(&b->w);
    free(b);
    return 0;
}

static bool has_connected(struct world *w)
{
    return w->connected > 0;
}

static void end_run(struct both *b)
{
    atomic_store(&b->toy.end, 1);
    world_resume(&b->w, GD_RUN_CONTINUE, 0, NULL);
    world_until(&b->w, "the end of the training", world_has_ended);
    assert_int_equal(b->w.lost, 0);
    toy_join(&b->toy);
}

/* Waits without the loop: nothing of ours is needed for it. */
static void until_step(struct toy *toy, int64_t step)
{
    while (atomic_load(&toy->step) < step && !atomic_load(&toy->done)) {
        sched_yield();
    }
    assert_true(atomic_load(&toy->step) >= step);
}

static void right_token_is_taken(void **state)
{
    struct both *b = *state;
    snprintf(b->w.debugger->settings.token, sizeof(b->w.debugger->settings.token), "sesame");
    b->toy.wait = 60;
    b->toy.token = "sesame";
    toy_start(&b->toy, &b->w);
    world_until_stops(&b->w, 1);
    end_run(b);
}

static bool is_refused(struct world *w)
{
    struct both *b = (struct both *)(void *)w;
    return atomic_load(&b->toy.waited) != 0;
}

static void refused_token(struct both *b, const char *token, const char *why)
{
    snprintf(b->w.debugger->settings.token, sizeof(b->w.debugger->settings.token), "sesame");
    b->toy.wait = 1.5;
    b->toy.token = token;
    toy_start(&b->toy, &b->w);
    world_until(&b->w, "the refusal", is_refused);
    assert_int_equal(atomic_load(&b->toy.waited), 1); /* not connected */
    assert_int_equal(b->w.debugger->session_count, 0);
    until_step(&b->toy, 10); /* it trains all the same */
    char error[256];
    snprintf(error, sizeof(error), "%s", gradb_error(b->toy.agent));
    assert_contains(error, why);
    toy_join(&b->toy);
}

static void wrong_token_is_refused(void **state)
{
    refused_token(*state, "sesamf", "token is wrong");
}

static void missing_token_is_refused(void **state)
{
    refused_token(*state, "", "token is missing");
}

static void attaches_in_the_middle_of_a_run(void **state)
{
    struct both *b = *state;
    int port = world_port(&b->w);
    world_close(&b->w);
    snprintf(b->toy.address, sizeof(b->toy.address), "127.0.0.1:%d", port);
    toy_start(&b->toy, NULL);
    until_step(&b->toy, 1000);
    world_open(&b->w, port);
    world_until_stops(&b->w, 1);
    const struct gd_stop *stop = &world_session(&b->w)->stop;
    assert_int_equal(stop->reason, GD_STOP_CONNECTED);
    assert_true(stop->at_step_end);
    assert_true(stop->step >= 1000);
    world_run(&b->w, GD_RUN_NEXT, 3, NULL);
    assert_string_equal(world_session(&b->w)->stop.node_name, "net/ReLU-op2");
    end_run(b);
}

static void debugger_vanishes_and_comes_back(struct both *b, bool hold)
{
    int port = world_port(&b->w);
    b->w.debugger->settings.on_loss = hold ? GD_ON_LOSS_HOLD : GD_ON_LOSS_CONTINUE;
    b->toy.wait = 60;
    toy_start(&b->toy, &b->w);
    world_until_stops(&b->w, 1);
    world_run(&b->w, GD_RUN_STEP, 5, NULL);
    world_run(&b->w, GD_RUN_NEXT, 2, NULL);
    world_close(&b->w); /* in the middle of a stop, with a breakpoint's worth of state */
    if (!hold) {
        until_step(&b->toy, 500); /* let go by itself */
    }
    world_open(&b->w, port);
    world_until_stops(&b->w, 1);
    const struct gd_stop *stop = &world_session(&b->w)->stop;
    if (hold) {
        assert_int_equal(stop->step, 6);
        assert_false(stop->at_step_end);
        assert_string_equal(stop->node_name, "net/MatMul-op1");
        assert_int_equal(stop->reason, GD_STOP_NODE);
    } else {
        assert_true(stop->step >= 500);
        assert_int_equal(stop->reason, GD_STOP_CONNECTED);
    }
    struct gd_graph_counts counts;
    gd_graph_counts(world_session(&b->w)->graph, &counts);
    assert_int_equal(counts.nodes, 7);
    world_run(&b->w, GD_RUN_STEP, 2, NULL);
    end_run(b);
}

static void run_goes_on_without_its_debugger(void **state)
{
    debugger_vanishes_and_comes_back(*state, false);
}

static void run_holds_for_the_next_debugger(void **state)
{
    debugger_vanishes_and_comes_back(*state, true);
}

static bool has_run_on(struct world *w)
{
    return atomic_load(&((struct both *)(void *)w)->toy.step) >= 50;
}

static void running_run_holds_at_the_next_step(void **state)
{
    struct both *b = *state;
    int port = world_port(&b->w);
    b->w.debugger->settings.on_loss = GD_ON_LOSS_HOLD;
    b->toy.wait = 60;
    toy_start(&b->toy, &b->w);
    world_until_stops(&b->w, 1);
    world_resume(&b->w, GD_RUN_CONTINUE, 0, NULL);
    world_until(&b->w, "a few steps", has_run_on);
    world_close(&b->w);
    world_open(&b->w, port);
    world_until_stops(&b->w, 1);
    assert_true(world_session(&b->w)->stop.at_step_end);
    /* It stands in the end of a step, which it has not counted yet, or in the beginning of the
     * next. */
    assert_in_range(world_session(&b->w)->stop.step - atomic_load(&b->toy.step), 0, 1);
    end_run(b);
}

static void detached_run_goes_on(void **state)
{
    struct both *b = *state;
    int port = world_port(&b->w);
    b->toy.wait = 60;
    toy_start(&b->toy, &b->w);
    world_until_stops(&b->w, 1);
    world_run(&b->w, GD_RUN_NEXT, 4, NULL);
    assert_ok(gd_target_detach(world_session(&b->w)->target, NULL));
    world_until(&b->w, "the detachment", world_has_ended);
    assert_int_equal(b->w.finished, 1);
    assert_string_equal(world_session(&b->w)->end_text, "detached");
    world_until(&b->w, "a few steps", has_run_on);
    /* The same debugger is not bothered again; another one gets the run. */
    assert_int_equal(b->w.debugger->session_count, 1);
    world_close(&b->w);
    world_open(&b->w, port);
    world_until(&b->w, "the run at the next debugger", has_connected);
    world_until_stops(&b->w, 1);
    end_run(b);
}

static bool has_beaten_often(struct world *w)
{
    return w->service->conns && w->service->conns->beats >= 10;
}

/* Ten heartbeats are more than three times the silence that either side would take for a loss. */
static void heartbeats_keep_a_standing_run(void **state)
{
    struct both *b = *state;
    b->w.debugger->settings.keepalive = 0.2;
    b->toy.wait = 60;
    toy_start(&b->toy, &b->w);
    world_until_stops(&b->w, 1);
    world_until(&b->w, "heartbeats", has_beaten_often);
    assert_int_equal(b->w.lost, 0);
    assert_int_equal(b->w.connected, 1);
    end_run(b);
}

static bool was_lost(struct world *w)
{
    return w->lost > 0;
}

/* A debugger that cannot take this graph is told of it once, not in a loop. */
static void graph_that_is_too_large_does_not_come_again(void **state)
{
    struct both *b = *state;
    b->w.debugger->settings.max_graph = 100;
    toy_start(&b->toy, &b->w);
    world_until(&b->w, "the refusal", was_lost);
    assert_contains(world_session(&b->w)->end_text, "max-graph");
    b->w.debugger->settings.max_graph = 1 << 20;
    until_step(&b->toy, 1);
    while (!strstr(gradb_error(b->toy.agent), "detached")) { /* it came again, and was told so */
        world_until(&b->w, "a moment", was_lost);
        ev_run(b->w.loop, EVRUN_ONCE);
    }
    assert_int_equal(b->w.debugger->session_count, 1);
    toy_join(&b->toy);
}

/* As programs do that start processes without the C library: no handler runs. */
static pid_t bare_fork(void)
{
    return (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, 0);
}

/* The child uses every function; what it returns is its exit status. */
static int child_of_fork(struct toy *toy, bool bare)
{
    gradb *g = toy->agent;
    gradb_step_begin(g, 99);
    gradb_enter(g, GRADB_FORWARD);
    gradb_did(g, TOY_X);
    gradb_did_slow(g, TOY_X);
    gradb_scalar(g, "loss", 1);
    gradb_log(g, "from the child");
    gradb_stop(g, "child");
    gradb_bind(g, TOY_X, 0, NULL);
    gradb_publish(g);
    gradb_step_end(g);
    int status = gradb_is_connected(g) || gradb_wait(g, 1) || gradb_wants_stop(g);
    status = status || (!bare && g->armed);
    gradb_close(g, NULL);
    return status;
}

static void leave_child_alone(struct both *b, bool bare)
{
    int status = -1;
    b->toy.wait = 60;
    toy_start(&b->toy, &b->w);
    world_until_stops(&b->w, 1);
    world_run(&b->w, GD_RUN_NEXT, 2, NULL); /* armed */
    pid_t pid = bare ? bare_fork() : fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        alarm(60); /* should it hang: the parent waits for it */
        _exit(child_of_fork(&b->toy, bare));
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    world_run(&b->w, GD_RUN_NEXT, 1, NULL); /* the parent noticed nothing */
    assert_string_equal(world_session(&b->w)->stop.node_name, "net/ReLU-op2");
    assert_ok(gd_target_kill(world_session(&b->w)->target, NULL));
    world_until(&b->w, "the end of the training", world_has_ended);
    assert_int_equal(b->w.logs, 1);
    toy_join(&b->toy);
}

static void forked_child_is_left_alone(void **state)
{
    leave_child_alone(*state, false);
}

static void child_that_runs_no_handler_is_left_alone(void **state)
{
    leave_child_alone(*state, true);
}

static int count_segments(pid_t pid)
{
    char prefix[64];
    snprintf(prefix, sizeof(prefix), "gradb-%ld-", (long)pid);
    int count = 0;
    DIR *dir = opendir("/dev/shm");
    assert_non_null(dir);
    for (struct dirent *entry = readdir(dir); entry; entry = readdir(dir)) {
        count += strncmp(entry->d_name, prefix, strlen(prefix)) == 0;
    }
    closedir(dir);
    return count;
}

static void shared_memory_leaves_nothing_behind(void **state)
{
    struct both *b = *state;
    struct gd_tensor *tensor = NULL;
    b->toy.wait = 60;
    toy_start(&b->toy, &b->w);
    world_until_stops(&b->w, 1);
    world_run(&b->w, GD_RUN_STEP, 1, NULL);
    assert_ok(world_fetch(&b->w, "net/Big-op4", GD_CURRENT, NULL, &tensor, NULL, NULL));
    /* In use on both sides, and without a name already: nothing is left if both die now. */
    assert_int_equal(count_segments(getpid()), 0);
    gd_tensor_unref(tensor);
    end_run(b);
}

static const struct CMUnitTest tests[] = {
    TEST(right_token_is_taken),
    TEST(wrong_token_is_refused),
    TEST(missing_token_is_refused),
    TEST(attaches_in_the_middle_of_a_run),
    TEST(run_goes_on_without_its_debugger),
    TEST(run_holds_for_the_next_debugger),
    TEST(running_run_holds_at_the_next_step),
    TEST(detached_run_goes_on),
    TEST(heartbeats_keep_a_standing_run),
    TEST(graph_that_is_too_large_does_not_come_again),
    TEST(forked_child_is_left_alone),
    TEST(child_that_runs_no_handler_is_left_alone),
    TEST(shared_memory_leaves_nothing_behind),
};

RUN_TESTS()
