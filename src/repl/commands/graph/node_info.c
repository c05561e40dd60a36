// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Commands: node-info
 * Show all that is known of a node; also `info node`.
 */
#include <string.h>

#include "repl/commands/status/info.h"
#include "repl/core/command.h"
#include "repl/core/watch.h"
#include "repl/values/dump_notes.h"
#include "repl/values/inspect.h"

#define EDGES_SHOWN 12

static void output_lines(struct command_call *call, gd_node_id node, uint32_t count)
{
    for (uint32_t slot = 0; slot < count; slot++) {
        struct gd_output output;
        size_t bytes = 0;
        if (!gd_graph_output(call->session->graph, node, slot, &output)) {
            continue;
        }
        const char *name = inspect_slot(call, node, slot);
        out_printf(call->out, "  %s :%-3s %s %s", name[0] == 'i' ? "given " : "output", name,
                   gd_dtype_name(output.dtype), inspect_shape(call, &output.shape));
        if (gd_shape_bytes(&output.shape, output.dtype, &bytes, NULL) == GD_OK) {
            out_printf(call->out, ", %s", inspect_bytes(call, bytes));
        }
        out_printf(call->out, "\n");
    }
}

static void edge_lines(struct command_call *call, const char *title, const struct gd_edge *edge,
                       uint32_t count, bool inputs)
{
    struct gd_graph *graph = call->session->graph;
    for (uint32_t i = 0; i < count && i < EDGES_SHOWN; i++) {
        struct gd_node_info info;
        if (!gd_graph_node(graph, edge[i].node, &info)) {
            continue;
        }
        int used = 14 + (int)strlen(info.type) + 5;
        out_printf(call->out, "  %-11s %s", title, inspect_fit(call, info.name, used));
        if (inputs && info.output_count > 1) {
            out_printf(call->out, ":%u", edge[i].slot);
        }
        out_printf(call->out, " (%s%s)\n", out_safe(call, info.type),
                   edge[i].control ? ", control" : "");
    }
    if (count > EDGES_SHOWN) {
        out_printf(call->out, "  %-11s ... %u more (%s)\n", "", count - EDGES_SHOWN,
                   inputs ? "inputs" : "outputs");
    }
}

static void node_text(struct command_call *call, gd_node_id node, const struct gd_node_info *info)
{
    struct gd_graph *graph = call->session->graph;
    const char *subgraph = gd_graph_subgraph_name(graph, info->subgraph);
    out_printf(call->out, "%s\n", out_safe(call, info->name));
    out_printf(call->out, "  %-11s %s, %s", "type", out_safe(call, info->type),
               gd_node_kind_name(info->kind));
    if (info->order != GD_NO_ORDER) {
        out_printf(call->out, ", order %u", info->order);
    }
    out_printf(call->out, "%s%s\n", subgraph && subgraph[0] ? ", graph " : "",
               subgraph ? out_safe(call, subgraph) : "");
    if (strcmp(info->wire_name, info->own_name) != 0) {
        out_printf(call->out, "  %-11s %s\n", "wire name", out_safe(call, info->wire_name));
    }
    output_lines(call, node, info->output_count);
    edge_lines(call, "input", info->inputs, info->input_count, true);
    const struct gd_edge *consumers = NULL;
    uint32_t count = gd_graph_consumers(graph, node, &consumers);
    edge_lines(call, "used by", consumers, count, false);
    for (uint32_t i = 0; i < info->attr_count; i++) {
        out_printf(call->out, "  %-11s %s = %s\n", "attribute", out_safe(call, info->attrs[i].name),
                   out_safe(call, info->attrs[i].value));
    }
    const struct gd_frame *frame = gd_graph_place(call->session->graph, node);
    if (frame) {
        out_printf(call->out, "  %-11s %s:%u%s%s\n", "made at", out_safe(call, frame->file),
                   frame->line, frame->function[0] ? " in " : "", out_safe(call, frame->function));
    }
    const char *dump = dump_note_of_node(call, node);
    if (dump) {
        out_printf(call->out, "  %-11s %s\n", "dump", out_safe(call, dump));
    }
    const char *numbers = watch_numbers_of(call, node);
    if (numbers[0] != '\0') {
        out_printf(call->out, "  %-11s %s\n", "watched by", numbers);
    }
}

static void add_edges(struct command_call *call, cJSON *record, const char *key,
                      const struct gd_edge *edge, uint32_t count)
{
    cJSON *list = out_list(record, key);
    for (uint32_t i = 0; i < count; i++) {
        cJSON *item = out_push(list);
        out_set(item, OUT_TEXT("node", gd_graph_name(call->session->graph, edge[i].node)),
                OUT_INT("slot", edge[i].slot), OUT_BOOL("control", edge[i].control));
    }
}

static void node_record(struct command_call *call, gd_node_id node, const struct gd_node_info *info)
{
    struct gd_graph *graph = call->session->graph;
    cJSON *record = out_record(call->out, "node");
    inspect_add_node(call, record, node);
    const char *subgraph = gd_graph_subgraph_name(graph, info->subgraph);
    out_set(record, OUT_TEXT("graph", subgraph ? subgraph : ""),
            OUT_TEXT("wire_name", info->wire_name));
    cJSON *outputs = out_list(record, "outputs");
    for (uint32_t slot = 0; slot < info->output_count; slot++) {
        struct gd_output output;
        cJSON *item = out_push(outputs);
        if (gd_graph_output(graph, node, slot, &output)) {
            out_set(item, OUT_TEXT("dtype", gd_dtype_name(output.dtype)),
                    OUT_JSON("shape", inspect_shape_json(&output.shape)));
        }
        out_set(item, OUT_IF(slot >= info->output_count - info->input_slots,
                             OUT_TEXT("slot", inspect_slot(call, node, slot))));
    }
    add_edges(call, record, "inputs", info->inputs, info->input_count);
    const struct gd_edge *consumers = NULL;
    uint32_t count = gd_graph_consumers(graph, node, &consumers);
    add_edges(call, record, "consumers", consumers, count);
    cJSON *attrs = out_object(record, "attributes");
    for (uint32_t i = 0; i < info->attr_count; i++) {
        out_set(attrs, OUT_TEXT(info->attrs[i].name, info->attrs[i].value));
    }
    const struct gd_frame *frame = gd_graph_place(call->session->graph, node);
    if (frame) {
        out_set(record, OUT_TEXT("file", frame->file), OUT_INT("line", frame->line));
    }
    const char *dump = dump_note_of_node(call, node);
    out_set(record, OUT_IF(dump, OUT_TEXT("dump", dump)),
            OUT_JSON("watchpoints", watch_numbers_record(call, node)));
}

int info_node(struct command_call *call, struct gd_err *err)
{
    gd_node_id node;
    struct gd_node_info info;
    int rc = inspect_node(call, call->argc ? inspect_join(call, 0, call->argc) : NULL, &node, err);
    if (rc != GD_OK) {
        return rc;
    }
    if (!gd_graph_node(call->session->graph, node, &info)) {
        return gd_fail(err, GD_ENOTFOUND, "the node no longer exists");
    }
    if (out_is_json(call->out)) {
        node_record(call, node, &info);
    } else {
        node_text(call, node, &info);
    }
    return GD_OK;
}

const struct command cmd_node_info = {
    .name = "node-info",
    .aliases = "ni",
    .group = "graph",
    .usage = "node-info [NODE]",
    .summary = "Show everything known about a node (same as info node)",
    .help = "  ni model/block0/attn/linear\n",
    .args = {ARG_NODE},
    .flags = CMD_NEEDS_SESSION | CMD_REPEATS,
    .run = info_node,
};
