// SPDX-License-Identifier: GPL-3.0-or-later
/* Commands: first-divergence */
#include <stdlib.h>
#include <string.h>

#include "compare/divergence.h"
#include "repl/compare/compare_files.h"
#include "repl/core/work.h"
#include "repl/values/checked.h"
#include "repl/values/inspect.h"

#define NAMES_SHOWN 12

struct looking {
    struct command_call *call;
    struct side a, b;
    struct compare_options options;
    bool bisect;
    struct repl_work work;
    struct inspect_checked checked; /* outputs, of all steps and ranks */
    size_t nodes, unchecked;        /* nodes that were checked; not checked (--bisect) */
    size_t steps, steps_left_out;   /* steps (of one rank) that were checked; on one side only */
};

struct found { /* what is kept of one step and rank after its tables are gone */
    bool any;
    int rank;
    int64_t step;
    size_t step_index;
    struct gd_divergence d; /* names are in the call's arena */
    const char *a, *b, *op, *item_a, *item_b, *bad_input, *only_a, *good;
    enum gd_phase phase;
    size_t matched, units_a, units_b;
    uint32_t order;
};

static bool find_tolerance(void *ctx, const char *a, const char *b, struct gd_tolerance *ret)
{
    struct looking *l = ctx;

    return compare_tolerance(&l->options, a, b, ret);
}

static int fetch_item(void *ctx, bool of_b, const struct gd_unit *unit, struct gd_item *item,
                      struct gd_err *err)
{
    struct looking *l = ctx;

    return side_fetch(l->call, of_b ? &l->b : &l->a, unit, item, err);
}

static bool go_on(void *ctx, uint64_t elements)
{
    struct looking *l = ctx;

    (void)elements;
    return repl_work_at(&l->work, 0);
}

static bool go_on_matching(void *ctx, uint64_t units)
{
    return go_on(ctx, units);
}

static const char *copy_name(struct looking *l, const char *text)
{
    return inspect_printf(l->call, "%s", text);
}

static void count_unit(struct looking *l, const struct gd_divergence *d)
{
    l->steps++;
    l->nodes += d->checked;
    l->unchecked += d->unchecked;
    l->checked.done += d->tensors;
    if (d->not_compared > 0) {
        inspect_not_checked(l->call, &l->checked, d->why);
        l->checked.not_done += d->not_compared - 1;
    }
}

/* Copies the names, which must outlive the tables. */
static void keep_names(struct looking *l, const struct gd_table *a, const struct gd_table *b,
                       struct found *f)
{
    struct gd_divergence *d = &f->d;

    for (size_t i = 0; i < d->between_count; i++) {
        d->between[i] = copy_name(l, d->between[i]);
    }
    if (d->at.b == UINT32_MAX) {
        return;
    }
    f->any = true;
    f->a = copy_name(l, a->unit[d->at.a].name);
    f->b = copy_name(l, b->unit[d->at.b].name);
    f->op = copy_name(l, b->unit[d->at.b].op);
    f->phase = b->unit[d->at.b].phase;
    f->item_a = copy_name(l, a->item[d->item_a].name);
    f->item_b = copy_name(l, b->item[d->item_b].name);
    f->bad_input = d->bad_input == UINT32_MAX ? NULL : copy_name(l, b->item[d->bad_input].name);
    f->only_a = d->only_a == UINT32_MAX ? NULL : copy_name(l, a->unit[d->only_a].name);
    f->good = d->good.b == UINT32_MAX ? NULL : copy_name(l, b->unit[d->good.b].name);
    f->order = d->at.b;
}

static void show_amplified(struct looking *l, const struct gd_table *b, const struct found *f)
{
    for (size_t i = 0; i < f->d.amplified_count && out_is_text(l->call->out); i++) {
        const struct gd_amplified *one = &f->d.amplified[i];

        out_printf(l->call->out,
                   "note: %s amplifies the error: relative error of its inputs %.2g, of its "
                   "outputs %.2g\n",
                   out_safe(l->call, b->unit[one->unit].name), one->in, one->out);
    }
}

static int look_in_tables(struct looking *l, struct gd_table *a, struct gd_table *b,
                          struct found *f, struct gd_err *err)
{
    struct gd_match_options match = {
        .map = l->options.map, .last = l->options.last, .go_on = go_on_matching, .go_on_ctx = l};
    struct gd_divergence_options options = {.profile = l->options.profile,
                                            .tolerance = find_tolerance,
                                            .fetch = fetch_item,
                                            .go_on = go_on,
                                            .ctx = l,
                                            .bisect = l->bisect,
                                            .threads = gd_run_threads()};
    struct gd_matching matching;
    int rc;

    repl_work_begin_count(&l->work, l->call, "looking for the first divergence", "nodes", 0);
    rc = gd_match_tables(a, b, &match, &matching, err);
    if (rc == GD_OK) {
        for (size_t i = 0; i < matching.count; i++) {
            f->matched += matching.match[i].a != UINT32_MAX && matching.match[i].b != UINT32_MAX;
        }
        f->units_a = a->unit_count;
        f->units_b = b->unit_count;
        rc = gd_divergence_find(a, b, &matching, &options, &f->d, err);
        gd_matching_free(&matching);
    }
    rc = repl_work_end(&l->work, rc, err);
    if (rc == GD_OK && f->matched == 0) {
        gd_divergence_free(&f->d);
        rc = gd_fail(err, GD_ENODATA,
                     "no tensor of %.120s matches one of %.120s: map the nodes with --map FILE",
                     l->a.label, l->b.label);
    }
    if (rc == GD_OK) {
        count_unit(l, &f->d);
        keep_names(l, a, b, f);
        show_amplified(l, b, f);
    }
    return rc;
}

static int look_in_step(struct looking *l, const struct compare_step *step, struct found *f,
                        struct gd_err *err)
{
    struct gd_table a, b;
    int rc = side_load(l->call, &l->a, step->rank_a, step->a, &a, err);

    if (rc != GD_OK) {
        return rc;
    }
    rc = side_load(l->call, &l->b, step->rank_b, step->b, &b, err);
    if (rc == GD_OK) {
        f->rank = b.rank >= 0 ? b.rank : a.rank;
        f->step = step->b >= 0 ? step->b : step->a >= 0 ? step->a : b.step;
        rc = look_in_tables(l, &a, &b, f, err);
        gd_table_deinit(&b);
    }
    gd_table_deinit(&a);
    return rc;
}

/* Order of findings: the earlier step, then fewer collectives before it, then not a collective
 * itself, then the earlier position in its rank. */
static bool is_earlier(const struct found *x, const struct found *y)
{
    if (!y->any || !x->any) {
        return x->any;
    }
    if (x->step != y->step) {
        return x->step < y->step;
    }
    if (x->d.layer != y->d.layer) {
        return x->d.layer < y->d.layer;
    }
    if (x->d.collective != y->d.collective) {
        return y->d.collective; /* a collective passes on what a rank did before it */
    }
    return x->order < y->order;
}

static const char *say_advice(const struct found *f)
{
    switch (f->d.origin) {
    case GD_ORIGIN_HERE:
        if (f->only_a) {
            return "the networks differ before it: check that node, or the operator itself";
        }
        return f->d.collective ? "its inputs agree: the collective differs (participating ranks, "
                                 "reduction, type)"
                               : "its inputs agree: the operator differs (kernel, attributes, "
                                 "type, random numbers)";
    case GD_ORIGIN_INHERITED:
        return "an input already differs: a weight, the data, or a node that is not in both dumps";
    default: return "its inputs were not dumped: dump them and the nodes before them";
    }
}

static const char *say_next(const struct found *f)
{
    if (f->d.difference.verdict == GD_V_NONFINITE) {
        return "it is non-finite on one side: `first-nonfinite` finds the operator that produced "
               "it";
    }
    if (f->phase != GD_PHASE_FORWARD && f->d.forward == 0) {
        return "the forward pass was not compared: dump it too";
    }
    if (f->phase != GD_PHASE_FORWARD) {
        return "the forward pass agrees: compare the gradients, then the optimizer state";
    }
    if (f->step_index == 0) {
        return "the first forward pass differs: check for the same input and weights, no "
               "shuffling, no dropout";
    }
    return "earlier steps agree: compare the weights after the previous step, then the gradients, "
           "then the optimizer state";
}

/* The nodes between the last good one and this one, in the order in which to dump them. */
static void record_next(struct command_call *call, cJSON *object, const struct gd_divergence *d)
{
    size_t *order = calloc(d->between_count + 1, sizeof(*order));
    cJSON *next = out_list(object, "dump_next");

    if (order) {
        gd_middle_first(d->between_count, order);
    }
    for (size_t i = 0; order && i < d->between_count; i++) {
        out_push_text(next, inspect_name(call, d->between[order[i]]));
    }
    free(order);
}

static void record_found(struct command_call *call, cJSON *object, const struct found *f)
{
    const struct gd_difference *d = &f->d.difference;

    out_set(object, OUT_TEXT("label", gd_origin_name(f->d.origin)), OUT_TEXT("node", f->b),
            OUT_TEXT("node_a", f->a), OUT_TEXT("tensor", f->item_b), OUT_TEXT("op", f->op),
            OUT_TEXT("how", gd_how_name(f->d.at.how)),
            OUT_TEXT("verdict", gd_verdict_name(d->verdict)),
            OUT_IF(f->step >= 0, OUT_INT("step", f->step)),
            OUT_IF(f->rank >= 0, OUT_INT("rank", f->rank)));
    compare_difference_add(object, d);
    out_set(object, OUT_INT("inputs", f->d.inputs), OUT_INT("inputs_agree", f->d.inputs_agree),
            OUT_IF(f->only_a, OUT_TEXT("only_a", f->only_a)),
            OUT_IF(f->bad_input, OUT_TEXT("bad_input", f->bad_input)),
            OUT_IF(f->good, OUT_TEXT("last_good", f->good)),
            OUT_INT("between", f->d.between_count + f->d.between_more),
            OUT_INT("unchecked", f->d.unchecked));
    record_next(call, object, &f->d);
}

static void print_next(struct command_call *call, const cJSON *object)
{
    const cJSON *next = cJSON_GetObjectItem(object, "dump_next"), *name;
    int shown = 0;

    if (cJSON_GetArraySize(next) == 0) {
        return;
    }
    out_say(call->out, object,
            "  between them, not comparable: {between|node}\n"
            "  dump these next, the middle one first:\n");
    cJSON_ArrayForEach(name, next)
    {
        if (shown++ < NAMES_SHOWN) {
            out_say(call->out, name, "    {}\n");
        }
    }
}

static void show_found(struct looking *l, cJSON *object, const struct found *f)
{
    struct command_call *call = l->call;

    record_found(call, object, f);
    out_say(
        call->out, object,
        "First divergence[{?stepped} in step {step}][{?ranked} of rank {rank}]: {node}[ ({op})], "
        "{label}\n"
        "[{!same}  matches {node_a}, by {how} ({confidence:g6})\n]"
        "  {tensor}: {verdict}",
        OUT_BOOL("stepped", f->step >= 0), OUT_BOOL("ranked", f->rank > 0),
        OUT_BOOL("same", strcmp(f->a, f->b) == 0),
        OUT_REAL("confidence", gd_how_confidence(f->d.at.how)));
    compare_difference_show(call, &f->d.difference);
    out_say(call->out, object,
            "[{?inputs}  inputs: {inputs_agree} of {inputs} agree[, not {bad_input}]\n]"
            "[  in A its input is the output of {only_a}, which has no match in B\n]"
            "  last that agrees: [{last_good}][{!last_good}none]\n");
    print_next(call, object);
    out_say(call->out, object,
            "[  {unchecked} nodes before it not checked (--bisect)\n]"
            "  {advice}\n  {next}\n  {checked} up to here\n",
            OUT_TEXT("advice", say_advice(f)), OUT_TEXT("next", say_next(f)),
            OUT_TEXT("checked", inspect_checked_text(call, &l->checked, "tensor", "compared")));
}

static void show_none(struct looking *l, cJSON *object)
{
    out_set(object, OUT_INT("unchecked", l->unchecked));
    out_say(l->call->out, object,
            "No divergence: {matched} of {units_a} and {units_b} nodes match; {compared}"
            "[; {unchecked|node} not checked (--bisect)][{?several}; {steps|step}]"
            "[, {steps_left_out} more on one side only].\n",
            OUT_TEXT("compared", inspect_checked_text(l->call, &l->checked, "tensor", "compared")),
            OUT_BOOL("several", l->steps > 1 || l->steps_left_out > 0));
}

static int show_result(struct looking *l, const struct found *f, const struct found *last,
                       struct gd_err *err)
{
    int rc = f->any ? GD_OK : inspect_need_checked(&l->checked, "tensor", "compared", err);

    if (rc != GD_OK) {
        return rc;
    }
    cJSON *object = out_record(l->call->out, "first-divergence");
    out_set(object, OUT_BOOL("found", f->any), OUT_INT("matched", last->matched),
            OUT_INT("units_a", last->units_a), OUT_INT("units_b", last->units_b),
            OUT_INT("checked", f->any ? f->d.checked : l->nodes), OUT_INT("steps", l->steps),
            OUT_INT("steps_left_out", l->steps_left_out), OUT_INT("tensors", l->checked.done),
            OUT_INT("not_compared", l->checked.not_done),
            OUT_IF(l->checked.why, OUT_TEXT("why_not_compared", l->checked.why)));
    if (f->any) {
        show_found(l, object, f);
        repl_add_status(l->call->repl, STATUS_DIFFERS);
    } else {
        show_none(l, object);
    }
    return GD_OK;
}

/* Searches each rank by itself, then takes the earliest finding; the first step that differs ends
 * the search. */
static int look_everywhere(struct looking *l, struct gd_err *err)
{
    struct compare_step *steps;
    struct found first = {.any = false}, last = {.any = false};
    size_t count, at_step = 0;
    int rc = compare_steps(&l->a, &l->b, &l->options, &steps, &count, err);

    for (size_t i = 0; rc == GD_OK && i < count; i++) {
        struct found f = {.any = false, .rank = -1, .step = -1};

        at_step = i > 0 && steps[i].rank_b == steps[i - 1].rank_b ? at_step + 1 : 0;
        f.step_index = at_step;
        if (first.any && steps[i].b > first.step) {
            continue;
        }
        rc = look_in_step(l, &steps[i], &f, err);
        if (rc != GD_OK) {
            gd_divergence_free(&f.d);
            break;
        }
        if (is_earlier(&f, &first)) {
            gd_divergence_free(&first.d);
            first = f;
            last = f;
            continue;
        }
        gd_divergence_free(&f.d);
        last = f;
    }
    if (rc == GD_OK) {
        l->steps_left_out = compare_steps_left_out(&l->a, &l->b, &l->options, steps, count);
        rc = show_result(l, &first, &last, err);
    }
    gd_divergence_free(&first.d);
    free(steps);
    return rc;
}

static int run_divergence(struct command_call *call, struct gd_err *err)
{
    struct looking l = {.call = call, .bisect = inspect_take_flag(call, "--bisect")};
    int rc = compare_options_take(call, &l.options, err);

    if (rc == GD_OK && call->argc != 2) {
        rc = gd_fail(err, GD_EUSAGE, "first-divergence: specify two sides");
    }
    rc = rc != GD_OK ? rc : side_open_whole(call, call->argv[0], &l.a, err);
    if (rc == GD_OK) {
        rc = side_open_whole(call, call->argv[1], &l.b, err);
        if (rc == GD_OK) {
            rc = look_everywhere(&l, err);
            side_close(&l.b);
        }
        side_close(&l.a);
    }
    compare_options_free(&l.options);
    return rc;
}

const struct command cmd_first_divergence = {
    .name = "first-divergence",
    .group = "data",
    .usage = "first-divergence A B [--bisect] [--map FILE] [--step N] [--rank N] [rtol=X] "
             "[atol=X]",
    .summary = "Find where two runs first diverge, and what to dump next",
    .help =
        "A and B are dumps, directories of tensor files or sessions (@1), as in `compare`; B is\n"
        "the reference. Nodes are matched and checked in B's order of execution: forward pass,\n"
        "backward pass, optimizer; step by step; for each rank. The first node whose output\n"
        "differs beyond its tolerance is shown as\n"
        "  ORIGIN      all its inputs agree: the operator itself differs\n"
        "  INHERITED   an input differs, and its producer could not be compared\n"
        "  UNKNOWN-IN  its inputs are unknown\n"
        "with the last node before it that agrees, and the nodes between them that were not\n"
        "dumped, in the order in which dumping them helps most. --bisect reads few tensors by\n"
        "bisection; the nodes before the result are then not checked.\n"
        "The options are those of `compare`. gradb --batch exits with status 6 when the runs\n"
        "diverge.",
    .examples = "first-divergence torch_dump/ mindspore_dump/\n"
                "first-divergence @1 @2 --profile strict",
    .args = {ARG_FILE, ARG_FILE},
    .run = run_divergence,
};
