// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * GraphProto ingest. What is taken must be a sound graph: every edge ends at a node, names are
 * found again, and the same bytes load twice into one graph without growing it.
 */
#include "fuzz.h"

#include "mindspore/ms_graph.h"

static void check_node(struct gd_graph *graph, gd_node_id node)
{
    struct gd_node_info info;
    struct gd_output output;
    uint32_t frames;

    if (!gd_graph_node(graph, node, &info)) {
        return;
    }
    FUZZ_CHECK(info.name[0] && info.wire_name[0]);
    for (uint32_t i = 0; i < info.input_count; i++) {
        FUZZ_CHECK(info.inputs[i].node == GD_NO_NODE ||
                   info.inputs[i].node < gd_graph_node_limit(graph));
    }
    for (uint32_t i = 0; i < info.output_count; i++) {
        FUZZ_CHECK(gd_graph_output(graph, node, i, &output) && output.shape.rank <= GD_MAX_RANK);
    }
    for (uint32_t i = 0; i < info.attr_count; i++) {
        FUZZ_CHECK(strlen(info.attrs[i].value) <= GD_MS_MAX_ATTRIBUTE);
    }
    FUZZ_CHECK(gd_graph_lookup(graph, info.name, strlen(info.name)) != GD_NO_NODE);
    gd_graph_stack(graph, node, &frames);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct gd_graph *graph;
    struct gd_ms_graph_info info;
    struct gd_graph_counts once, twice;

    FUZZ_CHECK(gd_graph_create(64u << 20, &graph, NULL) == GD_OK);
    int rc = gd_ms_graph_load(graph, data, size, NULL, &info, NULL);
    if (rc == GD_OK) {
        FUZZ_CHECK(gd_ms_graph_is_whole(data, size));
        gd_graph_counts(graph, &once);
        FUZZ_CHECK(once.nodes <= info.nodes + info.parameters + info.constants);
        for (gd_node_id node = 0; node < gd_graph_node_limit(graph); node++) {
            check_node(graph, node);
        }
        FUZZ_CHECK(gd_ms_graph_load(graph, data, size, NULL, &info, NULL) == GD_OK);
        gd_graph_counts(graph, &twice);
        FUZZ_CHECK(once.nodes == twice.nodes && once.edges == twice.edges);
    }
    gd_graph_destroy(graph);
    return 0;
}
