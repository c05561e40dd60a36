// SPDX-License-Identifier: GPL-3.0-or-later
#include "repl/values/tree.h"
#include "repl/core/command.h"

#include <string.h>

#include "repl/values/inspect.h"
#include "repl/values/watch.h"

#define LINES_SHOWN 200 /* unless all are asked for */

/* Prints the bars in front of a line: for each level above, whether siblings follow. */
struct branches {
    bool more[TREE_MAX_DEPTH + 2];
    int depth;
};

static void print_branches(struct command_call *call, const struct branches *branches)
{
    bool utf8 = out_utf8(call->out);
    for (int i = 1; i < branches->depth; i++) {
        out_printf(call->out, "%s", !branches->more[i] ? "   " : utf8 ? "\u2502  " : "|  ");
    }
    if (branches->depth > 0) {
        bool more = branches->more[branches->depth];
        out_printf(call->out, "%s",
                   utf8 ? (more ? "\u251c\u2500 " : "\u2514\u2500 ") : (more ? "|- " : "`- "));
    }
}

static void tell_cut(struct command_call *call, cJSON *record)
{
    out_set(record, OUT_BOOL("truncated", true));
    out_printf(call->out, "... more than %d lines: -a shows all, -d sets the depth\n", LINES_SHOWN);
}

/* ---- edges --------------------------------------------------------------------------------- */

struct edge_walk {
    struct command_call *call;
    const struct tree_options *options;
    unsigned char *opened; /* one bit for each node */
    struct branches branches;
    uint64_t lines;
    bool cut; /* lines were left out */
};

static bool is_opened(const struct edge_walk *walk, gd_node_id node)
{
    return walk->opened[node / 8] & (1u << node % 8);
}

uint32_t tree_edges(const struct gd_graph *graph, gd_node_id node, bool outputs,
                    const struct gd_edge **ret)
{
    struct gd_node_info info;
    if (outputs) {
        return gd_graph_consumers(graph, node, ret);
    }
    if (!gd_graph_node(graph, node, &info)) {
        return 0;
    }
    *ret = info.inputs;
    return info.input_count;
}

/* Counts edges, without control edges unless they were asked for. */
static uint32_t count_shown(const struct edge_walk *walk, const struct gd_edge *edge,
                            uint32_t count)
{
    uint32_t shown = 0;
    for (uint32_t i = 0; i < count; i++) {
        shown += walk->options->control || !edge[i].control ? 1 : 0;
    }
    return shown;
}

static const char *edge_label(struct edge_walk *walk, gd_node_id node, const struct gd_edge *edge)
{
    struct command_call *call = walk->call;
    struct gd_node_info info;
    if (!gd_graph_node(call->session->graph, node, &info)) {
        return "(unknown node)";
    }
    int used =
        3 * walk->branches.depth + (int)strlen(info.type) + (int)strlen(", has 9 inputs") + 3;
    const char *text = inspect_fit(call, info.name, used);
    if (edge && !walk->options->outputs && info.output_count > 1) {
        text = inspect_printf(call, "%s:%u", text, edge->slot);
    }
    text = inspect_printf(call, "%s (%s)", text, out_safe(call, info.type));
    if (edge && walk->options->outputs && edge->slot > 0) {
        text = inspect_printf(call, "%s, uses :%u", text, edge->slot);
    }
    return edge && edge->control ? inspect_printf(call, "%s, control", text) : text;
}

/* Returns the record, for its children. */
static cJSON *show_edge(struct edge_walk *walk, gd_node_id node, const struct gd_edge *edge,
                        bool again, uint32_t hidden, cJSON *parent)
{
    struct command_call *call = walk->call;
    cJSON *item = out_push(parent);
    walk->lines++;
    inspect_add_node(call, item, node);
    out_set(item, OUT_IF(edge, OUT_INT("slot", edge->slot)),
            OUT_IF(edge, OUT_BOOL("control", edge->control)), OUT_IF(again, OUT_BOOL("seen", true)),
            OUT_IF(hidden > 0, OUT_INT("hidden", hidden)));
    print_branches(call, &walk->branches);
    out_say(call->out, item,
            walk->options->outputs ? "{label}[{?seen}, see above][, has {hidden|output}]\n"
                                   : "{label}[{?seen}, see above][, has {hidden|input}]\n",
            OUT_TEXT("label", edge_label(walk, node, edge)));
    return item;
}

/* options->depth bounds the recursion; each node is expanded once. */
static void walk_edges(struct edge_walk *walk, gd_node_id node, const struct gd_edge *edge,
                       cJSON *parent)
{
    if (!walk->options->all && walk->lines >= LINES_SHOWN) {
        walk->cut = true;
        return;
    }
    const struct gd_edge *edges = NULL;
    uint32_t count = tree_edges(walk->call->session->graph, node, walk->options->outputs, &edges);
    uint32_t shown = count_shown(walk, edges, count);
    bool again = shown > 0 && is_opened(walk, node);
    bool open = shown > 0 && !again && walk->branches.depth < walk->options->depth;
    cJSON *item = show_edge(walk, node, edge, again, open || again ? 0 : shown, parent);
    if (!open) {
        return;
    }
    walk->opened[node / 8] |= (unsigned char)(1u << node % 8);
    cJSON *children = out_list(item, walk->options->outputs ? "outputs" : "inputs");
    walk->branches.depth++;
    uint32_t left = shown;
    for (uint32_t i = 0; i < count; i++) {
        if (edges[i].control && !walk->options->control) {
            continue;
        }
        walk->branches.more[walk->branches.depth] = --left > 0;
        walk_edges(walk, edges[i].node, &edges[i], children);
    }
    walk->branches.depth--;
}

int tree_show_edges(struct command_call *call, gd_node_id node, const struct tree_options *options,
                    struct gd_err *err)
{
    struct edge_walk walk = {.call = call, .options = options};
    size_t nodes = gd_graph_node_limit(call->session->graph);
    walk.opened = gd_arena_zalloc(call->arena, nodes / 8 + 1);
    if (!walk.opened) {
        return gd_fail_nomem(err);
    }
    cJSON *record = out_record(call->out, options->outputs ? "outputs" : "inputs");
    walk_edges(&walk, node, NULL, out_list(record, "tree"));
    if (walk.cut) {
        tell_cut(call, record);
    } else if (walk.lines == 1) {
        out_printf(call->out, "It has no %s.\n", options->outputs ? "consumers" : "inputs");
    }
    return GD_OK;
}

/* ---- scopes -------------------------------------------------------------------------------- */

struct scope_walk {
    struct command_call *call;
    int64_t depth;
    bool all;
    struct branches branches;
    uint64_t lines;
    bool cut;
};

static uint32_t child_scopes(struct gd_graph *graph, const struct gd_scope_info *info)
{
    uint32_t count = 0;
    struct gd_scope_info child;
    for (gd_scope_id id = info->first_child; id != GD_NO_SCOPE && gd_graph_scope(graph, id, &child);
         id = child.next) {
        count++;
    }
    return count;
}

static cJSON *show_scope(struct scope_walk *walk, gd_scope_id scope,
                         const struct gd_scope_info *info, bool open, cJSON *parent)
{
    struct command_call *call = walk->call;
    cJSON *item = out_push(parent);
    walk->lines++;
    out_set(item, OUT_TEXT("scope", info->name), OUT_INT("nodes", info->total_count),
            OUT_INT("direct", info->node_count),
            OUT_TEXT("watched", watch_state_name(gd_watch_scope_state(call->session, scope))));
    print_branches(call, &walk->branches);
    out_say(call->out, item,
            "{name}/  {nodes|node}[{?below}[, {direct:n} directly]]"
            "[{?closed}[, {below|scope} below]]{mark}\n",
            OUT_TEXT("name", walk->branches.depth == 0 ? info->name : info->leaf),
            OUT_INT("below", child_scopes(call->session->graph, info)), OUT_BOOL("closed", !open),
            OUT_TEXT("mark", watch_scope_mark(call, scope)));
    return item;
}

static void walk_scopes(struct scope_walk *walk, gd_scope_id scope, cJSON *parent)
{
    struct gd_graph *graph = walk->call->session->graph;
    struct gd_scope_info info;
    if (!gd_graph_scope(graph, scope, &info)) {
        return;
    }
    if (!walk->all && walk->lines >= LINES_SHOWN) {
        walk->cut = true;
        return;
    }
    bool open = walk->branches.depth < walk->depth;
    cJSON *item = show_scope(walk, scope, &info, open, parent);
    if (!open) {
        return;
    }
    cJSON *children = out_list(item, "scopes");
    struct gd_scope_info child;
    walk->branches.depth++;
    for (gd_scope_id id = info.first_child; id != GD_NO_SCOPE && gd_graph_scope(graph, id, &child);
         id = child.next) {
        walk->branches.more[walk->branches.depth] = child.next != GD_NO_SCOPE;
        walk_scopes(walk, id, children);
    }
    walk->branches.depth--;
}

void tree_show_scopes(struct command_call *call, gd_scope_id scope, int64_t depth, bool all)
{
    struct scope_walk walk = {.call = call, .depth = depth, .all = all};
    cJSON *record = out_record(call->out, "scopes");
    walk_scopes(&walk, scope, out_list(record, "tree"));
    if (walk.cut) {
        tell_cut(call, record);
    }
}
