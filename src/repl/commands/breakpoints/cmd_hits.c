// SPDX-License-Identifier: GPL-3.0-or-later
/* info hits, and going from hit to hit: hit, next-hit, previous-hit. */
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/ranks.h"
#include "repl/core/commands.h"
#include "repl/core/hits.h"
#include "repl/core/repl_impl.h"
#include "repl/core/watch.h"
#include "repl/values/inspect.h"
#include "repl/values/srcfile.h"
#include "repl/values/value.h"

#define HITS_SHOWN 40

/* ---- one hit ------------------------------------------------------------------------------- */

static void print_param(struct command_call *call, const struct gd_hit *hit,
                        const struct gd_hit_param *param, int indent)
{
    const struct gd_condition *condition = hits_condition(call->debugger, hit);
    const struct gd_condition_param *known =
        condition ? gd_condition_param(condition, param->name) : NULL;
    if (!hit->kind && hit->expression[0] != '\0') { /* figures of an expression */
        out_printf(call->out, "%*s%s = %s\n", indent, "", param->name,
                   inspect_double(call, param->actual_value));
    } else if (known && known->statistic == GD_STAT_NONE) { /* no test by itself */
        if (!known->hidden && !param->disabled) {
            out_printf(call->out, "%*s%s: set %s\n", indent, "", param->name,
                       inspect_double(call, param->set_value));
        }
    } else if (!param->disabled && !param->hit && isnan(param->actual_value)) {
        out_printf(call->out, "%*s%s: set %s, actual not known\n", indent, "", param->name,
                   inspect_double(call, param->set_value));
    } else if (!param->disabled) {
        out_printf(call->out, "%*s%s: set %s, actual %s%s\n", indent, "", param->name,
                   inspect_double(call, param->set_value),
                   inspect_double(call, param->actual_value), param->hit ? "" : " (did not fire)");
    }
}

static void print_params(struct command_call *call, const struct gd_hit *hit, int indent)
{
    char why[256];
    if (hit->error) {
        gd_hit_error_text(hit->error, why, sizeof(why));
        out_printf(call->out, "%*scould not be checked: %s\n", indent, "", why);
        return;
    }
    if (hit->frozen) {
        out_printf(call->out, "%*sfrozen when first seen\n", indent, "");
    }
    for (int i = 0; i < hit->param_count; i++) {
        print_param(call, hit, &hit->param[i], indent);
    }
}

static const char *short_name(struct command_call *call, const struct gd_hit *hit)
{
    const struct gd_condition *condition = hits_condition(call->debugger, hit);
    return condition                    ? condition->abbr
           : hit->expression[0] != '\0' ? out_safe(call, hit->expression)
                                        : "?";
}

static bool alike(const struct gd_hit *a, const struct gd_hit *b)
{
    return a->error && a->error == b->error && a->watchpoint == b->watchpoint && a->step == b->step;
}

/* How many of order[from ... count) are as the one at `at`, which could not be checked: they are
 * shown as one. 0: it was shown with one before it. */
static size_t count_alike(const struct gd_session *session, const size_t *order, size_t from,
                          size_t at, size_t count)
{
    const struct gd_hit *hit = &session->hits[order[at]];
    size_t found = 1;
    for (size_t i = from; i < at; i++) {
        if (alike(&session->hits[order[i]], hit)) {
            return 0;
        }
    }
    for (size_t i = at + 1; i < count; i++) {
        found += alike(&session->hits[order[i]], hit);
    }
    return found;
}

/* `tensors` > 1: it stands for so many that are alike. */
static void print_hit(struct command_call *call, const struct gd_hit *hit, size_t tensors)
{
    const char *head =
        inspect_printf(call, "#%-3llu step %lld  %s %d (%s)  ",
                       (unsigned long long)hits_number(call->session, hit), (long long)hit->step,
                       hits_noun(hit), hit->watchpoint, short_name(call, hit));
    if (tensors > 1) {
        out_printf(call->out, "%s%s\n", head, inspect_plural(call, tensors, "tensor"));
    } else {
        out_printf(call->out, "%s%s\n", head,
                   inspect_fit(call, hits_where(call, hit), (int)strlen(head)));
    }
    print_params(call, hit, 8);
}

static cJSON *hit_record(struct command_call *call, const struct gd_hit *hit)
{
    cJSON *object = repl_hit_json(call->session, hit, false);
    inspect_add_count(object, "number", hits_number(call->session, hit));
    return object;
}

/* ---- info hits ----------------------------------------------------------------------------- */

/* What watchpoints found and did not report. */
static void print_hidden(struct command_call *call, int only)
{
    const struct gd_watchpoint *watch = call->debugger->watchpoints;
    for (; watch; watch = watch->next) {
        if (watch->intended && (!only || watch->number == only)) {
            out_printf(call->out, "Watchpoint %d %s.\n", watch->number, watch_hidden(call, watch));
        }
    }
}

const char *hits_checked(struct command_call *call, uint64_t checks, uint64_t unclear,
                         unsigned errors)
{
    const char *text = inspect_plural(call, checks - unclear, "check");
    char why[256];

    if (unclear == 0) {
        return text;
    }
    gd_hit_error_text(errors, why, sizeof(why));
    return inspect_printf(call, "%s, %s more could not be made%s%s", text,
                          inspect_number(call, unclear), why[0] ? ": " : "", why);
}

void hits_add_checked(cJSON *record, uint64_t checks, uint64_t unclear, unsigned errors)
{
    char why[256];

    inspect_add_count(record, "checks", checks - unclear);
    inspect_add_count(record, "unclear", unclear);
    gd_hit_error_text(errors, why, sizeof(why));
    if (why[0]) {
        cJSON_AddStringToObject(record, "why_unclear", why);
    }
}

int hits_need_checked(uint64_t hits, uint64_t checks, uint64_t unclear, unsigned errors,
                      struct gd_err *err)
{
    char why[256];

    if (hits > 0 || checks > unclear) {
        return GD_OK;
    }
    if (unclear == 0) {
        return gd_fail(err, GD_ENODATA,
                       "no watchpoint was checked: none covers a value that is "
                       "there, or their \"if\" was never true");
    }
    gd_hit_error_text(errors, why, sizeof(why));
    return gd_fail(err, GD_ENODATA,
                   "no watchpoint could be checked: %llu %s could not be made"
                   "%s%s",
                   (unsigned long long)unclear, unclear == 1 ? "check" : "checks",
                   why[0] ? ": " : "", why);
}

/* Of all watchpoints, or of one. */
static struct gd_watch_tally tally_of(const struct command_call *call, int only)
{
    const struct gd_watchpoint *w = only ? gd_watchpoint_at(call->debugger, only) : NULL;
    struct gd_watch_tally tally = {.watchpoints = 0};

    if (!only) {
        gd_watch_tally(call->debugger, &tally);
    } else if (w) {
        tally = (struct gd_watch_tally){1, w->checks, w->hits, w->unclear, w->unclear_errors};
    }
    return tally;
}

/* How many checks were made. The training processes are asked: most of what they look at is not
 * worth a report. 0: that is not known. */
static uint64_t checks_made(struct command_call *call, int only)
{
    struct gd_watch_total total;
    bool asked = watch_ask_costs(call, &total, NULL) == GD_OK;
    uint64_t made = 0;

    for (const struct gd_watchpoint *w = call->debugger->watchpoints; w; w = w->next) {
        if (!only || w->number == only) {
            made += asked && w->looks > w->checks ? w->looks : w->checks;
        }
    }
    return made;
}

static void add_tally(struct command_call *call, cJSON *record, int only)
{
    struct gd_watch_tally tally = tally_of(call, only);
    char why[256];

    inspect_add_count(record, "watchpoints", tally.watchpoints);
    inspect_add_count(record, "unclear", tally.unclear);
    gd_hit_error_text(tally.errors, why, sizeof(why));
    if (why[0]) {
        cJSON_AddStringToObject(record, "why_unclear", why);
    }
}

static void show_none(struct command_call *call, cJSON *record, int only)
{
    struct gd_watch_tally tally = tally_of(call, only);
    uint64_t made = tally.watchpoints > 0 ? checks_made(call, only) : 0;
    const char *who = only ? inspect_printf(call, "Watchpoint %d has not fired", only)
                           : "No watchpoint has fired";
    char why[256];

    gd_hit_error_text(tally.errors, why, sizeof(why));
    if (tally.watchpoints == 0) {
        out_printf(call->out, "%s: %s.\n", who, only ? "it is not set" : "none is set");
    } else {
        out_printf(call->out, "%s: %s set, %s%s could not be made%s%s.\n", who,
                   inspect_number(call, tally.watchpoints),
                   made > 0 ? inspect_printf(call, "%s made, ", inspect_plural(call, made, "check"))
                            : "",
                   made > 0 ? inspect_number(call, tally.unclear)
                            : inspect_plural(call, tally.unclear, "check"),
                   why[0] ? ": " : "", why);
    }
    if (made > 0) {
        inspect_add_count(record, "checks", made);
    }
}

/* Of a job: whose hits these are, and which other ranks have some. */
static void add_ranks(struct command_call *call, cJSON *record)
{
    const struct gd_ranks *ranks = gd_ranks_of(call->session);
    cJSON *others = ranks ? cJSON_AddArrayToObject(record, "other_ranks") : NULL;
    for (int rank = 0; ranks && rank < gd_ranks_world_size(ranks); rank++) {
        const struct gd_session *other = gd_ranks_member(ranks, rank);
        size_t count = other ? other->hits_dropped + other->hit_count : 0;
        if (other == call->session || count == 0) {
            continue;
        }
        cJSON *item = cJSON_CreateObject();
        cJSON_AddNumberToObject(item, "rank", rank);
        inspect_add_count(item, "hits", count);
        cJSON_AddItemToArray(others, item);
        out_printf(call->out, "Rank %d has %s (rank %d; info hits -ranks)\n", rank,
                   inspect_plural(call, count, "hit"), rank);
    }
}

struct ranked { /* a hit of a job */
    struct gd_session *session;
    const struct gd_hit *hit;
    size_t place; /* among its rank's */
};

static int by_step(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    if (x->hit->step != y->hit->step) {
        return x->hit->step < y->hit->step ? -1 : 1;
    }
    if (x->session != y->session) {
        return x->session->peer.rank < y->session->peer.rank ? -1 : 1;
    }
    return x->place < y->place ? -1 : 1;
}

/* The hits of all ranks of the job in order of steps; *count of them. NULL: out of memory. */
static struct ranked *hits_of_ranks(const struct gd_ranks *ranks, int only, size_t *count)
{
    size_t room = 1;
    for (int rank = 0; rank < gd_ranks_world_size(ranks); rank++) {
        const struct gd_session *member = gd_ranks_member(ranks, rank);
        room += member != NULL ? member->hit_count : 0;
    }
    struct ranked *found = calloc(room, sizeof(*found));
    *count = 0;
    for (int rank = 0; found && rank < gd_ranks_world_size(ranks); rank++) {
        struct gd_session *member = gd_ranks_member(ranks, rank);
        size_t n = 0;
        size_t *order = member ? hits_in_order(member, only, &n) : NULL;
        for (size_t i = 0; order && i < n; i++) {
            found[(*count)++] =
                (struct ranked){.session = member, .hit = &member->hits[order[i]], .place = i};
        }
        free(order);
    }
    if (found && *count > 0) {
        qsort(found, *count, sizeof(*found), by_step);
    }
    return found;
}

static int info_all_ranks(struct command_call *call, bool all, int only, struct gd_err *err)
{
    struct gd_session *selected = call->session;
    const struct gd_ranks *ranks = gd_ranks_of(selected);
    size_t count = 0;
    if (!ranks) {
        return gd_fail(err, GD_ESTATE, "info hits -ranks: there is no job of several ranks");
    }
    struct ranked *hits = hits_of_ranks(ranks, only, &count);
    if (!hits) {
        return gd_fail(err, GD_ENOMEM, "out of memory");
    }
    cJSON *record = out_record(call->out, "hits");
    cJSON *list = cJSON_AddArrayToObject(record, "hits");
    size_t first = all || count <= HITS_SHOWN ? 0 : count - HITS_SHOWN;
    inspect_add_count(record, "earlier", first);
    add_tally(call, record, only);
    if (count == 0) {
        show_none(call, record, only);
    }
    if (first > 0) {
        out_printf(call->out, "%s earlier (-a shows all)\n", inspect_number(call, first));
    }
    for (size_t i = first; i < count; i++) {
        call->session = hits[i].session;
        if (out_is_json(call->out)) {
            cJSON *object = hit_record(call, hits[i].hit);
            cJSON_AddNumberToObject(object, "rank", call->session->peer.rank);
            cJSON_AddItemToArray(list, object);
        } else {
            out_printf(call->out, "[rank %d] ", call->session->peer.rank);
            print_hit(call, hits[i].hit, 1);
        }
    }
    call->session = selected;
    free(hits);
    return GD_OK;
}

int cmd_info_hits(struct command_call *call, struct gd_err *err)
{
    const struct gd_session *session = call->session;
    bool all = inspect_take_flag(call, "-a");
    bool of_ranks = inspect_take_flag(call, "-ranks");
    int only = 0;
    int rc = inspect_no_options(call, err);
    if (rc == GD_OK && call->argc > 0) {
        rc = watch_number(call, call->argv[0], &only, err);
    }
    if (rc != GD_OK || of_ranks) {
        return rc == GD_OK ? info_all_ranks(call, all, only, err) : rc;
    }
    size_t count = 0;
    size_t *order = hits_in_order(session, only, &count);
    cJSON *record = out_record(call->out, "hits");
    cJSON *list = cJSON_AddArrayToObject(record, "hits");
    size_t first = all || count <= HITS_SHOWN ? 0 : count - HITS_SHOWN;
    inspect_add_count(record, "dropped", session->hits_dropped);
    inspect_add_count(record, "earlier", first);
    add_tally(call, record, only);
    if (gd_ranks_of(session)) {
        cJSON_AddNumberToObject(record, "rank", session->peer.rank);
        out_printf(call->out, "Rank %d of %d:\n", session->peer.rank, session->peer.world_size);
    }
    if (count == 0) {
        show_none(call, record, only);
    }
    if (first > 0) {
        out_printf(call->out, "%s earlier (info hits%s -a)\n", inspect_number(call, first),
                   only ? inspect_printf(call, " %d", only) : "");
    }
    if (session->hits_dropped > 0) {
        out_printf(call->out, "%s older ones are not kept (set max-hits)\n",
                   inspect_number(call, session->hits_dropped));
    }
    for (size_t i = first; i < count; i++) {
        if (out_is_json(call->out)) {
            cJSON_AddItemToArray(list, hit_record(call, &session->hits[order[i]]));
        } else {
            size_t tensors = all || only ? 1 : count_alike(session, order, first, i, count);
            if (tensors > 0) {
                print_hit(call, &session->hits[order[i]], tensors);
            }
        }
    }
    print_hidden(call, only);
    add_ranks(call, record);
    free(order);
    return GD_OK;
}

/* ---- from hit to hit ----------------------------------------------------------------------- */

struct hit_state { /* which one `hit` selected */
    int session;
    uint64_t number; /* 0: none */
    uint64_t stop;   /* the stop at which it was selected */
};

static struct hit_state *hit_state(struct repl *repl)
{
    return repl_make_slot(repl, REPL_SLOT_HITS, sizeof(struct hit_state), free);
}

static bool is_selected(const struct hit_state *state, const struct gd_session *session)
{
    return state && state->number > 0 && state->session == session->number &&
           state->stop == session->stop.sequence;
}

uint64_t hits_selected(struct repl *repl, const struct gd_session *session)
{
    const struct hit_state *state = repl_slot(repl, REPL_SLOT_HITS);
    return is_selected(state, session) ? state->number : 0;
}

/* Of this stop, what stopped it, what was checked. */
int hits_weight(const struct gd_session *session, const struct gd_hit *hit)
{
    if (hit->stop_sequence != session->stop.sequence) {
        return 0;
    }
    return 1 + (hit->error ? 0 : 1) +
           (!hit->error && !hit->traced && hit->step == session->stop.step ? 1 : 0);
}

/* Position in `order` where one begins; when none is of this stop, the first of the last step that
 * has any. */
static size_t start_of(const struct gd_session *session, const size_t *order, size_t count)
{
    size_t found = count - 1;
    int best = 0;
    while (found > 0 &&
           session->hits[order[found - 1]].step == session->hits[order[count - 1]].step) {
        found--;
    }
    for (size_t i = 0; i < count; i++) {
        int w = hits_weight(session, &session->hits[order[i]]);
        if (w > best) {
            best = w;
            found = i;
        }
    }
    return found;
}

static int no_hits(struct gd_err *err)
{
    return gd_fail(err, GD_ENOTFOUND, "no watchpoint has fired yet");
}

/* The current one moved by `by` places in order of execution. GD_ENODATA at the ends. */
static int choose(struct command_call *call, int by, const struct gd_hit **ret, struct gd_err *err)
{
    const struct gd_session *session = call->session;
    const struct hit_state *state = hit_state(call->repl);
    size_t count = 0;
    size_t *order = hits_in_order(session, 0, &count);
    if (count == 0) {
        free(order);
        return no_hits(err);
    }
    bool selected = false;
    size_t at = start_of(session, order, count);
    for (size_t i = 0; is_selected(state, session) && i < count; i++) {
        if (hits_number(session, &session->hits[order[i]]) == state->number) {
            at = i;
            selected = true;
        }
    }
    bool end = selected && ((by < 0 && at == 0) || (by > 0 && at + 1 == count));
    if (selected && !end && by != 0) {
        at = by > 0 ? at + 1 : at - 1;
    }
    const struct gd_hit *hit = &session->hits[order[at]];
    free(order);
    if (end) {
        return gd_fail(err, GD_ENODATA, "this is the %s hit", by < 0 ? "first" : "last");
    }
    *ret = hit;
    return GD_OK;
}

const struct gd_hit *hits_current(struct command_call *call, struct gd_err *err)
{
    const struct gd_hit *hit = NULL;
    struct gd_err why = {.code = GD_OK};
    int rc = call->session ? choose(call, 0, &hit, &why) : no_hits(&why);
    if (rc != GD_OK && err) {
        *err = why;
    }
    return rc == GD_OK ? hit : NULL;
}

/* "model.c:42 <tab> y = x * w;" of the node's first frame of the user's own. */
static void print_place(struct command_call *call, gd_node_id node, cJSON *object)
{
    const struct gd_frame *frame = gd_graph_place(call->session->graph, node);
    if (!frame) {
        return;
    }
    struct srcfile_part part;
    const char *code = frame->code;
    if (code[0] == '\0' && frame->line > 0 &&
        srcfile_read(call, frame->file, frame->line, 1, &part, NULL) == GD_OK && part.count > 0) {
        code = part.line[0];
    }
    out_printf(call->out, "%s:%u%s%s\n", out_safe(call, frame->file), frame->line,
               code[0] != '\0' ? "\t" : "", out_safe(call, code));
    inspect_add_text(call, object, "file", frame->file);
    cJSON_AddNumberToObject(object, "line", frame->line);
}

/* What the tensor holds now, when the trainer still stands there. A value that cannot be had is no
 * error. */
static void print_value(struct command_call *call, const struct gd_hit *hit, cJSON *object)
{
    struct gd_session *session = call->session;
    if (hit->is_scalar || hit->step != session->stop.step || session->state != GD_STOPPED) {
        return;
    }
    struct value value = {.arg = {.ref = {.node = hit->node, .slot = hit->slot}}};
    value.label = hits_where(call, hit);
    if (value_fetch(call, &value, VALUE_STATS, NULL) == GD_OK && value.has_stats) {
        value_print_summary(call, &value);
        cJSON_AddItemToObject(object, "stats", value_stats_record(&value.stats));
    }
    value_deinit(&value);
}

static void show_hit(struct command_call *call, const struct gd_hit *hit)
{
    const struct gd_condition *condition = hits_condition(call->debugger, hit);
    struct gd_session *session = call->session;
    struct gd_node_info info;
    cJSON *record = out_record(call->out, "hit");
    cJSON *object = hit_record(call, hit);
    while (object->child) { /* its members become the record's */
        cJSON *item = cJSON_DetachItemViaPointer(object, object->child);
        cJSON_AddItemToObject(record, item->string, item);
    }
    cJSON_Delete(object);
    out_printf(call->out, "Hit %llu of %llu, step %lld: %s %d, %s\n",
               (unsigned long long)hits_number(session, hit),
               (unsigned long long)(session->hits_dropped + session->hit_count),
               (long long)hit->step, hits_noun(hit), hit->watchpoint, hits_what(call, hit));
    out_printf(call->out, "  %s\n", out_safe(call, hits_where(call, hit)));
    print_params(call, hit, 4);
    if (hit->node != GD_NO_NODE && gd_graph_node(session->graph, hit->node, &info)) {
        session->current = hit->node;
        print_place(call, hit->node, record);
        print_value(call, hit, record);
    } else if (!hit->is_scalar) {
        out_printf(call->out, "The graph has no such node: it may have been optimised away.\n");
    }
    if (condition && !hit->error) {
        cJSON_AddStringToObject(record, "look", condition->look);
        cJSON_AddStringToObject(record, "advice", condition->advice ? condition->advice : "");
        watch_advice(call, condition);
    }
}

/* What can go back goes to the step of the hit. */
static void go_to_step(struct command_call *call, const struct gd_hit *hit)
{
    const struct gd_run run = {.kind = GD_RUN_GOTO, .count = hit->step, .node = GD_NO_NODE};
    struct gd_target *target = call->session->target;
    if (target && (target->capabilities & GD_CAN_GOTO) != 0 && call->session->state == GD_STOPPED &&
        hit->step != call->session->stop.step) {
        gd_target_resume(target, &run, NULL); /* where it cannot, the hit is told all the same */
    }
}

static int go(struct command_call *call, const struct gd_hit *hit, struct gd_err *err)
{
    struct hit_state *state = hit_state(call->repl);
    if (!state) {
        return gd_fail(err, GD_ENOMEM, "out of memory");
    }
    state->session = call->session->number;
    state->number = hits_number(call->session, hit);
    go_to_step(call, hit);
    int rc = hits_find(call->session, state->number, &hit, err); /* the list may have grown */
    if (rc != GD_OK) {
        return rc;
    }
    state->stop = call->session->stop.sequence;
    show_hit(call, hit);
    return GD_OK;
}

static int go_by(struct command_call *call, int by, struct gd_err *err)
{
    const struct gd_hit *hit = NULL;
    int rc = choose(call, by, &hit, err);
    return rc == GD_OK ? go(call, hit, err) : rc;
}

static int run_next_hit(struct command_call *call, struct gd_err *err)
{
    return go_by(call, 1, err);
}

static int run_previous_hit(struct command_call *call, struct gd_err *err)
{
    return go_by(call, -1, err);
}

static int run_hit(struct command_call *call, struct gd_err *err)
{
    static const char *const words[] = {"next", "previous"};
    const struct gd_hit *hit = NULL;
    int64_t number;
    if (call->argc == 0) {
        return go_by(call, 0, err);
    }
    for (int i = 0; i < 2; i++) {
        size_t len = strlen(call->argv[0]);
        if (len > 0 && strncmp(call->argv[0], words[i], len) == 0) {
            return go_by(call, i == 0 ? 1 : -1, err);
        }
    }
    int rc = arg_count(call->argv[0], 1, INT64_MAX, &number, err);
    if (rc == GD_OK) {
        rc = hits_find(call->session, (uint64_t)number, &hit, err);
    }
    return rc == GD_OK ? go(call, hit, err) : rc;
}

const struct command cmd_hits_table[] = {
    {.name = "hit",
     .group = "breakpoints",
     .usage = "hit [next | previous | N]",
     .summary = "Go to a hit: its node becomes the current one, with advice",
     .help =
         "Without an argument: the one selected before, else the first of this stop. Hits are in\n"
         "order of step and execution; \"info hits\" gives their numbers. In a dump\n"
         "it goes to the step of the hit, too.\n"
         "Examples:\n"
         "  hit\n"
         "  hit next",
     .args = {ARG_HIT},
     .flags = CMD_NEEDS_SESSION | CMD_REPEATS,
     .run = run_hit},
    {.name = "next-hit",
     .aliases = "nh",
     .group = "breakpoints",
     .usage = "next-hit",
     .summary = "Go to the next hit",
     .help = "As \"hit next\".",
     .flags = CMD_NEEDS_SESSION | CMD_REPEATS,
     .run = run_next_hit},
    {.name = "previous-hit",
     .aliases = "ph",
     .group = "breakpoints",
     .usage = "previous-hit",
     .summary = "Go to the hit before",
     .help = "As \"hit previous\".",
     .flags = CMD_NEEDS_SESSION | CMD_REPEATS,
     .run = run_previous_hit},
    {.name = NULL},
};
