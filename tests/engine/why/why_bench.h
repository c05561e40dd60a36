// SPDX-License-Identifier: GPL-3.0-or-later
/* A small graph whose values are what the test says, and the answer to a question about it. */
#ifndef TESTS_ENGINE_WHY_BENCH_H
#define TESTS_ENGINE_WHY_BENCH_H

#include "../../unit.h"
#include "engine/debugger.h"
#include "engine/why/why.h"

#define BENCH_MAX 256

struct bench_value {
    gd_node_id node;
    uint32_t slot;
    enum gd_iter iter;
    enum gd_dtype dtype;
    struct gd_shape shape;
    struct gd_stats stats;
    int64_t step;
    int error; /* not GD_OK: answered with it */
};

struct bench_target {
    struct gd_target target;
    struct bench_value values[BENCH_MAX];
    size_t count;
    bool late;          /* answers wait for bench_answer */
    size_t asked;       /* requests in all */
    size_t asked_twice; /* of those, that were made before */
    struct bench_request {
        struct gd_tensor_ref ref;
        gd_stats_fn fn;
        void *ctx;
    } queue[BENCH_MAX * 256];
    size_t queued, answered;
};

struct bench {
    struct gd_debugger *debugger;
    struct gd_session *session;
    struct bench_target *target;
    uint32_t order;            /* of the next node */
    struct gd_why_facts facts; /* what the program tells */
    /* the answer */
    int answers;
    int code;
    char error[512];
    struct gd_why why;
    struct gd_why_node nodes[1024]; /* the first of why.nodes */
};

struct bench *bench_make(void);
void bench_end(struct bench *bench);
/* The same for cmocka, which keeps the bench in *state. */
int bench_setup(void **state);
int bench_teardown(void **state);

#define BENCH_TEST(test) cmocka_unit_test_setup_teardown(test, bench_setup, bench_teardown)

/* A leaf: "Parameter", "Data", "Const". Its output is float32 (10,). */
gd_node_id bench_leaf(struct bench *bench, const char *name, const char *type);
/* A node with one output, after all so far in execution order; up to three inputs, GD_NO_NODE ends
 * them. */
gd_node_id bench_node(struct bench *bench, const char *name, const char *type, gd_node_id a,
                      gd_node_id b, gd_node_id c);
/* Replaces a node's inputs: for cycles. */
void bench_connect(struct bench *bench, gd_node_id node, gd_node_id a, gd_node_id b);
/* Commits the graph and stops after `node` of that step; GD_NO_NODE: at its end. */
void bench_stop(struct bench *bench, int64_t step, gd_node_id node);
/* Stops there once more: what was asked for is forgotten, values may be others. */
void bench_again(struct bench *bench);

/* Ten elements between min and max; the mean magnitude is the mean of theirs. */
struct gd_stats bench_finite(double min, double max);
struct gd_stats bench_with(double min, double max, uint64_t zero, uint64_t nan, uint64_t pos_inf,
                           uint64_t neg_inf);
/* The value of a node at a step; a second one replaces the first. */
struct bench_value *bench_value(struct bench *bench, gd_node_id node, struct gd_stats stats,
                                int64_t step);
struct bench_value *bench_previous(struct bench *bench, gd_node_id node, struct gd_stats stats,
                                   int64_t step);

/* Gives the session a history, in a file that has no name any more. */
void bench_open_history(struct bench *bench);
/* Records what a watchpoint saw of a node in a step. */
void bench_record(struct bench *bench, gd_node_id node, struct gd_stats stats, int64_t step);

/* Asks and, unless answers are late, has the answer in the bench. */
void bench_ask(struct bench *bench, gd_node_id node, enum gd_bad bad);
/* Answers what waits, the newest first when `backwards`, until nothing waits. */
void bench_answer(struct bench *bench, bool backwards);
/* The verdict of a node in the answer; of the first line that it has. */
enum gd_why_verdict bench_verdict(const struct bench *bench, gd_node_id node);
void bench_expect(struct bench *bench, gd_node_id origin, const char *rule, const char *text);

#endif
