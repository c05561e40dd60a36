// SPDX-License-Identifier: GPL-3.0-or-later
#include "repl/values/change.h"

#include <string.h>

#include "engine/ranks.h"
#include "repl/core/everyone.h"
#include "repl/core/repl_impl.h"
#include "repl/values/evaluate.h"
#include "repl/values/inspect.h"

struct answers {
    struct command_call *call;
    cJSON *reply; /* of the selected process */
    bool undone;
    int ranks;
};

cJSON *change_request(const char *what)
{
    cJSON *request = cJSON_CreateObject();

    cJSON_AddStringToObject(request, "what", what);
    return request;
}

/* With the old value: "net/fc/weight[0] = 1 (was 0.25)". */
static const char *event_text(struct command_call *call, const cJSON *reply, bool undone)
{
    const cJSON *old = cJSON_GetObjectItem(reply, "old");
    const char *text = out_text_of(reply, "text");

    if (undone) {
        return inspect_printf(call, "undone: %.900s", text);
    }
    return cJSON_IsString(old) ? inspect_printf(call, "%.700s (was %.200s)", text, old->valuestring)
                               : text;
}

static void take_reply(void *ctx, struct gd_session *session, const cJSON *reply)
{
    struct answers *answers = ctx;

    answers->ranks++;
    if (!answers->reply) {
        answers->reply = cJSON_Duplicate(reply, true);
    }
    if (!cJSON_IsTrue(cJSON_GetObjectItem(reply, "same"))) {
        gd_session_changed(session, event_text(answers->call, reply, answers->undone));
    }
    gd_session_forget_values(session);
}

static void show_change(struct command_call *call, const struct answers *answers, int refused)
{
    cJSON *record = out_record(call->out, "change");
    const cJSON *reply = answers->reply;
    const cJSON *old = cJSON_GetObjectItem(reply, "old");
    double elements = out_number_of(reply, "elements");

    out_set(record, OUT_TEXT("text", out_text_of(reply, "text")),
            OUT_BOOL("undone", answers->undone), OUT_INT("step", gd_session_step(call->session)),
            OUT_IF(old, OUT_JSON("old", cJSON_Duplicate(old, true))),
            OUT_IF(elements > 0, OUT_REAL("elements", elements)),
            OUT_SOME("not_undoable", out_text_of(reply, "undo")));
    out_say(call->out, record, answers->undone ? "Undone: {text}\n" : "{text}[ (was {was})]\n",
            OUT_TEXT("was", cJSON_IsString(old) ? old->valuestring : NULL));
    out_say(call->out, record, "[This cannot be undone: {not_undoable}.\n]");
    if (gd_ranks_of(call->session)) {
        out_set(record, OUT_INT("ranks", answers->ranks), OUT_INT("refused", refused));
        out_say(call->out, record, "{ranks|rank} changed[; {refused|rank} did not].\n");
    }
}

int change_send(struct command_call *call, const char *command, cJSON *request, struct gd_err *err)
{
    struct answers answers = {.call = call, .undone = strcmp(command, "undo") == 0};
    int refused = 0;
    int rc = evaluate_need_python(call, call->command->name, err);

    if (rc == GD_OK && !job_is_stopped(call->session)) {
        rc = gd_fail(err, GD_ESTATE,
                     "%s changes all ranks of the job, and not all are stopped: `step` first",
                     call->command->name);
    }
    cJSON_AddNumberToObject(request, "stop",
                            rc == GD_OK ? (double)call->session->stop.sequence : 0);
    char *text = cJSON_PrintUnformatted(request);
    cJSON_Delete(request);
    rc = rc != GD_OK ? rc : !text ? gd_fail_nomem(err) : GD_OK;
    rc = rc != GD_OK ? rc : job_command(call, command, text, take_reply, &answers, &refused, err);
    cJSON_free(text);
    if (rc == GD_OK && answers.reply) {
        show_change(call, &answers, refused);
    }
    cJSON_Delete(answers.reply);
    return rc;
}
