// SPDX-License-Identifier: GPL-3.0-or-later
/* MindSpore's graphs as text. */
#include "dump/mindspore/ir_text.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct gd_ir_facts facts;
    struct gd_graph *graph;
    uint32_t order = 0;

    FUZZ_CHECK(gd_graph_create((size_t)64 << 20, &graph, NULL) == GD_OK);
    if (gd_ir_read((const char *)data, size, graph, &order, &facts, NULL) == GD_OK) {
        FUZZ_CHECK(facts.nodes + facts.parameters == gd_graph_node_limit(graph));
        FUZZ_CHECK(order == facts.nodes);
        FUZZ_CHECK(gd_graph_commit(graph, NULL) == GD_OK);
        for (gd_node_id node = 0; node < gd_graph_node_limit(graph); node++) {
            struct gd_node_info info;
            uint32_t count;

            FUZZ_CHECK(gd_graph_node(graph, node, &info) && info.name[0]);
            gd_graph_stack(graph, node, &count);
        }
    }
    gd_graph_destroy(graph);
    return 0;
}
