// SPDX-License-Identifier: GPL-3.0-or-later
/* `info params`. */
#include "repl/commands/status/info.h"
#include "repl/values/inspect.h"
#include "repl/values/nodes.h"

struct param_total {
    uint64_t tensors, elements, bytes;
};

struct param {
    const char *name; /* with the slot if the node has several */
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

static void put_param(struct out_table *table, const struct param *param)
{
    out_put(table, OUT_TEXT("node", param->name), OUT_TEXT("kind", gd_node_kind_name(param->kind)),
            OUT_TEXT("dtype", gd_dtype_name(param->output.dtype)),
            OUT_JSON("shape", inspect_shape_json(&param->output.shape)),
            OUT_IF(param->sized, OUT_INT("elements", param->count)),
            OUT_IF(param->sized, OUT_INT("bytes", param->bytes)));
}

static void show_totals(struct command_call *call, const struct param_total total[2],
                        uint64_t hidden)
{
    static const char *const names[] = {"weights", "others"};
    static const char *const templates[] = {
        "[{tensors|weight}: {elements|element}, {bytes:bytes}\n]",
        "[{tensors|other parameter}: {elements|element}, {bytes:bytes}\n]"};
    cJSON *record = out_record(call->out, "params");
    out_set(record, OUT_INT("more", hidden));
    out_say(call->out, record, "[... {more:n} more (info params -a)\n]");
    for (int i = 0; i < 2; i++) {
        cJSON *item = out_object(record, names[i]);
        out_set(item, OUT_INT("tensors", total[i].tensors), OUT_INT("elements", total[i].elements),
                OUT_INT("bytes", total[i].bytes));
        out_say(call->out, item, templates[i]);
    }
    if (total[0].tensors + total[1].tensors == 0) {
        out_printf(call->out, "The graph has no parameters.\n");
    }
}

int info_params(struct command_call *call, struct gd_err *err)
{
    static const struct out_column columns[] = {
        {"kind", "Kind", false},
        {"dtype", "Type", false},
        {"shape", "Shape", false, ":shape"},
        {"elements", "Elements", true, ":n"},
        {"bytes", "Size", true, ":bytes"},
        {"node", "Parameter", false},
    };
    static const enum gd_node_kind kinds[] = {GD_NODE_WEIGHT, GD_NODE_PARAMETER};
    bool all = inspect_take_flag(call, "-a");
    struct node_list list = {0};
    struct gd_graph_counts counts;
    int rc = info_need_graph(call, &counts, err);
    if (rc != GD_OK) {
        return rc;
    }
    struct param_total total[2] = {{0}};
    uint64_t rows = 0;
    struct out_table *table = out_table_begin(call->out, "params", columns, 6);
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
                    put_param(table, &param);
                }
            }
        }
    }
    out_table_end(table);
    show_totals(call, total, all || rows < NODES_SHOWN ? 0 : rows - NODES_SHOWN);
    bool failed = list.failed;
    node_list_deinit(&list);
    return failed ? gd_fail_nomem(err) : GD_OK;
}
