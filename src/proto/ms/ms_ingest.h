// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Graphs of a MindSpore process that were received and are taken in: one after the other, a little
 * at each turn of the loop, so that a graph of a million nodes stops nobody from typing. A small
 * one is in when ms_ingest_add returns.
 *
 * Ctrl-C ends it. The graph's bytes are kept then, for ms_ingest_again.
 */
#ifndef GD_PROTO_MS_INGEST_H
#define GD_PROTO_MS_INGEST_H

#include "base/buf.h"
#include "proto/ms/ms_target.h"

struct ev_loop;
struct ms_ingest;

/* `idle` is called when all that took more than one turn is done; it may call any of these. */
struct ms_ingest *ms_ingest_create(struct ev_loop *loop, struct gd_debugger *debugger,
                                   struct gd_ms_target *target, void (*idle)(void *ctx), void *ctx);
/* Drops what is not in. NULL is fine. */
void ms_ingest_destroy(struct ms_ingest *ingest);
/* Takes the bytes over. unwanted: Ctrl-C was pressed before they were complete. GD_ENOMEM. */
int ms_ingest_add(struct ms_ingest *ingest, struct gd_buf *graph, bool unwanted,
                  struct gd_err *err);
bool ms_ingest_is_busy(const struct ms_ingest *ingest); /* `idle` will be called; NULL: false */
void ms_ingest_finish(struct ms_ingest *ingest);        /* now, however long it takes */
/* Takes in what Ctrl-C kept out. GD_ENODATA: there is nothing of that kind. */
int ms_ingest_again(struct ms_ingest *ingest, struct gd_err *err);

#endif
