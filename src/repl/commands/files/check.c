// SPDX-License-Identifier: GPL-3.0-or-later
/* Commands: check */
#include <string.h>

#include "engine/hash_index.h"
#include "repl/compare/compare_files.h"
#include "repl/core/work.h"
#include "repl/values/checked.h"
#include "repl/values/inspect.h"

struct totals {
    size_t parameters, trainable, assumed, buffers, states;
    uint64_t elements, bytes;
};

struct checking {
    struct command_call *call;
    struct side side[2];
    struct gd_table table[2];
    /* items of a table that are optimizer states, by the name of their parameter, one for each
     * name */
    struct gd_hash_index trained[2];
    int sides;
    struct totals totals[2];
    struct out_table *out;
    size_t number, unmatched[2], shapes, never_updated;
    struct inspect_checked checked; /* tensors of one file, or pairs of two files */
    struct repl_work work;
};

enum kind { KIND_PARAMETER, KIND_BUFFER, KIND_STATE };

static const char *const kind_names[] = {"param", "buffer", "opt-state"};

static bool ends_in(const char *name, const char *end)
{
    size_t len = strlen(name), tail = strlen(end);

    return len >= tail && strcmp(name + len - tail, end) == 0 &&
           (len == tail || name[len - tail - 1] == '.');
}

static enum kind kind_of(const struct gd_item *item)
{
    static const char *const buffers[] = {"running_mean", "running_var",     "num_batches_tracked",
                                          "moving_mean",  "moving_variance", "global_step",
                                          "learning_rate"};
    const char *parameter;
    int64_t number;

    if (item->kind == GD_ENTRY_OPTIMIZER || gd_name_state(item->name, &number, &parameter)) {
        return KIND_STATE;
    }
    for (size_t i = 0; i < sizeof(buffers) / sizeof(buffers[0]); i++) {
        if (ends_in(item->name, buffers[i])) {
            return KIND_BUFFER;
        }
    }
    return item->kind == GD_ENTRY_BUFFER ? KIND_BUFFER : KIND_PARAMETER;
}

static bool has_state(struct gd_hash_index *trained, const struct gd_table *table, const char *name)
{
    uint64_t hash = gd_hash_index_hash(trained, name, strlen(name));
    const char *parameter;
    uint32_t item;
    int64_t number;
    size_t at = 0;

    while (gd_hash_index_next(trained, hash, &at, &item)) {
        if (gd_name_state(table->item[item].name, &number, &parameter) && parameter &&
            strcmp(parameter, name) == 0) {
            return true;
        }
    }
    return false;
}

static int find_trained(struct gd_hash_index *trained, const struct gd_table *table,
                        struct gd_err *err)
{
    int rc = GD_OK;

    for (size_t i = 0; rc == GD_OK && i < table->item_count; i++) {
        const char *parameter;
        int64_t number;

        if (gd_name_state(table->item[i].name, &number, &parameter) && parameter &&
            !has_state(trained, table, parameter)) {
            rc = gd_hash_index_add(trained,
                                   gd_hash_index_hash(trained, parameter, strlen(parameter)),
                                   (uint32_t)i, err);
        }
    }
    return rc;
}

/* A parameter is trained if it has optimizer state, or if the file says so. */
static bool is_trained(struct checking *c, int side, const struct gd_item *item)
{
    return item->trainable == GD_TRAINABLE_UNKNOWN
               ? has_state(&c->trained[side], &c->table[side], item->name)
               : item->trainable == GD_TRAINABLE_YES;
}

static void count_item(struct checking *c, int side, const struct gd_item *item)
{
    struct totals *totals = &c->totals[side];
    enum kind kind = kind_of(item);
    int64_t count = item->has_shape ? gd_shape_count(&item->shape) : 0;

    totals->parameters += kind == KIND_PARAMETER;
    totals->buffers += kind == KIND_BUFFER;
    totals->states += kind == KIND_STATE;
    if (kind == KIND_PARAMETER && item->trainable != GD_TRAINABLE_NO) {
        totals->trainable++;
        totals->assumed += !is_trained(c, side, item);
    }
    if (kind == KIND_PARAMETER && count > 0) {
        totals->elements += (uint64_t)count;
        totals->bytes += (uint64_t)count * gd_stored_bits(item->stored) / 8;
    }
}

static const char *shape_of(struct command_call *call, const struct gd_item *item)
{
    return !item ? "-" : item->has_shape ? inspect_shape(call, &item->shape) : "?";
}

static const char *type_of(const struct gd_item *item)
{
    return !item || item->stored == GD_STORED_NONE ? "-" : gd_stored_name(item->stored);
}

/* A gd_work_fn for elements of a tensor; progress is counted in parameters. */
static bool go_on(void *ctx, uint64_t elements)
{
    struct checking *c = ctx;

    (void)elements;
    return repl_work_at(&c->work, c->number);
}

/* ---- one file -------------------------------------------------------------------------------- */

static int show_alone(struct checking *c, struct gd_item *item, struct gd_err *err)
{
    struct command_call *call = c->call;
    struct gd_stats_options options = {.threads = gd_run_threads(), .go_on = go_on, .go_on_ctx = c};
    struct gd_stats stats;
    struct gd_err why = {.text = ""};
    const char *note = "";
    bool known = false, finite = false;
    int rc = gd_table_look(&c->table[0], item, err);

    if (rc == GD_OK && item->source && !item->problem) {
        rc = gd_source_stats(item->source, NULL, &options, &stats, &why);
        known = rc == GD_OK;
        finite = known && stats.count > stats.nan + stats.pos_inf + stats.neg_inf;
        rc = rc == GD_ENOMEM || rc == GD_EINTR ? gd_fail(err, rc, "%s", why.text) : GD_OK;
    }
    if (rc != GD_OK) {
        return rc;
    }
    if (item->problem) {
        note = item->problem;
    } else if (!known) {
        note = why.text;
    } else if (stats.nan || stats.pos_inf || stats.neg_inf) {
        note = "not finite";
        repl_add_status(call->repl, STATUS_DIFFERS);
    } else if (stats.count > 1 && stats.min == stats.max) {
        note = stats.max == 0 ? "all 0" : stats.max == 1 ? "all 1" : "all the same";
    }
    if (known && stats.count == 0) {
        inspect_not_checked(call, &c->checked, "it has no elements");
    } else if (known) {
        c->checked.done++;
    } else {
        inspect_not_checked(call, &c->checked, item->problem ? item->problem : why.text);
    }
    count_item(c, 0, item);
    out_put(c->out, OUT_INT("number", ++c->number), OUT_TEXT("name", item->name),
            OUT_TEXT("shape", shape_of(call, item)), OUT_TEXT("type", type_of(item)),
            OUT_TEXT("kind", kind_names[kind_of(item)]),
            OUT_NUMERAL("min", finite ? inspect_double(call, stats.min) : "-"),
            OUT_NUMERAL("max", finite ? inspect_double(call, stats.max) : "-"),
            OUT_NUMERAL("mean", finite ? inspect_double(call, stats.mean) : "-"),
            OUT_NUMERAL("std", finite ? inspect_double(call, stats.std) : "-"),
            OUT_TEXT("note", note));
    return GD_OK;
}

static int check_one(struct checking *c, struct gd_err *err)
{
    static const struct out_column columns[] = {
        {"number", "#", true},       {"name", "Name", false},       {"shape", "Shape", false},
        {"type", "Type", false},     {"kind", "Kind", false},       {"min", "Min", true, ":g6"},
        {"max", "Max", true, ":g6"}, {"mean", "Mean", true, ":g6"}, {"std", "Std", true, ":g6"},
        {"note", "", false}};
    int rc = GD_OK;

    c->out = out_table_begin(c->call->out, "parameters", columns, 10);
    for (size_t i = 0; rc == GD_OK && i < c->table[0].item_count; i++) {
        rc = show_alone(c, &c->table[0].item[i], err);
        if (rc == GD_OK && !repl_work_at(&c->work, i)) {
            rc = GD_EINTR;
        }
    }
    out_table_end(c->out);
    return rc;
}

/* ---- two files ------------------------------------------------------------------------------- */

static int compare_pair(struct checking *c, struct gd_item *a, struct gd_item *b,
                        enum gd_agreement *ret, struct gd_err *err)
{
    struct gd_compare_options options = {
        .threads = gd_run_threads(), .go_on = go_on, .go_on_ctx = c};
    struct gd_difference difference;
    int rc = a ? gd_table_look(&c->table[0], a, err) : GD_OK;

    rc = rc == GD_OK && b ? gd_table_look(&c->table[1], b, err) : rc;
    *ret = a && b ? GD_V_UNREADABLE : a ? GD_V_MISSING_B : GD_V_MISSING_A;
    if (rc != GD_OK || !a || !b || !a->source || !b->source || a->problem || b->problem) {
        return rc;
    }
    rc = gd_compare_sources(a->source, b->source, &options, &difference, err);
    *ret = rc == GD_OK ? difference.verdict : *ret;
    return rc;
}

static const char *problem_of(const struct gd_item *a, const struct gd_item *b)
{
    return a->problem ? a->problem : b->problem ? b->problem : "a value cannot be read";
}

/* Adds the pair to the totals; one of the two may be NULL. */
static void count_pair(struct checking *c, const struct gd_item *a, const struct gd_item *b,
                       enum gd_agreement verdict)
{
    const struct gd_item *one = a ? a : b;
    bool alone = gd_name_is_alone(one->name);

    if (a) {
        count_item(c, 0, a);
    }
    if (b) {
        count_item(c, 1, b);
    }
    if (verdict == GD_V_NONFINITE) {
        repl_add_status(c->call->repl, STATUS_DIFFERS);
    }
    if (a && b && verdict == GD_V_UNREADABLE) {
        inspect_not_checked(c->call, &c->checked, problem_of(a, b));
    } else if (a && b) {
        c->checked.done++;
    }
    c->unmatched[0] += !b && !alone;
    c->unmatched[1] += !a && !alone;
    c->shapes += verdict == GD_V_SHAPE;
    c->never_updated +=
        verdict == GD_V_SAME && kind_of(one) == KIND_PARAMETER && one->trainable != GD_TRAINABLE_NO;
}

static int show_pair(struct checking *c, const struct gd_match *match, struct gd_err *err)
{
    struct command_call *call = c->call;
    struct gd_item *a =
        match->a == UINT32_MAX ? NULL : &c->table[0].item[c->table[0].unit[match->a].first];
    struct gd_item *b =
        match->b == UINT32_MAX ? NULL : &c->table[1].item[c->table[1].unit[match->b].first];
    const struct gd_item *one = a ? a : b;
    bool alone = gd_name_is_alone(one->name);
    enum gd_agreement verdict;
    const char *types;
    int rc = compare_pair(c, a, b, &verdict, err);

    if (rc != GD_OK) {
        return rc;
    }
    count_pair(c, a, b, verdict);
    types = a && b && a->stored != b->stored
                ? inspect_printf(call, "%s, %s", type_of(a), type_of(b))
                : type_of(one);
    out_put(c->out, OUT_INT("number", ++c->number), OUT_TEXT("a", a ? a->name : "-"),
            OUT_TEXT("b", b ? b->name : "-"), OUT_TEXT("shape_a", shape_of(call, a)),
            OUT_TEXT("shape_b", shape_of(call, b)), OUT_TEXT("type", types),
            OUT_TEXT("kind", kind_names[kind_of(one)]), OUT_TEXT("how", gd_how_name(match->how)),
            OUT_TEXT("verdict",
                     (!a || !b) && alone ? "no counterpart expected" : gd_verdict_name(verdict)));
    return GD_OK;
}

static int check_two(struct checking *c, const struct compare_options *options, struct gd_err *err)
{
    static const struct out_column columns[] = {
        {"number", "#", true},         {"a", "Name A", false},
        {"b", "Name B", false},        {"shape_a", "Shape A", false},
        {"shape_b", "Shape B", false}, {"type", "Type", false},
        {"kind", "Kind", false},       {"how", "By", false},
        {"verdict", "Verdict", false}};
    struct gd_match_options match = {
        .map = options->map, .last = options->last, .go_on = go_on, .go_on_ctx = c};
    struct gd_matching matching;
    int rc = gd_match_tables(&c->table[0], &c->table[1], &match, &matching, err);

    if (rc != GD_OK) {
        return rc;
    }
    c->out = out_table_begin(c->call->out, "parameters", columns, 9);
    for (size_t i = 0; rc == GD_OK && i < matching.count; i++) {
        rc = show_pair(c, &matching.match[i], err);
        if (rc == GD_OK && !repl_work_at(&c->work, i)) {
            rc = GD_EINTR;
        }
    }
    out_table_end(c->out);
    gd_matching_free(&matching);
    return rc;
}

/* ---- the sums -------------------------------------------------------------------------------- */

static void show_side(struct checking *c, int i)
{
    struct command_call *call = c->call;
    const struct totals *t = &c->totals[i];
    cJSON *object = out_object(out_record(call->out, "parameters"), i ? "totals_b" : "totals_a");

    out_set(object, OUT_TEXT("path", c->side[i].label), OUT_INT("parameters", t->parameters),
            OUT_INT("trainable", t->trainable), OUT_INT("trainable_assumed", t->assumed),
            OUT_INT("buffers", t->buffers), OUT_INT("optimizer_states", t->states),
            OUT_INT("elements", t->elements), OUT_INT("bytes", t->bytes),
            OUT_INT("unmatched", c->unmatched[i]));
    out_say(call->out, object,
            "{path}: {parameters|parameter}, {trainable} trainable"
            "[{?trainable_assumed} (assumed if the file does not say)], {buffers} buffers, "
            "{optimizer_states} optimizer states; {elements|element}, {bytes:bytes}");
    out_say(call->out, object, c->sides == 2 ? "; {unmatched} without a counterpart\n" : "\n");
}

static int show_totals(struct checking *c, struct gd_err *err)
{
    struct command_call *call = c->call;
    const char *verb = c->sides == 2 ? "compared" : "checked";
    const char *noun = c->sides == 2 ? "pair" : "tensor";
    int rc = inspect_need_checked(&c->checked, noun, verb, err);

    if (rc != GD_OK) {
        return rc;
    }
    for (int i = 0; i < c->sides; i++) {
        show_side(c, i);
    }
    cJSON *record = out_record(call->out, "parameters");
    out_printf(call->out, "%s\n", inspect_checked_text(call, &c->checked, noun, verb));
    inspect_add_checked(record, &c->checked);
    if (c->sides == 2) {
        out_set(record, OUT_INT("never_updated", c->never_updated));
        out_say(call->out, record,
                "[{never_updated|parameter} equal in both: if these are two checkpoints of one "
                "run, never updated\n]");
        if (c->unmatched[0] || c->unmatched[1] || c->shapes) {
            repl_add_status(call->repl, STATUS_DIFFERS);
        }
    }
    return GD_OK;
}

static int check_params(struct command_call *call, struct gd_err *err)
{
    struct checking c = {.call = call};
    struct compare_options options;
    int rc = compare_options_take(call, &options, err), open = 0, loaded = 0;

    if (rc == GD_OK && (call->argc < 1 || call->argc > 2)) {
        rc = gd_fail(err, GD_EUSAGE, "check params: specify a file");
    }
    c.sides = call->argc;
    for (; rc == GD_OK && open < c.sides; open++) {
        rc = side_open(call, call->argv[open], &c.side[open], err);
        if (rc != GD_OK) {
            break;
        }
        if (c.side[open].kind == SIDE_LIVE || c.side[open].kind == SIDE_DUMP) {
            rc = gd_fail(err, GD_EUNSUPPORTED,
                         "%.200s is not a checkpoint: use `compare` for dumps and sessions",
                         c.side[open].label);
        }
    }
    for (; rc == GD_OK && loaded < c.sides; loaded++) {
        rc = side_load(call, &c.side[loaded], 0, -1, &c.table[loaded], err);
        if (rc != GD_OK) {
            break;
        }
    }
    for (int i = 0; rc == GD_OK && i < c.sides; i++) {
        rc = find_trained(&c.trained[i], &c.table[i], err);
    }
    if (rc == GD_OK) {
        repl_work_begin_count(&c.work, call, "checking", "parameters", c.table[0].item_count);
        rc = c.sides == 2 ? check_two(&c, &options, err) : check_one(&c, err);
        rc = repl_work_end(&c.work, rc, err);
    }
    rc = rc == GD_OK ? show_totals(&c, err) : rc;
    while (loaded > 0) {
        gd_table_deinit(&c.table[--loaded]);
        gd_hash_index_deinit(&c.trained[loaded]);
    }
    for (int i = 0; i < c.sides && i < 2; i++) {
        side_close(&c.side[i]);
    }
    compare_options_free(&options);
    return rc;
}

static int run_check(struct command_call *call, struct gd_err *err)
{
    (void)call;
    return gd_fail(err, GD_EUSAGE, "check: specify a subject (params)");
}

static const struct command check_sub[] = {
    {
        .name = "params",
        .usage = "check params FILE [FILE] [--map MAP] [--match name|rules|values|order]",
        .summary = "Count and compare parameters: shapes, missing, never updated",
        .help =
            "For one checkpoint or directory of tensor files: the parameters with shapes, types "
            "and\n"
            "statistics, and their number, trainable ones, elements and bytes.\n"
            "For two, also of PyTorch and MindSpore: which parameters match and by which rule,\n"
            "whether shapes agree, what is missing on either side, and which parameters are equal\n"
            "in both: in two checkpoints of one run those were never updated.",
        .examples = "check params start.ckpt\n"
                    "check params torch.pth mindspore.ckpt",
        .args = {ARG_FILE, ARG_FILE},
        .run = check_params,
    },
    {.name = NULL},
};

const struct command cmd_check = {
    .name = "check",
    .group = "files",
    .usage = "check params FILE [FILE]",
    .summary = "Check the contents of a checkpoint, alone or against another one",
    .help = "\"check params\" counts and compares parameters: see \"help check params\".\n",
    .args = {ARG_SUBCOMMAND},
    .run = run_check,
    .sub = check_sub,
};
