// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * A small training run on libgradb for debuggers that are written in a test:
 *
 *     agent_trainer ADDRESS STEPS
 *
 * "net/w" is a parameter, "net/a" and "net/b" run in every step ("net/b" holds a NaN in step 3),
 * "net/eager" has a value that does not outlive its call and whose shape is (step,). Element i of
 * all of them is 100 * step + i. Exit status 0: all steps done; 3: told to end; 4: no debugger.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "agent/gradb.h"

#define COUNT 6

static gradb_node add(gradb *g, const char *name, gradb_phase phase, gradb_node from, float *data)
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

static void fill(float *data, int64_t count, int64_t step)
{
    for (int64_t i = 0; i < count; i++) {
        data[i] = (float)(100 * step + i);
    }
}

static void eager(gradb *g, gradb_node node, int64_t step)
{
    float *data = malloc((size_t)step * sizeof(*data));
    if (data) {
        gradb_tensor tensor = {GRADB_FLOAT32, 1, &step, NULL, data};
        fill(data, step, step);
        gradb_did_with(g, node, &tensor, 1);
        fill(data, step, -1); /* whoever looks later must not see this */
        free(data);
    }
}

int main(int argc, char **argv)
{
    static float w[COUNT], a[COUNT], b[COUNT];
    gradb_options options = {.framework = "trainer", .address = argc > 1 ? argv[1] : NULL};
    int64_t steps = argc > 2 ? strtol(argv[2], NULL, 10) : 1;
    gradb *g = gradb_open(&options);
    gradb_node nw = add(g, "net/w", GRADB_NO_PHASE, 0, w);
    gradb_node na = add(g, "net/a", GRADB_FORWARD, nw, a);
    gradb_node nb = add(g, "net/b", GRADB_FORWARD, na, b);
    gradb_node ne = add(g, "net/eager", GRADB_BACKWARD, nb, NULL);
    gradb_publish(g);
    if (!gradb_wait(g, 30)) {
        fprintf(stderr, "agent_trainer: %s\n", gradb_error(g));
        gradb_close(g, "no debugger");
        return 4;
    }
    int64_t step = 1;
    for (; step <= steps && !gradb_wants_stop(g); step++) {
        gradb_step_begin(g, step);
        gradb_enter(g, GRADB_FORWARD);
        fill(a, COUNT, step);
        gradb_did(g, na);
        fill(b, COUNT, step);
        if (step == 3) {
            b[4] = NAN;
        }
        gradb_did(g, nb);
        gradb_enter(g, GRADB_BACKWARD);
        eager(g, ne, step);
        fill(w, COUNT, step);
        gradb_scalar(g, "loss", 1.0 / (double)step);
        gradb_step_end(g);
    }
    bool told = gradb_wants_stop(g);
    gradb_close(g, NULL);
    return told ? 3 : 0;
}
