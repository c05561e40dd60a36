// SPDX-License-Identifier: GPL-3.0-or-later
/* The tree of an answer to `why`: by default the way to the origin, on request all of it. */
#include <stdlib.h>
#include <string.h>

#include "repl/inspect.h"
#include "repl/why.h"

#define LINES_SHOWN 16 /* without a way to an origin, unless all are asked for */
#define PATH_SHOWN  12 /* nodes between what was asked about and the origin */

/* What is printed of the tree: by default the way to the origin and what lies beside it. */
struct picture {
    struct command_call *call;
    const struct gd_why *why;
    bool all;
    bool *shown;   /* by node of the tree */
    bool *more;    /* whether a sibling that is shown follows */
    bool *on_path; /* leads to the origin */
    int *more_at;  /* by depth, of the line shown last there */
    size_t depths; /* of more_at */
    bool has_path;
    int length; /* of the path */
    size_t left_out;
};

static const char *mark(const struct gd_why_node *node)
{
    return node->verdict == GD_WHY_BAD ? "BAD" : node->verdict == GD_WHY_GOOD ? "ok" : "?";
}

static void find_path(struct picture *p)
{
    const struct gd_why *why = p->why;
    size_t at = why->count;
    for (size_t i = 0; i < why->count; i++) {
        at = why->nodes[i].origin ? i : at;
    }
    if (at == why->count) {
        return;
    }
    int depth = why->nodes[at].depth;
    p->on_path[at] = true;
    for (size_t i = at; i-- > 0 && depth > 0;) {
        if (why->nodes[i].depth == depth - 1) {
            p->on_path[i] = true;
            depth--;
        }
    }
    p->length = why->nodes[at].depth;
    p->has_path = true;
}

/* With all: every line. Without an origin the first lines; else see print_path. */
static void choose(struct picture *p)
{
    for (size_t i = 0; i < p->why->count; i++) {
        p->shown[i] = p->all || i < LINES_SHOWN;
        p->left_out += !p->shown[i];
    }
}

static void find_siblings(struct picture *p)
{
    int deepest = 0;
    for (size_t i = p->why->count; i-- > 0;) {
        int depth = p->why->nodes[i].depth;
        if (!p->shown[i]) {
            continue;
        }
        for (int k = depth + 1; k <= deepest; k++) {
            p->more_at[k] = 0;
        }
        p->more[i] = p->more_at[depth] != 0;
        p->more_at[depth] = 1;
        deepest = depth;
    }
}

static void print_bars(struct picture *p, size_t i)
{
    struct command_call *call = p->call;
    bool utf8 = out_utf8(call->out);
    int depth = p->why->nodes[i].depth;
    int limit = out_width(call->out) / 6;
    p->more_at[depth] = p->more[i];
    if (depth == 0) {
        return;
    }
    int first = depth > limit ? depth - limit : 1;
    if (first > 1) {
        out_printf(call->out, "(%d) ", depth);
    }
    for (int k = first; k < depth; k++) {
        out_printf(call->out, "%s", !p->more_at[k] ? "   " : utf8 ? "\u2502  " : "|  ");
    }
    out_printf(call->out, "%s",
               utf8 ? (p->more[i] ? "\u251c\u2500 " : "\u2514\u2500 ")
                    : (p->more[i] ? "|- " : "`- "));
}

/* What fired is shown where the value comes first: further down it may be that of a step before. */
static const char *hits_of(struct picture *p, size_t i)
{
    const struct gd_why_node *node = &p->why->nodes[i];
    for (size_t k = i; k-- > 0 && i - k < 64;) {
        if (p->why->nodes[k].node == node->node && p->why->nodes[k].slot == node->slot) {
            return "";
        }
    }
    return why_hits(p->call, node->node, node->slot);
}

static void print_node(struct picture *p, size_t i, int used)
{
    struct command_call *call = p->call;
    const struct gd_why_node *node = &p->why->nodes[i];
    struct gd_node_info info;
    if (!gd_graph_node(call->session->graph, node->node, &info)) {
        out_printf(call->out, "(a node that is gone)\n");
        return;
    }
    const char *slot = info.output_count > 1 ? inspect_printf(call, ":%u", node->slot) : "";
    const char *tail = inspect_printf(call, "%s (%s)%s  %s%s", slot, out_safe(call, info.type),
                                      hits_of(p, i), out_safe(call, node->note),
                                      node->origin        ? "  <- origin"
                                      : node->shown_above ? "  (see above)"
                                                          : "");
    out_printf(call->out, "%s%s\n", inspect_fit(call, info.name, 4 + used + (int)strlen(tail)),
               tail);
}

static void print_mark(struct picture *p, size_t i)
{
    struct command_call *call = p->call;
    bool bad = p->why->nodes[i].verdict == GD_WHY_BAD;
    out_printf(call->out, "%s%-4s%s", bad ? out_sgr(call->out, "31") : "", mark(&p->why->nodes[i]),
               bad ? out_sgr(call->out, OUT_RESET) : "");
}

static void print_all(struct picture *p)
{
    for (size_t i = 0; i < p->why->count; i++) {
        if (p->shown[i]) {
            print_mark(p, i);
            print_bars(p, i);
            print_node(p, i, 3 * p->why->nodes[i].depth);
        }
    }
}

/* A line of the way to the origin: the node stands below all the others that the one above it
 * reads, so that the way itself runs down the left. */
static void print_step(struct picture *p, size_t i, int unit, bool last)
{
    bool utf8 = out_utf8(p->call->out);
    int indent = unit * (p->why->nodes[i].depth - 1);
    const char *branch = utf8 ? (last ? "\u2514\u2500" : "\u251c\u2500") : (last ? "`-" : "|-");
    print_mark(p, i);
    if (p->why->nodes[i].depth > 0) {
        out_printf(p->call->out, "%*s%s ", indent, "", branch);
    }
    print_node(p, i, indent + 3);
}

static bool is_skipped(const struct picture *p, int depth)
{
    return p->length > PATH_SHOWN + 2 && depth > PATH_SHOWN / 2 &&
           depth <= p->length - PATH_SHOWN / 2;
}

/* The other inputs of the node above the one at `at`. */
static void print_beside(struct picture *p, size_t above, int unit)
{
    int depth = p->why->nodes[above].depth + 1;
    size_t last = 0; /* below the origin nothing else follows */
    for (size_t i = above + 1; i < p->why->count && p->why->nodes[i].depth >= depth; i++) {
        last = p->why->nodes[above].origin && p->why->nodes[i].depth == depth ? i : last;
    }
    for (size_t i = above + 1; i < p->why->count && p->why->nodes[i].depth >= depth; i++) {
        if (p->why->nodes[i].depth == depth && !p->on_path[i]) {
            print_step(p, i, unit, i == last);
            p->left_out--;
        }
    }
}

static void print_path(struct picture *p)
{
    int unit = p->length > 6 ? 1 : 3;
    bool gap = false;
    p->left_out = p->why->count;
    for (size_t i = 0; i < p->why->count; i++) {
        int depth = p->why->nodes[i].depth;
        if (!p->on_path[i]) {
            continue;
        }
        if (is_skipped(p, depth)) {
            if (!gap) {
                out_printf(p->call->out, "    %*s... %d nodes on the way are left out ...\n",
                           unit * depth, "", p->length - PATH_SHOWN);
            }
            gap = true;
            continue;
        }
        print_step(p, i, unit, true);
        p->left_out--;
        if (!is_skipped(p, depth + 1)) {
            print_beside(p, i, unit);
        }
    }
}

static void print_tree(struct picture *p)
{
    if (p->has_path && !p->all) {
        print_path(p);
    } else {
        choose(p);
        find_siblings(p);
        memset(p->more_at, 0, p->depths * sizeof(int));
        print_all(p);
    }
    if (p->left_out > 0) {
        out_printf(p->call->out, "(%s: why -a)\n",
                   inspect_plural(p->call, p->left_out, "more value"));
    }
    if (p->why->cut) {
        out_printf(p->call->out, "The walk was cut: not everything upstream was looked at.\n");
    }
}

int why_show_tree(struct command_call *call, const struct gd_why *why, bool all, struct gd_err *err)
{
    struct picture p = {.call = call, .why = why, .all = all};
    int deepest = 0;
    for (size_t i = 0; i < why->count; i++) {
        deepest = why->nodes[i].depth > deepest ? why->nodes[i].depth : deepest;
    }
    p.shown = calloc(why->count + 1, 3 * sizeof(bool));
    p.depths = (size_t)deepest + 2;
    p.more_at = calloc(p.depths, sizeof(int));
    if (!p.shown || !p.more_at) {
        free(p.shown);
        free(p.more_at);
        return gd_fail(err, GD_ENOMEM, "out of memory");
    }
    p.more = p.shown + why->count + 1;
    p.on_path = p.more + why->count + 1;
    find_path(&p);
    print_tree(&p);
    free(p.shown);
    free(p.more_at);
    return GD_OK;
}
