// SPDX-License-Identifier: GPL-3.0-or-later
/* Trainings that run their hooks on several threads: one after the other, as an autograd engine
 * does, and all at once. */
#include "world.h"

#define WORKERS 3
#define ROUNDS  2000 /* more than fit into the tables' first size */

struct training {
    struct world w;
    pthread_t thread;
    gradb *agent;
    gradb_node first, second;
    atomic_int end;
};

static gradb_node add_node(gradb *g, const char *name, gradb_phase phase)
{
    gradb_node_info info = {.name = name, .type = "Op", .phase = phase};
    return gradb_add_node(g, &info);
}

static void open_agent(struct training *t)
{
    gradb_options options = {.framework = "threads", .address = t->w.address};
    t->agent = gradb_open(&options);
    t->first = add_node(t->agent, "net/forward", GRADB_FORWARD);
    t->second = add_node(t->agent, "net/backward", GRADB_BACKWARD);
    gradb_publish(t->agent);
    gradb_wait(t->agent, 60);
}

static void *run_backward(void *arg)
{
    struct training *t = arg;
    gradb_enter(t->agent, GRADB_BACKWARD);
    gradb_did(t->agent, t->second);
    return NULL;
}

/* The forward pass here, the backward pass on a thread of the engine's, a new one each time. */
static void *train_in_turns(void *arg)
{
    struct training *t = arg;
    open_agent(t);
    for (int64_t step = 1; !atomic_load(&t->end); step++) {
        pthread_t engine;
        gradb_step_begin(t->agent, step);
        gradb_enter(t->agent, GRADB_FORWARD);
        gradb_did(t->agent, t->first);
        if (pthread_create(&engine, NULL, run_backward, t) == 0) {
            pthread_join(engine, NULL);
        }
        gradb_step_end(t->agent);
    }
    gradb_close(t->agent, NULL);
    return NULL;
}

static void *run_hook(void *arg)
{
    struct training *t = arg;
    char name[64];
    for (int i = 0; i < ROUNDS; i++) {
        snprintf(name, sizeof(name), "net/%p/op%d", (void *)&name, i);
        gradb_node node = add_node(t->agent, name, GRADB_FORWARD);
        if (gradb_wants(t->agent, node) & GRADB_WANT_RUN || i % 7 == 0) {
            gradb_did(t->agent, node);
        }
        gradb_did(t->agent, t->first);
        gradb_scalar(t->agent, "i", i);
        if (i % 100 == 0) {
            gradb_sync(t->agent);
        }
    }
    return NULL;
}

static void *train_at_once(void *arg)
{
    struct training *t = arg;
    pthread_t worker[WORKERS];
    open_agent(t);
    gradb_step_begin(t->agent, 1);
    for (int i = 0; i < WORKERS; i++) {
        pthread_create(&worker[i], NULL, run_hook, t);
    }
    for (int i = 0; i < WORKERS; i++) {
        pthread_join(worker[i], NULL);
    }
    gradb_step_end(t->agent);
    gradb_close(t->agent, NULL);
    return NULL;
}

static struct training *begin_training(void *(*train)(void *))
{
    struct training *t = calloc(1, sizeof(*t));
    assert_non_null(t);
    world_open(&t->w, 0);
    assert_int_equal(pthread_create(&t->thread, NULL, train, t), 0);
    world_until_stops(&t->w, 1);
    return t;
}

static void end_training(struct training *t)
{
    atomic_store(&t->end, 1);
    struct gd_session *session = world_session(&t->w);
    if (session->state == GD_STOPPED) {
        world_resume(&t->w, GD_RUN_CONTINUE, 0, NULL);
    }
    world_until(&t->w, "the end of the training", world_has_ended);
    assert_int_equal(t->w.lost, 0);
    pthread_join(t->thread, NULL);
    world_close(&t->w);
    free(t);
}

static void one_after_the_other(void **state)
{
    struct training *t = begin_training(train_in_turns);
    const struct gd_session *session = world_session(&t->w);
    for (int64_t step = 1; step <= 5; step++) {
        world_run(&t->w, GD_RUN_NEXT, 1, NULL);
        assert_string_equal(session->stop.node_name, "net/forward");
        world_run(&t->w, GD_RUN_NEXT, 1, NULL);
        assert_string_equal(session->stop.node_name, "net/backward");
        assert_string_equal(session->stop.phase, "backward");
        assert_int_equal(session->stop.step, step);
    }
    end_training(t);
}

static void all_at_once(void **state)
{
    struct training *t = begin_training(train_at_once);
    const struct gd_session *session = world_session(&t->w);
    for (int i = 0; i < 100; i++) {
        world_run(&t->w, GD_RUN_NEXT, 3, NULL);
        assert_string_equal(gd_stop_reason_name(session->stop.reason), "node");
    }
    world_resume(&t->w, GD_RUN_CONTINUE, 0, NULL); /* the quick way, while others add nodes */
    world_until(&t->w, "the end of the training", world_has_ended);
    struct gd_graph_counts counts;
    gd_graph_counts(session->graph, &counts);
    assert_int_equal(counts.nodes, 2 + WORKERS * ROUNDS);
    end_training(t);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(one_after_the_other),
    cmocka_unit_test(all_at_once),
};

RUN_TESTS()
