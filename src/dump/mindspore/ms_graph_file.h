// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * The graphs and execution orders of a MindSpore dump: a rank's
 * graphs/ms_output_trace_code_graph_G.pb and execution_order/ms_execution_order_graph_G.csv.
 * Private to the readers of MindSpore's formats.
 */
#ifndef GD_DUMP_MS_GRAPH_FILE_H
#define GD_DUMP_MS_GRAPH_FILE_H

#include "dump/catalog.h"
#include "dump/mindspore/ms_nodes.h"

/* Loads a ModelProto or a bare GraphProto as a subgraph of its own name, or named `other` if that
 * name is taken (see gd_ms_graph_load). *ret is the subgraph's number. GD_EPROTO: neither of
 * them. */
int ms_graph_file_read(struct gd_disk *disk, struct gd_graph *graph, const char *other,
                       uint32_t *ret, struct gd_err *err);

/* Initialises `nodes` with what the rank's directory (GD_NO_ENTRY: none) has of graph `id`;
 * *next_order is where execution order continues. Broken files are left out with a reason. */
int ms_graph_take(const struct gd_listing *listing, uint32_t rank_dir, const char *id,
                  struct gd_catalog *catalog, struct gd_dump *dump, struct ms_nodes *nodes,
                  uint32_t *next_order, struct gd_err *err);

/* Adds facts to the catalog: .dump_metadata/config.json, and which iterations ran. */
int ms_metadata_take(const struct gd_listing *listing, uint32_t rank_dir,
                     struct gd_catalog *catalog, struct gd_dump *dump, struct gd_err *err);

#endif
