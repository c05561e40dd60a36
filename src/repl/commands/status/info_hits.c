// SPDX-License-Identifier: GPL-3.0-or-later
/* `info hits`. */
#include <stdlib.h>
#include <string.h>

#include "engine/ranks.h"
#include "repl/commands/breakpoints/hit.h"
#include "repl/commands/status/info.h"
#include "repl/core/hits.h"
#include "repl/values/inspect.h"
#include "repl/values/watch.h"

#define HITS_SHOWN 40

static const char *short_name(struct command_call *call, const struct gd_hit *hit)
{
    const struct gd_condition *condition = hits_condition(call->debugger, hit);
    return condition                    ? condition->abbr
           : hit->expression[0] != '\0' ? out_safe(call, hit->expression)
                                        : "?";
}

static bool are_alike(const struct gd_hit *a, const struct gd_hit *b)
{
    return a->error && a->error == b->error && a->watchpoint == b->watchpoint && a->step == b->step;
}

/* How many of order[from ... count) failed like the one at `at`: they are shown as one. 0: it was
 * already shown with an earlier one. */
static size_t count_alike(const struct gd_session *session, const size_t *order, size_t from,
                          size_t at, size_t count)
{
    const struct gd_hit *hit = &session->hits[order[at]];
    size_t found = 1;
    for (size_t i = from; i < at; i++) {
        if (are_alike(&session->hits[order[i]], hit)) {
            return 0;
        }
    }
    for (size_t i = at + 1; i < count; i++) {
        found += are_alike(&session->hits[order[i]], hit);
    }
    return found;
}

/* `tensors` > 1: the hit stands for that many similar ones. */
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
    hit_print_params(call, hit, 8);
}

/* Hits that watchpoints found and did not report. */
static void print_hidden(struct command_call *call, int only)
{
    const struct gd_watchpoint *watch = call->debugger->watchpoints;
    for (; watch; watch = watch->next) {
        if (watch->intended && (!only || watch->number == only)) {
            out_printf(call->out, "Watchpoint %d %s.\n", watch->number, watch_hidden(call, watch));
        }
    }
}

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

/* How many checks were made, by asking the training processes, which do not report most of them. 0:
 * unknown. */
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

    out_set(record, OUT_INT("watchpoints", tally.watchpoints), OUT_INT("unclear", tally.unclear));
    gd_hit_error_text(tally.errors, why, sizeof(why));
    out_set(record, OUT_SOME("why_unclear", why));
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
    out_set(record, OUT_IF(made > 0, OUT_INT("checks", made)));
}

/* Names the rank of these hits, and other ranks of the job with hits. */
static void add_ranks(struct command_call *call, cJSON *record)
{
    const struct gd_ranks *ranks = gd_ranks_of(call->session);
    cJSON *others = ranks ? out_list(record, "other_ranks") : NULL;
    for (int rank = 0; ranks && rank < gd_ranks_world_size(ranks); rank++) {
        const struct gd_session *other = gd_ranks_member(ranks, rank);
        size_t count = other ? other->hits_dropped + other->hit_count : 0;
        if (other == call->session || count == 0) {
            continue;
        }
        cJSON *item = out_push(others);
        out_set(item, OUT_INT("rank", rank), OUT_INT("hits", count));
        out_printf(call->out, "Rank %d has %s (rank %d; info hits -ranks)\n", rank,
                   inspect_plural(call, count, "hit"), rank);
    }
}

struct ranked { /* a hit of a job */
    struct gd_session *session;
    const struct gd_hit *hit;
    size_t place; /* index in its rank's order */
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

/* The hits of all ranks of the job by step. NULL: out of memory. */
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
        return gd_fail(err, GD_ESTATE,
                       "info hits -ranks: the session does not belong to a job of several ranks");
    }
    struct ranked *hits = hits_of_ranks(ranks, only, &count);
    if (!hits) {
        return gd_fail_nomem(err);
    }
    cJSON *record = out_record(call->out, "hits");
    cJSON *list = out_list(record, "hits");
    size_t first = all || count <= HITS_SHOWN ? 0 : count - HITS_SHOWN;
    out_set(record, OUT_INT("earlier", first));
    add_tally(call, record, only);
    if (count == 0) {
        show_none(call, record, only);
    }
    if (first > 0) {
        out_printf(call->out, "%s earlier (-a shows all)\n", inspect_number(call, first));
    }
    for (size_t i = first; i < count; i++) {
        call->session = hits[i].session;
        cJSON *object = out_push(list);
        hit_record(call, object, hits[i].hit);
        out_set(object, OUT_INT("rank", call->session->peer.rank));
        out_printf(call->out, "[rank %d] ", call->session->peer.rank);
        print_hit(call, hits[i].hit, 1);
    }
    call->session = selected;
    free(hits);
    return GD_OK;
}

int info_hits(struct command_call *call, struct gd_err *err)
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
    cJSON *list = out_list(record, "hits");
    size_t first = all || count <= HITS_SHOWN ? 0 : count - HITS_SHOWN;
    out_set(record, OUT_INT("dropped", session->hits_dropped), OUT_INT("earlier", first));
    add_tally(call, record, only);
    if (gd_ranks_of(session)) {
        out_set(record, OUT_INT("rank", session->peer.rank));
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
        out_printf(call->out, "%s older hits were dropped (set max-hits)\n",
                   inspect_number(call, session->hits_dropped));
    }
    for (size_t i = first; i < count; i++) {
        size_t tensors = all || only ? 1 : count_alike(session, order, first, i, count);
        hit_record(call, out_push(list), &session->hits[order[i]]);
        if (tensors > 0) {
            print_hit(call, &session->hits[order[i]], tensors);
        }
    }
    print_hidden(call, only);
    add_ranks(call, record);
    free(order);
    return GD_OK;
}
