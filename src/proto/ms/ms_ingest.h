// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Loads the graphs received from a MindSpore process, one after the other, a part per turn of the
 * loop, so that a graph with a million nodes does not block typing. A small one is loaded when
 * ms_ingest_add returns.
 *
 * Ctrl-C interrupts loading; the graph's bytes are then kept for ms_ingest_again.
 */
#ifndef GD_PROTO_MS_INGEST_H
#define GD_PROTO_MS_INGEST_H

#include "base/buf.h"
#include "proto/ms/ms_target.h"

struct ev_loop;
struct ms_ingest;

/* `idle` is called when everything that took more than one turn is loaded; it may call any of
 * these. */
struct ms_ingest *ms_ingest_create(struct ev_loop *loop, struct gd_debugger *debugger,
                                   struct gd_ms_target *target, void (*idle)(void *ctx), void *ctx);
/* Drops what is not loaded. NULL is allowed. */
void ms_ingest_destroy(struct ms_ingest *ingest);
/* Takes ownership of the bytes. unwanted: Ctrl-C was pressed before they were complete.
 * GD_ENOMEM. */
int ms_ingest_add(struct ms_ingest *ingest, struct gd_buf *graph, bool unwanted,
                  struct gd_err *err);
bool ms_ingest_is_busy(const struct ms_ingest *ingest); /* `idle` will be called; NULL: false */
void ms_ingest_finish(struct ms_ingest *ingest); /* loads everything now, however long it takes */
/* Loads what Ctrl-C interrupted. GD_ENODATA: nothing was interrupted. */
int ms_ingest_again(struct ms_ingest *ingest, struct gd_err *err);

#endif
