// SPDX-License-Identifier: GPL-3.0-or-later
/* info graph, nodes, node, params, types. */
#include <stdlib.h>
#include <string.h>

#include "repl/core/commands.h"
#include "repl/core/watch.h"
#include "repl/values/inspect.h"
#include "repl/values/nodes.h"
#include "repl/values/stacks.h"

#define TYPES_SHOWN 10

/* ---- info graph ---------------------------------------------------------------------------- */

/* Levels of scopes below the root, which `scopes` does not count. */
static uint32_t scope_depth(const struct gd_graph *graph, uint32_t scopes)
{
    uint32_t deepest = 0;
    struct gd_scope_info info;
    for (gd_scope_id id = 0; id <= scopes; id++) {
        uint32_t depth = 0;
        if (!gd_graph_scope(graph, id, &info) || info.first_child != GD_NO_SCOPE) {
            continue; /* the deepest one has no children */
        }
        while (info.parent != GD_NO_SCOPE && gd_graph_scope(graph, info.parent, &info)) {
            depth++;
        }
        deepest = depth > deepest ? depth : deepest;
    }
    return deepest;
}

static void graph_record(struct command_call *call, const struct gd_graph_counts *counts)
{
    struct gd_graph *graph = call->session->graph;
    cJSON *record = out_record(call->out, "graph");
    cJSON_AddNumberToObject(record, "nodes", counts->nodes);
    inspect_add_count(record, "edges", counts->edges);
    cJSON_AddNumberToObject(record, "scopes", counts->scopes);
    cJSON_AddNumberToObject(record, "depth", scope_depth(graph, counts->scopes));
    inspect_add_count(record, "missing_inputs", counts->missing_inputs);
    inspect_add_count(record, "memory", counts->memory);
    cJSON *subgraphs = cJSON_AddArrayToObject(record, "subgraphs");
    for (uint32_t i = 0; i < counts->subgraphs; i++) {
        const char *name = gd_graph_subgraph_name(graph, i);
        cJSON_AddItemToArray(subgraphs, cJSON_CreateString(name ? name : ""));
    }
    cJSON *kinds = cJSON_AddObjectToObject(record, "kinds");
    for (int kind = GD_NODE_OTHER; kind < GD_NODE_KIND_COUNT; kind++) {
        cJSON_AddNumberToObject(kinds, gd_node_kind_name((enum gd_node_kind)kind),
                                counts->by_kind[kind]);
    }
    uint32_t types = 0;
    const struct gd_type_count *type = gd_graph_types(graph, &types);
    cJSON *list = cJSON_AddArrayToObject(record, "types");
    for (uint32_t i = 0; i < types && i < TYPES_SHOWN; i++) {
        cJSON *item = cJSON_CreateObject();
        inspect_add_text(call, item, "node_type", type[i].type);
        cJSON_AddNumberToObject(item, "nodes", type[i].count);
        cJSON_AddItemToArray(list, item);
    }
    cJSON_AddNumberToObject(record, "type_count", types);
}

static const char *kinds_text(struct command_call *call, const struct gd_graph_counts *counts)
{
    static const struct {
        enum gd_node_kind kind;
        const char *one, *many;
    } words[] = {
        {GD_NODE_WEIGHT, "weight", "weights"},
        {GD_NODE_GRADIENT, "gradient", "gradients"},
        {GD_NODE_ACTIVATION, "activation", "activations"},
        {GD_NODE_PARAMETER, "other parameter", "other parameters"},
        {GD_NODE_CONSTANT, "constant", "constants"},
        {GD_NODE_OTHER, "other", "other"},
    };
    const char *text = "";
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        uint32_t count = counts->by_kind[words[i].kind];
        if (count > 0) {
            text = inspect_printf(call, "%s%s%s %s", text, text[0] ? ", " : "",
                                  inspect_number(call, count),
                                  count == 1 ? words[i].one : words[i].many);
        }
    }
    return text;
}

static void graph_text(struct command_call *call, const struct gd_graph_counts *counts)
{
    struct gd_graph *graph = call->session->graph;
    out_printf(
        call->out, "%s, %s, %s in %u levels, %s\n", inspect_plural(call, counts->nodes, "node"),
        inspect_plural(call, counts->edges, "edge"), inspect_plural(call, counts->scopes, "scope"),
        scope_depth(graph, counts->scopes), inspect_bytes(call, counts->memory));
    for (uint32_t i = 0; i < counts->subgraphs && i < TYPES_SHOWN; i++) {
        const char *name = gd_graph_subgraph_name(graph, i);
        out_printf(call->out, "%s%s", i == 0 ? "Graphs:  " : ", ",
                   out_safe(call, name ? name : ""));
    }
    if (counts->subgraphs > TYPES_SHOWN) {
        out_printf(call->out, ", ... %u more", counts->subgraphs - TYPES_SHOWN);
    }
    out_printf(call->out, "%sKinds:   %s\n", counts->subgraphs > 0 ? "\n" : "",
               kinds_text(call, counts));
    uint32_t types = 0;
    const struct gd_type_count *type = gd_graph_types(graph, &types);
    int column = 9;
    for (uint32_t i = 0; i < types && i < TYPES_SHOWN; i++) {
        const char *text =
            inspect_printf(call, "%s %u", out_safe(call, type[i].type), type[i].count);
        column += (int)strlen(text) + 2;
        bool wrap = i > 0 && column > out_width(call->out);
        out_printf(call->out, "%s%s", i == 0 ? "Types:   " : wrap ? ",\n         " : ", ", text);
        column = wrap ? 9 + (int)strlen(text) : column;
    }
    if (types > TYPES_SHOWN) {
        out_printf(call->out, ", ... %u more (info types)", types - TYPES_SHOWN);
    }
    out_printf(call->out, "%s", types > 0 ? "\n" : "");
    if (counts->missing_inputs > 0) {
        out_printf(call->out, "Missing: %s whose producer the trainer did not send\n",
                   inspect_plural(call, counts->missing_inputs, "input"));
    }
}

static int need_graph(struct command_call *call, struct gd_graph_counts *counts, struct gd_err *err)
{
    gd_graph_counts(call->session->graph, counts);
    if (counts->nodes == 0) {
        return gd_fail(err, GD_ENODATA, "the trainer has sent no graph yet");
    }
    return GD_OK;
}

int inspect_info_graph(struct command_call *call, struct gd_err *err)
{
    struct gd_graph_counts counts;
    int rc = need_graph(call, &counts, err);
    if (rc != GD_OK) {
        return rc;
    }
    if (out_is_json(call->out)) {
        graph_record(call, &counts);
    } else {
        graph_text(call, &counts);
    }
    return GD_OK;
}

int inspect_info_types(struct command_call *call, struct gd_err *err)
{
    static const struct out_column columns[] = {{"nodes", "Nodes", true},
                                                {"node_type", "Type", false}};
    struct gd_graph_counts counts;
    int rc = need_graph(call, &counts, err);
    if (rc != GD_OK) {
        return rc;
    }
    uint32_t types = 0;
    const struct gd_type_count *type = gd_graph_types(call->session->graph, &types);
    struct out_table *table = out_table_begin(call->out, "types", columns, 2);
    for (uint32_t i = 0; i < types; i++) {
        const char *cells[] = {inspect_printf(call, "%u", type[i].count),
                               inspect_name(call, type[i].type)};
        out_table_row(table, cells);
    }
    out_table_end(table);
    return GD_OK;
}

/* ---- info nodes ---------------------------------------------------------------------------- */

int inspect_info_nodes(struct command_call *call, struct gd_err *err)
{
    bool all = inspect_take_flag(call, "-a");
    struct node_list list = {0};
    const char *text = call->argc ? inspect_join(call, 0, call->argc) : "";
    struct gd_graph_counts counts;
    int rc = need_graph(call, &counts, err);
    if (rc == GD_OK && text[0]) {
        rc = nodes_select(call, text, &list, err);
    } else if (rc == GD_OK) {
        uint32_t count = 0;
        const gd_node_id *order = gd_graph_execution(call->session->graph, &count);
        for (uint32_t i = 0; i < count && !list.failed; i++) {
            node_list_add(&list, order[i]);
        }
        rc = list.failed ? gd_fail(err, GD_ENOMEM, "out of memory") : GD_OK;
    }
    if (rc == GD_OK) {
        nodes_show(
            call, &list, all,
            inspect_printf(call, "info nodes%s%s -a", text[0] ? " " : "", out_safe(call, text)));
    }
    node_list_deinit(&list);
    return rc;
}

/* ---- info node ----------------------------------------------------------------------------- */

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
    const char *dump = inspect_dump_node(call, node);
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
    cJSON *list = cJSON_AddArrayToObject(record, key);
    for (uint32_t i = 0; i < count; i++) {
        cJSON *item = cJSON_CreateObject();
        inspect_add_text(call, item, "node", gd_graph_name(call->session->graph, edge[i].node));
        cJSON_AddNumberToObject(item, "slot", edge[i].slot);
        cJSON_AddBoolToObject(item, "control", edge[i].control);
        cJSON_AddItemToArray(list, item);
    }
}

static void node_record(struct command_call *call, gd_node_id node, const struct gd_node_info *info)
{
    struct gd_graph *graph = call->session->graph;
    cJSON *record = out_record(call->out, "node");
    inspect_add_node(call, record, node);
    const char *subgraph = gd_graph_subgraph_name(graph, info->subgraph);
    inspect_add_text(call, record, "graph", subgraph ? subgraph : "");
    inspect_add_text(call, record, "wire_name", info->wire_name);
    cJSON *outputs = cJSON_AddArrayToObject(record, "outputs");
    for (uint32_t slot = 0; slot < info->output_count; slot++) {
        struct gd_output output;
        cJSON *item = cJSON_CreateObject();
        if (gd_graph_output(graph, node, slot, &output)) {
            cJSON_AddStringToObject(item, "dtype", gd_dtype_name(output.dtype));
            inspect_add_shape(item, "shape", &output.shape);
        }
        if (slot >= info->output_count - info->input_slots) {
            cJSON_AddStringToObject(item, "slot", inspect_slot(call, node, slot));
        }
        cJSON_AddItemToArray(outputs, item);
    }
    add_edges(call, record, "inputs", info->inputs, info->input_count);
    const struct gd_edge *consumers = NULL;
    uint32_t count = gd_graph_consumers(graph, node, &consumers);
    add_edges(call, record, "consumers", consumers, count);
    cJSON *attrs = cJSON_AddObjectToObject(record, "attributes");
    for (uint32_t i = 0; i < info->attr_count; i++) {
        inspect_add_text(call, attrs, info->attrs[i].name, info->attrs[i].value);
    }
    const struct gd_frame *frame = gd_graph_place(call->session->graph, node);
    if (frame) {
        inspect_add_text(call, record, "file", frame->file);
        cJSON_AddNumberToObject(record, "line", frame->line);
    }
    const char *dump = inspect_dump_node(call, node);
    if (dump) {
        inspect_add_text(call, record, "dump", dump);
    }
    cJSON_AddItemToObject(record, "watchpoints", watch_numbers_record(call, node));
}

int inspect_info_node(struct command_call *call, struct gd_err *err)
{
    gd_node_id node;
    struct gd_node_info info;
    int rc = inspect_node(call, call->argc ? inspect_join(call, 0, call->argc) : NULL, &node, err);
    if (rc != GD_OK) {
        return rc;
    }
    if (!gd_graph_node(call->session->graph, node, &info)) {
        return gd_fail(err, GD_ENOTFOUND, "the node is gone");
    }
    if (out_is_json(call->out)) {
        node_record(call, node, &info);
    } else {
        node_text(call, node, &info);
    }
    return GD_OK;
}

/* ---- info params --------------------------------------------------------------------------- */

struct param_total {
    uint64_t tensors, elements, bytes;
};

struct param {
    const char *name; /* with its slot where there are several */
    enum gd_node_kind kind;
    struct gd_output output;
    bool sized; /* count and bytes are known */
    uint64_t count;
    size_t bytes;
};

static bool read_param(struct command_call *call, gd_node_id node, uint32_t slot, struct param *ret)
{
    struct gd_graph *graph = call->session->graph;
    struct gd_node_info info;
    struct param param = {0};
    if (!gd_graph_node(graph, node, &info) || !gd_graph_output(graph, node, slot, &param.output)) {
        return false;
    }
    int64_t count = gd_shape_count(&param.output.shape);
    param.sized = count >= 0 && gd_shape_bytes(&param.output.shape, param.output.dtype,
                                               &param.bytes, NULL) == GD_OK;
    param.count = param.sized ? (uint64_t)count : 0;
    param.kind = info.kind;
    param.name = info.output_count > 1 ? inspect_printf(call, "%s:%u", info.name, slot) : info.name;
    *ret = param;
    return true;
}

static void show_param(struct command_call *call, struct out_table *table, cJSON *list,
                       const struct param *param)
{
    if (list) {
        cJSON *item = cJSON_CreateObject();
        inspect_add_text(call, item, "node", param->name);
        cJSON_AddStringToObject(item, "kind", gd_node_kind_name(param->kind));
        cJSON_AddStringToObject(item, "dtype", gd_dtype_name(param->output.dtype));
        inspect_add_shape(item, "shape", &param->output.shape);
        if (param->sized) {
            inspect_add_count(item, "elements", param->count);
            inspect_add_count(item, "bytes", param->bytes);
        }
        cJSON_AddItemToArray(list, item);
        return;
    }
    const char *cells[] = {gd_node_kind_name(param->kind),
                           gd_dtype_name(param->output.dtype),
                           inspect_shape(call, &param->output.shape),
                           param->sized ? inspect_number(call, param->count) : "",
                           param->sized ? inspect_bytes(call, param->bytes) : "",
                           out_safe(call, param->name)};
    out_table_row(table, cells);
}

static void param_totals(struct command_call *call, const struct param_total total[2],
                         uint64_t hidden)
{
    if (out_is_json(call->out)) {
        static const char *const names[] = {"weights", "others"};
        cJSON *record = out_record(call->out, "params");
        inspect_add_count(record, "more", hidden);
        for (int i = 0; i < 2; i++) {
            cJSON *item = cJSON_AddObjectToObject(record, names[i]);
            inspect_add_count(item, "tensors", total[i].tensors);
            inspect_add_count(item, "elements", total[i].elements);
            inspect_add_count(item, "bytes", total[i].bytes);
        }
        return;
    }
    if (hidden > 0) {
        out_printf(call->out, "... %s more (info params -a)\n", inspect_number(call, hidden));
    }
    static const char *const titles[] = {"weight", "other parameter"};
    for (int i = 0; i < 2; i++) {
        if (total[i].tensors > 0) {
            out_printf(call->out, "%s: %s, %s\n", inspect_plural(call, total[i].tensors, titles[i]),
                       inspect_plural(call, total[i].elements, "element"),
                       inspect_bytes(call, total[i].bytes));
        }
    }
    if (total[0].tensors + total[1].tensors == 0) {
        out_printf(call->out, "The graph has no parameters.\n");
    }
}

int inspect_info_params(struct command_call *call, struct gd_err *err)
{
    static const struct out_column columns[] = {
        {"kind", "Kind", false},        {"dtype", "Type", false}, {"shape", "Shape", false},
        {"elements", "Elements", true}, {"bytes", "Size", true},  {"node", "Parameter", false},
    };
    static const enum gd_node_kind kinds[] = {GD_NODE_WEIGHT, GD_NODE_PARAMETER};
    bool all = inspect_take_flag(call, "-a");
    struct node_list list = {0};
    struct gd_graph_counts counts;
    int rc = need_graph(call, &counts, err);
    if (rc != GD_OK) {
        return rc;
    }
    struct param_total total[2] = {{0}};
    uint64_t rows = 0;
    cJSON *records = NULL;
    struct out_table *table = NULL;
    if (out_is_json(call->out)) {
        records = cJSON_AddArrayToObject(out_record(call->out, "params"), "params");
    } else {
        table = out_table_begin(call->out, "params", columns, 6);
    }
    for (int k = 0; k < 2; k++) {
        list.count = 0;
        gd_graph_search_kind(call->session->graph, kinds[k], node_list_add, &list);
        for (size_t i = 0; i < list.count; i++) {
            struct param param;
            for (uint32_t slot = 0; read_param(call, list.node[i], slot, &param); slot++) {
                total[k].tensors++;
                total[k].elements += param.count;
                total[k].bytes += param.bytes;
                if (all || rows++ < NODES_SHOWN) {
                    show_param(call, table, records, &param);
                }
            }
        }
    }
    out_table_end(table);
    param_totals(call, total, all || rows < NODES_SHOWN ? 0 : rows - NODES_SHOWN);
    bool failed = list.failed;
    node_list_deinit(&list);
    return failed ? gd_fail(err, GD_ENOMEM, "out of memory") : GD_OK;
}
