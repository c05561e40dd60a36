// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Watch plans of a MindSpore target without a wire: what it asks for at the end of a step, what it
 * makes of right, wrong and missing answers, and how it ends in the middle.
 */
#include <math.h>

#include "../../unit.h"
#include "debug_grpc.pb-c.h"
#include "engine/watch/condition.h"
#include "engine/watch/watchpoint.h"
#include "pb_write.h"
#include "proto/ms/ms_target.h"

#define WEIGHT "Default/a/w.weight"
#define NODES  300 /* Default/a/Op-op0 ... */

struct world {
    struct gd_debugger *debugger;
    struct gd_ms_target *target;
    struct gd_session *session;
    bool gpu;
    bool held;
    Debugger__EventReply *reply; /* the last; NULL: it was empty */
    int commands;                /* SetCMDs so far */
    int hits;
    struct gd_hit hit;
    int stops;
    char warning[512];
};

static struct world world;
static int call;

static void on_reply(void *held, const void *data, size_t len)
{
    assert_ptr_equal(held, &call);
    assert_true(world.held);
    world.held = false;
    if (world.reply) {
        debugger__event_reply__free_unpacked(world.reply, NULL);
    }
    world.reply = len ? debugger__event_reply__unpack(NULL, len, data) : NULL;
    assert_true(!len || world.reply);
    if (world.reply && world.reply->cmd_case == DEBUGGER__EVENT_REPLY__CMD_SET_CMD) {
        world.commands++;
    }
}

static void on_gone(void *owner, bool detached, int32_t last_id)
{
    (void)owner, (void)detached, (void)last_id;
}

static const struct gd_ms_io io = {.reply = on_reply, .gone = on_gone};

static void on_event(void *ctx, const struct gd_event *event)
{
    if (event->type == GD_EV_WARNING) {
        snprintf(world.warning, sizeof(world.warning), "%s", event->text);
    }
    if (event->type == GD_EV_STOPPED) {
        world.stops++;
    }
    if (event->type == GD_EV_HIT) {
        world.hits++;
        world.hit = *event->hit;
    }
}

static int set_up(void **state)
{
    memset(&world, 0, sizeof(world));
    if (gd_debugger_create(&world.debugger, NULL) != GD_OK) {
        return -1;
    }
    world.debugger->settings.evaluate = GD_EVALUATE_LOCAL;
    world.debugger->settings.history_bytes = 0;
    return gd_debugger_observe(world.debugger, on_event, NULL);
}

static int tear_down(void **state)
{
    gd_debugger_destroy(world.debugger);
    if (world.reply) {
        debugger__event_reply__free_unpacked(world.reply, NULL);
    }
    return 0;
}

static void wait_at(int32_t cur_step, const char *cur_node)
{
    struct gd_ms_metadata metadata = {.device_name = "0:1", .cur_step = cur_step};
    snprintf(metadata.backend, sizeof(metadata.backend), "%s", world.gpu ? "GPU" : "Ascend");
    snprintf(metadata.cur_node, sizeof(metadata.cur_node), "%s", cur_node);
    world.held = true;
    gd_ms_target_on_wait(world.target, &call, &metadata);
}

static void send_graph(void)
{
    struct gd_buf bytes = GD_BUF_INIT(1u << 20),
                  weight = pb_parameter("w.weight", 11, (int64_t[]){2}, 1);
    for (int i = 0; i < NODES; i++) {
        char number[16], name[64];
        snprintf(number, sizeof(number), "%d", i + 1);
        snprintf(name, sizeof(name), "Default/a/Op-op%d", i);
        struct gd_buf one =
            pb_node(number, "Add", "Default/a", name, (const char *[]){"w.weight", NULL});
        struct gd_buf type = pb_tensor_type(11, (int64_t[]){i == 7 ? 100000 : 2}, 1);
        pb_message(&one, 6, &type);
        pb_message(&bytes, 1, &one);
    }
    pb_text(&bytes, 2, "kernel_graph_1");
    pb_message(&bytes, 3, &weight);
    gd_ms_target_on_graph(world.target, (const uint8_t *)bytes.data, bytes.len);
    gd_buf_deinit(&bytes);
}

static void connect_process(const char *version, bool gpu)
{
    struct gd_ms_metadata metadata = {.device_name = "0:1", .graph_num = 1};
    world.gpu = gpu;
    snprintf(metadata.backend, sizeof(metadata.backend), "%s", gpu ? "GPU" : "Ascend");
    snprintf(metadata.ms_version, sizeof(metadata.ms_version), "%s", version);
    assert_ok(
        gd_ms_target_create(world.debugger, &io, &world, "peer:1", &metadata, &world.target, NULL));
    world.session = gd_ms_target_session(world.target);
    gd_ms_target_on_metadata(world.target, &metadata);
    send_graph();
    wait_at(0, "");
    assert_int_equal(world.session->state, GD_STOPPED);
    assert_true(world.held);
}

static int add_watch(const char *abbreviation, const char *name, double value, const char *where)
{
    const struct gd_condition *condition;
    struct gd_condition_value given = {name, GD_PARAM_FLOAT, value};
    struct gd_watch_spec spec = {.where = where, .values = &given, .value_count = name != NULL};
    struct gd_watchpoint *made;
    assert_ok(gd_condition_find(abbreviation, &condition, NULL));
    spec.condition = condition;
    assert_ok(gd_watchpoint_add(world.debugger, &spec, &made, NULL));
    return made->number;
}

static void resume_run(enum gd_run_kind kind)
{
    struct gd_run run = {.kind = kind, .count = 1, .node = GD_NO_NODE};
    assert_ok(gd_target_resume(world.session->target, &run, NULL));
}

static const Debugger__ViewCMD *view_command(enum gd_ms_level level, size_t tensors)
{
    assert_non_null(world.reply);
    assert_int_equal(world.reply->cmd_case, DEBUGGER__EVENT_REPLY__CMD_VIEW_CMD);
    assert_int_equal(world.reply->view_cmd->level, level);
    assert_int_equal(world.reply->view_cmd->n_tensors, tensors);
    return world.reply->view_cmd;
}

static bool is_run(void)
{
    return world.reply && world.reply->cmd_case == DEBUGGER__EVENT_REPLY__CMD_RUN_CMD;
}

/* Values that are not there may be held back: from then on they are asked for like on GPU. */
static void expect_capture(int32_t cur_step, size_t nodes)
{
    assert_non_null(world.reply);
    assert_int_equal(world.reply->cmd_case, DEBUGGER__EVENT_REPLY__CMD_SET_CMD);
    assert_int_equal(world.reply->set_cmd->n_watch_nodes, nodes);
    wait_at(cur_step, "");
}

static void give_base(int64_t elements)
{
    struct gd_ms_base base = {
        .dtype = GD_FLOAT32, .wire_dtype = 11, .bytes = elements * (int64_t)sizeof(float)};
    base.shape.rank = 1;
    base.shape.dim[0] = elements;
    gd_ms_target_on_base(world.target, &base);
}

static void give_no_base(void)
{
    gd_ms_target_on_base(world.target, &(struct gd_ms_base){.shape = {.rank = 1}});
}

static void free_content(void *data, size_t bytes, void *ctx)
{
    (void)bytes, (void)ctx;
    free(data);
}

static void give_value(const char *name, const char *iter, float value)
{
    struct gd_shape shape = {.rank = 1, .dim = {2}};
    struct gd_tensor *tensor;
    float *content = calloc(2, sizeof(*content));
    assert_non_null(content);
    content[0] = value;
    assert_ok(gd_tensor_wrap(GD_FLOAT32, &shape, content, 2 * sizeof(*content), free_content, NULL,
                             &tensor, NULL));
    gd_ms_target_on_tensor(world.target, name, "0", iter, tensor, NULL);
    gd_tensor_unref(tensor);
}

/* The whole of a step with one small tensor that is watched. */
static void step_with(int32_t cur_step, const char *name, float value, bool first)
{
    wait_at(cur_step, "");
    if (first) {
        view_command(GD_MS_BASE, 1);
        give_base(2);
        wait_at(cur_step, "");
    }
    view_command(GD_MS_VALUE, 1);
    give_value(name, "", value);
    wait_at(cur_step, "");
}

/* ---- what is asked for --------------------------------------------------------------------- */

static void test_a_hit_stops_at_the_end_of_the_step(void **state)
{
    connect_process("2.0.0", false);
    int number = add_watch("TL", "max_gt", 5, "Default/a/Op-op3");
    resume_run(GD_RUN_CONTINUE);
    assert_true(is_run());
    step_with(0, "Default/a/Op-op3", 5, true);
    assert_true(is_run());
    assert_int_equal(world.hits, 0);
    step_with(1, "Default/a/Op-op3", 6, false); /* its size is known now */
    assert_int_equal(world.session->state, GD_STOPPED);
    assert_int_equal(world.session->stop.reason, GD_STOP_HIT);
    assert_int_equal(world.session->stop.step, 2);
    assert_true(world.session->stop.at_step_end);
    assert_contains(world.session->stop.text, "(TL) on Default/a/Op-op3:0");
    assert_int_equal(world.hits, 1);
    assert_int_equal(world.hit.watchpoint, number);
    assert_int_equal(world.hit.step, 2);
    assert_int_equal(world.hit.stop_sequence, world.session->stop.sequence);
    assert_true(world.hit.param[1].actual_value == 6.0);
}

static void test_small_ones_go_together_and_large_ones_alone(void **state)
{
    connect_process("2.0.0", false);
    add_watch("TL", "mean_gt", 5, "all");
    resume_run(GD_RUN_CONTINUE);
    wait_at(0, "");
    size_t told = 0, views = 0;
    while (!is_run()) {
        const Debugger__ViewCMD *asked = world.reply->view_cmd;
        size_t bytes = 0, count = asked->n_tensors;
        enum gd_ms_level level = (enum gd_ms_level)asked->level;
        char names[200][64];
        assert_in_range(count, 1, 200);
        for (size_t i = 0; i < count; i++) {
            snprintf(names[i], sizeof(names[i]), "%s", asked->tensors[i]->node_name);
        }
        for (size_t i = 0; i < count; i++) {
            bool large = strcmp(names[i], "Default/a/Op-op7") == 0;
            bytes += large ? 400000 : 8;
            if (level == GD_MS_BASE) {
                give_base(large ? 100000 : 2);
            } else {
                give_value(names[i], "", 1);
            }
        }
        told += level == GD_MS_VALUE ? count : 0;
        assert_true(level == GD_MS_BASE || bytes < 300000 || count == 1);
        assert_in_range(++views, 1, 20);
        wait_at(0, "");
    }
    assert_int_equal(told, NODES + 1);
    assert_int_equal(world.hits, 0);
}

static void test_once_a_step_and_not_at_nodes(void **state)
{
    connect_process("2.0.0", true);
    add_watch("TL", "max_gt", 5, "Default/a/Op-op3");
    resume_run(GD_RUN_NEXT);
    assert_int_equal(world.reply->cmd_case, DEBUGGER__EVENT_REPLY__CMD_SET_CMD);
    const Debugger__SetCMD *set = world.reply->set_cmd;
    assert_int_equal(set->watch_condition->condition, GD_WIRE_INITIALIZATION);
    assert_int_equal(set->n_watch_nodes, 1);
    assert_string_equal(set->watch_nodes[0]->node_name, "Default/a/Op-op3");
    for (size_t i = 0; i < set->watch_condition->n_params; i++) {
        assert_true(set->watch_condition->params[i]->disabled);
    }
    wait_at(0, "");
    assert_true(is_run());
    wait_at(0, "Default/a/Op-op0");
    assert_int_equal(world.session->state, GD_STOPPED);
    assert_true(world.held);
    resume_run(GD_RUN_STEP);
    wait_at(0, "Default/a/Op-op9");
    view_command(GD_MS_BASE, 1);
    give_no_base();
    assert_int_equal(world.hit.error, GD_HIT_NOT_CAPTURED);
    wait_at(0, "Default/a/Op-op9");
    assert_int_equal(world.session->state, GD_STOPPED);
    assert_int_equal(world.commands, 1); /* nothing had changed since */
}

/* A process that is stepped by nodes does not stop at the end of the step as well. */
static void test_a_step_without_a_stop_at_its_end(void **state)
{
    connect_process("2.0.0", true);
    add_watch("TL", "max_gt", 5, "Default/a/Op-op3");
    resume_run(GD_RUN_NEXT);
    wait_at(0, "");
    wait_at(0, "Default/a/Op-op9");
    assert_int_equal(world.session->stop.step, 1);
    assert_string_equal(world.warning, "");
    resume_run(GD_RUN_NEXT);
    wait_at(1, "Default/a/Op-op0");
    assert_int_equal(world.session->stop.step, 2);
    assert_contains(world.warning, "step 1 passed");
    resume_run(GD_RUN_STEP);
    wait_at(1, "Default/a/Op-op9");
    view_command(GD_MS_BASE, 1); /* the second is looked at */
}

/* ---- the step before ----------------------------------------------------------------------- */

static void test_the_step_before_comes_from_the_process_or_was_kept(void **state)
{
    connect_process("2.0.0", false);
    add_watch("WCL", "abs_mean_update_ratio_gt", 0.5, WEIGHT);
    resume_run(GD_RUN_CONTINUE);
    wait_at(0, "");
    view_command(GD_MS_BASE, 1);
    give_base(2);
    wait_at(0, "");
    give_value(WEIGHT, "", 4);
    wait_at(0, "");
    assert_string_equal(view_command(GD_MS_VALUE, 1)->tensors[0]->iter, "prev");
    give_value(WEIGHT, "prev", 4);
    assert_int_equal(world.hits, 0);
    wait_at(0, "");
    assert_true(is_run());
    step_with(1, WEIGHT, 7, false);
    assert_int_equal(world.session->stop.reason, GD_STOP_HIT);
    assert_true(fabs(world.hit.param[0].actual_value - 0.75) < 1e-8);
}

static void test_no_value_of_the_step_before(void **state)
{
    connect_process("2.0.0", true); /* keeps none */
    add_watch("WCL", "abs_mean_update_ratio_gt", 0.5, WEIGHT);
    resume_run(GD_RUN_CONTINUE);
    wait_at(0, "");
    wait_at(0, "Default/a/Op-op9");
    give_base(2);
    wait_at(0, "Default/a/Op-op9");
    give_value(WEIGHT, "", 4);
    assert_int_equal(world.hit.error, GD_HIT_NO_PREVIOUS);
    wait_at(0, "Default/a/Op-op9");
    assert_true(is_run());
    wait_at(1, "Default/a/Op-op9");
    give_value(WEIGHT, "", 7);
    wait_at(1, "Default/a/Op-op9");
    assert_int_equal(world.session->stop.reason, GD_STOP_HIT);
    assert_int_equal(world.hit.error, 0);
}

/* A process that says twice that it has none is believed: the watchpoint becomes a plan. */
static void test_what_the_process_cannot(void **state)
{
    world.debugger->settings.evaluate = GD_EVALUATE_AUTO;
    connect_process("1.9.0", true);
    int number = add_watch("WCL", "abs_mean_update_ratio_gt", 0.5, WEIGHT);
    wait_at(0, "");
    resume_run(GD_RUN_CONTINUE);
    struct gd_ms_hit hit = {.id = 1,
                            .condition = GD_WIRE_CHANGE_TOO_LARGE,
                            .error_code = GD_HIT_NO_PREVIOUS,
                            .slot = "0",
                            .node_name = WEIGHT};
    for (int32_t step = 0; step < 2; step++) {
        assert_true(is_run());
        gd_ms_target_on_hit(world.target, &hit);
        gd_ms_target_on_hits_end(world.target);
        wait_at(step, "Default/a/Op-op9");
    }
    assert_contains(world.warning, "cannot evaluate watchpoint");
    assert_int_equal(world.reply->cmd_case, DEBUGGER__EVENT_REPLY__CMD_SET_CMD);
    assert_true(world.reply->set_cmd->delete_);
    assert_int_equal(world.reply->set_cmd->id, 1);
    wait_at(1, "Default/a/Op-op9");
    view_command(GD_MS_BASE, 1);
    assert_non_null(gd_watchpoint_at(world.debugger, number));
}

/* ---- answers that are wrong or missing ----------------------------------------------------- */

static void test_answers_that_do_not_come(void **state)
{
    connect_process("2.0.0", false);
    add_watch("TL", "mean_gt", 5, "Default/a/Op-op3");
    add_watch("TL", "mean_gt", 5, "Default/a/Op-op4");
    resume_run(GD_RUN_CONTINUE);
    wait_at(0, "");
    view_command(GD_MS_BASE, 2);
    give_base(2);
    wait_at(0, ""); /* one base of two: the second is asked for by its value, alone */
    view_command(GD_MS_VALUE, 2);
    give_value("Default/a/Op-op4", "", 1); /* out of order */
    wait_at(0, "");
    assert_int_equal(world.hits, 1);
    assert_int_equal(world.hit.error, GD_HIT_NO_VALUE);
    assert_string_equal(world.hit.node_name, "Default/a/Op-op3");
    expect_capture(0, 2);
    assert_true(is_run());
    give_base(2);
    give_value("Default/a/Op-op4", "", 9); /* nobody asked */
    assert_int_equal(world.hits, 1);
    wait_at(1, "");
    view_command(GD_MS_BASE, 1); /* of that one nothing is known */
}

/* A value that was taken to be as large as before, and is not there: asked for by its size then. */
static void test_a_size_that_changed(void **state)
{
    connect_process("2.0.0", false);
    add_watch("TL", "mean_gt", 5, "Default/a/Op-op3");
    resume_run(GD_RUN_CONTINUE);
    step_with(0, "Default/a/Op-op3", 1, true);
    wait_at(1, "");
    view_command(GD_MS_VALUE, 1);
    wait_at(1, ""); /* no element: nothing is sent for it */
    view_command(GD_MS_BASE, 1);
    give_base(0);
    assert_int_equal(world.hit.error, GD_HIT_EMPTY);
    wait_at(1, "");
    assert_true(is_run());
}

static void test_statistics(void **state)
{
    connect_process("2.0.0", false);
    add_watch("TL", "max_gt", 5, "Default/a/Op-op7");
    resume_run(GD_RUN_CONTINUE);
    wait_at(0, "");
    view_command(GD_MS_STATISTICS, 1);
    struct gd_ms_summary summary = {.max = 5, .min = 1, .count = 100000, .positive = 100000};
    summary.base = (struct gd_ms_base){
        .dtype = GD_FLOAT32, .wire_dtype = 11, .bytes = 400000, .shape = {1, {100000}}};
    gd_ms_target_on_summary(world.target, &summary);
    wait_at(0, "");
    assert_true(is_run());
    wait_at(1, "");
    summary.max = nextafterf(5, 6);
    gd_ms_target_on_summary(world.target, &summary);
    wait_at(1, "");
    assert_int_equal(world.session->stop.reason, GD_STOP_HIT);
    assert_true(world.hit.param[1].actual_value == (double)nextafterf(5, 6));
    resume_run(GD_RUN_CONTINUE);
    wait_at(2, "");
    gd_ms_target_on_summary(world.target, &(struct gd_ms_summary){.max = -INFINITY});
    assert_int_equal(world.hit.error, GD_HIT_NO_VALUE);
    wait_at(2, "");
    expect_capture(2, 1);
    assert_true(is_run());
    wait_at(3, "");
    wait_at(3, ""); /* no answer at all */
    assert_true(is_run());
}

/* ---- in the middle ------------------------------------------------------------------------- */

static void test_interrupted_in_the_middle(void **state)
{
    connect_process("2.0.0", false);
    add_watch("TL", "mean_gt", 5, "Default/a/Op-op3");
    resume_run(GD_RUN_CONTINUE);
    wait_at(0, "");
    view_command(GD_MS_BASE, 1);
    assert_ok(gd_target_interrupt(world.session->target, NULL));
    give_base(2);
    wait_at(0, "");
    assert_int_equal(world.session->state, GD_RUNNING);
    give_value("Default/a/Op-op3", "", 1);
    wait_at(0, "");
    assert_int_equal(world.session->state, GD_STOPPED);
    assert_int_equal(world.session->stop.reason, GD_STOP_INTERRUPT);
    assert_int_equal(world.session->stop.step, 1);
}

static void test_deleted_in_the_middle(void **state)
{
    connect_process("2.0.0", false);
    int number = add_watch("TL", "mean_gt", 5, "Default/a/Op-op3");
    resume_run(GD_RUN_CONTINUE);
    wait_at(0, "");
    give_base(2);
    wait_at(0, "");
    assert_ok(gd_watchpoint_delete(world.debugger, number, NULL));
    give_value("Default/a/Op-op3", "", 9);
    assert_int_equal(world.hits, 0);
    wait_at(0, "");
    assert_true(is_run());
    wait_at(1, "");
    assert_true(is_run()); /* nothing is watched any more */
}

static void test_ends_in_the_middle(void **state)
{
    for (int how = 0; how < 5; how++) {
        connect_process("2.0.0", false);
        add_watch("WCL", "abs_mean_update_ratio_gt", 0.5, WEIGHT);
        add_watch("TL", "mean_gt", 5, "all");
        resume_run(GD_RUN_CONTINUE);
        wait_at(0, "");
        for (size_t i = world.reply->view_cmd->n_tensors; i > 0; i--) {
            give_base(2);
        }
        wait_at(0, "");
        give_value(world.reply->view_cmd->tensors[0]->node_name, "", 1);
        switch (how) {
        case 0: gd_ms_target_on_closed(world.target); break;
        case 1:
            gd_ms_target_on_done(world.target, &(struct gd_ms_metadata){.training_done = true});
            break;
        case 2: assert_ok(gd_target_kill(world.session->target, NULL)); break;
        case 3:
            gd_session_on_lost(world.session, "somebody else said so");
            gd_debugger_reap(world.debugger);
            break;
        default: break; /* all goes with the debugger */
        }
        assert_int_equal(world.stops, 1);
        if (how == 2) {
            wait_at(0, "");
            assert_int_equal(world.reply->cmd_case, DEBUGGER__EVENT_REPLY__CMD_EXIT);
        }
        tear_down(state);
        set_up(state);
    }
}

/* ---- plans --------------------------------------------------------------------------------- */

static void count_costs(void *ctx, const struct gd_plan_cost *costs, size_t count,
                        const struct gd_err *err)
{
    struct gd_plan_cost *total = ctx;
    assert_null(err);
    for (size_t i = 0; i < count; i++) {
        total->item_count += costs[i].item_count;
        total->reports += costs[i].reports;
        total->report_bytes += costs[i].report_bytes;
        for (size_t k = 0; k < costs[i].item_count; k++) {
            total->wait_ns += costs[i].item_runs[k];
        }
    }
}

static void test_costs(void **state)
{
    struct gd_plan_cost total = {0};
    connect_process("2.0.0", false);
    assert_ok(gd_target_watch_costs(world.session->target, count_costs, &total, NULL));
    assert_int_equal(total.item_count, 0);
    add_watch("TL", "mean_gt", 5, "Default/a/Op-op3");
    resume_run(GD_RUN_CONTINUE);
    step_with(0, "Default/a/Op-op3", 1, true);
    step_with(1, "Default/a/Op-op3", 1, false);
    assert_ok(gd_target_watch_costs(world.session->target, count_costs, &total, NULL));
    assert_int_equal(total.item_count, 1);
    assert_int_equal(total.reports, 2);
    assert_int_equal(total.wait_ns, 2); /* the item's runs */
    assert_int_equal(total.report_bytes, 16);
}

static void test_plans_that_are_refused(void **state)
{
    struct gd_err err;
    struct gd_watch_item item = {.node = 0};
    struct gd_watch_plan plan = {.id = 9, .exact = true, .items = &item, .item_count = 1};
    connect_process("2.0.0", false);
    assert_int_equal(gd_target_watch_plan(world.session->target, &plan, &err), GD_EUNSUPPORTED);
    plan.exact = false;
    item.scalar = "loss";
    assert_int_equal(gd_target_watch_plan(world.session->target, &plan, &err), GD_EUNSUPPORTED);
    assert_contains(err.text, "loss");
    item.scalar = NULL;
    item.node = 4000000; /* is not there */
    assert_ok(gd_target_watch_plan(world.session->target, &plan, &err));
    resume_run(GD_RUN_CONTINUE);
    wait_at(0, "");
    assert_true(is_run());
    plan.item_count = 0;
    assert_ok(gd_target_watch_plan(world.session->target, &plan, &err));
    assert_ok(gd_target_watch_plan(world.session->target, &plan, &err));
}

static const struct CMUnitTest tests[] = {
    TEST(test_a_hit_stops_at_the_end_of_the_step),
    TEST(test_small_ones_go_together_and_large_ones_alone),
    TEST(test_once_a_step_and_not_at_nodes),
    TEST(test_a_step_without_a_stop_at_its_end),
    TEST(test_the_step_before_comes_from_the_process_or_was_kept),
    TEST(test_no_value_of_the_step_before),
    TEST(test_what_the_process_cannot),
    TEST(test_answers_that_do_not_come),
    TEST(test_a_size_that_changed),
    TEST(test_statistics),
    TEST(test_interrupted_in_the_middle),
    TEST(test_deleted_in_the_middle),
    TEST(test_ends_in_the_middle),
    TEST(test_costs),
    TEST(test_plans_that_are_refused),
};

RUN_TESTS()
