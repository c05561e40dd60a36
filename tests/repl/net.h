// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The small network that the tests of the inspection commands look at: odd names, a cycle, a node
 * with control edges, values with NaN and Inf, an empty tensor and a scalar.
 */
#ifndef GD_TESTS_REPL_NET_H
#define GD_TESTS_REPL_NET_H

#include "../unit.h"
#include "repl/fake_target.h"

#define NET_BIG_ROWS 50
#define NET_BIG_COLS 30

struct net {
    struct fake fake;
    gd_node_id weight; /* net/fc1.weight: float32 (2, 3) with a NaN, an Inf and a zero */
    gd_node_id bias;   /* net/fc1.bias: float32 (3,), no value */
    gd_node_id big;    /* net/big: float32 (50, 30), element i is i */
    gd_node_id empty;  /* net/empty: float32 (0, 4) */
    gd_node_id matmul; /* net/fc1/MatMul-op1: float32 (2, 3) 1 ... 6; before: the last was 5.5 */
    gd_node_id loop_a; /* net/loop/A and B feed each other */
    gd_node_id loop_b;
    gd_node_id loss; /* loss/Mean-op9: float64 (), 2.25 */
    gd_node_id odd;  /* a name with an escape sequence: int32 (2, 3) */
};

/* Stopped at matmul in step 3. */
void net_create(struct net *net, const struct repl_options *options);
void net_destroy(struct net *net);

/* For cmocka: *state is a net whose repl has these options. */
int net_setup(void **state, const struct repl_options *options);
int net_setup_text(void **state); /* batch */
int net_setup_json(void **state); /* batch, JSON */
int net_teardown(void **state);

#define NET_TEXT(test) cmocka_unit_test_setup_teardown(test, net_setup_text, net_teardown)
#define NET_JSON(test) cmocka_unit_test_setup_teardown(test, net_setup_json, net_teardown)

/* Fails the test unless the command's output (or its result) is this. */
void net_expect(struct net *net, const char *line, const char *output);
void net_expect_rc(struct net *net, const char *line, int rc, const char *output);
/* ... unless the output contains this. */
void net_expect_part(struct net *net, const char *line, const char *part);
/* The record of a command in JSON mode; the caller deletes it. */
struct cJSON;
struct cJSON *net_record(struct net *net, const char *line);

#endif
