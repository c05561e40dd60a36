// SPDX-License-Identifier: GPL-3.0-or-later
/* Commands: tensor-graph */
#include <string.h>

#include "repl/values/inspect.h"
#include "repl/values/tree.h"
#include "repl/values/value.h"
#include "repl/values/watch.h"
#include "repl/values/why.h"

#define MAX_DEPTH   10
#define NODES_SHOWN 200 /* in each direction */

struct neighbour {
    gd_node_id node;
    int distance;
};

struct neighbours {
    struct neighbour list[NODES_SHOWN];
    size_t count;
    bool cut;
};

static bool is_listed(const struct neighbours *all, gd_node_id node)
{
    for (size_t i = 0; i < all->count; i++) {
        if (all->list[i].node == node) {
            return true;
        }
    }
    return false;
}

/* Collects neighbours, nearest first, each once. list[0] is the node itself. */
static void collect_nodes(const struct gd_graph *graph, gd_node_id node, bool outputs,
                          int64_t depth, struct neighbours *ret)
{
    ret->list[0] = (struct neighbour){node, 0};
    ret->count = 1;
    ret->cut = false;
    for (size_t i = 0; i < ret->count && ret->list[i].distance < depth; i++) {
        const struct gd_edge *edges = NULL;
        uint32_t count = tree_edges(graph, ret->list[i].node, outputs, &edges);
        for (uint32_t k = 0; k < count; k++) {
            struct gd_node_info info;
            if (edges[k].control || !gd_graph_node(graph, edges[k].node, &info) ||
                is_listed(ret, edges[k].node)) {
                continue;
            }
            if (ret->count == NODES_SHOWN) {
                ret->cut = true;
                return;
            }
            ret->list[ret->count++] = (struct neighbour){edges[k].node, ret->list[i].distance + 1};
        }
    }
}

/* ---- one node ------------------------------------------------------------------------------ */

struct slot_value {
    bool has_stats;
    enum gd_dtype dtype;
    struct gd_shape shape;
    struct gd_stats stats;
    int64_t step;
    struct gd_err err; /* why there is no value; code GD_OK: not asked for */
};

/* Only GD_EINTR is an error; a missing value is not. */
static int read_slot(struct command_call *call, gd_node_id node, uint32_t slot,
                     struct slot_value *ret, struct gd_err *err)
{
    struct gd_tensor_ref ref = {node, slot, GD_CURRENT};
    struct gd_output output = {0};
    memset(ret, 0, sizeof(*ret));
    ret->step = -1;
    gd_graph_output(call->session->graph, node, slot, &output);
    ret->dtype = output.dtype;
    ret->shape = output.shape;
    if (call->session->state == GD_RUNNING) {
        return GD_OK;
    }
    int rc = repl_stats(call, &ref, &ret->dtype, &ret->shape, &ret->stats, &ret->step, &ret->err);
    ret->has_stats = rc == GD_OK;
    if (rc == GD_EINTR) {
        *err = ret->err;
        return rc;
    }
    return GD_OK;
}

static void show_slot(struct command_call *call, gd_node_id node, uint32_t slot,
                      const struct slot_value *value, cJSON *list)
{
    bool failed = !value->has_stats && value->err.code != GD_OK;
    const struct gd_stats *stats = value->has_stats ? &value->stats : NULL;
    char age[VALUE_AGE] = "";
    cJSON *item = out_push(list);
    out_set(item, OUT_INT("slot", slot), OUT_TEXT("dtype", gd_dtype_name(value->dtype)),
            OUT_JSON("shape", inspect_shape_json(&value->shape)),
            OUT_IF(stats && value->step >= 0, OUT_INT("step", value->step)),
            OUT_IF(stats, OUT_JSON("stats", value_stats_record(stats))),
            OUT_IF(failed, OUT_TEXT("error", value->err.text)));
    why_add_hits(call, item, node, slot);
    if (stats) {
        value_age(call->session, value->step, age);
    }
    out_say(call->out, item,
            "    :{name}[ \\[{hits: }\\]]  {values}[, {age}][{?failed}  (no value)]\n",
            OUT_TEXT("name", inspect_slot(call, node, slot)),
            OUT_TEXT("values", why_figures(call, value->dtype, &value->shape, stats)),
            OUT_TEXT("age", age), OUT_BOOL("failed", failed));
}

static void record_edges(struct command_call *call, const struct gd_node_info *info, cJSON *object)
{
    cJSON *list = out_list(object, "inputs");
    for (uint32_t i = 0; i < info->input_count; i++) {
        cJSON *item = out_push(list);
        out_set(item, OUT_TEXT("node", gd_graph_name(call->session->graph, info->inputs[i].node)),
                OUT_INT("slot", info->inputs[i].slot),
                OUT_BOOL("control", info->inputs[i].control));
    }
}

static int show_node(struct command_call *call, const struct neighbour *at, cJSON *list,
                     struct gd_err *err)
{
    struct gd_node_info info;
    int rc = GD_OK;
    if (!gd_graph_node(call->session->graph, at->node, &info)) {
        return rc;
    }
    cJSON *item = out_push(list);
    inspect_add_node(call, item, at->node);
    out_set(item, OUT_INT("distance", at->distance),
            OUT_JSON("watchpoints", watch_numbers_record(call, at->node)));
    out_say(call->out, item,
            "  [{?far}{distance}: ]{name} ({node_type}, {kind})[, watched by {watchpoints}]\n",
            OUT_BOOL("far", at->distance > 1),
            OUT_TEXT("name", inspect_fit(call, info.name, (int)strlen(info.type) + 16)));
    record_edges(call, &info, item);
    cJSON *slots = out_list(item, "slots");
    for (uint32_t slot = 0; rc == GD_OK && slot < info.output_count; slot++) {
        struct slot_value value;
        rc = read_slot(call, at->node, slot, &value, err);
        if (rc == GD_OK) {
            show_slot(call, at->node, slot, &value, slots);
        }
    }
    return rc;
}

/* ---- the command --------------------------------------------------------------------------- */

static int show_side(struct command_call *call, const char *name, const struct neighbours *all,
                     size_t first, struct gd_err *err)
{
    cJSON *record = out_record(call->out, "tensor_graph");
    cJSON *list = out_list(record, name);
    int rc = GD_OK;
    if (first > 0) {
        out_printf(call->out, all->count > first ? "%s:\n" : "%s: none\n", name);
    }
    for (size_t i = first; rc == GD_OK && i < (first ? all->count : 1); i++) {
        rc = show_node(call, &all->list[i], list, err);
    }
    if (rc == GD_OK && first > 0 && all->cut) {
        out_set(record, OUT_BOOL("truncated", true));
        out_printf(call->out, "  ... more than %d nodes: use a smaller -d\n", NODES_SHOWN);
    }
    return rc;
}

static int run_tensor_graph(struct command_call *call, struct gd_err *err)
{
    int64_t depth = 1;
    gd_node_id node;
    int rc = inspect_take_count(call, "-d", 1, MAX_DEPTH, &depth, err);
    rc = rc != GD_OK ? rc : inspect_no_options(call, err);
    rc = rc != GD_OK ? rc
                     : inspect_node(call, call->argc ? inspect_join(call, 0, call->argc) : NULL,
                                    &node, err);
    if (rc != GD_OK) {
        return rc;
    }
    struct neighbours *all = gd_arena_alloc(call->arena, sizeof(*all));
    if (!all) {
        return gd_fail_nomem(err);
    }
    collect_nodes(call->session->graph, node, false, depth, all);
    rc = show_side(call, "node", all, 0, err);
    rc = rc != GD_OK ? rc : show_side(call, "inputs", all, 1, err);
    if (rc == GD_OK) {
        collect_nodes(call->session->graph, node, true, depth, all);
        rc = show_side(call, "outputs", all, 1, err);
    }
    return rc;
}

const struct command cmd_tensor_graph = {
    .name = "tensor-graph",
    .aliases = "tg",
    .group = "graph",
    .usage = "tensor-graph [NODE] [-d DEPTH]",
    .summary = "Show a node with its direct inputs and outputs, their values and hits",
    .help =
        "Show each slot with its type, shape and statistics, the conditions that fired on it at\n"
        "this stop, and the watchpoints that cover it. -d sets the depth (up to 10).",
    .examples = "tensor-graph model/loss/log\n"
                "tensor-graph . -d 2",
    .args = {ARG_NODE},
    .flags = CMD_NEEDS_SESSION | CMD_REPEATS,
    .run = run_tensor_graph,
};
