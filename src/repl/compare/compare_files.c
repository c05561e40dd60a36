// SPDX-License-Identifier: GPL-3.0-or-later
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "engine/glob.h"
#include "repl/compare/compare_files.h"
#include "repl/compare/compare_probe.h"
#include "repl/core/command.h"
#include "repl/core/work.h"
#include "repl/values/inspect.h"
#include "repl/values/value.h"

/* relative; float16 has a mantissa of 11 bits, and its products are summed */
#define HALF_ERROR 1e-3

struct comparing {
    struct command_call *call;
    struct side *side_a, *side_b;
    struct gd_table *a, *b;
    const struct compare_options *options;
    struct compare_rows *rows;
    size_t steps, steps_left_out; /* of one rank each */
    struct item_pair {
        uint32_t unit_a, unit_b;
        struct gd_item *a, *b; /* NULL: missing */
        enum gd_how how;
        bool not_held; /* no value of the previous step on one side */
        bool old;      /* not of the step at which a session is stopped */
    } * pairs;
    size_t count, room;
    bool guessed;
    struct repl_work *work;
};

/* ---- pairs of items -------------------------------------------------------------------------- */

static int add_pair(struct comparing *c, const struct item_pair *pair, struct gd_err *err)
{
    struct item_pair *more = gd_grow(c->pairs, c->count, &c->room, sizeof(*more));

    if (!more) {
        return gd_fail(err, GD_ENOMEM, "out of memory for a list of pairs");
    }
    c->pairs = more;
    c->pairs[c->count++] = *pair;
    return GD_OK;
}

static bool is_wanted(const struct comparing *c, const struct gd_unit *a, const struct gd_unit *b)
{
    const char *on = c->options->on;

    return !on || (a && (strstr(a->name, on) || gd_glob_match(on, a->name, false))) ||
           (b && (strstr(b->name, on) || gd_glob_match(on, b->name, false)));
}

/* A live session has much more than a file: units that only the session has are not a difference.
 */
static bool is_alone_by_nature(const struct comparing *c, const struct gd_unit *a,
                               const struct gd_unit *b)
{
    const struct gd_unit *unit = a ? a : b;

    return gd_name_is_alone(unit->name) || (a && c->side_a->kind == SIDE_LIVE) ||
           (b && c->side_b->kind == SIDE_LIVE);
}

/* Of operators that are alike but not the same, only the first outputs must correspond: MindSpore's
 * LayerNorm also returns the mean and the variance. */
static bool is_extra(const struct gd_unit *a, const struct gd_unit *b, const struct gd_item *item)
{
    return a && b && !item->input && item->position > 0 && strcmp(a->op, b->op) != 0;
}

static int pair_units(struct comparing *c, const struct gd_match *match, struct gd_err *err)
{
    const struct gd_unit *a = match->a == UINT32_MAX ? NULL : &c->a->unit[match->a];
    const struct gd_unit *b = match->b == UINT32_MAX ? NULL : &c->b->unit[match->b];
    struct item_pair pair = {.unit_a = match->a, .unit_b = match->b, .how = match->how};
    int rc = GD_OK;

    if (!is_wanted(c, a, b)) {
        return GD_OK;
    }
    if ((!a || !b) && is_alone_by_nature(c, a, b)) {
        c->rows->not_counted++;
        return GD_OK;
    }
    for (uint32_t i = 0; rc == GD_OK && b && i < b->count; i++) {
        pair.b = &c->b->item[b->first + i];
        pair.a = a ? gd_match_item(c->a, a, pair.b) : NULL;
        if (pair.a || !is_extra(a, b, pair.b)) {
            rc = add_pair(c, &pair, err);
        }
    }
    for (uint32_t i = 0; rc == GD_OK && a && i < a->count; i++) {
        pair.a = &c->a->item[a->first + i];
        pair.b = NULL;
        if (!b || (!gd_match_item(c->b, b, pair.a) && !is_extra(a, b, pair.a))) {
            rc = add_pair(c, &pair, err);
        }
    }
    return rc;
}

/* ---- comparing ------------------------------------------------------------------------------- */

static int read_item(struct comparing *c, struct side *side, struct gd_table *table, uint32_t unit,
                     struct gd_item *item, struct gd_err *err)
{
    int rc = item ? side_fetch_of_step(c->call, side, &table->unit[unit], item, err) : GD_OK;

    if (rc == GD_OK && item && side->kind == SIDE_LIVE) {
        item->has_shape = false; /* the fetched value may have a more precise shape */
    }
    return rc == GD_OK && item ? gd_table_look(table, item, err) : rc;
}

/* Few nodes have a value of the previous step: for the rest, does not fetch the other side's. */
static bool is_held(struct comparing *c, struct item_pair *pair, int *rc, struct gd_err *err)
{
    struct side *side[2] = {c->side_a, c->side_b};
    struct gd_table *table[2] = {c->a, c->b};
    uint32_t unit[2] = {pair->unit_a, pair->unit_b};
    struct gd_item *item[2] = {pair->a, pair->b};

    for (int i = 0; *rc == GD_OK && i < 2; i++) {
        if (side[i]->previous && side[i]->kind == SIDE_LIVE) {
            *rc = read_item(c, side[i], table[i], unit[i], item[i], err);
            pair->not_held = pair->not_held || item[i]->problem;
        }
    }
    return *rc == GD_OK && !pair->not_held;
}

static int fetch_item(void *ctx, size_t i, struct gd_run_pair *ret, struct gd_err *err)
{
    struct comparing *c = ctx;
    struct item_pair *pair = &c->pairs[i];
    int rc = GD_OK;

    if (pair->a && pair->b && is_held(c, pair, &rc, err)) {
        rc = read_item(c, c->side_a, c->a, pair->unit_a, pair->a, err);
        rc = rc == GD_OK ? read_item(c, c->side_b, c->b, pair->unit_b, pair->b, err) : rc;
    } else if (rc == GD_OK && !pair->not_held) {
        rc = pair->a ? read_item(c, c->side_a, c->a, pair->unit_a, pair->a, err)
                     : read_item(c, c->side_b, c->b, pair->unit_b, pair->b, err);
    }
    if (pair->a && pair->b) {
        pair->old = pair->a->of_other_step || pair->b->of_other_step;
        ret->a = pair->a->source;
        ret->b = pair->b->source;
    }
    ret->has_tolerance = compare_tolerance(c->options, pair->a ? pair->a->name : NULL,
                                           pair->b ? pair->b->name : NULL, &ret->tolerance);
    return rc;
}

/* For a pair without elements on both sides. */
static enum gd_agreement judge_rest(const struct item_pair *pair, const struct gd_run_pair *result,
                                    const struct compare_options *options, struct compare_row *row)
{
    const struct gd_item *a = pair->a, *b = pair->b;

    if (!a || !b) {
        return a ? GD_V_MISSING_B : GD_V_MISSING_A;
    }
    if (a->problem || b->problem) {
        row->note = a->problem ? a->problem : b->problem;
        return GD_V_UNREADABLE;
    }
    if (a->digest && b->digest) {
        row->note = "by checksum";
        return strcmp(a->digest, b->digest) == 0 ? GD_V_SAME : GD_V_DIFF;
    }
    if (a->stats && b->stats) {
        struct gd_tolerance tolerance =
            result->has_tolerance
                ? result->tolerance
                : gd_profile_tolerance(options->profile, row->type_a, row->type_b);

        row->note = "statistics alone";
        row->stats_a = *a->stats;
        row->stats_b = *b->stats;
        return gd_compare_stats(a->stats, b->stats, tolerance);
    }
    row->note = "no values on one side";
    return GD_V_UNREADABLE;
}

static enum gd_stored stored_of(const struct gd_item *item)
{
    return item->stored != GD_STORED_NONE ? item->stored
           : item->dtype != GD_DT_NONE    ? gd_stored_from_name(gd_dtype_name(item->dtype))
                                          : GD_STORED_NONE;
}

static void fill_items(const struct item_pair *pair, struct compare_row *row)
{
    if (pair->a) {
        row->type_a = stored_of(pair->a);
        row->has_shape_a = pair->a->has_shape;
        row->shape_a = pair->a->shape;
    }
    if (pair->b) {
        row->type_b = stored_of(pair->b);
        row->has_shape_b = pair->b->has_shape;
        row->shape_b = pair->b->shape;
    }
}

static void fill_metrics(struct comparing *c, const struct gd_difference *d,
                         struct compare_row *row)
{
    const struct gd_metrics *m = &d->metrics;

    row->verdict = d->verdict;
    row->has_metrics = d->has_metrics;
    row->note = d->note[0] ? inspect_printf(c->call, "%s", d->note) : "";
    row->tolerance = d->tolerance;
    if (!d->has_metrics) {
        return;
    }
    c->rows->last = *m;
    row->count = m->count;
    row->same_nonfinite = m->same_nonfinite;
    row->mismatch = m->mismatch;
    row->close = gd_metrics_close(m);
    row->max_abs = m->max_abs;
    row->max_abs_at = m->max_abs_at;
    row->mean_abs = m->mean_abs;
    row->rel_l2 = m->rel_l2;
    row->max_rel = m->max_rel;
    row->r1k = m->r1k;
    row->r5k = m->r5k;
    row->cosine = m->cosine;
    row->ulp99 = m->ulp99;
    row->stats_a = m->a;
    row->stats_b = m->b;
}

static bool go_on_matching(void *ctx, uint64_t units)
{
    (void)units;
    return repl_work_at(ctx, 0);
}

/* Only a hint: axes are never transposed automatically. */
static int hint_turned(struct comparing *c, struct item_pair *pair, struct compare_row *row,
                       struct gd_err *err)
{
    bool turned;
    struct gd_match_options options = {.go_on = go_on_matching, .go_on_ctx = c->work};
    int rc = gd_match_is_turned(c->a, pair->a, c->b, pair->b, &options, &turned, err);

    if (rc == GD_OK && turned) {
        row->note = "the same values with the axes in another order: transposed?";
    }
    return rc;
}

/* Operators that accelerators may compute in float16, whatever the type of the tensors. */
static bool computes_in_half(const char *op)
{
    static const char *const ops[] = {"conv",  "pool",   "lstm", "gru",  "matmul",
                                      "dense", "linear", "sort", "topk", "roi"};

    for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
        if (strcasestr(op, ops[i])) {
            return true;
        }
    }
    return false;
}

/* Hints at an output of one of these operators that is outside its tolerance but within that of
 * float16. */
static void hint_half(const struct comparing *c, const struct item_pair *pair,
                      struct compare_row *row)
{
    bool off = row->verdict == GD_V_FAIL || row->verdict == GD_V_WARN;
    bool single = row->type_a == GD_STORED_FLOAT32 && row->type_b == GD_STORED_FLOAT32;

    if (off && single && !pair->b->input && !row->note[0] && row->rel_l2 <= HALF_ERROR &&
        computes_in_half(c->b->unit[pair->unit_b].op)) {
        row->note = "within float16 precision: an accelerator may compute this operator in float16";
    }
}

/* Frees values of a live session as soon as they have been compared. */
static void drop_values(const struct side *side, struct gd_item *item)
{
    if (item && side->kind == SIDE_LIVE) {
        gd_source_unref(item->source);
        item->source = NULL;
    }
}

/* The verdict, and the hints for it. */
static int judge_pair(struct comparing *c, struct item_pair *pair, const struct gd_run_pair *result,
                      struct compare_row *row, struct gd_err *err)
{
    if (!result->a || !result->b) {
        row->verdict = judge_rest(pair, result, c->options, row);
        row->note = gd_arena_strdup(c->call->arena, row->note);
        return GD_OK;
    }
    fill_metrics(c, &result->difference, row);
    hint_half(c, pair, row);
    return row->verdict == GD_V_SHAPE ? hint_turned(c, pair, row, err) : GD_OK;
}

static int finish_table(void *ctx, size_t i, const struct gd_run_pair *result, struct gd_err *err)
{
    struct comparing *c = ctx;
    struct item_pair *pair = &c->pairs[i];
    struct gd_arena *arena = c->call->arena;
    struct compare_row row = {.how = pair->how,
                              .note = "",
                              .step = c->b->step >= 0 ? c->b->step : c->a->step,
                              .rank = c->b->rank >= 0 ? c->b->rank : c->a->rank,
                              .max_abs_at = -1,
                              .item_a = pair->a,
                              .item_b = pair->b,
                              .unit_a = pair->unit_a,
                              .unit_b = pair->unit_b};
    int rc;

    if (pair->not_held || pair->old) {
        *(pair->old ? &c->rows->old : &c->rows->not_held) += 1;
        return GD_OK;
    }
    row.a = pair->a ? gd_arena_strdup(arena, pair->a->name) : NULL;
    row.b = pair->b ? gd_arena_strdup(arena, pair->b->name) : NULL;
    fill_items(pair, &row);
    rc = judge_pair(c, pair, result, &row, err);
    if (rc != GD_OK) {
        return rc;
    }
    if (c->options->shown.view != GD_TOOL_OWN) {
        struct gd_tool_row *view = gd_arena_alloc(arena, sizeof(*view));

        if (view) {
            *view = result->row;
        }
        row.view = view;
    }
    drop_values(c->side_a, pair->a);
    drop_values(c->side_b, pair->b);
    if ((pair->a && !row.a) || (pair->b && !row.b) || !row.note ||
        (c->options->shown.view != GD_TOOL_OWN && !row.view)) {
        return gd_fail(err, GD_ENOMEM, "out of memory for the rows of a comparison");
    }
    return compare_rows_add(c->rows, &row, err);
}

static int match_tables(struct comparing *c, struct repl_work *work, struct gd_matching *ret,
                        struct gd_err *err)
{
    struct gd_match_options options = {.map = c->options->map,
                                       .last = c->options->last,
                                       .go_on = go_on_matching,
                                       .go_on_ctx = work};

    if (c->a->unit_count == 1 && c->b->unit_count == 1) {
        ret->match = calloc(1, sizeof(*ret->match));
        if (!ret->match) {
            return gd_fail(err, GD_ENOMEM, "out of memory for a pair");
        }
        ret->match[0] = (struct gd_match){
            0, 0, strcmp(c->a->unit[0].name, c->b->unit[0].name) ? GD_HOW_NONE : GD_HOW_NAME};
        ret->count = 1;
        return GD_OK;
    }
    return gd_match_tables(c->a, c->b, &options, ret, err);
}

static int compare_tables(struct comparing *c, struct gd_err *err)
{
    static const struct gd_run_ops ops = {fetch_item, finish_table};
    struct gd_run_options options = {.profile = c->options->profile,
                                     .view = c->options->shown.view,
                                     .view_options = gd_tool_defaults(c->options->shown.view),
                                     .go_on = repl_work_at};
    struct gd_matching matching = {0};
    struct repl_work work;
    size_t first = c->rows->count;
    int rc;

    if (c->options->has_rtol || c->options->has_atol) {
        options.view_options.rtol = c->options->rtol;
        options.view_options.atol = c->options->atol;
    }
    options.view_options.equal_nan = c->options->equal_nan;
    repl_work_begin_count(&work, c->call, "comparing", "B", 0);
    options.go_on_ctx = c->work = &work;
    rc = match_tables(c, &work, &matching, err);
    for (size_t i = 0; rc == GD_OK && i < matching.count; i++) {
        rc = pair_units(c, &matching.match[i], err);
    }
    c->guessed = c->guessed || matching.guessed;
    if (rc == GD_OK) {
        rc = gd_compare_run(c->count, &ops, c, &options, err);
    }
    if (rc == GD_OK && c->options->shown.view == GD_TOOL_MSPROBE) {
        rc = compare_probe_make(c->call, c->a, c->b, c->rows, first, err);
    }
    gd_matching_free(&matching);
    return repl_work_end(&work, rc, err);
}

/* ---- the command ----------------------------------------------------------------------------- */

static int compare_all(struct comparing *c, struct gd_err *err)
{
    struct compare_step *steps;
    size_t count;
    int rc = compare_steps(c->side_a, c->side_b, c->options, &steps, &count, err);

    for (size_t i = 0; rc == GD_OK && i < count; i++) {
        struct gd_table a, b;

        rc = side_load(c->call, c->side_a, steps[i].rank_a, steps[i].a, &a, err);
        if (rc != GD_OK) {
            break;
        }
        rc = side_load(c->call, c->side_b, steps[i].rank_b, steps[i].b, &b, err);
        if (rc == GD_OK) {
            c->a = &a;
            c->b = &b;
            c->count = 0;
            rc = compare_tables(c, err);
            gd_table_deinit(&b);
        }
        gd_table_deinit(&a);
    }
    if (rc == GD_OK) {
        c->steps = count;
        c->steps_left_out = compare_steps_left_out(c->side_a, c->side_b, c->options, steps, count);
    }
    free(steps);
    return rc;
}

/* For a dump: the current step against its previous one, unless steps were given. */
static int choose_steps(const struct side *a, const struct side *b, struct compare_options *options,
                        struct gd_err *err)
{
    const struct side *side = b->previous ? b : a;
    size_t count;
    const struct gd_catalog_step *steps = side_steps(side, 0, &count);

    if (!side->previous || side->kind != SIDE_DUMP || options->step != INT64_MIN) {
        return GD_OK;
    }
    for (size_t i = 1; i < count; i++) {
        if (steps[i].step == side->session->stop.step) {
            options->step = steps[b->previous ? i : i - 1].step;
            options->step_b = steps[b->previous ? i - 1 : i].step;
            return GD_OK;
        }
    }
    return gd_fail(err, GD_ENODATA, "%.200s is stopped at step %lld and has no previous step",
                   side->label, (long long)side->session->stop.step);
}

/* Opens a file, or a tensor or printed value that is compared with one. */
static int open_side(struct command_call *call, const char *word, struct side *side,
                     struct gd_err *err)
{
    struct value value = {.step = -1};
    int rc;

    if (side_is_meant(call, word)) {
        return side_open(call, word, side, err);
    }
    *side = (struct side){.kind = SIDE_TENSOR, .label = word};
    rc = value_parse(call, word, &value, err);
    if (rc == GD_OK) {
        rc = value_fetch(call, &value, VALUE_ELEMENTS, err);
    }
    if (rc == GD_OK) {
        rc = gd_source_of_tensor(value.tensor, &side->tensor, err);
    }
    value_deinit(&value);
    return rc;
}

/* GD_ENODATA: no row, since the values of the previous step or of this one are missing. */
static int check_rows(const struct compare_rows *rows, struct gd_err *err)
{
    if (rows->count == 0 && rows->not_held) {
        return gd_fail(err, GD_ENODATA,
                       "no values of the previous step are kept: use `set keep-previous SELECTOR`, "
                       "which applies from the next step on");
    }
    if (rows->count == 0 && rows->old) {
        return gd_fail(err, GD_ENODATA,
                       "nothing was compared: the values of %zu nodes are older than this stop; "
                       "`step` goes to the end of the step",
                       rows->old);
    }
    return GD_OK;
}

/* GD_ENODATA: there are rows, but no values of a pair were compared. */
static int check_compared(struct comparing *c, struct gd_err *err)
{
    struct command_call *call = c->call;

    if (compare_rows_compared(c->rows) > 0 || c->rows->verdicts[GD_V_UNREADABLE] > 0 ||
        (c->rows->empty && compare_rows_differ(c->rows))) {
        return GD_OK;
    }
    return c->rows->empty
               ? gd_fail(err, GD_ENODATA, "nothing was compared: %s without elements",
                         inspect_plural(call, c->rows->empty, "pair"))
               : gd_fail(err, GD_ENODATA,
                         "nothing was compared: no tensor of %.200s matches one of %.200s "
                         "(%.100s); map them with --map FILE",
                         c->side_a->label, c->side_b->label, compare_rows_summary(call, c->rows));
}

static void print_notes(const struct comparing *c)
{
    out_say(c->call->out, NULL,
            "[{?guessed}Too many names differ to align them: pairs \"by order\" were matched one "
            "after the other.\n]"
            "[{alone} without an expected counterpart are not counted\n]"
            "[{not_held} have no value of the previous step (`set keep-previous` keeps them)\n]"
            "[{old} were not compared: their values are of an earlier step\n]",
            OUT_BOOL("guessed", c->guessed), OUT_INT("alone", c->rows->not_counted),
            OUT_INT("not_held", c->rows->not_held), OUT_INT("old", c->rows->old));
}

static int show_result(struct comparing *c, struct gd_err *err)
{
    struct command_call *call = c->call;
    struct rows_shown shown = c->options->shown;
    int rc = check_rows(c->rows, err);

    shown.label_a = c->side_a->label;
    shown.label_b = c->side_b->label;
    shown.steps = c->steps;
    shown.steps_left_out = c->steps_left_out;
    if (rc == GD_OK && shown.view == GD_TOOL_MSPROBE) {
        rc = compare_probe_judge(call, c->rows, err);
    }
    if (rc != GD_OK) {
        return rc;
    }
    compare_rows_sort(c->rows, shown.sort);
    compare_rows_show(call, c->rows, &shown);
    if (shown.view == GD_TOOL_OWN && c->rows->count == 1 && shown.limit < 0) {
        compare_pair_show(call, c->rows);
    }
    print_notes(c);
    if (c->options->csv) {
        rc = compare_rows_csv(call, c->rows, &shown, c->options->csv, err);
    }
    rc = rc == GD_OK ? check_compared(c, err) : rc;
    if (rc == GD_OK && compare_rows_differ(c->rows)) {
        repl_add_status(call->repl, STATUS_DIFFERS);
    }
    return rc;
}

int compare_files(struct command_call *call, struct gd_err *err)
{
    struct compare_options options;
    struct compare_rows rows = {.row = NULL};
    struct side a, b;
    struct comparing c = {
        .call = call, .options = &options, .rows = &rows, .side_a = &a, .side_b = &b};
    int rc = compare_options_take(call, &options, err);

    if (rc == GD_OK && call->argc != 2) {
        rc = gd_fail(err, GD_EUSAGE,
                     "compare: specify two files, directories, dumps or sessions (@N)");
    }
    if (rc == GD_OK && strcmp(call->argv[1], "prev") == 0 && call->argv[0][0] == '@') {
        call->argv[1] = (char *)inspect_printf(call, "%s:prev", call->argv[0]);
    }
    if (rc == GD_OK) {
        rc = open_side(call, call->argv[0], &a, err);
    }
    if (rc == GD_OK) {
        rc = open_side(call, call->argv[1], &b, err);
        if (rc == GD_OK) {
            rc = choose_steps(&a, &b, &options, err);
            rc = rc == GD_OK ? compare_all(&c, err) : rc;
            rc = rc == GD_OK ? show_result(&c, err) : rc;
            side_close(&b);
        }
        side_close(&a);
    }
    free(c.pairs);
    compare_rows_free(&rows);
    compare_options_free(&options);
    return rc;
}
