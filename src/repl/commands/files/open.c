// SPDX-License-Identifier: GPL-3.0-or-later
/* Commands: open */

#include "dump/detect.h"
#include "dump/dump_target.h"
#include "repl/core/repl_impl.h"
#include "repl/core/work.h"
#include "repl/values/inspect.h"

#define ALARM_ROWS 10

/* "MindSpore synchronous dump (1.3 and later)"; several are joined. */
static const char *formats_text(struct command_call *call, const struct gd_dump *dump)
{
    const struct gd_findings *findings = gd_dump_findings(dump);
    const char *text = "";

    for (size_t i = 0; i < findings->count; i++) {
        if (i == 0 || findings->item[i].format != findings->item[i - 1].format) {
            text =
                inspect_printf(call, "%s%s%s", text, i ? ", " : "", findings->item[i].format->what);
        }
    }
    return text;
}

static const char *steps_text(struct command_call *call, const struct gd_catalog *catalog)
{
    size_t count;
    const struct gd_catalog_step *steps = gd_catalog_steps(catalog, &count);

    if (count == 0) {
        return "no steps";
    }
    if (count == 1) {
        return inspect_printf(call, "step %lld", (long long)steps[0].step);
    }
    return inspect_printf(call, "%zu steps from %lld to %lld", count, (long long)steps[0].step,
                          (long long)steps[count - 1].step);
}

/* The alarms of all ranks as texts. */
static cJSON *list_alarms(struct command_call *call, const struct gd_dump *dump)
{
    cJSON *texts = cJSON_CreateArray();

    for (size_t i = 0; i < gd_dump_count(dump); i++) {
        size_t count;
        const struct gd_catalog_fact *facts = gd_catalog_facts(gd_dump_at(dump, i), &count);

        for (size_t k = 0; k < count; k++) {
            if (gd_catalog_fact_is_alarm(&facts[k])) {
                out_push_text(texts, inspect_printf(call, "%s: %s", out_safe(call, facts[k].name),
                                                    out_safe(call, facts[k].value)));
            }
        }
    }
    return texts;
}

static void show_alarms(struct command_call *call, const cJSON *alarms)
{
    const cJSON *alarm;
    int shown = 0, count = cJSON_GetArraySize(alarms);

    cJSON_ArrayForEach(alarm, alarms)
    {
        if (shown++ < ALARM_ROWS) {
            out_say(call->out, alarm, "{}\n");
        }
    }
    if (count > ALARM_ROWS) {
        out_printf(call->out, "(%d more of this kind: info target)\n", count - ALARM_ROWS);
    }
}

static void show_dump(struct command_call *call, cJSON *record, const struct gd_dump *dump)
{
    const struct gd_catalog *catalog = gd_catalog_of(call->session);
    const struct gd_findings *findings = gd_dump_findings(dump);
    cJSON *formats = out_list(record, "formats"), *alarms = list_alarms(call, dump);
    size_t steps, left;
    uint64_t more;

    for (size_t i = 0; i < findings->count; i++) {
        if (i == 0 || findings->item[i].format != findings->item[i - 1].format) {
            out_push_text(formats, findings->item[i].format->name);
        }
    }
    gd_catalog_steps(catalog, &steps);
    gd_dump_left(dump, &left, &more);
    out_set(record, OUT_INT("ranks", gd_dump_count(dump)), OUT_INT("steps", steps),
            OUT_INT("left_out", left + more),
            OUT_IF(cJSON_GetArraySize(alarms) > 0, OUT_JSON("alarms", alarms)));
    out_say(call->out, record,
            "Session {session}, {program}: {titles}, [{?several}{ranks} ranks, ]{nodes|node}, "
            "{when}.\n"
            "[{left_out|file} skipped: see \"info formats\".\n]",
            OUT_TEXT("titles", formats_text(call, dump)),
            OUT_BOOL("several", gd_dump_count(dump) > 1),
            OUT_TEXT("when", steps_text(call, catalog)));
    show_alarms(call, alarms);
    if (cJSON_GetArraySize(alarms) == 0) {
        cJSON_Delete(alarms);
    }
}

static void show_opened(struct command_call *call, cJSON *record)
{
    const struct gd_session *session = call->session;
    const struct gd_dump *dump = gd_dump_of(session);
    struct gd_graph_counts counts;

    gd_graph_counts(session->graph, &counts);
    out_set(record, OUT_INT("session", session->number),
            OUT_TEXT("kind", session->target->ops->kind),
            OUT_TEXT("program", session->peer.program), OUT_INT("step", session->stop.step),
            OUT_INT("nodes", counts.nodes), OUT_TEXT("end", session->end_text));
    if (dump) {
        show_dump(call, record, dump);
    } else {
        out_say(call->out, record,
                "Training process {session}[, {program}]: {end}, {nodes|node}. Use \"info "
                "history\".\n");
    }
}

/* list: the records of several paths; NULL: the command's record is that of the only path. */
static int open_one(struct command_call *call, const char *path,
                    const struct gd_open_options *options, cJSON *list, struct gd_err *err)
{
    struct gd_open_options watched = *options;
    struct gd_session *session = NULL;
    struct repl_work work;
    int rc;

    repl_work_begin_count(&work, call, inspect_printf(call, "looking through %.100s", path),
                          "entries", 0);
    watched.go_on = repl_work_at;
    watched.ctx = &work;
    rc = call->debugger->open_file(call->debugger, inspect_home_path(call, path), &watched,
                                   &session, err);
    rc = repl_work_end(&work, rc, err);
    if (rc == GD_OK) {
        call->session = session;
        show_opened(call, list ? out_push(list) : out_record(call->out, "open"));
    }
    return rc;
}

static int run_open(struct command_call *call, struct gd_err *err)
{
    struct gd_open_options options = {.format = NULL};
    cJSON *list = NULL;
    int rc = repl_check_seal(call->repl, err);

    options.partial = inspect_take_flag(call, "--partial");
    rc = rc != GD_OK ? rc : inspect_take_option(call, "--format", &options.format, err);
    rc = rc != GD_OK ? rc : inspect_take_option(call, "--key", &options.key, err);
    rc = rc != GD_OK ? rc : inspect_take_option(call, "--dtype", &options.dtype, err);
    rc = rc != GD_OK ? rc : inspect_no_options(call, err);
    if (rc == GD_OK && call->argc == 0) {
        rc = gd_fail(err, GD_EUSAGE, "open: specify a file or directory");
    }
    if (rc == GD_OK && !call->debugger->open_file) {
        rc = gd_fail(err, GD_EUNSUPPORTED, "this gradb cannot open files");
    }
    if (rc == GD_OK && call->argc > 1) {
        list = out_list(out_record(call->out, "open"), "opened");
    }
    for (int i = 0; rc == GD_OK && i < call->argc; i++) {
        rc = open_one(call, call->argv[i], &options, list, err);
    }
    return rc;
}

const struct command cmd_open = {
    .name = "open",
    .aliases = "op ope",
    .group = "files",
    .usage = "open PATH... [--format NAME] [--key NAME] [--dtype NAME] [--partial]",
    .summary = "Open what a training left on disk: a dump, a checkpoint, a history",
    .help =
        "gradb searches a directory for all formats that it knows (\"info formats\") and\n"
        "recognises a file by its contents. It becomes a session, or one for each rank (\"info\n"
        "ranks\", \"rank N\"): info, print, tensor, watch, why and compare work as for a live\n"
        "training. \"step\", \"reverse-step\" and \"goto\" go to the steps that were dumped,\n"
        "\"continue\" to the next one in which a watchpoint fires. --format accepts only one\n"
        "format; --key names the dictionary in a checkpoint that contains the weights; --dtype\n"
        "gives the element type if a file does not say. --partial reads the intact part of a\n"
        "truncated file.",
    .examples = "open ~/.local/state/gradb/history-train.py-4711-20260102-030405.gdhist\n"
                "open dump/rank_0",
    .args = {ARG_FILE, ARG_FILE, ARG_FILE},
    .run = run_open,
};
