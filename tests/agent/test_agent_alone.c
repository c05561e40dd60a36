// SPDX-License-Identifier: GPL-3.0-or-later
/* The agent where no debugger is, and with arguments that make no sense. */
#include "world.h"

#include <signal.h>

static void null_handle_does_nothing(void **state)
{
    gradb_node_info info = {.name = "a"};
    gradb_tensor tensor = {0};
    gradb_input input = {0};
    assert_int_equal(gradb_add_node(NULL, &info), 0);
    gradb_add_inputs(NULL, 1, &input, 1);
    gradb_set_inputs(NULL, 1, &input, 1);
    gradb_set_attr(NULL, 1, "name", "value");
    gradb_bind(NULL, 1, 0, &tensor);
    gradb_publish(NULL);
    gradb_step_begin(NULL, 1);
    gradb_enter(NULL, GRADB_FORWARD);
    gradb_did(NULL, 1);
    gradb_did_with(NULL, 1, &tensor, 1);
    gradb_step_end(NULL);
    gradb_stop(NULL, "why");
    gradb_stop_at(NULL, 1, "why");
    gradb_raised(NULL, 1, "why");
    gradb_scalar(NULL, "loss", 1);
    gradb_log(NULL, "line");
    assert_false(gradb_wait(NULL, 10));
    assert_false(gradb_is_connected(NULL));
    assert_false(gradb_wants_stop(NULL));
    assert_false(gradb_wants_checkpoint(NULL));
    assert_string_equal(gradb_error(NULL), "");
    gradb_close(NULL, NULL);
}

static void can_be_disabled(void **state)
{
    setenv("GRADB_DISABLE", "1", 1);
    assert_null(gradb_open(NULL));
    setenv("GRADB_DISABLE", "0", 1);
    gradb *g = gradb_open(NULL);
    assert_non_null(g);
    gradb_close(g, NULL);
    unsetenv("GRADB_DISABLE");
}

/* A port that was free a moment ago. */
static void free_address(char address[64])
{
    struct world w;
    world_open(&w, 0);
    memcpy(address, w.address, 64);
    world_close(&w);
}

static void trains_without_a_debugger(void **state)
{
    struct toy toy = {.steps = 2000};
    free_address(toy.address);
    toy_start(&toy, NULL);
    while (!atomic_load(&toy.done)) {
        sched_yield();
    }
    assert_int_equal(atomic_load(&toy.step), 2000);
    toy_join(&toy);
}

static void wait_returns_when_nobody_is_expected(void **state)
{
    unsetenv("GRADB_ADDRESS");
    gradb *g = gradb_open(NULL);
    if (!gradb_is_connected(g)) { /* a debugger of the user's own may be at the default address */
        assert_false(gradb_wait(g, 3600) && !gradb_is_connected(g));
    }
    gradb_close(g, NULL);
}

/* The thread that connects may come late on a busy machine. */
static void wait_for_error(gradb *g)
{
    for (int i = 0; i < 100 && gradb_error(g)[0] == '\0'; i++) {
        assert_false(gradb_wait(g, 0.2));
    }
}

static void error_says_why(void **state)
{
    char address[64];
    free_address(address);
    gradb_options options = {.address = address};
    gradb *g = gradb_open(&options);
    wait_for_error(g);
    assert_contains(gradb_error(g), address);
    assert_contains(gradb_error(g), "refused");
    gradb_close(g, "failed");
    options.address = "not an address";
    g = gradb_open(&options);
    assert_non_null(g);
    wait_for_error(g);
    assert_string_not_equal(gradb_error(g), "");
    gradb_close(g, NULL);
}

static void bad_nodes_are_refused(void **state)
{
    char address[64];
    free_address(address);
    gradb_options options = {.address = address};
    gradb *g = gradb_open(&options);
    int64_t huge[3] = {INT64_MAX, INT64_MAX, 2}, negative[1] = {-5}, shape[1] = {3};
    float data[3] = {0};
    gradb_input input = {.node = 7};
    gradb_tensor tensor = {GRADB_FLOAT32, 3, huge, NULL, data};
    gradb_node_info info = {.type = "T", .outputs = &tensor, .output_count = 1};
    assert_int_equal(gradb_add_node(g, NULL), 0);
    assert_int_equal(gradb_add_node(g, &info), 0); /* no name */
    info.name = "a";
    assert_int_equal(gradb_add_node(g, &info), 0); /* the shape does not fit in memory */
    assert_contains(gradb_error(g), "shape");
    tensor = (gradb_tensor){GRADB_FLOAT32, 1, negative, NULL, data};
    assert_int_equal(gradb_add_node(g, &info), 0);
    tensor.rank = GRADB_MAX_RANK + 1;
    assert_int_equal(gradb_add_node(g, &info), 0);
    tensor = (gradb_tensor){(gradb_dtype)99, 1, shape, NULL, data};
    assert_int_equal(gradb_add_node(g, &info), 0);
    tensor = (gradb_tensor){GRADB_FLOAT32, 1, shape, NULL, data};
    info.inputs = &input;
    info.input_count = 1;
    assert_int_equal(gradb_add_node(g, &info), 0); /* node 7 was not added */
    assert_contains(gradb_error(g), "7");
    info.input_count = 0;
    gradb_node a = gradb_add_node(g, &info);
    assert_int_equal(a, 1);
    gradb_bind(g, 2, 0, &tensor);
    assert_contains(gradb_error(g), "gradb_bind");
    gradb_bind(g, a, 1, &tensor);
    gradb_bind(g, a, 0, NULL);
    gradb_did_slow(g, 55);
    assert_contains(gradb_error(g), "55");
    gradb_close(g, NULL);
}

static volatile sig_atomic_t handled;
static pthread_t handler_thread;

static void on_signal(int number)
{
    handled = 1;
    handler_thread = pthread_self();
}

/* With the signal blocked in the training thread, only libgradb's thread could take it. */
static void signals_stay_with_the_trainer(void **state)
{
    char address[64];
    free_address(address);
    gradb_options options = {.address = address};
    struct sigaction action = {.sa_handler = on_signal}, old;
    sigset_t usr1, before;
    sigemptyset(&usr1);
    sigaddset(&usr1, SIGUSR1);
    sigaction(SIGUSR1, &action, &old);
    gradb *g = gradb_open(&options);
    pthread_sigmask(SIG_BLOCK, &usr1, &before);
    kill(getpid(), SIGUSR1);
    assert_false(gradb_wait(g, 0.3)); /* time for the other thread to take it, if it could */
    assert_int_equal(handled, 0);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    assert_int_equal(handled, 1);
    assert_true(pthread_equal(handler_thread, pthread_self()));
    gradb_close(g, NULL);
    sigaction(SIGUSR1, &old, NULL);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(null_handle_does_nothing),
    cmocka_unit_test(can_be_disabled),
    cmocka_unit_test(trains_without_a_debugger),
    cmocka_unit_test(wait_returns_when_nobody_is_expected),
    cmocka_unit_test(error_says_why),
    cmocka_unit_test(bad_nodes_are_refused),
    cmocka_unit_test(signals_stay_with_the_trainer),
};

RUN_TESTS()
