// SPDX-License-Identifier: GPL-3.0-or-later
/* Commands: recommend */
#include <string.h>

#include "engine/watch/expected.h"
#include "repl/core/repl_impl.h"
#include "repl/values/inspect.h"
#include "repl/values/watch.h"

#define LABEL "recommended"

/* The watchpoint that sets this recommendation; NULL: none. An edited one does not count. */
static const struct gd_watchpoint *set_already(const struct gd_debugger *debugger,
                                               const struct gd_recommendation *offer)
{
    for (const struct gd_watchpoint *watch = debugger->watchpoints; watch; watch = watch->next) {
        bool same = watch->condition == offer->condition &&
                    strcmp(watch->where, offer->where) == 0 &&
                    watch->value_count >= offer->value_count &&
                    watch->steps == (offer->steps ? offer->steps : 1) &&
                    (watch->guard != NULL) == (offer->guard != NULL);
        for (size_t i = 0; same && i < offer->value_count; i++) {
            same = strcmp(watch->values[i].name, offer->values[i].name) == 0 &&
                   watch->values[i].value == offer->values[i].value;
        }
        if (same) {
            return watch;
        }
    }
    return NULL;
}

static const char *offer_text(struct command_call *call, const struct gd_recommendation *offer)
{
    const char *text = offer->condition->abbr;
    for (size_t i = 0; i < offer->value_count; i++) {
        text = inspect_printf(call, "%s %s=%.12g", text, offer->values[i].name,
                              offer->values[i].value);
    }
    text = inspect_printf(call, "%s on %s", text, offer->where);
    if (offer->guard) {
        text = inspect_printf(call, "%s if %s", text, offer->guard);
    }
    return offer->steps > 1 ? inspect_printf(call, "%s, %u steps in a row", text, offer->steps)
                            : text;
}

static const char *nodes_text(struct command_call *call, const struct gd_condition *condition,
                              size_t nodes)
{
    if (condition && condition->target == GD_COND_SCALAR) {
        return "a metric that the training reports";
    }
    return nodes > 0 ? inspect_plural(call, nodes, "node") : "no matching nodes yet";
}

static void list_offers(struct command_call *call, struct gd_session *session)
{
    cJSON *list = out_list(out_record(call->out, "recommended"), "recommended");
    struct gd_recommendation offer;
    bool open = false;
    for (size_t i = 0; gd_recommendation_at(session, i, &offer); i++) {
        const struct gd_watchpoint *watch = set_already(call->debugger, &offer);
        cJSON *object = out_push(list);
        out_set(object, OUT_TEXT("name", offer.name), OUT_TEXT("condition", offer.condition->id),
                OUT_TEXT("abbreviation", offer.condition->abbr));
        cJSON *params = out_object(object, "params");
        for (size_t k = 0; k < offer.value_count; k++) {
            out_set(params, OUT_REAL(offer.values[k].name, offer.values[k].value));
        }
        out_set(object, OUT_TEXT("where", offer.where),
                OUT_IF(offer.guard, OUT_TEXT("if", offer.guard)),
                OUT_IF(offer.steps > 1, OUT_INT("steps", offer.steps)),
                OUT_INT("nodes", offer.nodes), OUT_IF(watch, OUT_INT("watchpoint", watch->number)));
        out_printf(call->out, "  %s: %s%s\n", offer_text(call, &offer),
                   nodes_text(call, offer.condition, offer.nodes),
                   watch ? inspect_printf(call, ", set as watchpoint %d", watch->number) : "");
        open = open || !watch;
    }
    if (gd_recommendation_count(session) == 0) {
        out_printf(call->out, "Nothing is recommended for this graph.\n");
    } else if (open) {
        out_printf(call->out, "\"recommend yes\" sets them.\n");
    }
}

static int set_offers(struct command_call *call, struct gd_session *session, struct gd_err *err)
{
    struct gd_recommendation offer;
    cJSON *list = out_list(out_record(call->out, "watchpoints"), "watchpoints");
    for (size_t i = 0; gd_recommendation_at(session, i, &offer); i++) {
        struct gd_watchpoint *watch = NULL;
        struct gd_watch_spec spec = {.condition = offer.condition,
                                     .values = offer.values,
                                     .value_count = offer.value_count,
                                     .where = offer.where,
                                     .guard = offer.guard,
                                     .steps = offer.steps,
                                     .label = LABEL};
        if (set_already(call->debugger, &offer)) {
            continue;
        }
        int rc = gd_watchpoint_add(call->debugger, &spec, &watch, err);
        if (rc != GD_OK) {
            return rc;
        }
        cJSON *object = out_push(list);
        watch_record(call, object, watch);
        out_printf(call->out, "Watchpoint %d: %s: %s\n", watch->number, watch_text(call, watch),
                   nodes_text(call, watch->condition, watch_nodes(call, watch)));
    }
    if (cJSON_GetArraySize(list) == 0) {
        out_printf(call->out, "All recommended watchpoints are already set.\n");
    }
    return GD_OK;
}

static int run_recommend(struct command_call *call, struct gd_err *err)
{
    const char *word = call->argc > 0 ? call->argv[0] : "list";
    if (call->argc > 1 ||
        (strcmp(word, "list") != 0 && strcmp(word, "yes") != 0 && strcmp(word, "no") != 0)) {
        return gd_fail(err, GD_EUSAGE, "recommend: expected list, yes or no");
    }
    if (word[0] == 'n') {
        call->repl->offer.made = true;
        return GD_OK;
    }
    if (!call->session->graph_generation && !gd_session_grows(call->session)) {
        return gd_fail(err, GD_ESTATE, "the training process has not sent a graph yet");
    }
    if (word[0] == 'l') {
        list_offers(call, call->session);
        return GD_OK;
    }
    call->repl->offer.made = true;
    return set_offers(call, call->session, err);
}

const struct command cmd_recommend = {
    .name = "recommend",
    .aliases = "rec",
    .group = "breakpoints",
    .usage = "recommend [list | yes | no]",
    .summary = "List the recommended watchpoints, or set them",
    .help =
        "A set of watchpoints that a healthy training does not trigger: unexpected non-finite\n"
        "values, weights and layers that are 0, gradients that vanish for many steps, weights\n"
        "that change too much, saturated activations, a rising loss. For a MindSpore process\n"
        "that evaluates watchpoints itself, the set is MindInsight's. Watchpoints that do not\n"
        "fit the graph are omitted; nothing is recommended before the first step of a program\n"
        "whose graph becomes known only as it runs. At the first stop gradb asks once whether\n"
        "to set them; typing another command counts as no, and the command runs. \"set recommend\n"
        "on\" sets them without asking, \"set recommend off\" neither asks nor sets. In scripts\n"
        "nothing is asked or set.",
    .examples = "recommend\n"
                "recommend yes",
    .args = {ARG_CHOICE},
    .flags = CMD_NEEDS_SESSION,
    .run = run_recommend,
};
