// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The question whether to set the recommended watchpoints, asked once at the first stop. The
 * command `recommend` lists and sets them.
 */
#include "engine/watch/watchpoint.h"
#include "repl/core/repl_impl.h"

static bool may_offer(const struct repl *repl, const struct gd_session *session)
{
    return repl->options.interactive && !repl->options.json && !repl->options.batch &&
           repl->debugger->settings.recommend != GD_RECOMMEND_OFF && !repl->offer.made &&
           (session->stop.step <= 0 || session->stop.reason == GD_STOP_CONNECTED) &&
           session->state == GD_STOPPED && session == repl->debugger->current &&
           !repl->debugger->watchpoints;
}

static void tell_offer(struct repl *repl, size_t count)
{
    repl_printf(repl, false, "\"recommend\" shows %zu recommended watchpoint%s.\n", count,
                count == 1 ? "" : "s");
}

void repl_offer(struct repl *repl, struct gd_session *session, bool can_ask)
{
    char question[96];
    if (!may_offer(repl, session)) {
        return;
    }
    size_t count = gd_recommendation_count(session);
    if (count == 0) {
        return;
    }
    if (repl->debugger->settings.recommend == GD_RECOMMEND_ON) {
        repl->offer.made = true;
        repl_run_line(repl, "recommend yes", LINE_SCRIPT);
        return;
    }
    if (can_ask && !repl->front.ask) { /* the prompt asks when it appears */
        return;
    }
    if (repl->front.screen_ctx) { /* the panes show the question */
        return;
    }
    repl->offer.made = true;
    if (!can_ask || !repl->front.ask_in_line) {
        tell_offer(repl, count);
        return;
    }
    snprintf(question, sizeof(question), "Set the %zu recommended watchpoint%s?", count,
             count == 1 ? "" : "s");
    repl->front.ask_unprompted = true;
    bool yes = repl->front.ask(repl->front.ask_ctx, question);
    repl->front.ask_unprompted = false;
    if (yes) {
        repl_run_line(repl, "recommend yes", LINE_SCRIPT);
    } else {
        repl_printf(repl, false,
                    "\"recommend\" shows them; put \"set recommend off\" in gradbrc to stop this "
                    "question.\n");
    }
}

size_t repl_offers(struct repl *repl)
{
    struct gd_session *session = repl->debugger->current;

    if (!session || repl->debugger->settings.recommend != GD_RECOMMEND_ASK ||
        !may_offer(repl, session)) {
        return 0;
    }
    if (repl->offer.session != session->number ||
        repl->offer.generation != session->graph_generation) {
        repl->offer.count = gd_recommendation_count(session);
        repl->offer.session = session->number;
        repl->offer.generation = session->graph_generation;
    }
    return repl->offer.count;
}

void repl_offer_later(struct repl *repl)
{
    size_t count = repl_offers(repl);

    if (count > 0) {
        repl->offer.made = true;
        tell_offer(repl, count);
    }
}

void repl_offer_at_prompt(struct repl *repl)
{
    if (repl->debugger->current) {
        repl_offer(repl, repl->debugger->current, true);
    }
}
