// SPDX-License-Identifier: GPL-3.0-or-later
/* Values of a training that runs, written in the layout of MindSpore's synchronous dump; and runs
 * that are made to end where a step is to be dumped. */
#include "repl/dump_live.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "engine/graph/selector.h"
#include "engine/ranks.h"
#include "repl/commands.h"
#include "repl/dump_live_impl.h"
#include "repl/inspect.h"
#include "repl/repl_impl.h"
#include "repl/work.h"

#define LAYOUT_VERSION "2.4.0" /* the first of MindSpore's releases that names files so */
#define ROW_BYTES      256     /* of statistic.csv, about */

/* ---- state ----------------------------------------------------------------------------------- */

void dump_live_clear(struct live_dump *d)
{
    for (size_t i = 0; i < d->ranks; i++) {
        gd_ms_writer_close(d->rank[i].writer);
    }
    free(d->rank);
    d->rank = NULL;
    d->ranks = 0;
    free(d->plan.dir);
    free(d->plan.selector);
    free(d->plan.net);
    d->plan = (struct dump_plan){.dir = NULL};
    gd_steps_clear(&d->steps);
    d->armed = false;
    d->cut = 0;
}

static void free_state(void *data)
{
    struct live_dump *d = data;

    dump_live_clear(d);
    gd_dump_config_free(d->config);
    free(d);
}

struct live_dump *dump_live_find(struct repl *repl)
{
    return repl_slot(repl, REPL_SLOT_DUMP);
}

struct live_dump *dump_live_make(struct repl *repl, struct gd_err *err)
{
    struct live_dump *d = dump_live_find(repl);

    if (!d) {
        d = calloc(1, sizeof(*d));
        if (!d) {
            gd_fail(err, GD_ENOMEM, "out of memory");
            return NULL;
        }
        repl_set_slot(repl, REPL_SLOT_DUMP, d, free_state);
    }
    return d;
}

/* ---- what is dumped -------------------------------------------------------------------------- */

/* As MindSpore takes `kernels`: the full name, or a word of the operator's type or own name. */
static bool is_kernel(const struct gd_dump_config *config, const struct gd_node_info *info)
{
    const char *slash = strrchr(info->name, '/');
    const char *own = slash ? slash + 1 : info->name;

    for (size_t i = 0; i < config->kernels; i++) {
        const char *kernel = config->kernel[i];
        bool is_type = !strchr(kernel, '/') && !strstr(kernel, "-op");
        if (strcmp(kernel, info->name) == 0 ||
            (is_type && (strcasestr(info->type, kernel) || strcasestr(own, kernel)))) {
            return true;
        }
    }
    return false;
}

/* *ret is freed by the caller. In execution order where that is known. */
static int choose(struct command_call *call, const struct live_dump *d, gd_node_id **ret,
                  size_t *count, struct gd_err *err)
{
    struct gd_graph *graph = call->session->graph;
    struct gd_selector *selector = NULL;
    const char *text = d->plan.selector ? d->plan.selector : "all";
    struct gd_node_info info;
    size_t kept = 0;
    int rc = gd_selector_parse(text, &selector, err);

    rc = rc ? rc : gd_selector_resolve(selector, graph, ret, count, err);
    gd_selector_destroy(selector);
    if (rc == GD_OK && d->config && d->config->chosen && !d->plan.selector) {
        for (size_t i = 0; i < *count; i++) {
            if (gd_graph_node(graph, (*ret)[i], &info) && is_kernel(d->config, &info)) {
                (*ret)[kept++] = (*ret)[i];
            }
        }
        *count = kept;
    }
    if (rc == GD_OK && *count == 0) {
        free(*ret);
        *ret = NULL;
        rc = gd_fail(err, GD_ENOTFOUND, "nothing is chosen that could be dumped");
    }
    return rc;
}

/* ---- writing --------------------------------------------------------------------------------- */

struct dumping { /* of one step of one process */
    struct command_call *call;
    struct live_dump *d;
    struct rank_writer *rank;
    struct gd_ms_writer *writer; /* its */
    struct repl_work work;
    uint64_t done, tensors, rows, missing;
    const char *why; /* what the first missing one said */
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
               ? gd_fail(err, GD_ELIMIT, "dump-bytes is reached: %s would be more than %s",
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
        rc = rc ? rc : gd_ms_writer_tensor(s->writer, item, whole, go_on, s, err);
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
        if (s->missing++ == 0) {
            s->why = inspect_printf(s->call, "%s", out_safe(s->call, why.text));
        }
        return GD_OK;
    }
    if (elements) {
        rc = write_elements(s, item, tensor, err);
    } else {
        rc = check_quota(s, (s->rows + 1) * ROW_BYTES, err);
        rc = rc ? rc : gd_ms_writer_row(s->writer, item, dtype, &shape, &stats, NULL, err);
        s->rows += rc == GD_OK;
    }
    gd_tensor_unref(tensor);
    return rc;
}

/* The values that a node was given are the outputs of others, as they are now. */
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
    /* What nothing computes, parameters and data, is always there once. */
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

/* As MindSpore calls it, where it has a name for it. */
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

static int open_writer(struct command_call *call, struct live_dump *d, struct gd_ms_writer **ret,
                       struct gd_err *err)
{
    static const char none[] = "{}\n";
    const struct gd_peer *peer = &call->session->peer;
    bool mindspore = strcmp(peer->framework, "MindSpore") == 0;
    struct gd_ms_writer_options options = {
        .root = d->plan.dir,
        .rank = peer->rank,
        .net = d->plan.net,
        .device = device_of(call),
        .version = mindspore && peer->version[0] ? out_safe(call, peer->version) : LAYOUT_VERSION,
        .config = d->config && !d->config->is_acl ? d->config->text : none,
        .config_size = d->config && !d->config->is_acl ? d->config->size : sizeof(none) - 1,
    };
    int rc = gd_ms_writer_open(&options, ret, err);

    if (rc == GD_OK && d->config && d->config->categories > 0) {
        gd_ms_writer_columns(*ret, d->config->category, d->config->categories);
    }
    return rc;
}

/* The graph is written when it is new. */
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
            return gd_fail(err, GD_ENOMEM, "out of memory");
        }
        d->rank = grown;
        rank = &grown[d->ranks];
        *rank = (struct rank_writer){.session = session->number};
        rc = open_writer(call, d, &rank->writer, err);
        d->ranks += rc == GD_OK;
    }
    if (rc == GD_OK && rank->generation != session->graph_generation) {
        rc = gd_ms_writer_graph(rank->writer, session->graph, err);
        rank->generation = rc == GD_OK ? session->graph_generation : rank->generation;
        count_bytes(d, rank);
    }
    *ret = rank;
    return rc;
}

static int write_nodes(struct dumping *s, const gd_node_id *nodes, size_t count, struct gd_err *err)
{
    int rc = GD_OK, end;

    gd_ms_writer_begin(s->writer, s->call->session->stop.step);
    repl_work_begin_count(
        &s->work, s->call,
        inspect_printf(s->call, "dumping step %lld", (long long)s->call->session->stop.step),
        "nodes", count);
    for (size_t i = 0; rc == GD_OK && i < count; i++) {
        rc = write_node(s, nodes[i], err);
        s->done = i + 1;
        if (rc == GD_OK && !repl_work_at(&s->work, s->done)) {
            rc = GD_EINTR;
        }
    }
    rc = repl_work_end(&s->work, rc, err);
    end = gd_ms_writer_end(s->writer, rc == GD_OK, rc == GD_OK ? err : NULL);
    return rc ? rc : end;
}

/* The process that call->session is. */
static int dump_process(struct dumping *s, struct gd_err *err)
{
    gd_node_id *nodes = NULL;
    size_t count = 0;
    int rc = choose(s->call, s->d, &nodes, &count, err);

    rc = rc ? rc : rank_of(s->call, s->d, &s->rank, err);
    if (rc == GD_OK) {
        s->writer = s->rank->writer;
        rc = write_nodes(s, nodes, count, err);
        count_bytes(s->d, s->rank);
    }
    free(nodes);
    return rc;
}

static void tell(struct dumping *s, int64_t step, uint64_t bytes)
{
    struct command_call *call = s->call;

    if (out_is_json(call->out)) {
        cJSON *record = out_record(call->out, "dump");
        inspect_add_text(call, record, "directory", s->d->plan.dir);
        cJSON_AddNumberToObject(record, "step", (double)step);
        inspect_add_count(record, "tensors", s->tensors);
        inspect_add_count(record, "rows", s->rows);
        inspect_add_count(record, "missing", s->missing);
        inspect_add_count(record, "bytes", bytes);
        inspect_add_count(record, "total_bytes", s->d->bytes);
        return;
    }
    out_printf(call->out, "Dumped step %lld: ", (long long)step);
    if (s->d->plan.data != GD_DUMP_STATISTIC) {
        out_printf(call->out, "%s, ", inspect_plural(call, s->tensors, "tensor"));
    }
    if (s->d->plan.data != GD_DUMP_TENSOR) {
        out_printf(call->out, "statistics of %s, ", inspect_plural(call, s->rows, "tensor"));
    }
    out_printf(call->out, "%s, to %s\n", inspect_bytes(call, bytes),
               out_safe(call, s->d->plan.dir));
    if (s->missing > 0) {
        out_printf(call->out, "%s %s no value, the first: %s\n",
                   inspect_plural(call, s->missing, "tensor"), s->missing == 1 ? "has" : "have",
                   s->why);
    }
}

/* All processes that stand where the selected one does. */
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
        }
    }
    call->session = session;
    d->tensors += s.tensors;
    d->rows += s.rows;
    if (rc == GD_OK) {
        d->steps_done++;
        d->last_step = step;
        tell(&s, step, d->bytes - before);
    }
    return rc;
}

/* ---- runs and stops -------------------------------------------------------------------------- */

/* The first step of the grammar behind `step`; INT64_MAX: none. */
static int64_t step_after(const struct gd_steps *steps, int64_t step)
{
    int64_t next = steps->all ? step + 1 : INT64_MAX;

    for (uint32_t i = 0; !steps->all && i < steps->count; i++) {
        int64_t first = steps->range[i].first > step ? steps->range[i].first : step + 1;
        next = first <= steps->range[i].last && first < next ? first : next;
    }
    return next;
}

void repl_dump_aim(struct repl *repl, const struct gd_session *session, struct gd_run *run)
{
    struct live_dump *d = dump_live_find(repl);
    const struct gd_stop *at = &session->stop;

    if (!d || !d->armed) {
        return;
    }
    d->cut = 0;
    d->interrupted = false;
    d->session = session->number;
    d->asked = *run;
    int64_t behind = at->at_step_end ? at->step : at->step - 1; /* that have ended */
    int64_t next = step_after(&d->steps, behind);
    if (next == INT64_MAX || (run->kind != GD_RUN_CONTINUE && run->kind != GD_RUN_STEP)) {
        return;
    }
    if (run->kind == GD_RUN_STEP) {
        if (run->count <= next - behind) {
            return;
        }
        d->asked_end = run->count > INT64_MAX - behind ? INT64_MAX : behind + run->count;
    }
    run->kind = GD_RUN_STEP;
    run->count = next - behind;
    d->cut = next;
}

bool repl_dump_is_passing(struct repl *repl, const struct gd_session *session)
{
    const struct live_dump *d = dump_live_find(repl);
    const struct gd_stop *at = &session->stop;

    if (!d || !d->armed || d->cut == 0 || d->interrupted || !at->at_step_end ||
        at->step != d->cut || at->reason != GD_STOP_STEP) {
        return false;
    }
    const struct gd_session *moved = gd_debugger_session(repl->debugger, d->session);
    const struct gd_ranks *ranks = gd_ranks_of(session);
    return moved == session || (ranks && moved && gd_ranks_of(moved) == ranks);
}

void repl_dump_interrupted(struct repl *repl)
{
    struct live_dump *d = dump_live_find(repl);

    if (d) {
        d->interrupted = true;
    }
}

/* As a command of its own. What ends a dump does not end the training. */
static int dump_due(struct repl *repl, struct live_dump *d, struct gd_session *session)
{
    static char *no_words[1] = {NULL};
    struct gd_arena arena;
    struct repl_out out;
    struct gd_err err = {.text = ""};
    struct command_call call = {.repl = repl,
                                .debugger = repl->debugger,
                                .session = session,
                                .out = &out,
                                .arena = &arena,
                                .command = cmd_dump_live_table,
                                .format = "",
                                .line = "",
                                .argv = no_words};

    gd_arena_init(&arena, 1 << 30);
    out_begin(&out, repl, &arena, NULL);
    int rc = dump_live_step(&call, d, &err);
    out_end(&out, rc != GD_OK, NULL);
    if (rc == GD_EINTR) {
        repl_printf(repl, true, "warning: step %lld is not dumped whole: %s\n",
                    (long long)session->stop.step, err.text);
    } else if (rc != GD_OK) {
        repl_printf(repl, true, "warning: the dump ends here: %s\n",
                    repl_safe(repl, &arena, err.text));
        dump_live_clear(d);
    }
    gd_arena_deinit(&arena);
    return rc;
}

/* The rest of what the user had asked for. */
static bool run_on(struct repl *repl, struct live_dump *d, const struct gd_run *asked, int64_t end,
                   struct gd_session *session)
{
    struct gd_run run = *asked;
    struct gd_err err;

    if (run.kind == GD_RUN_STEP) {
        run.count = end - session->stop.step;
    }
    repl_dump_aim(repl, session, &run);
    if (d->armed && asked->kind == GD_RUN_STEP) {
        d->asked_end = end;
    }
    if (gd_ranks_resume(session, &run, &err) == GD_OK) {
        return true;
    }
    repl_printf(repl, true, "warning: the training stands after the dump: %s\n", err.text);
    return false;
}

bool repl_dump_at_stop(struct repl *repl, struct gd_session *session)
{
    struct live_dump *d = dump_live_find(repl);

    if (!d || !d->armed || session != repl->debugger->current || !session->stop.at_step_end ||
        !gd_steps_have(&d->steps, session->stop.step) ||
        (d->done_session == session->number && d->done_sequence == session->stop.sequence)) {
        return false;
    }
    bool passing = repl_dump_is_passing(repl, session);
    struct gd_run asked = d->asked;
    int64_t end = d->asked_end;
    int rc = dump_due(repl, d, session);
    if (!passing || session->state != GD_STOPPED) {
        return false;
    }
    if (rc == GD_EINTR || repl->quit || repl->left) {
        repl_report_stop(repl, session);
        return false;
    }
    return run_on(repl, d, &asked, end, session);
}
