// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * A training process made of memory, and a repl whose output is collected: what tests of the
 * command language stand on. No socket, no clock that runs, no process.
 *
 * Values are those that fake_set gave. Answers come from the pump, as they would from a socket,
 * unless answer_at_once is set. A resume stops again from the pump, a step (or a node) later.
 */
#ifndef GD_TESTS_REPL_FAKE_TARGET_H
#define GD_TESTS_REPL_FAKE_TARGET_H

#include "base/buf.h"
#include "engine/debugger.h"
#include "repl/core/repl.h"

struct ev_loop;
struct fake_answer;
struct fake_plan;
struct fake_value;

struct fake {
    struct ev_loop *loop;
    struct gd_debugger *debugger;
    struct repl *repl;
    struct gd_session *session;
    struct gd_graph *graph;   /* the session's */
    struct gd_target *target; /* NULL after it ended */
    struct gd_buf out;        /* everything written since the last fake_run, errors included */
    double clock;             /* seconds since the epoch */
    double tick;              /* by which it goes on at every look */
    int patience;             /* pumps until Ctrl-C; 0: for ever */
    bool answer_at_once;
    bool never_answer;  /* requests stay open: what Ctrl-C is for */
    bool no_statistics; /* the target has no stats operation */
    /* what the target was told */
    struct gd_run run; /* the last one */
    int runs;
    int fetches, stats;    /* requests so far */
    struct gd_slice slice; /* of the last fetch; count 0: the whole */
    size_t kept;           /* nodes whose previous value it shall keep */
    size_t breakpoints;    /* nodes at which it shall stop */
    /* how the next stop shall look; reset by it */
    struct gd_stop next_stop;
    bool has_next_stop;
    struct fake_answer *answers;
    struct fake_value *values;
    struct fake_plan *plans; /* fake_watch.h */
    size_t plan_count;
    struct { /* asked for; wait for the pump */
        gd_watch_costs_fn fn;
        void *ctx;
    } costs[4];
    int cost_count;
};

/* One connected session without a graph, and a repl with these options. The caller checks nothing:
 * a failure fails the running test. */
void fake_create(struct fake *fake, const struct repl_options *options);
void fake_destroy(struct fake *fake);

/* Adds a node with one output and data edges from the given nodes; order counts up. dtype
 * GD_DT_NONE: no output. frames as "FILE:LINE" text, NULL none. */
gd_node_id fake_node(struct fake *fake, const char *name, const char *type, enum gd_dtype dtype,
                     const struct gd_shape *shape, const gd_node_id *inputs, uint32_t input_count,
                     const char *place);
void fake_graph_done(struct fake *fake); /* commits and reports */

/* The value of a slot, copied; NULL data takes it away. */
void fake_set(struct fake *fake, gd_node_id node, uint32_t slot, enum gd_iter iter,
              enum gd_dtype dtype, const struct gd_shape *shape, const void *data);
/* What fake_set gave; NULL none. */
struct gd_tensor *fake_value_of(struct fake *fake, gd_node_id node, uint32_t slot,
                                enum gd_iter iter);
void fake_stop(struct fake *fake, int64_t step, gd_node_id node); /* GD_NO_NODE: between steps */
void fake_lose(struct fake *fake, const char *why);

/* Runs one line; returns what was written meanwhile, valid until the next call. *rc may be NULL. */
const char *fake_run(struct fake *fake, const char *line, int *rc);

#endif
