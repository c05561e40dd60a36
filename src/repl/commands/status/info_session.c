// SPDX-License-Identifier: GPL-3.0-or-later
/* `info session`. */

#include "repl/commands/status/info.h"
#include "repl/core/repl_impl.h"
#include "repl/launch/launch.h"
#include "repl/launch/launch_output.h"

static void show_left(void *ctx, const struct launch_left *left)
{
    struct command_call *call = ctx;
    cJSON *record = out_record(call->out, "residence");
    cJSON *all = cJSON_GetObjectItem(record, "left_output");
    cJSON *one = out_push(all ? all : out_list(record, "left_output"));

    out_set(one, OUT_TEXT("path", left->path), OUT_TEXT("program", left->program),
            OUT_INT("pid", left->pid), OUT_BOOL("running", left->running));
    out_say(call->out, one,
            "Output of {program} (process {pid}, {state}), whose gradb has ended: {path}\n",
            OUT_TEXT("state", left->running ? "running" : "ended"));
}

int info_session(struct command_call *call, struct gd_err *err)
{
    struct repl *repl = call->repl;
    bool resident = repl->front.residence != NULL;
    struct repl_residence is = {.name = ""};
    cJSON *record = out_record(call->out, "residence");

    (void)err;
    out_set(record, OUT_BOOL("resident", resident));
    if (resident) {
        repl->front.residence->facts(repl->front.residence_ctx, &is);
        out_set(record, OUT_TEXT("name", is.name), OUT_INT("pid", is.pid),
                OUT_TEXT("socket", is.socket), OUT_REAL("since", is.since),
                OUT_TEXT("terminal", is.terminal), OUT_INT("viewers", is.viewers));
    }
    out_set(record, OUT_TEXT("on_hangup", repl_hangup_name(repl)),
            OUT_TEXT("output", launch_output_path(repl)));
    out_say(call->out, record,
            resident ? "  name               {name}\n"
                       "  process            {pid}\n"
                       "  socket             {socket}\n"
                       "  since              {since:date}\n"
                       "  terminal           [{terminal}][{!terminal}none]\n"
                       "  viewers            {viewers}\n"
                       "  on-hangup          {on_hangup}\n"
                     : "There is no terminal: SIGHUP detaches the training processes and ends "
                       "gradb.\n");
    out_say(call->out, record, "[  output             {output}\n]");
    const struct gd_session *session = repl->debugger->current;
    if (session && session->by_hand.count > 0) {
        out_set(record, OUT_INT("by_hand", session->by_hand.count),
                OUT_INT("by_hand_since", session->by_hand.first_step));
        out_say(call->out, record,
                "The run was changed by hand: {by_hand|change}, the first in step "
                "{by_hand_since} (info events).\n");
    }
    launch_output_left(show_left, call);
    return GD_OK;
}
