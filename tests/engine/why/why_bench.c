// SPDX-License-Identifier: GPL-3.0-or-later
#include "why_bench.h"

#include <math.h>
#include <unistd.h>

#include "../../scratch.h"
#include "../../unit.h"
#include "engine/history/history.h"
#include "engine/watch/watch_report.h"

static const struct bench_value *find_value(const struct bench_target *target,
                                            const struct gd_tensor_ref *ref)
{
    for (size_t i = target->count; i-- > 0;) {
        const struct bench_value *value = &target->values[i];

        if (value->node == ref->node && value->slot == ref->slot && value->iter == ref->iter) {
            return value;
        }
    }
    return NULL;
}

static void send_reply(struct bench_target *target, const struct bench_request *request)
{
    const struct bench_value *value = find_value(target, &request->ref);
    struct gd_err err;

    if (!value || value->error) {
        gd_fail(&err, value ? value->error : GD_ENODATA, "no value");
        request->fn(request->ctx, GD_DT_NONE, NULL, NULL, -1, &err);
        return;
    }
    request->fn(request->ctx, value->dtype, &value->shape, &value->stats, value->step, NULL);
}

static int bench_fetch_stats(struct gd_target *base, const struct gd_tensor_ref *ref,
                             gd_stats_fn fn, void *ctx, struct gd_err *err)
{
    struct bench_target *target = (struct bench_target *)base;
    struct bench_request request = {*ref, fn, ctx};

    for (size_t i = 0; i < target->asked && i < BENCH_MAX * 256; i++) {
        target->asked_twice +=
            memcmp(&target->queue[i].ref, ref, sizeof(*ref)) == 0 && target->asked < BENCH_MAX * 4;
    }
    assert_true(target->asked < BENCH_MAX * 256);
    target->queue[target->asked++] = request;
    if (target->late) {
        target->queued = target->asked;
    } else {
        target->queued = target->answered = target->asked;
        send_reply(target, &request);
    }
    return GD_OK;
}

static int bench_resume(struct gd_target *base, const struct gd_run *run, struct gd_err *err)
{
    return GD_OK;
}

static void bench_destroy(struct gd_target *base)
{
    free(base);
}

static const struct gd_target_ops ops = {
    .kind = "bench", .resume = bench_resume, .stats = bench_fetch_stats, .destroy = bench_destroy};

struct bench *bench_make(void)
{
    struct bench *bench = calloc(1, sizeof(*bench));
    struct gd_err err;

    assert_ok(gd_debugger_create(&bench->debugger, NULL));
    bench->target = calloc(1, sizeof(*bench->target));
    bench->target->target.ops = &ops;
    bench->target->target.capabilities = ~(unsigned)GD_CAN_GOTO; /* a trainer goes forward */
    if (gd_session_create(bench->debugger, &bench->target->target, NULL, &bench->session, &err) !=
        GD_OK) {
        fail_msg("%s", err.text);
    }
    return bench;
}

void bench_end(struct bench *bench)
{
    gd_debugger_destroy(bench->debugger);
    free(bench);
}

int bench_setup(void **state)
{
    *state = bench_make();
    return 0;
}

int bench_teardown(void **state)
{
    bench_end(*state);
    return 0;
}

static gd_node_id add_node(struct bench *bench, const char *name, const char *type, uint32_t order,
                           const struct gd_edge *inputs, uint32_t count)
{
    struct gd_output output = {.dtype = GD_FLOAT32, .shape = {.rank = 1, .dim = {10}}};
    struct gd_node_desc desc = {
        .name = name, .type = type, .outputs = &output, .output_count = 1, .order = order};
    gd_node_id node;

    assert_ok(gd_graph_add(bench->session->graph, &desc, &node, NULL));
    assert_ok(gd_graph_connect(bench->session->graph, node, inputs, count, NULL));
    return node;
}

gd_node_id bench_leaf(struct bench *bench, const char *name, const char *type)
{
    return add_node(bench, name, type, GD_NO_ORDER, NULL, 0);
}

gd_node_id bench_node(struct bench *bench, const char *name, const char *type, gd_node_id a,
                      gd_node_id b, gd_node_id c)
{
    struct gd_edge inputs[] = {{.node = a}, {.node = b}, {.node = c}};
    uint32_t count = a == GD_NO_NODE ? 0 : b == GD_NO_NODE ? 1 : c == GD_NO_NODE ? 2 : 3;

    return add_node(bench, name, type, bench->order++, inputs, count);
}

void bench_connect(struct bench *bench, gd_node_id node, gd_node_id a, gd_node_id b)
{
    struct gd_edge inputs[] = {{.node = a}, {.node = b}};

    assert_ok(gd_graph_connect(bench->session->graph, node, inputs, b == GD_NO_NODE ? 1 : 2, NULL));
}

void bench_stop(struct bench *bench, int64_t step, gd_node_id node)
{
    struct gd_stop stop = {
        .reason = GD_STOP_STEP, .step = step, .node = node, .at_step_end = node == GD_NO_NODE};

    assert_ok(gd_graph_commit(bench->session->graph, NULL));
    gd_session_on_graph(bench->session);
    gd_session_on_stopped(bench->session, &stop);
}

void bench_again(struct bench *bench)
{
    struct gd_stop stop = bench->session->stop;

    gd_session_on_running(bench->session);
    gd_session_on_stopped(bench->session, &stop);
    bench->target->asked = bench->target->asked_twice = 0;
}

struct gd_stats bench_with(double min, double max, uint64_t zero, uint64_t nan, uint64_t pos_inf,
                           uint64_t neg_inf)
{
    uint64_t rest = 10 - zero - nan - pos_inf - neg_inf;
    struct gd_stats s = {.count = 10,
                         .zero = zero,
                         .nan = nan,
                         .pos_inf = pos_inf,
                         .neg_inf = neg_inf,
                         .min = min,
                         .max = max};

    s.negative = min >= 0 ? 0 : max <= 0 ? rest : rest / 2;
    s.positive = rest - s.negative;
    s.mean = (min + max) / 2;
    s.abs_mean = (fabs(min) + fabs(max)) / 2;
    s.std = (max - min) / 4;
    s.sum_sq = 10 * s.abs_mean * s.abs_mean;
    return s;
}

struct gd_stats bench_finite(double min, double max)
{
    return bench_with(min, max, 0, 0, 0, 0);
}

static struct bench_value *put_value(struct bench *bench, gd_node_id node, enum gd_iter iter,
                                     struct gd_stats stats, int64_t step)
{
    struct bench_value *value = &bench->target->values[bench->target->count++];

    assert_true(bench->target->count <= BENCH_MAX);
    *value = (struct bench_value){.node = node,
                                  .iter = iter,
                                  .dtype = GD_FLOAT32,
                                  .shape = {.rank = 1, .dim = {10}},
                                  .stats = stats,
                                  .step = step};
    return value;
}

struct bench_value *bench_value(struct bench *bench, gd_node_id node, struct gd_stats stats,
                                int64_t step)
{
    return put_value(bench, node, GD_CURRENT, stats, step);
}

struct bench_value *bench_previous(struct bench *bench, gd_node_id node, struct gd_stats stats,
                                   int64_t step)
{
    return put_value(bench, node, GD_PREVIOUS, stats, step);
}

void bench_open_history(struct bench *bench)
{
    struct gd_peer peer = {.framework = "test"};
    char path[SCRATCH_PATH];
    int fd = scratch_file(path);

    assert_true(fd >= 0);
    close(fd);
    assert_ok(gd_history_create(path, 1 << 20, &peer, &bench->session->history, NULL));
    unlink(path);
}

void bench_record(struct bench *bench, gd_node_id node, struct gd_stats stats, int64_t step)
{
    struct gd_shape shape = {.rank = 1, .dim = {10}};
    struct gd_watch_value value = {
        .node = node, .dtype = GD_FLOAT32, .shape = &shape, .stats = &stats, .value_step = step};

    gd_session_history_add(bench->session, &value, step);
}

static void take_answer(void *ctx, const struct gd_why *why, const struct gd_err *err)
{
    struct bench *bench = ctx;
    size_t max = sizeof(bench->nodes) / sizeof(bench->nodes[0]);

    bench->answers++;
    bench->code = err ? err->code : GD_OK;
    snprintf(bench->error, sizeof(bench->error), "%s", err ? err->text : "");
    if (why) {
        bench->why = *why;
        memcpy(bench->nodes, why->nodes,
               (why->count < max ? why->count : max) * sizeof(*why->nodes));
    }
}

void bench_ask(struct bench *bench, gd_node_id node, enum gd_bad bad)
{
    struct gd_err err = {0};

    bench->answers = 0;
    memset(&bench->why, 0, sizeof(bench->why));
    if (gd_why_ask(bench->session, node, 0, bad, &bench->facts, take_answer, bench, &err) !=
        GD_OK) {
        fail_msg("%s", err.text);
    }
    if (!bench->target->late) {
        assert_int_equal(bench->answers, 1);
    }
}

void bench_answer(struct bench *bench, bool backwards)
{
    struct bench_target *target = bench->target;

    while (target->answered < target->queued) {
        struct bench_request *next = &target->queue[target->answered];
        struct bench_request *last = &target->queue[target->queued - 1];

        if (backwards) {
            struct bench_request moved = *next;
            *next = *last;
            *last = moved;
        }
        target->answered++;
        send_reply(target, next);
    }
}

enum gd_why_verdict bench_verdict(const struct bench *bench, gd_node_id node)
{
    for (size_t i = 0; i < bench->why.count; i++) {
        if (bench->nodes[i].node == node) {
            return bench->nodes[i].verdict;
        }
    }
    fail_msg("%s is not in the answer", gd_graph_name(bench->session->graph, node));
    return GD_WHY_UNKNOWN;
}

void bench_expect(struct bench *bench, gd_node_id origin, const char *rule, const char *text)
{
    assert_ok(bench->code);
    if (bench->why.origin != origin || strcmp(bench->why.rule, rule) != 0 ||
        !strstr(bench->why.text, text)) {
        fail_msg("origin %s, rule \"%s\": %s",
                 gd_graph_name(bench->session->graph, bench->why.origin), bench->why.rule,
                 bench->why.text);
    }
}
