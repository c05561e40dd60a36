// SPDX-License-Identifier: GPL-3.0-or-later
#include "fake_target.h"

#include "../unit.h"

static int fake_resume(struct gd_target *target, const struct gd_run *run, struct gd_err *err)
{
    struct fake_target *fake = (struct fake_target *)target;

    if (fake->lose_next) {
        gd_session_on_lost(target->session, "the fake broke");
    }
    if (fake->resume_rc) {
        return gd_fail(err, fake->resume_rc, "the fake will not");
    }
    fake->run = *run;
    snprintf(fake->run_name, sizeof(fake->run_name), "%s", run->name ? run->name : "");
    fake->resumes++;
    if (fake->stop_count > 0) {
        fake->stop_count--;
        gd_session_on_stopped(target->session, &fake->stop_next);
    }
    return GD_OK;
}

static int fake_interrupt(struct gd_target *target, struct gd_err *err)
{
    return GD_OK;
}

static int set_breakpoints(struct gd_target *target, const gd_node_id *nodes, size_t count,
                           struct gd_err *err)
{
    struct fake_target *fake = (struct fake_target *)target;

    for (size_t i = 0; i < count && i < 16; i++) {
        fake->breakpoints[i] = nodes[i];
    }
    fake->breakpoint_count = count;
    fake->breakpoint_pushes++;
    return GD_OK;
}

static int set_lines(struct gd_target *target, const struct gd_line_wish *wishes, size_t count,
                     struct gd_err *err)
{
    struct fake_target *fake = (struct fake_target *)target;

    for (size_t i = 0; i < count && i < 16; i++) {
        fake->lines[i] = wishes[i].number;
    }
    fake->line_count = count;
    fake->line_pushes++;
    return GD_OK;
}

static int keep_previous(struct gd_target *target, const gd_node_id *nodes, size_t count,
                         struct gd_err *err)
{
    struct fake_target *fake = (struct fake_target *)target;

    for (size_t i = 0; i < count && i < 16; i++) {
        fake->kept[i] = nodes[i];
    }
    fake->kept_count = count;
    fake->keep_pushes++;
    return GD_OK;
}

static int fake_fetch(struct gd_target *target, const struct gd_tensor_ref *ref,
                      const struct gd_slice *slice, gd_tensor_fn fn, void *ctx, struct gd_err *err)
{
    struct fake_target *fake = (struct fake_target *)target;

    fake->fetches++;
    if (fake->on_fetch) {
        fake->on_fetch(fake, ref, fn, ctx);
        return GD_OK;
    }
    if (fake->value) {
        fn(ctx, fake->value, fake->value_step, NULL);
        return GD_OK;
    }
    fake->tensor_fn = fn;
    fake->fetch_ctx = ctx;
    return GD_OK;
}

static int fake_stats(struct gd_target *target, const struct gd_tensor_ref *ref, gd_stats_fn fn,
                      void *ctx, struct gd_err *err)
{
    struct fake_target *fake = (struct fake_target *)target;

    fake->stats_asked++;
    if (fake->on_stats) {
        fake->on_stats(fake, ref, fn, ctx);
        return GD_OK;
    }
    fake->stats_fn = fn;
    fake->stats_ctx = ctx;
    return GD_OK;
}

const struct fake_plan *fake_plan(const struct fake_target *fake, uint32_t id)
{
    return fake_plans_find(fake->plans, fake->plan_count, id);
}

static int watch_plan(struct gd_target *target, const struct gd_watch_plan *plan,
                      struct gd_err *err)
{
    struct fake_target *fake = (struct fake_target *)target;

    if (plan->id == 0) { /* only says that no more follow */
        fake->plans_open = false;
        return GD_OK;
    }
    fake->plan_calls++;
    if (fake->plan_rc && (!fake->plan_fails || fake->plan_fails == plan->id)) {
        return gd_fail(err, fake->plan_rc, "the fake will not watch");
    }
    fake->plan_removals += !plan->item_count;
    fake->plans_open = plan->more;
    return fake_plans_set(&fake->plans, &fake->plan_count, plan, err);
}

static int watch_costs(struct gd_target *target, gd_watch_costs_fn fn, void *ctx,
                       struct gd_err *err)
{
    struct fake_target *fake = (struct fake_target *)target;

    fake->costs_fn = fn;
    fake->costs_ctx = ctx;
    return GD_OK;
}

static int fake_watch(struct gd_target *target, const struct gd_remote_watch *watch,
                      struct gd_err *err)
{
    struct fake_target *fake = (struct fake_target *)target;

    if (fake->watch_rc) {
        return gd_fail(err, fake->watch_rc, "the fake will not evaluate");
    }
    fake->watches++;
    fake->last_watch = watch->id;
    fake->last_watch_nodes = watch->node_count;
    return GD_OK;
}

static int fake_unwatch(struct gd_target *target, int32_t id, struct gd_err *err)
{
    struct fake_target *fake = (struct fake_target *)target;

    fake->unwatches++;
    fake->last_unwatch = id;
    return GD_OK;
}

static int succeed_always(struct gd_target *target, struct gd_err *err)
{
    return GD_OK;
}

static void fake_destroy(struct gd_target *target)
{
    struct fake_target *fake = (struct fake_target *)target;

    if (fake->destroyed) {
        *fake->destroyed = true;
    }
    fake_plans_free(fake->plans, fake->plan_count);
    free(fake);
}

static const struct gd_target_ops full_ops = {
    .kind = "fake",
    .resume = fake_resume,
    .interrupt = fake_interrupt,
    .set_breakpoints = set_breakpoints,
    .set_lines = set_lines,
    .fetch = fake_fetch,
    .stats = fake_stats,
    .keep_previous = keep_previous,
    .watch = fake_watch,
    .unwatch = fake_unwatch,
    .watch_plan = watch_plan,
    .watch_costs = watch_costs,
    .checkpoint = succeed_always,
    .detach = succeed_always,
    .kill = succeed_always,
    .destroy = fake_destroy,
};

static const struct gd_target_ops bare_ops = {
    .kind = "bare",
    .resume = fake_resume,
    .fetch = fake_fetch,
    .destroy = fake_destroy,
};

struct fake_target *fake_create(bool full, bool *destroyed)
{
    struct fake_target *fake = calloc(1, sizeof(*fake));

    fake->target.ops = full ? &full_ops : &bare_ops;
    fake->target.capabilities = full ? ~(unsigned)GD_CAN_GOTO /* a trainer goes forward */
                                     : (unsigned)(GD_CAN_STEP | GD_CAN_FETCH);
    fake->destroyed = destroyed;
    return fake;
}

void fake_answer_tensor(struct fake_target *fake, struct gd_tensor *tensor, int64_t step)
{
    gd_tensor_fn fn = fake->tensor_fn;

    fake->tensor_fn = NULL;
    fn(fake->fetch_ctx, tensor, step, NULL);
}

void fake_answer_error(struct fake_target *fake, int code)
{
    gd_tensor_fn tensor_fn = fake->tensor_fn;
    gd_stats_fn stats_fn = fake->stats_fn;
    struct gd_err err;

    gd_fail(&err, code, "the fake has no answer");
    fake->tensor_fn = NULL;
    fake->stats_fn = NULL;
    if (tensor_fn) {
        tensor_fn(fake->fetch_ctx, NULL, -1, &err);
    }
    if (stats_fn) {
        stats_fn(fake->stats_ctx, GD_DT_NONE, NULL, NULL, -1, &err);
    }
}

struct gd_tensor *fake_tensor(int count, float from)
{
    struct gd_shape shape = {.rank = 1, .dim = {count}};
    struct gd_tensor *tensor = NULL;
    float *values;

    if (gd_tensor_create(GD_FLOAT32, &shape, 0, &tensor, NULL) != GD_OK) {
        return NULL;
    }
    values = (float *)(void *)gd_tensor_bytes_mut(tensor);
    for (int i = 0; i < count; i++) {
        values[i] = from + (float)i;
    }
    return tensor;
}
