// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * A small training run on libgradb for debuggers that are written in a test:
 *
 *     agent_trainer ADDRESS STEPS [EXTRA]
 *
 * "net/w" is a parameter, "net/a" and "net/b" run in every step ("net/b" holds a NaN in step 3),
 * "net/eager" has a value that does not outlive its call and whose shape is (step,). Element i of
 * all of them is 100 * step + i. Of the three columns of "net/relu" the first is zero always, the
 * second from step 3 on. "net/rare" does not run in steps 3 and 4. EXTRA nodes "extra/0" and so on
 * run in every step, and after them "net/mask", whose first element is -inf and whose last one is
 * +inf in step 4; before step 6 it gets another attribute. The scalar "loss" is told in every step,
 * "even" in those. Exit status 0: all steps done; 3: told to end; 4: no debugger.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "agent/gradb.h"

#define COUNT 6

static gradb_node add_node(gradb *g, const char *name, gradb_phase phase, gradb_node from,
                           float *data)
{
    const int64_t shape[2] = {2, COUNT / 2};
    gradb_tensor tensor = {GRADB_FLOAT32, 2, shape, NULL, data};
    gradb_input input = {.node = from};
    gradb_node_info info = {.name = name,
                            .type = phase ? "Op" : "Parameter",
                            .phase = phase,
                            .inputs = &input,
                            .input_count = from != 0,
                            .outputs = &tensor,
                            .output_count = 1};
    return gradb_add_node(g, &info);
}

static void fill_data(float *data, int64_t count, int64_t step)
{
    for (int64_t i = 0; i < count; i++) {
        data[i] = (float)(100 * step + i);
    }
}

static void run_relu(float *data, int64_t step)
{
    for (int i = 0; i < COUNT; i++) {
        bool zero = i % 3 == 0 || (i % 3 == 1 && step >= 3);
        data[i] = zero ? 0 : (float)(100 * step + i);
    }
}

static gradb_node *extra_nodes(gradb *g, long count, float *data)
{
    gradb_node *nodes = calloc((size_t)count + 1, sizeof(*nodes));
    for (long i = 0; nodes && i < count; i++) {
        char name[32];
        snprintf(name, sizeof(name), "extra/%ld", i);
        nodes[i] = add_node(g, name, GRADB_BACKWARD, 0, data);
    }
    return nodes;
}

static void run_eager(gradb *g, gradb_node node, int64_t step)
{
    float *data = malloc((size_t)step * sizeof(*data));
    if (data) {
        gradb_tensor tensor = {GRADB_FLOAT32, 1, &step, NULL, data};
        fill_data(data, step, step);
        gradb_did_with(g, node, &tensor, 1);
        fill_data(data, step, -1); /* whoever looks later must not see this */
        free(data);
    }
}

static bool has_debugger(gradb *g)
{
    if (gradb_wait(g, 30)) {
        return true;
    }
    fprintf(stderr, "agent_trainer: %s\n", gradb_error(g));
    gradb_close(g, "no debugger");
    return false;
}

static void report_metrics(gradb *g, int64_t step)
{
    gradb_scalar(g, "loss", 1.0 / (double)step);
    if (step % 2 == 0) {
        gradb_scalar(g, "even", (double)step);
    }
}

static void run_b(gradb *g, gradb_node node, float *data, int64_t step)
{
    fill_data(data, COUNT, step);
    if (step == 3) {
        data[4] = NAN;
    }
    gradb_did(g, node);
}

static void run_mask(gradb *g, gradb_node node, float *data, int64_t step)
{
    fill_data(data, COUNT, step);
    data[0] = -INFINITY;
    if (step == 4) {
        data[COUNT - 1] = INFINITY;
    } else if (step == 6) {
        gradb_set_attr(g, node, "fill", "-inf");
    }
    gradb_did(g, node);
}

int main(int argc, char **argv)
{
    static float w[COUNT], a[COUNT], b[COUNT], r[COUNT], rare[COUNT], mask[COUNT];
    gradb_options options = {.framework = "trainer", .address = argc > 1 ? argv[1] : NULL};
    int64_t steps = argc > 2 ? strtol(argv[2], NULL, 10) : 1;
    long extra_count = argc > 3 ? strtol(argv[3], NULL, 10) : 0;
    gradb *g = gradb_open(&options);
    gradb_node nw = add_node(g, "net/w", GRADB_NO_PHASE, 0, w);
    gradb_node na = add_node(g, "net/a", GRADB_FORWARD, nw, a);
    gradb_node nb = add_node(g, "net/b", GRADB_FORWARD, na, b);
    gradb_node ne = add_node(g, "net/eager", GRADB_BACKWARD, nb, NULL);
    gradb_node nr = add_node(g, "net/relu", GRADB_BACKWARD, nb, r);
    gradb_node nrare = add_node(g, "net/rare", GRADB_BACKWARD, nr, rare);
    gradb_node *extra = extra_nodes(g, extra_count, a);
    gradb_node nmask = add_node(g, "net/mask", GRADB_BACKWARD, 0, mask);
    gradb_publish(g);
    if (!has_debugger(g)) {
        free(extra);
        return 4;
    }
    int64_t step = 1;
    for (; step <= steps && !gradb_wants_stop(g); step++) {
        gradb_step_begin(g, step);
        gradb_enter(g, GRADB_FORWARD);
        fill_data(a, COUNT, step);
        gradb_did(g, na);
        run_b(g, nb, b, step);
        gradb_enter(g, GRADB_BACKWARD);
        run_eager(g, ne, step);
        run_relu(r, step);
        gradb_did(g, nr);
        if (step != 3 && step != 4) {
            fill_data(rare, COUNT, step);
            gradb_did(g, nrare);
        }
        for (long i = 0; extra && i < extra_count; i++) {
            gradb_did(g, extra[i]);
        }
        run_mask(g, nmask, mask, step);
        fill_data(w, COUNT, step);
        report_metrics(g, step);
        gradb_step_end(g);
    }
    bool told = gradb_wants_stop(g);
    gradb_close(g, NULL);
    free(extra);
    return told ? 3 : 0;
}
