// SPDX-License-Identifier: GPL-3.0-or-later
/* Loads the edges of a committed graph; if there are many, a part per turn of the loop. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/progress.h"
#include "proto/clock.h"
#include "proto/v1/v1_impl.h"

#define FEW   10000 /* edges that are loaded immediately */
#define SLICE 0.02  /* seconds of work per turn of the loop */
#define NODES 256   /* between two clock readings */

/* Adds edges [first, last) of the table to the inputs of their node. */
static int connect_inputs(struct v1_target *t, size_t first, size_t last, struct gd_err *err)
{
    struct gd_graph *graph = t->base.session->graph;
    gd_node_id node = v1_graph_node(t, t->edges[first].node);
    struct gd_node_info info;
    if (node == GD_NO_NODE || !gd_graph_node(graph, node, &info)) {
        return GD_OK; /* its subgraph was replaced in the meantime */
    }
    if (info.input_count + (last - first) > UINT32_MAX / sizeof(struct gd_edge)) {
        return gd_fail(err, GD_ELIMIT, "too many inputs for one node");
    }
    struct gd_edge *edges = malloc((info.input_count + (last - first)) * sizeof(*edges));
    if (!edges) {
        return gd_fail(err, GD_ENOMEM, "out of memory for a node's inputs");
    }
    uint32_t count = info.input_count;
    if (count) {
        memcpy(edges, info.inputs, count * sizeof(*edges));
    }
    for (size_t i = first; i < last; i++) {
        const struct v1_edge *from = &t->edges[i];
        if (from->replace) {
            count = 0;
            continue;
        }
        edges[count++] = (struct gd_edge){
            .node = v1_graph_node(t, from->producer), .slot = from->slot, .control = from->control};
    }
    int rc = gd_graph_connect(graph, node, edges, count, err);
    free(edges);
    return rc;
}

static int connect_some(struct v1_target *t, struct gd_err *err)
{
    int rc = GD_OK;
    for (int i = 0; i < NODES && rc == GD_OK && t->edges_done < t->edge_count; i++) {
        size_t first = t->edges_done, last = first + 1;
        while (last < t->edge_count && t->edges[last].node == t->edges[first].node) {
            last++;
        }
        t->edges_done = last;
        rc = connect_inputs(t, first, last, err);
    }
    return rc;
}

static int connect_all(struct v1_target *t, struct gd_err *err)
{
    int rc = GD_OK;
    while (rc == GD_OK && t->edges_done < t->edge_count) {
        rc = connect_some(t, err);
    }
    return rc;
}

static void end_progress(struct v1_target *t)
{
    gd_progress_end(t->graph_progress);
    t->graph_progress = NULL;
}

/* Observers of the session have already requested what they want of the new nodes, earlier in the
 * same stream. */
static void say_seen(struct v1_target *t)
{
    Gradb__V1__GraphSeen m = GRADB__V1__GRAPH_SEEN__INIT;
    m.sequence = t->graph_sequence;
    if (t->graph_sequence) {
        v1_target_send(t, &m.base, NULL);
        t->graph_sequence = 0;
    }
}

/* Notifies the session of the graph, with the edges loaded so far. */
static int commit_graph(struct v1_target *t, struct gd_err *err)
{
    end_progress(t);
    if (t->edges_done == t->edge_count) {
        free(t->edges);
        t->edges = NULL;
        t->edge_count = t->edge_capacity = t->edges_done = 0;
    }
    int rc = gd_graph_commit(t->base.session->graph, err);
    if (rc == GD_OK) {
        gd_session_on_graph(t->base.session);
        say_seen(t);
    }
    return rc;
}

static void next_turn(struct v1_target *t)
{
    ev_timer_set(&t->ingest_turn, 0., 0.);
    ev_timer_start(t->service->loop, &t->ingest_turn);
}

static void say_stopped(struct v1_target *t)
{
    struct gd_progress_info at = {.unit = "edges", .done = t->edges_done, .total = t->edge_count};
    char amount[128], text[256];
    gd_progress_amount(&at, amount, sizeof(amount));
    snprintf(text, sizeof(text),
             "not all edges of the graph were loaded: interrupted after %s; `refresh graph` loads "
             "the others",
             amount);
    gd_session_on_warning(t->base.session, text);
}

/* Resumes the delivery of messages in any case. Must come last. */
static void resume_delivery(struct v1_target *t)
{
    if (t->conn) {
        v1_conn_hold(t->conn, false);
    }
}

static void on_turn(struct ev_loop *loop, ev_timer *timer, int events)
{
    struct v1_target *t = timer->data;
    struct gd_err err = {0};
    double end = gd_clock_seconds() + SLICE;
    int rc = GD_OK;
    (void)loop;
    (void)events;
    t->unwanted = gd_progress_is_stopped(t->graph_progress);
    while (rc == GD_OK && !t->unwanted && t->edges_done < t->edge_count &&
           gd_clock_seconds() < end) {
        rc = connect_some(t, &err);
    }
    gd_progress_at(t->graph_progress, t->edges_done);
    if (rc == GD_OK && !t->unwanted && t->edges_done < t->edge_count) {
        next_turn(t);
        return;
    }
    if (t->unwanted) {
        say_stopped(t);
    }
    int committed = commit_graph(t, rc == GD_OK ? &err : NULL);
    if (rc != GD_OK || committed < 0) {
        gd_session_on_warning(t->base.session, err.text);
    }
    resume_delivery(t);
}

static void begin_ingest(struct v1_target *t)
{
    end_progress(t);
    t->unwanted = false;
    t->graph_progress =
        gd_progress_begin(t->service->debugger, "loading the graph", "edges", t->edge_count);
    gd_progress_at(t->graph_progress, t->edges_done);
    if (t->conn) {
        v1_conn_hold(t->conn, true);
    }
    next_turn(t);
}

void v1_ingest_init(struct v1_target *t)
{
    ev_timer_init(&t->ingest_turn, on_turn, 0., 0.);
    t->ingest_turn.data = t;
}

int v1_ingest_begin(struct v1_target *t, struct gd_err *err)
{
    bool stopped = gd_progress_is_stopped(t->graph_progress);
    end_progress(t);
    if ((stopped || t->unwanted) && t->edges_done < t->edge_count) {
        t->unwanted = true;
        if (stopped) {
            say_stopped(t);
        }
        return commit_graph(t, err);
    }
    if (t->edge_count - t->edges_done > FEW) {
        begin_ingest(t);
        return GD_OK;
    }
    int rc = connect_all(t, err);
    return rc == GD_OK ? commit_graph(t, err) : rc;
}

void v1_ingest_finish(struct v1_target *t)
{
    if (ev_is_active(&t->ingest_turn)) {
        ev_timer_stop(t->service->loop, &t->ingest_turn);
        connect_all(t, NULL);
        commit_graph(t, NULL);
    }
}

int v1_ingest_again(struct v1_target *t, struct gd_err *err)
{
    if (ev_is_active(&t->ingest_turn) || t->edges_done == t->edge_count) {
        return gd_fail(err, GD_ENODATA, "all graphs sent by the training process are loaded");
    }
    begin_ingest(t);
    return GD_OK;
}
