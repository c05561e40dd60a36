// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * A MindSpore target without a wire: decoded messages in, reply bytes out, and a clock that the
 * test moves.
 */
#include "../../unit.h"
#include "engine/watch/condition.h"
#include "engine/watch/watchpoint.h"
#include "pb_write.h"
#include "proto/ms/ms_target.h"

#define WEIGHT "Default/a/conv1.weight"
#define CONV   "Default/a/Conv2D-op1"
#define RELU   "Default/a/ReLU-op2"

struct world {
    struct gd_debugger *debugger;
    struct gd_ms_target *target;
    struct gd_session *session;
    double now;
    char reply[64]; /* what the last WaitCMD was answered with, in words; "" while it is held */
    int replies;
    bool gone, detached;
    int32_t last_id;
    char warning[512];
    int hits;
    struct gd_hit hit;
    int fetched;
    int fetch_code;
    char fetch_text[512];
};

static struct world world;
static int call; /* its address stands for a WaitCMD */

static double clock_now(void *ctx)
{
    return ((struct world *)ctx)->now;
}

static void name_reply(const uint8_t *bytes, size_t len)
{
    static const char step[] = "\x1a\x08\x0a\x04step\x10\x01",
                      recheck[] = "\x1a\x09\x0a\x07recheck";
    if (!len) {
        snprintf(world.reply, sizeof(world.reply), "nothing");
    } else if (len == sizeof(step) - 1 && memcmp(bytes, step, len) == 0) {
        snprintf(world.reply, sizeof(world.reply), "step");
    } else if (len == sizeof(recheck) - 1 && memcmp(bytes, recheck, len) == 0) {
        snprintf(world.reply, sizeof(world.reply), "recheck");
    } else if (len > 8 && memcmp(bytes + 2, "\x0a\x04node\x1a", 7) == 0) {
        snprintf(world.reply, sizeof(world.reply), "node %.*s", (int)bytes[9],
                 (const char *)bytes + 10);
    } else if (bytes[0] == 0x10) {
        snprintf(world.reply, sizeof(world.reply), "exit");
    } else if (bytes[0] == 0x22) {
        snprintf(world.reply, sizeof(world.reply), "%s", len == 6 ? "delete" : "set");
    } else if (bytes[0] == 0x2a) {
        snprintf(world.reply, sizeof(world.reply), "view %d",
                 bytes[len - 2] == 0x10 ? bytes[len - 1] : 0);
    } else {
        snprintf(world.reply, sizeof(world.reply), "something else");
    }
}

static void on_reply(void *held, const void *data, size_t len)
{
    assert_ptr_equal(held, &call);
    world.replies++;
    name_reply(data, len);
}

static void on_gone(void *owner, bool detached, int32_t last_id)
{
    assert_ptr_equal(owner, &world);
    world.gone = true;
    world.detached = detached;
    world.last_id = last_id;
}

static const struct gd_ms_io io = {.reply = on_reply, .gone = on_gone};

static void on_event(void *ctx, const struct gd_event *event)
{
    if (event->type == GD_EV_WARNING) {
        snprintf(world.warning, sizeof(world.warning), "%s", event->text);
    }
    if (event->type == GD_EV_HIT) {
        world.hits++;
        world.hit = *event->hit;
    }
}

static int set_up(void **state)
{
    memset(&world, 0, sizeof(world));
    world.now = 1000;
    if (gd_debugger_create(&world.debugger, NULL) != GD_OK) {
        return -1;
    }
    world.debugger->now = clock_now;
    world.debugger->now_ctx = &world;
    return gd_debugger_observe(world.debugger, on_event, NULL);
}

static int tear_down(void **state)
{
    gd_debugger_destroy(world.debugger);
    return 0;
}

static void wait_at(int32_t cur_step, const char *cur_node)
{
    struct gd_ms_metadata metadata = {.device_name = "0:1", .cur_step = cur_step};
    snprintf(metadata.backend, sizeof(metadata.backend), "%s",
             strncmp(world.session->peer.device, "GPU", 3) ? "Ascend" : "GPU");
    snprintf(metadata.cur_node, sizeof(metadata.cur_node), "%s", cur_node);
    world.reply[0] = '\0';
    gd_ms_target_on_wait(world.target, &call, &metadata);
}

static void send_second_graph(void)
{
    struct gd_buf bytes = GD_BUF_INIT(1u << 20);
    struct gd_buf one = pb_node("1", "ReLU", "Default/eval", "Default/eval/ReLU-op9", NULL);
    pb_message(&bytes, 1, &one);
    pb_text(&bytes, 2, "kernel_graph_2");
    gd_ms_target_on_graph(world.target, (const uint8_t *)bytes.data, bytes.len);
    gd_buf_deinit(&bytes);
}

static void create_target(const struct gd_ms_metadata *metadata)
{
    assert_ok(
        gd_ms_target_create(world.debugger, &io, &world, "peer:1", metadata, &world.target, NULL));
    world.session = gd_ms_target_session(world.target);
}

static void connect_process(const char *version, const char *backend)
{
    struct gd_ms_metadata metadata = {.device_name = "0:1", .graph_num = 1};
    struct gd_buf bytes = GD_BUF_INIT(1u << 20),
                  weight = pb_parameter("conv1.weight", 11, (int64_t[]){2}, 1);
    struct gd_buf one = pb_node("1", "Conv2D", "Default/a", CONV,
                                (const char *[]){"conv1.weight", NULL}),
                  two = pb_node("2", "ReLU", "Default/a", RELU, (const char *[]){"1", NULL});
    snprintf(metadata.backend, sizeof(metadata.backend), "%s", backend);
    snprintf(metadata.ms_version, sizeof(metadata.ms_version), "%s", version);
    create_target(&metadata);
    gd_ms_target_on_metadata(world.target, &metadata);
    pb_message(&bytes, 1, &one);
    pb_message(&bytes, 1, &two);
    pb_text(&bytes, 2, "kernel_graph_1");
    pb_message(&bytes, 3, &weight);
    gd_ms_target_on_graph(world.target, (const uint8_t *)bytes.data, bytes.len);
    gd_buf_deinit(&bytes);
    wait_at(0, "");
    assert_int_equal(world.session->state, GD_STOPPED);
    assert_string_equal(world.reply, "");
}

static gd_node_id find_node(const char *name)
{
    gd_node_id found = gd_graph_lookup(world.session->graph, name, strlen(name));
    assert_int_not_equal(found, GD_NO_NODE);
    return found;
}

static int resume_run(enum gd_run_kind kind, int64_t count, const char *to)
{
    struct gd_run run = {
        .kind = kind, .count = count, .node = to ? find_node(to) : GD_NO_NODE, .name = to};
    return gd_target_resume(world.session->target, &run, NULL);
}

static void expect_stop(enum gd_stop_reason reason, int64_t step, bool at_end)
{
    assert_int_equal(world.session->state, GD_STOPPED);
    assert_int_equal(world.session->stop.reason, reason);
    assert_int_equal(world.session->stop.step, step);
    assert_int_equal(world.session->stop.at_step_end, at_end);
    assert_string_equal(world.reply, ""); /* held */
}

static void hit_on(const char *name, int32_t id, int condition, int32_t error)
{
    struct gd_ms_hit hit = {.id = id, .condition = condition, .error_code = error, .slot = "0"};
    snprintf(hit.node_name, sizeof(hit.node_name), "%s", name);
    gd_ms_target_on_hit(world.target, &hit);
    gd_ms_target_on_hits_end(world.target);
}

static int add_watch(const char *condition, const char *where)
{
    const struct gd_condition *found;
    struct gd_watchpoint *made = NULL;
    struct gd_err err = {0};
    assert_ok(gd_condition_find(condition, &found, NULL));
    int rc = gd_watchpoint_add(
        world.debugger, &(struct gd_watch_spec){.condition = found, .where = where}, &made, &err);
    return rc != GD_OK ? rc : made->number;
}

/* ---- steps --------------------------------------------------------------------------------- */

static void test_steps_are_our_own_count(void **state)
{
    connect_process("2.0.0", "Ascend"); /* says 0 again at the end of its first step */
    assert_ok(resume_run(GD_RUN_STEP, 1, NULL));
    assert_string_equal(world.reply, "step");
    wait_at(0, "");
    expect_stop(GD_STOP_STEP, 1, true);
    assert_ok(resume_run(GD_RUN_STEP, 2, NULL));
    wait_at(1, "");
    assert_string_equal(world.reply, "step"); /* from memory, at once */
    wait_at(2, "");
    expect_stop(GD_STOP_STEP, 3, true);
}

/* A graph that was compiled later is sent in the middle of a run, and the process waits before its
 * first step: no step has ended there. */
static void test_a_new_graph_is_no_step(void **state)
{
    static const struct {
        const char *version, *backend;
        int32_t first_end, new_graph, second_end; /* cur_step */
    } cases[] = {{"2.0.0", "Ascend", 0, 1, 1},
                 {"2.0.0", "GPU", 0, 1, 1},
                 {"1.6.0", "GPU", 1, 1, 2}, /* without the actor runtime */
                 {"1.4.0", "Ascend", 1, 1, 2},
                 {"1.2.0", "GPU", 1, 1, 2}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        connect_process(cases[i].version, cases[i].backend);
        assert_ok(resume_run(GD_RUN_STEP, 1, NULL));
        wait_at(cases[i].first_end, RELU);
        expect_stop(GD_STOP_STEP, 1, true);
        assert_ok(resume_run(GD_RUN_STEP, 1, NULL));
        send_second_graph();
        wait_at(cases[i].new_graph, RELU);
        assert_string_equal(world.reply, "step");
        wait_at(cases[i].second_end, RELU);
        expect_stop(GD_STOP_STEP, 2, true);
        tear_down(state);
        set_up(state);
    }
}

static void test_a_new_graph_behind_a_step(void **state)
{
    connect_process("1.4.0",
                    "GPU"); /* stops where the next step begins, which may be a new graph's */
    assert_ok(resume_run(GD_RUN_STEP, 2, NULL));
    send_second_graph();
    wait_at(1, RELU);
    assert_string_equal(world.reply, "step");
    wait_at(2, RELU);
    expect_stop(GD_STOP_STEP, 2, true);
}

static void test_a_late_start_is_seen(void **state)
{
    struct gd_ms_metadata metadata = {.device_name = "0:1", .backend = "GPU", .cur_step = 41};
    create_target(&metadata);
    wait_at(41, RELU);
    assert_contains(world.warning, "without having sent a graph");
    assert_int_equal(world.session->state, GD_STOPPED);
    assert_int_equal(world.session->stop.step, 42);
}

/* Whose counter moves before the wait: a node after the end of a step is in the next step. */
static void test_a_late_start_between_steps(void **state)
{
    struct gd_ms_metadata metadata = {.device_name = "0:1", .backend = "GPU", .cur_step = 41};
    create_target(&metadata);
    wait_at(41, RELU);
    int64_t first = world.session->stop.step;
    assert_ok(resume_run(GD_RUN_STEP, 1, NULL));
    wait_at(42, RELU);
    expect_stop(GD_STOP_STEP, first + 1, true);
    assert_ok(resume_run(GD_RUN_NEXT, 1, NULL));
    wait_at(42, RELU);
    expect_stop(GD_STOP_NODE, first + 2, false);
    assert_ok(resume_run(GD_RUN_STEP, 1, NULL));
    wait_at(43, RELU);
    expect_stop(GD_STOP_STEP, first + 2, true);
}

static void test_gpu_hit_in_a_step_and_behind_it(void **state)
{
    connect_process("2.0.0", "GPU");
    int number = add_watch("TO", RELU);
    assert_string_equal(world.reply, "set");
    wait_at(0, "");
    assert_ok(resume_run(GD_RUN_CONTINUE, 0, NULL));
    hit_on(RELU, 1, GD_WIRE_NOT_FINITE, 0);
    wait_at(0, RELU);
    expect_stop(GD_STOP_HIT, 1, false);
    assert_int_equal(world.hit.watchpoint, number);
    assert_int_equal(world.hit.step, 1);
    assert_int_equal(world.hit.stop_sequence, world.session->stop.sequence);
    assert_ok(resume_run(GD_RUN_STEP, 1, NULL));
    wait_at(0, RELU); /* same count, same kernel: now it is the end of the step */
    expect_stop(GD_STOP_STEP, 1, true);
    assert_ok(resume_run(GD_RUN_STEP, 1, NULL));
    wait_at(1, RELU);
    expect_stop(GD_STOP_STEP, 2, true);
}

static void test_what_cannot_be_checked_does_not_stop(void **state)
{
    connect_process("2.0.0", "Ascend");
    add_watch("WL", NULL);
    assert_int_equal(world.hits, 0);
    assert_int_equal(add_watch("TZ", "all"), 1); /* WL without a test was refused */
    wait_at(0, "");
    assert_ok(resume_run(GD_RUN_CONTINUE, 0, NULL));
    for (int step = 0; step < 5; step++) {
        hit_on(WEIGHT, 1, GD_WIRE_ALL_ZERO, GD_HIT_NAN);
        wait_at(step, "");
        assert_string_equal(world.reply, "step");
    }
    assert_int_equal(world.hits, 1); /* said once */
    assert_int_equal(world.hit.error, GD_HIT_NAN);
    assert_int_equal(world.hit.node, find_node(WEIGHT));
}

static void test_strange_hits(void **state)
{
    connect_process("2.0.0", "Ascend");
    add_watch("TO", "all");
    wait_at(0, "");
    assert_ok(resume_run(GD_RUN_STEP, 1, NULL));
    hit_on(RELU, 77, GD_WIRE_NOT_FINITE, 0);
    assert_contains(world.warning, "never set");
    assert_int_equal(world.hits, 0);
    hit_on("Default/not/in/the/graph", 1, GD_WIRE_NOT_FINITE, 0);
    assert_int_equal(world.hits, 1);
    assert_int_equal(world.hit.node, GD_NO_NODE);
    assert_string_equal(world.hit.node_name, "Default/not/in/the/graph");
    wait_at(0, "");
    expect_stop(GD_STOP_HIT, 1, true);
}

static void test_run_to_node(void **state)
{
    connect_process("1.9.0", "GPU");
    assert_ok(resume_run(GD_RUN_TO_NODE, 0, RELU));
    assert_string_equal(world.reply, "node " RELU);
    wait_at(0, RELU);
    expect_stop(GD_STOP_NODE, 1, false);
    assert_int_equal(world.session->stop.node, find_node(RELU));
    /* it does not come by any more: given up after a whole step */
    assert_ok(resume_run(GD_RUN_TO_NODE, 0, CONV));
    wait_at(1, "Default/elsewhere"); /* the rest of step 1, and all of step 2 */
    expect_stop(GD_STOP_STEP, 2, true);
    assert_contains(world.warning, "did not execute");
    assert_int_equal(resume_run(GD_RUN_TO_NODE, 0, WEIGHT), GD_EINVAL);
}

static void test_breakpoints(void **state)
{
    connect_process("1.9.0", "GPU");
    gd_node_id both[] = {find_node(CONV), find_node(RELU)};
    assert_ok(gd_target_set_breakpoints(world.session->target, both, 1, NULL));
    assert_ok(resume_run(GD_RUN_CONTINUE, 0, NULL));
    assert_string_equal(world.reply, "node " CONV); /* one name goes out as it is */
    wait_at(0, CONV);
    expect_stop(GD_STOP_BREAKPOINT, 1, false);
    assert_ok(gd_target_set_breakpoints(world.session->target, both, 2, NULL));
    assert_ok(resume_run(GD_RUN_CONTINUE, 0, NULL));
    assert_string_equal(world.reply, "node "); /* several need a look at each */
    wait_at(0, "Default/other");
    assert_string_equal(world.reply, "node ");
    wait_at(0, RELU);
    expect_stop(GD_STOP_BREAKPOINT, 1, false);
}

static void test_interrupt(void **state)
{
    connect_process("1.9.0", "Ascend");
    assert_ok(resume_run(GD_RUN_CONTINUE, 0, NULL));
    wait_at(0, "");
    assert_string_equal(world.reply, "step");
    assert_ok(gd_target_interrupt(world.session->target, NULL));
    assert_contains(world.warning, "end of step 2");
    wait_at(1, "");
    expect_stop(GD_STOP_INTERRUPT, 2, true);
}

static void test_initial_weights_are_checked_before_the_first_step(void **state)
{
    connect_process("1.9.0", "Ascend");
    assert_int_equal(add_watch("WI", "all"), 1);
    assert_string_equal(world.reply, "set");
    wait_at(0, "");
    assert_ok(resume_run(GD_RUN_STEP, 1, NULL));
    assert_string_equal(world.reply, "recheck");
    wait_at(0, "");
    assert_string_equal(world.reply, "step"); /* nothing fired: the run goes on */
    wait_at(0, "");
    expect_stop(GD_STOP_STEP, 1, true);
    assert_int_equal(add_watch("WI", "all"), GD_ESTATE);
}

/* ---- keep-alive and silence ---------------------------------------------------------------- */

static void test_keep_alive(void **state)
{
    connect_process("1.9.0", "Ascend");
    world.debugger->settings.keepalive = 20;
    world.now += 19;
    gd_ms_target_tick(world.target);
    assert_string_equal(world.reply, "");
    world.now += 2;
    gd_ms_target_tick(world.target);
    assert_string_equal(world.reply, "nothing"); /* OK and no command: it asks again */
    assert_int_equal(world.session->state, GD_STOPPED);
    assert_ok(resume_run(GD_RUN_STEP, 1, NULL)); /* nothing is held: it waits */
    wait_at(0, "");
    assert_string_equal(world.reply, "step");
}

static void test_silence(void **state)
{
    connect_process("1.9.0", "Ascend");
    gd_ms_target_on_heartbeat(world.target, 5);
    world.now += 1000; /* held: alive, whatever the heartbeat does */
    world.debugger->settings.keepalive = 0;
    gd_ms_target_tick(world.target);
    assert_string_equal(world.warning, "");
    assert_ok(resume_run(GD_RUN_CONTINUE, 0, NULL));
    gd_ms_target_on_heartbeat(world.target, 5);
    world.now += 16;
    gd_ms_target_tick(world.target);
    assert_string_equal(world.warning, "");
    world.now += 1;
    gd_ms_target_tick(world.target);
    assert_contains(world.warning, "not responding");
    assert_int_equal(world.session->state, GD_RUNNING); /* no more than a warning */
    world.warning[0] = '\0';
    world.now += 100;
    gd_ms_target_tick(world.target);
    assert_string_equal(world.warning, ""); /* once */
    wait_at(0, "");
    assert_contains(world.warning, "responding again");
    assert_string_equal(world.reply, "step");
}

/* A period of a second would call every busy process silent. */
static void test_silence_of_a_short_period(void **state)
{
    connect_process("1.9.0", "Ascend");
    world.debugger->settings.keepalive = 0;
    assert_ok(resume_run(GD_RUN_CONTINUE, 0, NULL));
    gd_ms_target_on_heartbeat(world.target, 1);
    world.now += 16;
    gd_ms_target_tick(world.target);
    assert_string_equal(world.warning, "");
    world.now += 1;
    gd_ms_target_tick(world.target);
    assert_contains(world.warning, "not responding");
}

static void test_no_heartbeat_means_nothing_before_1_5(void **state)
{
    connect_process("1.3.0", "Ascend");
    assert_ok(resume_run(GD_RUN_CONTINUE, 0, NULL));
    world.now += 100000;
    gd_ms_target_tick(world.target);
    assert_string_equal(world.warning, "");
}

/* ---- tensors ------------------------------------------------------------------------------- */

static void on_fetched(void *ctx, struct gd_tensor *tensor, int64_t step, const struct gd_err *err)
{
    world.fetched++;
    world.fetch_code = err ? err->code : GD_OK;
    snprintf(world.fetch_text, sizeof(world.fetch_text), "%s", err ? err->text : "");
    assert_true((tensor != NULL) != (err != NULL));
}

static int fetch_value(const char *name, enum gd_iter iter)
{
    struct gd_tensor_ref ref = {find_node(name), 0, iter};
    return gd_target_fetch(world.session->target, &ref, NULL, on_fetched, NULL, NULL);
}

static void give_value(const char *name, int64_t elements)
{
    static const float content[16];
    struct gd_shape shape = {.rank = 1, .dim = {elements}};
    struct gd_tensor *tensor;
    assert_ok(gd_tensor_wrap(GD_FLOAT32, &shape, content, (size_t)elements * 4, NULL, NULL, &tensor,
                             NULL));
    gd_ms_target_on_tensor(world.target, name, "0", "", tensor, NULL);
    gd_tensor_unref(tensor);
}

static void give_base(int64_t elements, int64_t bytes)
{
    struct gd_ms_base base = {.dtype = GD_FLOAT32, .wire_dtype = 11, .bytes = bytes};
    base.shape.rank = 1;
    base.shape.dim[0] = elements;
    gd_ms_target_on_base(world.target, &base);
}

static void test_base_first_then_value(void **state)
{
    size_t bytes;
    connect_process("1.9.0", "Ascend");
    assert_false(gd_ms_target_expects(world.target, &bytes));
    assert_ok(fetch_value(WEIGHT, GD_CURRENT));
    assert_ok(fetch_value(CONV, GD_CURRENT)); /* waits: one view at a time */
    assert_string_equal(world.reply, "view 2");
    give_value("unasked", 4);
    assert_int_equal(world.fetched, 0);
    give_base(4, 16);
    wait_at(0, "");
    assert_string_equal(world.reply, "view 0");
    assert_true(gd_ms_target_expects(world.target, &bytes));
    assert_int_equal(bytes, 16);
    give_value("Default/somebody/else", 4);
    assert_int_equal(world.fetched, 0);
    give_value(WEIGHT, 4);
    assert_int_equal(world.fetched, 1);
    wait_at(0, "");
    assert_string_equal(world.reply, "view 2");
    gd_ms_target_on_base(world.target, &(struct gd_ms_base){.shape = {.rank = 1}});
    assert_int_equal(world.fetched, 2);
    assert_int_equal(world.fetch_code, GD_ENODATA);
    wait_at(0, "");
    assert_string_equal(world.reply, "");
}

/* What is made for a tensor without bytes must not follow its shape. */
static void test_no_bytes_and_a_shape(void **state)
{
    connect_process("1.9.0", "Ascend");
    struct gd_ms_base base = {.dtype = GD_FLOAT32, .wire_dtype = 11};
    base.shape = (struct gd_shape){.rank = 2, .dim = {1 << 20, 1 << 20}};
    assert_ok(fetch_value(WEIGHT, GD_CURRENT));
    gd_ms_target_on_base(world.target, &base);
    assert_int_equal(world.fetched, 1);
    assert_int_equal(world.fetch_code, GD_EPROTO);
    wait_at(0, "");
    base.shape.dim[1] = 0;
    assert_ok(fetch_value(WEIGHT, GD_CURRENT));
    gd_ms_target_on_base(world.target, &base);
    assert_int_equal(world.fetched, 2);
    assert_ok(world.fetch_code);
}

static void test_too_large_is_never_asked_for(void **state)
{
    connect_process("1.9.0", "Ascend");
    world.debugger->settings.max_tensor = UINT64_MAX;
    assert_ok(fetch_value(CONV, GD_CURRENT));
    give_base(GD_MS_MAX_VALUE / 4 + 1, (int64_t)GD_MS_MAX_VALUE + 4);
    assert_int_equal(world.fetch_code, GD_ELIMIT);
    wait_at(0, "");
    assert_string_equal(world.reply, "");
    assert_ok(fetch_value(CONV, GD_CURRENT));
    give_base(GD_MS_MAX_VALUE / 4, GD_MS_MAX_VALUE);
    wait_at(0, "");
    assert_string_equal(world.reply, "view 0");
}

static void test_answers_that_do_not_come(void **state)
{
    connect_process("1.3.0", "Ascend");
    assert_ok(fetch_value(CONV, GD_CURRENT));
    assert_string_equal(world.reply, "view 0");
    wait_at(0, ""); /* the next command is asked for, and nothing came */
    assert_int_equal(world.fetched, 1);
    assert_int_equal(world.fetch_code, GD_ENODATA);
    assert_ok(fetch_value(CONV, GD_CURRENT));
    gd_ms_target_on_closed(world.target);
    assert_int_equal(world.fetched, 2);
    assert_int_equal(world.fetch_code, GD_ELOST);
    assert_int_equal(world.session->state, GD_LOST);
}

static void test_previous_values(void **state)
{
    connect_process("1.9.0", "GPU");
    assert_int_equal(fetch_value(CONV, GD_PREVIOUS), GD_EUNSUPPORTED);
    assert_ok(fetch_value(WEIGHT, GD_PREVIOUS));
    assert_string_equal(world.reply, "view 2");
    gd_ms_target_on_base(world.target, &(struct gd_ms_base){.shape = {.rank = 1}});
    assert_contains(world.fetch_text, "keeps none on GPU");
}

/* ---- ends ---------------------------------------------------------------------------------- */

static void test_kill(void **state)
{
    connect_process("1.9.0", "GPU");
    assert_ok(resume_run(GD_RUN_NEXT, 1, NULL));
    wait_at(0, CONV);
    assert_ok(gd_target_kill(world.session->target, NULL));
    assert_string_equal(world.reply, "exit");
    assert_contains(world.warning, "finish its step first");
    wait_at(0, RELU); /* it finishes its step, and asks once more */
    assert_string_equal(world.reply, "exit");
    gd_ms_target_on_closed(world.target);
    assert_int_equal(world.session->state, GD_FINISHED);
}

static void test_detach(void **state)
{
    connect_process("1.9.0", "Ascend");
    add_watch("TO", "all");
    wait_at(0, "");
    assert_ok(gd_target_detach(world.session->target, NULL));
    assert_string_equal(world.reply, "nothing");
    assert_true(world.gone && world.detached);
    assert_int_equal(world.last_id, 1);
    assert_int_equal(world.session->state, GD_FINISHED);
}

static void test_done(void **state)
{
    connect_process("1.9.0", "Ascend");
    assert_ok(resume_run(GD_RUN_CONTINUE, 0, NULL));
    gd_ms_target_on_done(world.target, &(struct gd_ms_metadata){.training_done = true});
    assert_int_equal(world.session->state, GD_FINISHED);
    assert_false(world.gone); /* the owner knows */
}

static void test_bad_watches_are_refused(void **state)
{
    connect_process("1.9.0", "GPU");
    struct gd_remote_param param = {"abs_mean_gt", false, 1};
    struct gd_remote_watch bad = {.id = 1, .condition = 15, .params = &param, .param_count = 1};
    assert_int_equal(gd_target_watch(world.session->target, &bad, NULL),
                     GD_EINVAL); /* would crash it */
    bad = (struct gd_remote_watch){.id = 0, .condition = 13};
    assert_int_equal(gd_target_watch(world.session->target, &bad, NULL), GD_EINVAL);
    bad = (struct gd_remote_watch){.id = 1, .condition = 99};
    assert_int_equal(gd_target_watch(world.session->target, &bad, NULL), GD_EINVAL);
    bad = (struct gd_remote_watch){.id = 1, .condition = GD_WIRE_OVERFLOW_FLAG};
    assert_int_equal(gd_target_watch(world.session->target, &bad, NULL), GD_EUNSUPPORTED);
    assert_int_equal(gd_target_unwatch(world.session->target, 1, NULL), GD_ENOTFOUND);
    assert_string_equal(world.reply, "");
}

/* ---- versions ------------------------------------------------------------------------------ */

static void test_versions(void **state)
{
    struct gd_ms_version version;
    char text[256];
    gd_ms_version_parse("1.1.0", &version);
    assert_true(version.known && version.repeats_chunks && version.swaps_tolerances &&
                version.stops_twice);
    assert_false(version.has_levels || version.counts_after_wait);
    gd_ms_version_parse("1.3.0", &version);
    assert_true(version.stops_at_next_step && !version.repeats_chunks && version.swaps_tolerances);
    gd_ms_version_parse("1.5.2", &version);
    assert_true(version.has_levels && version.swaps_tolerances && !version.counts_after_wait);
    gd_ms_version_parse("1.6.0", &version);
    assert_true(version.counts_after_wait && !version.swaps_tolerances &&
                !version.gpu_lacks_previous);
    gd_ms_version_parse("1.6.1", &version);
    assert_true(version.gpu_lacks_previous && version.average_wrong);
    gd_ms_version_parse("1.10.1", &version);
    assert_true(version.minor == 10 && version.has_levels);
    gd_ms_version_parse("2.0.0rc1", &version);
    assert_true(version.known && version.major == 2 && version.patch == 0);
    static const char *const odd[] = {"", ".", "1", "1.", "x.y", "-1.2", "99999999999.1"};
    for (size_t i = 0; i < sizeof(odd) / sizeof(*odd); i++) {
        gd_ms_version_parse(odd[i], &version);
        assert_false(version.known);
        assert_false(version.has_levels);
        assert_int_equal(gd_ms_version_match(&version, odd[i], false, text, sizeof(text)),
                         GD_MS_MATCH_WARN);
        assert_int_equal(gd_ms_version_match(&version, odd[i], true, text, sizeof(text)),
                         GD_MS_MISMATCH);
    }
    gd_ms_version_parse("1.9.0", &version);
    assert_int_equal(gd_ms_version_match(&version, "1.9.0", false, text, sizeof(text)),
                     GD_MS_MATCH);
    assert_int_equal(gd_ms_version_match(&version, "1.9.0", true, text, sizeof(text)),
                     GD_MS_MISMATCH);
    gd_ms_version_parse("2.2.14", &version);
    assert_int_equal(gd_ms_version_match(&version, "2.2.14", true, text, sizeof(text)),
                     GD_MS_MATCH_WARN);
    gd_ms_version_parse("2.4.0", &version);
    assert_int_equal(gd_ms_version_match(&version, "2.4.0", false, text, sizeof(text)),
                     GD_MS_MATCH_WARN);
}

static const struct CMUnitTest tests[] = {
    TEST(test_steps_are_our_own_count),
    TEST(test_a_new_graph_is_no_step),
    TEST(test_a_new_graph_behind_a_step),
    TEST(test_a_late_start_is_seen),
    TEST(test_a_late_start_between_steps),
    TEST(test_gpu_hit_in_a_step_and_behind_it),
    TEST(test_what_cannot_be_checked_does_not_stop),
    TEST(test_strange_hits),
    TEST(test_run_to_node),
    TEST(test_breakpoints),
    TEST(test_interrupt),
    TEST(test_initial_weights_are_checked_before_the_first_step),
    TEST(test_keep_alive),
    TEST(test_silence),
    TEST(test_silence_of_a_short_period),
    TEST(test_no_heartbeat_means_nothing_before_1_5),
    TEST(test_base_first_then_value),
    TEST(test_no_bytes_and_a_shape),
    TEST(test_too_large_is_never_asked_for),
    TEST(test_answers_that_do_not_come),
    TEST(test_previous_values),
    TEST(test_kill),
    TEST(test_detach),
    TEST(test_done),
    TEST(test_bad_watches_are_refused),
    TEST(test_versions),
};

RUN_TESTS()
