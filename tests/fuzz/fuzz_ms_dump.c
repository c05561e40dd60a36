// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Files of MindSpore's synchronous dump: the first byte says what the rest is: file names, a table
 * of statistics, a graph, or operators of a graph ("+TYPE NAME") and names in files ("TYPE NAME"),
 * one per line.
 */
#include "fuzz_disk.h"

#include <string.h>

#include "dump/mindspore/ms_file_name.h"
#include "dump/mindspore/ms_graph_file.h"
#include "dump/mindspore/ms_nodes.h"
#include "dump/mindspore/ms_statistic.h"

static bool is_inside(const char *part, size_t len, const char *text)
{
    return part >= text && part + len <= text + strlen(text);
}

static void check_names(const char *text)
{
    struct gd_ms_name name;
    struct gd_ms_bin_name bin;
    char escaped[64];

    if (gd_ms_name_parse(text, &name)) {
        FUZZ_CHECK(is_inside(name.type, name.type_len, text) &&
                   is_inside(name.name, name.name_len, text));
        FUZZ_CHECK(is_inside(name.format, name.format_len, text) && name.slot <= GD_MS_MAX_SLOT);
    }
    if (gd_ms_bin_name_parse(text, &bin)) {
        FUZZ_CHECK(is_inside(bin.name, bin.name_len, text) && bin.name_len > 0);
        FUZZ_CHECK(bin.shape.rank > 0 && bin.shape.rank <= GD_MAX_RANK);
    }
    gd_ms_escape(text, escaped, sizeof(escaped));
    FUZZ_CHECK(strlen(escaped) < sizeof(escaped) && !strchr(escaped, '/'));
    FUZZ_CHECK(is_inside(gd_ms_short_name(text), 0, text));
}

static int take_row(void *ctx, const struct ms_statistic *row, struct gd_err *err)
{
    size_t *rows = ctx;

    ++*rows;
    FUZZ_CHECK(row->slot <= GD_MS_MAX_SLOT && row->shape.rank <= GD_MAX_RANK);
    FUZZ_CHECK(!(row->stats.unknown & ~(unsigned)GD_UNKNOWN_ALL));
    return GD_OK;
}

static void bad_row(void *ctx, const char *why)
{
    FUZZ_CHECK(why[0]);
}

static void check_table(const uint8_t *data, size_t size)
{
    struct gd_disk *disk = fuzz_disk(data, size);
    struct gd_err err = {.text = ""};
    size_t rows = 0;

    if (ms_statistic_read(disk, take_row, bad_row, &rows, &err) != GD_OK) {
        FUZZ_CHECK(err.text[0]);
    }
    FUZZ_CHECK(rows <= size);
    gd_disk_unref(disk);
}

static void check_graph(const uint8_t *data, size_t size)
{
    struct gd_disk *disk = fuzz_disk(data, size);
    struct gd_err err = {.text = ""};
    struct gd_graph *into;
    uint32_t subgraph;

    FUZZ_CHECK(gd_graph_create((size_t)1 << 24, &into, NULL) == GD_OK);
    if (ms_graph_file_read(disk, into, NULL, &subgraph, &err) == GD_OK) {
        FUZZ_CHECK(gd_graph_subgraph_name(into, subgraph));
        for (gd_node_id node = 0; node < gd_graph_node_limit(into); node++) {
            gd_graph_set_slots(into, node, 2, 3, NULL);
        }
    } else {
        FUZZ_CHECK(err.text[0]);
    }
    gd_graph_destroy(into);
    gd_disk_unref(disk);
}

/* Every name has a node; a joined one has the node's type, and is the only one. */
static void check_settled(const struct ms_nodes *nodes, struct gd_graph *graph)
{
    for (uint32_t i = 0; i < nodes->wanted_count; i++) {
        const struct ms_wanted *wanted = ms_nodes_wanted(nodes, MS_WANTED | i);
        struct gd_node_info info;

        FUZZ_CHECK(gd_graph_node(graph, wanted->node, &info));
        for (uint32_t k = 0; wanted->joined && k < nodes->wanted_count; k++) {
            FUZZ_CHECK(k == i || nodes->wanted[k].node != wanted->node);
        }
        FUZZ_CHECK(!wanted->joined || strcmp(info.type, wanted->type) == 0);
    }
}

static void check_joins(char *text)
{
    struct ms_nodes nodes;
    struct gd_graph *into;
    gd_node_id node;
    char *rest = NULL;

    FUZZ_CHECK(gd_graph_create((size_t)1 << 24, &into, NULL) == GD_OK);
    FUZZ_CHECK(ms_nodes_begin(into, "graph", &nodes, NULL) == GD_OK);
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        char *name = strchr(line, ' ');

        if (!name) {
            continue;
        }
        *name++ = '\0';
        if (line[0] == '+' && line[1] && name[0]) {
            ms_nodes_get(&nodes, line + 1, name, &node, NULL);
        } else if (line[0] && name[0]) {
            FUZZ_CHECK(ms_nodes_want(&nodes, line, name, &node, NULL) == GD_OK);
        }
    }
    FUZZ_CHECK(ms_nodes_settle(&nodes, NULL) == GD_OK);
    check_settled(&nodes, into);
    ms_nodes_end(&nodes);
    gd_graph_destroy(into);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char text[1024];

    if (size == 0) {
        return 0;
    }
    switch (data[0] % 4) {
    case 0:
        snprintf(text, sizeof(text), "%.*s", (int)(size - 1), (const char *)data + 1);
        check_names(text);
        break;
    case 1: check_table(data + 1, size - 1); break;
    case 3:
        snprintf(text, sizeof(text), "%.*s", (int)(size - 1), (const char *)data + 1);
        check_joins(text);
        break;
    default: check_graph(data + 1, size - 1); break;
    }
    return 0;
}
