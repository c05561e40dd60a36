// SPDX-License-Identifier: GPL-3.0-or-later
// gradb.h in C++: it has to compile without a warning, link, and do nothing with a null handle.
#include "agent/gradb.h"

int main()
{
    const int64_t shape[] = {2, 3};
    float values[6] = {};
    gradb_tensor tensor = {GRADB_FLOAT32, 2, shape, nullptr, values};
    gradb_node_info info = {};
    info.name = "w";
    info.type = "Parameter";
    info.kind = GRADB_WEIGHT;
    info.phase = GRADB_NO_PHASE;
    info.outputs = &tensor;
    info.output_count = 1;
    gradb *g = nullptr;
    gradb_node node = gradb_add_node(g, &info);
    gradb_step_begin(g, 1);
    gradb_did(g, node);
    gradb_did_with(g, node, &tensor, 1);
    gradb_step_end(g);
    gradb_close(g, nullptr);
    return node == 0 ? 0 : 1;
}
