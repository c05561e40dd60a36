// SPDX-License-Identifier: GPL-3.0-or-later
/* What the training process knows about a value that `why` is asked about. */
#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/ranks.h"
#include "repl/core/await.h"
#include "repl/core/command.h"
#include "repl/core/repl_impl.h"
#include "repl/values/inspect.h"
#include "repl/values/why.h"

#define COMMAND "training"

static void take_text(const cJSON *object, const char *name, char *ret, size_t size)
{
    snprintf(ret, size, "%s", out_text_of(object, name));
}

static int64_t take_count(const cJSON *object, const char *name)
{
    double value = out_number_of(object, name);
    return value > -1e15 && value < 1e15 ? (int64_t)value : 0;
}

static void take_trained(const cJSON *trained, struct gd_why_facts *ret)
{
    take_text(trained, "parameter", ret->parameter, sizeof(ret->parameter));
    ret->of_parameter = ret->parameter[0] != '\0';
    ret->frozen = cJSON_IsTrue(cJSON_GetObjectItem(trained, "frozen"));
    ret->has_gradient = cJSON_IsTrue(cJSON_GetObjectItem(trained, "gradient"));
    take_text(trained, "optimizer", ret->optimizer, sizeof(ret->optimizer));
    ret->optimizers = (int)take_count(trained, "optimizers");
    ret->has_stepped = cJSON_IsNumber(cJSON_GetObjectItem(trained, "stepped"));
    ret->stepped = take_count(trained, "stepped");
    ret->has_rate = cJSON_IsNumber(cJSON_GetObjectItem(trained, "lr"));
    ret->rate = out_number_of(trained, "lr");
}

static void take_raised(const cJSON *raised, struct gd_why_facts *ret)
{
    const cJSON *place = cJSON_GetObjectItem(raised, "place");
    take_text(raised, "error", ret->raised, sizeof(ret->raised));
    take_text(raised, "numbers", ret->numbers, sizeof(ret->numbers));
    ret->number = take_count(raised, "number");
    ret->choices = take_count(raised, "count");
    ret->axis = take_count(raised, "axis");
    ret->from_end = cJSON_IsTrue(cJSON_GetObjectItem(raised, "from_end"));
    ret->listed = cJSON_IsTrue(cJSON_GetObjectItem(raised, "listed"));
    char *text = place ? cJSON_PrintUnformatted(place) : NULL;
    snprintf(ret->place, sizeof(ret->place), "%s", text ? text : "");
    cJSON_free(text);
}

static void take_gradients(const cJSON *all, const char *kind, struct gd_why_gradients *ret)
{
    const cJSON *object = cJSON_GetObjectItem(all, kind), *name;
    ret->count = take_count(object, "count");
    cJSON_ArrayForEach(name, cJSON_GetObjectItem(object, "names"))
    {
        if (ret->named < GD_WHY_NAMED && cJSON_IsString(name)) {
            snprintf(ret->name[ret->named], sizeof(ret->name[0]), "%s", name->valuestring);
            ret->named++;
        }
    }
}

static void take_audit(const cJSON *reply, struct gd_why_facts *ret)
{
    const cJSON *gradients = cJSON_GetObjectItem(reply, "gradients");
    const cJSON *lost = cJSON_GetObjectItem(reply, "lost"), *item;
    take_text(lost, "parameter", ret->lost, sizeof(ret->lost));
    take_text(lost, "optimizer", ret->lost_of, sizeof(ret->lost_of));
    take_text(gradients, "optimizer", ret->main, sizeof(ret->main));
    ret->held = take_count(gradients, "held");
    ret->looked = take_count(gradients, "looked");
    take_gradients(gradients, "none", &ret->none);
    take_gradients(gradients, "zero", &ret->zero);
    take_gradients(gradients, "nonfinite", &ret->nonfinite);
    cJSON_ArrayForEach(item, cJSON_GetObjectItem(reply, "exits"))
    {
        if (ret->exit_count < GD_WHY_EXITS) {
            struct gd_why_exit *left = &ret->exits[ret->exit_count++];
            take_text(item, "node", left->node, sizeof(left->node));
            take_text(item, "by", left->by, sizeof(left->by));
            take_text(item, "line", left->line, sizeof(left->line));
        }
    }
}

static void take_scaling(const cJSON *reply, struct gd_why_facts *ret)
{
    const cJSON *skipped = cJSON_GetObjectItem(reply, "skipped");
    ret->scale = out_number_of(reply, "scale");
    ret->skipped = take_count(skipped, "step");
    take_text(skipped, "optimizer", ret->skipped_of, sizeof(ret->skipped_of));
    take_text(skipped ? skipped : reply, "scaler", ret->scaler, sizeof(ret->scaler));
}

/* Nothing of the program has run since the step ended: the gradients are those that it used. At
 * other events between two steps they may have been zeroed. */
static bool is_right_after_step(const struct gd_stop *stop)
{
    return stop->at_step_end && !stop->at_line &&
           (stop->reason != GD_STOP_EVENT || stop->happened.kind == GD_HAPPENED_STEP_END);
}

int why_ask_facts(struct command_call *call, gd_node_id node, struct gd_why_facts *ret,
                  struct gd_err *err)
{
    const struct gd_session *session = call->session;
    const char *text = NULL;
    struct gd_err why = {.code = GD_OK};
    bool fired = ret->fired;
    memset(ret, 0, sizeof(*ret));
    ret->fired = fired;
    if (!session->target || !(session->target->capabilities & GD_CAN_COMMAND) ||
        session->state != GD_STOPPED) {
        return GD_OK;
    }
    const char *audit = is_right_after_step(&session->stop) ? "audit" : "";
    int rc = repl_command(call, COMMAND, audit, node, &text, &why);
    if (rc != GD_OK) {
        return rc == GD_EINTR ? gd_fail(err, rc, "%s", why.text) : GD_OK;
    }
    cJSON *reply = cJSON_Parse(text);
    const cJSON *piled = cJSON_GetObjectItem(reply, "not set back");
    take_trained(cJSON_GetObjectItem(reply, "trained"), ret);
    take_raised(cJSON_GetObjectItem(reply, "raised"), ret);
    take_audit(reply, ret);
    take_scaling(reply, ret);
    ret->piled_up_since = take_count(piled, "since");
    ret->followed = take_count(reply, "followed");
    take_text(reply, "loss", ret->loss, sizeof(ret->loss));
    take_text(piled, "parameter", ret->piled_up_in, sizeof(ret->piled_up_in));
    take_text(piled, "optimizer", ret->piled_up_by, sizeof(ret->piled_up_by));
    cJSON_Delete(reply);
    return GD_OK;
}

/* ---- the other ranks ----------------------------------------------------------------------- */

struct agreement {
    struct await await;
    enum gd_why_agreement found;
    int rank;
};

static void on_agreement(void *ctx, const struct gd_ranks_digests *digests,
                         const struct gd_err *err)
{
    struct agreement *asked = ctx;

    (void)err; /* unknown then */
    if (await_take(asked) && digests && digests->tensor_count == 1) {
        asked->rank = digests->tensor[0].differs;
        asked->found = asked->rank >= 0 ? GD_WHY_DIFFERS : GD_WHY_SAME;
    }
}

/* Whether the tensor is equal on all ranks. Only GD_EINTR is an error. */
static int ask_agreement(struct command_call *call, const char *name, struct agreement *ret,
                         struct gd_err *err)
{
    struct gd_ranks *ranks = gd_ranks_of(call->session);
    struct agreement *asked = calloc(1, sizeof(*asked));
    int rc = GD_OK;

    *ret = (struct agreement){.rank = -1};
    if (!asked || !ranks || gd_ranks_digest(ranks, name, on_agreement, asked, NULL) != GD_OK) {
        free(asked);
        return GD_OK;
    }
    rc = repl_await(call->repl, asked, -1);
    if (rc != GD_OK) {
        return rc == GD_EINTR ? gd_fail(err, rc, "interrupted while asking the ranks") : GD_OK;
    }
    *ret = *asked;
    free(asked);
    return GD_OK;
}

int why_ask_ranks(struct command_call *call, struct gd_why_facts *facts, struct gd_err *err)
{
    struct agreement weight, gradient;
    int rc = ask_agreement(call, facts->parameter, &weight, err);

    if (rc == GD_OK && weight.found == GD_WHY_DIFFERS) {
        facts->apart = true;
        facts->apart_rank = weight.rank;
        rc = ask_agreement(call, inspect_printf(call, "%s.grad", facts->parameter), &gradient, err);
        facts->apart_gradient = gradient.found;
    }
    return rc;
}
