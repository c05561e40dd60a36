// SPDX-License-Identifier: GPL-3.0-or-later
#include "world.h"

#include <time.h>

#include "engine/graph/selector.h"

#define DEADLINE 60.0

static double clock_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void observe_event(void *ctx, const struct gd_event *event)
{
    struct world *w = ctx;
    switch (event->type) {
    case GD_EV_CONNECTED: w->connected++; break;
    case GD_EV_GRAPH: w->graphs++; break;
    case GD_EV_STOPPED: w->stops++; break;
    case GD_EV_LOST: w->lost++; break;
    case GD_EV_FINISHED: w->finished++; break;
    case GD_EV_LOG:
        w->logs++;
        snprintf(w->last_log, sizeof(w->last_log), "%s", event->text);
        break;
    default: break;
    }
}

void world_open(struct world *w, int port)
{
    struct gd_err err = {0};
    memset(w, 0, sizeof(*w));
    w->loop = ev_loop_new(EVFLAG_AUTO);
    assert_non_null(w->loop);
    assert_ok(gd_debugger_create(&w->debugger, &err));
    assert_ok(gd_debugger_observe(w->debugger, observe_event, w));
    assert_ok(gd_grpc_server_create(w->loop, &w->debugger->settings, &w->server, &err));
    assert_ok(gd_v1_service_create(w->loop, w->debugger, w->server, &w->service, &err));
    snprintf(w->address, sizeof(w->address), "127.0.0.1:%d", port);
    if (gd_grpc_server_listen(w->server, w->address, &err) != GD_OK) {
        fail_msg("%s", err.text);
    }
    snprintf(w->address, sizeof(w->address), "%s", gd_grpc_server_address(w->server));
}

void world_close(struct world *w)
{
    gd_grpc_server_destroy(w->server);
    gd_v1_service_destroy(w->service);
    gd_debugger_destroy(w->debugger);
    ev_loop_destroy(w->loop);
}

int world_port(const struct world *w)
{
    return (int)strtol(strrchr(w->address, ':') + 1, NULL, 10);
}

static void on_tick(struct ev_loop *loop, ev_timer *timer, int events)
{
    ev_break(loop, EVBREAK_ONE);
}

void world_until(struct world *w, const char *what, world_fn done)
{
    double end = clock_seconds() + DEADLINE;
    ev_timer tick;
    ev_timer_init(&tick, on_tick, 0.05, 0.05);
    ev_timer_start(w->loop, &tick);
    while (!done(w)) {
        if (clock_seconds() > end) {
            fail_msg("the deadline passed while waiting for %s", what);
        }
        ev_run(w->loop, EVRUN_ONCE);
        gd_debugger_reap(w->debugger);
    }
    ev_timer_stop(w->loop, &tick);
}

static unsigned stops_wanted;

static bool has_stopped(struct world *w)
{
    return w->stops >= stops_wanted;
}

void world_until_stops(struct world *w, unsigned stops)
{
    stops_wanted = stops;
    world_until(w, "a stop", has_stopped);
}

bool world_has_ended(struct world *world)
{
    return world->finished + world->lost > 0;
}

struct gd_session *world_session(const struct world *w)
{
    assert_true(w->debugger->session_count > 0);
    return w->debugger->sessions[w->debugger->session_count - 1];
}

gd_node_id world_node(const struct world *w, const char *name)
{
    gd_node_id node = gd_graph_lookup(world_session(w)->graph, name, strlen(name));
    if (node == GD_NO_NODE) {
        fail_msg("the graph has no node %s", name);
    }
    return node;
}

void world_resume(struct world *w, enum gd_run_kind kind, int64_t count, const char *node)
{
    struct gd_err err = {0};
    struct gd_run run = {.kind = kind, .count = count, .node = GD_NO_NODE, .name = node};
    if (node) {
        run.node = world_node(w, node);
    }
    if (gd_target_resume(world_session(w)->target, &run, &err) != GD_OK) {
        fail_msg("resume: %s", err.text);
    }
}

void world_run(struct world *w, enum gd_run_kind kind, int64_t count, const char *node)
{
    unsigned stops = w->stops;
    world_resume(w, kind, count, node);
    world_until_stops(w, stops + 1);
}

static struct answer {
    bool here;
    struct gd_tensor *tensor;
    struct gd_stats stats;
    int64_t step;
    struct gd_err err;
} answer;

static bool is_answered(struct world *w)
{
    return answer.here;
}

static void on_tensor(void *ctx, struct gd_tensor *tensor, int64_t step, const struct gd_err *err)
{
    answer.here = true;
    answer.tensor = tensor ? gd_tensor_ref(tensor) : NULL;
    answer.step = step;
    if (err) {
        answer.err = *err;
    }
}

int world_fetch(struct world *w, const char *node, enum gd_iter iter, const char *text,
                struct gd_tensor **tensor, int64_t *step, struct gd_err *err)
{
    struct gd_tensor_ref ref = {.node = world_node(w, node), .iter = iter};
    struct gd_slice slice = {0};
    size_t used = 0;
    answer = (struct answer){0};
    *tensor = NULL;
    bool abridge = text && text[0] == '~';
    text += abridge ? 1 : 0;
    if (text && *text) {
        assert_ok(gd_slice_parse(text, strlen(text), &used, &slice, err));
    }
    slice.abridge = abridge;
    /* The target is asked, not the session: its cache must not answer. */
    int rc = gd_target_fetch(world_session(w)->target, &ref, &slice, on_tensor, NULL, err);
    if (rc != GD_OK) {
        return rc;
    }
    world_until(w, "a tensor", is_answered);
    *tensor = answer.tensor;
    if (step) {
        *step = answer.step;
    }
    if (err) {
        *err = answer.err;
    }
    return answer.err.code;
}

static void on_stats(void *ctx, enum gd_dtype dtype, const struct gd_shape *shape,
                     const struct gd_stats *stats, int64_t step, const struct gd_err *err)
{
    answer.here = true;
    answer.step = step;
    if (err) {
        answer.err = *err;
    } else {
        answer.stats = *stats;
    }
}

int world_stats(struct world *w, const char *node, enum gd_iter iter, struct gd_stats *ret,
                int64_t *step, struct gd_err *err)
{
    struct gd_tensor_ref ref = {.node = world_node(w, node), .iter = iter};
    answer = (struct answer){0};
    int code = gd_target_stats(world_session(w)->target, &ref, on_stats, NULL, err);
    if (code < 0) {
        return code;
    }
    world_until(w, "statistics", is_answered);
    *ret = answer.stats;
    if (step) {
        *step = answer.step;
    }
    if (err) {
        *err = answer.err;
    }
    return answer.err.code;
}

double toy_value(int64_t step, enum toy_node node, int64_t i)
{
    return (double)(1000 * step + 10 * (int64_t)node + i);
}

static void fill_data(double *data, int64_t count, int64_t step, enum toy_node node)
{
    for (int64_t i = 0; i < count; i++) {
        data[i] = toy_value(step, node, i);
    }
}

static const int64_t matrix[2] = {TOY_ROWS, TOY_COLS};
static const int64_t vector8[1] = {8};
static const int64_t vector1[1] = {1};
static const int64_t vector_big[1] = {TOY_BIG};
/* The MatMul's memory is column by column. */
static const int64_t columns[2] = {sizeof(double), TOY_ROWS * sizeof(double)};

static void add_node(struct toy *toy, const char *name, const char *type, gradb_kind kind,
                     gradb_phase phase, gradb_node from, const gradb_tensor *tensor)
{
    gradb_input input = {.node = from};
    gradb_attr attr = {"toy", "yes"};
    gradb_frame frame = {"toy.c", 10, "train", false};
    gradb_node_info info = {.name = name,
                            .type = type,
                            .kind = kind,
                            .phase = phase,
                            .outputs = tensor,
                            .output_count = 1,
                            .attrs = &attr,
                            .attr_count = 1,
                            .frames = &frame,
                            .frame_count = 1};
    info.inputs = from ? &input : NULL;
    info.input_count = from ? 1 : 0;
    gradb_add_node(toy->agent, &info);
}

static void build_graph(struct toy *toy)
{
    gradb_tensor w = {GRADB_FLOAT64, 2, matrix, NULL, toy->w};
    gradb_tensor x = {GRADB_FLOAT64, 1, vector8, NULL, toy->x};
    gradb_tensor matmul = {GRADB_FLOAT64, 2, matrix, columns, toy->matmul};
    gradb_tensor relu = {GRADB_FLOAT64, 2, matrix, NULL, toy->relu};
    gradb_tensor grad = {GRADB_FLOAT64, 2, matrix, NULL, toy->grad};
    gradb_tensor adam = {GRADB_FLOAT64, 1, vector1, NULL, toy->adam};
    gradb_tensor big = {GRADB_FLOAT64, 1, vector_big, NULL, toy->big};
    add_node(toy, "net/w", "Parameter", GRADB_WEIGHT, GRADB_NO_PHASE, 0, &w);
    add_node(toy, "net/x", "Load", GRADB_AUTO, GRADB_FORWARD, 0, &x);
    add_node(toy, "net/MatMul-op1", "MatMul", GRADB_AUTO, GRADB_FORWARD, TOY_W, &matmul);
    add_node(toy, "net/ReLU-op2", "ReLU", GRADB_AUTO, GRADB_FORWARD, TOY_MATMUL, &relu);
    add_node(toy, "Gradients/net/w", "MatMulGrad", GRADB_GRADIENT, GRADB_BACKWARD, TOY_RELU, &grad);
    add_node(toy, "net/Adam-op3", "Adam", GRADB_AUTO, GRADB_OPTIMIZER, TOY_GRAD, &adam);
    add_node(toy, "net/Big-op4", "Big", GRADB_AUTO, GRADB_OPTIMIZER, TOY_ADAM, &big);
    gradb_input back = {.node = TOY_ADAM};
    gradb_add_inputs(toy->agent, TOY_W, &back, 1);
    gradb_publish(toy->agent);
}

static void enter_phase(struct toy *toy, gradb_phase phase)
{
    bool at_once = gradb_try_enter(toy->agent, phase);
    atomic_fetch_add(&toy->entered[at_once], 1);
    if (!at_once) {
        gradb_enter(toy->agent, phase);
    }
}

static void run_forward(struct toy *toy, int64_t step)
{
    enter_phase(toy, GRADB_FORWARD);
    fill_data(toy->x, 8, step, TOY_X);
    gradb_did(toy->agent, TOY_X);
    fill_data(toy->matmul, TOY_ROWS * TOY_COLS, step, TOY_MATMUL);
    gradb_did(toy->agent, TOY_MATMUL);
    fill_data(toy->relu, TOY_ROWS * TOY_COLS, step, TOY_RELU);
    if (toy->nan_at_3 && step == 3) {
        toy->relu[5] = __builtin_nan("");
    }
    gradb_did(toy->agent, TOY_RELU);
}

static void run_backward(struct toy *toy, int64_t step)
{
    enter_phase(toy, GRADB_BACKWARD);
    fill_data(toy->grad, TOY_ROWS * TOY_COLS, step, TOY_GRAD);
    gradb_did(toy->agent, TOY_GRAD);
    enter_phase(toy, GRADB_OPTIMIZER);
    fill_data(toy->w, TOY_ROWS * TOY_COLS, step, TOY_W);
    fill_data(toy->adam, 1, step, TOY_ADAM);
    gradb_did(toy->agent, TOY_ADAM);
    toy->big[0] = toy_value(step, TOY_BIG_NODE, 0);
    toy->big[TOY_BIG - 1] = toy_value(step, TOY_BIG_NODE, TOY_BIG - 1);
    gradb_did(toy->agent, TOY_BIG_NODE);
}

/* The next one has begun. */
static bool end_step(struct toy *toy, int64_t step)
{
    bool begun = toy->tries_steps && gradb_try_step(toy->agent, step + 1);
    if (!begun) {
        gradb_step_end(toy->agent);
    }
    atomic_fetch_add(&toy->ended[begun], 1);
    return begun;
}

/* "in" belongs to the step that has ended, and so does "past" unless the next one has begun. */
static void evaluate_model(struct toy *toy, int64_t step)
{
    gradb_happened(toy->agent, "eval-begin", 0, 0, NULL);
    gradb_scalar(toy->agent, "in", (double)step);
    gradb_happened(toy->agent, "eval-end", 0, 0, NULL);
    gradb_scalar(toy->agent, "past", (double)step);
    gradb_as_of(toy->agent, step);
    gradb_scalar(toy->agent, "dated", (double)step);
    gradb_scalar(toy->agent, "loss", (double)step);
    gradb_as_of(toy->agent, -1);
}

static void *run_training(void *arg)
{
    struct toy *toy = arg;
    bool begun = false;
    gradb_options options = {.framework = "toy",
                             .framework_version = "1.5",
                             .device = "cpu:0",
                             .program = "toy --train",
                             .rank = 2,
                             .world_size = 4};
    options.address = toy->address;
    options.token = toy->token;
    toy->agent = gradb_open(&options);
    build_graph(toy);
    if (toy->wait > 0) {
        atomic_store(&toy->waited, 1 + gradb_wait(toy->agent, toy->wait));
    }
    for (int64_t step = 1; !atomic_load(&toy->end) && (toy->steps == 0 || step <= toy->steps) &&
                           !gradb_wants_stop(toy->agent);
         step++) {
        if (!begun) {
            gradb_step_begin(toy->agent, step);
        }
        run_forward(toy, step);
        if (toy->program_stop && step == 2) {
            gradb_stop(toy->agent, "the toy has seen enough");
        }
        run_backward(toy, step);
        gradb_scalar(toy->agent, "loss", 10.0 / (double)step);
        begun = end_step(toy, step);
        if (toy->evaluates) {
            evaluate_model(toy, step);
        }
        atomic_store(&toy->step, step);
        atomic_fetch_add(&toy->checkpoints, gradb_wants_checkpoint(toy->agent));
    }
    gradb_log(toy->agent, "the toy is done");
    gradb_close(toy->agent, NULL);
    atomic_store(&toy->done, 1);
    return NULL;
}

void toy_start(struct toy *toy, const struct world *w)
{
    if (w) {
        snprintf(toy->address, sizeof(toy->address), "%s", w->address);
    }
    toy->big = calloc(TOY_BIG, sizeof(*toy->big));
    assert_non_null(toy->big);
    for (int i = 0; i < TOY_ROWS * TOY_COLS; i++) {
        toy->w[i] = -1 - i;
    }
    assert_int_equal(pthread_create(&toy->thread, NULL, run_training, toy), 0);
}

void toy_join(struct toy *toy)
{
    atomic_store(&toy->end, 1);
    pthread_join(toy->thread, NULL);
    free(toy->big);
}
