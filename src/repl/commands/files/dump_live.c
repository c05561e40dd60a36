// SPDX-License-Identifier: GPL-3.0-or-later
/* Writes values of a stopped training in the layout of MindSpore's synchronous dump. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "engine/graph/selector.h"
#include "engine/ranks.h"
#include "repl/commands/files/dump_live.h"
#include "repl/core/work.h"
#include "repl/values/inspect.h"

#define LAYOUT_VERSION "2.4.0" /* the first MindSpore release with these file names */
#define ROW_BYTES      256     /* approximate size of a row of statistic.csv */

/* ---- writing --------------------------------------------------------------------------------- */

struct dumping { /* of one step of one process */
    struct command_call *call;
    struct live_dump *d;
    struct rank_writer *rank;
    struct gd_ms_writer *writer; /* the process's */
    struct repl_work work;
    uint64_t done, tensors, rows, missing;
    const char *why;    /* reason of the first missing one */
    uint64_t left_out;  /* missing because too large, or with those */
    uint64_t earlier;   /* values that are still of the previous step */
    uint64_t elsewhere; /* ranks that are stopped elsewhere */
};

static bool go_on(void *ctx, uint64_t bytes)
{
    struct dumping *s = ctx;

    (void)bytes;
    return repl_work_at(&s->work, s->done);
}

static void count_bytes(struct live_dump *d, struct rank_writer *rank)
{
    uint64_t bytes = gd_ms_writer_bytes(rank->writer);

    d->bytes += bytes - rank->counted;
    rank->counted = bytes;
}

static int check_quota(struct dumping *s, uint64_t size, struct gd_err *err)
{
    uint64_t most = s->call->debugger->settings.dump_bytes;

    count_bytes(s->d, s->rank);
    uint64_t total = s->d->bytes + size;

    return most > 0 && total > most
               ? gd_fail(err, GD_ELIMIT, "dump-bytes reached: %s would exceed %s",
                         inspect_bytes(s->call, total), inspect_bytes(s->call, most))
               : GD_OK;
}

static bool wants_elements(const struct dumping *s)
{
    const struct gd_dump_config *config = s->d->config;
    bool md5 = false;

    for (int i = 0; config && i < config->categories; i++) {
        md5 = md5 || config->category[i] == GD_MS_MD5;
    }
    return s->d->plan.data != GD_DUMP_STATISTIC || md5;
}

static int write_elements(struct dumping *s, const struct gd_ms_item *item,
                          struct gd_tensor *tensor, struct gd_err *err)
{
    struct gd_tensor *whole = NULL;
    struct gd_stats stats;
    enum gd_dump_data data = s->d->plan.data;
    int rc = gd_tensor_contiguous(tensor, &whole, err);

    if (rc == GD_OK && data != GD_DUMP_STATISTIC) {
        rc = check_quota(s, gd_ms_writer_size(whole->dtype, &whole->shape), err);
        rc = rc != GD_OK ? rc : gd_ms_writer_tensor(s->writer, item, whole, go_on, s, err);
        s->tensors += rc == GD_OK;
    }
    if (rc == GD_OK && data != GD_DUMP_TENSOR &&
        repl_stats_compute(s->call, "statistics", whole, NULL, &stats, NULL) == GD_OK) {
        rc = gd_ms_writer_row(s->writer, item, whole->dtype, &whole->shape, &stats, whole, err);
        s->rows += rc == GD_OK;
    }
    gd_tensor_unref(whole);
    return rc;
}

/* A value that is valid whichever step wrote it: weights, optimizer state, and inputs of the
 * step. */
static bool holds_on(const struct gd_node_info *info)
{
    return info->kind == GD_NODE_WEIGHT || info->kind == GD_NODE_CONSTANT ||
           (info->order == GD_NO_ORDER && info->input_count == 0 && info->kind != GD_NODE_GRADIENT);
}

/* A value computed in another step does not belong to this one. If the step of a value is unknown
 * and the training is stopped inside the step, nodes after that place have not run. */
static bool is_of_step(const struct dumping *s, gd_node_id node, int64_t step)
{
    const struct gd_session *session = s->call->session;
    struct gd_node_info info, at;

    if (!gd_graph_node(session->graph, node, &info) || holds_on(&info)) {
        return true;
    }
    if (step >= 0) {
        return step == session->stop.step;
    }
    return session->stop.at_step_end || (gd_graph_node(session->graph, session->stop.node, &at) &&
                                         at.order != GD_NO_ORDER && info.order <= at.order);
}

static int write_value(struct dumping *s, const struct gd_tensor_ref *ref,
                       const struct gd_ms_item *item, struct gd_err *err)
{
    struct gd_err why = {.text = ""};
    struct gd_tensor *tensor = NULL;
    struct gd_stats stats;
    struct gd_shape shape;
    enum gd_dtype dtype;
    int64_t step;
    bool elements = wants_elements(s);
    int rc = elements ? repl_fetch(s->call, ref, NULL, &tensor, &step, &why)
                      : repl_stats(s->call, ref, &dtype, &shape, &stats, &step, &why);

    if (rc == GD_EINTR || rc == GD_ENOMEM || rc == GD_ELOST || rc == GD_ESTATE) {
        return gd_fail(err, rc, "%s", why.text);
    }
    if (rc != GD_OK) {
        bool is_first = rc == GD_ELIMIT ? s->left_out++ == 0 : s->missing == 0;
        s->missing++;
        if (is_first) { /* report a value that a limit excludes rather than a missing one */
            s->why = inspect_printf(s->call, "%s", out_safe(s->call, why.text));
        }
        return GD_OK;
    }
    if (!is_of_step(s, ref->node, step)) {
        s->earlier++;
    } else if (elements) {
        rc = write_elements(s, item, tensor, err);
    } else {
        rc = check_quota(s, (s->rows + 1) * ROW_BYTES, err);
        rc = rc != GD_OK ? rc : gd_ms_writer_row(s->writer, item, dtype, &shape, &stats, NULL, err);
        s->rows += rc == GD_OK;
    }
    gd_tensor_unref(tensor);
    return rc;
}

/* The inputs of a node are the outputs of others, as they are now. */
static int write_inputs(struct dumping *s, gd_node_id node, struct gd_err *err)
{
    struct gd_node_info info;
    int rc = GD_OK;

    for (uint32_t i = 0;
         rc == GD_OK && gd_graph_node(s->call->session->graph, node, &info) && i < info.input_count;
         i++) {
        struct gd_tensor_ref ref = {.node = info.inputs[i].node, .slot = info.inputs[i].slot};
        struct gd_ms_item item = {.node = &info, .is_input = true, .slot = i};
        if (!info.inputs[i].control && ref.node != GD_NO_NODE) {
            rc = write_value(s, &ref, &item, err);
        }
    }
    return rc;
}

static int write_node(struct dumping *s, gd_node_id node, struct gd_err *err)
{
    struct gd_node_info info;
    int rc = GD_OK;

    if (!gd_graph_node(s->call->session->graph, node, &info)) {
        return GD_OK;
    }
    /* Values that nothing computes, parameters and data, are always valid. */
    bool outputs = s->d->plan.io != GD_DUMP_INPUT || info.input_count == 0;
    if (s->d->plan.io != GD_DUMP_OUTPUT) {
        rc = write_inputs(s, node, err);
    }
    for (uint32_t slot = 0; outputs && rc == GD_OK && slot < info.output_count; slot++) {
        struct gd_tensor_ref ref = {.node = node, .slot = slot};
        struct gd_ms_item item = {.node = &info, .slot = slot};
        rc = write_value(s, &ref, &item, err);
    }
    return rc;
}

/* MindSpore's name for the device, if it has one. */
static const char *device_of(struct command_call *call)
{
    const char *device = call->session->peer.device;

    if (device[0] == '\0' || strncasecmp(device, "cpu", 3) == 0) {
        return "CPU";
    }
    return strncasecmp(device, "cuda", 4) == 0 || strncasecmp(device, "gpu", 3) == 0
               ? "GPU"
               : out_safe(call, device);
}

/* The user's data_dump.json decides what is written. */
static bool says_so(const struct gd_dump_config *config, const struct dump_plan *plan)
{
    return config && !config->is_acl && config->io == plan->io && config->data == plan->data &&
           config->net_name && strcmp(config->net_name, plan->net) == 0;
}

/* A data_dump.json that describes the dump, for readers that look into it; freed by cJSON_free.
 * NULL: out of memory. */
static char *make_config(struct command_call *call, const struct live_dump *d)
{
    static const char *const datas[] = {"tensor", "statistic", "full"};
    struct gd_buf steps = GD_BUF_INIT(1 << 20);
    cJSON *root = cJSON_CreateObject(), *common = cJSON_CreateObject();

    if (d->steps.all || d->steps.count > 0) {
        gd_steps_text(&d->steps, &steps);
    } else {
        gd_buf_printf(&steps, "%lld", (long long)call->session->stop.step);
    }
    out_set(common, OUT_INT("dump_mode", 0), OUT_TEXT("path", d->plan.dir),
            OUT_TEXT("net_name", d->plan.net), OUT_TEXT("iteration", gd_buf_text(&steps)),
            OUT_TEXT("saved_data", datas[d->plan.data]), OUT_INT("input_output", d->plan.io),
            OUT_JSON("kernels", cJSON_CreateArray()), OUT_TEXT("file_format", "npy"));
    out_set(root, OUT_JSON("common_dump_settings", common));
    common = out_object(root, "e2e_dump_settings");
    out_set(common, OUT_BOOL("enable", true));
    char *text = cJSON_Print(root);
    cJSON_Delete(root);
    gd_buf_deinit(&steps);
    return text;
}

static int open_writer(struct command_call *call, struct live_dump *d, struct gd_ms_writer **ret,
                       struct gd_err *err)
{
    char *made = says_so(d->config, &d->plan) ? NULL : make_config(call, d);
    const struct gd_peer *peer = &call->session->peer;
    bool mindspore = strcmp(peer->framework, "MindSpore") == 0;
    struct gd_ms_writer_options options = {
        .root = d->plan.dir,
        .rank = peer->rank,
        .net = d->plan.net,
        .device = device_of(call),
        .version = mindspore && peer->version[0] ? out_safe(call, peer->version) : LAYOUT_VERSION,
        .config = made ? made : "",
        .config_size = made ? strlen(made) : 0,
    };

    if (says_so(d->config, &d->plan)) {
        options.config = d->config->text;
        options.config_size = d->config->size;
    }
    int rc = gd_ms_writer_open(&options, ret, err);
    cJSON_free(made);

    if (rc == GD_OK && d->config && d->config->categories > 0) {
        gd_ms_writer_columns(*ret, d->config->category, d->config->categories);
    }
    return rc;
}

static int rank_of(struct command_call *call, struct live_dump *d, struct rank_writer **ret,
                   struct gd_err *err)
{
    const struct gd_session *session = call->session;
    struct rank_writer *rank = NULL;
    int rc = GD_OK;

    for (size_t i = 0; i < d->ranks; i++) {
        rank = d->rank[i].session == session->number ? &d->rank[i] : rank;
    }
    if (!rank) {
        struct rank_writer *grown = realloc(d->rank, (d->ranks + 1) * sizeof(*grown));
        if (!grown) {
            return gd_fail_nomem(err);
        }
        d->rank = grown;
        rank = &grown[d->ranks];
        *rank = (struct rank_writer){.session = session->number};
        rc = open_writer(call, d, &rank->writer, err);
        d->ranks += rc == GD_OK;
    }
    *ret = rank;
    return rc;
}

static int write_graph(struct dumping *s, struct gd_err *err)
{
    const struct gd_session *session = s->call->session;
    int rc = GD_OK;

    if (s->rank->generation != session->graph_generation) { /* a new graph */
        rc = gd_ms_writer_graph(s->writer, session->graph, err);
        s->rank->generation = rc == GD_OK ? session->graph_generation : s->rank->generation;
        count_bytes(s->d, s->rank);
    }
    return rc;
}

int dump_live_prepare(struct command_call *call, struct live_dump *d, struct gd_err *err)
{
    struct gd_selector *selector = NULL;
    struct rank_writer *rank = NULL;
    int rc = d->plan.selector ? gd_selector_parse(d->plan.selector, &selector, err) : GD_OK;

    gd_selector_destroy(selector);
    rc = rc != GD_OK ? rc : rank_of(call, d, &rank, err);
    if (rc == GD_OK) {
        count_bytes(d, rank);
    }
    return rc;
}

/* At the end of a step, weights and optimizer state have their updated values: they are written
 * last, so that their times tell. */
static bool is_updated(const struct dumping *s, gd_node_id node)
{
    const struct gd_session *session = s->call->session;
    struct gd_node_info info;

    return session->stop.at_step_end && gd_graph_node(session->graph, node, &info) &&
           info.order == GD_NO_ORDER &&
           (info.kind == GD_NODE_WEIGHT ||
            (info.kind == GD_NODE_PARAMETER && strstr(info.name, "optimizer")));
}

static int write_nodes(struct dumping *s, const gd_node_id *nodes, size_t count, struct gd_err *err)
{
    int rc = GD_OK, end;

    gd_ms_writer_begin(s->writer, s->call->session->stop.step);
    repl_work_begin_count(
        &s->work, s->call,
        inspect_printf(s->call, "dumping step %lld", (long long)s->call->session->stop.step),
        "nodes", count);
    s->done = 0;
    for (size_t i = 0; rc == GD_OK && i < 2 * count; i++) {
        if (is_updated(s, nodes[i % count]) != (i >= count)) {
            continue;
        }
        rc = write_node(s, nodes[i % count], err);
        s->done++;
        if (rc == GD_OK && !repl_work_at(&s->work, s->done)) {
            rc = GD_EINTR;
        }
    }
    rc = repl_work_end(&s->work, rc, err);
    const struct gd_stop *at = &s->call->session->stop;
    if (rc == GD_OK && !at->at_step_end) {
        rc = gd_ms_writer_stood(s->writer, at->node_name, err);
    }
    end = gd_ms_writer_end(s->writer, rc == GD_OK && at->at_step_end, rc == GD_OK ? err : NULL);
    return rc != GD_OK ? rc : end;
}

/* Dumps the process of call->session. */
static int dump_process(struct dumping *s, struct gd_err *err)
{
    gd_node_id *nodes = NULL;
    size_t count = 0;
    int rc = dump_live_choose(s->call->session, s->d, &nodes, &count, err);

    rc = rc != GD_OK ? rc : rank_of(s->call, s->d, &s->rank, err);
    if (rc == GD_OK) {
        s->writer = s->rank->writer;
        rc = write_graph(s, err);
        rc = rc != GD_OK ? rc : write_nodes(s, nodes, count, err);
        count_bytes(s->d, s->rank);
    }
    free(nodes);
    return rc;
}

/* Reports what is missing, and why. */
static void report_missing(struct dumping *s, const struct gd_stop *at, const cJSON *record)
{
    struct command_call *call = s->call;
    uint64_t count = s->left_out ? s->left_out : s->missing;
    const char *lacks = count == 1 ? "has no value" : "have no value";
    const char *limited = count == 1 ? "is skipped" : "are skipped";
    bool is_planned = s->d->steps.all || s->d->steps.count > 0;

    out_say(call->out, record,
            "[{earlier|tensor} {have} no value of this step[{!whole} yet]: skipped, as their "
            "values are of the previous step\n]"
            "[{lacking|tensor} {lack}; the first: {why}\n]",
            OUT_TEXT("have", s->earlier == 1 ? "has" : "have"),
            OUT_INT("lacking", s->missing > 0 ? count : 0),
            OUT_TEXT("lack", s->left_out ? limited : lacks), OUT_TEXT("why", s->why));
    if (s->missing > s->left_out && !is_planned &&
        call->session->target->capabilities & GD_CAN_CAPTURE) {
        out_printf(call->out,
                   "To dump values that are freed before the end of a step, announce the step: "
                   "dump DIR --steps %lld\n",
                   (long long)at->step + 1);
    }
    out_say(call->out, record,
            s->elsewhere == 1
                ? "1 rank is stopped at another step and is not dumped\n"
                : "[{elsewhere|rank} are stopped at another step and are not dumped\n]");
}

static void report_step(struct dumping *s, const struct gd_stop *at, uint64_t bytes)
{
    static const char *const what[] = {"{tensors|tensor}", "statistics of {rows|tensor}",
                                       "{tensors|tensor}, statistics of {rows|tensor}"};
    struct repl_out *out = s->call->out;
    cJSON *record = out_record(out, "dump");

    out_set(record, OUT_TEXT("directory", s->d->plan.dir), OUT_INT("step", at->step),
            OUT_BOOL("whole", at->at_step_end),
            OUT_IF(!at->at_step_end, OUT_TEXT("node", at->node_name)),
            OUT_INT("tensors", s->tensors), OUT_INT("rows", s->rows),
            OUT_INT("missing", s->missing), OUT_INT("elsewhere", s->elsewhere),
            OUT_INT("left_out", s->left_out), OUT_INT("earlier", s->earlier),
            OUT_INT("bytes", bytes), OUT_INT("total_bytes", s->d->bytes));
    out_say(out, record, "Dumped step {step}[{!whole} up to {place}]: ",
            OUT_TEXT("place", at->node_name[0] ? at->node_name : "the current node"));
    out_say(out, record, what[s->d->plan.data]);
    out_say(out, record, ", {bytes:bytes}, to {directory}\n");
    report_missing(s, at, record);
}

/* All processes that are stopped at the same place as the selected one. */
int dump_live_step(struct command_call *call, struct live_dump *d, struct gd_err *err)
{
    struct gd_session *session = call->session;
    const struct gd_ranks *ranks =
        gd_ranks_move_together(session, GD_RUN_CONTINUE) ? gd_ranks_of(session) : NULL;
    struct dumping s = {.call = call, .d = d};
    int64_t step = session->stop.step;
    uint64_t before = d->bytes;
    int world = ranks ? gd_ranks_world_size(ranks) : 1, rc = GD_OK;

    d->done_sequence = session->stop.sequence;
    d->done_session = session->number;
    for (int rank = 0; rc == GD_OK && rank < world; rank++) {
        struct gd_session *member = ranks ? gd_ranks_member(ranks, rank) : session;
        if (member && member->state == GD_STOPPED && member->stop.step == step) {
            call->session = member;
            gd_session_hold(member);
            rc = dump_process(&s, err);
            gd_session_release(member);
        } else {
            s.elsewhere += member && gd_session_is_live(member);
        }
    }
    call->session = session;
    d->tensors += s.tensors;
    d->rows += s.rows;
    if (rc == GD_OK) {
        d->steps_done++;
        d->steps_written++;
        report_step(&s, &session->stop, d->bytes - before);
        dump_live_warn_of_unused(call, d);
    }
    return rc;
}
