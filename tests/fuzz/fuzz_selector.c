// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Selectors. What is accepted must resolve against a small graph, to nodes that exist, in order;
 * what is refused must say where.
 */
#include "fuzz.h"

#include "engine/graph/selector.h"

static struct gd_graph *make_graph(void)
{
    static const char *const names[] = {"Default/net/conv1/Conv2D-op1", "Default/net/ReLU-op2",
                                        "Default/conv1.weight", "a", "a/b[0]"};
    struct gd_graph *graph = NULL;

    FUZZ_CHECK(gd_graph_create(0, &graph, NULL) == GD_OK);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct gd_node_desc desc = {.name = names[i],
                                    .type = i % 2 ? "ReLU" : "Parameter",
                                    .source = "# In file net/model.py(42)/x/",
                                    .order = GD_NO_ORDER};

        FUZZ_CHECK(gd_graph_add(graph, &desc, NULL, NULL) == GD_OK);
    }
    FUZZ_CHECK(gd_graph_commit(graph, NULL) == GD_OK);
    return graph;
}

static void check_resolve(const struct gd_selector *selector)
{
    struct gd_graph *graph = make_graph();
    gd_node_id *nodes = NULL;
    size_t count = 0;
    struct gd_err err = {0};

    if (gd_selector_resolve(selector, graph, &nodes, &count, &err) != GD_OK) {
        FUZZ_CHECK(err.text[0] != '\0');
    } else {
        for (size_t i = 0; i < count; i++) {
            FUZZ_CHECK(gd_graph_name(graph, nodes[i])[0] != '\0');
            FUZZ_CHECK(i == 0 || nodes[i - 1] < nodes[i]);
        }
        free(nodes);
    }
    gd_graph_destroy(graph);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct gd_selector *selector = NULL;
    struct gd_err err = {0};
    char *text = fuzz_text(data, size);

    if (gd_selector_parse(text, &selector, &err) != GD_OK) {
        FUZZ_CHECK(err.offset <= strlen(text) && err.text[0] != '\0');
    } else {
        check_resolve(selector);
        gd_selector_destroy(selector);
    }
    free(text);
    return 0;
}
