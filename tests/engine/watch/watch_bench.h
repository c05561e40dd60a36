// SPDX-License-Identifier: GPL-3.0-or-later
/* A debugger with one fake trainer that has a small graph; what was reported is kept. */
#ifndef TESTS_ENGINE_WATCH_BENCH_H
#define TESTS_ENGINE_WATCH_BENCH_H

#include "../../unit.h"
#include "engine/watch/watchpoint.h"
#include "fake_target.h"

/* Nodes of the graph, by number. */
enum {
    N_WEIGHT,   /* w1.weight, Parameter, float32 */
    N_CONV,     /* net/Conv-op1, order 1 */
    N_RELU,     /* net/ReLU-op2, order 2, an activation */
    N_LOG,      /* net/Log-op3, order 3, float32 and int32 */
    N_GRADIENT, /* gradients/Conv-op4, order 4, bfloat16 */
    N_BIAS,     /* w2.bias, Parameter */
    N_CONST,    /* net/const */
    N_TEXT,     /* net/text, strings */
    N_UNKNOWN,  /* deep/net/Odd-op5, order 5, a type that is not known */
    N_NODES
};

#define BENCH_HITS 64
struct watch_bench {
    struct gd_debugger *debugger;
    struct gd_session *session;
    struct fake_target *fake;
    struct gd_hit hits[BENCH_HITS];
    int hit_count;
    char warning[512]; /* the last */
    int warnings;
    bool record; /* bench_report sends a record */
    bool meant;  /* what gd_watch_on_values said of the last report */
};

#define BENCH_PLANS                                                                                \
    (GD_CAN_STEP | GD_CAN_FETCH | GD_CAN_STATS | GD_CAN_PREVIOUS | GD_CAN_INTERRUPT |              \
     GD_CAN_WATCH | GD_CAN_WATCH_EXACT | GD_CAN_WATCH_SCALAR)

struct watch_bench *bench_make(unsigned capabilities); /* connected, with its graph */
void bench_free(struct watch_bench *bench);
/* A test whose state is a bench with BENCH_PLANS. */
#define WATCH_TEST(name) cmocka_unit_test_setup_teardown(name, bench_set_up, bench_tear_down)
int bench_set_up(void **state);
int bench_tear_down(void **state);
/* Another fake trainer of the same debugger, without a graph. */
struct gd_session *bench_connect(struct watch_bench *bench, unsigned capabilities,
                                 struct fake_target **ret);
void bench_graph(struct gd_session *session);
/* Adds a node to the session's graph, without telling. */
gd_node_id bench_add(struct gd_session *session, const char *name, const char *type, uint32_t order,
                     enum gd_dtype dtype, uint32_t slots);
void bench_stop(struct watch_bench *bench, enum gd_stop_reason reason, int64_t step);
void bench_run(struct watch_bench *bench);

/* "[watch|trace|twatch] [-exact|-step] COND [P=V]... [on WHERE] [if EXPR]": the number, or a
 * negative status. */
int bench_watch(struct watch_bench *bench, const char *line, struct gd_err *err);
int bench_must_watch(struct watch_bench *bench, const char *line);

/* The plan that has the tensor and is as wanted; NULL. *item may be NULL. */
const struct fake_plan *bench_plan(const struct watch_bench *bench, gd_node_id node, uint32_t slot,
                                   bool exact, const struct gd_watch_item **item);
const struct fake_plan *bench_scalar_plan(const struct watch_bench *bench, const char *name,
                                          const struct gd_watch_item **item);
/* How many items of all plans are of that tensor. */
int bench_items(const struct watch_bench *bench, gd_node_id node, uint32_t slot);

/* Statistics of `count` elements, all `value`. */
struct gd_stats bench_stats(uint64_t count, double value);
/* The plan reports one value; returns the verdict. */
bool bench_report(struct watch_bench *bench, const struct fake_plan *plan, gd_node_id node,
                  uint32_t slot, int64_t step, const struct gd_stats *stats, unsigned error,
                  char *why, size_t size);

#endif
