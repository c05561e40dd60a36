// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Judging at a stop: everything again when the user asks for it, and conditions on initial weights
 * before the first step. Statistics come from the target, or are computed here from fetched values
 * if a watchpoint needs more than the target gives by default.
 */
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "engine/session_impl.h"
#include "engine/watch/watch_impl.h"

#define ASKED_AT_ONCE 16

struct watch_recheck {
    struct gd_watching *w;
    bool initial; /* only what is meant for the first stop */
    struct gd_tensor_ref *places;
    size_t count, next, waiting;
    bool asking;  /* answers that come at once do not ask for more */
    bool process; /* waits for what the process finds itself */
    int64_t step;
    uint64_t sequence; /* of the stop */
    size_t hits;
    struct gd_hit *old; /* earlier hits of this step: found again, put back or dropped */
    size_t old_count;
    struct gd_err err; /* code GD_OK: none */
    void (*fn)(void *ctx, size_t hits, const struct gd_err *err);
    void *ctx;
};

struct question { /* for one tensor */
    struct watch_recheck *recheck;
    struct gd_tensor_ref ref;
    struct gd_tensor *current; /* while the previous value is fetched */
    int64_t step;
};

static void ask_on(struct watch_recheck *recheck);

/* ---- what is judged ------------------------------------------------------------------------ */

static bool is_before_first_step(const struct gd_session *session)
{
    return session->state == GD_STOPPED && session->stop.step <= 0;
}

static bool takes_part(const struct watch_recheck *recheck, const struct watch_cover *cover)
{
    if (!cover->watch || cover->problem) {
        return false;
    }
    if (recheck->initial) {
        return cover->mode == WATCH_MODE_INITIAL && cover->initial == INITIAL_UNDER_WAY;
    }
    return cover->mode == WATCH_MODE_PLAN ||
           (cover->mode == WATCH_MODE_INITIAL && is_before_first_step(recheck->w->session));
}

static bool node_takes_part(const struct watch_recheck *recheck, gd_node_id node)
{
    const uint32_t *sites = NULL;
    uint32_t count = watching_covers_of(recheck->w, node, &sites);
    for (uint32_t i = 0; i < count; i++) {
        if (takes_part(recheck, &recheck->w->covers[sites[i]])) {
            return true;
        }
    }
    return false;
}

static bool add_place(struct watch_recheck *recheck, size_t *cap, gd_node_id node, uint32_t slot)
{
    if (!gd_grow_list(&recheck->places, recheck->count, cap, sizeof(*recheck->places))) {
        return false;
    }
    recheck->places[recheck->count++] =
        (struct gd_tensor_ref){.node = node, .slot = slot, .iter = GD_CURRENT};
    return true;
}

/* In execution order, so that hits are, too; what does not run comes first: it existed before. */
static bool list_places(struct watch_recheck *recheck)
{
    const struct gd_graph *graph = recheck->w->session->graph;
    uint32_t nodes = 0;
    const gd_node_id *order = gd_graph_execution(graph, &nodes);
    size_t cap = 0;
    for (uint64_t i = 0; i < 2 * (uint64_t)nodes; i++) {
        gd_node_id node = order[i % nodes];
        struct gd_node_info info;
        if (!node_takes_part(recheck, node) || !gd_graph_node(graph, node, &info) ||
            (gd_graph_order(graph, node) == GD_NO_ORDER) != (i < nodes)) {
            continue;
        }
        for (uint32_t slot = 0; slot < info.output_count; slot++) {
            if (watching_slot_ok(recheck->w->session, node, slot) &&
                !add_place(recheck, &cap, node, slot)) {
                return false;
            }
        }
    }
    return true;
}

/* ---- what was found before ------------------------------------------------------------------ */

static bool is_found_again(const struct gd_session *session, const struct gd_hit *old)
{
    for (size_t i = session->hit_count; i-- > 0;) {
        const struct gd_hit *hit = &session->hits[i];
        if (hit->step == old->step && hit->watchpoint == old->watchpoint &&
            hit->node == old->node && hit->slot == old->slot &&
            strcmp(hit->node_name, old->node_name) == 0) {
            return true;
        }
    }
    return false;
}

static void put_back(struct watch_recheck *recheck, struct gd_hit *old)
{
    struct gd_session *session = recheck->w->session;
    bool stays = old->once || gd_watchpoint_at(session->debugger, old->watchpoint);
    if (old->watchpoint && stays && !is_found_again(session, old)) {
        old->stop_sequence = session->stop.sequence;
        session_put_back_hit(session, old);
    }
    old->watchpoint = 0;
}

/* A value that is gone cannot be judged again: its earlier hits stay. */
static void put_back_of(struct watch_recheck *recheck, const struct gd_tensor_ref *ref)
{
    for (size_t i = 0; i < recheck->old_count; i++) {
        if (recheck->old[i].node == ref->node && recheck->old[i].slot == ref->slot) {
            put_back(recheck, &recheck->old[i]);
        }
    }
}

/* Events do not repeat, temporary watchpoints are gone, and an unfinished recheck decides
 * nothing. */
static void put_back_rest(struct watch_recheck *recheck)
{
    for (size_t i = 0; i < recheck->old_count; i++) {
        if (recheck->old[i].event[0] || recheck->old[i].once || recheck->err.code) {
            put_back(recheck, &recheck->old[i]);
        }
    }
    free(recheck->old);
    recheck->old = NULL;
    recheck->old_count = 0;
}

/* ---- judging ------------------------------------------------------------------------------- */

struct answer { /* the answer for one tensor */
    enum gd_dtype dtype;
    const struct gd_stats *stats;
    struct gd_tensor *current, *previous; /* or NULL: then the statistics are used as they are */
    unsigned error;
    int64_t step;
};

static struct watch_judging begin_judging(struct watch_recheck *recheck)
{
    recheck->w->judging++;
    return (struct watch_judging){.w = recheck->w,
                                  .step = recheck->step,
                                  .recheck = true,
                                  .stop_sequence = recheck->sequence};
}

static void end_judging(struct watch_recheck *recheck, const struct watch_judging *judging)
{
    recheck->hits += judging->hits;
    watching_end_judging(recheck->w);
}

static void observe_value(const struct answer *answer, const struct gd_stats_options *options,
                          bool against_previous, struct gd_stats *stats,
                          struct gd_observation *seen)
{
    struct gd_err err;
    *seen = (struct gd_observation){.stats = answer->stats,
                                    .error = answer->error,
                                    .dtype = answer->dtype,
                                    .range = -1,
                                    .value_step = answer->step};
    if (!answer->current) {
        return;
    }
    const struct gd_tensor *before = against_previous ? answer->previous : NULL;
    if (before && !gd_tensor_is_alike(answer->current, before)) {
        before = NULL;
    }
    int rc = gd_stats_compute(answer->current, before, options, stats, &err);
    seen->stats = rc != GD_OK ? NULL : stats;
    if (rc != GD_OK) {
        seen->error |= rc == GD_ENOMEM ? GD_HIT_NO_MEMORY : GD_HIT_NOT_NUMBERS;
    }
}

/* A part without the covers that do not apply now. */
static void judge_part(struct watch_recheck *recheck, struct watch_judging *judging, size_t tensor,
                       const struct watch_part *part, const struct answer *answer)
{
    const struct gd_watching *w = recheck->w;
    const struct watch_set *set = w->tensors[tensor].set;
    struct watch_serve *serve = malloc((part->serve_count + 1) * sizeof(*serve));
    struct watch_part some = *part;
    struct gd_observation seen;
    struct gd_stats stats;
    if (!serve) {
        return;
    }
    some.serve = serve;
    some.serve_count = 0;
    for (uint32_t i = 0; i < part->serve_count; i++) {
        const struct watch_cover *cover = &w->covers[set->cover[part->serve[i].which]];
        if (takes_part(recheck, cover) &&
            (!cover->wants.age || recheck->w->session->stop.at_step_end)) {
            serve[some.serve_count++] = part->serve[i];
        }
    }
    observe_value(answer, &part->recipe->options, part->recipe->against_previous, &stats, &seen);
    watching_judge(judging, tensor, &some, &seen);
    free(serve);
}

static void judge_initial(struct watch_recheck *recheck, struct watch_judging *judging,
                          const struct gd_tensor_ref *ref, const struct answer *answer)
{
    struct gd_watching *w = recheck->w;
    const uint32_t *sites = NULL;
    uint32_t count = watching_covers_of(w, ref->node, &sites);
    struct gd_observation seen;
    struct gd_stats stats;
    observe_value(answer, NULL, false, &stats, &seen);
    seen.step = recheck->step;
    for (uint32_t i = 0; i < count; i++) {
        struct watch_cover *cover = &w->covers[sites[i]];
        struct watch_memory memory = {.hit_step = INT64_MIN};
        if (cover->mode == WATCH_MODE_INITIAL && takes_part(recheck, cover)) {
            watching_judge_cover(judging, cover, &(struct watch_place){ref->node, ref->slot, NULL},
                                 &memory, &seen);
        }
    }
}

static void judge_answer(struct watch_recheck *recheck, const struct gd_tensor_ref *ref,
                         const struct answer *answer)
{
    struct gd_watching *w = recheck->w;
    struct watch_judging judging = begin_judging(recheck);
    size_t tensor = watching_tensor(w, ref->node, ref->slot, NULL);
    bool have = answer->stats || answer->current;
    w->recheck_missing += !recheck->initial && !have;
    judge_initial(recheck, &judging, ref, answer);
    if (!have) {
        put_back_of(recheck, ref);
    }
    /* A value missing at this stop cannot be judged: that is not worth reporting. */
    const struct watch_set *set =
        tensor == SIZE_MAX || recheck->initial || !have ? NULL : w->tensors[tensor].set;
    for (uint32_t i = 0; set && i < set->part_count; i++) {
        judge_part(recheck, &judging, tensor, &set->part[i], answer);
    }
    end_judging(recheck, &judging);
}

/* ---- asking -------------------------------------------------------------------------------- */

static unsigned error_bit(const struct gd_err *err)
{
    switch (err ? err->code : GD_OK) {
    case GD_OK: return 0;
    case GD_ENOMEM:
    case GD_ELIMIT: return GD_HIT_NO_MEMORY;
    case GD_EUNSUPPORTED: return GD_HIT_NOT_NUMBERS;
    default: return GD_HIT_NO_VALUE;
    }
}

static void finish_question(struct question *question, const struct answer *answer)
{
    struct watch_recheck *recheck = question->recheck;
    const struct gd_session *session = recheck->w->session;
    /* Initial weights are requested all at once, before the training can resume: the answers are of
     * that stop, however late. */
    bool stands = session->stop.sequence == recheck->sequence && session->state == GD_STOPPED;
    if (stands || (recheck->initial && gd_session_is_live(session))) {
        judge_answer(recheck, &question->ref, answer);
    } else if (!recheck->err.code) {
        gd_fail(&recheck->err, GD_ESTATE, "the training resumed before everything was checked");
    }
    gd_tensor_unref(question->current);
    free(question);
    recheck->waiting--;
    ask_on(recheck);
}

static void previous_came(void *ctx, struct gd_tensor *tensor, int64_t step,
                          const struct gd_err *err)
{
    struct question *question = ctx;
    struct answer answer = {.dtype = question->current->dtype,
                            .current = question->current,
                            .previous = err ? NULL : tensor,
                            .step = question->step};
    (void)step;
    finish_question(question, &answer);
}

static void current_came(void *ctx, struct gd_tensor *tensor, int64_t step,
                         const struct gd_err *err)
{
    struct question *question = ctx;
    struct gd_tensor_ref before = question->ref;
    if (err || !tensor) {
        finish_question(question, &(struct answer){.error = error_bit(err), .step = -1});
        return;
    }
    question->current = gd_tensor_ref(tensor);
    question->step = step;
    before.iter = GD_PREVIOUS;
    if (gd_session_fetch(question->recheck->w->session, &before, NULL, previous_came, question,
                         NULL) != GD_OK) {
        previous_came(question, NULL, -1, &(struct gd_err){.code = GD_ENODATA});
    }
}

static void stats_came(void *ctx, enum gd_dtype dtype, const struct gd_shape *shape,
                       const struct gd_stats *stats, int64_t step, const struct gd_err *err)
{
    struct answer answer = {
        .dtype = dtype, .stats = err ? NULL : stats, .error = error_bit(err), .step = step};
    (void)shape;
    finish_question(ctx, &answer);
}

/* Whether the target's default statistics of a value are not enough. */
static bool wants_value(const struct watch_recheck *recheck, const struct gd_tensor_ref *ref)
{
    const struct gd_watching *w = recheck->w;
    size_t tensor = watching_tensor(w, ref->node, ref->slot, NULL);
    if (tensor == SIZE_MAX || recheck->initial) {
        return false;
    }
    const struct watch_set *set = w->tensors[tensor].set;
    for (uint32_t i = 0; i < set->part_count; i++) {
        if (set->part[i].recipe->options.range_count || set->part[i].recipe->against_previous) {
            return true;
        }
    }
    return false;
}

static void ask_value(struct watch_recheck *recheck, const struct gd_tensor_ref *ref)
{
    struct gd_session *session = recheck->w->session;
    struct question *question = calloc(1, sizeof(*question));
    struct gd_err err;
    int rc;
    recheck->waiting++;
    if (!question) {
        gd_fail_nomem(&recheck->err);
        recheck->waiting--;
        recheck->next = recheck->count;
        return;
    }
    *question = (struct question){.recheck = recheck, .ref = *ref, .step = -1};
    if (wants_value(recheck, ref)) {
        rc = gd_session_fetch(session, ref, NULL, current_came, question, &err);
    } else {
        rc = gd_session_stats(session, ref, stats_came, question, &err);
    }
    if (rc != GD_OK) {
        finish_question(question, &(struct answer){.error = error_bit(&err), .step = -1});
    }
}

/* ---- the run of it ------------------------------------------------------------------------- */

static void finish_recheck(struct watch_recheck *recheck)
{
    struct gd_watching *w = recheck->w;
    if (recheck == w->recheck) {
        w->recheck = NULL;
    }
    if (recheck == w->initial) {
        w->initial = NULL;
    }
    put_back_rest(recheck);
    for (size_t i = 0; recheck->initial && i < w->cover_count; i++) {
        if (w->covers[i].initial == INITIAL_UNDER_WAY) {
            w->covers[i].initial = INITIAL_DONE;
        }
    }
    if (recheck->fn) {
        recheck->fn(recheck->ctx, recheck->hits, recheck->err.code ? &recheck->err : NULL);
    }
    bool again = recheck->initial && !recheck->err.code;
    free(recheck->places);
    free(recheck);
    if (again) {
        watching_initial(w); /* one that was set meanwhile */
    }
}

static bool has_remote(const struct gd_watching *w)
{
    for (size_t i = 0; i < w->cover_count; i++) {
        if (w->covers[i].mode == WATCH_MODE_REMOTE && w->covers[i].sent) {
            return true;
        }
    }
    return false;
}

static void finish_ours(struct watch_recheck *recheck)
{
    struct gd_watching *w = recheck->w;
    struct gd_run run = {.kind = GD_RUN_RECHECK, .node = GD_NO_NODE};
    if (!recheck->initial) {
        struct watch_judging judging = begin_judging(recheck);
        watching_sums_end(&judging);
        end_judging(recheck, &judging);
    }
    if (recheck->initial || recheck->err.code || !w->session->target || !has_remote(w)) {
        finish_recheck(recheck);
        return;
    }
    recheck->process = true; /* first: it may stop again before it returns */
    if (gd_target_resume(w->session->target, &run, &recheck->err) != GD_OK &&
        w->recheck == recheck) {
        finish_recheck(recheck);
    }
}

static void ask_on(struct watch_recheck *recheck)
{
    if (recheck->asking) {
        return;
    }
    recheck->asking = true;
    size_t most = recheck->initial ? SIZE_MAX : ASKED_AT_ONCE;
    while (recheck->next < recheck->count && recheck->waiting < most) {
        if (recheck->err.code) {
            recheck->next = recheck->count;
        } else {
            ask_value(recheck, &recheck->places[recheck->next++]);
        }
    }
    recheck->asking = false;
    if (!recheck->waiting && recheck->next == recheck->count) {
        finish_ours(recheck);
    }
}

static void judge_numbers(struct watch_recheck *recheck)
{
    struct gd_session *session = recheck->w->session;
    struct watch_judging judging = begin_judging(recheck);
    for (int i = 0; i < session->scalar_count; i++) {
        watching_judge_number(&judging, &session->scalar[i]);
    }
    end_judging(recheck, &judging);
}

static struct watch_recheck *make_recheck(struct gd_watching *w, bool initial)
{
    struct watch_recheck *recheck = calloc(1, sizeof(*recheck));
    if (!recheck) {
        return NULL;
    }
    recheck->w = w;
    recheck->initial = initial;
    recheck->step = w->session->stop.step;
    recheck->sequence = w->session->stop.sequence;
    if (!list_places(recheck)) {
        free(recheck->places);
        free(recheck);
        return NULL;
    }
    return recheck;
}

void watching_initial(struct gd_watching *w)
{
    bool any = false;
    if (w->initial || w->building || w->judging || !w->session->target ||
        !is_before_first_step(w->session)) {
        return;
    }
    for (size_t i = 0; i < w->cover_count; i++) {
        struct watch_cover *cover = &w->covers[i];
        if (cover->mode != WATCH_MODE_INITIAL || cover->problem ||
            cover->initial != INITIAL_TO_DO) {
            continue;
        }
        cover->initial = INITIAL_UNDER_WAY;
        any = true;
    }
    if (!any) {
        return;
    }
    w->initial = make_recheck(w, true);
    if (!w->initial) {
        gd_session_on_warning(w->session, "out of memory for checking the initial weights");
    } else {
        ask_on(w->initial);
    }
}

bool gd_watch_is_busy(const struct gd_session *session)
{
    return session->watching && session->watching->initial && is_before_first_step(session);
}

size_t gd_watch_recheck_missing(const struct gd_session *session)
{
    return session->watching ? session->watching->recheck_missing : 0;
}

int gd_watch_recheck(struct gd_session *session,
                     void (*fn)(void *ctx, size_t hits, const struct gd_err *err), void *ctx,
                     struct gd_err *err)
{
    if (session->state != GD_STOPPED) {
        return gd_fail(err, GD_ESTATE,
                       "watchpoints can be checked again only at a stop: this session %s",
                       session->state == GD_RUNNING ? "runs" : "is not stopped");
    }
    if (!session->debugger->watchpoints) {
        return gd_fail(err, GD_ESTATE, "there are no watchpoints to check again");
    }
    watching_refresh(session, 0, true);
    struct gd_watching *w = session->watching;
    if (w && w->recheck) {
        return gd_fail(err, GD_ESTATE, "the watchpoints are already being checked again");
    }
    struct watch_recheck *recheck = w ? make_recheck(w, false) : NULL;
    if (!recheck) {
        return gd_fail_nomem(err);
    }
    w->recheck = recheck;
    w->recheck_missing = 0;
    recheck->fn = fn;
    recheck->ctx = ctx;
    recheck->old = session_take_hits(session, &recheck->old_count);
    recheck->old_count = recheck->old ? recheck->old_count : 0;
    watching_sums_begin(w);
    judge_numbers(recheck);
    ask_on(recheck);
    return GD_OK;
}

void watching_recheck_event(struct gd_watching *w, const struct gd_event *event)
{
    struct watch_recheck *recheck = w->recheck;
    if (!recheck || !recheck->process) {
        return;
    }
    switch (event->type) {
    case GD_EV_HIT: recheck->hits += !event->hit->error; break;
    case GD_EV_STOPPED: finish_recheck(recheck); break;
    case GD_EV_LOST:
    case GD_EV_FINISHED:
        gd_fail(&recheck->err, GD_ELOST,
                "the training process went away before everything was checked again");
        finish_recheck(recheck);
        break;
    default: break;
    }
}

void watching_recheck_free(struct gd_watching *w)
{
    for (int i = 0; i < 2; i++) {
        struct watch_recheck *recheck = i ? w->initial : w->recheck;
        if (!recheck) {
            continue;
        }
        if (!recheck->err.code) {
            gd_fail(&recheck->err, GD_ELOST, "the session is gone");
        }
        recheck->initial = false;
        finish_recheck(recheck);
    }
}
