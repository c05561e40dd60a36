// SPDX-License-Identifier: GPL-3.0-or-later
/* Commands: metric */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dump/dump_target.h"
#include "engine/graph/loss_pair.h"
#include "engine/metric/over_ranks.h"
#include "repl/commands/data/metric.h"
#include "repl/commands/status/info.h"
#include "repl/core/everyone.h"
#include "repl/core/repl_impl.h"

#define MAX_LOSSES 4 /* that a message names */

int metric_check(const struct command_call *call, struct gd_err *err)
{
    if (gd_catalog_of(call->session)) {
        return gd_fail(err, GD_EUNSUPPORTED,
                       "a dump keeps no metrics: \"metric accuracy\" computes one over its steps, "
                       "and \"info scalars\" has its numbers");
    }
    if (!gd_session_is_live(call->session)) {
        return gd_fail(err, GD_ESTATE,
                       "the training process has ended: \"info scalars\" has the last values");
    }
    return call->session->target && call->session->target->capabilities & GD_CAN_METRIC
               ? GD_OK
               : gd_fail(err, GD_EUNSUPPORTED,
                         "this session has no metrics: its training process has no agent of gradb, "
                         "or an old one");
}

/* ---- which nodes ----------------------------------------------------------------------------- */

static int put_edge(struct command_call *call, const struct gd_edge *edge, char ret[GD_METRIC_TEXT],
                    struct gd_err *err)
{
    const char *name = gd_graph_name(call->session->graph, edge->node);
    int len = edge->slot ? snprintf(ret, GD_METRIC_TEXT, "%s:%u", name, (unsigned)edge->slot)
                         : snprintf(ret, GD_METRIC_TEXT, "%s", name);
    return len < GD_METRIC_TEXT ? GD_OK : gd_fail(err, GD_ELIMIT, "the name of a node is too long");
}

static int resolve_node(struct command_call *call, char text[GD_METRIC_TEXT], struct gd_err *err)
{
    struct tensor_arg arg;
    int rc = arg_tensor(call, text, &arg, err);
    if (rc != GD_OK) {
        return rc;
    }
    if (arg.value || arg.slice.count > 0) {
        return gd_fail(err, GD_EINVAL, "'%.100s' is not a node: a metric needs whole outputs",
                       text);
    }
    struct gd_edge edge = {.node = arg.ref.node, .slot = (uint16_t)arg.ref.slot};
    return put_edge(call, &edge, text, err);
}

static int several_losses(const struct gd_graph *graph, const struct gd_loss_pair *pairs,
                          size_t count, struct gd_err *err)
{
    struct gd_buf names = GD_BUF_INIT(400);
    for (size_t i = 0; i < count && i < MAX_LOSSES; i++) {
        gd_buf_printf(&names, "%s%.90s", i ? ", " : "", gd_graph_name(graph, pairs[i].loss));
    }
    gd_fail(err, GD_EAMBIGUOUS,
            "%zu losses (%s%s): name the nodes with `of OUTPUTS against LABELS`", count,
            gd_buf_text(&names), count > MAX_LOSSES ? ", ..." : "");
    gd_buf_deinit(&names);
    return GD_EAMBIGUOUS;
}

/* What the loss says about its outputs, in words of the definition. */
static void take_form(struct gd_metric_spec *spec, enum gd_metric_form form)
{
    bool alone = form == GD_FORM_LOGITS || form == GD_FORM_PROBABILITIES;
    bool classes = spec->kind != GD_METRIC_MSE && spec->kind != GD_METRIC_MAE &&
                   spec->kind != GD_METRIC_R2 && spec->kind != GD_METRIC_CUSTOM;
    if (alone && classes && !spec->has_threshold) {
        spec->has_threshold = true;
        spec->threshold = form == GD_FORM_LOGITS ? 0 : 0.5;
    }
}

int metric_resolve(struct command_call *call, struct gd_metric_spec *spec, bool *found,
                   struct gd_err *err)
{
    struct gd_loss_pair pairs[MAX_LOSSES];
    const struct gd_graph *graph = call->session->graph;
    *found = false;
    if (spec->outputs[0] != '\0') {
        int rc = resolve_node(call, spec->outputs, err);
        return rc != GD_OK || spec->labels[0] == '\0' ? rc : resolve_node(call, spec->labels, err);
    }
    if (spec->kind == GD_METRIC_LOSS) {
        return GD_OK;
    }
    size_t count = gd_loss_pairs(graph, pairs, MAX_LOSSES);
    if (count > 1) {
        return several_losses(graph, pairs, count, err);
    }
    if (count == 0) {
        return gd_fail(err, GD_ENODATA,
                       "no known loss is in the graph: name the nodes with `of OUTPUTS against "
                       "LABELS`");
    }
    *found = true;
    int rc = put_edge(call, &pairs[0].outputs, spec->outputs, err);
    rc = rc != GD_OK ? rc : put_edge(call, &pairs[0].labels, spec->labels, err);
    take_form(spec, pairs[0].form);
    return rc;
}

/* ---- what the process has -------------------------------------------------------------------- */

/* The metrics of call->session's process; the caller deletes the list. NULL: it did not answer. */
static cJSON *ask_list(struct command_call *call)
{
    const char *text = NULL;
    int rc = repl_command(call, METRIC_COMMAND, "list", GD_NO_NODE, &text, NULL);
    return rc == GD_OK ? cJSON_Parse(text) : NULL;
}

static void forget_number(const struct command_call *call, const char *prefix, const char *name)
{
    char whole[2 * GD_METRIC_NAME];
    snprintf(whole, sizeof(whole), "%s%.90s", prefix, name);
    for (size_t i = 0; i < call->debugger->session_count; i++) {
        struct gd_session *session = call->debugger->sessions[i];
        if (gd_session_is_live(session) && !gd_session_is_record(session)) {
            gd_session_forget_scalar(session, whole);
        }
    }
}

/* Of a metric that was deleted, or of all ("") in the list: some have a number for each class. */
static void forget_numbers(const struct command_call *call, const cJSON *list, const char *name)
{
    static const char *const parts[] = {"train", "eval"}, *const prefixes[] = {"", "eval_"};
    const cJSON *item, *number;
    cJSON_ArrayForEach(item, cJSON_GetObjectItem(list, "metrics"))
    {
        const char *own = out_text_of(item, "name");
        for (int i = 0; i < 2 && (!name[0] || strcmp(name, own) == 0); i++) {
            const cJSON *sums = cJSON_GetObjectItem(item, parts[i]);
            forget_number(call, prefixes[i], own);
            cJSON_ArrayForEach(number, cJSON_GetObjectItem(sums, "numbers"))
            {
                forget_number(call, prefixes[i], out_text_of(number, "name"));
            }
        }
    }
}

/* ---- over ranks ------------------------------------------------------------------------------ */

/* Also where rank-locking moves them one by one. */
static bool ranks_are_stopped(const struct gd_debugger *debugger, const struct gd_ranks *ranks)
{
    bool stopped = true;
    for (size_t i = 0; i < debugger->session_count && stopped; i++) {
        const struct gd_session *session = debugger->sessions[i];
        stopped = gd_ranks_of(session) != ranks || !gd_session_is_live(session) ||
                  session->state == GD_STOPPED;
    }
    return stopped;
}

/* Counts of different ranks must begin at the same step. */
static int need_job_stopped(const struct command_call *call, struct gd_err *err)
{
    return ranks_are_stopped(call->debugger, gd_ranks_of(call->session))
               ? GD_OK
               : gd_fail(err, GD_ESTATE,
                         "a metric over ranks begins on all of them: some ranks are not stopped "
                         "(\"info ranks\")");
}

/* Whether the process of call->session has it. */
static bool has_metric(struct command_call *call, const char *name)
{
    const cJSON *item;
    bool found = false;
    cJSON *reply = ask_list(call);
    cJSON_ArrayForEach(item, cJSON_GetObjectItem(reply, "metrics"))
    {
        found = found || strcmp(out_text_of(item, "name"), name) == 0;
    }
    cJSON_Delete(reply);
    return found;
}

/* What trainings report by themselves, and when. */
static bool is_usual_metric(struct command_call *call, const char *name, struct gd_err *err)
{
    static const struct {
        const char *name, *when;
    } usual[] = {
        {"loss",
         "it is the number that a step computes its gradients from, and known at the end of the "
         "step"},
        {"lr", "it is the learning rate of the main optimizer, and known at the end of a step"},
        {"epoch", "it is counted where a step uses a DataLoader, and known at the end of the step"},
        {"batch", "it is counted where a step uses a DataLoader, and known at the end of the step"},
    };
    const struct gd_session *session = call->session;

    for (size_t i = 0; session && i < sizeof(usual) / sizeof(usual[0]); i++) {
        if (strcmp(usual[i].name, name) != 0 || gd_session_scalar(session, name)) {
            continue;
        }
        if (gd_session_is_live(session) && gd_session_step(session) < 1) {
            gd_fail(err, GD_ENODATA, "%s has no value yet: %s: \"step\", then ask again", name,
                    usual[i].when);
        } else {
            gd_fail(
                err, GD_ENODATA,
                "%s has no value: the training has not reported it; \"info scalars\" lists what it "
                "has reported",
                name);
        }
        return true;
    }
    return false;
}

bool metric_is_awaited(struct command_call *call, const char *number, struct gd_err *err)
{
    if (is_usual_metric(call, number, err)) {
        return true;
    }
    const struct gd_session *session = call->session;
    const char *name = number;
    bool evaluation = strncmp(number, "eval_", 5) == 0;

    name += evaluation ? 5 : 0;
    if (!session || session->state != GD_STOPPED || metric_check(call, NULL) != GD_OK ||
        !has_metric(call, name)) {
        return false;
    }
    gd_fail(err, GD_ENODATA,
            evaluation
                ? "%.80s has no value yet: no evaluation has ended since the metric was asked for"
                : "%.80s has no value yet: it comes at the end of a step",
            number);
    return true;
}

/* A rank that refused would be waited for. */
static int need_all_ranks(struct command_call *call, const struct gd_metric_spec *spec,
                          struct gd_err *err)
{
    struct gd_session *selected = call->session;
    const struct gd_ranks *ranks = gd_ranks_of(selected);
    int without = -1;
    for (size_t i = 0; spec->ranks && without < 0 && i < call->debugger->session_count; i++) {
        call->session = call->debugger->sessions[i];
        if (gd_ranks_of(call->session) == ranks && gd_session_is_live(call->session)) {
            int rank = call->session->peer.rank;
            without = has_metric(call, spec->name) ? -1 : rank;
        }
    }
    call->session = selected;
    if (without < 0) {
        return GD_OK;
    }
    char request[GD_METRIC_NAME + 16];
    const char *reply = NULL;
    snprintf(request, sizeof(request), "delete %s", spec->name);
    repl_command(call, METRIC_COMMAND, request, GD_NO_NODE, &reply, NULL);
    return gd_fail(err, GD_EUNSUPPORTED,
                   "rank %d does not compute it, so there is no metric over all ranks", without);
}

/* One process alone needs no `ranks`. */
static int check_ranks(const struct command_call *call, struct gd_metric_spec *spec,
                       struct gd_err *err)
{
    const struct gd_ranks *ranks = gd_ranks_of(call->session);

    spec->ranks = spec->ranks && ranks;
    for (size_t i = 0; spec->ranks && i < call->debugger->session_count; i++) {
        const struct gd_session *session = call->debugger->sessions[i];
        if (gd_ranks_of(session) == ranks && gd_session_is_live(session) &&
            !(session->target->capabilities & GD_CAN_METRIC_RANKS)) {
            return gd_fail(err, GD_EUNSUPPORTED,
                           "rank %d has an old agent of gradb, which cannot add up ranks",
                           session->peer.rank);
        }
    }
    return spec->ranks ? need_job_stopped(call, err) : GD_OK;
}

struct definition {
    const struct gd_debugger *debugger;
    const struct gd_metric_spec *spec;
};

/* Calls fn for each job. */
static void each_job(const struct command_call *call, void (*fn)(struct gd_ranks *, const void *),
                     const void *ctx)
{
    for (size_t i = 0; i < call->debugger->session_count; i++) {
        const struct gd_session *session = call->debugger->sessions[i];
        struct gd_ranks *ranks = gd_ranks_of(session);
        if (ranks && gd_session_is_live(session) && gd_over_ranks_speaks(session)) {
            fn(ranks, ctx);
        }
    }
}

static void define_one(struct gd_ranks *ranks, const void *ctx)
{
    const struct definition *of = ctx;

    if (of->spec->ranks && ranks_are_stopped(of->debugger, ranks)) {
        gd_over_ranks_define(ranks, of->spec, NULL);
    } else {
        gd_over_ranks_delete(ranks, of->spec->name); /* replaced by one of each rank */
    }
}

static void delete_one(struct gd_ranks *ranks, const void *name)
{
    gd_over_ranks_delete(ranks, name);
}

static void clear_one(struct gd_ranks *ranks, const void *ctx)
{
    (void)ctx;
    gd_over_ranks_clear(ranks);
}

/* ---- the command ----------------------------------------------------------------------------- */

static int find_file(struct gd_metric_spec *spec, struct gd_err *err)
{
    char path[PATH_MAX];
    if (!realpath(spec->file, path)) {
        return gd_fail_errno(err, GD_EIO, "cannot open %.200s", spec->file);
    }
    return snprintf(spec->file, sizeof(spec->file), "%s", path) < (int)sizeof(spec->file)
               ? GD_OK
               : gd_fail(err, GD_ELIMIT, "the path of the file is too long");
}

static bool can_grow(const struct command_call *call)
{
    return call->session->target->capabilities & GD_CAN_GROW;
}

static int send_request(struct command_call *call, const struct gd_metric_spec *spec, bool found,
                        const char **reply, struct gd_err *err)
{
    struct gd_buf text = GD_BUF_INIT(1 << 14);
    gd_buf_puts(&text, found ? "found " : "add ");
    gd_metric_text(spec, &text);
    const char *words = gd_arena_strdup(call->arena, gd_buf_text(&text));
    gd_buf_deinit(&text);
    return words ? everyone_command(call, METRIC_COMMAND, words, reply, err) : gd_fail_nomem(err);
}

static void say_added(struct command_call *call, const struct gd_metric_spec *spec, bool found,
                      const char *reply)
{
    const struct gd_ranks *ranks = gd_ranks_of(call->session);
    cJSON *record = out_record(call->out, "metric");
    cJSON *answer = cJSON_Parse(reply);
    struct gd_buf text = GD_BUF_INIT(1 << 14);
    gd_metric_text(spec, &text);
    out_set(record, OUT_TEXT("name", spec->name), OUT_TEXT("definition", gd_buf_text(&text)),
            OUT_SOME("outputs", spec->outputs), OUT_SOME("labels", spec->labels),
            OUT_BOOL("found", found), OUT_SOME("note", out_text_of(answer, "note")),
            OUT_TEXT("cleared", spec->by_step ? "step" : "epoch"),
            OUT_IF(spec->ranks, OUT_INT("ranks", ranks ? gd_ranks_live(ranks) : 0)),
            OUT_IF(spec->ranks, OUT_INT("of", ranks ? gd_ranks_world_size(ranks) : 0)));
    out_say(call->out, record,
            "Metric {name}[: {outputs} against {labels}][{?found} (found at the loss)], by "
            "{cleared}[, over {ranks} of {of} ranks][; {note}].\n");
    gd_buf_deinit(&text);
    cJSON_Delete(answer);
}

static int add_metric(struct command_call *call, struct gd_err *err)
{
    struct gd_metric_spec spec;
    struct gd_err why = {0};
    const char *reply = NULL;
    bool found = false;
    int rc = gd_metric_parse(call->line, &spec, err);
    if (rc == GD_OK && spec.kind == GD_METRIC_FILE) {
        rc = find_file(&spec, err);
    }
    rc = rc != GD_OK ? rc : check_ranks(call, &spec, err);
    if (rc != GD_OK) {
        return rc;
    }
    rc = metric_resolve(call, &spec, &found, &why);
    if (rc == GD_ENODATA && spec.outputs[0] == '\0' && can_grow(call)) {
        rc = GD_OK; /* its process finds it when the loss is called */
    }
    if (rc != GD_OK) {
        return gd_fail(err, rc, "%s", why.text);
    }
    rc = send_request(call, &spec, found, &reply, err);
    reply = rc == GD_OK ? gd_arena_strdup(call->arena, reply) : NULL;
    rc = rc != GD_OK ? rc : need_all_ranks(call, &spec, err);
    for (size_t i = 0; rc == GD_OK && i < call->debugger->session_count; i++) {
        gd_session_keep_history(call->debugger->sessions[i]);
    }
    if (rc == GD_OK) {
        each_job(call, define_one, &(struct definition){call->debugger, &spec});
        say_added(call, &spec, found, reply);
    }
    return rc;
}

static int delete_metrics(struct command_call *call, const char *name, struct gd_err *err)
{
    const char *reply = NULL;
    char request[GD_METRIC_NAME + 16];
    if (strlen(name) >= GD_METRIC_NAME) {
        return gd_fail(err, GD_ENOTFOUND, "there is no metric '%.60s'", name);
    }
    snprintf(request, sizeof(request), "delete%s%s", name[0] ? " " : "", name);
    cJSON *list = ask_list(call);
    int rc = everyone_command(call, METRIC_COMMAND, request, &reply, err);
    if (rc == GD_OK) {
        each_job(call, delete_one, name[0] ? name : NULL);
        forget_numbers(call, list, name);
        cJSON *record = out_record(call->out, "metric");
        out_set(record, OUT_SOME("deleted", name), OUT_BOOL("all", !name[0]));
        out_say(call->out, record, "[Metric {deleted} deleted.\n][{?all}All metrics deleted.\n]");
    }
    cJSON_Delete(list);
    return rc;
}

static int clear_metrics(struct command_call *call, struct gd_err *err)
{
    const char *reply = NULL;
    const struct gd_ranks *ranks = gd_ranks_of(call->session);
    int rc = ranks && gd_over_ranks_any(ranks) ? need_job_stopped(call, err) : GD_OK;
    rc = rc != GD_OK ? rc : everyone_command(call, METRIC_COMMAND, "clear", &reply, err);
    if (rc == GD_OK) {
        each_job(call, clear_one, NULL);
        cJSON *record = out_record(call->out, "metric");
        out_set(record, OUT_BOOL("cleared", true));
        out_say(call->out, record, "Metrics cleared: they count from here.\n");
    }
    return rc;
}

static int run_on_dump(struct command_call *call, struct gd_err *err)
{
    struct gd_metric_spec spec;
    bool found = false;
    int rc = gd_metric_parse(call->line, &spec, err);
    rc = rc != GD_OK || spec.kind == GD_METRIC_FILE ? rc : metric_resolve(call, &spec, &found, err);
    return rc != GD_OK ? rc : metric_of_dump(call, &spec, found, err);
}

static int run_metric(struct command_call *call, struct gd_err *err)
{
    if (gd_catalog_of(call->session) && call->line[0] != '\0' && !arg_after(call->line, "delete") &&
        strcmp(call->line, "clear") != 0) {
        return run_on_dump(call, err);
    }
    int rc = metric_check(call, err);
    if (rc != GD_OK) {
        return rc;
    }
    if (call->line[0] == '\0') {
        return info_metrics(call, err);
    }
    const char *name = arg_after(call->line, "delete");
    if (name) {
        return delete_metrics(call, name, err);
    }
    if (strcmp(call->line, "clear") == 0) {
        return clear_metrics(call, err);
    }
    return add_metric(call, err);
}

const struct command cmd_metric = {
    .name = "metric",
    .group = "data",
    .usage = "metric [NAME =] KIND [of OUTPUTS against LABELS] [by step|epoch] [OPTION...]\n"
             "metric NAME = update SUM += EXPR, ... result EXPR [of OUTPUTS against LABELS]\n"
             "metric NAME from FILE.py\n"
             "metric delete [NAME]\n"
             "metric clear",
    .summary = "Compute accuracy, F1, AUC or another metric in each step",
    .help = "KIND is accuracy, topk, loss, precision, recall, f1, confusion, mse, mae, r2,\n"
            "auc or perplexity. Without nodes, outputs and labels are those of the only loss.\n"
            "A metric counts all batches since the epoch began, or those of the step.\n"
            "Batches of an evaluation are counted separately, as eval_NAME. Its value is a\n"
            "metric like the loss: \"info metrics\", \"info history NAME\", \"watch NAME < 0.5\"\n"
            "and \"on epoch-end if NAME < 0.5 ...\" show and use it.\n"
            "\n"
            "Options:\n"
            "  k=N              topk: among the N greatest outputs (default 5)\n"
            "  average=HOW      precision, recall, f1, auc: macro, micro, weighted, all, none\n"
            "  class=N          precision, recall, f1, auc: only of that class\n"
            "  threshold=T      one output per label: positive from T on\n"
            "  ignore=LABEL     samples with that label do not count\n"
            "  one_hot          the labels are shares of classes\n"
            "  probabilities    the outputs are probabilities, not logits\n"
            "  per=sample       mse, mae: divide by samples, not by elements\n"
            "  ranks            over the samples of all ranks of the job\n"
            "\n"
            "In an update, outputs and labels are tensors; abs, sqrt, square, log, exp and\n"
            "argmax work on each element; sum, mean, count, min and max make a number. A\n"
            "class in FILE.py has clear(), update(outputs, labels) and eval(); the training\n"
            "process runs it.",
    .examples = "metric accuracy\n"
                "metric f1 average=macro\n"
                "metric top3 = topk k=3 by step\n"
                "metric dev = update s += sum(abs(outputs - labels)) result s\n"
                "metric delete accuracy",
    .args = {ARG_CHOICE, ARG_NODE},
    .flags = CMD_NEEDS_SESSION | CMD_NEEDS_STOP | CMD_RAW | CMD_SHOWS | CMD_DEFERRED,
    .run = run_metric,
};
