// SPDX-License-Identifier: GPL-3.0-or-later
/* `info target`. */
#include <string.h>

#include "repl/commands/status/info.h"
#include "repl/values/inspect.h"

static const struct {
    unsigned bit;
    const char *word;
} capability_words[] = {
    {GD_CAN_STEP, "step"},
    {GD_CAN_NEXT, "next"},
    {GD_CAN_FINISH, "finish"},
    {GD_CAN_INTERRUPT, "interrupt"},
    {GD_CAN_FETCH, "tensors"},
    {GD_CAN_STATS, "statistics"},
    {GD_CAN_PREVIOUS, "previous"},
    {GD_CAN_WATCH_REMOTE, "watch"},
    {GD_CAN_CHECKPOINT, "checkpoint"},
    {GD_CAN_DETACH, "detach"},
    {GD_CAN_KILL, "kill"},
};

#define CAPABILITIES (sizeof(capability_words) / sizeof(capability_words[0]))

static const char *state_text(struct command_call *call, const struct gd_session *session)
{
    const char *text = gd_state_name(session->state);
    if (session->state == GD_STOPPED) {
        text = inspect_printf(call, "%s (%s)", text, gd_stop_reason_name(session->stop.reason));
    }
    if (session->end_text[0]) {
        text = inspect_printf(call, "%s: %s", text, session->end_text);
    }
    return text;
}

/* Where the session is stopped; while it runs and after its end, the last known step. */
static const char *place_text(struct command_call *call, const struct gd_session *session)
{
    const struct gd_stop *stop = &session->stop;
    const char *text = inspect_printf(call, "%lld", (long long)gd_session_step(session));
    if (gd_session_step(session) != stop->step) {
        return text;
    }
    if (gd_stop_is_before_first(stop)) {
        return "before the first step";
    }
    if (stop->at_step_end) {
        return inspect_printf(call, "%s (between steps)", text);
    }
    if (stop->phase[0]) {
        text = inspect_printf(call, "%s, %s", text, stop->phase);
    }
    if (stop->node_name[0]) {
        text = inspect_printf(call, "%s, at %s", text, stop->node_name);
    }
    return text;
}

/* Identity and place of a session, for info target and info ranks. */
void info_add_session(struct command_call *call, cJSON *record, const struct gd_session *session)
{
    const struct gd_peer *peer = &session->peer;
    const struct gd_stop *stop = &session->stop;
    out_set(
        record, OUT_INT("session", session->number),
        OUT_BOOL("selected", session == call->debugger->current),
        OUT_BOOL("live", gd_session_is_live(session)),
        OUT_TEXT("state", gd_state_name(session->state)),
        OUT_TEXT("reason", gd_stop_reason_name(stop->reason)),
        OUT_INT("step", gd_session_step(session)), OUT_BOOL("at_step_end", stop->at_step_end),
        OUT_TEXT("node", stop->node_name), OUT_TEXT("phase", stop->phase),
        OUT_TEXT("end", session->end_text), OUT_TEXT("framework", peer->framework),
        OUT_TEXT("version", peer->version), OUT_TEXT("program", peer->program),
        OUT_TEXT("host", peer->host), OUT_TEXT("device", peer->device),
        OUT_TEXT("address", peer->address), OUT_INT("pid", peer->pid), OUT_INT("rank", peer->rank),
        OUT_INT("world_size", peer->world_size),
        OUT_IF(session->by_hand.count > 0, OUT_INT("by_hand", session->by_hand.count)),
        OUT_IF(session->by_hand.count > 0, OUT_INT("by_hand_since", session->by_hand.first_step)));
}

static void add_fact(void *ctx, const char *name, const char *value)
{
    out_set(ctx, OUT_IF(value && value[0] != '\0', OUT_TEXT(name, value)));
}

static cJSON *list_capabilities(const struct gd_target *target)
{
    cJSON *can = cJSON_CreateArray();
    for (size_t i = 0; target && i < CAPABILITIES; i++) {
        if (target->capabilities & capability_words[i].bit) {
            out_push_text(can, capability_words[i].word);
        }
    }
    return can;
}

int info_target(struct command_call *call, struct gd_err *err)
{
    struct gd_session *session = call->session;
    struct gd_target *target = session->target;
    cJSON *record = out_record(call->out, "target");
    (void)err;
    info_add_session(call, record, session);
    out_set(record, OUT_INT("cached_bytes", gd_session_cached_bytes(session)),
            OUT_TEXT("protocol", target ? target->ops->kind : ""),
            OUT_JSON("can", list_capabilities(target)));
    cJSON *facts = out_object(record, "facts");
    if (target && target->ops->describe) {
        target->ops->describe(target, add_fact, facts);
    }
    out_say(call->out, record,
            "Training process {session}:\n"
            "[  target             {protocol}\n]"
            "[  framework          {framework}[ {version}]\n]"
            "[  program            {program}\n]"
            "[  pid                {pid}\n]"
            "[  host               {host}\n]"
            "[  device             {device}\n]"
            "[  address            {address}\n]"
            "[{?ranked}  rank               {rank} of {world_size}\n]"
            "  state              {now}\n"
            "  step               {place}\n"
            "[  can                {can: }\n]"
            "[{?changed}  changed by hand    {by_hand|change}, the first in step "
            "{by_hand_since}\n]",
            OUT_BOOL("changed", session->by_hand.count > 0),
            OUT_BOOL("ranked", session->peer.world_size > 1),
            OUT_TEXT("now", state_text(call, session)),
            OUT_TEXT("place", place_text(call, session)));
    for (const cJSON *fact = facts->child; fact; fact = fact->next) {
        bool again = strcmp(fact->string, "device") == 0 &&
                     strcmp(fact->valuestring, session->peer.device) == 0;
        out_say(call->out, NULL, "[{!again}  {name:-18} {value}\n]", OUT_BOOL("again", again),
                OUT_TEXT("name", fact->string), OUT_TEXT("value", fact->valuestring));
    }
    out_say(call->out, record, "  cached             {cached_bytes:bytes}\n");
    return GD_OK;
}
