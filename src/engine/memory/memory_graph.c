// SPDX-License-Identifier: GPL-3.0-or-later
/* Memory by the shapes of a graph, for trainings that cannot count it. */
#include <stdio.h>
#include <string.h>

#include "engine/graph/graph.h"
#include "engine/memory/memory_graph.h"

#define MAX_TOTAL (INT64_C(1) << 60)

static enum gd_memory_kind kind_of(const struct gd_node_info *info)
{
    switch (info->kind) {
    case GD_NODE_WEIGHT: return GD_MEMORY_WEIGHTS;
    case GD_NODE_GRADIENT: return GD_MEMORY_GRADIENTS;
    case GD_NODE_CONSTANT: return GD_MEMORY_OTHER;
    case GD_NODE_PARAMETER:
        return strcasestr(info->name, "optimizer") ? GD_MEMORY_OPTIMIZER : GD_MEMORY_INPUTS;
    default: return info->input_count > 0 ? GD_MEMORY_ACTIVATIONS : GD_MEMORY_INPUTS;
    }
}

/* "float32 (64, 32)" */
static void write_detail(const struct gd_output *output, char *text, size_t size)
{
    int len = snprintf(text, size, "%s (", gd_dtype_name(output->dtype));
    for (int i = 0; i < output->shape.rank && len > 0 && (size_t)len < size; i++) {
        len += snprintf(text + len, size - (size_t)len, "%s%lld", i > 0 ? ", " : "",
                        (long long)output->shape.dim[i]);
    }
    if (len > 0 && (size_t)len < size) {
        snprintf(text + len, size - (size_t)len, ")");
    }
}

/* The bytes of a node's outputs; negative when the shape of one is unknown. */
static int64_t bytes_of(const struct gd_graph *graph, gd_node_id node,
                        const struct gd_node_info *info)
{
    int64_t sum = 0;
    for (uint32_t slot = 0; slot + info->input_slots < info->output_count; slot++) {
        struct gd_output output;
        size_t bytes = 0;
        if (!gd_graph_output(graph, node, slot, &output) || gd_shape_count(&output.shape) < 0 ||
            gd_dtype_size(output.dtype) == 0 ||
            gd_shape_bytes(&output.shape, output.dtype, &bytes, NULL) != GD_OK ||
            bytes > (size_t)(INT64_MAX - sum)) {
            return -1;
        }
        sum += (int64_t)bytes;
    }
    return sum;
}

static int add_node(struct gd_memory *report, struct gd_graph *graph, gd_node_id node,
                    const struct gd_node_info *info, int64_t bytes)
{
    char where[256] = "", detail[256] = "";
    struct gd_output output;
    const struct gd_frame *place = gd_graph_place(graph, node);
    struct gd_memory_row row = {.name = info->name,
                                .where = where,
                                .detail = detail,
                                .kind = kind_of(info),
                                .bytes = bytes,
                                .count = info->output_count - info->input_slots};
    if (place && place->file[0] != '\0') {
        const char *slash = strrchr(place->file, '/');
        snprintf(where, sizeof(where), "%s:%u", slash ? slash + 1 : place->file, place->line);
    }
    if (row.count == 1 && gd_graph_output(graph, node, 0, &output)) {
        write_detail(&output, detail, sizeof(detail));
    }
    report->kind[row.kind].bytes += bytes;
    report->kind[row.kind].count += row.count;
    return gd_memory_add_node(report, &row);
}

int gd_memory_of_graph(struct gd_memory *report, struct gd_graph *graph)
{
    uint64_t unknown = 0;
    int64_t sum = 0;
    int rc = GD_OK;
    for (gd_node_id node = 0; node < gd_graph_node_limit(graph) && rc == GD_OK; node++) {
        struct gd_node_info info;
        if (!gd_graph_node(graph, node, &info) || info.kind == GD_NODE_COMPILED ||
            info.output_count <= info.input_slots) {
            continue;
        }
        int64_t bytes = bytes_of(graph, node, &info);
        bytes = bytes > MAX_TOTAL - sum ? -1 : bytes; /* no training has it: a wrong shape */
        sum += bytes > 0 ? bytes : 0;
        unknown += bytes < 0 ? 1 : 0;
        rc = bytes > 0 ? add_node(report, graph, node, &info, bytes) : GD_OK;
    }
    report->source = "by the shapes of the graph: what the values of one step take when all of "
                     "them exist at the same time";
    if (rc == GD_OK && unknown > 0) {
        char note[80];
        snprintf(note, sizeof(note), "nodes whose shape is unknown: %llu",
                 (unsigned long long)unknown);
        rc = gd_memory_add_note(report, note);
    }
    gd_memory_sort(report);
    return rc;
}
