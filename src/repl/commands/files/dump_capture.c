// SPDX-License-Identifier: GPL-3.0-or-later
/* Copies values that a step to be dumped frees before its end, as they are produced. */
#include <stdlib.h>

#include "engine/ranks.h"
#include "repl/commands/files/dump_live.h"
#include "repl/core/repl_impl.h"

/* All nodes are dumped, also those still unknown. */
static bool wants_all(const struct live_dump *d)
{
    return !d->plan.selector && !(d->config && d->config->chosen);
}

/* Appends the producers of the chosen nodes' inputs. */
static int add_inputs(const struct gd_graph *graph, gd_node_id **nodes, size_t *count,
                      struct gd_err *err)
{
    struct gd_node_info info;
    size_t more = 0, chosen = *count;

    for (size_t i = 0; i < chosen; i++) {
        more += gd_graph_node(graph, (*nodes)[i], &info) ? info.input_count : 0;
    }
    gd_node_id *grown = realloc(*nodes, (chosen + more + 1) * sizeof(*grown));
    if (!grown) {
        return gd_fail_nomem(err);
    }
    *nodes = grown;
    for (size_t i = 0; i < chosen; i++) {
        for (uint32_t k = 0; gd_graph_node(graph, grown[i], &info) && k < info.input_count; k++) {
            if (info.inputs[k].node != GD_NO_NODE) {
                grown[(*count)++] = info.inputs[k].node;
            }
        }
    }
    return GD_OK;
}

static uint64_t bytes_left(const struct repl *repl, const struct live_dump *d)
{
    uint64_t most = repl->debugger->settings.dump_bytes;

    return most == 0 ? 0 : most > d->bytes ? most - d->bytes : 1;
}

static int capture_step(struct repl *repl, struct gd_session *session, struct live_dump *d,
                        struct gd_err *err)
{
    struct gd_capture capture = {.all = wants_all(d),
                                 .first_step = d->capture_step,
                                 .last_step = d->capture_step,
                                 .max_bytes = bytes_left(repl, d)};
    gd_node_id *nodes = NULL;
    int rc = dump_live_choose(session, d, &nodes, &capture.count, err);

    if (rc == GD_ENOTFOUND) { /* none of it exists yet */
        rc = GD_OK;
    }
    if (rc == GD_OK && d->plan.io != GD_DUMP_OUTPUT && !capture.all) {
        rc = add_inputs(session->graph, &nodes, &capture.count, err);
    }
    capture.nodes = nodes;
    rc = rc != GD_OK ? rc : gd_target_capture(session->target, &capture, err);
    free(nodes);
    return rc;
}

static bool can_capture(const struct gd_session *session)
{
    return session && gd_session_is_live(session) &&
           (session->target->capabilities & GD_CAN_CAPTURE);
}

void dump_live_capture(struct repl *repl, struct gd_session *session, struct live_dump *d,
                       int64_t step)
{
    const struct gd_ranks *ranks =
        gd_ranks_move_together(session, GD_RUN_CONTINUE) ? gd_ranks_of(session) : NULL;
    int world = ranks ? gd_ranks_world_size(ranks) : 1;
    struct gd_err err = {.text = ""};

    d->capture_step = step;
    for (int rank = 0; rank < world; rank++) {
        struct gd_session *member = ranks ? gd_ranks_member(ranks, rank) : session;
        if (can_capture(member) && capture_step(repl, member, d, &err) != GD_OK) {
            repl_printf(repl, true,
                        "warning: values of step %lld that are freed before its end will not be "
                        "dumped: %s\n",
                        (long long)step, err.text);
        }
    }
}

void dump_live_graph_grew(struct repl *repl, struct gd_session *session)
{
    struct live_dump *d = dump_live_find(repl);

    if (d && d->armed && d->capture_step > 0 && !wants_all(d) && can_capture(session)) {
        capture_step(repl, session, d, NULL);
    }
}

void dump_live_release(struct repl *repl, struct live_dump *d)
{
    const struct gd_debugger *debugger = repl->debugger;

    for (size_t i = 0; d->capture_step > 0 && i < debugger->session_count; i++) {
        if (can_capture(debugger->sessions[i])) {
            gd_target_capture(debugger->sessions[i]->target, NULL, NULL);
        }
    }
    d->capture_step = 0;
}
