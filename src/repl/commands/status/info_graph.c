// SPDX-License-Identifier: GPL-3.0-or-later
/* `info graph`, `info types`, `info nodes`. */
#include <string.h>

#include "engine/graph/part.h"
#include "repl/commands/status/info.h"
#include "repl/values/inspect.h"
#include "repl/values/nodes.h"

#define TYPES_SHOWN 10

/* Depth of the scope tree below the root. */
static uint32_t scope_depth(const struct gd_graph *graph, uint32_t scopes)
{
    uint32_t deepest = 0;
    struct gd_scope_info info;
    for (gd_scope_id id = 0; id <= scopes; id++) {
        uint32_t depth = 0;
        if (!gd_graph_scope(graph, id, &info) || info.first_child != GD_NO_SCOPE) {
            continue; /* the deepest scope has no children */
        }
        while (info.parent != GD_NO_SCOPE && gd_graph_scope(graph, info.parent, &info)) {
            depth++;
        }
        deepest = depth > deepest ? depth : deepest;
    }
    return deepest;
}

static void record_graph(struct command_call *call, cJSON *record,
                         const struct gd_graph_counts *counts)
{
    struct gd_graph *graph = call->session->graph;
    out_set(record, OUT_INT("nodes", counts->nodes), OUT_INT("edges", counts->edges),
            OUT_INT("scopes", counts->scopes), OUT_INT("depth", scope_depth(graph, counts->scopes)),
            OUT_INT("missing_inputs", counts->missing_inputs), OUT_INT("memory", counts->memory));
    cJSON *subgraphs = out_list(record, "subgraphs");
    for (uint32_t i = 0; i < counts->subgraphs; i++) {
        const char *name = gd_graph_subgraph_name(graph, i);
        out_push_text(subgraphs, name ? name : "");
    }
    cJSON *kinds = out_object(record, "kinds");
    for (int kind = GD_NODE_OTHER; kind < GD_NODE_KIND_COUNT; kind++) {
        out_set(kinds, OUT_INT(gd_node_kind_name((enum gd_node_kind)kind), counts->by_kind[kind]));
    }
    uint32_t types = 0;
    const struct gd_type_count *type = gd_graph_types(graph, &types);
    cJSON *list = out_list(record, "types");
    for (uint32_t i = 0; i < types && i < TYPES_SHOWN; i++) {
        cJSON *item = out_push(list);
        out_set(item, OUT_TEXT("node_type", type[i].type), OUT_INT("nodes", type[i].count));
    }
    out_set(record, OUT_INT("type_count", types));
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
        {GD_NODE_COMPILED, "compiled", "compiled"},
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

/* "Types:   MatMul 4, Add 2", wrapped to the width of the output. */
static void print_types(struct command_call *call, uint32_t shown)
{
    uint32_t types = 0;
    const struct gd_type_count *type = gd_graph_types(call->session->graph, &types);
    int column = 9;

    for (uint32_t i = 0; i < types && i < shown; i++) {
        const char *text =
            inspect_printf(call, "%s %u", out_safe(call, type[i].type), type[i].count);
        column += (int)strlen(text) + 2;
        bool wrap = i > 0 && column > out_width(call->out);
        out_printf(call->out, "%s%s", i == 0 ? "Types:   " : wrap ? ",\n         " : ", ", text);
        column = wrap ? 9 + (int)strlen(text) : column;
    }
    if (types > shown) {
        out_printf(call->out, ", ... %u more (info types)", types - shown);
    }
    out_printf(call->out, "%s", types > 0 ? "\n" : "");
}

static void show_graph(struct command_call *call, const struct gd_graph_counts *counts)
{
    struct gd_graph *graph = call->session->graph;
    cJSON *record = out_record(call->out, "graph");

    record_graph(call, record, counts);
    out_say(call->out, record,
            "{nodes|node}, {edges|edge}, {scopes|scope} in {depth} levels, {memory:bytes}\n");
    for (uint32_t i = 0; i < counts->subgraphs && i < TYPES_SHOWN; i++) {
        const char *name = gd_graph_subgraph_name(graph, i);
        out_printf(call->out, "%s%s", i == 0 ? "Graphs:  " : ", ",
                   out_safe(call, name ? name : ""));
    }
    out_say(call->out, record, "[, ... {more} more][{?any}\n]Kinds:   {kinds_text}\n",
            OUT_INT("more", counts->subgraphs > TYPES_SHOWN ? counts->subgraphs - TYPES_SHOWN : 0),
            OUT_BOOL("any", counts->subgraphs > 0),
            OUT_TEXT("kinds_text", kinds_text(call, counts)));
    print_types(call, TYPES_SHOWN);
    out_say(call->out, record,
            "[Missing: {missing_inputs|input} whose producer the training process did not send\n]");
}

int info_need_graph(struct command_call *call, struct gd_graph_counts *counts, struct gd_err *err)
{
    gd_graph_counts(call->session->graph, counts);
    if (counts->nodes == 0) {
        return gd_fail(err, GD_ENODATA, "the training process has not sent a graph yet");
    }
    return GD_OK;
}

int info_graph(struct command_call *call, struct gd_err *err)
{
    struct gd_graph_counts counts;
    int rc = info_need_graph(call, &counts, err);
    if (rc != GD_OK) {
        return rc;
    }
    show_graph(call, &counts);
    return GD_OK;
}

int info_types(struct command_call *call, struct gd_err *err)
{
    static const struct out_column columns[] = {{"nodes", "Nodes", true},
                                                {"node_type", "Type", false}};
    struct gd_graph_counts counts;
    int rc = info_need_graph(call, &counts, err);
    if (rc != GD_OK) {
        return rc;
    }
    uint32_t types = 0;
    const struct gd_type_count *type = gd_graph_types(call->session->graph, &types);
    struct out_table *table = out_table_begin(call->out, "types", columns, 2);
    for (uint32_t i = 0; i < types; i++) {
        out_put(table, OUT_INT("nodes", type[i].count), OUT_TEXT("node_type", type[i].type));
    }
    out_table_end(table);
    return GD_OK;
}

int info_nodes(struct command_call *call, struct gd_err *err)
{
    bool all = inspect_take_flag(call, "-a");
    struct node_list list = {0};
    const char *text = call->argc ? inspect_join(call, 0, call->argc) : "";
    struct gd_graph_counts counts;
    int rc = info_need_graph(call, &counts, err);
    if (rc == GD_OK && text[0]) {
        rc = nodes_select(call, text, &list, err);
    } else if (rc == GD_OK) {
        uint32_t count = 0;
        const gd_node_id *order = gd_graph_execution(call->session->graph, &count);
        for (uint32_t i = 0; i < count && !list.failed; i++) {
            node_list_add(&list, order[i]);
        }
        rc = list.failed ? gd_fail_nomem(err) : GD_OK;
    }
    rc = rc == GD_OK ? gd_graph_sort_by_part(call->session->graph, list.node, list.count, err) : rc;
    if (rc == GD_OK) {
        nodes_show(
            call, &list, all,
            inspect_printf(call, "info nodes%s%s -a", text[0] ? " " : "", out_safe(call, text)));
    }
    node_list_deinit(&list);
    return rc;
}
