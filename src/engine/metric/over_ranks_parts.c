// SPDX-License-Identifier: GPL-3.0-or-later
/* What the ranks counted, in the order of steps: kept until all have passed a step, then added. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "engine/metric/over_ranks_impl.h"

#define MOST_BYTES ((size_t)64 << 20) /* of a metric, that wait */

int over_ranks_compare(const struct over_key *a, const struct over_key *b)
{
    return GD_ORDER(a->training, b->training)
               ?: GD_ORDER(a->major, b->major) ?: GD_ORDER(a->minor, b->minor);
}

static void drop_first(struct over_metric *metric, struct over_rank *rank)
{
    struct over_part *part = rank->first;

    rank->first = part->next;
    metric->bytes -= part->size;
    free(part->missing);
    free(part);
}

void over_ranks_drop_parts(struct over_metric *metric, struct over_rank *rank)
{
    while (rank->first) {
        drop_first(metric, rank);
    }
}

void over_ranks_keep(struct over_metric *metric, struct over_rank *rank, const struct over_key *key,
                     const struct gd_metric_part *part)
{
    size_t len = strlen(part->counts) + 1, size = sizeof(struct over_part) + len;
    struct over_part *kept = metric->bytes + size <= MOST_BYTES ? malloc(size) : NULL;
    char *missing = part->missing[0] ? strdup(part->missing) : NULL;

    rank->newest = *key;
    rank->any = true;
    rank->absent = false;
    if (!kept || rank->too_far || (part->missing[0] && !missing)) {
        rank->too_far = true;
        free(missing);
        free(kept);
        return;
    }
    *kept = (struct over_part){.key = *key, .size = size, .late = part->late, .missing = missing};
    memcpy(kept->counts, part->counts, len);
    if (rank->first) {
        rank->last->next = kept;
    } else {
        rank->first = kept;
    }
    rank->last = kept;
    metric->bytes += size;
}

/* ---- which step is next ---------------------------------------------------------------------- */

static const struct over_key *first_key(const struct over_series *series)
{
    const struct over_key *first = NULL;

    for (const struct over_rank *rank = series->ranks; rank; rank = rank->next) {
        if (rank->first && (!first || over_ranks_compare(&rank->first->key, first) < 0)) {
            first = &rank->first->key;
        }
    }
    return first;
}

/* An evaluation after a step is over when the rank has counted a later one. */
static bool is_beyond(const struct over_rank *training, const struct over_key *key)
{
    const struct over_key *at = training ? &training->newest : NULL;

    return at && training->any &&
           (at->training > key->training ||
            (at->training == key->training && at->step > key->after));
}

static bool has_passed(const struct over_metric *metric, bool evaluation,
                       const struct over_rank *rank, const struct over_key *key)
{
    return rank->ended || rank->absent ||
           (rank->any && over_ranks_compare(&rank->newest, key) >= 0) ||
           (evaluation && is_beyond(over_ranks_rank(&metric->of[0], rank->session), key));
}

static bool all_passed(const struct over_metric *metric, bool evaluation,
                       const struct over_key *key)
{
    bool all = true;

    for (const struct over_rank *r = metric->of[evaluation].ranks; r && all; r = r->next) {
        all = has_passed(metric, evaluation, r, key);
    }
    return all;
}

/* ---- adding ---------------------------------------------------------------------------------- */

static void set_why(struct over_series *series, const char *why)
{
    if (!series->why[0]) {
        snprintf(series->why, sizeof(series->why), "%s", why);
    }
}

static void note_missing(struct over_series *series, const struct over_rank *rank,
                         const struct over_part *part)
{
    char why[sizeof(series->why)];

    if (part->missing) {
        snprintf(why, sizeof(why), "rank %d: %.200s", rank->rank, part->missing);
        set_why(series, why);
    }
}

static void add_part(struct over_series *series, struct over_rank *rank,
                     const struct over_part *part)
{
    struct gd_err err = {.text = ""};
    char why[sizeof(series->why)];

    note_missing(series, rank, part);
    if (!part->counts[0]) {
        return;
    }
    series->fresh = true;
    series->late = series->late || part->late;
    rank->counted = true;
    if (gd_metric_merge(series->sum, part->counts, &err) != GD_OK) {
        snprintf(why, sizeof(why), "rank %d: %.200s", rank->rank, err.text);
        set_why(series, why);
    }
}

/* Ranks whose samples nobody knows. */
static void check_ranks(const struct gd_ranks *ranks, struct over_series *series)
{
    char why[sizeof(series->why)];
    int known = 0;

    for (const struct over_rank *rank = series->ranks; rank; rank = rank->next) {
        known++;
        if (rank->failed || rank->too_far) {
            snprintf(why, sizeof(why),
                     rank->failed ? "rank %d is gone" : "rank %d is too far ahead", rank->rank);
            set_why(series, why);
        }
    }
    if (known < ranks->world_size) {
        snprintf(why, sizeof(why), "%d of %d ranks were connected when it was defined", known,
                 ranks->world_size);
        set_why(series, why);
    }
}

static void clear_sum(struct over_series *series)
{
    gd_metric_clear(series->sum);
    series->why[0] = '\0';
    for (struct over_rank *rank = series->ranks; rank; rank = rank->next) {
        rank->counted = false;
    }
}

static void drop_key(struct over_metric *metric, const struct over_series *series,
                     const struct over_key *key)
{
    for (struct over_rank *rank = series->ranks; rank; rank = rank->next) {
        while (rank->first && over_ranks_compare(&rank->first->key, key) <= 0) {
            drop_first(metric, rank);
        }
    }
}

static bool is_same_sum(const struct over_key *a, const struct over_key *b)
{
    return a->training == b->training && a->major == b->major;
}

static void add_key(struct gd_ranks *ranks, struct over_metric *metric, bool evaluation,
                    const struct over_key *key)
{
    struct over_series *series = &metric->of[evaluation];
    bool each = evaluation || metric->spec.by_step;
    bool same =
        series->any && is_same_sum(&series->key, key) && (!each || series->key.minor == key->minor);

    if (!same) {
        clear_sum(series);
    }
    if (!series->any || series->key.training != key->training) {
        series->shown = INT64_MIN;
    }
    series->key = *key;
    series->any = true;
    series->fresh = series->late = false;
    for (struct over_rank *rank = series->ranks; rank; rank = rank->next) {
        bool gave = false;
        while (rank->first && over_ranks_compare(&rank->first->key, key) <= 0) {
            add_part(series, rank, rank->first);
            drop_first(metric, rank);
            gave = true;
        }
        if (!gave && rank->first && is_same_sum(&rank->first->key, key)) {
            note_missing(series, rank, rank->first); /* perhaps those of this step */
        }
    }
    check_ranks(ranks, series);
}

/* ---- the number ------------------------------------------------------------------------------ */

static void tell_number(struct gd_ranks *ranks, const char *name, double value, int64_t step,
                        bool late)
{
    struct gd_debugger *debugger = ranks->debugger;

    for (size_t i = 0; i < debugger->session_count; i++) {
        struct gd_session *session = debugger->sessions[i];
        if (gd_ranks_of(session) == ranks && gd_session_is_live(session)) {
            (late ? gd_session_on_late_scalar : gd_session_on_scalar)(session, name, value, step);
        }
    }
}

/* A line for the job. */
static void tell_line(struct gd_ranks *ranks, const char *text, int64_t step)
{
    struct gd_debugger *debugger = ranks->debugger;

    for (size_t i = 0; i < debugger->session_count; i++) {
        if (gd_ranks_of(debugger->sessions[i]) == ranks &&
            gd_over_ranks_speaks(debugger->sessions[i])) {
            gd_session_on_event(debugger->sessions[i], "unseen", text, step, GD_NO_NODE);
            return;
        }
    }
}

/* Once for each reason. */
static void tell_why(struct gd_ranks *ranks, struct over_metric *metric, bool evaluation)
{
    struct over_series *series = &metric->of[evaluation];
    char text[500];

    if (strcmp(series->told, series->why) == 0) {
        return;
    }
    memcpy(series->told, series->why, sizeof(series->told));
    snprintf(text, sizeof(text), "metric %s%s has no number over all ranks from step %lld on: %s",
             evaluation ? "eval_" : "", metric->spec.name, (long long)series->key.step,
             series->why);
    tell_line(ranks, text, series->key.step);
}

/* The number is of all samples, but not every rank had some. */
static void tell_count(struct gd_ranks *ranks, struct over_metric *metric, bool evaluation)
{
    struct over_series *series = &metric->of[evaluation];
    char text[300];
    int count = 0;

    for (const struct over_rank *rank = series->ranks; rank; rank = rank->next) {
        count += rank->counted;
    }
    count = count == ranks->world_size ? 0 : count;
    if (count != series->told_ranks && count > 0) {
        snprintf(text, sizeof(text),
                 "metric %s%s is over %d of %d ranks from step %lld on: the others have %s",
                 evaluation ? "eval_" : "", metric->spec.name, count, ranks->world_size,
                 (long long)series->key.step, evaluation ? "not evaluated" : "no more samples");
        tell_line(ranks, text, series->key.step);
    }
    series->told_ranks = count;
}

static void show_number(struct gd_ranks *ranks, struct over_metric *metric, bool evaluation)
{
    struct over_series *series = &metric->of[evaluation];
    struct gd_metric_number number[GD_METRIC_SHOWN];
    int64_t step = series->key.step;
    size_t count = gd_metric_numbers(series->sum, number, GD_METRIC_SHOWN);

    if (series->why[0]) {
        tell_why(ranks, metric, evaluation);
        return;
    }
    if (!series->fresh || (evaluation ? step < series->shown : step <= series->shown)) {
        return;
    }
    series->shown = step;
    series->told[0] = '\0';
    tell_count(ranks, metric, evaluation);
    for (size_t i = 0; i < count && i < GD_METRIC_SHOWN; i++) {
        char name[sizeof(number->name) + 8];
        snprintf(name, sizeof(name), "%s%.71s", evaluation ? "eval_" : "", number[i].name);
        tell_number(ranks, name, number[i].value, step, series->late);
    }
}

void over_ranks_add_up(struct gd_ranks *ranks, struct over_metric *metric, bool evaluation)
{
    struct over_series *series = &metric->of[evaluation];
    const struct over_key *first;

    while ((first = first_key(series)) && all_passed(metric, evaluation, first)) {
        struct over_key key = *first;
        if (series->any && over_ranks_compare(&key, &series->key) < 0) {
            drop_key(metric, series, &key); /* of an evaluation that is shown without it */
            continue;
        }
        add_key(ranks, metric, evaluation, &key);
        show_number(ranks, metric, evaluation);
    }
}
