// SPDX-License-Identifier: GPL-3.0-or-later
/* Commands: export */
#include <stdlib.h>

#include "base/cleanup.h"
#include "dump/io/file_name.h"
#include "dump/trace/trace_writer.h"
#include "engine/ranks.h"
#include "repl/commands/files/export.h"
#include "repl/core/repl_impl.h"
#include "repl/core/work.h"
#include "repl/out/newfile.h"
#include "repl/values/inspect.h"

/* The ranks that have times, held: training processes are served while the file is written. *ret is
 * to be freed. */
static int list_sessions(struct command_call *call, struct gd_session ***ret, size_t *count,
                         struct gd_err *err)
{
    const struct gd_ranks *ranks = gd_ranks_of(call->session);
    int world = ranks ? gd_ranks_world_size(ranks) : 1;

    *count = 0;
    *ret = calloc((size_t)(world > 0 ? world : 1), sizeof(struct gd_session *));
    if (!*ret) {
        return gd_fail_nomem(err);
    }
    for (int i = 0; i < world; i++) {
        struct gd_session *session = ranks ? gd_ranks_member(ranks, i) : call->session;

        if (session && session->timeline && session->timeline->count > 0) {
            gd_session_hold(session);
            (*ret)[(*count)++] = session;
        }
    }
    return *count > 0 ? GD_OK
                      : gd_fail(err, GD_ENODATA,
                                "there are no times to export: no step has ended yet, or what was "
                                "opened has none");
}

static void show_written(struct command_call *call, const char *path, size_t ranks,
                         const struct trace_written *done)
{
    const struct gd_session *session = call->session;
    bool measures = gd_session_is_live(session) && session->target &&
                    session->target->capabilities & GD_CAN_COMMAND;
    cJSON *record = out_record(call->out, "exported");

    out_set(record, OUT_TEXT("file", path), OUT_TEXT("format", "trace"), OUT_INT("ranks", ranks),
            OUT_INT("steps", done->steps), OUT_INT("operators", done->operators),
            OUT_INT("metrics", done->metrics), OUT_INT("dropped", done->dropped),
            OUT_BOOL("starts_measured", !done->laid));
    out_say(
        call->out, record,
        "Wrote {steps|step}, {operators|operator call} and {metrics|value} of metrics[{?several} "
        "of {ranks} ranks] to {file}.\n"
        "[{?laid}Operators and parts are laid end to end in each step: their durations were "
        "measured, not their starts.\n]"
        "[{?unmeasured}Operators are in it after `set timing on`.\n]"
        "[{dropped|event} of earlier steps were no longer there.\n]",
        OUT_BOOL("several", ranks > 1), OUT_BOOL("laid", done->laid && done->operators > 0),
        OUT_BOOL("unmeasured", measures && done->operators == 0));
}

static int write_trace(struct command_call *call, const char *path,
                       struct gd_session *const *sessions, size_t count, struct trace_written *done,
                       struct gd_err *err)
{
    struct repl_work work;
    struct newfile file;
    int rc = newfile_open(&file, path, false, err), end;

    if (rc != GD_OK) {
        return rc;
    }
    repl_work_begin_count(&work, call, inspect_printf(call, "exporting %.100s", path), "events", 0);
    rc = trace_write(file.file, gd_ends_with(path, ".gz"), sessions, count, repl_work_at, &work,
                     done, err);
    rc = repl_work_end(&work, rc, err);
    end = newfile_close(&file, rc == GD_OK, rc == GD_OK ? err : NULL);
    return rc != GD_OK ? rc : end;
}

static int export_trace(struct command_call *call, struct gd_err *err)
{
    GD_CLEANUP(gd_cleanup_free) struct gd_session **sessions = NULL;
    struct trace_written done;
    size_t count = 0;
    int rc = repl_check_seal(call->repl, err);

    rc = rc != GD_OK ? rc : inspect_no_options(call, err);
    if (rc == GD_OK && (call->argc != 1 || call->argv[0][0] == '\0')) {
        rc = gd_fail(err, GD_EUSAGE, "export trace: specify a file");
    }
    rc = rc != GD_OK ? rc : list_sessions(call, &sessions, &count, err);
    if (rc != GD_OK) {
        return rc;
    }
    const char *path = inspect_home_path(call, call->argv[0]);
    rc = write_trace(call, path, sessions, count, &done, err);
    for (size_t i = 0; i < count; i++) {
        gd_session_release(sessions[i]);
    }
    if (rc == GD_OK) {
        show_written(call, path, count, &done);
    }
    return rc;
}

static const struct command export_sub[] = {
    {
        .name = "trace",
        .usage = "export trace FILE",
        .summary = "Write a timeline that Perfetto opens",
        .help = "Writes steps, their parts, operators with shapes and lines, and metrics over\n"
                "time in Chrome's JSON format, compressed if FILE ends in .gz. Open it with\n"
                "https://ui.perfetto.dev, chrome://tracing, or \"open\". Each rank of the job is\n"
                "a process of the trace.\n"
                "An opened trace has the time at which each operator began. A running training\n"
                "reports only how long each took: these are laid end to end from the beginning\n"
                "of their step, in the order in which they run. Of a running training the newest\n"
                "262144 events are kept.",
        .examples = "export trace run.json.gz",
        .args = {ARG_FILE},
        .flags = CMD_NEEDS_SESSION,
        .run = export_trace,
    },
    {
        .name = "tensorboard",
        .usage = "export tensorboard DIR",
        .summary = "Write metrics and statistics for TensorBoard and MindInsight",
        .help =
            "Writes one event file into DIR, or for a job one into DIR/rank_N for each rank: the\n"
            "metrics of the training, and the usual statistics of the tensors that are in the\n"
            "history, as scalars. Open it with \"tensorboard --logdir DIR\" or\n"
            "\"mindinsight start --summary-base-dir DIR\". The values are single precision, as\n"
            "these programs read them. When a step ran is not recorded: all have the time at\n"
            "which the training began.",
        .examples = "export tensorboard runs/today",
        .args = {ARG_FILE},
        .flags = CMD_NEEDS_SESSION,
        .run = export_tensorboard,
    },
    {
        .name = "html",
        .usage = "export html FILE",
        .summary = "Write a page with curves, hits and causes, to send to a colleague",
        .help =
            "Writes one file that needs nothing else: the facts of the run, curves of the metrics\n"
            "and of the tensors in the history, the watchpoints and their hits, and why the last\n"
            "hit fired. Opens in any browser, without a network.",
        .examples = "export html run.html",
        .args = {ARG_FILE},
        .flags = CMD_NEEDS_SESSION,
        .run = export_html,
    },
    {.name = NULL},
};

static int run_export(struct command_call *call, struct gd_err *err)
{
    (void)call;
    return gd_fail(err, GD_EUSAGE, "export: specify what to write (trace, tensorboard, html)");
}

const struct command cmd_export = {
    .name = "export",
    .group = "files",
    .usage = "export trace FILE | tensorboard DIR | html FILE",
    .summary = "Write what was recorded for other programs",
    .help =
        "\"export trace\" writes a timeline, \"export tensorboard\" event files of the curves,\n"
        "\"export html\" one page to read and to send: see \"help export html\" and so on.\n",
    .args = {ARG_SUBCOMMAND},
    .run = run_export,
    .sub = export_sub,
};
