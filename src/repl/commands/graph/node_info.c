// SPDX-License-Identifier: GPL-3.0-or-later
/* Commands: node-info. Also "info node". */
#include <string.h>

#include "repl/commands/status/info.h"
#include "repl/values/dump_notes.h"
#include "repl/values/inspect.h"
#include "repl/values/nodes.h"
#include "repl/values/watch.h"

#define EDGES_SHOWN 12

static void show_outputs(struct command_call *call, cJSON *record, gd_node_id node,
                         const struct gd_node_info *info)
{
    cJSON *list = out_list(record, "outputs");
    for (uint32_t slot = 0; slot < info->output_count; slot++) {
        bool given = slot >= info->output_count - info->input_slots;
        const char *name = inspect_slot(call, node, slot);
        cJSON *item = out_push(list);
        struct gd_output output;
        size_t bytes = 0;
        if (!gd_graph_output(call->session->graph, node, slot, &output)) {
            out_set(item, OUT_IF(given, OUT_TEXT("slot", name)));
            continue;
        }
        bool sized = gd_shape_bytes(&output.shape, output.dtype, &bytes, NULL) == GD_OK;
        out_set(item, OUT_TEXT("dtype", gd_dtype_name(output.dtype)),
                OUT_JSON("shape", inspect_shape_json(&output.shape)),
                OUT_IF(given, OUT_TEXT("slot", name)));
        out_say(call->out, item, "  {what:-6} :{name:-3} {dtype} {shape:shape}[, {size}]\n",
                OUT_TEXT("what", name[0] == 'i' ? "given" : "output"), OUT_TEXT("name", name),
                OUT_TEXT("size", sized ? inspect_bytes(call, bytes) : ""));
    }
}

static void show_edges(struct command_call *call, cJSON *list, const char *title,
                       const struct gd_edge *edge, uint32_t count, bool inputs)
{
    for (uint32_t i = 0; i < count; i++) {
        struct gd_node_info info;
        cJSON *item = out_push(list);
        out_set(item, OUT_TEXT("node", gd_graph_name(call->session->graph, edge[i].node)),
                OUT_INT("slot", edge[i].slot), OUT_BOOL("control", edge[i].control));
        if (i >= EDGES_SHOWN || !gd_graph_node(call->session->graph, edge[i].node, &info)) {
            continue;
        }
        int used = 14 + (int)strlen(info.type) + 5;
        out_say(call->out, item, "  {title:-11} {name}[:{from}] ({type}[{?control}, control])\n",
                OUT_TEXT("title", title), OUT_TEXT("name", inspect_fit(call, info.name, used)),
                OUT_IF(inputs && info.output_count > 1,
                       OUT_TEXT("from", inspect_printf(call, "%u", edge[i].slot))),
                OUT_TEXT("type", info.type));
    }
    if (count > EDGES_SHOWN) {
        out_printf(call->out, "  %-11s ... %u more (%s)\n", "", count - EDGES_SHOWN,
                   inputs ? "inputs" : "outputs");
    }
}

static void show_source(struct command_call *call, cJSON *record, gd_node_id node)
{
    const struct gd_frame *frame = gd_graph_place(call->session->graph, node);
    if (frame) {
        out_set(record, OUT_TEXT("file", frame->file), OUT_INT("line", frame->line));
        out_say(call->out, record, "  made at     {file}:{line}[ in {function}]\n",
                OUT_TEXT("function", frame->function));
    }
}

static void show_node(struct command_call *call, gd_node_id node, const struct gd_node_info *info)
{
    struct gd_graph *graph = call->session->graph;
    const char *subgraph = gd_graph_subgraph_name(graph, info->subgraph);
    const struct gd_edge *consumers = NULL;
    uint32_t count = gd_graph_consumers(graph, node, &consumers);
    cJSON *record = out_record(call->out, "node");
    inspect_add_node(call, record, node);
    out_set(record, OUT_TEXT("graph", subgraph ? subgraph : ""),
            OUT_TEXT("wire_name", info->wire_name));
    out_say(
        call->out, record,
        "{node}\n"
        "  type        {node_type}, {kind}[, order {at}][, graph {graph}]\n"
        "[{!own}  wire name   {wire_name}\n]",
        OUT_IF(info->order != GD_NO_ORDER, OUT_TEXT("at", inspect_printf(call, "%u", info->order))),
        OUT_BOOL("own", strcmp(info->wire_name, info->own_name) == 0 ||
                            info->kind == GD_NODE_COMPILED)); /* its attribute */
    show_outputs(call, record, node, info);
    show_edges(call, out_list(record, "inputs"), "input", info->inputs, info->input_count, true);
    show_edges(call, out_list(record, "consumers"), "used by", consumers, count, false);
    cJSON *attrs = out_object(record, "attributes");
    for (uint32_t i = 0; i < info->attr_count; i++) {
        if (!gd_session_shows_attr(call->session, node, &info->attrs[i])) {
            continue;
        }
        out_set(attrs, OUT_TEXT(info->attrs[i].name, info->attrs[i].value));
        out_say(call->out, NULL, "  attribute   {name} = {value}\n",
                OUT_TEXT("name", info->attrs[i].name), OUT_TEXT("value", info->attrs[i].value));
    }
    show_source(call, record, node);
    const char *dump = dump_note_of_node(call, node);
    out_set(record, OUT_IF(dump, OUT_TEXT("dump", dump)),
            OUT_JSON("watchpoints", watch_numbers_record(call, node)));
    out_say(call->out, record, "[  dump        {dump}\n][  watched by  {numbers}\n]",
            OUT_TEXT("numbers", watch_numbers_of(call, node)));
}

int info_node(struct command_call *call, struct gd_err *err)
{
    gd_node_id node;
    struct gd_node_info info;
    struct gd_err ignored;
    gd_scope_id scope;
    const char *text = call->argc ? inspect_join(call, 0, call->argc) : NULL;
    int rc = inspect_node(call, text, &node, err);
    if (rc == GD_ENOTFOUND && text && nodes_find_scope(call, text, &scope, &ignored) == GD_OK) {
        return info_scope(call, scope, false, err);
    }
    if (rc == GD_OK && !gd_graph_node(call->session->graph, node, &info)) {
        rc = gd_fail(err, GD_ENOTFOUND, "the node no longer exists");
    }
    if (rc == GD_OK) {
        show_node(call, node, &info);
    }
    return rc;
}

const struct command cmd_node_info = {
    .name = "node-info",
    .aliases = "ni",
    .group = "graph",
    .usage = "node-info [NODE | MODULE]",
    .summary = "Show everything known about a node (same as info node)",
    .help = "Of a module, show what is in it, as \"scope\" does.",
    .examples = "ni model/block0/attn/linear",
    .args = {ARG_NODE},
    .flags = CMD_NEEDS_SESSION | CMD_REPEATS,
    .run = info_node,
};
