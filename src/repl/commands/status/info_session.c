// SPDX-License-Identifier: GPL-3.0-or-later
/* `info session`. */
#include <string.h>
#include <time.h>

#include "repl/commands/status/info.h"
#include "repl/core/command.h"
#include "repl/core/repl_impl.h"
#include "repl/launch/launch.h"
#include "repl/launch/launch_output.h"

static void print_residence(struct command_call *call, const struct repl_residence *is,
                            const char *since)
{
    const char *terminal = is->terminal[0] != '\0' ? is->terminal : "none";

    out_printf(call->out, "  %-18s %s\n", "name", out_safe(call, is->name));
    out_printf(call->out, "  %-18s %ld\n", "process", is->pid);
    out_printf(call->out, "  %-18s %s\n", "socket", out_safe(call, is->socket));
    out_printf(call->out, "  %-18s %s\n", "since", since);
    out_printf(call->out, "  %-18s %s\n", "terminal", out_safe(call, terminal));
    out_printf(call->out, "  %-18s %d\n", "viewers", is->viewers);
}

static void record_residence(cJSON *record, const struct repl_residence *is)
{
    cJSON_AddStringToObject(record, "name", is->name);
    cJSON_AddNumberToObject(record, "pid", (double)is->pid);
    cJSON_AddStringToObject(record, "socket", is->socket);
    cJSON_AddNumberToObject(record, "since", is->since);
    cJSON_AddStringToObject(record, "terminal", is->terminal);
    cJSON_AddNumberToObject(record, "viewers", is->viewers);
}

static void show_left(void *ctx, const struct launch_left *left)
{
    struct command_call *call = ctx;

    if (out_is_json(call->out)) {
        cJSON *one = cJSON_CreateObject();
        cJSON_AddStringToObject(one, "path", left->path);
        cJSON_AddStringToObject(one, "program", left->program);
        cJSON_AddNumberToObject(one, "pid", (double)left->pid);
        cJSON_AddBoolToObject(one, "running", left->running);
        cJSON *record = out_record(call->out, "residence");
        cJSON *all = cJSON_GetObjectItem(record, "left_output");
        cJSON_AddItemToArray(all ? all : cJSON_AddArrayToObject(record, "left_output"), one);
        return;
    }
    out_printf(call->out, "Output of %s (process %ld, %s), whose gradb has ended: %s\n",
               out_safe(call, left->program), left->pid, left->running ? "running" : "ended",
               out_safe(call, left->path));
}

/* Where the output of the program that `run` started lies, and of those that others started. */
static void show_outputs(struct command_call *call)
{
    const char *path = launch_output_path(call->repl);

    if (out_is_json(call->out)) {
        cJSON_AddStringToObject(out_record(call->out, "residence"), "output", path);
    } else if (path[0] != '\0') {
        out_printf(call->out, "  %-18s %s\n", "output", out_safe(call, path));
    }
    launch_output_left(show_left, call);
}

int info_session(struct command_call *call, struct gd_err *err)
{
    struct repl *repl = call->repl;
    const char *how = repl_hangup_name(repl);
    struct repl_residence is = {.name = ""};
    char since[32] = "";
    struct tm when;

    (void)err;
    if (repl->front.residence) {
        repl->front.residence->facts(repl->front.residence_ctx, &is);
        time_t begin = (time_t)is.since;
        if (localtime_r(&begin, &when)) {
            strftime(since, sizeof(since), "%Y-%m-%d %H:%M:%S", &when);
        }
    }
    if (out_is_json(call->out)) {
        cJSON *record = out_record(call->out, "residence");
        cJSON_AddBoolToObject(record, "resident", repl->front.residence != NULL);
        if (repl->front.residence) {
            record_residence(record, &is);
        }
        cJSON_AddStringToObject(record, "on_hangup", how);
    } else if (repl->front.residence) {
        print_residence(call, &is, since);
        out_printf(call->out, "  %-18s %s\n", "on-hangup", how);
    } else {
        out_printf(
            call->out,
            "There is no terminal: SIGHUP detaches the training processes and ends gradb.\n");
    }
    show_outputs(call);
    return GD_OK;
}
