// SPDX-License-Identifier: GPL-3.0-or-later
#include "compare/divergence.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define MAX_BETWEEN 64
#define AMPLIFIES   10
#define NOTHING     1e-6 /* a relative error that counts as zero */

const char *gd_origin_name(enum gd_origin origin)
{
    static const char *const names[] = {"-", "ORIGIN", "INHERITED", "UNKNOWN-IN"};

    return names[origin];
}

/* "AllReduce", "all_gather": all ranks take part in it. */
static bool is_collective(const char *op)
{
    static const char *const names[] = {"allreduce",  "all_reduce",    "allgather",
                                        "all_gather", "reducescatter", "reduce_scatter",
                                        "broadcast_", "alltoall",      "all_to_all"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcasestr(op, names[i])) {
            return true;
        }
    }
    return strcasecmp(op, "Broadcast") == 0;
}

struct search {
    struct gd_divergence *ret;
    struct gd_table *a, *b;
    const struct gd_matching *matching;
    const struct gd_divergence_options *options;
    size_t *order; /* matches with both sides, in execution order */
    size_t count;
    struct known { /* per item of B */
        bool asked, has;
        enum gd_agreement verdict;
        double rel_l2;
    } * known;
    uint32_t *unit_of;  /* unit of each node of B's graph; UINT32_MAX: none */
    uint32_t limit;     /* nodes at the beginning: a training's graph may grow */
    uint32_t *match_of; /* per unit of B */
};

/* ---- items ----------------------------------------------------------------------------------- */

static int item_value(struct search *s, bool of_b, const struct gd_unit *unit, struct gd_item *item,
                      struct gd_err *err)
{
    const struct gd_divergence_options *options = s->options;
    int rc = options->fetch ? options->fetch(options->ctx, of_b, unit, item, err) : GD_OK;

    return rc == GD_OK ? gd_table_look(of_b ? s->b : s->a, item, err) : rc;
}

/* ret->verdict UNREADABLE without metrics: not comparable. */
static int compare_values(struct search *s, struct gd_item *a, struct gd_item *b,
                          struct gd_difference *ret, struct gd_err *err)
{
    struct gd_compare_options how = {.profile = s->options->profile,
                                     .threads = s->options->threads,
                                     .go_on = s->options->go_on,
                                     .go_on_ctx = s->options->ctx};

    how.has_tolerance = s->options->tolerance &&
                        s->options->tolerance(s->options->ctx, a->name, b->name, &how.tolerance);
    *ret = (struct gd_difference){.verdict = GD_V_UNREADABLE};
    if (a->source && b->source && !a->problem && !b->problem) {
        return gd_compare_sources(a->source, b->source, &how, ret, err);
    }
    if (a->digest && b->digest) {
        ret->verdict = strcmp(a->digest, b->digest) == 0 ? GD_V_SAME : GD_V_DIFF;
    } else if (a->stats && b->stats) {
        ret->tolerance = how.has_tolerance ? how.tolerance
                                           : gd_profile_tolerance(how.profile, GD_STORED_FLOAT32,
                                                                  GD_STORED_FLOAT32);
        ret->verdict = gd_compare_stats(a->stats, b->stats, ret->tolerance);
    }
    return GD_OK;
}

/* Bad, not counting UNREADABLE, which says nothing. */
static bool is_bad(enum gd_agreement verdict)
{
    return gd_verdict_is_bad(verdict) && verdict != GD_V_UNREADABLE;
}

static const char *why_not(const struct gd_item *a, const struct gd_item *b,
                           const struct gd_difference *d)
{
    return !a                       ? "the other side has no such output"
           : d->note[0]             ? d->note
           : a->problem             ? a->problem
           : b->problem             ? b->problem
           : a->source || b->source ? "a side has no elements"
                                    : "a side has no value";
}

/* Counts whether an output could be compared. */
static void count_output(struct search *s, const struct gd_unit *unit, const struct gd_item *a,
                         const struct gd_item *b, const struct gd_difference *d, bool has)
{
    if (b->input) {
        return;
    }
    if (has) {
        s->ret->tensors++;
        s->ret->forward += unit->phase == GD_PHASE_FORWARD;
    } else if (s->ret->not_compared++ == 0) {
        snprintf(s->ret->why, sizeof(s->ret->why), "%.159s", why_not(a, b, d));
    }
}

static int judge_output(struct search *s, const struct gd_match *match, uint32_t item_b,
                        struct gd_difference *difference, uint32_t *item_a, struct gd_err *err)
{
    struct gd_unit *unit_a = &s->a->unit[match->a], *unit_b = &s->b->unit[match->b];
    struct gd_item *b = &s->b->item[item_b], *a = gd_match_item(s->a, unit_a, b);
    struct known *known = &s->known[item_b];
    int rc;

    if (a && item_a) {
        *item_a = (uint32_t)(a - s->a->item);
    }
    if ((known->asked && !difference) || !a) {
        if (!known->asked) {
            count_output(s, unit_b, a, b, &(struct gd_difference){.note = ""}, false);
        }
        known->asked = true;
        return GD_OK;
    }
    struct gd_difference own;
    struct gd_difference *to = difference ? difference : &own;

    rc = item_value(s, false, unit_a, a, err);
    rc = rc == GD_OK ? item_value(s, true, unit_b, b, err) : rc;
    rc = rc == GD_OK ? compare_values(s, a, b, to, err) : rc;
    if (rc == GD_OK) {
        if (!known->asked) {
            count_output(s, unit_b, a, b, to,
                         to->verdict != GD_V_UNREADABLE && !gd_difference_is_empty(to));
        }
        known->asked = true;
        known->has = to->verdict != GD_V_UNREADABLE;
        known->verdict = to->verdict;
        known->rel_l2 = to->has_metrics ? to->metrics.rel_l2 : 0;
    }
    return rc;
}

/* A unit and the preceding unit of the same layer: both their inputs are the layer's. */
struct parts {
    uint32_t unit[2];
    int count;
};

static struct parts parts_of(const struct gd_table *table, uint32_t unit)
{
    struct parts ret = {.unit = {unit}, .count = 1};

    if (unit > 0 && gd_unit_goes_on(table, unit - 1) != GD_GOES_NOT) {
        ret.unit[ret.count++] = unit - 1;
    }
    return ret;
}

/* Whether two operators are alike but not the same: only their first outputs must correspond, not
 * the others or the order of inputs. */
static bool is_loose(const struct search *s, const struct gd_match *match)
{
    return strcmp(s->a->unit[match->a].op, s->b->unit[match->b].op) != 0 ||
           parts_of(s->a, match->a).count != parts_of(s->b, match->b).count;
}

/* Compares all outputs; *bad: the first bad one, UINT32_MAX: none. */
static int judge_outputs(struct search *s, size_t index, uint32_t *bad, struct gd_err *err)
{
    const struct gd_match *match = &s->matching->match[index];
    const struct gd_unit *unit = &s->b->unit[match->b];
    int rc = GD_OK;

    *bad = UINT32_MAX;
    for (uint32_t i = unit->first; rc == GD_OK && i < unit->first + unit->count; i++) {
        if (s->b->item[i].input || (s->b->item[i].position > 0 && is_loose(s, match))) {
            continue;
        }
        rc = judge_output(s, match, i, NULL, NULL, err);
        if (rc == GD_OK && s->known[i].has && is_bad(s->known[i].verdict) && *bad == UINT32_MAX) {
            *bad = i;
        }
    }
    return rc;
}

/* Whether an output of a unit of B was compared. */
static bool was_compared(const struct search *s, uint32_t unit)
{
    const struct gd_unit *of = &s->b->unit[unit];

    for (uint32_t i = of->first; i < of->first + of->count; i++) {
        if (!s->b->item[i].input && s->known[i].has) {
            return true;
        }
    }
    return false;
}

/* ---- inputs ---------------------------------------------------------------------------------- */

struct inputs {
    size_t known, agree;
    uint32_t bad;  /* item of B */
    double rel_l2; /* the largest */
};

static void take_input(const struct search *s, uint32_t item, struct inputs *ret)
{
    const struct known *known = &s->known[item];

    if (!known->has) {
        return;
    }
    ret->known++;
    if (is_bad(known->verdict)) {
        ret->bad = ret->bad == UINT32_MAX ? item : ret->bad;
    } else {
        ret->agree++;
    }
    ret->rel_l2 = known->rel_l2 > ret->rel_l2 ? known->rel_l2 : ret->rel_l2;
}

/* Compares the outputs of its producers, if the graph names them. */
static int judge_producers(struct search *s, const struct gd_unit *unit, struct inputs *ret,
                           struct gd_err *err)
{
    struct gd_node_info info;
    int rc = GD_OK;

    if (!s->unit_of || unit->node == GD_NO_NODE || !gd_graph_node(s->b->graph, unit->node, &info)) {
        return GD_OK;
    }
    for (uint32_t i = 0; rc == GD_OK && i < info.input_count; i++) {
        const struct gd_edge *edge = &info.inputs[i];
        uint32_t from =
            edge->control || edge->node >= s->limit ? UINT32_MAX : s->unit_of[edge->node];

        if (from == UINT32_MAX || s->match_of[from] == UINT32_MAX) {
            continue;
        }
        const struct gd_unit *producer = &s->b->unit[from];

        for (uint32_t j = producer->first; rc == GD_OK && j < producer->first + producer->count;
             j++) {
            if (!s->b->item[j].input && s->b->item[j].position == edge->slot) {
                rc = judge_output(s, &s->matching->match[s->match_of[from]], j, NULL, NULL, err);
                take_input(s, j, ret);
            }
        }
    }
    return rc;
}

/* An input of a layer: neither made by its own first part, nor written to by it. */
static bool is_layers_input(const struct gd_table *table, const struct gd_item *item,
                            const struct parts *parts, int part)
{
    const char *op = table->unit[parts->unit[part]].op;

    return item->input && (parts->count == 1 || part == 1 || item->position > 0) &&
           !gd_op_changes_input(op, item->position);
}

/* Compares an input of B with A's inputs of the same shape, whatever their position. */
static int judge_against(struct search *s, uint32_t of_a, uint32_t item_b, struct known *known,
                         struct gd_err *err)
{
    struct gd_unit *unit = &s->a->unit[of_a];
    const struct parts parts = parts_of(s->a, of_a);
    struct gd_difference difference;
    int rc = GD_OK;

    for (int part = 0; rc == GD_OK && part < parts.count; part++) {
        unit = &s->a->unit[parts.unit[part]];
        for (uint32_t i = unit->first; rc == GD_OK && i < unit->first + unit->count; i++) {
            if (!is_layers_input(s->a, &s->a->item[i], &parts, part)) {
                continue;
            }
            rc = item_value(s, false, unit, &s->a->item[i], err);
            rc = rc == GD_OK
                     ? compare_values(s, &s->a->item[i], &s->b->item[item_b], &difference, err)
                     : rc;
            if (rc != GD_OK || difference.verdict == GD_V_UNREADABLE ||
                difference.verdict == GD_V_SHAPE || (known->has && !is_bad(known->verdict))) {
                continue;
            }
            known->has = true;
            known->verdict = difference.verdict;
            known->rel_l2 = difference.has_metrics ? difference.metrics.rel_l2 : 0;
        }
    }
    return rc;
}

static int judge_input(struct search *s, const struct gd_match *match, uint32_t unit_b,
                       uint32_t item_b, struct gd_err *err)
{
    struct known *known = &s->known[item_b];
    int rc;

    if (known->asked) {
        return GD_OK;
    }
    if (!is_loose(s, match) && unit_b == match->b) {
        return judge_output(s, match, item_b, NULL, NULL, err);
    }
    known->asked = true;
    rc = item_value(s, true, &s->b->unit[unit_b], &s->b->item[item_b], err);
    return rc == GD_OK ? judge_against(s, match->a, item_b, known, err) : rc;
}

static int judge_inputs(struct search *s, size_t index, struct inputs *ret, struct gd_err *err)
{
    const struct gd_match *match = &s->matching->match[index];
    const struct parts parts = parts_of(s->b, match->b);
    int rc = GD_OK;

    *ret = (struct inputs){.bad = UINT32_MAX};
    for (int part = 0; rc == GD_OK && part < parts.count; part++) {
        const struct gd_unit *unit = &s->b->unit[parts.unit[part]];

        for (uint32_t i = unit->first; rc == GD_OK && i < unit->first + unit->count; i++) {
            if (is_layers_input(s->b, &s->b->item[i], &parts, part)) {
                rc = judge_input(s, match, parts.unit[part], i, err);
                take_input(s, i, ret);
            }
        }
        rc = rc == GD_OK ? judge_producers(s, unit, ret, err) : rc;
    }
    return rc;
}

static double output_error(const struct search *s, const struct gd_unit *unit)
{
    double worst = 0;

    for (uint32_t i = unit->first; i < unit->first + unit->count; i++) {
        if (!s->b->item[i].input && s->known[i].has && s->known[i].rel_l2 > worst) {
            worst = s->known[i].rel_l2;
        }
    }
    return worst;
}

/* Notes an operator that agrees, although it is much further off than its inputs. */
static int note_amplified(struct search *s, size_t index, struct gd_divergence *ret,
                          struct gd_err *err)
{
    uint32_t unit = s->matching->match[index].b;
    double out = output_error(s, &s->b->unit[unit]);
    struct inputs inputs;
    int rc;

    if (out <= NOTHING || ret->amplified_count == 8) {
        return GD_OK;
    }
    rc = judge_inputs(s, index, &inputs, err);
    if (rc == GD_OK && inputs.known > 0 && inputs.bad == UINT32_MAX &&
        out > AMPLIFIES * inputs.rel_l2) {
        ret->amplified[ret->amplified_count++] = (struct gd_amplified){unit, inputs.rel_l2, out};
    }
    return rc;
}

/* ---- order ----------------------------------------------------------------------------------- */

static int in_order(struct search *s, struct gd_err *err)
{
    size_t total = s->matching->count;

    s->order = calloc(total + 1, sizeof(*s->order));
    s->known = calloc(s->b->item_count + 1, sizeof(*s->known));
    s->match_of = malloc((s->b->unit_count + 1) * sizeof(*s->match_of));
    if (!s->order || !s->known || !s->match_of) {
        return gd_fail_nomem(err);
    }
    memset(s->match_of, 0xff, (s->b->unit_count + 1) * sizeof(*s->match_of));
    for (int phase = GD_PHASE_FORWARD; phase <= GD_PHASE_OPTIMIZER; phase++) {
        for (size_t i = 0; i < total; i++) {
            const struct gd_match *match = &s->matching->match[i];

            if (match->a != UINT32_MAX && match->b != UINT32_MAX &&
                (int)s->b->unit[match->b].phase == phase) {
                s->match_of[match->b] = (uint32_t)i;
                s->order[s->count++] = i;
            }
        }
    }
    return s->b->graph ? gd_table_units_of_nodes(s->b, &s->unit_of, &s->limit, err) : GD_OK;
}

/* Finds the first bad one by checking all before it. */
static int scan_outputs(struct search *s, size_t from, size_t *at, uint32_t *bad,
                        struct gd_divergence *ret, struct gd_err *err)
{
    int rc = GD_OK;

    *bad = UINT32_MAX;
    for (*at = from; rc == GD_OK && *at < s->count; *at += 1) {
        rc = judge_outputs(s, s->order[*at], bad, err);
        if (rc != GD_OK || *bad != UINT32_MAX) {
            break;
        }
        ret->checked++;
        ret->layer += is_collective(s->b->unit[s->matching->match[s->order[*at]].b].op);
        rc = note_amplified(s, s->order[*at], ret, err);
    }
    return rc;
}

/* Finds a place where good turns bad by bisection, checking few. */
static int bisect_outputs(struct search *s, size_t *at, uint32_t *bad, struct gd_divergence *ret,
                          struct gd_err *err)
{
    size_t low = 0, high = s->count;
    uint32_t one;
    int rc = GD_OK;

    *bad = UINT32_MAX;
    while (rc == GD_OK && low < high) {
        size_t middle = low + (high - low) / 2;

        rc = judge_outputs(s, s->order[middle], &one, err);
        ret->checked++;
        if (one != UINT32_MAX) {
            high = middle;
            *bad = one;
        } else {
            low = middle + 1;
        }
    }
    *at = high;
    ret->unchecked = *bad == UINT32_MAX        ? s->count - ret->checked
                     : high + 1 > ret->checked ? high + 1 - ret->checked
                                               : 0;
    return rc;
}

/* ---- between two nodes ----------------------------------------------------------------------- */

static void add_between(struct gd_divergence *ret, const char *name)
{
    if (ret->between_count < MAX_BETWEEN) {
        ret->between[ret->between_count++] = name;
    } else {
        ret->between_more++;
    }
}

/* Names the nodes without a partner that ran between the two, according to the graph. */
static void between_in_graph(struct search *s, struct gd_divergence *ret)
{
    const struct gd_unit *to = &s->b->unit[ret->at.b];
    gd_node_id first = ret->good.b == UINT32_MAX ? GD_NO_NODE : s->b->unit[ret->good.b].node;
    bool started = first == GD_NO_NODE;
    struct gd_node_info info;
    uint32_t count;
    const gd_node_id *order = gd_graph_execution(s->b->graph, &count);

    for (uint32_t i = 0; i < count && order[i] != to->node; i++) {
        if (order[i] == first) {
            started = true;
            continue;
        }
        if (started && order[i] < s->limit && gd_graph_node(s->b->graph, order[i], &info) &&
            info.kind != GD_NODE_CONSTANT && info.kind != GD_NODE_WEIGHT &&
            info.kind != GD_NODE_PARAMETER &&
            (s->unit_of[order[i]] == UINT32_MAX ||
             s->match_of[s->unit_of[order[i]]] == UINT32_MAX ||
             !was_compared(s, s->unit_of[order[i]]))) {
            add_between(ret, info.name);
        }
    }
}

static void between_in_list(struct search *s, struct gd_divergence *ret)
{
    uint32_t from = ret->good.b == UINT32_MAX ? 0 : ret->good.b + 1;

    for (uint32_t i = from; i < ret->at.b; i++) {
        if (s->match_of[i] == UINT32_MAX || !was_compared(s, i)) {
            add_between(ret, s->b->unit[i].name);
        }
    }
}

void gd_middle_first(size_t count, size_t *order)
{
    size_t done = 0, step = 1;

    while (step < count + 1) {
        step *= 2;
    }
    for (; step >= 2 && done < count; step /= 2) {
        for (size_t at = step / 2; at < count + 1; at += step) {
            if (at >= 1 && at <= count) {
                order[done++] = at - 1;
            }
        }
    }
}

static bool is_matched_a(const struct search *s, uint32_t unit)
{
    for (size_t i = 0; i < s->matching->count; i++) {
        if (s->matching->match[i].a == unit && s->matching->match[i].b != UINT32_MAX) {
            return true;
        }
    }
    return false;
}

/* The unit that produces the node's value in A if B has no counterpart; UINT32_MAX: it has, or
 * unknown. */
static uint32_t alone_in_a(const struct search *s, gd_node_id node, const struct parts *parts)
{
    struct gd_node_info info;

    if (!gd_graph_node(s->a->graph, node, &info) || info.kind == GD_NODE_CONSTANT ||
        info.kind == GD_NODE_WEIGHT || info.kind == GD_NODE_PARAMETER) {
        return UINT32_MAX;
    }
    for (uint32_t i = 0; i < s->a->unit_count; i++) {
        if (s->a->unit[i].node == node) {
            return i == parts->unit[parts->count - 1] || is_matched_a(s, i) ? UINT32_MAX : i;
        }
    }
    return UINT32_MAX;
}

/* The producers in A may differ from those in B, whose inputs were compared. */
static uint32_t find_only_a(const struct search *s, uint32_t unit)
{
    const struct parts parts = parts_of(s->a, unit);
    uint32_t ret = UINT32_MAX;
    struct gd_node_info info;

    for (int part = 0; s->a->graph && part < parts.count && ret == UINT32_MAX; part++) {
        gd_node_id node = s->a->unit[parts.unit[part]].node;

        if (node == GD_NO_NODE || !gd_graph_node(s->a->graph, node, &info)) {
            continue;
        }
        for (uint32_t i = 0; i < info.input_count && ret == UINT32_MAX; i++) {
            ret = info.inputs[i].control || info.inputs[i].node == GD_NO_NODE
                      ? UINT32_MAX
                      : alone_in_a(s, info.inputs[i].node, &parts);
        }
    }
    return ret;
}

/* ---- entry points ---------------------------------------------------------------------------- */

static int describe_difference(struct search *s, size_t at, uint32_t bad, struct gd_divergence *ret,
                               struct gd_err *err)
{
    struct inputs inputs;
    int rc;

    ret->at = s->matching->match[s->order[at]];
    ret->item_b = bad;
    for (size_t i = at; i > 0 && ret->good.b == UINT32_MAX; i--) {
        const struct gd_match *match = &s->matching->match[s->order[i - 1]];
        ret->good = was_compared(s, match->b) ? *match : ret->good;
    }
    ret->collective = is_collective(s->b->unit[ret->at.b].op);
    rc = judge_output(s, &ret->at, bad, &ret->difference, &ret->item_a, err);
    rc = rc != GD_OK ? rc : judge_inputs(s, s->order[at], &inputs, err);
    if (rc != GD_OK) {
        return rc;
    }
    ret->inputs = inputs.known;
    ret->inputs_agree = inputs.agree;
    ret->bad_input = inputs.bad;
    ret->only_a = find_only_a(s, ret->at.a);
    ret->origin = inputs.known == 0          ? GD_ORIGIN_UNKNOWN
                  : inputs.bad != UINT32_MAX ? GD_ORIGIN_INHERITED
                                             : GD_ORIGIN_HERE;
    if (s->b->graph && s->b->unit[ret->at.b].node != GD_NO_NODE) {
        between_in_graph(s, ret);
    } else {
        between_in_list(s, ret);
    }
    return GD_OK;
}

int gd_divergence_find(struct gd_table *a, struct gd_table *b, const struct gd_matching *matching,
                       const struct gd_divergence_options *options, struct gd_divergence *ret,
                       struct gd_err *err)
{
    struct search s = {.ret = ret, .a = a, .b = b, .matching = matching, .options = options};
    uint32_t bad = UINT32_MAX;
    size_t at = 0;
    int rc;

    *ret = (struct gd_divergence){.at = {UINT32_MAX, UINT32_MAX, GD_HOW_NONE},
                                  .good = {UINT32_MAX, UINT32_MAX, GD_HOW_NONE},
                                  .bad_input = UINT32_MAX,
                                  .only_a = UINT32_MAX};
    ret->between = calloc(MAX_BETWEEN, sizeof(*ret->between));
    rc = ret->between ? in_order(&s, err) : gd_fail_nomem(err);
    if (rc == GD_OK) {
        rc = options->bisect ? bisect_outputs(&s, &at, &bad, ret, err)
                             : scan_outputs(&s, 0, &at, &bad, ret, err);
    }
    if (rc == GD_OK && bad != UINT32_MAX) {
        rc = describe_difference(&s, at, bad, ret, err);
    }
    free(s.order);
    free(s.known);
    free(s.unit_of);
    free(s.match_of);
    if (rc != GD_OK) {
        gd_divergence_free(ret);
    }
    return rc;
}

void gd_divergence_free(struct gd_divergence *divergence)
{
    free(divergence->between);
    divergence->between = NULL;
    divergence->between_count = 0;
}
