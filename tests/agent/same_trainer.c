// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * A training that says of its values which have the elements of others, for debuggers that are
 * written in a test:
 *
 *     same_trainer ADDRESS STEPS
 *
 * What it says is never so: element i of node n is 1000 * n + 10 * step + i, so that the figures
 * tell which value was looked at. In the order in which the nodes run:
 *
 *     1 net/first       float32 (2, 3)
 *     2 net/view        float32 (3, 2)      the same as net/first
 *     3 net/again       float32 (6,)        the same as net/view
 *     4 net/nan         float32 (6,)        the same as net/first; its element 4 is NaN
 *     5 net/longer      float32 (7,)        the same as net/first, which cannot be
 *     6 net/wider       float64 (6,)        likewise
 *     7 net/odd         float32 (6,)        runs in odd steps, twice: then element i is i
 *     8 net/echo        float32 (6,)        the same as net/odd
 *     9 net/two         two float32 (6,)    the second is the same as the first, which is the same
 *                                           as a node that does not exist
 *    10 net/far         float32 (6,)        the source tells its statistics
 *    11 net/far_view    float32 (6,)        the same as net/far; of the source
 *    12 net/here        float32 (6,)        the same as net/far
 *    13 net/there       float32 (6,)        the same as net/first; of the source
 *    14 net/shapeless   float32 (-2, -3)    the same as net/far; of the source
 *
 * The source's statistics are those of the elements, of which it tells the number and the ends.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "agent/gradb.h"

#define COUNT 6
#define FIRST 1
#define VIEW  2
#define ODD   7
#define FAR   10

struct op {
    const char *name;
    gradb_dtype dtype;
    int rank;
    int64_t shape[2];
    gradb_same same[2];
    bool far;
    unsigned outputs;
};

static const struct op ops[] = {
    {"net/first", GRADB_FLOAT32, 2, {2, 3}, {{0, 0}}, false, 1},
    {"net/view", GRADB_FLOAT32, 2, {3, 2}, {{FIRST, 0}}, false, 1},
    {"net/again", GRADB_FLOAT32, 1, {COUNT}, {{VIEW, 0}}, false, 1},
    {"net/nan", GRADB_FLOAT32, 1, {COUNT}, {{FIRST, 0}}, false, 1},
    {"net/longer", GRADB_FLOAT32, 1, {COUNT + 1}, {{FIRST, 0}}, false, 1},
    {"net/wider", GRADB_FLOAT64, 1, {COUNT}, {{FIRST, 0}}, false, 1},
    {"net/odd", GRADB_FLOAT32, 1, {COUNT}, {{0, 0}}, false, 1},
    {"net/echo", GRADB_FLOAT32, 1, {COUNT}, {{ODD, 0}}, false, 1},
    {"net/two", GRADB_FLOAT32, 1, {COUNT}, {{4000000000U, 7}, {9, 0}}, false, 2},
    {"net/far", GRADB_FLOAT32, 1, {COUNT}, {{0, 0}}, true, 1},
    {"net/far_view", GRADB_FLOAT32, 1, {COUNT}, {{FAR, 0}}, true, 1},
    {"net/here", GRADB_FLOAT32, 1, {COUNT}, {{FAR, 0}}, false, 1},
    {"net/there", GRADB_FLOAT32, 1, {COUNT}, {{FIRST, 0}}, true, 1},
    {"net/shapeless", GRADB_FLOAT32, 2, {-2, -3}, {{FAR, 0}}, true, 1},
};
#define OPS (sizeof(ops) / sizeof(ops[0]))

static double element_at(gradb_node node, int64_t step, int64_t i)
{
    return (double)(1000 * (int64_t)node + 10 * step + i);
}

static gradb_answer compute_stats(void *ctx, gradb_node node, unsigned slot, bool previous,
                                  const gradb_stats_wanted *wanted, gradb_stats *ret,
                                  gradb_tensor *what, char why[GRADB_WHY])
{
    static const int64_t shape[1] = {COUNT};
    const int64_t *step = ctx;
    (void)slot;
    (void)previous;
    (void)wanted;
    (void)why;
    *what = (gradb_tensor){GRADB_FLOAT32, 1, shape, NULL, NULL};
    ret->count = COUNT;
    ret->min = element_at(node, *step, 0);
    ret->max = element_at(node, *step, COUNT - 1);
    return GRADB_OK;
}

static void add_all(gradb *g)
{
    for (size_t n = 0; n < OPS; n++) {
        const gradb_tensor tensor = {ops[n].dtype, ops[n].rank, ops[n].shape, NULL, NULL};
        const gradb_tensor outputs[2] = {tensor, tensor};
        gradb_node_info info = {.name = ops[n].name,
                                .type = "Op",
                                .phase = GRADB_FORWARD,
                                .outputs = outputs,
                                .output_count = ops[n].outputs};
        gradb_add_node(g, &info);
    }
}

static void report_node(gradb *g, gradb_node node, int64_t step)
{
    const struct op *op = &ops[node - 1];
    float narrow[2][COUNT + 1];
    double wide[COUNT];
    for (int i = 0; i <= COUNT; i++) {
        narrow[0][i] = (float)element_at(node, step, i);
        narrow[1][i] = -narrow[0][i];
    }
    for (int i = 0; i < COUNT; i++) {
        wide[i] = element_at(node, step, i);
    }
    narrow[0][4] = node == 4 ? NAN : narrow[0][4];
    gradb_tensor outputs[2];
    for (unsigned i = 0; i < 2; i++) {
        const void *data = op->dtype == GRADB_FLOAT64 ? (void *)wide : (void *)narrow[i];
        outputs[i] = (gradb_tensor){op->dtype, op->rank, op->shape, NULL, op->far ? NULL : data};
    }
    if (node == ODD) { /* what it is the second time is what counts */
        gradb_did_with(g, node, outputs, 1);
        for (int i = 0; i < COUNT; i++) {
            narrow[0][i] = (float)i;
        }
    }
    gradb_did_with_same(g, node, outputs, op->outputs, op->same[0].node ? op->same : NULL);
}

int main(int argc, char **argv)
{
    int64_t step = 0, steps = argc > 2 ? strtol(argv[2], NULL, 10) : 1;
    const gradb_source source = {.ctx = &step, .stats = compute_stats};
    gradb_options options = {
        .framework = "trainer", .address = argc > 1 ? argv[1] : NULL, .source = &source};
    gradb *g = gradb_open(&options);
    add_all(g);
    gradb_publish(g);
    if (!gradb_wait(g, 30)) {
        fprintf(stderr, "same_trainer: %s\n", gradb_error(g));
        gradb_close(g, "no debugger");
        return 4;
    }
    for (step = 1; step <= steps && !gradb_wants_stop(g); step++) {
        gradb_step_begin(g, step);
        gradb_enter(g, GRADB_FORWARD);
        for (gradb_node node = 1; node <= OPS; node++) {
            if (node != ODD || step % 2 == 1) {
                report_node(g, node, step);
            }
        }
        gradb_step_end(g);
    }
    gradb_close(g, NULL);
    return 0;
}
