// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/metric/over_ranks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/metric/over_ranks_impl.h"
#include "engine/watch/watch_impl.h"

#define PATIENCE 20 /* seconds that a rank waits for others that run */

/* ---- the metrics ----------------------------------------------------------------------------- */

struct over_metric *over_ranks_find(const struct gd_ranks *ranks, const char *name)
{
    struct over_metric *metric = ranks && ranks->over ? ranks->over->first : NULL;

    while (metric && strcmp(metric->spec.name, name) != 0) {
        metric = metric->next;
    }
    return metric;
}

struct over_rank *over_ranks_rank(const struct over_series *series, int session)
{
    struct over_rank *rank = series->ranks;

    while (rank && rank->session != session) {
        rank = rank->next;
    }
    return rank;
}

static void free_metric(struct over_metric *metric)
{
    for (int i = 0; i < 2; i++) {
        struct over_series *series = &metric->of[i];
        while (series->ranks) {
            struct over_rank *next = series->ranks->next;
            over_ranks_drop_parts(metric, series->ranks);
            free(series->ranks);
            series->ranks = next;
        }
        gd_metric_destroy(series->sum);
    }
    free(metric->definition);
    free(metric);
}

static void delete_metrics(struct gd_ranks *ranks, const char *name)
{
    struct over_metric **at = ranks->over ? &ranks->over->first : NULL;

    while (at && *at) {
        struct over_metric *metric = *at;
        if (name && strcmp(metric->spec.name, name) != 0) {
            at = &metric->next;
        } else {
            *at = metric->next;
            free_metric(metric);
        }
    }
}

void over_ranks_free(struct gd_ranks *ranks)
{
    delete_metrics(ranks, NULL);
    free(ranks->over);
    ranks->over = NULL;
}

/* Watchpoints on it are judged here from now on, or no longer. */
static void refresh_watchpoints(const struct gd_ranks *ranks)
{
    const struct gd_debugger *debugger = ranks->debugger;

    for (size_t i = 0; i < debugger->session_count; i++) {
        struct gd_session *session = debugger->sessions[i];
        if (gd_ranks_of(session) == ranks && gd_session_is_live(session)) {
            watching_refresh(session, 0, true);
            happenings_push(session);
        }
    }
}

/* A rank for each live session of the job. */
static bool add_ranks(const struct gd_ranks *ranks, struct over_series *series)
{
    const struct gd_debugger *debugger = ranks->debugger;

    for (size_t i = 0; i < debugger->session_count; i++) {
        const struct gd_session *session = debugger->sessions[i];
        if (gd_ranks_of(session) != ranks || !gd_session_is_live(session)) {
            continue;
        }
        struct over_rank *rank = calloc(1, sizeof(*rank));
        if (!rank) {
            return false;
        }
        rank->session = session->number;
        rank->rank = session->peer.rank;
        rank->next = series->ranks;
        series->ranks = rank;
    }
    return true;
}

static struct over_metric *make_metric(const struct gd_ranks *ranks,
                                       const struct gd_metric_spec *spec)
{
    struct over_metric *metric = calloc(1, sizeof(*metric));
    struct gd_buf text = GD_BUF_INIT(1 << 14);

    if (!metric) {
        return NULL;
    }
    gd_metric_text(spec, &text);
    metric->spec = *spec;
    metric->definition = strdup(gd_buf_text(&text));
    gd_buf_deinit(&text);
    bool ok = metric->definition != NULL;
    for (int i = 0; i < 2 && ok; i++) {
        ok = gd_metric_create(spec, &metric->of[i].sum, NULL) == GD_OK &&
             add_ranks(ranks, &metric->of[i]);
    }
    if (!ok) {
        free_metric(metric);
    }
    return ok ? metric : NULL;
}

int gd_over_ranks_define(struct gd_ranks *ranks, const struct gd_metric_spec *spec,
                         struct gd_err *err)
{
    ranks->over = ranks->over ? ranks->over : calloc(1, sizeof(*ranks->over));
    struct over_metric *metric = ranks->over ? make_metric(ranks, spec) : NULL;

    if (!metric) {
        return gd_fail_nomem(err);
    }
    delete_metrics(ranks, spec->name);
    metric->next = ranks->over->first;
    ranks->over->first = metric;
    refresh_watchpoints(ranks);
    return GD_OK;
}

void gd_over_ranks_delete(struct gd_ranks *ranks, const char *name)
{
    if (gd_over_ranks_any(ranks)) {
        delete_metrics(ranks, name);
        refresh_watchpoints(ranks);
    }
}

void gd_over_ranks_clear(struct gd_ranks *ranks)
{
    for (struct over_metric *m = ranks->over ? ranks->over->first : NULL; m; m = m->next) {
        for (int i = 0; i < 2; i++) {
            gd_metric_clear(m->of[i].sum);
            for (struct over_rank *rank = m->of[i].ranks; rank; rank = rank->next) {
                over_ranks_drop_parts(m, rank); /* they were counted before */
                rank->counted = false;
            }
        }
    }
}

bool gd_over_ranks_any(const struct gd_ranks *ranks)
{
    return ranks->over && ranks->over->first;
}

bool gd_over_ranks_result(const struct gd_ranks *ranks, const char *name, bool evaluation,
                          struct gd_over_result *ret)
{
    const struct over_metric *metric = over_ranks_find(ranks, name);

    if (!metric) {
        return false;
    }
    const struct over_series *series = &metric->of[evaluation];
    *ret = (struct gd_over_result){.metric = series->sum,
                                   .step = series->any ? series->key.step : 0,
                                   .world = ranks->world_size,
                                   .why = series->why};
    for (const struct over_rank *rank = series->ranks; rank; rank = rank->next) {
        ret->ranks += rank->counted;
    }
    return true;
}

/* ---- names ----------------------------------------------------------------------------------- */

/* NAME, or NAME_CLASS where classes have numbers: the script may have others like that. */
static bool is_number_of(const char *number, const struct gd_metric_spec *spec)
{
    size_t len = strlen(spec->name);
    const char *end = number + len;

    if (strncmp(number, spec->name, len) != 0) {
        return false;
    }
    return !*end || (spec->average == GD_AVERAGE_NONE && *end == '_' && end[1] &&
                     end[1 + strspn(end + 1, "0123456789")] == '\0');
}

bool gd_over_ranks_has(const struct gd_session *session, const char *number)
{
    const struct gd_ranks *ranks = gd_ranks_of(session);
    const struct over_metric *metric = ranks && ranks->over ? ranks->over->first : NULL;
    const char *bare = strncmp(number, "eval_", 5) == 0 ? number + 5 : number;

    while (metric && !is_number_of(number, &metric->spec) && !is_number_of(bare, &metric->spec)) {
        metric = metric->next;
    }
    return metric != NULL;
}

bool gd_over_ranks_unknown(const struct gd_session *session, const char *number)
{
    const struct gd_ranks *ranks = gd_ranks_of(session);
    const struct over_metric *metric = ranks && ranks->over ? ranks->over->first : NULL;
    bool unknown = metric && session->impl->undecided && gd_over_ranks_has(session, number);

    for (; metric && !unknown; metric = metric->next) {
        unknown = (is_number_of(number, &metric->spec) && metric->of[0].why[0]) ||
                  (strncmp(number, "eval_", 5) == 0 && is_number_of(number + 5, &metric->spec) &&
                   metric->of[1].why[0]);
    }
    return unknown;
}

bool gd_over_ranks_speaks(const struct gd_session *session)
{
    const struct gd_ranks *ranks = gd_ranks_of(session);
    const struct gd_debugger *debugger = session->debugger;
    bool lowest = gd_session_is_live(session);

    for (size_t i = 0; ranks && i < debugger->session_count && lowest; i++) {
        const struct gd_session *other = debugger->sessions[i];
        lowest = gd_ranks_of(other) != ranks || !gd_session_is_live(other) ||
                 other->peer.rank >= session->peer.rank;
    }
    return lowest;
}

/* ---- what comes ------------------------------------------------------------------------------ */

/* Whether nothing that the rank counted waits for others. */
static bool is_settled(const struct gd_session *session)
{
    const struct gd_ranks *ranks = gd_ranks_of(session);
    const struct over_metric *metric = ranks && ranks->over ? ranks->over->first : NULL;
    bool settled = true;

    for (; metric && settled; metric = metric->next) {
        for (int i = 0; i < 2 && settled; i++) {
            const struct over_rank *rank = over_ranks_rank(&metric->of[i], session->number);
            settled = !rank || !rank->first;
        }
    }
    return settled;
}

static void decide_event(struct gd_session *session)
{
    session->impl->awaits = false;
    happenings_decide(session);
}

/* Observers of a new number may bring another part. */
static void add_up(struct gd_ranks *ranks)
{
    struct over_ranks *over = ranks->over;
    struct gd_debugger *debugger = ranks->debugger;

    if (over->busy) {
        over->again = true;
        return;
    }
    over->busy = true;
    do {
        over->again = false;
        for (struct over_metric *m = over->first; m; m = m->next) {
            over_ranks_add_up(ranks, m, true);
            over_ranks_add_up(ranks, m, false);
        }
    } while (over->again);
    over->busy = false;
    for (size_t i = 0; i < debugger->session_count; i++) {
        struct gd_session *session = debugger->sessions[i];
        if (gd_ranks_of(session) == ranks && session->impl->awaits && is_settled(session)) {
            decide_event(session);
        }
    }
    ranks_advance(ranks); /* a watchpoint on the number may have fired */
}

static struct over_key key_of(const struct over_metric *metric, const struct over_rank *rank,
                              const struct gd_metric_part *part, int session)
{
    struct over_key key = {.training = rank->newest.training, .step = part->step};

    if (part->evaluation) {
        const struct over_rank *training = over_ranks_rank(&metric->of[0], session);
        key.training = training ? training->newest.training : 0;
        key.after = training && training->any ? training->newest.step : -1;
        key.major = part->step;
        key.minor =
            rank->any && rank->newest.training == key.training && rank->newest.major == key.major
                ? rank->newest.minor + 1
                : 0;
    } else {
        key.training += rank->any && part->step < rank->newest.step;
        key.major = metric->spec.by_step ? 0 : (int64_t)(part->epoch & INT64_MAX);
        key.minor = part->step;
    }
    return key;
}

void gd_session_on_metric_part(struct gd_session *session, const struct gd_metric_part *part)
{
    struct gd_ranks *ranks = gd_ranks_of(session);
    struct over_metric *metric = ranks && ranks->over ? ranks->over->first : NULL;

    while (metric && strcmp(metric->definition, part->definition) != 0) {
        metric = metric->next;
    }
    struct over_rank *rank =
        metric ? over_ranks_rank(&metric->of[part->evaluation], session->number) : NULL;
    if (!rank || rank->ended || part->step < 0 || session_has_ended(session)) {
        return; /* of a metric that was deleted since */
    }
    struct over_key key = key_of(metric, rank, part, session->number);
    session_reach(session, part->step);
    over_ranks_keep(metric, rank, &key, part);
    add_up(ranks);
}

void over_ranks_on_end(struct gd_session *session)
{
    struct gd_ranks *ranks = gd_ranks_of(session);

    if (!ranks || !ranks->over) {
        return;
    }
    session->impl->awaits = false;
    for (struct over_metric *m = ranks->over->first; m; m = m->next) {
        for (int i = 0; i < 2; i++) {
            struct over_rank *rank = over_ranks_rank(&m->of[i], session->number);
            if (rank) {
                rank->ended = true;
                rank->failed = session->state == GD_LOST || session->failed;
            }
        }
    }
    add_up(ranks);
}

void over_ranks_on_hit(struct gd_session *session)
{
    struct session_rank *rank = &session->impl->rank;
    bool runs = session->state == GD_RUNNING;

    if (runs) {
        rank->hit = true;
        gd_target_interrupt_at(session->target, 1, NULL); /* the end of the step that runs */
    } else if (rank->ranks->phase == RANKS_RUN && session->state == GD_STOPPED) {
        rank->cause = rank->owes = true;
        session->stop.reason = GD_STOP_HIT;
    }
}

/* ---- waiting --------------------------------------------------------------------------------- */

bool over_ranks_await(struct gd_session *session)
{
    if (is_settled(session)) {
        return false;
    }
    session->impl->awaits = true;
    session->impl->awaits_since = debugger_now(session->debugger);
    return true;
}

void over_ranks_release(struct gd_session *session)
{
    char text[200];

    if (!session->impl->awaits) {
        return;
    }
    snprintf(text, sizeof(text),
             "metrics over ranks are unknown at step %lld: not all ranks have ended it",
             (long long)session->impl->happened.step);
    gd_session_on_event(session, "unseen", text, session->impl->happened.step, GD_NO_NODE);
    session->impl->undecided = true;
    decide_event(session);
    session->impl->undecided = false;
}

/* Ranks that have not evaluated by now do not, or have never reported a loss; true: there are
 * some. */
static bool give_up(struct gd_ranks *ranks, const struct gd_session *session, bool evaluation)
{
    bool some = false;

    for (struct over_metric *m = ranks->over->first; m; m = m->next) {
        const struct over_rank *own = over_ranks_rank(&m->of[evaluation], session->number);
        bool waits = own && own->first && (evaluation || m->spec.kind == GD_METRIC_LOSS);
        for (struct over_rank *r = m->of[evaluation].ranks; waits && r; r = r->next) {
            if (!r->first && !r->ended && !r->absent && (evaluation || !r->any)) {
                r->absent = some = true;
            }
        }
    }
    return some;
}

static bool others_run(const struct gd_ranks *ranks)
{
    const struct gd_debugger *debugger = ranks->debugger;
    bool run = true;

    for (size_t i = 0; i < debugger->session_count && run; i++) {
        const struct gd_session *session = debugger->sessions[i];
        run = gd_ranks_of(session) != ranks || !gd_session_is_live(session) ||
              session->state == GD_RUNNING;
    }
    return run;
}

void over_ranks_tick(struct gd_ranks *ranks)
{
    struct gd_debugger *debugger = ranks->debugger;
    double now = debugger_now(debugger), patience = debugger->settings.rank_patience;

    for (size_t i = 0; ranks->over && i < debugger->session_count; i++) {
        struct gd_session *session = debugger->sessions[i];
        double waited = now - session->impl->awaits_since;
        if (gd_ranks_of(session) != ranks || !session->impl->awaits || waited < patience) {
            continue;
        }
        if (give_up(ranks, session, true) ||
            (waited >= PATIENCE && give_up(ranks, session, false))) {
            add_up(ranks);
        } else if (waited >= PATIENCE || !others_run(ranks)) {
            over_ranks_release(session);
        }
    }
}
