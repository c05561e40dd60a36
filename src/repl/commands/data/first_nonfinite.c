// SPDX-License-Identifier: GPL-3.0-or-later
/* Commands: first-nonfinite */
#include <stdlib.h>

#include "compare/nonfinite.h"
#include "dump/dump_target.h"
#include "engine/ranks.h"
#include "repl/compare/compare_files.h"
#include "repl/core/work.h"
#include "repl/values/checked.h"
#include "repl/values/inspect.h"

struct place { /* one step of one rank */
    struct side *side;
    size_t at; /* index into the side's catalogs */
    int64_t step;
    int rank;
};

struct looking {
    struct command_call *call;
    struct side *sides; /* a dump, or the ranks of the session's job */
    size_t side_count;
    struct place *place; /* by step, then rank */
    size_t place_count;
    struct side *side; /* catalogs in use */
    struct repl_work work;
    struct inspect_checked checked;
    uint64_t passed_over;
    size_t steps, ranks;  /* steps and ranks that were searched */
    const char *left_out; /* ranks that were not searched, and why; NULL: none */
    bool found;
    int64_t found_step;
    cJSON *record;
};

static int fetch_item(void *ctx, const struct gd_unit *unit, struct gd_item *item,
                      struct gd_err *err)
{
    struct looking *l = ctx;

    return side_fetch_of_step(l->call, l->side, unit, item, err);
}

static bool go_on(void *ctx, uint64_t done)
{
    struct looking *l = ctx;

    return repl_work_at(&l->work, done);
}

static const char *const kinds[] = {"-", "THROW POINT", "SOURCE", "UNKNOWN-IN"};

static const char *count_text(struct command_call *call, const struct gd_stats *stats)
{
    const struct {
        uint64_t count;
        unsigned bit;
        const char *name;
    } of[] = {{stats->nan, GD_UNKNOWN_NAN, "NaN"},
              {stats->pos_inf, GD_UNKNOWN_INF, "+Inf"},
              {stats->neg_inf, GD_UNKNOWN_INF, "-Inf"}};
    const char *text = "";

    for (size_t i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
        if (of[i].count > 0) {
            text = inspect_printf(call, "%s%s%s%s %s", text, text[0] ? ", " : "",
                                  stats->unknown & of[i].bit ? "at least " : "",
                                  inspect_number(call, of[i].count), of[i].name);
        }
    }
    return stats->unknown & GD_UNKNOWN_COUNT
               ? text
               : inspect_printf(call, "%s of %s", text, inspect_number(call, stats->count));
}

static void record_origin(cJSON *object, const struct gd_table *table, const struct gd_nonfinite *n)
{
    out_set(
        object,
        OUT_TEXT("kind", n->kind == GD_THROW_POINT    ? "throw-point"
                         : n->kind == GD_THROW_SOURCE ? "source"
                                                      : "unknown-in"),
        OUT_TEXT("node", table->unit[n->unit].name), OUT_TEXT("op", table->unit[n->unit].op),
        OUT_TEXT("tensor", table->item[n->item].name),
        OUT_IF(table->step >= 0, OUT_INT("step", table->step)),
        OUT_IF(table->rank >= 0, OUT_INT("rank", table->rank)), OUT_INT("nan", n->stats.nan),
        OUT_INT("pos_inf", n->stats.pos_inf), OUT_INT("neg_inf", n->stats.neg_inf),
        OUT_IF(n->stats.unknown & (GD_UNKNOWN_NAN | GD_UNKNOWN_INF), OUT_BOOL("at_least", true)),
        OUT_IF(n->bad_input != UINT32_MAX, OUT_TEXT("bad_input", table->item[n->bad_input].name)),
        OUT_IF(n->late_input != UINT32_MAX,
               OUT_TEXT("late_input", table->item[n->late_input].name)),
        OUT_IF(n->left, OUT_BOOL("after_step", true)),
        OUT_IF(n->has_range, OUT_REAL("inputs_min", n->least)),
        OUT_IF(n->has_range, OUT_REAL("inputs_max", n->most)), OUT_SOME("hint", n->hint));
}

static const char *inputs_template(const struct gd_nonfinite *n)
{
    return n->bad_input != UINT32_MAX
               ? "  its input {bad_input} is not finite either, and nothing before it in the dump "
                 "produced that: it came from the data, a parameter, or a node that was not "
                 "dumped\n"
           : n->late_input != UINT32_MAX ? "  it reads {late_input}, which is not finite after the "
                                           "step; its value before the "
                                           "step was not dumped\n"
           : n->left
               ? "  this is its value after the step: no dumped operator of the step has NaN or "
                 "infinity\n"
           : n->has_range ? "  its inputs are finite, from {inputs_min} to {inputs_max}\n"
                          : "";
}

static void show_origin(struct looking *l, const struct gd_table *table,
                        const struct gd_nonfinite *n)
{
    struct repl_out *out = l->call->out;

    record_origin(l->record, table, n);
    out_say(
        out, l->record,
        "First non-finite value[{?stepped}, step {step}][{?ranked}, rank {rank}]: {node}[ ({op})], "
        "{kind_title}\n"
        "  {tensor}: {counts}\n",
        OUT_BOOL("stepped", table->step >= 0), OUT_BOOL("ranked", table->rank > 0),
        OUT_TEXT("kind_title", kinds[n->kind]), OUT_TEXT("counts", count_text(l->call, &n->stats)));
    out_say(out, l->record, inputs_template(n));
    out_say(out, l->record, "[  likely cause: {hint}\n]");
}

static void show_notes(struct looking *l, const struct gd_table *table,
                       const struct gd_nonfinite *n)
{
    struct repl_out *out = l->call->out;

    for (size_t i = 0; i < n->mask_count; i++) {
        out_printf(out, "note: %s contains -Inf, as masks do on purpose\n",
                   out_safe(l->call, table->unit[n->masks[i]].name));
    }
    for (size_t i = 0; i < n->close_count; i++) {
        out_printf(out, "note: %s is within a factor of 10 of the largest value of its type\n",
                   out_safe(l->call, table->unit[n->close_calls[i]].name));
    }
}

/* Another rank has one in the same step too. */
static void show_also(struct looking *l, const struct gd_table *table, const struct gd_nonfinite *n)
{
    cJSON *list = cJSON_GetObjectItem(l->record, "also");
    cJSON *item = out_push(list ? list : out_list(l->record, "also"));

    out_set(item, OUT_INT("rank", table->rank), OUT_TEXT("node", table->unit[n->unit].name));
    out_say(l->call->out, item, "Also on rank {rank}: {node}, {kind_title}\n",
            OUT_TEXT("kind_title", kinds[n->kind]));
}

static void count_items(struct looking *l, const struct gd_nonfinite *n)
{
    l->checked.done += n->checked;
    l->passed_over += n->passed_over;
    if (n->not_checked > 0) {
        inspect_not_checked(l->call, &l->checked, n->why);
        l->checked.not_done += n->not_checked - 1;
    }
}

static int look_at(struct looking *l, const struct place *place, struct gd_err *err)
{
    struct gd_nonfinite n;
    struct gd_table table;
    int rc = side_load(l->call, place->side, place->at, place->step, &table, err);

    if (rc != GD_OK) {
        return rc;
    }
    l->side = place->side;
    table.rank = place->rank;
    repl_work_begin_count(&l->work, l->call, "looking for NaN and infinities", "nodes",
                          table.unit_count);
    rc = gd_nonfinite_find(&table, fetch_item, go_on, l, &n, err);
    rc = repl_work_end(&l->work, rc, err);
    if (rc == GD_OK) {
        count_items(l, &n);
        show_notes(l, &table, &n);
    }
    if (rc == GD_OK && n.kind != GD_THROW_NONE && l->found) {
        show_also(l, &table, &n);
    } else if (rc == GD_OK && n.kind != GD_THROW_NONE) {
        l->found = true;
        l->found_step = place->step;
        show_origin(l, &table, &n);
    }
    gd_table_deinit(&table);
    return rc;
}

static int by_step(const void *a, const void *b)
{
    const struct place *x = a, *y = b;

    if (x->step != y->step) {
        return x->step < y->step ? -1 : 1;
    }
    return (x->rank > y->rank) - (x->rank < y->rank);
}

static int add_place(struct looking *l, struct place place, struct gd_err *err)
{
    struct place *more = reallocarray(l->place, l->place_count + 1, sizeof(*more));

    if (!more) {
        return gd_fail(err, GD_ENOMEM, "out of memory for a list of steps");
    }
    l->place = more;
    more[l->place_count++] = place;
    return GD_OK;
}

static int add_places(struct looking *l, struct side *side, const struct compare_options *options,
                      struct gd_err *err)
{
    size_t ranks = side->catalog_count ? side->catalog_count : 1;
    int rc = GD_OK;

    for (size_t at = 0; rc == GD_OK && at < ranks; at++) {
        size_t count;
        const struct gd_catalog_step *steps = side_steps(side, at, &count);
        struct place place = {side, at, -1, side->session ? side->session->peer.rank : -1};

        place.rank = side->catalog_count ? gd_catalog_rank(side->catalog[at]) : place.rank;
        if (options->rank >= 0 && place.rank >= 0 && place.rank != options->rank) {
            continue;
        }
        if (count == 0 && options->step == INT64_MIN) {
            rc = add_place(l, place, err);
        }
        for (size_t i = 0; rc == GD_OK && i < count; i++) {
            place.step = steps[i].step;
            if (options->step == INT64_MIN || options->step == place.step) {
                rc = add_place(l, place, err);
            }
        }
    }
    return rc;
}

static void leave_out(struct looking *l, const char *which, const char *why)
{
    l->left_out = inspect_printf(l->call, "%s%s%s (%s)", l->left_out ? l->left_out : "",
                                 l->left_out ? ", " : "", which, why);
}

/* All ranks of the job are one run. Reports those that cannot be searched now. */
static int open_job(struct looking *l, const struct gd_ranks *ranks, struct gd_err *err)
{
    int size = gd_ranks_world_size(ranks), rc = GD_OK;

    l->sides = calloc((size_t)size + 1, sizeof(*l->sides));
    if (!l->sides) {
        return gd_fail(err, GD_ENOMEM, "out of memory for the ranks of a job");
    }
    for (int rank = 0; rc == GD_OK && rank < size; rank++) {
        const struct gd_session *session = gd_ranks_member(ranks, rank);
        const char *which = inspect_printf(l->call, "rank %d", rank);

        if (!session) {
            leave_out(l, which, "has not connected");
        } else if (!gd_catalog_of(session) && session->state != GD_STOPPED &&
                   session != l->call->session) {
            leave_out(l, which, gd_state_name(session->state));
        } else {
            rc = side_open(l->call, inspect_printf(l->call, "@%d", session->number),
                           &l->sides[l->side_count], err);
            l->side_count += rc == GD_OK;
        }
    }
    return rc;
}

static int open_one(struct looking *l, const char *word, struct gd_err *err)
{
    l->sides = calloc(1, sizeof(*l->sides));
    if (!l->sides) {
        return gd_fail(err, GD_ENOMEM, "out of memory for a dump");
    }
    int rc = side_open_whole(l->call, word, &l->sides[0], err);
    const struct side *side = &l->sides[0];
    const struct gd_ranks *ranks = rc == GD_OK && side->session ? gd_ranks_of(side->session) : NULL;

    l->side_count = rc == GD_OK;
    if (ranks && gd_ranks_world_size(ranks) > 1) {
        leave_out(l, "the other ranks", "only one session was named");
    }
    if (rc == GD_OK && side->ranks_left_out > 0) {
        leave_out(l, inspect_plural(l->call, side->ranks_left_out, "rank"), "too many");
    }
    return rc;
}

static void sum_up(struct looking *l)
{
    struct command_call *call = l->call;

    out_set(l->record, OUT_BOOL("found", l->found));
    inspect_add_checked(l->record, &l->checked);
    out_set(l->record, OUT_INT("passed_over", l->passed_over), OUT_INT("steps", l->steps),
            OUT_INT("ranks", l->ranks), OUT_IF(l->left_out, OUT_TEXT("left_out", l->left_out)));
    out_say(call->out, l->record,
            "[{!found}No NaN or infinity: ]{looked}[{?found} up to here]"
            "[; {of_steps|step}][{?of_steps}[, {of_ranks|rank}]][{!of_steps}[; {of_ranks|rank}]]"
            "[; {passed_over:n} skipped (masks, uninitialised memory)].\n"
            "[Not searched: {left_out}.\n]",
            OUT_TEXT("looked", inspect_checked_text(call, &l->checked, "tensor", "checked")),
            OUT_INT("of_steps", l->place[0].step >= 0 ? l->steps : 0),
            OUT_INT("of_ranks", l->ranks > 1 ? l->ranks : 0));
}

static void count_ranks(struct looking *l)
{
    for (size_t i = 0; i < l->place_count; i++) {
        size_t j = 0;

        while (j < i && l->place[j].rank != l->place[i].rank) {
            j++;
        }
        l->ranks += j == i;
    }
}

static int look_everywhere(struct looking *l, const struct compare_options *options,
                           struct gd_err *err)
{
    int rc = GD_OK;

    for (size_t i = 0; rc == GD_OK && i < l->side_count; i++) {
        rc = add_places(l, &l->sides[i], options, err);
    }
    if (rc == GD_OK && l->place_count == 0) {
        rc = gd_fail(
            err, GD_ENODATA,
            "there is nothing for that step and rank: see \"info steps\" and \"info ranks\"");
    }
    if (rc != GD_OK) {
        return rc;
    }
    qsort(l->place, l->place_count, sizeof(*l->place), by_step);
    count_ranks(l);
    l->record = out_record(l->call->out, "first-nonfinite");
    for (size_t i = 0; rc == GD_OK && i < l->place_count; i++) {
        if (l->found && l->place[i].step != l->found_step) {
            break;
        }
        l->steps += i == 0 || l->place[i].step != l->place[i - 1].step;
        rc = look_at(l, &l->place[i], err);
    }
    if (rc == GD_OK && !l->found) {
        rc = l->checked.done + l->checked.not_done > 0
                 ? inspect_need_checked(&l->checked, "tensor", "checked", err)
                 : gd_fail(err, GD_ENODATA,
                           "no tensor was checked: there are no floating-point tensors");
    }
    if (rc == GD_OK) {
        sum_up(l);
    }
    if (rc == GD_OK && l->found) {
        repl_add_status(l->call->repl, STATUS_DIFFERS);
    }
    return rc;
}

static int run_nonfinite(struct command_call *call, struct gd_err *err)
{
    struct looking l = {.call = call};
    struct compare_options options;
    const struct gd_ranks *ranks = NULL;
    int rc = compare_options_take(call, &options, err);

    if (rc == GD_OK && call->argc == 0) {
        rc = repl_need_session(call, err);
        ranks = rc == GD_OK ? gd_ranks_of(call->session) : NULL;
        if (rc == GD_OK) {
            rc = ranks ? open_job(&l, ranks, err)
                       : open_one(&l, inspect_printf(call, "@%d", call->session->number), err);
        }
    } else if (rc == GD_OK && call->argc == 1) {
        rc = open_one(&l, call->argv[0], err);
    } else if (rc == GD_OK) {
        rc = gd_fail(err, GD_EUSAGE, "first-nonfinite: specify at most one dump or session");
    }
    rc = rc != GD_OK ? rc : look_everywhere(&l, &options, err);
    while (l.side_count > 0) {
        side_close(&l.sides[--l.side_count]);
    }
    free(l.sides);
    free(l.place);
    compare_options_free(&options);
    return rc;
}

const struct command cmd_first_nonfinite = {
    .name = "first-nonfinite",
    .group = "data",
    .usage = "first-nonfinite [PATH | @SESSION] [--step N] [--rank N]",
    .summary = "Find the operator that produced the first NaN or infinity",
    .help =
        "Search a dump, a directory of tensor files, or the values of a stopped training, in\n"
        "order of execution and step by step, for the first output that is not finite:\n"
        "  THROW POINT  all its known inputs are finite\n"
        "  SOURCE       an input is not finite, and nothing in the dump produced it\n"
        "  UNKNOWN-IN   its inputs are unknown\n"
        "with the range of the inputs and the usual cause. If the dump contains times, they\n"
        "give the order. A parameter that was dumped after the step has its updated value: it\n"
        "is named only if no operator of the step is bad. Uninitialised memory (empty, receive\n"
        "buffers) and masks of -Inf are skipped. The last line counts the tensors that were\n"
        "checked and those that could not be. Without a path, all ranks of the session's job\n"
        "are searched. gradb --batch exits with status 6 when something is found, and 1 when\n"
        "nothing could be checked.",
    .examples = "first-nonfinite\n"
                "first-nonfinite dump/ --step 12",
    .args = {ARG_FILE},
    .run = run_nonfinite,
};
