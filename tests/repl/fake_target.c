// SPDX-License-Identifier: GPL-3.0-or-later
#include <ev.h>

#include "../unit.h"
#include "repl/core/interrupt.h"
#include "repl/fake_target.h"
#include "repl/fake_watch.h"

struct fake_value {
    struct fake_value *next;
    gd_node_id node;
    uint32_t slot;
    enum gd_iter iter;
    struct gd_tensor *tensor;
};

struct fake_answer { /* waits for the pump */
    struct fake_answer *next;
    struct gd_tensor_ref ref;
    struct gd_slice slice;
    gd_tensor_fn tensor_fn; /* one of the two */
    gd_stats_fn stats_fn;
    void *ctx;
};

struct fake_target {
    struct gd_target base;
    struct fake *fake;
};

static struct fake *fake_of(struct gd_target *target)
{
    return ((struct fake_target *)target)->fake;
}

/* ---- answers ------------------------------------------------------------------------------- */

static struct fake_value *find_value(struct fake *fake, const struct gd_tensor_ref *ref)
{
    for (struct fake_value *value = fake->values; value; value = value->next) {
        if (value->node == ref->node && value->slot == ref->slot && value->iter == ref->iter) {
            return value;
        }
    }
    return NULL;
}

static void deliver_tensor(struct fake *fake, struct fake_answer *answer, struct gd_tensor *tensor)
{
    struct gd_err err = {0};
    struct gd_tensor *part = NULL;
    int64_t step = fake->session->stop.step - (answer->ref.iter == GD_PREVIOUS ? 1 : 0);
    if (answer->slice.count == 0) {
        answer->tensor_fn(answer->ctx, tensor, step, NULL);
    } else if (gd_tensor_slice(tensor, &answer->slice, &part, &err) != GD_OK) {
        answer->tensor_fn(answer->ctx, NULL, -1, &err);
    } else {
        answer->tensor_fn(answer->ctx, part, step, NULL);
        gd_tensor_unref(part);
    }
}

static void deliver_answer(struct fake *fake, struct fake_answer *answer)
{
    struct fake_value *value = find_value(fake, &answer->ref);
    struct gd_err err = {0};
    if (!value) {
        gd_fail(&err, GD_ENODATA, "%s has not been computed in this step",
                gd_graph_name(fake->graph, answer->ref.node));
        if (answer->tensor_fn) {
            answer->tensor_fn(answer->ctx, NULL, -1, &err);
        } else {
            answer->stats_fn(answer->ctx, GD_DT_NONE, NULL, NULL, -1, &err);
        }
        return;
    }
    if (answer->tensor_fn) {
        deliver_tensor(fake, answer, value->tensor);
        return;
    }
    struct gd_stats stats;
    int rc = gd_stats_compute(value->tensor, NULL, NULL, &stats, &err);
    answer->stats_fn(answer->ctx, value->tensor->dtype, &value->tensor->shape, &stats,
                     fake->session->stop.step, rc == GD_OK ? NULL : &err);
}

static int ask_answer(struct fake *fake, struct fake_answer *answer)
{
    if (fake->answer_at_once) {
        deliver_answer(fake, answer);
        return GD_OK;
    }
    struct fake_answer *kept = malloc(sizeof(*kept));
    assert_non_null(kept);
    *kept = *answer;
    kept->next = fake->answers;
    fake->answers = kept;
    return GD_OK;
}

static int fake_fetch(struct gd_target *target, const struct gd_tensor_ref *ref,
                      const struct gd_slice *slice, gd_tensor_fn fn, void *ctx, struct gd_err *err)
{
    struct fake *fake = fake_of(target);
    struct fake_answer answer = {.ref = *ref, .tensor_fn = fn, .ctx = ctx};
    if (slice) {
        answer.slice = *slice;
    }
    fake->fetches++;
    fake->slice = answer.slice;
    return ask_answer(fake, &answer);
}

static int fake_stats(struct gd_target *target, const struct gd_tensor_ref *ref, gd_stats_fn fn,
                      void *ctx, struct gd_err *err)
{
    struct fake *fake = fake_of(target);
    struct fake_answer answer = {.ref = *ref, .stats_fn = fn, .ctx = ctx};
    if (fake->no_statistics) {
        return gd_fail(err, GD_EUNSUPPORTED, "no statistics here");
    }
    fake->stats++;
    return ask_answer(fake, &answer);
}

/* ---- running ------------------------------------------------------------------------------- */

static int fake_resume(struct gd_target *target, const struct gd_run *run, struct gd_err *err)
{
    struct fake *fake = fake_of(target);
    fake->run = *run;
    fake->runs++;
    gd_session_on_running(fake->session);
    return GD_OK;
}

static int fake_interrupt(struct gd_target *target, struct gd_err *err)
{
    struct fake *fake = fake_of(target);
    fake->next_stop = (struct gd_stop){.reason = GD_STOP_INTERRUPT,
                                       .step = fake->session->stop.step + 1,
                                       .at_step_end = true,
                                       .node = GD_NO_NODE};
    fake->has_next_stop = true;
    return GD_OK;
}

static struct gd_stop stop_of_run(struct fake *fake)
{
    const struct gd_stop *last = &fake->session->stop;
    const struct gd_run *run = &fake->run;
    struct gd_stop stop = {.node = GD_NO_NODE, .step = last->step};
    switch (run->kind) {
    case GD_RUN_NEXT:
    case GD_RUN_TO_NODE:
        stop.reason = GD_STOP_NODE;
        stop.node = run->kind == GD_RUN_TO_NODE ? run->node : last->node;
        break;
    case GD_RUN_FINISH: stop.reason = GD_STOP_PHASE; break;
    default:
        stop.reason = GD_STOP_STEP;
        stop.step = last->step + (run->count > 0 ? run->count : 1);
        stop.at_step_end = true;
    }
    return stop;
}

/* Steps until a watchpoint wants a stop, or they are done; a run without end takes a hundred. */
static struct gd_stop watched_run(struct fake *fake)
{
    int64_t steps = fake->run.kind == GD_RUN_STEP ? fake->run.count : 100;
    struct gd_stop stop = {.reason = GD_STOP_STEP,
                           .step = fake->session->stop.step,
                           .at_step_end = true,
                           .node = GD_NO_NODE};
    for (int64_t i = 0; i < steps && stop.reason != GD_STOP_HIT; i++) {
        stop.step++;
        if (fake_watch_report(fake, stop.step)) {
            stop.reason = GD_STOP_HIT;
        }
    }
    return stop;
}

static void pump_answers(void *ctx, double max_seconds)
{
    struct fake *fake = ctx;
    struct fake_answer *answers = fake->answers;
    fake->clock += 0.5;
    if (fake->patience > 0 && --fake->patience == 0) {
        repl_interrupt(fake->repl);
    }
    if (!fake->never_answer) {
        fake->answers = NULL;
        while (answers) {
            struct fake_answer *next = answers->next;
            deliver_answer(fake, answers);
            free(answers);
            answers = next;
        }
    } else if (answers) {
        fake->debugger->interrupted = true; /* the user loses patience */
    }
    if (fake->session->state == GD_RUNNING) {
        bool steps = fake->run.kind == GD_RUN_STEP || fake->run.kind == GD_RUN_CONTINUE;
        struct gd_stop stop = fake->has_next_stop             ? fake->next_stop
                              : fake->plan_count > 0 && steps ? watched_run(fake)
                                                              : stop_of_run(fake);
        fake->has_next_stop = false;
        gd_session_on_stopped(fake->session, &stop);
    }
    if (fake->cost_count > 0 && fake->never_answer) {
        fake->debugger->interrupted = true;
    }
    while (fake->cost_count > 0 && !fake->never_answer) {
        fake->cost_count--;
        fake_watch_answer(fake, fake->costs[fake->cost_count].fn,
                          fake->costs[fake->cost_count].ctx);
    }
    ev_run(fake->loop, EVRUN_NOWAIT);
}

static double clock_seconds(void *ctx)
{
    struct fake *fake = ctx;

    fake->clock += fake->tick;
    return fake->clock;
}

static int fake_keep_previous(struct gd_target *target, const gd_node_id *nodes, size_t count,
                              struct gd_err *err)
{
    fake_of(target)->kept = count;
    return GD_OK;
}

static int watch_plan(struct gd_target *target, const struct gd_watch_plan *plan,
                      struct gd_err *err)
{
    fake_watch_plan(fake_of(target), plan);
    return GD_OK;
}

static int watch_costs(struct gd_target *target, gd_watch_costs_fn fn, void *ctx,
                       struct gd_err *err)
{
    struct fake *fake = fake_of(target);
    assert_true(fake->cost_count < 4);
    fake->costs[fake->cost_count].fn = fn;
    fake->costs[fake->cost_count].ctx = ctx;
    fake->cost_count++;
    return GD_OK;
}

static int fake_breakpoints(struct gd_target *target, const gd_node_id *nodes, size_t count,
                            struct gd_err *err)
{
    fake_of(target)->breakpoints = count;
    return GD_OK;
}

static int fake_detach(struct gd_target *target, struct gd_err *err)
{
    gd_session_on_finished(fake_of(target)->session, "detached");
    return GD_OK;
}

static int fake_kill(struct gd_target *target, struct gd_err *err)
{
    gd_session_on_finished(fake_of(target)->session, "killed");
    return GD_OK;
}

static void fake_describe(struct gd_target *target,
                          void (*fact)(void *ctx, const char *name, const char *value), void *ctx)
{
    fact(ctx, "shared memory", "no");
}

static void fake_target_destroy(struct gd_target *target)
{
    struct fake *fake = fake_of(target);
    struct gd_err gone = {.code = GD_ELOST, .text = "gone"};
    while (fake->cost_count > 0) { /* each question is answered once */
        fake->cost_count--;
        fake->costs[fake->cost_count].fn(fake->costs[fake->cost_count].ctx, NULL, 0, &gone);
    }
    fake_watch_free(fake);
    fake_of(target)->target = NULL;
    free(target);
}

static const struct gd_target_ops fake_ops = {
    .kind = "fake",
    .resume = fake_resume,
    .interrupt = fake_interrupt,
    .set_breakpoints = fake_breakpoints,
    .fetch = fake_fetch,
    .stats = fake_stats,
    .keep_previous = fake_keep_previous,
    .watch_plan = watch_plan,
    .watch_costs = watch_costs,
    .detach = fake_detach,
    .kill = fake_kill,
    .describe = fake_describe,
    .destroy = fake_target_destroy,
};

/* ---- set up -------------------------------------------------------------------------------- */

static void write_out(void *ctx, const char *text, size_t len, bool is_error)
{
    gd_buf_add(&((struct fake *)ctx)->out, text, len);
}

void fake_create(struct fake *fake, const struct repl_options *options)
{
    struct gd_peer peer = {.framework = "fake",
                           .version = "1.0",
                           .device = "cpu",
                           .program = "train",
                           .pid = 4711,
                           .world_size = 1,
                           .address = "127.0.0.1:40000",
                           .host = "here"};
    *fake = (struct fake){.clock = 1000.0};
    gd_buf_init(&fake->out, (size_t)64 << 20);
    fake->loop = ev_default_loop(EVFLAG_AUTO);
    assert_non_null(fake->loop);
    assert_ok(gd_debugger_create(&fake->debugger, NULL));
    fake->debugger->pump = pump_answers;
    fake->debugger->pump_ctx = fake;
    fake->debugger->now = clock_seconds;
    fake->debugger->now_ctx = fake;
    assert_ok(repl_create(fake->loop, fake->debugger, options, &fake->repl, NULL));
    repl_set_writer(fake->repl, write_out, fake);
    struct fake_target *target = calloc(1, sizeof(*target));
    assert_non_null(target);
    target->fake = fake;
    target->base.ops = &fake_ops;
    target->base.capabilities = GD_CAN_STEP | GD_CAN_NEXT | GD_CAN_INTERRUPT | GD_CAN_FETCH |
                                GD_CAN_STATS | GD_CAN_PREVIOUS | GD_CAN_DETACH | GD_CAN_KILL |
                                GD_CAN_FINISH | GD_CAN_WATCH;
    fake->target = &target->base;
    assert_ok(gd_session_create(fake->debugger, fake->target, &peer, &fake->session, NULL));
    fake->graph = fake->session->graph;
}

void fake_destroy(struct fake *fake)
{
    repl_destroy(fake->repl);
    gd_debugger_destroy(fake->debugger);
    while (fake->answers) {
        struct fake_answer *next = fake->answers->next;
        free(fake->answers);
        fake->answers = next;
    }
    while (fake->values) {
        struct fake_value *next = fake->values->next;
        gd_tensor_unref(fake->values->tensor);
        free(fake->values);
        fake->values = next;
    }
    gd_buf_deinit(&fake->out);
    ev_loop_destroy(fake->loop);
}

gd_node_id fake_node(struct fake *fake, const char *name, const char *type, enum gd_dtype dtype,
                     const struct gd_shape *shape, const gd_node_id *inputs, uint32_t input_count,
                     const char *place)
{
    uint32_t subgraph;
    assert_ok(gd_graph_subgraph(fake->graph, "main", false, &subgraph, NULL));
    struct gd_output output = {.dtype = dtype, .shape = *shape};
    struct gd_frame frame = {.file = "", .function = "", .code = ""};
    char file[256] = "";
    const char *colon = place ? strrchr(place, ':') : NULL;
    if (colon && (size_t)(colon - place) < sizeof(file)) {
        memcpy(file, place, (size_t)(colon - place));
        frame.file = file;
        frame.line = (uint32_t)strtoul(colon + 1, NULL, 10);
    }
    struct gd_node_desc desc = {.name = name,
                                .type = type,
                                .outputs = &output,
                                .output_count = dtype == GD_DT_NONE ? 0 : 1,
                                .frames = &frame,
                                .frame_count = place ? 1 : 0,
                                .order = gd_graph_node_limit(fake->graph)};
    gd_node_id node = GD_NO_NODE;
    assert_ok(gd_graph_add(fake->graph, &desc, &node, NULL));
    struct gd_edge edge[16] = {{0}};
    assert_true(input_count <= 16);
    for (uint32_t i = 0; i < input_count; i++) {
        edge[i].node = inputs[i];
    }
    assert_ok(gd_graph_connect(fake->graph, node, edge, input_count, NULL));
    return node;
}

void fake_graph_done(struct fake *fake)
{
    assert_ok(gd_graph_commit(fake->graph, NULL));
    gd_session_on_graph(fake->session);
}

void fake_set(struct fake *fake, gd_node_id node, uint32_t slot, enum gd_iter iter,
              enum gd_dtype dtype, const struct gd_shape *shape, const void *data)
{
    struct gd_tensor_ref ref = {.node = node, .slot = slot, .iter = iter};
    struct fake_value *value = find_value(fake, &ref);
    if (!value) {
        value = calloc(1, sizeof(*value));
        assert_non_null(value);
        *value =
            (struct fake_value){.next = fake->values, .node = node, .slot = slot, .iter = iter};
        fake->values = value;
    }
    gd_tensor_unref(value->tensor);
    value->tensor = NULL;
    if (!data) {
        value->node = GD_NO_NODE;
        return;
    }
    assert_ok(gd_tensor_create(dtype, shape, 0, &value->tensor, NULL));
    if (gd_tensor_bytes(value->tensor) > 0) {
        memcpy(gd_tensor_bytes_mut(value->tensor), data, gd_tensor_bytes(value->tensor));
    }
}

struct gd_tensor *fake_value_of(struct fake *fake, gd_node_id node, uint32_t slot,
                                enum gd_iter iter)
{
    struct gd_tensor_ref ref = {.node = node, .slot = slot, .iter = iter};
    struct fake_value *value = find_value(fake, &ref);
    return value ? value->tensor : NULL;
}

void fake_stop(struct fake *fake, int64_t step, gd_node_id node)
{
    struct gd_stop stop = {.reason = node == GD_NO_NODE ? GD_STOP_STEP : GD_STOP_NODE,
                           .step = step,
                           .at_step_end = node == GD_NO_NODE,
                           .node = node};
    gd_session_on_running(fake->session);
    gd_session_on_stopped(fake->session, &stop);
    ev_run(fake->loop, EVRUN_NOWAIT);
}

void fake_lose(struct fake *fake, const char *why)
{
    gd_session_on_lost(fake->session, why);
    gd_debugger_reap(fake->debugger);
}

const char *fake_run(struct fake *fake, const char *line, int *ret)
{
    gd_buf_clear(&fake->out);
    int result = repl_execute(fake->repl, line);
    if (ret) {
        *ret = result;
    }
    return gd_buf_text(&fake->out);
}
