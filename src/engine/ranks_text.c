// SPDX-License-Identifier: GPL-3.0-or-later
/* Where the ranks of a job are. */
#include <stdlib.h>

#include "engine/ranks_impl.h"

#define MAX_MISSING 64 /* ranks that are named */

bool gd_ranks_are_busy(const struct gd_ranks *ranks)
{
    return ranks->phase != RANKS_IDLE;
}

bool gd_ranks_is_running(const struct gd_session *session)
{
    const struct gd_ranks *ranks = gd_ranks_of(session);
    return session->state == GD_RUNNING ||
           (ranks && gd_session_is_live(session) &&
            (ranks->phase == RANKS_RUN || ranks->phase == RANKS_CHECK));
}

struct numbers { /* rank numbers, added in ascending order: "0-2, 5" */
    struct gd_buf *out;
    int count, first, last;
};

static void end_range(struct numbers *numbers)
{
    if (numbers->first < numbers->last) {
        gd_buf_printf(numbers->out, "%s%d", numbers->last == numbers->first + 1 ? ", " : "-",
                      numbers->last);
    }
}

static void add_number(struct numbers *numbers, int rank)
{
    if (numbers->count > 0 && rank == numbers->last + 1) {
        numbers->last = rank;
    } else {
        end_range(numbers);
        gd_buf_printf(numbers->out, "%s%d", numbers->count > 0 ? ", " : "", rank);
        numbers->first = numbers->last = rank;
    }
    numbers->count++;
}

/* Whether one sentence covers both. */
static bool same_place(const struct gd_session *a, const struct gd_session *b)
{
    if (a->state != GD_STOPPED || b->state != GD_STOPPED) {
        return a->state != GD_STOPPED && b->state != GD_STOPPED;
    }
    return a->stop.step == b->stop.step && a->stop.at_step_end == b->stop.at_step_end;
}

/* What becomes of a job in which ranks wait for long. */
static void add_limit(const struct gd_ranks *ranks, struct gd_buf *out)
{
    int limit = gd_ranks_limit(ranks);

    if (limit > 0) {
        gd_buf_printf(out, "MindSpore ends a job in which a rank waits for %d s%s.\n", limit,
                      ranks->debugger->settings.rank_locking == GD_LOCKING_ON
                          ? ""
                          : ": before that, gradb lets all ranks finish the step");
    }
}

static void add_place(const struct gd_session *session, bool many, struct gd_buf *out)
{
    const struct gd_stop *stop = &session->stop;

    if (session->state != GD_STOPPED) {
        gd_buf_printf(
            out, " %s running: %s may be waiting in a collective for those that are stopped.\n",
            many ? "are" : "is", many ? "they" : "it");
        add_limit(gd_ranks_of(session), out);
    } else if (gd_stop_is_before_first(stop)) {
        gd_buf_printf(out, " %s stopped before the first step.\n", many ? "are" : "is");
    } else {
        gd_buf_printf(out, " %s stopped %s step %lld.\n", many ? "are" : "is",
                      stop->at_step_end ? "at the end of" : "in", (long long)stop->step);
    }
}

/* The ranks at the same place as list[first], which are removed from the list. */
static void add_sentence(const struct gd_ranks *ranks, struct gd_session **list, size_t count,
                         size_t first, struct gd_buf *out)
{
    struct gd_buf text = GD_BUF_INIT(1 << 16);
    struct numbers numbers = {.out = &text};
    struct gd_session *at = list[first];

    for (size_t i = first; i < count; i++) {
        if (list[i] && same_place(list[i], at)) {
            add_number(&numbers, list[i]->peer.rank);
            list[i] = NULL;
        }
    }
    end_range(&numbers);
    if (numbers.count == ranks->world_size) {
        gd_buf_printf(out, "All %d ranks", numbers.count);
    } else {
        gd_buf_printf(out, "Rank%s %s", numbers.count > 1 ? "s" : "", gd_buf_text(&text));
    }
    gd_buf_deinit(&text);
    add_place(at, numbers.count > 1, out);
}

bool gd_ranks_missing(const struct gd_ranks *ranks, struct gd_buf *out)
{
    struct numbers numbers = {.out = out};

    int rank = 0;

    for (; rank < ranks->world_size && numbers.count < MAX_MISSING; rank++) {
        if (!gd_ranks_member(ranks, rank)) {
            add_number(&numbers, rank);
        }
    }
    end_range(&numbers);
    while (rank < ranks->world_size && gd_ranks_member(ranks, rank)) {
        rank++;
    }
    gd_buf_puts(out, rank < ranks->world_size ? ", ..." : "");
    return numbers.count > 0;
}

void gd_ranks_text(const struct gd_ranks *ranks, struct gd_buf *out)
{
    size_t count;
    struct gd_session **list = ranks_list(ranks, &count);
    struct gd_buf missing = GD_BUF_INIT(1 << 16);

    for (size_t i = 0; list && i < count; i++) {
        if (list[i]) {
            add_sentence(ranks, list, count, i, out);
        }
    }
    if (gd_ranks_missing(ranks, &missing)) {
        gd_buf_printf(out, "Not connected, of %d: rank %s.\n", ranks->world_size,
                      gd_buf_text(&missing));
    }
    gd_buf_deinit(&missing);
    free(list);
}
