// SPDX-License-Identifier: GPL-3.0-or-later
/* Commands: checkpoint */
#include <string.h>

#include "base/buf.h"
#include "repl/commands/running/running.h"
#include "repl/core/everyone.h"
#include "repl/core/repl_impl.h"
#include "repl/line/complete_agent.h"
#include "repl/values/inspect.h"
#include "repl/values/numbers.h"

#define COMMAND "checkpoint"

struct request {
    const char *file; /* as typed; NULL: the training process chooses */
    const char *name; /* with its numbers filled in */
    int64_t keep;     /* 0: all */
    bool force;
};

static int read_request(struct command_call *call, struct request *ret, struct gd_err *err)
{
    *ret = (struct request){.force = inspect_take_flag(call, "-f")};
    for (int i = 0; i < call->argc; i++) {
        if (strncmp(call->argv[i], "keep=", 5) == 0) {
            int rc = arg_count(call->argv[i] + 5, 1, 1000000, &ret->keep, err);
            if (rc != GD_OK) {
                return rc;
            }
        } else if (ret->file) {
            return gd_fail(err, GD_EUSAGE, "checkpoint: specify one file");
        } else {
            ret->file = call->argv[i];
        }
    }
    if (!ret->file && (ret->keep || ret->force)) {
        return gd_fail(err, GD_EUSAGE, "checkpoint: specify the file, too");
    }
    return GD_OK;
}

/* See python/gradb/checkpoint.py. */
static const char *words_of(struct command_call *call, const struct request *request)
{
    struct gd_buf text = GD_BUF_INIT(1 << 17);

    if (request->file) {
        gd_buf_printf(&text, "%s\nof=%s", request->name, request->file);
        if (request->keep) {
            gd_buf_printf(&text, "\nkeep=%lld", (long long)request->keep);
        }
        gd_buf_puts(&text, request->force ? "\nforce" : "");
    }
    return inspect_take(call, &text);
}

/* ---- what was written ------------------------------------------------------------------------ */

static void add_names(const cJSON *list, const char *what, struct gd_buf *out)
{
    const cJSON *item;

    cJSON_ArrayForEach(item, list)
    {
        gd_buf_printf(out, "%s%s", out->len > 0 ? ", " : "",
                      cJSON_IsString(item) ? item->valuestring : "?");
    }
    if (cJSON_IsNumber(list)) {
        gd_buf_printf(out, "%s%.0f %s", out->len > 0 ? ", " : "", list->valuedouble, what);
    } else if (cJSON_IsTrue(list)) {
        gd_buf_printf(out, "%s%s", out->len > 0 ? ", " : "", what);
    }
}

/* The event, which answers the command. */
static void take_written(void *ctx, struct gd_session *session, const cJSON *reply)
{
    static const char *const parts[][2] = {{"models", ""},       {"parameters", "parameters"},
                                           {"optimizers", ""},   {"schedulers", ""},
                                           {"scaler", "scaler"}, {"numbers", ""}};
    struct command_call *call = ctx;
    struct gd_buf inside = GD_BUF_INIT(1 << 16), text = GD_BUF_INIT(1 << 17);
    int64_t step = (int64_t)out_number_of(reply, "step");
    int deleted = cJSON_GetArraySize(cJSON_GetObjectItem(reply, "deleted"));

    cJSON *record = out_record(call->out, "checkpoint");
    cJSON *others = cJSON_GetObjectItem(record, "others");
    others = others ? others : out_list(record, "others");
    cJSON *one = session == call->session ? record : out_push(others);
    const cJSON *item;
    cJSON_ArrayForEach(item, reply)
    {
        cJSON_AddItemToObject(one, item->string, cJSON_Duplicate(item, true));
    }
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        add_names(cJSON_GetObjectItem(reply, parts[i][0]), parts[i][1], &inside);
    }
    gd_buf_puts(&text, out_text_of(reply, "path"));
    if (inside.len > 0) {
        gd_buf_printf(&text, " (%s: %s)",
                      inspect_bytes(call, (uint64_t)out_number_of(reply, "bytes")),
                      gd_buf_text(&inside));
    }
    if (deleted > 0) {
        gd_buf_printf(&text, "; %d older %s deleted", deleted, deleted == 1 ? "file" : "files");
    }
    gd_session_on_event(session, "checkpoint", gd_buf_text(&text), step, GD_NO_NODE);
    gd_buf_deinit(&inside);
    gd_buf_deinit(&text);
}

static int save_now(struct command_call *call, const struct request *request, struct gd_err *err)
{
    int refused = 0;

    out_flush(call->out);
    return job_command(call, COMMAND, words_of(call, request), take_written, call, &refused, err);
}

/* The process saves at the end of a step, and reports it. */
static int save_later(struct command_call *call, struct gd_err *err)
{
    int rc = gd_target_checkpoint(call->session->target, err);
    if (rc == GD_OK) {
        run_for_other_ranks(call, call->session, gd_target_checkpoint);
        out_printf(call->out, "The training process will save a checkpoint at the end of a step "
                              "and print its path.\n");
    }
    return rc;
}

/* By its list of commands; a process that gives none is asked when it saves. */
static bool can_save_to_file(struct command_call *call)
{
    const char *text = NULL;

    if (!(call->session->target->capabilities & GD_CAN_COMMAND)) {
        return false;
    }
    if (repl_command(call, AGENT_LIST, "", GD_NO_NODE, &text, NULL) != GD_OK) {
        return true;
    }
    cJSON *reply = cJSON_Parse(text);
    const cJSON *item;
    bool found = reply == NULL;
    cJSON_ArrayForEach(item, cJSON_GetObjectItem(reply, "commands"))
    {
        found = found || strcmp(out_text_of(item, "name"), COMMAND) == 0;
    }
    cJSON_Delete(reply);
    return found;
}

static int fail_file(struct gd_err *err)
{
    return gd_fail(err, GD_EUNSUPPORTED,
                   "this training process chooses the place itself: checkpoint without FILE");
}

/* The same command again, at the end of the step: only then the numbers in FILE are known. What is
 * wrong with their braces and formats is said now. */
static int save_at_end(struct command_call *call, const char *file, struct gd_err *err)
{
    const char *name;
    if (numbers_fill(call, file, &name, err) == GD_EINVAL) {
        return GD_EINVAL;
    }
    int rc =
        job_at_step_end(call, inspect_printf(call, "%s %s", call->command->name, call->line), err);
    if (rc == GD_OK) {
        out_printf(call->out, "The checkpoint will be saved at the end of the step.\n");
    }
    return rc;
}

static bool is_between_steps(const struct gd_session *session)
{
    return job_is_stopped(session) && session->stop.at_step_end &&
           !gd_stop_is_before_first(&session->stop);
}

static int run_checkpoint(struct command_call *call, struct gd_err *err)
{
    struct request request;
    bool can = (call->session->target->capabilities & GD_CAN_COMMAND) != 0;
    int rc = read_request(call, &request, err);

    if (rc != GD_OK) {
        return rc;
    }
    if (request.file && !is_between_steps(call->session)) {
        return can_save_to_file(call) ? save_at_end(call, request.file, err) : fail_file(err);
    }
    rc = request.file ? numbers_fill(call, request.file, &request.name, err) : GD_OK;
    if (rc != GD_OK) {
        return rc;
    }
    if (can && is_between_steps(call->session)) {
        rc = save_now(call, &request, err);
        if (rc != GD_EUNSUPPORTED) {
            return rc;
        }
    }
    return request.file ? fail_file(err) : save_later(call, err);
}

const struct command cmd_checkpoint = {
    .name = "checkpoint",
    .group = "running",
    .usage = "checkpoint | checkpoint [-f] FILE [keep=K]",
    .summary = "Save a checkpoint of the training",
    .help = "FILE is written by torch.save or mindspore.save_checkpoint, on the host of the\n"
            "training, relative to its current directory, completely or not at all. Numbers\n"
            "in it are filled in: {step}, {accuracy:.4f}, any expression over the metrics\n"
            "(\"info scalars\"). Without an ending it gets the framework's, .pt or .ckpt; in a\n"
            "job of several ranks each writes its own file, with .rankN before the ending. A\n"
            "file that this run did not write is only replaced with -f. keep=K deletes older\n"
            "files of the same FILE that this run wrote, so that K remain.\n"
            "\n"
            "Without FILE, a Python script calls its own function\n"
            "(gradb.torch.on_checkpoint, gradb.mindspore.on_checkpoint) or writes\n"
            "SCRIPT.stepN.pt or .ckpt; a C program chooses the place itself. While the\n"
            "training runs or is stopped inside a step, that happens at the end of the step.",
    .examples = "checkpoint\n"
                "checkpoint best-{loss:.4f} keep=3",
    .args = {ARG_FILE, ARG_WORD},
    .flags = CMD_NEEDS_LIVE | CMD_CHANGES,
    .run = run_checkpoint,
};
