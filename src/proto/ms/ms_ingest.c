// SPDX-License-Identifier: GPL-3.0-or-later
#include "proto/ms/ms_ingest.h"

#include <ev.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/progress.h"
#include "mindspore/ms_graph.h"
#include "proto/clock.h"

#define SLICE 0.02 /* seconds of work per turn of the loop */
#define NODES 256u /* between two clock readings */

struct graph { /* as received */
    struct graph *next;
    struct gd_buf bytes;
    bool unwanted;  /* interrupted before it was started */
    char name[256]; /* once started */
};

struct ms_ingest {
    struct ev_loop *loop;
    struct gd_debugger *debugger;
    struct gd_ms_target *target;
    void (*idle)(void *ctx);
    void *ctx;
    ev_timer timer;      /* expires immediately: the next turn */
    struct graph *queue; /* the first one is being loaded */
    struct graph *kept;  /* interrupted by Ctrl-C */
    struct gd_ms_graph_load *load;
    struct gd_progress *progress;
    unsigned used; /* functions of this file on the stack */
    bool gone;     /* destroyed in the meantime */
};

static void free_graph(struct graph *graph)
{
    gd_buf_deinit(&graph->bytes);
    free(graph);
}

static void free_graphs(struct graph **list)
{
    while (*list) {
        struct graph *graph = *list;
        *list = graph->next;
        free_graph(graph);
    }
}

static void append_graph(struct graph **list, struct graph *graph)
{
    while (*list) {
        list = &(*list)->next;
    }
    graph->next = NULL;
    *list = graph;
}

/* A graph replaces an older one of the same name, also an interrupted one. */
static void forget_kept(struct ms_ingest *ingest, const char *name)
{
    struct graph **link = &ingest->kept;
    while (*link) {
        struct graph *graph = *link;
        if (strcmp(graph->name, name) == 0) {
            *link = graph->next;
            free_graph(graph);
        } else {
            link = &graph->next;
        }
    }
}

static int begin_graph(struct ms_ingest *ingest, struct gd_err *err)
{
    struct graph *graph = ingest->queue;
    char what[160];
    int rc = gd_ms_target_graph_begin(ingest->target, (const uint8_t *)gd_buf_text(&graph->bytes),
                                      graph->bytes.len, &ingest->load, err);
    if (rc != GD_OK) {
        return rc;
    }
    snprintf(graph->name, sizeof(graph->name), "%s", gd_ms_graph_info(ingest->load)->name);
    forget_kept(ingest, graph->name);
    snprintf(what, sizeof(what), "loading graph %.100s", graph->name);
    ingest->progress = gd_progress_begin(ingest->debugger, what, "nodes", 0);
    return GD_OK;
}

/* Notifies the session last, because its observers may do anything. */
static void end_graph(struct ms_ingest *ingest, bool stopped, const struct gd_err *err)
{
    struct gd_ms_graph_load *load = ingest->load;
    struct graph *graph = ingest->queue;
    gd_progress_end(ingest->progress);
    ingest->progress = NULL;
    ingest->load = NULL;
    ingest->queue = graph->next;
    if (stopped) {
        append_graph(&ingest->kept, graph);
        gd_ms_target_graph_stopped(ingest->target, load);
        return;
    }
    size_t len = graph->bytes.len;
    gd_ms_target_graph_end(ingest->target, load, len, err);
    free_graph(graph);
}

/* Loads a part of the first graph. */
static void step_ingest(struct ms_ingest *ingest)
{
    struct gd_err err;
    uint64_t at, total;
    bool done = false;
    int rc = ingest->load ? GD_OK : begin_graph(ingest, &err);
    if (rc == GD_OK && (ingest->queue->unwanted || gd_progress_is_stopped(ingest->progress))) {
        end_graph(ingest, true, NULL);
        return;
    }
    if (rc == GD_OK) {
        rc = gd_ms_graph_step(ingest->load, NODES, &done, &err);
    }
    if (rc != GD_OK || done) {
        end_graph(ingest, false, rc != GD_OK ? &err : NULL);
        return;
    }
    gd_ms_graph_at(ingest->load, &at, &total);
    gd_progress_at(ingest->progress, at);
    gd_progress_of(ingest->progress, total);
}

static void end_use(struct ms_ingest *ingest)
{
    if (--ingest->used == 0 && ingest->gone) {
        free(ingest);
    }
}

static void do_work(struct ms_ingest *ingest, double seconds)
{
    double end = gd_clock_seconds() + seconds;
    do {
        step_ingest(ingest);
    } while (!ingest->gone && ingest->queue && (seconds < 0 || gd_clock_seconds() < end));
}

static void next_turn(struct ms_ingest *ingest)
{
    ev_timer_set(&ingest->timer, 0., 0.);
    ev_timer_start(ingest->loop, &ingest->timer);
}

static void on_turn(struct ev_loop *loop, ev_timer *timer, int events)
{
    struct ms_ingest *ingest = timer->data;
    (void)loop;
    (void)events;
    if (ingest->used) { /* an observer of the graph is running the loop */
        return;
    }
    ingest->used++;
    do_work(ingest, SLICE);
    if (!ingest->gone && ingest->queue) {
        next_turn(ingest);
    } else if (!ingest->gone) {
        ingest->idle(ingest->ctx);
    }
    end_use(ingest);
}

struct ms_ingest *ms_ingest_create(struct ev_loop *loop, struct gd_debugger *debugger,
                                   struct gd_ms_target *target, void (*idle)(void *ctx), void *ctx)
{
    struct ms_ingest *ingest = calloc(1, sizeof(*ingest));
    if (!ingest) {
        return NULL;
    }
    ingest->loop = loop;
    ingest->debugger = debugger;
    ingest->target = target;
    ingest->idle = idle;
    ingest->ctx = ctx;
    ev_timer_init(&ingest->timer, on_turn, 0., 0.);
    ingest->timer.data = ingest;
    return ingest;
}

void ms_ingest_destroy(struct ms_ingest *ingest)
{
    if (!ingest) {
        return;
    }
    ev_timer_stop(ingest->loop, &ingest->timer);
    gd_progress_end(ingest->progress);
    gd_ms_graph_end(ingest->load);
    free_graphs(&ingest->queue);
    free_graphs(&ingest->kept);
    ingest->progress = NULL;
    ingest->load = NULL;
    ingest->gone = true;
    if (!ingest->used) {
        free(ingest);
    }
}

int ms_ingest_add(struct ms_ingest *ingest, struct gd_buf *bytes, bool unwanted, struct gd_err *err)
{
    struct graph *graph = calloc(1, sizeof(*graph));
    if (!graph) {
        return gd_fail(err, GD_ENOMEM, "out of memory for a graph");
    }
    bool alone = !ingest->queue && !ingest->used;
    graph->bytes = *bytes;
    graph->unwanted = unwanted;
    gd_buf_init(bytes, bytes->max);
    append_graph(&ingest->queue, graph);
    if (!alone) {
        if (!ev_is_active(&ingest->timer) && !ingest->used) {
            next_turn(ingest);
        }
        return GD_OK;
    }
    ingest->used++;
    do_work(ingest, SLICE);
    if (!ingest->gone && ingest->queue) {
        next_turn(ingest);
    }
    end_use(ingest);
    return GD_OK;
}

bool ms_ingest_is_busy(const struct ms_ingest *ingest)
{
    return ingest && ingest->queue;
}

void ms_ingest_finish(struct ms_ingest *ingest)
{
    if (!ms_ingest_is_busy(ingest) || ingest->used) {
        return;
    }
    ev_timer_stop(ingest->loop, &ingest->timer);
    ingest->used++;
    do_work(ingest, -1);
    if (!ingest->gone) {
        ingest->idle(ingest->ctx);
    }
    end_use(ingest);
}

int ms_ingest_again(struct ms_ingest *ingest, struct gd_err *err)
{
    if (!ingest || !ingest->kept) {
        return gd_fail(err, GD_ENODATA, "all graphs sent by the training process are loaded");
    }
    while (ingest->kept) {
        struct graph *graph = ingest->kept;
        ingest->kept = graph->next;
        graph->unwanted = false;
        append_graph(&ingest->queue, graph);
    }
    if (!ingest->used && !ev_is_active(&ingest->timer)) {
        next_turn(ingest);
    }
    return GD_OK;
}
