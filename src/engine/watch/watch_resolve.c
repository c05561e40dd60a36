// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The watchpoints in one session: who evaluates each, what it needs of the statistics, which nodes
 * it covers there.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/grow.h"
#include "engine/graph/selector.h"
#include "engine/metric/over_ranks.h"
#include "engine/ranks.h"
#include "engine/watch/expected.h"
#include "engine/watch/watch_impl.h"

/* ---- what is asked of the statistics ------------------------------------------------------- */

static bool looks_for_nonfinite(enum gd_statistic statistic)
{
    return statistic == GD_STAT_NAN || statistic == GD_STAT_INF || statistic == GD_STAT_POS_INF ||
           statistic == GD_STAT_NEG_INF || statistic == GD_STAT_NONFINITE;
}

static void wants_of_expr(const struct gd_expr *expr, struct watch_wants *ret)
{
    enum gd_statistic figures[GD_STAT_TOTAL];
    size_t count = gd_expr_figures(expr, figures, GD_STAT_TOTAL);
    gd_condition_want_expr(expr, &ret->want);
    ret->nonfinite = count > 0;
    for (size_t i = 0; i < count && i < GD_STAT_TOTAL; i++) {
        ret->nonfinite = ret->nonfinite && looks_for_nonfinite(figures[i]);
        if (figures[i] == GD_STAT_AGE) {
            ret->step_end_only = ret->age = true;
        }
    }
    ret->trigger_count = gd_condition_triggers_expr(expr, ret->trigger, WATCH_MAX_TRIGGERS);
}

static void wants_of_condition(const struct gd_watchpoint *watch, struct watch_wants *ret)
{
    const struct gd_condition *condition = watch->condition;
    gd_condition_want(condition, watch->values, watch->value_count, &ret->want);
    ret->nonfinite = condition->always.statistic == GD_STAT_NONFINITE;
    ret->step_end_only = condition->at_step_end || condition->aggregate;
    ret->trigger_count = gd_condition_triggers(condition, watch->values, watch->value_count,
                                               ret->trigger, WATCH_MAX_TRIGGERS);
    ret->always = condition->aggregate;
    for (int i = 0; i < condition->param_count; i++) {
        if (condition->param[i].statistic == GD_STAT_AGE) {
            ret->step_end_only = ret->age = true;
        }
    }
}

void watching_wants(const struct gd_watchpoint *watch, const struct gd_settings *settings,
                    struct watch_wants *ret)
{
    int when = watch->when ? (int)watch->when : settings->watch_when;
    memset(ret, 0, sizeof(*ret));
    if (watch->condition) {
        wants_of_condition(watch, ret);
    } else {
        wants_of_expr(watch->expr, ret);
    }
    if (watch->guard) {
        unsigned needs = gd_expr_needs(watch->guard);
        if ((needs & GD_NEED_UNITS) && !(ret->want.needs & GD_NEED_UNITS)) {
            ret->want.dead_steps = GD_DEAD_STEPS;
        }
        if ((needs & GD_NEED_TOLERANCE) && !(ret->want.needs & GD_NEED_TOLERANCE)) {
            ret->want.rtol = GD_RTOL;
            ret->want.atol = GD_ATOL;
        }
        ret->want.needs |= needs;
    }
    if (ret->trigger_count > WATCH_MAX_TRIGGERS) {
        ret->trigger_count = 0;
    }
    if (!ret->trigger_count) {
        ret->always = true;
    }
    /* What is compared with other steps must be seen in each of them, at the same place. */
    if (ret->want.needs & (GD_NEED_PREVIOUS | GD_NEED_TOLERANCE | GD_NEED_SERIES)) {
        ret->step_end_only = true;
    }
    if (ret->want.needs & GD_NEED_SERIES) {
        ret->always = true;
    }
    if (when == GD_WHEN_STEP_END || watch->steps > 1) {
        ret->step_end_only = true;
    }
    ret->exact = !ret->step_end_only && (when == GD_WHEN_EXACT || ret->nonfinite);
}

/* ---- who evaluates ------------------------------------------------------------------------- */

/* Only gradb knows guards, counts, consecutive steps, and nodes where NaN is normal. */
static bool is_plain(const struct gd_watching *w, const struct gd_watchpoint *watch)
{
    const struct gd_debugger *debugger = w->session->debugger;
    return !watch->guard && !watch->ignore && watch->steps <= 1 && watch->action == GD_WATCH_STOP &&
           !debugger->excludes;
}

static int can_remote(const struct gd_watching *w, const struct watch_cover *cover,
                      struct gd_err *err)
{
    const struct gd_watchpoint *watch = cover->watch;
    const char *kind = w->session->target->ops->kind;
    if (!(w->session->target->capabilities & GD_CAN_WATCH_REMOTE)) {
        return gd_fail(err, GD_EUNSUPPORTED,
                       "a %s target cannot evaluate watchpoints itself: \"set evaluate auto\"",
                       kind);
    }
    if (!watch->condition || watch->condition->wire < 0) {
        return gd_fail(err, GD_EUNSUPPORTED, "a %s target cannot evaluate %s itself", kind,
                       watch->condition ? watch->condition->id : "an expression");
    }
    if (!is_plain(w, watch)) {
        return gd_fail(err, GD_EUNSUPPORTED,
                       "a %s target that evaluates watchpoints itself does not support \"if\", "
                       "-for, ignore counts, trace or excluded nodes",
                       kind);
    }
    if (cover->unable) {
        return gd_fail(err, GD_EUNSUPPORTED,
                       "this process cannot evaluate %s itself: \"set evaluate auto\"",
                       watch->condition->id);
    }
    return GD_OK;
}

static int can_plan(const struct gd_watching *w, const struct watch_cover *cover,
                    struct gd_err *err)
{
    const struct gd_watchpoint *watch = cover->watch;
    unsigned capabilities = w->session->target->capabilities;
    const char *kind = w->session->target->ops->kind;
    if (!(capabilities & GD_CAN_WATCH)) {
        return gd_fail(err, GD_EUNSUPPORTED,
                       "a %s target cannot watch values: stop it and look at them", kind);
    }
    if (watch->condition && watch->condition->records_bins) {
        if (!(capabilities & GD_CAN_WATCH_BINS)) {
            return gd_fail(err, GD_EUNSUPPORTED, "a %s target records no histograms", kind);
        }
        if (w->session->debugger->settings.history_bytes == 0) {
            return gd_fail(err, GD_ESTATE,
                           "no history is recorded: set a size with `set history-bytes`");
        }
    }
    if (watch->condition && watch->condition->wire == GD_WIRE_OVERFLOW_FLAG) {
        return gd_fail(err, GD_EUNSUPPORTED,
                       "%s checks a flag of the device that only the process can see: gradb cannot "
                       "evaluate it",
                       watch->condition->id);
    }
    return GD_OK;
}

static bool is_fresh(const struct gd_session *session)
{
    return session->stop.step <= 0 && session->state != GD_RUNNING;
}

int watching_mode(const struct gd_watching *w, const struct watch_cover *cover,
                  enum watch_mode *ret, struct gd_err *err)
{
    const struct gd_session *session = w->session;
    const struct gd_condition *condition = cover->watch->condition;
    int evaluate = session->debugger->settings.evaluate;
    struct gd_err scratch;
    int rc = GD_OK;
    if (condition) {
        bool known = cover->mode != WATCH_MODE_NONE; /* set in time: it stays silent from now on */
        bool ascend = strncasecmp(session->peer.device, "Ascend", 6) == 0;
        rc = gd_condition_available(condition, ascend, known || is_fresh(session), err);
    }
    if (rc != GD_OK) {
        return rc;
    }
    if (evaluate != GD_EVALUATE_LOCAL) {
        rc = can_remote(w, cover, evaluate == GD_EVALUATE_REMOTE ? err : &scratch);
        if (rc == GD_OK || evaluate == GD_EVALUATE_REMOTE) {
            *ret = WATCH_MODE_REMOTE;
            return rc;
        }
    }
    if (cover->scalar && (!(session->target->capabilities & GD_CAN_WATCH_SCALAR) ||
                          gd_over_ranks_has(session, cover->scalar))) {
        *ret = WATCH_MODE_SCALAR;
        return GD_OK;
    }
    if (condition && condition->initial_only) {
        *ret = WATCH_MODE_INITIAL;
        return GD_OK;
    }
    *ret = WATCH_MODE_PLAN;
    rc = can_plan(w, cover, err);
    if (rc != GD_OK && evaluate != GD_EVALUATE_LOCAL && condition && condition->wire >= 0 &&
        (session->target->capabilities & GD_CAN_WATCH_REMOTE)) {
        return can_remote(w, cover, err); /* says what prevents it */
    }
    return rc;
}

/* ---- covers -------------------------------------------------------------------------------- */

static void free_cover(struct watch_cover *cover)
{
    free(cover->nodes);
    free(cover->sent_nodes);
}

void watching_clear_covers(struct gd_watching *w)
{
    for (size_t i = 0; i < w->cover_count; i++) {
        free_cover(&w->covers[i]);
    }
    free(w->covers);
    free(w->first);
    free(w->site);
    free(w->excluded);
    w->covers = NULL;
    w->first = w->site = NULL;
    w->excluded = NULL;
    w->cover_count = w->node_limit = 0;
    w->first_cap = w->site_cap = 0;
}

static const char *keep_name(struct gd_watching *w, const char *name)
{
    for (size_t i = 0; i < w->name_count; i++) {
        if (strcmp(w->names[i], name) == 0) {
            return w->names[i];
        }
    }
    char *copy = strdup(name);
    if (!copy || !gd_grow_list(&w->names, w->name_count, &w->name_cap, sizeof(copy))) {
        free(copy);
        return NULL;
    }
    w->names[w->name_count++] = copy;
    return copy;
}

/* An expression over several metrics is judged when the last of them is known: one over ranks. */
static const char *scalar_name(struct gd_watching *w, const struct gd_watchpoint *watch)
{
    const char *names[16];
    size_t count = watch->expr ? gd_expr_names(watch->expr, names, 16) : 0;
    for (size_t i = 0; i < count && i < 16; i++) {
        struct gd_expr_function function;
        const char *name = gd_expr_number_in(names[i], &function);
        if (gd_over_ranks_has(w->session, name)) {
            return keep_name(w, name);
        }
    }
    return watch->where;
}

/* A name that is not a metric but a node means the node: a loss can be either. */
static int resolve_scalar(struct gd_watching *w, struct watch_cover *cover, struct gd_err *err)
{
    const char *name = scalar_name(w, cover->watch);
    gd_node_id node;
    cover->scalar = NULL;
    if (!gd_session_scalar(w->session, name) &&
        gd_graph_find(w->session->graph, name, &node, NULL) == GD_OK) {
        cover->nodes = malloc(sizeof(*cover->nodes));
        if (!cover->nodes) {
            return gd_fail_nomem(err);
        }
        cover->nodes[0] = node;
        cover->node_count = 1;
        return GD_OK;
    }
    cover->scalar = keep_name(w, name);
    return cover->scalar ? GD_OK : gd_fail_nomem(err);
}

/* A name that was one node's when the watchpoint was set still means that node if another graph
 * brings a node of the same name. */
static bool keeps_nodes(const struct gd_watching *w, const struct watch_cover *cover)
{
    gd_node_id *nodes = NULL;
    size_t count = 0;
    bool ambiguous =
        cover->watch->selector && cover->node_count && gd_graph_is_qualified(w->session->graph) &&
        gd_watchpoint_nodes(cover->watch, w->session, &nodes, &count, NULL) == GD_EAMBIGUOUS;
    free(nodes);
    for (size_t i = 0; ambiguous && i < cover->node_count; i++) {
        ambiguous = gd_graph_name(w->session->graph, cover->nodes[i])[0] != '\0';
    }
    return ambiguous;
}

static int resolve_nodes(struct gd_watching *w, struct watch_cover *cover, struct gd_err *err)
{
    if (cover->revision == cover->watch->revision && keeps_nodes(w, cover)) {
        return GD_OK;
    }
    free(cover->nodes);
    cover->nodes = NULL;
    cover->node_count = cover->node_cap = 0;
    if (!cover->watch->selector) {
        return resolve_scalar(w, cover, err);
    }
    if (!w->session->graph_generation) {
        return GD_OK;
    }
    int rc = gd_watchpoint_nodes(cover->watch, w->session, &cover->nodes, &cover->node_count, err);
    if (rc == GD_OK && !cover->node_count) {
        rc = gd_fail(err, GD_ENOTFOUND, "%.200s selects no node of the graph", cover->watch->where);
    }
    return rc == GD_ENOTFOUND && gd_session_grows(w->session) ? GD_OK : rc; /* it is pending */
}

static void reset_memory(struct watch_cover *cover)
{
    cover->memory = (struct watch_memory){.hit_step = INT64_MIN};
    memset(&cover->sum, 0, sizeof(cover->sum));
    cover->sum.step = INT64_MIN;
}

/* Updates one cover; a problem is stored in it. Only GD_ENOMEM is an error. */
static int update_cover(struct gd_watching *w, struct watch_cover *cover, bool is_new, bool grown)
{
    const struct gd_watchpoint *watch = cover->watch;
    bool edited = is_new || cover->revision != watch->revision;
    struct gd_err err;
    int rc = GD_OK;
    if (edited) {
        reset_memory(cover);
        cover->initial = INITIAL_TO_DO;
    }
    if (edited || grown || cover->problem || (!watch->selector && !cover->node_count)) {
        rc = resolve_nodes(w, cover, &err);
    }
    cover->revision = watch->revision;
    if (rc == GD_ENOMEM) {
        return rc;
    }
    watching_wants(watch, &w->session->debugger->settings, &cover->wants);
    if (!gd_session_is_live(w->session)) {
        cover->problem = GD_OK; /* it would not be evaluated, and that is not worth reporting */
        return GD_OK;
    }
    enum watch_mode mode = WATCH_MODE_NONE;
    struct gd_err refused;
    int refusal = watching_mode(w, cover, &mode, &refused);
    if (refusal) {
        rc = refusal;
        err = refused;
    }
    if (cover->mode == WATCH_MODE_REMOTE && (refusal || mode != WATCH_MODE_REMOTE)) {
        watching_unwatch(w, cover);
    }
    cover->mode = refusal ? WATCH_MODE_NONE : mode;
    if (rc != cover->problem || edited) {
        cover->warned = false;
    }
    cover->problem = rc;
    if (rc != GD_OK) {
        snprintf(cover->problem_text, sizeof(cover->problem_text), "%.*s",
                 (int)sizeof(cover->problem_text) - 1, err.text);
    }
    return GD_OK;
}

static struct watch_cover *take_cover(struct gd_watching *w, int number)
{
    for (size_t i = 0; i < w->cover_count; i++) {
        if (w->covers[i].number == number) {
            return &w->covers[i];
        }
    }
    return NULL;
}

/* Removes those whose watchpoint is gone or disabled. */
static void drop_covers(struct gd_watching *w)
{
    size_t kept = 0;
    for (size_t i = 0; i < w->cover_count; i++) {
        struct watch_cover *cover = &w->covers[i];
        cover->watch = gd_watchpoint_at(w->session->debugger, cover->number);
        if (cover->watch && cover->watch->enabled && !cover->watch->spent) {
            w->covers[kept++] = *cover;
            continue;
        }
        watching_unwatch(w, cover);
        free_cover(cover);
    }
    w->cover_count = kept;
}

/* Divergence is judged over all ranks: ranks.c. */
bool watching_is_judged(const struct gd_watchpoint *watch)
{
    return watch->enabled && !watch->spent &&
           !(watch->event && strcmp(watch->event, GD_DIVERGENCE) == 0);
}

static int update_covers(struct gd_watching *w, struct gd_err *err)
{
    bool grown = w->generation != w->session->graph_generation;
    w->growing = grown && w->generation && w->session->state == GD_RUNNING;
    size_t total = 0, count = 0;
    drop_covers(w);
    for (struct gd_watchpoint *p = w->session->debugger->watchpoints; p; p = p->next) {
        total += watching_is_judged(p);
    }
    struct watch_cover *covers = calloc(total + 1, sizeof(*covers));
    if (!covers) {
        return gd_fail_nomem(err);
    }
    for (struct gd_watchpoint *p = w->session->debugger->watchpoints; p; p = p->next) {
        if (!watching_is_judged(p)) {
            continue;
        }
        const struct watch_cover *old = take_cover(w, p->number);
        covers[count] = old ? *old : (struct watch_cover){.number = p->number, .watch = p};
        /* marks new ones for the loop below */
        if (!old) {
            covers[count].revision = p->revision + 1;
        }
        count++;
    }
    free(w->covers);
    w->covers = covers;
    w->cover_count = count;
    for (size_t i = 0; i < count; i++) {
        struct watch_cover *cover = &covers[i];
        if (update_cover(w, cover, cover->revision != cover->watch->revision, grown) != GD_OK) {
            return gd_fail_nomem(err);
        }
    }
    w->generation = w->session->graph_generation;
    w->changes = gd_graph_changes(w->session->graph);
    return GD_OK;
}

/* ---- sites --------------------------------------------------------------------------------- */

bool watching_has_sites(const struct watch_cover *cover)
{
    return cover->mode != WATCH_MODE_NONE && cover->mode != WATCH_MODE_SCALAR;
}

/* Node -> covers as two arrays: count per node, add up, then fill from the back. */
static int build_sites(struct gd_watching *w, struct gd_err *err)
{
    uint32_t limit = gd_graph_node_limit(w->session->graph);
    uint32_t *first = calloc((size_t)limit + 2, sizeof(*first));
    size_t total = 0;
    for (size_t i = 0; i < w->cover_count; i++) {
        total += watching_has_sites(&w->covers[i]) ? w->covers[i].node_count : 0;
    }
    uint32_t *site = total < UINT32_MAX ? malloc((total + 1) * sizeof(*site)) : NULL;
    if (!first || !site) {
        free(first);
        free(site);
        return gd_fail(err, GD_ENOMEM, "out of memory for %zu watched nodes", total);
    }
    for (size_t i = 0; i < w->cover_count; i++) {
        for (size_t n = 0; watching_has_sites(&w->covers[i]) && n < w->covers[i].node_count; n++) {
            first[w->covers[i].nodes[n] + 1]++;
        }
    }
    for (uint32_t n = 0; n < limit; n++) {
        first[n + 1] += first[n];
    }
    for (size_t i = w->cover_count; i-- > 0;) {
        for (size_t n = 0; watching_has_sites(&w->covers[i]) && n < w->covers[i].node_count; n++) {
            site[--first[w->covers[i].nodes[n] + 1]] = (uint32_t)i;
        }
    }
    /* Each start was moved to the place after its node: move them back by one. */
    memmove(first, first + 1, (size_t)limit * sizeof(*first));
    first[limit] = (uint32_t)total;
    free(w->first);
    free(w->site);
    w->first = first;
    w->site = site;
    w->node_limit = limit;
    w->first_cap = (size_t)limit + 2;
    w->site_cap = total + 1;
    return GD_OK;
}

uint32_t watching_covers_of(const struct gd_watching *w, gd_node_id node, const uint32_t **ret)
{
    if (!w || !w->first || node >= w->node_limit) {
        return 0;
    }
    *ret = w->site + w->first[node];
    return w->first[node + 1] - w->first[node];
}

int watching_resolve(struct gd_watching *w, struct gd_err *err)
{
    int rc = update_covers(w, err);
    if (rc == GD_OK) {
        rc = build_sites(w, err);
    }
    free(w->excluded);
    w->excluded = NULL;
    if (rc == GD_OK) {
        rc = excluded_nodes(w->session->debugger, w->session->graph, &w->excluded, err);
    }
    return rc;
}

bool watching_is_excluded(const struct gd_watching *w, gd_node_id node)
{
    return w->excluded && node < w->node_limit && (w->excluded[node / 8] >> (node % 8) & 1);
}

bool watching_slot_ok(const struct gd_session *session, gd_node_id node, uint32_t slot)
{
    struct gd_output output;
    if (!gd_graph_output(session->graph, node, slot, &output) || output.dtype == GD_STRING) {
        return false;
    }
    return output.dtype != GD_DT_NONE || !session->target ||
           !(session->target->capabilities & GD_CAN_GROW); /* there it is known when it has run */
}
