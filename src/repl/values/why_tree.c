// SPDX-License-Identifier: GPL-3.0-or-later
/* The tree of an answer to `why`: by default the path to the origin, on request everything. */
#include <string.h>

#include "repl/core/command.h"
#include "repl/values/inspect.h"
#include "repl/values/why.h"

#define LINES_SHOWN 16 /* lines without a path to an origin, unless all are asked for */
#define PATH_SHOWN  12 /* nodes between the question and the origin */
#define BESIDE      8  /* other inputs of each of those */
#define MAX_PERIOD  4  /* length of a repeating pattern of lines, as in a loop */
#define MIN_PERIODS 4  /* repetitions from which all but the first and last are hidden */

/* What is printed: by default the path to the origin and its side inputs. */
struct picture {
    struct command_call *call;
    const struct gd_why *why;
    bool all;
    bool *shown;   /* by node of the tree: */
    bool *more;    /* a shown sibling follows */
    bool *on_path; /* leads to the origin */
    int *more_at;  /* by depth: the line shown last */
    size_t depths; /* of more_at */
    bool *hidden;  /* part of a repeating chain */
    int *shift;    /* hidden lines above it in the tree */
    bool has_path;
    int length; /* of the path */
    size_t left_out;
};

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

/* With all: every line. Without an origin: the first lines; otherwise see print_path. */
static void choose_lines(struct picture *p)
{
    size_t lines = 0;
    for (size_t i = 0; i < p->why->count; i++) {
        lines += !p->hidden[i];
        p->shown[i] = !p->hidden[i] && (p->all || lines <= LINES_SHOWN);
        p->left_out += !p->shown[i] && !p->hidden[i];
    }
}

static const char *type_at(const struct picture *p, size_t i)
{
    struct gd_node_info info;
    bool known = gd_graph_node(p->call->session->graph, p->why->nodes[i].node, &info);
    return known && info.type ? info.type : "";
}

/* How many lines from i on are nested and repeat every `period` lines. */
static size_t count_repeats(const struct picture *p, size_t i, size_t period)
{
    const struct gd_why *why = p->why;
    size_t length = 0;
    while (i + length + period < why->count &&
           why->nodes[i + length + period].depth == why->nodes[i].depth + (int)(length + period) &&
           why->nodes[i + length].verdict == why->nodes[i + length + period].verdict &&
           !why->nodes[i + length + period].origin &&
           strcmp(type_at(p, i + length), type_at(p, i + length + period)) == 0) {
        length++;
    }
    return length >= (MIN_PERIODS - 1) * period ? length + period : 0;
}

/* How many lines from i on are siblings of one type that were shown before. */
static size_t count_again(const struct picture *p, size_t i)
{
    const struct gd_why *why = p->why;
    size_t length = 0;
    while (i + length < why->count && why->nodes[i + length].shown_above &&
           why->nodes[i + length].depth == why->nodes[i].depth &&
           strcmp(type_at(p, i), type_at(p, i + length)) == 0) {
        length++;
    }
    return length;
}

/* Hides the middle of a long chain that a loop writing to one value makes. */
static void hide_repeats(struct picture *p)
{
    for (size_t i = 0; i < p->why->count; i++) {
        size_t beside = count_again(p, i);
        if (beside > 2 * MIN_PERIODS) {
            memset(p->hidden + i + 1, true, beside - 2);
            i += beside - 1;
            continue;
        }
        for (size_t period = 1; period <= MAX_PERIOD; period++) {
            size_t length = count_repeats(p, i, period);
            size_t whole = length / period * period;
            if (whole > 0) {
                memset(p->hidden + i + period, true, whole - 2 * period);
                i += whole - 1;
                break;
            }
        }
    }
}

/* Other inputs of a hidden line were shown before. */
static void find_shifts(struct picture *p)
{
    /* by depth: twice the hidden lines above it, plus 1 if it is hidden itself */
    int *above = p->more_at;
    for (size_t i = 0; i < p->why->count; i++) {
        int depth = p->why->nodes[i].depth, parent = depth > 0 ? above[depth - 1] : 0;
        p->hidden[i] = p->hidden[i] || ((parent & 1) != 0 && p->why->nodes[i].shown_above);
        p->shift[i] = parent / 2 + (parent & 1);
        above[depth] = 2 * p->shift[i] + p->hidden[i];
    }
    memset(p->more_at, 0, p->depths * sizeof(int));
}

static int depth_of(const struct picture *p, size_t i)
{
    return p->why->nodes[i].depth - p->shift[i];
}

static void find_siblings(struct picture *p)
{
    int deepest = 0;
    for (size_t i = p->why->count; i-- > 0;) {
        int depth = depth_of(p, i);
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
    int depth = depth_of(p, i);
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

/* Hits are shown where the value first appears: further down it may be that of an earlier step. */
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
        out_printf(call->out, "(unknown node)\n");
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
    struct repl_out *out = p->call->out;
    enum gd_why_verdict verdict = p->why->nodes[i].verdict;
    if (verdict == GD_WHY_BAD) {
        out_printf(out, "%sBAD %s", out_sgr(out, "31"), out_sgr(out, OUT_RESET));
    } else {
        out_printf(out, "%-4s", verdict == GD_WHY_GOOD ? "ok" : "?");
    }
}

static void print_hidden(struct picture *p, size_t i)
{
    size_t count = 0;
    while (i + count < p->why->count && p->hidden[i + count]) {
        count++;
    }
    out_printf(p->call->out, "    ... %s like these hidden ...\n",
               inspect_plural(p->call, count, "more value"));
}

static void print_all(struct picture *p)
{
    for (size_t i = 0; i < p->why->count; i++) {
        if (p->hidden[i] && i > 0 && !p->hidden[i - 1] && p->shown[i - 1]) {
            print_hidden(p, i);
        }
        if (p->shown[i]) {
            int used = 3 * depth_of(p, i), most = out_width(p->call->out) / 2 + 8;
            print_mark(p, i);
            print_bars(p, i);
            print_node(p, i, used < most ? used : most);
        }
    }
}

/* The depth at which a line is printed: hidden lines take no space. */
static int path_depth(const struct picture *p, int depth)
{
    bool after = p->length > PATH_SHOWN + 2 && depth > p->length - PATH_SHOWN / 2;
    return after ? depth - (p->length - PATH_SHOWN) + 1 : depth;
}

/* Prints a line of the path to the origin, after the other inputs of the line above, so that the
 * path runs down the left side. */
static void print_step(struct picture *p, size_t i, int unit, bool last)
{
    bool utf8 = out_utf8(p->call->out);
    int indent = unit * (path_depth(p, p->why->nodes[i].depth) - 1);
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

/* Prints the other inputs of the node above the one at `at`. */
static void print_beside(struct picture *p, size_t above, int unit)
{
    int depth = p->why->nodes[above].depth + 1;
    size_t last = 0; /* nothing follows below the origin */
    for (size_t i = above + 1; i < p->why->count && p->why->nodes[i].depth >= depth; i++) {
        last = p->why->nodes[above].origin && p->why->nodes[i].depth == depth ? i : last;
    }
    int beside = 0;
    for (size_t i = above + 1; i < p->why->count && p->why->nodes[i].depth >= depth; i++) {
        if (p->why->nodes[i].depth == depth && !p->on_path[i] && (beside++ < BESIDE || i == last)) {
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
                out_printf(p->call->out, "    %*s... %d nodes on the path hidden ...\n",
                           unit * path_depth(p, depth), "", p->length - PATH_SHOWN);
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
        hide_repeats(p);
        find_shifts(p);
        choose_lines(p);
        find_siblings(p);
        memset(p->more_at, 0, p->depths * sizeof(int));
        print_all(p);
    }
    if (p->left_out > 0) {
        const char *asked = p->call->line;
        out_printf(p->call->out, "(%s: why %s%s-a)\n",
                   inspect_plural(p->call, p->left_out, "more value"), asked, asked[0] ? " " : "");
    }
    if (p->why->cut) {
        out_printf(p->call->out,
                   "The search was cut short: not everything upstream was checked.\n");
    }
}

int why_show_tree(struct command_call *call, const struct gd_why *why, bool all, struct gd_err *err)
{
    struct picture p = {.call = call, .why = why, .all = all};
    int deepest = 0;
    for (size_t i = 0; i < why->count; i++) {
        deepest = why->nodes[i].depth > deepest ? why->nodes[i].depth : deepest;
    }
    p.depths = (size_t)deepest + 2;
    p.shown = gd_arena_zalloc(call->arena, (why->count + 1) * 4 * sizeof(bool));
    p.more_at = gd_arena_zalloc(call->arena, p.depths * sizeof(int));
    p.shift = gd_arena_zalloc(call->arena, (why->count + 1) * sizeof(int));
    if (!p.shown || !p.more_at || !p.shift) {
        return gd_fail_nomem(err);
    }
    p.more = p.shown + why->count + 1;
    p.on_path = p.more + why->count + 1;
    p.hidden = p.on_path + why->count + 1;
    find_path(&p);
    print_tree(&p);
    return GD_OK;
}
