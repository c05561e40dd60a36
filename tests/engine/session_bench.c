// SPDX-License-Identifier: GPL-3.0-or-later
#include "session_bench.h"
#include "../unit.h"

void observe(void *ctx, const struct gd_event *event)
{
    static const char letters[] = "CGRSHslWFLXBKEP";
    struct bench *bench = ctx;
    size_t len = strlen(bench->log);

    assert_true(len + 1 < sizeof(bench->log));
    bench->log[len] = letters[event->type];
    bench->log[len + 1] = '\0';
    if (event->text) {
        snprintf(bench->text, sizeof(bench->text), "%s", event->text);
    }
}

void expect_log(struct bench *bench, const char *want)
{
    assert_string_equal(bench->log, want);
    bench->log[0] = '\0';
}

static double read_clock(void *ctx)
{
    return *(double *)ctx;
}

void add_nodes(struct gd_session *session)
{
    static const char *const names[] = {"net/a", "net/b", "net/c"};

    for (uint32_t i = 0; i < 3; i++) {
        struct gd_node_desc desc = {.name = names[i], .type = "X", .order = i};

        assert_ok(gd_graph_add(session->graph, &desc, NULL, NULL));
    }
    assert_ok(gd_graph_commit(session->graph, NULL));
    gd_session_on_graph(session);
}

struct gd_session *connect_fake(struct gd_debugger *debugger, struct fake_target *fake)
{
    struct gd_session *session = NULL;
    struct gd_err err = {0};

    if (gd_session_create(debugger, &fake->target, NULL, &session, &err) != GD_OK) {
        fail_msg("%s", err.text);
    }
    return session;
}

struct bench *make(bool full)
{
    struct bench *bench = calloc(1, sizeof(*bench));

    assert_ok(gd_debugger_create(&bench->debugger, NULL));
    bench->debugger->now = read_clock;
    bench->debugger->now_ctx = &bench->clock;
    assert_ok(gd_debugger_observe(bench->debugger, observe, bench));
    bench->fake = fake_create(full, &bench->destroyed);
    bench->session = connect_fake(bench->debugger, bench->fake);
    expect_log(bench, "CX");
    add_nodes(bench->session);
    expect_log(bench, "G");
    return bench;
}

void finish(struct bench *bench)
{
    gd_debugger_destroy(bench->debugger);
    assert_true(bench->destroyed);
    free(bench);
}

void stop_at(struct bench *bench, enum gd_stop_reason reason, int64_t step, gd_node_id node)
{
    struct gd_stop stop = {
        .reason = reason, .step = step, .node = node, .at_step_end = node == GD_NO_NODE};

    gd_session_on_stopped(bench->session, &stop);
}

int resume(struct bench *bench, enum gd_run_kind kind, int64_t count, struct gd_err *err)
{
    struct gd_run run = {.kind = kind, .count = count, .node = GD_NO_NODE};

    return gd_target_resume(&bench->fake->target, &run, err);
}

void got_tensor(void *ctx, struct gd_tensor *tensor, int64_t step, const struct gd_err *err)
{
    struct answer *answer = ctx;

    answer->calls++;
    answer->code = err ? err->code : GD_OK;
    answer->step = step;
    if (!err) {
        answer->first = (float)gd_tensor_get(tensor, 0);
        answer->count = gd_tensor_count(tensor);
    }
}

void got_stats(void *ctx, enum gd_dtype dtype, const struct gd_shape *shape,
               const struct gd_stats *stats, int64_t step, const struct gd_err *err)
{
    struct answer *answer = ctx;

    answer->calls++;
    answer->code = err ? err->code : GD_OK;
    answer->step = step;
    if (stats) {
        answer->stats = *stats;
    }
}
