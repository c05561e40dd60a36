// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The reports of plans: each value is judged for each watchpoint that covers it, hits are reported,
 * and the target learns whether to stop.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "engine/graph/selector.h"
#include "engine/history/history.h"
#include "engine/metric/over_ranks.h"
#include "engine/session_impl.h"
#include "engine/watch/numbers.h"
#include "engine/watch/watch_impl.h"

/* ---- reporting ----------------------------------------------------------------------------- */

static void fill_place(const struct watch_judging *judging, const struct watch_cover *cover,
                       const struct watch_place *place, struct gd_hit *hit)
{
    const char *name = cover->watch->where; /* all of it together */
    hit->node = GD_NO_NODE;
    if (place) {
        hit->node = place->node;
        hit->slot = place->slot;
        hit->is_scalar = place->scalar != NULL;
        name =
            place->scalar ? place->scalar : gd_graph_name(judging->w->session->graph, place->node);
    }
    snprintf(hit->node_name, sizeof(hit->node_name), "%s", name);
}

static void say_why(struct watch_judging *judging, const struct gd_watchpoint *watch,
                    const struct gd_hit *hit)
{
    char what[64];
    if (!judging->why || !judging->size || judging->stop) {
        return;
    }
    snprintf(what, sizeof(what), "%.60s",
             watch->event       ? watch->event
             : watch->condition ? watch->condition->abbr
                                : gd_expr_text(watch->expr));
    if (hit->node == GD_NO_NODE) {
        snprintf(judging->why, judging->size, "%s %d (%s) on %s",
                 watch->event ? "catchpoint" : "watchpoint", watch->number, what, hit->node_name);
    } else {
        char slot[16];
        gd_graph_slot_name(judging->w->session->graph, hit->node, hit->slot, slot);
        snprintf(judging->why, judging->size, "watchpoint %d (%s) on %s:%s", watch->number, what,
                 hit->node_name, slot);
    }
}

static void report_hit(struct watch_judging *judging, struct watch_cover *cover,
                       const struct watch_place *place, const struct gd_verdict *verdict)
{
    struct gd_session *session = judging->w->session;
    struct gd_watchpoint *watch = cover->watch;
    struct gd_hit hit;
    memset(&hit, 0, sizeof(hit));
    hit.watchpoint = watch->number;
    hit.kind = watch->condition;
    hit.condition = watch->condition ? watch->condition->wire : GD_WIRE_OWN;
    if (watch->expr) {
        snprintf(hit.expression, sizeof(hit.expression), "%s", gd_expr_text(watch->expr));
    }
    if (watch->event) {
        snprintf(hit.event, sizeof(hit.event), "%s", watch->event);
    }
    hit.step = judging->step;
    hit.stop_sequence = judging->stop_sequence;
    hit.error = verdict->outcome == GD_NOT_CHECKED ? verdict->error : 0;
    if (verdict->param_count > 0 && verdict->param_count <= GD_MAX_HIT_PARAMS) {
        hit.param_count = verdict->param_count;
        memcpy(hit.param, verdict->param, (size_t)hit.param_count * sizeof(*hit.param));
    }
    fill_place(judging, cover, place, &hit);
    bool stops = !hit.error && watch->action == GD_WATCH_STOP &&
                 session->debugger->settings.stop_on_hit && !judging->recheck;
    hit.traced = watch->action == GD_WATCH_TRACE;
    if (stops) {
        say_why(judging, watch, &hit);
        judging->stop = true;
        if (watch->temporary) {
            watch->spent = true;
        }
    }
    judging->hits += !hit.error;
    gd_session_on_hit(session, &hit);
}

/* ---- judging ------------------------------------------------------------------------------- */

/* There is no value, and nothing is wrong with that: an operator that this step did not use, a
 * model that was released and that no one named. */
static bool is_no_fault(const struct gd_watchpoint *watch, unsigned error)
{
    bool named = watch->selector && gd_selector_has_name(watch->selector);
    if (watch->label && error == GD_HIT_NO_HISTORY) {
        return true; /* no one named it, and a first step has none */
    }
    return error == GD_HIT_NOT_RUN || (error == GD_HIT_GONE && !named);
}

static void not_checked(struct watch_judging *judging, struct watch_cover *cover,
                        const struct watch_place *place, struct watch_memory *memory,
                        const struct gd_verdict *verdict)
{
    bool first = verdict->error == GD_HIT_NO_PREVIOUS &&
                 ((place && place->scalar) || cover->watch->steps > 1);
    if (first || is_no_fault(cover->watch, verdict->error)) {
        cover->watch->checks--; /* no change to judge yet; it did not run */
        return;
    }
    cover->watch->unclear++;
    cover->watch->unclear_errors |= verdict->error;
    if (memory->told == verdict->error && !judging->recheck) {
        return;
    }
    memory->told = verdict->error;
    report_hit(judging, cover, place, verdict);
}

/* Combines the verdicts of the condition and the guard like "and": an unknown one matters only if
 * the other is not false. */
static void judge_both(const struct gd_watchpoint *watch, const struct gd_observation *seen,
                       enum gd_truth allowed, struct gd_verdict *ret)
{
    if (watch->condition) {
        gd_condition_judge(watch->condition, watch->values, watch->value_count, seen, ret);
    } else {
        gd_condition_judge_expr(watch->expr, seen, ret);
    }
    if (allowed == GD_UNKNOWN && ret->outcome == GD_IS_HIT) {
        ret->outcome = GD_NOT_CHECKED;
        ret->error = GD_HIT_GUARD_UNKNOWN;
    }
}

/* It holds in this step: whether it has held for enough consecutive steps. A recheck judges a step
 * again, and counts nothing. */
static bool held_long_enough(const struct watch_judging *judging, const struct gd_watchpoint *watch,
                             struct watch_memory *memory)
{
    bool again = judging->recheck || (memory->held && memory->held_step == judging->step);
    if (watch->steps <= 1) {
        return true;
    }
    if (!again) {
        bool follows = memory->held && memory->held_step == judging->step - 1;
        memory->held = follows ? memory->held + (memory->held < watch->steps) : 1;
        memory->held_step = judging->step;
    }
    return memory->held_step == judging->step && memory->held >= watch->steps;
}

void watching_judge_cover(struct watch_judging *judging, struct watch_cover *cover,
                          const struct watch_place *place, struct watch_memory *memory,
                          const struct gd_observation *seen)
{
    struct gd_watchpoint *watch = cover->watch;
    struct gd_verdict verdict;
    memset(&verdict, 0, sizeof(verdict));
    enum gd_truth allowed = GD_TRUE;
    unsigned error = 0;
    if (!watch || watch->spent) {
        return;
    }
    if (watch->guard) {
        allowed = gd_expr_evaluate(watch->guard, seen, &error);
    }
    if (allowed == GD_FALSE) {
        return;
    }
    watch->checks++;
    judge_both(watch, seen, allowed, &verdict);
    if (verdict.outcome == GD_NOT_CHECKED) {
        not_checked(judging, cover, place, memory, &verdict);
        return;
    }
    memory->told = 0;
    if (verdict.outcome != GD_IS_HIT || !held_long_enough(judging, watch, memory) ||
        (memory->hit_step == judging->step && !judging->recheck)) {
        return;
    }
    memory->hit_step = judging->step;
    watch->hits++;
    if (watch->ignore) {
        watch->ignore--;
        return;
    }
    report_hit(judging, cover, place, &verdict);
}

/* Where NaN and Inf are normal, only the finite elements count. */
static bool leave_out_nonfinite(const struct gd_observation *seen, struct gd_stats *stats)
{
    *stats = *seen->stats;
    bool nothing = stats->count && stats->nan + stats->pos_inf + stats->neg_inf >= stats->count;
    stats->nan = stats->pos_inf = stats->neg_inf = stats->unpaired = 0;
    return !nothing;
}

static uint64_t finite_count(const struct gd_stats *stats)
{
    return stats->count - stats->nan - stats->pos_inf - stats->neg_inf;
}

static double joined_mean(double a, uint64_t n, double b, uint64_t m)
{
    return n + m ? a * ((double)n / (double)(n + m)) + b * ((double)m / (double)(n + m)) : 0;
}

static void join_counts(struct gd_stats *sum, const struct gd_stats *more)
{
    sum->count += more->count;
    sum->nan += more->nan;
    sum->pos_inf += more->pos_inf;
    sum->neg_inf += more->neg_inf;
    sum->zero += more->zero;
    sum->neg_zero += more->neg_zero;
    sum->positive += more->positive;
    sum->negative += more->negative;
    sum->denormal += more->denormal;
    sum->units += more->units;
    sum->dead_units += more->dead_units;
    for (int i = 0; i < GD_MAX_RANGES; i++) {
        sum->in_range[i] += more->in_range[i];
    }
    sum->range_count = more->range_count;
}

static void join_change(struct gd_stats *sum, const struct gd_stats *more)
{
    uint64_t n = sum->count - sum->unpaired, m = more->count - more->unpaired;
    sum->mean_abs_delta = joined_mean(sum->mean_abs_delta, n, more->mean_abs_delta, m);
    sum->mean_delta = joined_mean(sum->mean_delta, n, more->mean_delta, m);
    sum->mean_abs_prev = joined_mean(sum->mean_abs_prev, n, more->mean_abs_prev, m);
    sum->sum_sq_delta += more->sum_sq_delta;
    sum->sum_sq_prev += more->sum_sq_prev;
    sum->max_abs_delta = fmax(sum->max_abs_delta, more->max_abs_delta);
    sum->dot += more->dot;
    sum->mismatch += more->mismatch;
    sum->unpaired += more->unpaired;
}

/* As if both had been one tensor. */
static void join_stats(struct gd_stats *sum, const struct gd_stats *more)
{
    uint64_t n = finite_count(sum), m = finite_count(more);
    bool first = sum->count == 0;
    sum->mean = joined_mean(sum->mean, n, more->mean, m);
    sum->abs_mean = joined_mean(sum->abs_mean, n, more->abs_mean, m);
    sum->sum_sq += more->sum_sq;
    sum->min = first ? more->min : fmin(sum->min, more->min);
    sum->max = first ? more->max : fmax(sum->max, more->max);
    double variance = n + m ? sum->sum_sq / (double)(n + m) - sum->mean * sum->mean : 0;
    sum->std = variance > 0 ? sqrt(variance) : 0;
    sum->has_prev = more->has_prev && (first || sum->has_prev);
    join_change(sum, more);
    join_counts(sum, more);
}

/* ---- conditions on all tensors of a step together ------------------------------------------ */

static void judge_sum(struct watch_judging *judging, struct watch_cover *cover)
{
    struct watch_sum *sum = &cover->sum;
    struct gd_observation seen = {.stats = sum->with_stats ? &sum->stats : NULL,
                                  .error = sum->with_stats ? 0 : sum->error,
                                  .dtype = GD_FLOAT64,
                                  .range = -1,
                                  .step = judging->step,
                                  .value_step = judging->step,
                                  .series = &sum->series};
    struct gd_numbers numbers = {judging->w->session, judging->step};
    seen.scalar = gd_numbers_get;
    seen.scalar_ctx = &numbers;
    watching_judge_cover(judging, cover, NULL, &cover->memory, &seen);
    if (sum->with_stats && !judging->recheck) {
        gd_series_add(&sum->series, &sum->stats, judging->step);
    }
}

static void restart_sum(struct watch_sum *sum, int64_t step)
{
    memset(&sum->stats, 0, sizeof(sum->stats));
    sum->step = step;
    sum->seen = sum->with_stats = 0;
    sum->error = 0;
}

static void add_to_sum(struct watch_judging *judging, struct watch_cover *cover,
                       const struct gd_observation *seen)
{
    struct watch_sum *sum = &cover->sum;
    if (sum->step != judging->step) {
        restart_sum(sum, judging->step);
    }
    sum->seen++;
    if (seen->stats) {
        join_stats(&sum->stats, seen->stats);
        sum->with_stats++;
    }
    sum->error |= seen->error;
    if (!judging->recheck && sum->seen == sum->expected) {
        judge_sum(judging, cover);
    }
}

void watching_sums_begin(struct gd_watching *w)
{
    for (size_t i = 0; i < w->cover_count; i++) {
        restart_sum(&w->covers[i].sum, INT64_MIN);
    }
}

void watching_sums_end(struct watch_judging *judging)
{
    for (size_t i = 0; i < judging->w->cover_count; i++) {
        if (judging->w->covers[i].sum.seen) {
            judge_sum(judging, &judging->w->covers[i]);
        }
    }
    watching_sums_begin(judging->w);
}

void gd_watch_forget(struct gd_session *session)
{
    struct gd_watching *w = session->watching;
    if (!w) {
        return;
    }
    for (size_t i = 0; i < w->memory_count; i++) {
        w->memory[i] = (struct watch_memory){.hit_step = INT64_MIN};
    }
    for (size_t i = 0; i < w->series_count; i++) {
        w->series[i] = (struct gd_series){.seen = 0};
    }
    for (size_t i = 0; i < w->cover_count; i++) {
        w->covers[i].memory = (struct watch_memory){.hit_step = INT64_MIN};
        w->covers[i].sum.series = (struct gd_series){.seen = 0};
        restart_sum(&w->covers[i].sum, INT64_MIN);
    }
}

/* Judges sums whose last values do not come. */
static void judge_open_sums(struct watch_judging *judging)
{
    for (size_t i = 0; i < judging->w->cover_count; i++) {
        struct watch_cover *cover = &judging->w->covers[i];
        if (cover->sum.step == judging->step && cover->sum.seen &&
            cover->sum.seen < cover->sum.expected) {
            judge_sum(judging, cover);
        }
    }
}

/* ---- one value ----------------------------------------------------------------------------- */

/* An expression is judged in the steps that report its metric, not again by the old value. */
static bool is_old(const struct gd_watching *w, const struct gd_watchpoint *watch,
                   const char *scalar, const struct gd_observation *seen)
{
    return scalar && watch->expr && !seen->stats &&
           seen->error & (GD_HIT_NO_VALUE | GD_HIT_NOT_CAPTURED) &&
           gd_session_scalar(w->session, scalar) && gd_expr_has_number(watch->expr, scalar);
}

static void judge_serve(struct watch_judging *judging, size_t tensor,
                        const struct watch_serve *serve, struct gd_observation *seen)
{
    struct gd_watching *w = judging->w;
    const struct watch_tensor *t = &w->tensors[tensor];
    struct watch_cover *cover = &w->covers[t->set->cover[serve->which]];
    seen->range = serve->range;
    if (!cover->watch || is_old(w, cover->watch, t->scalar, seen)) {
        return;
    }
    if (cover->watch->condition && cover->watch->condition->aggregate) {
        add_to_sum(judging, cover, seen);
    } else {
        watching_judge_cover(judging, cover, &(struct watch_place){t->node, t->slot, t->scalar},
                             &w->memory[t->memory + serve->which], seen);
    }
}

/* A tensor without finite elements, where that is normal, has nothing to judge; sums must not wait
 * for it. */
static void count_for_sums(struct watch_judging *judging, const struct watch_set *set,
                           const struct watch_part *part)
{
    const struct gd_observation nothing = {.value_step = -1};
    for (uint32_t i = 0; i < part->serve_count; i++) {
        struct watch_cover *cover = &judging->w->covers[set->cover[part->serve[i].which]];
        if (cover->watch && cover->watch->condition && cover->watch->condition->aggregate) {
            add_to_sum(judging, cover, &nothing);
        }
    }
}

static bool wants_series(const struct gd_watching *w, const struct watch_set *set,
                         const struct watch_part *part)
{
    for (uint32_t i = 0; i < part->serve_count; i++) {
        if (w->covers[set->cover[part->serve[i].which]].wants.want.needs & GD_NEED_SERIES) {
            return true;
        }
    }
    return false;
}

void watching_judge(struct watch_judging *judging, size_t tensor, const struct watch_part *part,
                    struct gd_observation *seen)
{
    struct gd_watching *w = judging->w;
    const struct watch_tensor *t = &w->tensors[tensor];
    struct gd_numbers numbers = {w->session, judging->step};
    const struct gd_stats *stats = seen->stats;
    struct gd_stats finite;
    seen->step = judging->step;
    seen->scalar = gd_numbers_get;
    seen->scalar_ctx = &numbers;
    seen->series = t->series == UINT32_MAX ? NULL : &w->series[t->series];
    bool intended = seen->stats && !t->set->excluded &&
                    watching_is_intended(w, &w->tensors[tensor], part, seen);
    judging->other = judging->other || !intended || !watching_stays_intended(w, t);
    if (seen->stats && (t->set->excluded || intended)) {
        if (!leave_out_nonfinite(seen, &finite)) {
            count_for_sums(judging, t->set, part);
            return;
        }
        seen->stats = &finite;
    }
    for (uint32_t i = 0; i < part->serve_count; i++) {
        judge_serve(judging, tensor, &part->serve[i], seen);
    }
    if (seen->series && stats && !judging->recheck && wants_series(w, t->set, part)) {
        gd_series_add(&w->series[t->series], seen->stats, judging->step);
    }
    seen->scalar_ctx = NULL;
    seen->stats = stats;
}

/* ---- what a plan reports ------------------------------------------------------------------- */

struct sorted {
    uint32_t order;
    gd_node_id node;
    uint32_t slot;
    uint32_t index;
};

static int compare_sorted(const void *a, const void *b)
{
    const struct sorted *x = a, *y = b;

    return GD_ORDER(x->order, y->order)
               ?: GD_ORDER(x->node, y->node)
               ?: GD_ORDER(x->slot, y->slot)
               ?: GD_ORDER(x->index, y->index);
}

/* Indexes of the values in execution order; parameters, which have none, come first: they existed
 * before anything ran. NULL: out of memory; then they are handled in order of arrival. */
static struct sorted *sort_values(const struct gd_session *session,
                                  const struct gd_watch_value *values, size_t count)
{
    struct sorted *sorted = count > 1 ? malloc(count * sizeof(*sorted)) : NULL;
    for (size_t i = 0; sorted && i < count; i++) {
        uint32_t order = UINT32_MAX; /* scalars, last */
        if (values[i].node != GD_NO_NODE) {
            order = gd_graph_order(session->graph, values[i].node) + 1; /* GD_NO_ORDER: 0 */
        }
        sorted[i] = (struct sorted){order, values[i].node, values[i].slot, (uint32_t)i};
    }
    if (sorted) {
        qsort(sorted, count, sizeof(*sorted), compare_sorted);
    }
    return sorted;
}

/* A metric may belong to the step before the one at whose end it is seen. */
static int64_t belongs_to(const struct gd_watch_value *value, int64_t step)
{
    return value->scalar && value->stats ? value->value_step : step;
}

/* Whether the statistics have what a part of the tensor's set needs. */
static bool has_needs(const struct watch_set *set, const struct watch_part *part,
                      const struct gd_stats *stats)
{
    const struct watch_recipe *recipe = part->recipe;
    bool ranges = recipe->options.range_count == 0 ||
                  (set->part_count == 1 && stats->range_count == recipe->options.range_count);
    return ranges && (!recipe->against_previous || stats->has_prev) &&
           (!recipe->dead_steps || stats->units);
}

/* Judges a value that was on its way when its plan was replaced, for what it still serves. One of a
 * node that has just run comes again at the end of the step, if it is judged there. */
static void judge_late(struct watch_judging *judging, const struct gd_watch_value *value,
                       bool exact, struct gd_observation *seen)
{
    struct gd_watching *w = judging->w;
    size_t tensor = watching_tensor(w, value->node, value->slot, value->scalar);
    if (tensor == SIZE_MAX || value->plan == 0 || value->plan > w->next_plan) {
        return;
    }
    const struct watch_set *set = w->tensors[tensor].set;
    for (uint32_t i = 0; i < set->part_count; i++) {
        const struct watch_part *part = &set->part[i];
        if ((part->exact || !exact) && (!value->stats || has_needs(set, part, value->stats))) {
            watching_judge(judging, tensor, part, seen);
        }
    }
}

static void judge_value(struct watch_judging *judging, const struct gd_watch_value *value,
                        bool exact)
{
    struct gd_watching *w = judging->w;
    const struct watch_plan *plan = watching_plan(w, value->plan);
    size_t index = plan ? watching_item(plan, value->node, value->slot, value->scalar) : SIZE_MAX;
    struct gd_observation seen = {.stats = value->stats,
                                  .error = value->error,
                                  .dtype = value->dtype,
                                  .value_step = value->value_step};
    int64_t step = judging->step;
    judging->step = belongs_to(value, step);
    if (index != SIZE_MAX) {
        watching_judge(judging, plan->items[index].tensor, plan->items[index].part, &seen);
    } else {
        judging->other = true;
        judge_late(judging, value, exact, &seen);
    }
    judging->step = step;
}

/* Infinities that are known to be intended are not reported again, so they are counted where the
 * values of exact plans are recorded. */
static void count_intended(struct gd_watching *w, const struct gd_watch_value *value, int64_t step)
{
    const struct gd_observation seen = {.stats = value->stats, .step = belongs_to(value, step)};
    bool infinite = value->stats && (value->stats->pos_inf || value->stats->neg_inf);
    const struct watch_plan *plan = infinite ? watching_plan(w, value->plan) : NULL;
    if (!plan || !plan->exact) {
        return;
    }
    size_t index = watching_item(plan, value->node, value->slot, value->scalar);
    if (index != SIZE_MAX && w->tensors[plan->items[index].tensor].intended_step) {
        watching_is_intended(w, &w->tensors[plan->items[index].tensor], plan->items[index].part,
                             &seen);
    }
}

bool gd_watch_on_values(struct gd_session *session, const struct gd_watch_moment *moment,
                        const struct gd_watch_value *values, size_t count, char *why, size_t size)
{
    struct watch_judging judging = {
        .w = session->watching, .step = moment->step, .why = why, .size = size};
    if (why && size) {
        why[0] = '\0';
    }
    session_reach(session, moment->step);
    for (size_t i = 0; i < count; i++) {
        gd_session_history_add(session, &values[i], belongs_to(&values[i], moment->step));
    }
    for (size_t i = 0; judging.w && moment->record && i < count; i++) {
        count_intended(judging.w, &values[i], moment->step);
    }
    if (!judging.w || moment->record) {
        return false;
    }
    struct sorted *sorted = sort_values(session, values, count);
    judging.w->judging++;
    for (size_t i = 0; i < count; i++) {
        judge_value(&judging, &values[sorted ? sorted[i].index : i], moment->exact);
    }
    if (moment->complete) {
        judge_open_sums(&judging);
    }
    watching_end_judging(judging.w);
    free(sorted);
    if (moment->meant && judging.other) {
        *moment->meant = false;
    }
    return judging.stop;
}

/* ---- numbers that no plan watches ---------------------------------------------------------- */

static void judge_scalar(struct watch_judging *judging, struct watch_cover *cover,
                         const struct gd_scalar *scalar)
{
    struct gd_numbers numbers = {judging->w->session, judging->step};
    struct gd_stats stats;
    struct gd_observation seen = {.stats = &stats,
                                  .dtype = GD_FLOAT64,
                                  .range = -1,
                                  .step = judging->step,
                                  .value_step = scalar->step,
                                  .series = &cover->sum.series,
                                  .scalar = gd_numbers_get,
                                  .scalar_ctx = &numbers};
    gd_number_stats(scalar->value, &stats);
    watching_judge_cover(judging, cover, &(struct watch_place){GD_NO_NODE, 0, cover->scalar},
                         &cover->memory, &seen);
    if (!judging->recheck) {
        gd_series_add(&cover->sum.series, &stats, judging->step);
    }
}

/* A recheck also judges those that a plan watches: no report of a plan will come. */
void watching_judge_number(struct watch_judging *judging, const struct gd_scalar *scalar)
{
    struct gd_watching *w = judging->w;
    for (size_t i = 0; i < w->cover_count; i++) {
        struct watch_cover *cover = &w->covers[i];
        bool ours = cover->mode == WATCH_MODE_SCALAR ||
                    (judging->recheck && cover->mode == WATCH_MODE_PLAN);
        if (ours && cover->scalar && strcmp(cover->scalar, scalar->name) == 0) {
            judge_scalar(judging, cover, scalar);
        }
    }
}

void watching_on_scalar(struct gd_watching *w, const struct gd_scalar *scalar)
{
    struct gd_session *session = w->session;
    struct watch_judging judging = {.w = w, .step = scalar->step};
    w->judging++;
    watching_judge_number(&judging, scalar);
    watching_end_judging(w);
    if (judging.stop && gd_over_ranks_has(session, scalar->name)) {
        over_ranks_on_hit(session);
    } else if (judging.stop && session->target && session->state == GD_RUNNING) {
        gd_target_interrupt(session->target, NULL);
    }
}
