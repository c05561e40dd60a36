// SPDX-License-Identifier: GPL-3.0-or-later
/* At the first stop of a job of several ranks: whether its parameters are equal on all of them. The
 * script may still change them before step 1, so the end of that step is checked, too, if the job
 * stops there; then only a difference is reported. */
#include <stdlib.h>

#include "engine/ranks.h"
#include "repl/core/await.h"
#include "repl/core/repl_impl.h"

#define PATIENCE 5.0 /* seconds for the digests; without them nothing is said */
#define NAMES    3   /* of parameters that differ */

struct digests {
    struct await await;
    struct repl *repl;
    bool first; /* the first stop; else the end of step 1 */
};

static void name_differing(const struct gd_ranks_digests *digests, cJSON *record)
{
    cJSON *list = out_list(record, "differing");
    struct gd_buf names = GD_BUF_INIT(4096);
    size_t named = 0;

    for (size_t i = 0; i < digests->tensor_count; i++) {
        const struct gd_ranks_digest *tensor = &digests->tensor[i];
        if (tensor->differs < 0) {
            continue;
        }
        out_set(out_push(list), OUT_TEXT("name", tensor->name), OUT_INT("rank", tensor->differs));
        if (named++ < NAMES) {
            gd_buf_printf(&names, "%s%.300s (rank %d)", named > 1 ? ", " : "", tensor->name,
                          tensor->differs);
        }
    }
    out_set(record, OUT_IF(named > 0, OUT_TEXT("names", gd_buf_text(&names))));
    gd_buf_deinit(&names);
}

static void say_equal(struct repl *repl, bool first, const struct gd_ranks_digests *digests)
{
    struct out_report report;
    struct repl_out *out = out_report_begin(&report, repl);
    cJSON *record = out_record(out, "ranks_equal");

    out_set(record, OUT_INT("step", first ? 0 : 1), OUT_INT("ranks", digests->rank_count),
            OUT_INT("parameters", digests->compared), OUT_INT("alone", digests->alone),
            OUT_INT("left_out", digests->left_out));
    name_differing(digests, record);
    out_say(out, record,
            digests->differing == 0
                ? "{parameters|parameter} [{?one}is][{!one}are] equal on {ranks} ranks {when}[ "
                  "({left_out} sharded or unreadable, not compared)].\n"
                : "{count} of {parameters|parameter} [{?few}differs][{!few}differ] between {ranks} "
                  "ranks {when}: {names}[, ...{?more}] (see \"rank check\").\n",
            OUT_TEXT("when", first ? "at the first stop" : "at the end of step 1"),
            OUT_BOOL("one", digests->compared == 1), OUT_BOOL("few", digests->differing == 1),
            OUT_INT("count", digests->differing), OUT_BOOL("more", digests->differing > NAMES));
    out_report_end(&report);
}

static void on_digests(void *ctx, const struct gd_ranks_digests *digests, const struct gd_err *err)
{
    struct digests *asked = ctx;

    if (await_take(asked) && !err && digests->compared > 0 &&
        (asked->first || digests->differing > 0)) {
        say_equal(asked->repl, asked->first, digests);
    }
}

void repl_tell_equal_ranks(struct repl *repl, struct gd_session *session)
{
    struct gd_ranks *ranks = gd_ranks_of(session);

    bool first = gd_stop_is_before_first(&session->stop);
    bool last =
        session->stop.at_step_end && session->stop.step == 1; /* the last stop that is checked */

    if (!ranks || !(first || last) || gd_ranks_live(ranks) < 2 ||
        (repl->told_equal == ranks && repl->told_settled == gd_ranks_settled(ranks))) {
        return;
    }
    repl->told_equal = ranks;
    repl->told_settled = gd_ranks_settled(ranks);
    struct digests *asked = calloc(1, sizeof(*asked));
    if (!asked) {
        return;
    }
    asked->repl = repl;
    asked->first = first;
    if (gd_ranks_digest(ranks, "parameters", on_digests, asked, NULL) != GD_OK ||
        repl_await(repl, asked, PATIENCE) == GD_OK) {
        free(asked); /* otherwise its callback frees it */
    }
}
