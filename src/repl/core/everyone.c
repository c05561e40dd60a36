// SPDX-License-Identifier: GPL-3.0-or-later
#include "repl/core/everyone.h"

#include "engine/ranks.h"
#include "repl/core/repl_impl.h"

/* Asks call->session's process. False: the wait was interrupted. */
static bool ask_other(struct command_call *call, const char *name, const char *args)
{
    struct gd_err why = {.code = GD_OK};
    const char *reply = NULL;
    int rank = call->session->peer.rank;
    int rc = repl_command(call, name, args, GD_NO_NODE, &reply, &why);

    if (rc != GD_OK && rc != GD_EINTR) {
        repl_printf(call->repl, true, "warning: [rank %d] refused: %s\n", rank,
                    out_safe(call, why.text));
    }
    return rc != GD_EINTR;
}

/* Their numbers, because sessions may be freed during a wait. job: only those of its job. */
static int *other_numbers(struct command_call *call, bool job, size_t *ret)
{
    const struct gd_debugger *debugger = call->debugger;
    const struct gd_ranks *ranks = gd_ranks_of(call->session);
    int *numbers = gd_arena_alloc(call->arena, (debugger->session_count + 1) * sizeof(*numbers));

    *ret = 0;
    for (size_t i = 0; numbers && i < debugger->session_count; i++) {
        const struct gd_session *session = debugger->sessions[i];
        bool asked = !job || (gd_ranks_of(session) && gd_ranks_of(session) == ranks);
        if (asked && session != call->session && gd_session_is_live(session)) {
            numbers[(*ret)++] = session->number;
        }
    }
    return numbers;
}

int everyone_command(struct command_call *call, const char *name, const char *args,
                     const char **reply, struct gd_err *err)
{
    struct gd_session *selected = call->session;
    size_t count;
    const int *numbers = other_numbers(call, false, &count);

    if (!numbers) {
        return gd_fail_nomem(err);
    }
    int rc = repl_command(call, name, args, GD_NO_NODE, reply, err);
    bool goes_on = rc != GD_EINTR;
    for (size_t i = 0; goes_on && i < count; i++) {
        call->session = gd_debugger_session(call->debugger, numbers[i]);
        goes_on = !call->session || ask_other(call, name, args);
    }
    call->session = selected;
    if (!goes_on && rc == GD_OK) {
        rc = gd_fail(err, GD_EINTR, "interrupted: some processes were not asked");
    }
    return rc;
}

/* Asks call->session's process. */
static int ask_in_json(struct command_call *call, const char *name, const char *args, cJSON **ret,
                       struct gd_err *err)
{
    const char *text = NULL;
    int rc = repl_command(call, name, args, GD_NO_NODE, &text, err);

    if (rc != GD_OK) {
        return rc;
    }
    cJSON *reply = cJSON_Parse(text);
    const char *error = out_text_of(reply, "error");
    if (!cJSON_IsObject(reply)) {
        rc = gd_fail(err, GD_EPROTO, "the training process answered %.60s with no JSON object",
                     name);
    } else if (error[0] != '\0') {
        rc = gd_fail(err, GD_EINVAL, "%.400s", out_safe(call, error));
    }
    if (rc != GD_OK) {
        cJSON_Delete(reply);
        return rc;
    }
    *ret = reply;
    return GD_OK;
}

bool job_is_stopped(const struct gd_session *session)
{
    const struct gd_ranks *ranks = gd_ranks_of(session);
    bool together = ranks && gd_ranks_move_together(session, GD_RUN_CONTINUE);
    bool stopped = session->state == GD_STOPPED;

    for (int rank = 0; together && rank < gd_ranks_world_size(ranks); rank++) {
        const struct gd_session *member = gd_ranks_member(ranks, rank);
        stopped =
            stopped && (!member || !gd_session_is_live(member) || member->state == GD_STOPPED);
    }
    return stopped;
}

int job_at_step_end(struct command_call *call, const char *line, struct gd_err *err)
{
    const struct gd_catch_spec spec = {
        .kind = GD_HAPPENED_STEP_END, .command = line, .every = 1, .temporary = true};
    struct gd_breakpoint *at = NULL;
    int rc = gd_debugger_catch(call->debugger, &spec, &at, err);

    return rc == GD_EUNSUPPORTED
               ? gd_fail(err, GD_ESTATE,
                         "%.200s: the training is not at the end of a step: `step` first", line)
               : rc;
}

int job_command(struct command_call *call, const char *name, const char *args, job_done_fn done,
                void *ctx, int *refused, struct gd_err *err)
{
    struct gd_session *selected = call->session;
    bool alone = !gd_ranks_move_together(selected, GD_RUN_CONTINUE);
    cJSON *reply = NULL;
    size_t count;
    const int *numbers = other_numbers(call, true, &count);

    *refused = 0;
    if (!numbers) {
        return gd_fail_nomem(err);
    }
    int rc = ask_in_json(call, name, args, &reply, err);
    if (rc != GD_OK) {
        return rc;
    }
    done(ctx, selected, reply);
    cJSON_Delete(reply);
    for (size_t i = 0; !alone && rc != GD_EINTR && i < count; i++) {
        struct gd_err why = {.code = GD_OK};
        call->session = gd_debugger_session(call->debugger, numbers[i]);
        if (!call->session) {
            continue;
        }
        int rank = call->session->peer.rank;
        rc = ask_in_json(call, name, args, &reply, &why);
        if (rc == GD_OK) {
            done(ctx, call->session, reply);
            cJSON_Delete(reply);
        } else {
            *refused += 1;
            repl_printf(call->repl, true, "warning: [rank %d] refused: %s\n", rank,
                        out_safe(call, why.text));
        }
    }
    call->session = selected;
    return rc == GD_EINTR ? gd_fail(err, GD_EINTR, "interrupted: some ranks were not asked")
                          : GD_OK;
}
